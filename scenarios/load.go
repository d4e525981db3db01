// Package scenarios is the scripted model: it loads a scenario (TOML, or JSON
// with the same keys), says everything that is wrong with it, and answers
// requests with what the scenario says.
//
// Its invariant: a reply depends on the scenario, the options and the requests
// so far, on nothing else. The package knows no clock, environment, network,
// tool or process; a scripted failure is a value in [Reply], never an error.
//
// # Scenario files
//
// A scenario scripts the model: what it says to which prompt, and which tools
// it calls. It is a TOML file, or a JSON file (extension .json) with the same
// keys. An unknown key is an error everywhere; claudeless check FILE tells all
// that is wrong with a file at once and warns of what cannot be meant: rules
// that an earlier one hides, tools, inputs, results and groups that are not
// there. docs/schema/scenario.json lets an editor check the keys:
//
//	#:schema ./docs/schema/scenario.json
//	default_response = "I only know the weather."
//
//	[[responses]]
//	pattern = { type = "regex", pattern = 'weather in (?P<city>\w+)' }
//	[[responses.response.steps]]
//	text = "Let me look."
//	tool_calls = [{ tool = "weather/forecast_get", input = { city = "{{ match.city }}" } }]
//	[[responses.response.steps]]
//	text = "It is {{ results[0].text }} in {{ match.city }}."
//
// How a prompt is answered: the next turn of an active sequence, if the prompt
// matches it (else the sequence ends); then the rules in file order, without
// those whose max_matches is used up or that answer once and have; then
// default_response; else an empty text. Counts and sequence belong to the session: they go on when it is
// resumed in another process, and so does a response whose tool call a hook has
// deferred. Text that the CLI itself puts in (after a Stop
// hook, a schema reminder) is matched against the rules only. So is the notice
// that work in the background has ended, a prompt which begins with
// <task-notification>; but when the next turn of a sequence matches it, that
// turn answers, and when not, the turn goes on being expected.
//
// A response is a string, a table with text and tool_calls (the calls go out
// first, the text closes after their results), or a list of steps, each one
// message of the model: its tool calls run, and the next step sees their
// results.
//
// Expressions (when, and templates in double braces in texts, tool inputs and
// canned results) are expr-lang, checked when the file is loaded. They see
// prompt, match (the groups of the pattern; match[0] is the whole match),
// results (text, is_error, tool, id, content, structured: the
// structured content of an MCP tool, the output of a built-in one), context (the texts
// beside the prompt and the results: beside the first prompt of a conversation
// the files of instructions with what they import, the output style and what MCP
// servers say of themselves; beside every one what hooks say, files and
// resources mentioned with @, and the instructions of directories and rules about
// paths that its calls reach; any(context, # contains "x") finds one), turn (the
// number of the prompt in the session, from 1), tools, model,
// permission_mode, system_prompt, cwd, env, args, session (id, resumed, turn)
// and schemas (input schema by tool name), and of the request itself attempt
// (from 1); behind claudeless serve also max_tokens, stream, betas, headers
// (lower case, credentials redacted), agent (id of the sub-agent that asks),
// attachments (types of images and documents in the prompt), tool_choice,
// thinking, output_config, metadata; system is another name of system_prompt. A
// string that is exactly one
// template becomes the value with its type; in longer text, what is no string
// is written as compact JSON.
package scenarios

//go:generate go run ../internal/tools/schemadoc -dir . -type Scenario -json ../docs/schema/scenario.json -md ../docs/scenarios.md

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// LoadOptions say how files are read. The zero value works.
type LoadOptions struct {
	// ReadFile reads a scenario, an included one or a `$file`; nil reads regular
	// files of at most 64 MiB.
	ReadFile func(path string) ([]byte, error)
}

// Load reads the scenario at path: JSON when its extension is ".json", else
// TOML. The error is a [diag.List] with everything that is wrong.
func Load(path string, o LoadOptions) (*Scenario, error) {
	l := newLoader(o)
	src, err := l.read(path)
	if err != nil {
		return nil, diag.List{{Pos: diag.Position{File: path}, Message: "cannot read the scenario: " + fill.Reason(err)}}
	}
	return l.load(path, src)
}

// Parse is [Load] for a source that was read already; path says what it is
// called and where its files are looked for.
func Parse(path string, src []byte, o LoadOptions) (*Scenario, error) {
	return newLoader(o).load(path, src)
}

// loader reads one scenario and what it includes.
type loader struct {
	read   func(path string) ([]byte, error)
	list   diag.List
	lib    *fill.Library
	loaded []string // included files so far, cleaned paths
	texts  []string // of all files, in the order in which they were read
}

func newLoader(o LoadOptions) *loader {
	if o.ReadFile == nil {
		o.ReadFile = diag.ReadFile
	}
	return &loader{read: o.ReadFile, lib: fill.NewLibrary()}
}

func (l *loader) load(path string, src []byte) (*Scenario, error) {
	s := l.file(path, src, []string{filepath.Clean(path)})
	l.list.Sort()
	if err := l.list.Err(); err != nil {
		return nil, err
	}
	s.library, s.rules, s.texts = l.lib, &ruleIndex{}, l.texts
	return s, nil
}

// file reads one file and its includes; stack leads to it.
func (l *loader) file(path string, src []byte, stack []string) *Scenario {
	s := &Scenario{}
	ix, readable := l.bind(path, src, s)
	l.texts = append(l.texts, ix.Text())
	if !readable {
		return s
	}
	s.source = &fill.Source{Index: ix, Dir: filepath.Dir(path), Templates: s.Templates == nil || *s.Templates}
	c := &compiler{&fill.Checker{Library: l.lib, Source: s.source, ReadFile: l.read, Found: &l.list}}
	c.scenario(s)
	for i, name := range s.Include {
		s.Responses = append(s.Responses, l.include(s.source, i, name, stack)...)
	}
	return s
}

// include reads the i-th included file and returns its rules.
func (l *loader) include(from *fill.Source, i int, name string, stack []string) []Rule {
	at := diag.Path{"include", i}
	path := fill.Resolve(from.Dir, name)
	clean := filepath.Clean(path)
	if slices.Contains(stack, clean) {
		names := make([]string, 0, len(stack)+1)
		for _, p := range append(slices.Clone(stack), clean) {
			names = append(names, filepath.Base(p))
		}
		l.list = append(l.list, from.Index.At(at, "include cycle: "+strings.Join(names, " → ")))
		return nil
	}
	if slices.Contains(l.loaded, clean) {
		return nil
	}
	l.loaded = append(l.loaded, clean)
	src, err := l.read(path)
	if err != nil {
		l.list = append(l.list, from.Index.At(at, fmt.Sprintf("cannot read the included file %q: %s", name, fill.Reason(err))))
		return nil
	}
	return l.file(path, src, append(slices.Clone(stack), clean)).Responses
}

// bind decodes one file into s; false = it could not be read at all.
func (l *loader) bind(path string, src []byte, s *Scenario) (*diag.Index, bool) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		ix := diag.IndexJSON(path, src)
		if d := ix.Doubt(); d != nil {
			d.Message = "invalid JSON: " + d.Message
			l.list = append(l.list, *d)
			return ix, false
		}
		l.list = append(l.list, ix.Bind(s)...)
		return ix, true
	}
	ix := diag.IndexTOML(path, src)
	d := ix.Doubt()
	if d == nil {
		l.list = append(l.list, ix.Bind(s)...)
		return ix, true
	}
	if ix.Refused() {
		l.list = append(l.list, *d)
		return ix, false
	}
	// The index takes only what is plain; the decoder has the last word.
	var tree map[string]any
	if _, err := toml.Decode(string(src), &tree); err != nil {
		l.list = append(l.list, syntaxError(ix, *d, err))
		return ix, false
	}
	l.list = append(l.list, diag.Bind(tree, s, ix)...)
	return ix, true
}

// syntaxError is the decoder's error. Its place is the one where the index
// began to doubt, unless the decoder went on well beyond that: the decoder
// tells some errors only at the next line or at the end of the file.
func syntaxError(ix *diag.Index, doubt diag.Diagnostic, err error) diag.Diagnostic {
	pe, ok := errors.AsType[toml.ParseError](err)
	if !ok || strings.Contains(doubt.Message, "defined") || strings.Contains(doubt.Message, "not closed") {
		doubt.Message = "invalid TOML: " + doubt.Message
		return doubt
	}
	message := pe.Message
	if message == "" {
		message = pe.Error()
	}
	d := ix.AtLine(pe.Position.Line, pe.Position.Col, "")
	if gap := d.Pos.Line - doubt.Pos.Line; gap == 0 || gap == 1 {
		d, d.Hint = doubt, doubt.Message
	}
	d.Message = "invalid TOML: " + strings.TrimSuffix(message, ".")
	return d
}

//go:embed library/*.toml
var libraryFiles embed.FS

// Library lists the names of the embedded scenarios, sorted.
func Library() []string {
	entries, err := libraryFiles.ReadDir("library")
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".toml")
	}
	return names
}

// LoadLibrary loads an embedded scenario. The error for an unknown name is a
// [diag.List] that names the nearest one.
func LoadLibrary(name string) (*Scenario, error) {
	file := path.Join("library", name+".toml")
	src, err := libraryFiles.ReadFile(file)
	if err != nil {
		names := Library()
		hint := diag.MeantHint(name, names)
		if hint == "" {
			hint = "the library has " + strings.Join(names, ", ")
		}
		return nil, diag.List{{Pos: diag.Position{File: name}, Message: fmt.Sprintf("no scenario file %q, and no library scenario of this name", name), Hint: hint}}
	}
	return Parse(file, src, LoadOptions{ReadFile: libraryFiles.ReadFile})
}

// Open loads the scenario that a command line names: a file, or when there is none
// and the name has no slash, one of the library.
func Open(name string) (*Scenario, error) {
	if _, err := os.Stat(name); err == nil || strings.ContainsRune(name, filepath.Separator) {
		return Load(name, LoadOptions{})
	}
	return LoadLibrary(name)
}

// Greeting is the scenario of a run without one: every prompt is answered by a
// text that says so.
func Greeting() *Scenario {
	return &Scenario{Templates: new(false), DefaultResponse: &Response{Text: greeting}}
}

const greeting = "Hello! No scenario is loaded, so there is nothing else to say. " +
	"Give one with --scenario FILE, with the variable CLAUDELESS_SCENARIO or as claudeless.toml in the working directory; " +
	"--scenario quickstart is one to try."
