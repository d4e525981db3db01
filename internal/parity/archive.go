package parity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/scenarios"
)

type archiveFile struct {
	archive, name string
	line          int // number of the file's first line in the archive
	data          []byte
}

func (f *archiveFile) withArchivePosition(d diag.Diagnostic) diag.Diagnostic {
	d.Pos.File, d.Pos.Line = f.archive, f.line+max(d.Pos.Line, 1)-1
	d.Message = f.name + ": " + d.Message
	return d
}

func (f *archiveFile) errorf(line int, format string, args ...any) diag.Diagnostic {
	return f.withArchivePosition(diag.Diagnostic{Pos: diag.Position{Line: line}, Message: fmt.Sprintf(format, args...)})
}

// namesOfFilesInCaseArchive returns the file names that have a meaning in a case archive. argv, stdin and dialogue may
// have a numeric suffix, as in argv.2.
func namesOfFilesInCaseArchive() []string {
	return []string{"scenario.toml", "argv", "stdin", "dialogue", "settings.json", "mcp.json", "env", "servers", "refuses", "default-url", "subdirectory"}
}

// splitArchive parses a txtar archive. Unlike the txtar libraries, it records the line at which each file begins.
func splitArchive(archive string, src []byte) []*archiveFile {
	var files []*archiveFile
	n := 0
	for text := range bytes.Lines(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))) {
		n++
		line := strings.TrimSuffix(string(text), "\n")
		inner, begins := strings.CutPrefix(line, "-- ")
		inner, ends := strings.CutSuffix(inner, " --")
		if name := strings.TrimSpace(inner); begins && ends && name != "" {
			files = append(files, &archiveFile{archive, name, n + 1, []byte{}})
			continue
		}
		if len(files) > 0 {
			last := files[len(files)-1]
			last.data = append(append(last.data, line...), '\n')
		}
	}
	return files
}

func (c *Case) fillFromTxtarArchive(archiveText []byte) (problems diag.List) {
	defer func() { problems.Sort() }()
	var argv, stdin, steps [10]*archiveFile
	seen := map[string]bool{}
	for _, f := range splitArchive(c.File, archiveText) {
		name, n := splitNumberAfterDot(f.name)
		if key := fmt.Sprintf("%s.%d", name, n); seen[key] {
			problems = append(problems, f.errorf(0, "duplicate file: the case already has a file of this name"))
		} else {
			seen[key] = true
		}
		switch {
		case strings.HasPrefix(f.name, "cwd/"), strings.HasPrefix(f.name, "home/"):
			problems = append(problems, c.addFile(f)...)
		case name == "argv":
			argv[n] = f
		case name == "stdin":
			stdin[n] = f
		case name == "dialogue":
			steps[n] = f
		default:
			problems = append(problems, c.fillFromArchiveFile(f)...)
		}
	}
	if c.Scenario == nil && len(problems) == 0 {
		problems = append(problems, diag.Diagnostic{Pos: diag.Position{File: c.File, Line: 1}, Message: "the case has no scenario.toml", Hint: "add one; it may be empty if the case never asks the model"})
	}
	if argv[1] == nil && len(problems) == 0 {
		problems = append(problems, diag.Diagnostic{Pos: diag.Position{File: c.File, Line: 1}, Message: "the case has no argv", Hint: "write one argument per line, without the program"})
	}
	for i := range argv {
		problems = append(problems, c.addRunFromArchiveFiles(argv[i], stdin[i], steps[i])...)
	}
	return problems
}

// splitNumberAfterDot splits a name such as argv.2 into name and number. The number is 1 if the name has none.
func splitNumberAfterDot(name string) (base string, number int) {
	if of, digit, ok := strings.Cut(name, "."); ok && len(digit) == 1 && digit[0] >= '1' && digit[0] <= '9' {
		return of, int(digit[0] - '0')
	}
	return name, 1
}

// fillFromArchiveFile reads a file that may occur only once in a case.
func (c *Case) fillFromArchiveFile(file *archiveFile) (problems diag.List) {
	switch file.name {
	case "scenario.toml":
		c.Scenario, c.ScenarioLine = file.data, file.line
		s, err := scenarios.Parse(c.Dir+"/scenario.toml", file.data, scenarios.LoadOptions{})
		if err == nil {
			c.setReasonsNotComparable(s)
			break
		}
		for _, d := range diagnosticsOf(file.name, err) {
			problems = append(problems, file.withArchivePosition(d))
		}
	case "settings.json":
		c.Settings = file.data
		addProblemIfInvalidJSON(file, &problems)
	case "mcp.json":
		c.MCP = file.data
		addProblemIfInvalidJSON(file, &problems)
	case "refuses":
		c.Refuses = true
	case "default-url":
		c.DefaultURL = true
	case "subdirectory":
		c.Subdirectory = strings.TrimSpace(string(file.data))
	case "env":
		for i, text := range splitLines(file.data) {
			if key, _, ok := strings.Cut(text, "="); !ok || key == "" {
				problems = append(problems, file.errorf(i+1, "invalid line %q: expected KEY=VALUE", text))
			}
			c.Env = append(c.Env, text)
		}
	case "servers":
		for i, text := range splitLines(file.data) {
			words := strings.Fields(text)
			if len(words) != 2 {
				problems = append(problems, file.errorf(i+1, `invalid server line %q: expected "NAME FIXTURE"`, text))
				continue
			}
			c.Servers = append(c.Servers, CaseServer{words[0], words[1]})
		}
	default:
		d := file.withArchivePosition(diag.Diagnostic{Message: "unknown file in a case"})
		d.Pos.Line-- // the line with the name of the file
		d.Hint = diag.NameHint(file.name, namesOfFilesInCaseArchive())
		d.Hint = cmp.Or(d.Hint, "a case has "+strings.Join(namesOfFilesInCaseArchive(), ", ")+", and files below cwd/ and home/")
		problems = append(problems, d)
	}
	return problems
}

// addFile adds a file of the working or the home directory.
func (c *Case) addFile(f *archiveFile) diag.List {
	root, rel, _ := strings.Cut(f.name, "/")
	if clean := path.Clean(rel); clean != rel || clean == "." || strings.HasPrefix(clean, "..") || path.IsAbs(clean) {
		return diag.List{f.errorf(0, "the path must stay inside %s/ and must not contain . or ..", root)}
	}
	if root == "cwd" {
		c.Files[rel] = f.data
	} else {
		c.Home[rel] = f.data
	}
	return nil
}

func (c *Case) addRunFromArchiveFiles(argvFile, stdinFile, dialogueFile *archiveFile) (problems diag.List) {
	var r CaseRun
	if stdinFile != nil {
		r.Stdin = stdinFile.data
	}
	if dialogueFile != nil {
		r.Steps, problems = parseSteps(dialogueFile)
	}
	switch {
	case argvFile != nil && stdinFile != nil && dialogueFile != nil:
		problems = append(problems, dialogueFile.errorf(0, "cannot set both stdin and a dialogue in one run"))
	case argvFile != nil:
		r.Args = splitLines(argvFile.data)
		c.Runs = append(c.Runs, r)
	case stdinFile != nil:
		problems = append(problems, stdinFile.errorf(0, "this file has no argv file of the same number: add one with the arguments of the run"))
	case dialogueFile != nil:
		problems = append(problems, dialogueFile.errorf(0, "this dialogue has no argv file of the same number: add one with the arguments of the run"))
	}
	return problems
}

// splitLines returns the lines of a text, without an empty last line.
func splitLines(data []byte) []string {
	text := strings.TrimSuffix(string(data), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Recording is what one of the two compared programs did in one case.
type Recording struct {
	Runs  []Run                        `json:"runs"`
	Hooks []json.RawMessage            `json:"hooks,omitempty"` // the payloads that the recording hook received, in order
	MCP   map[string][]json.RawMessage `json:"mcp,omitempty"`   // the traffic of the fixture servers, by server name
	Files map[string]string            `json:"files,omitempty"` // the files of the working directory after the run, by path
	// Transcripts are the session files, by path below the projects directory.
	Transcripts map[string][]json.RawMessage `json:"transcripts,omitempty"`
	// Requests are the requests to the model, as decoded from the journal.
	Requests []json.RawMessage `json:"requests,omitempty"`
	// Problems are reasons why the run did not complete: "timeout", "network", "start", "dialogue", with a description.
	Problems []LaneProblem     `json:"problems,omitempty"`
	Paths    map[string]string `json:"paths,omitempty"` // maps directories to placeholders
	Duration time.Duration     `json:"took"`
}

// Run is one execution of the program.
type Run struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// LaneProblem is a reason why the run of one program did not complete.
type LaneProblem struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Difference is one difference between the recordings of the two programs.
type Difference struct {
	// Path names the position: "stdout.system/init.tools", "exit", "files.a.txt". It has no indexes: all events of one kind have
	// the same path, and all elements of a list have the same path.
	Path string `json:"path"`
	// Ours and Real are the two values, normalised; empty means absent.
	Ours string `json:"ours,omitempty"`
	Real string `json:"real,omitempty"`
	// Event is the number of the first event with the difference, from 1; 0 means the difference is not in an event.
	Event int `json:"event,omitempty"`
	// Count is the number of occurrences.
	Count int `json:"count,omitempty"`
	// Known is the reason in the entry of the known differences that accepts this one.
	Known string `json:"known,omitempty"`
}

// TextsOfTimeoutProblems returns a text for each time limit that was reached; nil means none.
func TextsOfTimeoutProblems(ours, theirs *Recording) (problemTexts []string) {
	for _, side := range []*Recording{ours, theirs} {
		for _, p := range side.Problems {
			if p.Kind == "timeout" {
				problemTexts = append(problemTexts, p.Text)
			}
		}
	}
	return problemTexts
}

// RefusalByBothPrograms describes the refusal if both programs refuse to start, with the exit code and the message of the real
// CLI. It returns "" if at least one of them starts.
func RefusalByBothPrograms(ours, theirs *Recording) string {
	if !ours.hasEveryRunFailedBeforeSession() || !theirs.hasEveryRunFailedBeforeSession() {
		return ""
	}
	last := theirs.Runs[len(theirs.Runs)-1]
	first, _, _ := strings.Cut(strings.TrimSpace(last.Stderr+last.Stdout), "\n")
	return fmt.Sprintf("both programs refuse to start, with exit code %d: %s", last.Code, first)
}

func (r *Recording) hasEveryRunFailedBeforeSession() bool {
	if len(r.Requests) > 0 || len(r.Hooks) > 0 || len(r.MCP) > 0 || len(r.Transcripts) > 0 || len(r.Runs) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Code == 0 || run.Signal != "" || strings.Contains(run.Stdout, `"type":`)
	})
}

// CaseStep is one line of a dialogue: an action of the host, or a condition it waits for.
//
//	prompt TEXT              sends a prompt
//	send JSON                sends a line; $id is replaced by the id of the request that the last wait received
//	request JSON             sends a control request and waits for its answer
//	ask JSON                 sends a control request without waiting
//	wait KIND [PATH=VALUE…]  waits for an event of that kind
//	allow [JSON]             waits for the next can_use_tool and allows it; JSON is its updatedInput
//	deny [TEXT]              waits for the next can_use_tool and denies it
//	refuse                   denies every permission request until the next result
//	answer JSON              answers the request that the last wait received; $rpc is the id of its MCP message
//	signal INT|TERM|HUP      sends the process a signal
//	close                    ends stdin, like the end of the dialogue
//
// Empty lines and lines that begin with # are ignored.
type CaseStep struct {
	Verb  string   `json:"verb"`
	Text  string   `json:"text,omitempty"`  // the argument of the verb: a prompt, JSON, a kind or a signal
	Where []string `json:"where,omitempty"` // lists the conditions of a wait step, each in the form PATH=VALUE
	Line  int      `json:"line"`            // line in the file of the case
}

func parseSteps(f *archiveFile) (steps []CaseStep, problems diag.List) {
	known := map[string]string{ // the form of the argument; "?" means that it is optional, empty means none
		"prompt": "text", "send": "json", "request": "json", "ask": "json", "wait": "kind", "allow": "json?",
		"deny": "text?", "refuse": "", "answer": "json", "signal": "signal", "close": "",
	}
	for i, text := range splitLines(f.data) {
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		verb, rest, _ := strings.Cut(text, " ")
		s := CaseStep{Verb: verb, Text: strings.TrimSpace(rest), Line: f.line + i}
		form, ok := known[verb]
		if !ok {
			d := f.errorf(i+1, "unknown step %q", verb)
			all := sortedKeysOf(known)
			if d.Hint = diag.NameHint(verb, all); d.Hint == "" {
				d.Hint = "steps are " + strings.Join(all, ", ")
			}
			problems = append(problems, d)
			continue
		}
		if wrong := s.checkAndSplitArgument(form); wrong != "" {
			problems = append(problems, f.errorf(i+1, "%s %s", verb, wrong))
		}
		steps = append(steps, s)
	}
	return steps, problems
}

func (s *CaseStep) checkAndSplitArgument(argumentForm string) (problem string) {
	optional := strings.HasSuffix(argumentForm, "?")
	switch argumentForm = strings.TrimSuffix(argumentForm, "?"); {
	case s.Text == "" && argumentForm != "" && !optional:
		return "needs a " + argumentForm
	case s.Text != "" && argumentForm == "":
		return "takes nothing"
	case s.Text != "" && argumentForm == "json" && !json.Valid([]byte(strings.NewReplacer("$id", "id", "$rpc", "1").Replace(s.Text))):
		return "needs JSON, not " + s.Text
	case argumentForm == "signal" && !slices.Contains([]string{"INT", "TERM", "HUP"}, s.Text):
		return "needs INT, TERM or HUP"
	case argumentForm == "kind":
		words := strings.Fields(s.Text)
		s.Text, s.Where = words[0], words[1:]
		for _, w := range s.Where {
			if !strings.Contains(w, "=") {
				return "has conditions PATH=VALUE, not " + w
			}
		}
	}
	return ""
}
