// Package importer turns recorded sessions into a scenario, fixtures for the MCP servers that were used, their
// configuration and, on request, the files that the session read.
//
// Secrets and personal data are replaced before anything is written, and calls with side effects run real tools only if a user
// edits the scenario for this. The same input produces the same bytes. Package session reads the recordings.
package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/fixtures/clone"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// Options configure an import. Files and Dir are required.
type Options struct {
	Files  []string
	Branch string // id of a transcript line on the branch to follow; empty means the newest branch
	Out    string // output directory; if empty, the scenario is written to Stdout
	Name   string // name of the scenario; empty means derived from the first file
	// RivalDir is a directory of other scenarios, or "". If a prompt contains the text of one of their patterns, the new pattern for this
	// prompt must not be a part of that text. Otherwise the new rule would also match all prompts of the other rule.
	RivalDir string

	ExactPatterns  bool // patterns match whole prompts
	LinkResults    bool // a reply that repeats a tool result refers to it by a template
	KeepThinking   bool // keep the model's thinking
	KeepFiles      bool // write the files that the session read, so that Read calls can be executed
	KeepBigResults bool // keep results of more than 200 KB in full
	Raw            bool // do not redact anything
	Force          bool // overwrite existing files
	Update         bool // keep edits in Out since the last import

	Check *ScenarioPlayer // plays the written scenario; nil means not played

	Environment CurrentEnvironment
	Stdout      io.Writer
	Progress    session.Progress // receives the progress of reading; nil means none
}

// Outcome is the result of an import.
type Outcome struct {
	Written     []string           `json:"written"`
	Prompts     int                `json:"prompts"`
	Calls       int                `json:"calls"`
	Redacted    []RedactionCount   `json:"redacted"` // number of replacements, by kind
	Unknown     []UnknownLineCount `json:"unknown_lines"`
	Damaged     int                `json:"damaged_lines"` // number of lines that could not be read and were skipped
	Notes       []string           `json:"notes"`
	Leaks       []Leak             `json:"left"`    // secrets that would have been written
	Differences []string           `json:"differs"` // differences found by --check
	Checked     bool               `json:"checked"`
}

// UnknownLineCount says how many lines of a type that the importer does not know were skipped.
type UnknownLineCount struct {
	Type  string `json:"type"`
	Lines int    `json:"lines"`
}

// ErrNothingWrittenBecauseOfSecrets reports that nothing was written, because the output would contain secrets.
var ErrNothingWrittenBecauseOfSecrets = errors.New("nothing was written")

// Run imports the files. If inputs cannot be read, Run imports nothing, and the error contains a [*session.Error] for
// each of these inputs. After any other error, the outcome contains the results up to the error.
func Run(ctx context.Context, o Options) (Outcome, error) {
	var out Outcome
	sessions, err := session.Read(o.Files, session.Options{Branch: o.Branch, Contents: o.KeepFiles, Progress: o.Progress})
	if err != nil {
		return out, err
	}
	if err := refuseRawOutputInGit(o); err != nil {
		return out, err
	}
	k, err := NewUncommittedFileSet(FileSetOptions{Out: o.Out, Force: o.Force, Raw: o.Raw})
	if err != nil {
		return out, err
	}
	defer k.Discard()
	if err := redactAndWriteScenario(o, k, sessions, &out); err != nil {
		return out, err
	}
	if out.Leaks = k.SecretsFoundSoFar(); len(out.Leaks) > 0 {
		return out, ErrNothingWrittenBecauseOfSecrets
	}
	if o.Update {
		kept, err := k.MergeUserEditsOfExistingFiles("scenario.toml")
		if err != nil {
			return out, err
		}
		out.Notes = append(out.Notes, kept...)
	}
	var compare func() ([]string, error)
	if o.Check != nil {
		played, done, err := o.Check.CopyFilesToTemporaryPlayDirs(k)
		if err != nil {
			return out, err
		}
		defer done()
		how := CompareOptions{Thinking: o.KeepThinking, MaxResultBytes: maxImportedToolResultBytes}
		if o.KeepBigResults {
			how.MaxResultBytes = 0
		}
		compare = func() ([]string, error) { return o.Check.PlayAndFindDifferences(ctx, played, sessions, how) }
	}
	if o.Out == "" {
		err = k.CopyFile("scenario.toml", o.Stdout)
	} else {
		out.Written, err = k.CommitWithoutSecretCheck()
	}
	if err == nil && compare != nil {
		out.Checked = true
		out.Differences, err = compare()
	}
	return out, err
}

func redactAndWriteScenario(o Options, k *FileSetWriter, sessions []*session.Session, out *Outcome) error {
	var typed []string
	for _, s := range sessions {
		for _, p := range s.Prompts {
			typed = append(typed, p.Text)
		}
	}
	h := NewRedactorReadingSecretFiles(o.Environment, sessions)
	if !o.Raw {
		h.RedactSessions(sessions)
	}
	rival, err := readPatternsOfScenariosInDir(o.RivalDir)
	if err != nil {
		return err
	}
	w := &scenarioWriter{options: &o, files: k, patterns: newPatternChooser(typed, rival, o.ExactPatterns), plans: newCallReplayPlanner(o, sessions)}
	if err := w.writeFixtures(sessions); err != nil {
		return err
	}
	unknown := map[string]int{}
	for _, s := range sessions {
		out.Prompts += len(s.Prompts)
		out.Calls += len(s.Calls())
		for k, n := range s.UnknownLines {
			unknown[k] += n
		}
		for _, d := range s.Damaged {
			out.Damaged += d.Lines
			w.notes = append(w.notes, d.String())
		}
	}
	w.writeScenarioAndFiles(sessions)
	out.Redacted, out.Notes = h.Report(), w.notes
	for k, n := range unknown {
		out.Unknown = append(out.Unknown, UnknownLineCount{k, n})
	}
	slices.SortFunc(out.Unknown, func(a, b UnknownLineCount) int { return cmp.Compare(a.Type, b.Type) })
	return k.Err()
}

// Report writes the outcome as text. Control characters from the session are escaped.
func (o *Outcome) Report(w io.Writer) { fmt.Fprint(w, session.EscapeControls(o.reportText())) }

func (o *Outcome) reportText() string {
	w := &strings.Builder{}
	for _, n := range o.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, u := range o.Unknown {
		fmt.Fprintf(w, "skipped: %d lines of the unknown type %q\n", u.Lines, u.Type)
	}
	for _, h := range o.Redacted {
		fmt.Fprintf(w, "redacted: %s %d times, first at %s\n", h.Kind, h.Times, h.FirstPlace)
	}
	for _, l := range o.Leaks {
		fmt.Fprintf(w, "%s\n", l)
	}
	for _, d := range o.Differences {
		fmt.Fprintf(w, "differs: %s\n", d)
	}
	if len(o.Written) > 0 {
		fmt.Fprintf(w, "prompts: %d, tool calls: %d; review the prompts in the scenario before you commit it\n", o.Prompts, o.Calls)
	}
	return w.String()
}

// JSON returns the outcome for programs.
func (o *Outcome) JSON() ([]byte, error) { return json.MarshalIndent(o, "", "  ") }

// DefaultScenarioName returns the name of an imported scenario, derived from its first input.
func DefaultScenarioName(files []string) string {
	if len(files) == 0 {
		return "imported"
	}
	base := filepath.Base(files[0])
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if transcriptNamePattern().MatchString(name) {
		return "session"
	}
	return name
}

var transcriptNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-|^agent-`) })

// IsInputError reports whether an error concerns an input.
func IsInputError(err error) bool {
	_, ok := errors.AsType[*session.Error](err)
	return ok || errors.Is(err, session.ErrNoConversation)
}

// minBytesOfResultReplacedByReference is the minimum length of a result that a reference can replace in later texts. Shorter
// results occur in texts by chance.
const minBytesOfResultReplacedByReference = 8

// rememberToolResults stores the results of the calls in a message, so that later texts can refer to them. It
// ignores sub-agents, which it recognizes by tomlTablePath, the position of the message in the scenario.
func (w *scenarioWriter) rememberToolResults(tomlTablePath string, blocks []session.Block) {
	if !w.options.LinkResults || strings.Contains(tomlTablePath, ".subagent.") {
		return
	}
	for _, b := range blocks {
		if b.Call == nil {
			continue
		}
		result := ""
		if b.Call.Result != nil && b.Call.Agent == nil {
			result = strings.TrimSpace(b.Call.Result.Text)
		}
		w.results = append(w.results, result)
	}
}

// quoteTextWithToolResultReference returns a text of the model in TOML. If the text repeats the result of a call, a template
// replaces the repeated part. When the user later edits the result, the text changes with it.
func (w *scenarioWriter) quoteTextWithToolResultReference(tomlTablePath, modelText string) string {
	if !w.options.LinkResults || strings.Contains(tomlTablePath, ".subagent.") {
		return quoteAsTOMLTemplate(modelText)
	}
	for i, result := range w.results {
		if before, behind, ok := strings.Cut(modelText, result); ok && len(result) >= minBytesOfResultReplacedByReference {
			return tomltext.BasicString(asTemplate(before) + fmt.Sprintf("{{ trim(results[%d].text) }}", i) + asTemplate(behind))
		}
	}
	return quoteAsTOMLTemplate(modelText)
}

// refuseRawOutputInGit refuses to write unredacted output where it could be committed.
func refuseRawOutputInGit(options Options) error {
	if options.Force || !options.Raw || options.Out == "" {
		return nil
	}
	dir, err := filepath.Abs(options.Out)
	if err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return fmt.Errorf("refusing to write unredacted output (--raw) into the git work tree %s; use --force to write it anyway", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (w *scenarioWriter) writeFixtures(sessions []*session.Session) error {
	servers := map[string]*clone.RecordedServer{}
	server := func(name string) *clone.RecordedServer {
		if servers[name] == nil {
			servers[name] = &clone.RecordedServer{Name: name}
		}
		return servers[name]
	}
	called := map[string]bool{}
	for _, s := range sessions {
		for _, c := range s.Calls() {
			name, tool, ok := session.SplitMCPToolName(c.Tool)
			if !ok {
				continue
			}
			r := server(name)
			key := c.Tool + "\x00" + string(plainjson.Compact(c.Input))
			if c.Result == nil || c.Result.Denied || called[key] || w.plans.differing[key] {
				r.Tools = append(r.Tools, tool)
				continue
			}
			called[key] = true
			result, err := mcpResult(c.Result)
			if err != nil {
				return err
			}
			r.Calls = append(r.Calls, clone.RecordedCall{Tool: tool, Args: json.RawMessage(replaceDirPlaceholdersByNames(string(c.Input))), Result: result})
		}
		for _, full := range s.Tools {
			if name, tool, ok := session.SplitMCPToolName(full); ok && servers[name] != nil {
				server(name).Tools = append(server(name).Tools, tool)
			}
		}
	}
	return w.writeFixtureAndConfigFiles(servers)
}

func (w *scenarioWriter) writeFixtureAndConfigFiles(servers map[string]*clone.RecordedServer) error {
	type entry struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	config := struct {
		Servers map[string]entry `json:"mcpServers"`
	}{map[string]entry{}}
	names := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		data, err := clone.EncodeFixture(*servers[name])
		if err != nil {
			return fmt.Errorf("creating the fixture of the MCP server %q: %w", name, err)
		}
		file := "fixtures/" + addUniqueName(fileNameOfServer(name), names) + ".toml"
		w.files.AddFileWithContent(file, data)
		config.Servers[name] = entry{"${CLAUDELESS_BIN}", []string{"fixture", "serve", file}}
	}
	text, err := json.MarshalIndent(config, "", "  ")
	w.files.AddFileWithContent("mcp.json", append(text, '\n'))
	return err
}

// maxFileNameBytes leaves room for a number and an extension in the 255 bytes of a name.
const maxFileNameBytes = 200

// addUniqueName returns name, or name with a number if used contains it, and adds the result to used. It ignores case.
func addUniqueName(name string, used map[string]bool) string {
	unique := name
	for n := 2; used[strings.ToLower(unique)]; n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	used[strings.ToLower(unique)] = true
	return unique
}

func fileNameOfServer(server string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, strings.TrimLeft(server, "."))
	return cmp.Or(name[:min(len(name), maxFileNameBytes)], "server")
}

// mcpResult returns a result as its server sent it. If the recording lacks this form, it is built from the text.
func mcpResult(r *session.Result) (json.RawMessage, error) {
	if r.Raw != nil {
		return json.RawMessage(replaceDirPlaceholdersByNames(string(r.Raw))), nil
	}
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	said, _, _ := strings.Cut(r.Text, "\n\nThis tool's input schema was not in your prompt") // added by the CLI
	return json.Marshal(struct {
		Content []text `json:"content"`
		IsError bool   `json:"isError,omitempty"`
	}{[]text{{"text", replaceDirPlaceholdersByNames(said)}}, r.IsError})
}
