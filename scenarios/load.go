// Package scenarios implements the scripted model. It loads a scenario (TOML, or JSON with the same
// keys), reports all problems in it, and answers requests to the model as the scenario specifies.
//
// A reply depends only on the scenario, the options and the requests so far. The package uses no clock, environment,
// network, tool or process; a scripted failure is a value in [Reply], never an error.
//
// docs/scenarios.md describes the file format; guide.md is its introduction.
package scenarios

//go:generate go run ../internal/tools/schemadoc -dir . -type Scenario -json ../docs/schema/scenario.json -md ../docs/scenarios.md

import (
	"cmp"
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

// LoadOptions configure loading. The zero value works.
type LoadOptions struct {
	// ReadFile reads a scenario file, an included file or a `$file`; nil reads regular files of at most 64 MiB.
	ReadFile func(path string) ([]byte, error)
}

// Load reads the scenario at path, as JSON if its extension is ".json", else TOML. The error is a [diag.List].
func Load(path string, o LoadOptions) (*Scenario, error) {
	l := newLoader(o)
	src, err := l.readTextFile(path)
	if err != nil {
		return nil, diag.List{{Pos: diag.Position{File: path}, Message: "cannot read the scenario: " + diag.FileErrorTextWithoutPath(err), Hint: l.similarFileNameHint(path)}}
	}
	return l.loadWithIncludes(path, src)
}

// similarFileNameHint returns a hint with the name of a similar file in the same directory, or "". It returns "" if
// [LoadOptions.ReadFile] is set, because that function need not read from a directory.
func (l *loader) similarFileNameHint(missingPath string) string {
	if l.ReadFile != nil {
		return ""
	}
	return diag.DidYouMean(filepath.Base(missingPath), siblingScenarioFiles(missingPath))
}

func siblingScenarioFiles(path string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // an unreadable directory has no names
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".toml" || ext == ".json") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Parse is like [Load] for source text. Messages contain path, and relative file names are relative to its directory.
func Parse(path string, src []byte, o LoadOptions) (*Scenario, error) {
	return newLoader(o).loadWithIncludes(path, string(src))
}

type loader struct {
	LoadOptions
	diagnostics diag.List
	lib         *fill.CompiledExpressions
	loaded      []string // cleaned paths of the files included so far
	fileTexts   []string // texts of all files, in the order in which they were read
}

func newLoader(o LoadOptions) *loader {
	return &loader{LoadOptions: o, lib: fill.NewCompiledExpressions()}
}

func (l *loader) readTextFile(path string) (string, error) {
	if l.ReadFile == nil {
		return diag.ReadRegularFileAsText(path)
	}
	src, err := l.ReadFile(path)
	return string(src), err
}

func (l *loader) loadWithIncludes(path, src string) (*Scenario, error) {
	s := l.loadFile(path, src, []string{filepath.Clean(path)})
	l.diagnostics.Sort()
	if err := l.diagnostics.Err(); err != nil {
		return nil, err
	}
	s.library, s.rules, s.texts = l.lib, &lazyRulePatternIndex{}, l.fileTexts
	return s, nil
}

// loadFile reads one file and its includes. stack contains the cleaned paths of the including files and of this file.
func (l *loader) loadFile(path, src string, stack []string) *Scenario {
	s := &Scenario{}
	ix, readable := l.decodeFile(path, src, s)
	l.fileTexts = append(l.fileTexts, ix.Text())
	if !readable {
		return s
	}
	s.source = &fill.ScenarioFile{Index: ix, Dir: filepath.Dir(path), Templates: s.Templates == nil || *s.Templates}
	c := &scenarioCompiler{&fill.FileCompiler{Library: l.lib, Source: s.source, ReadFile: l.ReadFile, Diagnostics: &l.diagnostics}}
	if c.ReadFile == nil {
		c.ReadFile = diag.ReadRegularFile
	}
	c.compileScenario(s)
	for i, name := range s.Include {
		s.Responses = append(s.Responses, l.readIncludeOnce(s.source, i, name, stack)...)
	}
	return s
}

// readIncludeOnce returns the rules of the i-th included file of a scenario. It returns nil if the file was read before.
func (l *loader) readIncludeOnce(from *fill.ScenarioFile, i int, name string, stack []string) []Rule {
	at := diag.Path{"include", i}
	path := diag.JoinUnlessAbsolute(from.Dir, name)
	clean := filepath.Clean(path)
	if slices.Contains(stack, clean) {
		names := make([]string, 0, len(stack)+1)
		for _, p := range append(slices.Clone(stack), clean) {
			names = append(names, filepath.Base(p))
		}
		l.diagnostics = append(l.diagnostics, from.Index.DiagnosticAt(at, "include cycle: "+strings.Join(names, " → ")))
		return nil
	}
	if slices.Contains(l.loaded, clean) {
		return nil
	}
	l.loaded = append(l.loaded, clean)
	src, err := l.readTextFile(path)
	if err != nil {
		l.diagnostics = append(l.diagnostics, from.Index.DiagnosticAt(at, fmt.Sprintf("cannot read the included file %q: %s", name, diag.FileErrorTextWithoutPath(err))))
		return nil
	}
	return l.loadFile(path, src, append(slices.Clone(stack), clean)).Responses
}

// decodeFile decodes one file into s. It returns false if the syntax is invalid.
func (l *loader) decodeFile(path, src string, s *Scenario) (*diag.SourceIndex, bool) {
	ix, tree, problem := parseFile(path, src)
	if problem != nil {
		l.diagnostics = append(l.diagnostics, *problem)
		return ix, false
	}
	ix.ConvertFromOlderFormat(tree, convertRustClaudelessScenario)
	l.diagnostics = append(l.diagnostics, ix.BindFileTo(s)...)
	return ix, true
}

// parseFile parses JSON or TOML. tree is the content of a TOML file that the index cannot parse completely but the TOML decoder can,
// otherwise nil.
func parseFile(path, src string) (ix *diag.SourceIndex, tree map[string]any, problem *diag.Diagnostic) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		ix = diag.IndexJSON(path, []byte(src))
		if problem = ix.FirstPossibleProblem(); problem != nil {
			problem.Message = "invalid JSON: " + problem.Message
		}
		return ix, nil, problem
	}
	ix = diag.IndexTOML(path, src)
	if problem = ix.FirstPossibleProblem(); problem == nil || ix.HasExceededParserLimit() {
		return ix, nil, problem
	}
	if _, err := toml.Decode(src, &tree); err != nil { // the index parses only simple syntax
		return ix, nil, new(syntaxError(ix, *problem, err))
	}
	return ix, tree, nil
}

// syntaxError returns a diagnostic for invalid TOML. firstProblem is the first problem that the index found; err comes
// from the TOML decoder. If firstProblem is about a missing closing character or a second definition, the result is
// firstProblem. Otherwise the result has the decoder's message. The decoder reports some errors one line late: if it
// reports the line of firstProblem or the next line, the result has the position of firstProblem.
func syntaxError(ix *diag.SourceIndex, firstProblem diag.Diagnostic, err error) diag.Diagnostic {
	pe, ok := errors.AsType[toml.ParseError](err)
	if !ok || strings.Contains(firstProblem.Message, "defined") || strings.Contains(firstProblem.Message, "not closed") {
		firstProblem.Message = "invalid TOML: " + firstProblem.Message
		return firstProblem
	}
	message := cmp.Or(pe.Message, pe.Error())
	d := ix.DiagnosticAtLine(pe.Position.Line, pe.Position.Col, "")
	if gap := d.Pos.Line - firstProblem.Pos.Line; gap == 0 || gap == 1 {
		d, d.Hint = firstProblem, firstProblem.Message
	}
	d.Message = "invalid TOML: " + strings.TrimSuffix(message, ".")
	return d
}

//go:embed library/*.toml
var libraryFiles embed.FS

// LibraryNames lists the names of the embedded scenarios, sorted.
func LibraryNames() (embeddedScenarioNames []string) {
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

// LoadLibraryScenario loads an embedded scenario. For an unknown name the error is a [diag.List] with the nearest name.
func LoadLibraryScenario(name string) (*Scenario, error) {
	file := path.Join("library", name+".toml")
	src, err := libraryFiles.ReadFile(file)
	if err != nil {
		names := LibraryNames()
		hint := cmp.Or(diag.DidYouMean(name, append(names, siblingScenarioFiles(name)...)), "library scenarios: "+strings.Join(names, ", "))
		return nil, diag.List{{Pos: diag.Position{File: name}, Message: fmt.Sprintf("no scenario file %q, and no library scenario has this name", name), Hint: hint}}
	}
	return Parse(file, src, LoadOptions{ReadFile: libraryFiles.ReadFile})
}

// Open loads a scenario: a file or, if none exists and the name has no slash, an embedded scenario.
func Open(pathOrLibraryName string) (*Scenario, error) {
	if _, err := os.Stat(pathOrLibraryName); err == nil || strings.ContainsRune(pathOrLibraryName, filepath.Separator) {
		return Load(pathOrLibraryName, LoadOptions{})
	}
	return LoadLibraryScenario(pathOrLibraryName)
}

// Greeting returns the scenario of a run without a scenario. Its answer to every prompt explains how to choose one.
func Greeting() (scenarioOfRunWithoutScenario *Scenario) {
	return &Scenario{Templates: new(false), DefaultResponse: &Response{Text: greetingText}}
}

const greetingText = "Hello! No scenario is loaded, so there is nothing else to say. " +
	"Give one with --scenario FILE, with the variable CLAUDELESS_SCENARIO or as claudeless.toml in the working directory; " +
	"for example, use --scenario quickstart."

// RuleCounter counts the matches of rules with `once` or `max_matches` over a run.
type RuleCounter interface {
	// Next reserves the next match of a rule permanently and returns the number of this match in the run. rule is the
	// name and position of the rule. previousNumber is the number of the rule's matches in the session; the result is greater.
	Next(rule string, previousNumber int) (int, error)
}

// maxAnsweredPrompts returns the maximum number of prompts that a rule answers; negative means no limit.
func (r *Rule) maxAnsweredPrompts() (limitOrNegative int) {
	switch {
	case r.Once:
		return 1
	case r.MaxMatches != nil:
		return *r.MaxMatches
	}
	return -1
}

// maxNotificationsInRowAnsweredWithToolCalls is how many prompts of the CLI in a row a rule may answer with tool calls. It does not apply
// to a rule that has a limit of its matches.
const maxNotificationsInRowAnsweredWithToolCalls = 20

// convertRustClaudelessScenario converts a file in the format of claudeless-rs 0.4, which has rules with `on`, `say`, `tools` and
// `then`, and the tables `claude`, `default` and `tools`. As in claudeless-rs, templates are disabled, and tools run
// even if init does not list them. Values keep their positions. A file in another format is returned unchanged.
func convertRustClaudelessScenario(scenarioFile diag.Value) (currentForm diag.Value) {
	if !hasRustClaudelessFormat(scenarioFile) {
		return scenarioFile
	}
	hidden := scenarioFile.NewTableAtPosition(diag.TableEntry{Key: "hidden_tools", Value: scenarioFile.NewScalarAtPosition(diag.KindBool, "true")})
	fields := []diag.TableEntry{{Key: "templates", Value: scenarioFile.NewScalarAtPosition(diag.KindBool, "false")}, {Key: "compat", Value: hidden}}
	for _, f := range scenarioFile.Fields() {
		switch f.Key {
		case "claude":
			fields = append(fields, renameKeys(f.Value, map[string]string{"model": "default_model", "version": "claude_version", "username": "user_name"}).Fields()...)
			continue
		case "default":
			f.Key, f.Value = "default_response", convertRustClaudelessResponse(f.Value)
		case "responses":
			f.Value = convertArrayItems(f.Value, func(rule diag.Value) diag.Value { return convertRustClaudelessRule(rule, "pattern") })
		case "tools":
			f.Key, f.Value = "tool_execution", convertRustToolsTable(f.Value)
		}
		fields = append(fields, f)
	}
	return scenarioFile.NewTableAtPosition(fields...)
}

// hasRustClaudelessFormat reports whether a file is in the Rust format: a rule has `on`, or the file has only keys of
// this format. A file that has only the key `responses` is not in the Rust format, because both formats have this key.
func hasRustClaudelessFormat(scenarioFile diag.Value) bool {
	only, own := true, false
	for _, f := range scenarioFile.Fields() {
		only, own = only && slices.Contains([]string{"claude", "default", "responses", "tools"}, f.Key), own || f.Key != "responses"
		if f.Key == "responses" && slices.ContainsFunc(f.Value.Items(), func(rule diag.Value) bool { _, ok := rule.Field("on"); return ok }) {
			return true
		}
	}
	return only && own
}

// convertRustClaudelessRule converts a rule or a turn. pattern is the key that replaces `on`.
func convertRustClaudelessRule(rule diag.Value, pattern string) diag.Value {
	var fields, response []diag.TableEntry
	for _, f := range rule.Fields() {
		switch f.Key {
		case "say", "tools", "usage", "delay_ms":
			response = append(response, f)
			continue
		case "on":
			f.Key, f.Value = pattern, convertRustClaudelessPattern(f.Value)
		case "max":
			f.Key = "max_matches"
		case "then":
			f.Key, f.Value = "turns", convertArrayItems(f.Value, func(turn diag.Value) diag.Value { return convertRustClaudelessRule(turn, "expect") })
		}
		fields = append(fields, f)
	}
	if response != nil {
		f := response[0] // the new table has the position of the first key
		f.Key, f.Value = "response", convertRustClaudelessResponse(rule.NewTableAtPosition(response...))
		fields = append(fields, f)
	}
	return rule.NewTableAtPosition(fields...)
}

func convertRustClaudelessResponse(response diag.Value) (currentForm diag.Value) {
	fields := slices.Clone(renameKeys(response, map[string]string{"say": "text", "tools": "tool_calls"}).Fields())
	for i, f := range fields {
		if f.Key == "tool_calls" {
			fields[i].Value = convertArrayItems(f.Value, func(call diag.Value) diag.Value { return renameKeys(call, map[string]string{"call": "tool"}) })
		}
	}
	return response.NewTableAtPosition(fields...)
}

// convertRustClaudelessPattern converts a glob, { contains = … } or { regexp = … }. Other values are returned unchanged.
func convertRustClaudelessPattern(rustPattern diag.Value) (currentForm diag.Value) {
	kind, key, text := "glob", "pattern", rustPattern
	if fields := rustPattern.Fields(); len(fields) == 1 && fields[0].Key == "contains" {
		kind, key, text = "contains", "text", fields[0].Value
	} else if len(fields) == 1 && fields[0].Key == "regexp" {
		kind, text = "regex", fields[0].Value
	} else if rustPattern.Kind != diag.KindString {
		return rustPattern
	}
	return rustPattern.NewTableAtPosition(diag.TableEntry{Key: "type", Value: rustPattern.NewScalarAtPosition(diag.KindString, kind)}, diag.TableEntry{Key: key, Value: text})
}

func convertRustToolsTable(rustTools diag.Value) (toolExecutionTable diag.Value) {
	var fields, tools []diag.TableEntry
	for _, f := range rustTools.Fields() {
		if f.Key == "mode" {
			fields = append(fields, f)
			continue
		}
		f.Value = renameKeys(f.Value, map[string]string{"approve": "auto_approve"})
		tools = append(tools, f)
	}
	return rustTools.NewTableAtPosition(append(fields, diag.TableEntry{Key: "tools", Value: rustTools.NewTableAtPosition(tools...)})...)
}

func renameKeys(table diag.Value, names map[string]string) diag.Value {
	if table.Kind != diag.KindTable {
		return table
	}
	fields := slices.Clone(table.Fields())
	for i, f := range fields {
		if name := names[f.Key]; name != "" {
			fields[i].Key = name
		}
	}
	return table.NewTableAtPosition(fields...)
}

func convertArrayItems(arrayOrOtherValue diag.Value, convertItem func(diag.Value) diag.Value) diag.Value {
	if arrayOrOtherValue.Kind != diag.KindArray {
		return arrayOrOtherValue
	}
	items := slices.Clone(arrayOrOtherValue.Items())
	for i, item := range items {
		items[i] = convertItem(item)
	}
	return arrayOrOtherValue.NewArrayAtPosition(items)
}
