package filecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/fixtures"
	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
)

// CheckOptions configure a check. The zero value is ready to use.
type CheckOptions struct {
	Dir     string   // working directory, absolute; "" means relative paths stay relative
	Environ []string // environment for variables in MCP configurations
	Target  string   // "api" also reports the scenario keys that claudeless serve ignores
	Strict  bool     // warnings count as errors
	Explain []string // a list of prompts of one session; for each prompt, the report says which rule answers it, or why no rule does
}

// CheckReport is the result for some files. Diagnostics are never null in JSON.
type CheckReport struct {
	OK    bool         `json:"ok"`
	Files []FileReport `json:"files"`
}

// FileReport lists the problems that a check found in one file.
type FileReport struct {
	File        string    `json:"file"`
	Kind        string    `json:"kind"` // scenario, fixture or mcp
	OK          bool      `json:"ok"`   // no errors (with Strict, no warnings either), and each Explain prompt has an answer
	Diagnostics diag.List `json:"diagnostics"`
	Explained   []string  `json:"explained,omitempty"` // lines about the prompts of CheckOptions.Explain
}

// CheckFiles checks scenarios, fixtures and MCP configurations.
func CheckFiles(ctx context.Context, names []string, o CheckOptions) CheckReport {
	r := CheckReport{OK: true}
	for _, name := range names {
		f := o.checkFile(ctx, name)
		r.OK = r.OK && f.OK
		r.Files = append(r.Files, f)
	}
	return r
}

func (o CheckOptions) checkFile(ctx context.Context, name string) FileReport {
	file := FileReport{File: name, Kind: "scenario", Diagnostics: diag.List{}}
	answered := true
	src, err := diag.ReadRegularFile(name)
	if err == nil {
		index := indexFile(name, src)
		file.Kind = fileKind(index.Keys(nil))
		switch file.Kind {
		case "mcp":
			file.Diagnostics = append(file.Diagnostics, o.checkMCPConfig(name, index)...)
		case "fixture":
			var fixture *fixtures.Fixture
			if fixture, err = fixtures.Load(name); err == nil {
				file.Diagnostics = append(file.Diagnostics, fixture.Warnings...)
			}
		default:
			var scenario *scenarios.Scenario
			if scenario, err = scenarios.Load(name, scenarios.LoadOptions{}); err == nil {
				file.Diagnostics = append(file.Diagnostics, scenarios.Lint(scenario, scenarios.LintOptions{
					Tools: builtin.Definitions(), Placeholder: verdict.AnswerPlaceholder, Server: func(server string, entry map[string]any) []string { return o.serverProblems(name, server, entry) },
				})...)
				if len(scenario.Responses) == 0 && scenario.DefaultResponse == nil {
					file.Diagnostics = append(file.Diagnostics, diag.Diagnostic{
						Pos: diag.Position{File: name}, Warning: true, Message: "the scenario answers no prompt: it has neither [[responses]] nor a default_response",
					})
				}
				if o.Target == "api" {
					file.Diagnostics = append(file.Diagnostics, scenario.UnsupportedByAPI()...)
				}
				answered = o.explainAnswersToPrompts(ctx, scenario, &file)
			}
		}
	}
	file.Diagnostics = append(file.Diagnostics, diagnosticsOf(name, err)...)
	file.OK = answered && file.Diagnostics.Err() == nil && (!o.Strict || len(file.Diagnostics) == 0)
	return file
}

// explainAnswersToPrompts answers the prompts one after another, without running tools. It reports whether each has an answer.
func (o CheckOptions) explainAnswersToPrompts(ctx context.Context, s *scenarios.Scenario, report *FileReport) (areAllAnswered bool) {
	answered := true
	e := scenarios.NewEngine(s, scenarios.EngineOptions{Env: o.Environ, CWD: o.Dir})
	for _, prompt := range o.Explain {
		reply, err := e.Next(ctx, scenarios.Request{Prompt: prompt})
		switch {
		case err != nil:
			answered = false
			report.Explained = append(report.Explained, err.Error())
		case reply.Rule.Name == "":
			answered = false
			report.Explained = append(report.Explained, e.ExplainMissesOfAllRules(scenarios.Request{Prompt: prompt})...)
			report.Explained = append(report.Explained, "add this rule:", verdict.TOMLRuleWithPlaceholderAnswer(prompt))
		default:
			report.Explained = append(report.Explained, fmt.Sprintf("%s answers the prompt %q", reply.Rule, prompt))
		}
	}
	return answered
}

func diagnosticsOf(name string, err error) diag.List {
	if err == nil {
		return nil
	}
	if list, ok := errors.AsType[diag.List](err); ok {
		return list
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Path == name {
		err = path.Err
	}
	return diag.List{{Pos: diag.Position{File: name}, Message: err.Error()}}
}

func (o CheckOptions) serverProblems(scenario, server string, entry map[string]any) []string {
	fixture, served := entry["fixture"].(string)
	_, command := entry["command"]
	_, url := entry["url"]
	switch {
	case served && (command || url):
		return []string{"the server has a `fixture` and a `command` or `url`: the fixture is served, the other is not used"}
	case command && url:
		return []string{"the server has a `command` and a `url`"}
	case served:
		return fixtureProblems(scenario, fixture)
	}
	value, err := json.Marshal(map[string]any{"mcpServers": map[string]any{server: entry}})
	if err != nil {
		return nil
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{string(value)}, CWD: filepath.Dir(scenario), Environ: o.Environ})
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	for _, bad := range config.Errors {
		wrong = append(wrong, bad.Message)
	}
	return wrong
}

func fixtureProblems(scenario, name string) []string {
	if filepath.Base(name) != name || filepath.Ext(name) != "" {
		name = diag.JoinUnlessAbsolute(filepath.Dir(scenario), name)
	}
	if _, err := fixtures.Open(name); err != nil {
		return []string{"the fixture cannot be served: " + err.Error()}
	}
	return nil
}

func indexFile(name string, src []byte) *diag.SourceIndex {
	if strings.EqualFold(filepath.Ext(name), ".json") {
		return diag.IndexJSON(name, src)
	}
	return diag.IndexTOML(name, src)
}

// fileKind detects the kind of a file from its top-level keys. An ambiguous file is a scenario.
func fileKind(keys []string) string {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(keys, name) })
	}
	switch {
	case has("mcpServers"):
		return "mcp"
	case has("responses", "default_response", "tool_execution", "breakpoints", "expect", "claude", "default"):
		return "scenario"
	case has("tools", "resources", "resource_templates", "prompts", "completions", "instructions", "envelope", "meta_dir", "backend", "faults"):
		return "fixture"
	case has("servers"):
		return "mcp"
	default:
		return "scenario"
	}
}

func (o CheckOptions) checkMCPConfig(name string, index *diag.SourceIndex) diag.List {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	config, err := mcp.LoadConfigs(mcp.ConfigOptions{Values: []string{path}, CWD: filepath.Dir(path), Environ: o.Environ})
	if broken, ok := errors.AsType[*mcp.ConfigFlagError](err); ok {
		return jsonErrorOrDetails(name, index, broken.Details)
	}
	list := diagnosticsOf(name, err)
	for _, entry := range config.Errors {
		list = append(list, index.DiagnosticAt(serverEntryKeyPathOrParent(index, entry.Name), entry.Message))
	}
	if doubt := index.FirstPossibleProblem(); doubt != nil && err == nil { // a key is defined twice: the last definition is used
		doubt.Warning = true
		list = append(list, *doubt)
	}
	for _, unknown := range config.UnknownKeys {
		d := index.DiagnosticAt(append(serverEntryKeyPathOrParent(index, unknown.Server), unknown.Key), "unknown key `"+unknown.Key+"`")
		d.Hint, d.Warning = diag.DidYouMean(unknown.Key, unknown.Known), true
		list = append(list, d)
	}
	for _, text := range config.Warnings {
		list = append(list, diag.Diagnostic{Pos: diag.Position{File: name}, Message: text, Warning: true})
	}
	return list
}

// jsonErrorOrDetails returns the JSON error in a file, with its position. If the JSON is valid, it returns the details instead.
func jsonErrorOrDetails(name string, index *diag.SourceIndex, details []string) diag.List {
	if doubt := index.FirstPossibleProblem(); doubt != nil {
		return diag.List{*doubt}
	}
	var list diag.List
	for _, text := range details {
		list = append(list, diag.Diagnostic{Pos: diag.Position{File: name}, Message: text})
	}
	return list
}

func serverEntryKeyPathOrParent(index *diag.SourceIndex, serverName string) diag.Path {
	path := diag.Path{"mcpServers", serverName}
	if _, ok := index.Lookup(path); ok {
		return path
	}
	return path[:1]
}
