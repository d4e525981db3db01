package scenarios

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/diag"
)

var update = flag.Bool("update", false, "rewrite the expected diagnostics in testdata")

// TestDiagnostics loads the scenarios in testdata/*.txtar. The first file of an archive is the
// scenario. The file "want" contains the diagnostics of Load as [diag.Render] prints them; -update
// rewrites it. The scenario refers to the other files.
func TestDiagnostics(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no archives", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			read := func(name string) ([]byte, error) {
				for _, f := range a.Files {
					if f.Name == filepath.ToSlash(name) && f.Name != "want" {
						return f.Data, nil
					}
				}
				return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("no such file or directory")}
			}
			_, err = Load(a.Files[0].Name, LoadOptions{ReadFile: read})
			var got bytes.Buffer
			if list, ok := errors.AsType[diag.List](err); ok {
				diag.Render(&got, list)
			}
			shown := strings.ReplaceAll(got.String(), "dir"+string(filepath.Separator), "dir/")
			shown = strings.ReplaceAll(shown, "sub"+string(filepath.Separator), "sub/")
			for i, f := range a.Files {
				if f.Name != "want" {
					continue
				}
				if *update {
					a.Files[i].Data = got.Bytes()
					writeFile(t, path, txtar.Format(a))
				} else if diff := cmp.Diff(string(f.Data), shown); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Every top-level key of the older format can be loaded (scenario-compat 1.2 to 1.7).
func TestOlderFormat(t *testing.T) {
	s := parse(t, `
name = "old"
default_response = "Hi"
default_model = "claude-x"
claude_version = "2.1.12"
user_name = "Alfred"
session_id = "A0000000000040008000000000000001"
placeholder = "Try"
provider = "Claude Max"
show_welcome_back = true
welcome_back_right_panel = ["---", "", "x"]
project_path = "/p"
working_directory = "/w"
trusted = false
logged_in = false
permission_mode = "accept-edits"
launch_timestamp = "2026-01-15T10:30:00+02:00"
[timeouts]
exit_hint_ms = 1
compact_delay_ms = 2
hook_timeout_ms = 3
mcp_timeout_ms = 4
response_delay_ms = 0
[tool_execution]
mode = "mock"
[tool_execution.tools.Bash]
auto_approve = true
result = "r"
[tool_execution.tools.AskUserQuestion]
answers = { "Q?" = "A" }
[tool_execution.tools.Write]
error = "no"
`)
	n := func(i int) *int { return &i }
	no, r, e := false, "r", "no"
	want := &Scenario{
		Name: "old", DefaultResponse: &Response{Text: "Hi"}, DefaultModel: "claude-x", ClaudeVersion: "2.1.12", UserName: "Alfred",
		SessionID: "a0000000-0000-4000-8000-000000000001", Placeholder: "Try", Provider: "Claude Max", ShowWelcomeBack: true,
		WelcomeBackRightPanel: []string{"---", "", "x"}, ProjectPath: "/p", WorkingDirectory: "/w", Trusted: &no, LoggedIn: &no,
		PermissionMode: "acceptEdits", LaunchTimestamp: "2026-01-15T10:30:00+02:00",
		Timeouts: Timeouts{ExitHintMS: n(1), CompactDelayMS: n(2), HookTimeoutMS: n(3), MCPTimeoutMS: n(4), ResponseDelayMS: n(0)},
		ToolExecution: &ToolExecution{Mode: "mock", Tools: map[string]ToolConfig{
			"Bash": {AutoApprove: true, Result: &r}, "AskUserQuestion": {Answers: map[string]string{"Q?": "A"}}, "Write": {Error: &e},
		}},
		compiledScenario: s.compiledScenario,
	}
	if diff := cmp.Diff(want, s, cmp.Exporter(func(reflect.Type) bool { return true }), cmp.Comparer(func(a, b compiledScenario) bool { return true })); diff != "" {
		t.Error(diff)
	}
}

// TestNewKeys loads the keys of section 2 of the scenario format.
func TestNewKeys(t *testing.T) {
	s := parse(t, `
description = "d"
seed = 7
templates = true
unmatched = "error"
[stream]
ttft_ms = 10
tokens_per_second = 50
jitter = 0.1
chunk = "token"
[mcp.servers.zeta]
command = "z"
args = ["a"]
[mcp.servers.alpha]
fixture = "../fixtures/weather.toml"
[mcp.elicitation]
action = "accept"
content = { name = "n" }
[[responses]]
pattern = { type = "any" }
[[responses.response.steps]]
tool_calls = [{ tool = "Agent", id = "toolu_1", input = {}, subagent = { type = "Explore", background = true, steps = [{ text = "sub" }] } }]
`)
	if s.Seed == nil || *s.Seed != 7 || s.Description != "d" || s.Unmatched != "error" {
		t.Error(s)
	}
	if diff := cmp.Diff(Stream{TTFTMS: 10, TokensPerSecond: 50, Jitter: 0.1, Chunk: Chunk{Unit: "token"}}, s.Stream); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"zeta", "alpha"}, s.MCP.ServerNames()); diff != "" {
		t.Error(diff)
	}
	servers := map[string]map[string]any{"zeta": {"command": "z", "args": []any{"a"}}, "alpha": {"fixture": "../fixtures/weather.toml"}}
	if diff := cmp.Diff(servers, s.MCP.Servers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Elicitation{Action: "accept", Content: map[string]any{"name": "n"}}, s.MCP.Elicitation); diff != "" {
		t.Error(diff)
	}
	sub := s.Responses[0].Response.Steps[0].ToolCalls[0].Subagent
	if sub == nil || sub.Type != "Explore" || sub.Background == nil || !*sub.Background || sub.Steps[0].Text != "sub" {
		t.Error(sub)
	}
}

// A file with the extension .json is read as JSON with the same schema.
func TestJSONScenario(t *testing.T) {
	src := `{"default_response": {"text": "d"}, "responses": [{"pattern": {"type": "exact", "text": "x"},
  "response": {"steps": [{"text": "s {{ prompt }}", "usage": {"input_tokens": 1, "output_tokens": 2}}]}, "max_matches": 1}]}`
	s, err := Parse("a.JSON", []byte(src), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"responses[0]: text s x", "default_response: text d"}, converse(t, NewEngine(s, EngineOptions{}), "x", "x")); diff != "" {
		t.Error(diff)
	}
	if _, err := Parse("a.json5", []byte(src), LoadOptions{}); err == nil {
		t.Error("another extension is not TOML")
	}
}

// Rules of included files come after the rules of the file itself. Each file is included once.
func TestInclude(t *testing.T) {
	files := map[string]string{
		"dir/main.toml":       "include = [\"common/a.toml\", \"b.json\"]\n" + ruleTOML(`any`, `"own"`, `max_matches = 1`),
		"dir/common/a.toml":   "include = [\"../b.json\"]\nname = \"a\"\n" + ruleWithCaptures(`{ type = "exact", text = "a" }`, `{ text = "A", tool_calls = [{ tool = "T", input = { "$file" = "f.txt" } }] }`),
		"dir/b.json":          `{"templates": false, "responses": [{"pattern": {"type": "any"}, "response": "{{ b }}"}]}`,
		"dir/common/f.txt":    "content",
		"dir/common/none.txt": "",
	}
	s, err := Load("dir/main.toml", LoadOptions{ReadFile: func(p string) ([]byte, error) {
		if text, ok := files[filepath.ToSlash(p)]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := NewEngine(s, EngineOptions{})
	want := []string{"responses[0]: text own", `responses[1]: call T "content" | more`, "responses[2]: text {{ b }}"}
	if diff := cmp.Diff(want, converse(t, e, "a", "a", "z")); diff != "" {
		t.Error(diff)
	}
	if ref := e.ruleRef(1, -1); ref.File != filepath.Join("dir", "common", "a.toml") || ref.Line != 3 {
		t.Error(ref)
	}
}

// Every failure type loads with its keys, and only with them.
func TestFailures(t *testing.T) {
	for src, want := range map[string]Failure{
		`{ type = "network_unreachable" }`:                                                 {Type: FailNetworkUnreachable},
		`{ type = "connection_timeout", after_ms = 0 }`:                                    {Type: FailConnectionTimeout},
		`{ type = "auth_error", message = "m" }`:                                           {Type: FailAuthError, Message: "m"},
		`{ type = "rate_limit", retry_after = 3 }`:                                         {Type: FailRateLimit, RetryAfter: 3},
		`{ type = "out_of_credits" }`:                                                      {Type: FailOutOfCredits},
		`{ type = "partial_response", partial_text = "p" }`:                                {Type: FailPartialResponse, PartialText: "p"},
		`{ type = "malformed_json", raw = "{" }`:                                           {Type: FailMalformedJSON, Raw: "{"},
		`{ type = "overloaded" }`:                                                          {Type: FailOverloaded},
		`{ type = "server_error" }`:                                                        {Type: FailServerError, Status: 500},
		`{ type = "server_error", status = 503 }`:                                          {Type: FailServerError, Status: 503},
		`{ type = "api_error", status = 418, error_type = "t", message = "m", times = 2 }`: {Type: FailAPIError, Status: 418, ErrorType: "t", Message: "m", Times: 2},
		`{ type = "prompt_too_long" }`:                                                     {Type: FailPromptTooLong},
		`{ type = "hang" }`:                                                                {Type: FailHang},
		`{ type = "crash" }`:                                                               {Type: FailCrash, ExitCode: 1},
		`{ type = "crash", exit_code = 0 }`:                                                {Type: FailCrash},
		`{ type = "crash", signal = "SIGKILL" }`:                                           {Type: FailCrash, Signal: "SIGKILL"},
	} {
		s := parse(t, "[[responses]]\npattern = { type = \"any\" }\nfailure = "+src)
		if diff := cmp.Diff(want, *s.Responses[0].Failure); diff != "" {
			t.Error(src, diff)
		}
		if _, err := Parse("s.toml", []byte("[[responses]]\npattern = { type = \"any\" }\nfailure = "+strings.Replace(src, " }", ", bogus = 1 }", 1)), LoadOptions{}); err == nil {
			t.Errorf("%s: an unknown key passes", src)
		}
	}
}

// FuzzLoad checks that loading never panics and that a loaded scenario answers. It also checks that
// the index agrees with the TOML decoder on files that the index can parse completely.
func FuzzLoad(f *testing.F) {
	for _, name := range LibraryNames() {
		src, err := libraryFiles.ReadFile("library/" + name + ".toml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, false)
	}
	for _, s := range tomlSeeds {
		f.Add([]byte(s), false)
	}
	f.Add([]byte(`{"responses":[{"pattern":{"type":"not","pattern":{"type":"any"}},"response":{"text":"x","tool_calls":[{"tool":"A","input":[1,{"a":"{{ prompt }}"}]}]}}]}`), true)
	f.Add([]byte(`{"breakpoints":[{"tool":"s/*","phase":"after","when":"error != nil","action":"modify","result":[1,{"a":"{{ result }}"}]},{"tool":"[","action":"skip"}]}`), true)
	f.Fuzz(func(t *testing.T, src []byte, isJSON bool) {
		o := LoadOptions{ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
		name := "f.toml"
		if isJSON {
			name = "f.json"
		}
		s, err := Parse(name, src, o)
		if list, ok := errors.AsType[diag.List](err); ok {
			diag.Render(&bytes.Buffer{}, list)
		}
		if err == nil {
			e := NewEngine(s, EngineOptions{})
			_, _ = e.Next(t.Context(), Request{Prompt: "weather in Oslo"})
			_, _ = e.Next(t.Context(), Request{Results: []ToolCallResult{{}}})
			e.ExplainNearMisses(Request{Prompt: "x"})
			e.UnmetResultExpectations()
		}
		compareTrees(t, src, isJSON)
	})
}

var tomlSeeds = []string{
	"a.b.c = 1\na.b.d = [1, 2.5, 0x1F, 0o7, 0b1, 1_000, +3, -0, inf, -nan, 1e3]\n[a.x]\ny = 1979-05-27T07:32:00Z\n",
	"[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\n[a.c]\n\"q.k\" = 'lit'\n[[a]]\n",
	"s = \"\"\"\nx \\\n   y \"\" z\"\"\"\"\nl = '''\na'b'''\nd = 1979-05-27 07:32:00\nt = 07:32:00\n",
	"k = { a = 1, b.c = 2, d = { e = [] } }\n# comment\nm = [\n  1, # x\n  2,\n]\n",
	"e = \"\\u00e9\\t\\\\\\U0001F600\\\"\"\r\nb = true\r\n",
	"[a]\n[a]\n", "a = 1\na = 2\n", "[a.b]\n[a]\nb.c = 1\n", "a = [{b=1}]\n[[a]]\n", "a = {b=1}\n[a.c]\n", "a.b=1\n[a]\n",
}

func compareTrees(t *testing.T, src []byte, isJSON bool) {
	t.Helper()
	var want map[string]any
	var err error
	var ix *diag.SourceIndex
	if isJSON {
		ix = diag.IndexJSON("f", src)
		dec := json.NewDecoder(bytes.NewReader(src))
		dec.UseNumber()
		if err = dec.Decode(&want); err == nil && !json.Valid(src) {
			err = errors.New("more than one value")
		}
	} else {
		ix = diag.IndexTOML("f", src)
		_, err = toml.Decode(string(src), &want)
	}
	if ix.FirstPossibleProblem() != nil {
		return
	}
	if err != nil {
		t.Fatalf("the index accepts what the decoder refuses: %v", err)
	}
	a, _ := json.Marshal(plainTree(want))
	b, _ := json.Marshal(plainTree(ix.Root().Any()))
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Error(diff)
	}
}

// plainTree converts a tree to values that JSON can represent, with one form of each number.
func plainTree(v any) any {
	switch x := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, e := range x {
			m[k] = plainTree(e)
		}
		return m
	case []any:
		l := []any{}
		for _, e := range x {
			l = append(l, plainTree(e))
		}
		return l
	case []map[string]any:
		l := []any{}
		for _, e := range x {
			l = append(l, plainTree(e))
		}
		return l
	case json.Number:
		if f, err := x.Float64(); err == nil {
			return strconv.FormatFloat(f, 'g', -1, 64)
		}
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	case int64:
		return strconv.FormatFloat(float64(x), 'g', -1, 64)
	}
	if _, isTime := v.(interface{ IsZero() bool }); isTime {
		return "time"
	}
	return v
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Files that are nested too deeply are refused before they use more memory than their size suggests, for every kind
// of nesting.
func TestNesting(t *testing.T) {
	for name, src := range map[string]string{
		"inline tables":   "a = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000),
		"arrays":          "a = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"dotted key":      strings.Repeat("a.", 5000) + "a = 1",
		"header":          "[" + strings.Repeat("a.", 5000) + "a]\nb = 1",
		"tables":          "[[" + strings.Repeat("a.", 5000) + "a]]\nb = 1",
		"mixed":           "[" + strings.Repeat("a.", 60) + "a]\n" + strings.Repeat("a.", 30) + "a = [[[[[[[[[[[[[[[[[[{a = 1}]]]]]]]]]]]]]]]]]]",
		"after a mistake": "b = nonsense\na = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000),
		"in a mistake":    "b = [ nonsense,\n" + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000) + "]",
		"not":             "[[responses]]\npattern = " + strings.Repeat(`{type="not",pattern=`, 400) + `{type="any"}` + strings.Repeat("}", 400),
		"not, dotted":     "[[responses]]\n" + strings.Repeat("pattern.", 2000) + `type = "not"`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("s.toml", []byte(src), LoadOptions{})
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), "nested too deep: at most 100 levels") {
				t.Errorf("got %.200v", err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
				t.Errorf("%d bytes of source cost %d MB", len(src), used>>20)
			}
		})
	}
	json := `{"responses":[{"pattern":` + strings.Repeat(`{"type":"not","pattern":`, 5000) + `{"type":"any"}` + strings.Repeat("}", 5000) + `}]}`
	if _, err := Parse("s.json", []byte(json), LoadOptions{}); err == nil {
		t.Error("5000 levels of JSON pass")
	}
	deep := "[[responses]]\npattern = " + strings.Repeat(`{type="not",pattern=`, 90) + `{type="any"}` + strings.Repeat("}", 90)
	if _, err := Parse("s.toml", []byte(deep), LoadOptions{}); err != nil {
		t.Errorf("90 levels: %v", err)
	}
}
