package fill

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// files are the files that values can refer to.
var files = map[string]string{ // constant: only read
	"/dir/a.json": `{"n": 1.50, "list": [1]}`, "/dir/a.txt": "text {{ 1 }}\n", "/dir/broken.json": `{"n":`, "/dir/twice.JSON": `{"n":1,"n":2}`, "/dir/latin.txt": "caf\xe9", "/abs.txt": "absolute",
}

func readFile(path string) ([]byte, error) {
	if text, ok := files[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// newChecker returns a checker for the value at "v" of a scenario file with this value.
func newChecker(raw, groups string, templates bool) *FileCompiler {
	source := &ScenarioFile{Index: diag.IndexJSON("s.json", []byte(`{"v": `+raw+`}`)), Dir: "/dir", Templates: templates}
	return &FileCompiler{Library: NewCompiledExpressions(), Source: source, ReadFile: readFile, Diagnostics: &diag.List{}, Path: diag.Path{"v"}, Groups: groups}
}

// problems returns the diagnostics of a checker as text.
func problems(c *FileCompiler) []string {
	var out []string
	for _, d := range *c.Diagnostics {
		text := d.String()
		if d.Hint != "" {
			text += " (hint: " + d.Hint + ")"
		}
		out = append(out, text)
	}
	return out
}

// newScope returns a scope with a prompt, two captures and one result.
func newScope(c *FileCompiler) *Scope {
	return &Scope{
		Library: c.Library, Source: c.Source, Groups: c.Groups, Vars: map[string]any{"prompt": "hello", "turn": 2},
		Match: map[any]any{0: "hello", "name": "Ann"}, Results: []ToolCallResult{{Text: "out", Tool: "Bash"}},
	}
}

func TestRenderJSON(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		templates bool
		want      string
	}{
		{"no template", `{"a": [1, "x"]}`, true, `{"a": [1, "x"]}`},
		{"templates are off", `{"a": "{{ turn }}"}`, false, `{"a": "{{ turn }}"}`},
		{"text", `"{{ prompt }}, {{ match.name }}"`, true, `"hello, Ann"`},
		{"a value keeps its type", `{"n": "{{ turn }}", "b": "{{ turn > 1 }}"}`, true, `{"n":2,"b":true}`},
		{"list", `["{{ turn }}", [], {}, null, 1.50, true, "x"]`, true, `[2,[],{},null,1.50,true,"x"]`},
		{"results", `{"{{ prompt }}": "{{ results[0].text }}"}`, true, `{"{{ prompt }}":"out"}`},
		{"JSON file", `{"a": {"$file": "a.json"}}`, false, `{"a":{"n": 1.50, "list": [1]}}`},
		{"text file", `[{"$file": "a.txt"}, {"$file": "/abs.txt"}]`, false, `["text {{ 1 }}\n","absolute"]`},
		{"$file that is no text", `{"$file": 5}`, false, `{"$file":5}`},
	} {
		c := newChecker(tt.raw, "name", tt.templates)
		c.CompileJSONValue(json.RawMessage(tt.raw))
		if got := problems(c); got != nil {
			t.Errorf("%s: %q", tt.name, got)
			continue
		}
		got, err := newScope(c).RenderJSON(t.Context(), json.RawMessage(tt.raw))
		if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
	}
}

// A problem is reported at its place in the file.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      []string
	}{
		{"syntax", `{"a": "x {{ ( }}"}`, []string{"s.json:1:20: in the template: unexpected token EOF"}},
		{"unknown name", `["", "{{ promt }}"]`, []string{"s.json:1:16: in the template: unknown name promt (hint: did you mean `prompt`?)"}},
		{"unknown capture", `"{{ match.nam }}"`, []string{"s.json:1:17: in the template: `match` has no `nam` (hint: did you mean `name`?)"}},
		{"missing file", `{"a": {"$file": "none.json"}}`, []string{`s.json:1:14: failed to resolve file reference "none.json": file does not exist`}},
		{"broken file", `{"$file": "broken.json"}`, []string{`s.json:1:8: the file "broken.json" is not valid JSON`}},
		{"repeated key", `{"$file": "twice.JSON"}`, []string{`s.json:1:8: the file "twice.JSON" is not valid JSON`}},
		{"other keys", `{"$file": "a.json", "b": 1}`, []string{"s.json:1:8: a table with `$file` cannot have other keys"}},
	} {
		c := newChecker(tt.raw, "name", true)
		c.CompileJSONValue(json.RawMessage(tt.raw))
		if diff := cmp.Diff(tt.want, problems(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(diag.Path{"v"}, c.Path); diff != "" {
			t.Errorf("%s: path afterwards:\n%s", tt.name, diff)
		}
	}
}

func TestRenderText(t *testing.T) {
	for _, tt := range []struct {
		src       string
		templates bool
		want      string
		problem   string // part of the error
	}{
		{"plain", true, "plain", ""},
		{"{{ prompt }}", false, "{{ prompt }}", ""},
		{"{{ prompt }} {{ turn }}", true, "hello 2", ""},
		{"{{ match[0] }}{{ results[0].tool }}", true, "helloBash", ""},
		{"{{ results[7].text }}", true, "", `template "{{ results[7].text }}": `},
		{strings.Repeat("é", 300) + "{{ results[7].text }}", true, "", `template "` + strings.Repeat("é", 200) + `…": `},
	} {
		c := newChecker(`""`, "name", tt.templates)
		c.CompileTemplate(tt.src)
		if got := problems(c); got != nil {
			t.Errorf("%s: %q", tt.src, got)
		}
		got, err := newScope(c).RenderText(t.Context(), tt.src)
		if got != tt.want || (err != nil) != (tt.problem != "") || err != nil && !strings.HasPrefix(err.Error(), tt.problem) {
			t.Errorf("%s: %q, %v, want %q, %q", tt.src, got, err, tt.want, tt.problem)
		}
	}
	c := newChecker(`""`, "", true)
	for _, f := range []func(context.Context, string) error{
		func(ctx context.Context, src string) error { _, err := newScope(c).RenderText(ctx, src); return err },
		func(ctx context.Context, src string) error {
			_, err := newScope(c).EvaluateCondition(ctx, src)
			return err
		},
		func(ctx context.Context, src string) error {
			_, err := newScope(c).RenderJSON(ctx, json.RawMessage(`["`+src+`"]`))
			return err
		},
		func(ctx context.Context, src string) error {
			_, err := newScope(c).RenderJSON(ctx, json.RawMessage(`{"a":"`+src+`"}`))
			return err
		},
	} {
		if err := f(t.Context(), "{{ turn }}"); err == nil || !strings.Contains(err.Error(), `"{{ turn }}" was not compiled`) {
			t.Errorf("an expression that was not compiled: %v", err)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		src, groups string
		want        bool
		problem     string
	}{
		{"", "", true, ""},
		{"turn == 2", "", true, ""},
		{"turn == 3", "", false, ""},
		{`match.name == "Ann" && results[0].tool == "Bash"`, "name", true, ""},
		{"results[7].is_error", "", false, `condition "results[7].is_error": `},
	} {
		c := newChecker(`""`, tt.groups, false)
		for range 2 { // the second time it is known
			c.CompileCondition(tt.src)
		}
		if got := problems(c); got != nil {
			t.Errorf("%s: %q", tt.src, got)
		}
		got, err := newScope(c).EvaluateCondition(t.Context(), tt.src)
		if got != tt.want || (err != nil) != (tt.problem != "") || err != nil && !strings.HasPrefix(err.Error(), tt.problem) {
			t.Errorf("%s: %v, %v, want %v, %q", tt.src, got, err, tt.want, tt.problem)
		}
	}
	for src, want := range map[string]string{"turn": "in the condition: ", "promt == ''": "in the condition: unknown name promt", "(": "in the condition: "} {
		c := newChecker(`{"when": "x"}`, "", false)
		c.CompileCondition(src)
		if got := problems(c); len(got) != 1 || !strings.HasPrefix(got[0], "s.json:1:") || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
		if _, err := newScope(c).EvaluateCondition(t.Context(), src); err == nil {
			t.Errorf("%s: a condition with a problem is evaluated", src)
		}
	}
}

// The library knows which variables expressions use, so that others need not be computed.
func TestUsedVariables(t *testing.T) {
	c := newChecker(`""`, "", true)
	c.CompileTemplate("{{ cwd }}")
	c.CompileCondition("attempt > 1")
	c.CompileTemplate("{{ (results }}") // has a problem
	for name, want := range map[string]bool{"cwd": true, "attempt": true, "results": false, "headers": false, "prompt": false} {
		if got := c.Library.UsesPerRequestVariable(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	names := strings.Join(PerRequestVariables(), " ")
	if !strings.HasPrefix(names, strings.Join(RequestPropertyVariables(), " ")) || !strings.Contains(names, " cwd") || strings.Contains(names, "prompt") {
		t.Errorf("variables of a request: %s", names)
	}
	for _, name := range append(PerRequestVariables(), "prompt", "match", "turn", "results", "system_prompt", "env", "args") {
		c := newChecker(`""`, "", true)
		if c.CompileTemplate("{{ " + name + " }}"); problems(c) != nil {
			t.Errorf("%s: %q", name, problems(c))
		}
	}
}

// Expressions of breakpoints have variables of their own.
func TestBreakpointExpressions(t *testing.T) {
	for src, valid := range map[string]bool{"tool == 'Bash'": true, "turn == 1": false} {
		for range 2 {
			c := newChecker(`""`, GroupsMarkerOfBreakpointExpressions, false)
			if c.CompileCondition(src); (problems(c) == nil) != valid {
				t.Errorf("%s: %q", src, problems(c))
			}
		}
	}
}

func TestTextFiles(t *testing.T) {
	for name, want := range map[string]string{"a.txt": "text {{ 1 }}\n", "/abs.txt": "absolute"} {
		c := newChecker(`""`, "", true)
		if c.LoadTextFile(name); problems(c) != nil || newScope(c).LoadedTextFile(name) != want {
			t.Errorf("%s: %q, %q", name, newScope(c).LoadedTextFile(name), problems(c))
		}
	}
	for name, want := range map[string]string{
		"none.txt":  `s.json:1:2: failed to resolve file reference "none.txt": file does not exist`,
		"latin.txt": `s.json:1:2: the file "latin.txt" is not UTF-8 text`,
	} {
		c := newChecker(`""`, "", true)
		c.LoadTextFile(name)
		if diff := cmp.Diff([]string{want}, problems(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A JSON file is read once.
func TestFileIsReadOnce(t *testing.T) {
	c := newChecker(`""`, "", false)
	reads := 0
	c.ReadFile = func(path string) ([]byte, error) { reads++; return readFile(path) }
	for range 2 {
		c.CompileJSONValue(json.RawMessage(`{"$file": "a.json"}`))
	}
	if reads != 1 {
		t.Errorf("read %d times", reads)
	}
	c.ReadFile = func(string) ([]byte, error) { return nil, errors.New("no such thing") }
	c.CompileJSONValue(json.RawMessage(`{"$file": "b.json"}`))
	if got := problems(c); len(got) != 1 || !strings.HasSuffix(got[0], "no such thing") {
		t.Errorf("problems %q", got)
	}
}

func TestGroups(t *testing.T) {
	s := newScope(newChecker(`""`, "", false))
	s.InheritGroups(map[string]string{"name": "Bob", "file": "a.go"})
	if diff := cmp.Diff(map[string]string{"name": "Ann", "file": "a.go"}, s.NamedGroups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// A copy has its own variables and results, and shares the captures.
func TestFork(t *testing.T) {
	s := newScope(newChecker(`""`, "", false))
	s.Results = append(make([]ToolCallResult, 0, 4), s.Results...)
	n := s.Fork()
	n.Vars["turn"] = 9
	n.Results = append(n.Results, ToolCallResult{Text: "another"})
	s.Results = append(s.Results, ToolCallResult{Text: "more"})
	if s.Vars["turn"] != 2 || n.Results[1].Text != "another" || len(s.Results) != 2 {
		t.Errorf("original %+v, copy %+v", s, n)
	}
}

func TestDiagnosticAtValue(t *testing.T) {
	source := &ScenarioFile{Index: diag.IndexJSON("s.json", []byte(`{"reply": "short", "other": {"text": "long"}}`))}
	for path, want := range map[string]string{"reply": "s.json:1:14", "other": "s.json:1:41"} {
		if got := source.DiagnosticAtValue(diag.Path{path, "text"}, 2, "bad").String(); got != want+": bad" {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := (*ScenarioFile)(nil).DiagnosticAtValue(diag.Path{"x"}, 0, "bad").Message; got != "bad" {
		t.Errorf("without a file: %s", got)
	}
}
