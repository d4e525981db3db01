package scripts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the scripts must be able to fail: each case differs from a captured run in one way.
func TestMatcher(t *testing.T) {
	const u1, u2 = "6f0b2f9e-0000-4000-8000-000000000001", "6f0b2f9e-0000-4000-8000-000000000002"
	for _, tt := range []struct {
		name, want, got string
		problem         string // "" means they match
	}{
		{"same", `{"a":[1,"x",null,true]}`, `{"a":[1,"x",null,true]}`, ""},
		{"ids", `{"a":"<uuid-1>","b":"<uuid-2>","c":"<uuid-1>"}`, `{"a":"` + u1 + `","b":"` + u2 + `","c":"` + u1 + `"}`, ""},
		{"one id for two", `{"a":"<uuid-1>","b":"<uuid-2>"}`, `{"a":"` + u1 + `","b":"` + u1 + `"}`, ".b is"},
		{"two ids for one", `{"a":"<uuid-1>","b":"<uuid-1>"}`, `{"a":"` + u1 + `","b":"` + u2 + `"}`, ".b is"},
		{"no uuid", `{"a":"<uuid-1>"}`, `{"a":"7"}`, ".a is"},
		{"path inside text", `{"a":"at <path>: gone"}`, `{"a":"at /x/y: gone"}`, ""},
		{"text around a path", `{"a":"at <path>: gone"}`, `{"a":"at /x/y: here"}`, ".a is"},
		{"missing key", `{"a":1,"b":2}`, `{"a":1}`, ".b is missing"},
		{"extra key", `{"a":1}`, `{"a":1,"b":2}`, ".b is too much"},
		{"null is not missing", `{"a":null}`, `{}`, ".a is missing"},
		{"other number", `{"num_turns":1}`, `{"num_turns":2}`, ".num_turns is 2"},
		{"measured number", `{"duration_ms":0}`, `{"duration_ms":12}`, ""},
		{"measured text", `{"duration_ms":0}`, `{"duration_ms":"12"}`, ".duration_ms is"},
		{"a count that was emptied", `{"maxOutputTokens":0}`, `{"maxOutputTokens":12}`, ""},
		{"one that was not", `{"maxOutputTokens":1}`, `{"maxOutputTokens":12}`, ".maxOutputTokens is"},
		{"an id that the table does not know", `{"a":"<msg-1>"}`, `{"a":"abc"}`, "no table of parity"},
		{"rest of a list", `["a","<2 more>"]`, `["a","b","c"]`, ""},
		{"shorter list", `["a","b"]`, `["a"]`, "want"},
		{"time", `{"t":"<time>"}`, `{"t":"2026-01-02T03:04:05.678Z"}`, ""},
		{"no time", `{"t":"<time>"}`, `{"t":"2026-01-02T03:04:05Z"}`, ".t is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMatcher()
			m.match("", decode(t, tt.want), decode(t, tt.got))
			expectProblem(t, strings.Join(m.problems, "; "), tt.problem)
		})
	}
}

func TestCompareRuns(t *testing.T) {
	call := func(id string) string {
		return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"` + id + `"}]}}`
	}
	result := func(id string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `"}]}}`
	}
	want := call("<toolu-1>") + call("<toolu-2>") + result("<toolu-1>") + result("<toolu-2>")
	for _, tt := range []struct{ name, got, problem string }{
		{"in order", call("toolu_0000000a") + call("toolu_0000000b") + result("toolu_0000000a") + result("toolu_0000000b"), ""},
		{"as they end", call("toolu_0000000a") + call("toolu_0000000b") + result("toolu_0000000b") + result("toolu_0000000a"), ""},
		{"one twice", call("toolu_0000000a") + call("toolu_0000000b") + result("toolu_0000000a") + result("toolu_0000000a"), "tool_use_id"},
		{"one missing", call("toolu_0000000a") + call("toolu_0000000b") + result("toolu_0000000a"), "events ["},
		{"result first", call("toolu_0000000a") + result("toolu_0000000a") + call("toolu_0000000b") + result("toolu_0000000b"), "event 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := parseEvents(want)
			if err != nil {
				t.Fatal(err)
			}
			g, err := parseEvents(tt.got)
			if err != nil {
				t.Fatal(err)
			}
			expectProblem(t, strings.Join(compareRuns(w, g, nil), "; "), tt.problem)
		})
	}
}

// TestShapesKnowTheGoldens compares the captured runs with the captured shapes, and then checks that a changed run
// differs.
func TestShapesKnowTheGoldens(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "testdata", "cli-shapes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sh shapes
	if err := json.Unmarshal(b, &sh); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("../testdata/golden/" + goldenVersion + "/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, name := range names {
		g, err := readGolden(strings.TrimSuffix(filepath.Base(name), ".txt"))
		if err != nil {
			t.Fatal(err)
		}
		if err := sh.check(g.stdout); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	g, err := readGolden("p-stream-json")
	if err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(event map[string]any){
		".cwd is missing":      func(e map[string]any) { delete(e, "cwd") },
		".cwd is 5":            func(e map[string]any) { e["cwd"] = 5.0 },
		".bogus is a key":      func(e map[string]any) { e["bogus"] = 1.0 },
		"no system/frobnicate": func(e map[string]any) { e["subtype"] = "frobnicate" },
	} {
		event := decode(t, compactJSON(g.stdout[0])).(map[string]any)
		change(event)
		problem := ""
		if err := sh.check([]any{event}); err != nil {
			problem = err.Error()
		}
		expectProblem(t, problem, key)
	}
}

func expectProblem(t *testing.T, got, want string) {
	t.Helper()
	if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
		t.Errorf("problems %q, want %q in them", got, want)
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
