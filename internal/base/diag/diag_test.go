package diag

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = `# comment
title = "é" # after
"quoted key".x.y = 1
multi = """
a
"b\"
"""

[[rules]]
pattern = { type = "any", deep = [ 1, { z = 2 } ] }

  [[rules.turns]]
  expect = 1
  [rules.turns.sub]
  k = [
    "a", # one
    "b",
  ]

[[rules]]
pattern.type = "x"
[other.table]
"#" = 'it''s'
`

func TestIndexPos(t *testing.T) {
	ix := IndexTOML("f.toml", []byte(source[:len(source)-len("\"#\" = 'it''s'\n")]))
	if d := ix.FirstPossibleProblem(); d != nil {
		t.Fatal(d)
	}
	for _, tt := range []struct {
		path Path
		at   string
	}{
		{nil, "f.toml:1:1"},
		{Path{"title"}, "f.toml:2:1"},
		{Path{"quoted key"}, "f.toml:3:1"},
		{Path{"quoted key", "x", "y"}, "f.toml:3:16"},
		{Path{"multi"}, "f.toml:4:1"},
		{Path{"rules"}, "f.toml:9:3"},
		{Path{"rules", 0}, "f.toml:9:1"},
		{Path{"rules", 0, "pattern"}, "f.toml:10:1"},
		{Path{"rules", 0, "pattern", "deep"}, "f.toml:10:27"},
		{Path{"rules", 0, "pattern", "deep", 1, "z"}, "f.toml:10:41"},
		{Path{"rules", 0, "turns", 0}, "f.toml:12:3"},
		{Path{"rules", 0, "turns", 0, "expect"}, "f.toml:13:3"},
		{Path{"rules", 0, "turns", 0, "sub", "k", 1}, "f.toml:17:5"},
		{Path{"rules", 1}, "f.toml:20:1"},
		{Path{"rules", 1, "pattern", "type"}, "f.toml:21:9"},
		{Path{"other", "table"}, "f.toml:22:8"},
		// A missing key is reported at the position of its nearest existing parent.
		{Path{"rules", 1, "pattern", "nope", 3}, "f.toml:21:1"},
		{Path{"rules", 7}, "f.toml:9:3"},
		{Path{"nope"}, "f.toml:1:1"},
		{Path{3.5}, "f.toml:1:1"},
	} {
		if got := ix.Pos(tt.path).String(); got != tt.at {
			t.Errorf("%v: %s, want %s", tt.path, got, tt.at)
		}
	}
	if diff := cmp.Diff([]string{"title", "quoted key", "multi", "rules", "other"}, ix.Keys(nil)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"type", "deep"}, ix.Keys(Path{"rules", 0, "pattern"})); diff != "" {
		t.Error(diff)
	}
	if keys := ix.Keys(Path{"nope"}); keys != nil {
		t.Error(keys)
	}
}

// An uncertain value is reported at its position, and later keys are indexed anyway.
func TestFirstProblem(t *testing.T) {
	ix := IndexTOML("f.toml", []byte(source+"after = 1\n"))
	if d := ix.FirstPossibleProblem(); d == nil || d.String() != "f.toml:23:11: expected the end of the line" {
		t.Error(d)
	}
	if got := ix.Pos(Path{"other", "table", "after"}); got.Line != 24 {
		t.Error(got)
	}
	for src, want := range map[string]string{
		"a = [1,\n2":        "1:5: the array is not closed",
		"a = \"\"\"x\n":     "1:5: the multi-line string is not closed",
		"a = {b = 1\n}":     "1:11: expected `,` or `}`; an inline table must be on one line",
		"a = 01":            "1:5: `01` is not a value; put text in quotes",
		"a = 1_":            "1:5: `1_` is not a value; put text in quotes",
		"a = 2026-13-01":    "1:5: `2026-13-01` is not a value; put text in quotes",
		"a = \"\\q\"":       "1:6: unknown escape sequence; a literal backslash is written \\\\ or in 'single quotes'",
		"= 1":               "1:1: expected a key",
		"a.b = 1\na = 2":    "2:1: key `a` is defined twice",
		"a = {}\na.b = 1":   "2:1: key `a` already has a value, and dotted keys cannot extend it",
		"[a]\nb=1\n[a.b.c]": "3:4: key `b` already has a value that cannot be extended: it is not a table, or was written in one line",
		"a=[]\n[[a]]":       "2:3: key `a` already has a value, but [[…]] needs an array of tables",
		"a = \xff":          "1:1: the file is not valid UTF-8",
	} {
		d := IndexTOML("", []byte(src)).FirstPossibleProblem()
		if d == nil {
			t.Errorf("%q is not doubted", src)
			continue
		}
		d.Pos.File = "f"
		if got := d.String(); got != "f:"+want {
			t.Errorf("%q: %s, want %s", src, got, want)
		}
	}
}

func TestIndexJSON(t *testing.T) {
	ix := IndexJSON("f.json", []byte("{\n \"a\": [ {\"é\": 1, \"b\": null} ],\n \"c\\n\": -1.5e3\n}"))
	if d := ix.FirstPossibleProblem(); d != nil {
		t.Fatal(d)
	}
	for _, tt := range []struct {
		path Path
		at   string
	}{
		{Path{"a"}, "f.json:2:2"},
		{Path{"a", 0}, "f.json:2:9"},
		{Path{"a", 0, "é"}, "f.json:2:10"},
		{Path{"a", 0, "b"}, "f.json:2:18"},
		{Path{"c\n"}, "f.json:3:2"},
	} {
		if got := ix.Pos(tt.path).String(); got != tt.at {
			t.Errorf("%v: %s, want %s", tt.path, got, tt.at)
		}
	}
	want := map[string]any{"a": []any{map[string]any{"é": int64(1), "b": nil}}, "c\n": -1500.0}
	if diff := cmp.Diff(want, ix.Root().Any()); diff != "" {
		t.Error(diff)
	}
	for src, want := range map[string]string{
		"":                  "f:1:1: expected a value",
		"[]":                "f:1:1: expected an object",
		`{"a": 1,}`:         "f:1:9: expected a key in double quotes",
		`{"a": 1} x`:        "f:1:10: expected the end of the file",
		`{"a": 1, "a": 2}`:  "f:1:10: key `a` is defined twice",
		`{"a": 01}`:         "f:1:7: `01` is not a JSON value",
		"{\"a\": \"x\ny\"}": "f:1:9: the string is not closed, or contains a control character",
		`{"a": "\q"}`:       "f:1:7: the string contains an invalid escape sequence",
		`{"a" 1}`:           "f:1:6: expected `:` after the key",
		`{"a": [1 2]}`:      "f:1:10: expected `,` or `]`",
	} {
		d := IndexJSON("f", []byte(src)).FirstPossibleProblem()
		if d == nil || d.String() != want {
			t.Errorf("%q: %v, want %s", src, d, want)
		}
	}
}

type target struct {
	S    string            `toml:"s"`
	N    int8              `toml:"n" min:"-5" max:"5"`
	F    float64           `toml:"f"`
	B    *bool             `toml:"b"`
	L    []string          `toml:"l"`
	M    map[string]int    `toml:"m"`
	Any  any               `toml:"any"`
	Raw  json.RawMessage   `toml:"raw"`
	Sub  []sub             `toml:"sub"`
	Mode string            `toml:"mode" enum:"on,off"`
	V    Value             `toml:"v"`
	Both either            `toml:"both"`
	Skip string            `toml:"-"`
	Tags map[string]either `toml:"tags"`
	sub2
}

type sub struct {
	Name string `toml:"name,required"`
}

type sub2 struct {
	Inner string `toml:"inner"`
}

// either is a string or a table.
type either struct{ Name string }

func (e *either) BindValue(v Value, b *BindRun) {
	if v.Kind == KindString {
		e.Name = v.Text
		return
	}
	var s sub
	b.BindInto(v, &s)
	e.Name = s.Name
}

func bindBoth(t *testing.T, src string) (target, List) {
	t.Helper()
	ix := IndexTOML("f", []byte(src))
	if d := ix.FirstPossibleProblem(); d != nil {
		t.Fatal(d)
	}
	var direct, tree target
	l := ix.BindFileTo(&direct)
	m, _ := ix.Root().Any().(map[string]any)
	l2 := Bind(m, &tree, ix)
	if diff := cmp.Diff(l, l2); diff != "" {
		t.Errorf("Bind of the tree says something else: %s", diff)
	}
	a, b := direct, tree
	a.V, b.V = Value{}, Value{}
	if diff := cmp.Diff(a, b, cmp.AllowUnexported(target{}, Value{})); diff != "" {
		t.Errorf("Bind of the tree gives something else: %s", diff)
	}
	return direct, l
}

func TestBind(t *testing.T) {
	got, l := bindBoth(t, `
s = "x"
n = -5
f = 2
b = false
l = ["a", "b"]
m = { a = 1 }
any = [1, 2.5, "x", true, { k = "v" }]
raw = { z = 1_000, a = [0x10, 1.50, "<&>\n"], t = 2026-01-02 }
mode = "on"
v = 3
both = "short"
inner = "embedded"
tags = { a = "x", b = { name = "y" } }
[[sub]]
name = "1"
[[sub]]
name = "2"
`)
	if len(l) > 0 {
		t.Fatal(l)
	}
	no := false
	want := target{
		S: "x", N: -5, F: 2, B: &no, L: []string{"a", "b"}, M: map[string]int{"a": 1},
		Any: []any{int64(1), 2.5, "x", true, map[string]any{"k": "v"}},
		Raw: json.RawMessage(`{"z":1000,"a":[16,1.50,"<&>\n"],"t":"2026-01-02"}`),
		Sub: []sub{{"1"}, {"2"}}, Mode: "on", Both: either{"short"}, sub2: sub2{"embedded"},
		Tags: map[string]either{"a": {"x"}, "b": {"y"}},
	}
	if got.V.Kind != KindInt || got.V.Text != "3" {
		t.Error(got.V)
	}
	got.V = Value{}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(target{}, Value{})); diff != "" {
		t.Error(diff)
	}
}

func TestBindReportsEverything(t *testing.T) {
	_, l := bindBoth(t, `
s = 1
n = 200
f = "x"
b = "yes"
l = ["a", 2]
m = { a = "one" }
mode = "onn"
skip = "x"
both = { nam = "x" }
[[sub]]
[[sub]]
name = "2"
nme = "3"
`)
	var got []string
	for _, d := range l {
		got = append(got, d.String()+" ("+d.Hint+")")
	}
	want := []string{
		"f:2:5: `s` must be a string, not the integer 1 ()",
		"f:3:5: `n` is out of range ()",
		"f:4:5: `f` must be a number, not the string \"x\" ()",
		"f:5:5: `b` must be a boolean, not the string \"yes\" ()",
		"f:6:11: `l` must be a string, not the integer 2 ()",
		"f:7:11: `a` must be an integer, not the string \"one\" ()",
		"f:8:8: `mode` cannot be \"onn\": expected one of on, off (did you mean `on`?)",
		"f:9:1: unknown key `skip` ()",
		"f:10:10: unknown key `nam` (did you mean `name`?)",
		"f:10:8: missing key `name` ()",
		"f:11:1: missing key `name` ()",
		"f:14:1: unknown key `nme` (did you mean `name`?)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"session_id", "user_name", "text", "delay_ms", "permission-mode", "$file"}
	for in, want := range map[string]string{
		"sesion_id": "session_id", "sessionId": "session_id", "Text": "text", "txet": "text", "delay": "", "permission_mode": "permission-mode",
		"xyz": "", "": "", "t": "", "username": "user_name", "file": "$file",
	} {
		if got := SimilarOtherName(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRender(t *testing.T) {
	var b bytes.Buffer
	Render(&b, List{
		{Pos: Position{"f", 2, 3}, Message: "bad", Source: "\tx\x1b = 1", Hint: "good"},
		{Pos: Position{"f", 0, 0}, Message: "whole file", Warning: true},
		{Message: "nowhere"},
		{Pos: Position{"f", 9, 400}, Message: "far", Source: string(bytes.Repeat([]byte("ab"), 300))},
	})
	far := string(bytes.Repeat([]byte("ab"), 80))[1:] + "a"
	want := "f:2:3: bad\n  \tx? = 1\n  \t ^\n  hint: good\nf: warning: whole file\nnowhere\n" +
		"f:9:400: far\n  " + far + "\n  " + string(bytes.Repeat([]byte(" "), 80)) + "^\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if err := (List{{Warning: true}}).Err(); err != nil {
		t.Error("a warning is an error")
	}
	out, err := json.Marshal(List{{Pos: Position{"f", 1, 2}, Message: "m"}})
	if err != nil || string(out) != `[{"position":{"file":"f","line":1,"column":2},"message":"m"}]` {
		t.Error(string(out), err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(source), false)
	f.Add([]byte(`{"a": [1, {"b": "\u00e9"}]}`), true)
	f.Fuzz(func(t *testing.T, src []byte, isJSON bool) {
		ix := IndexTOML("f", src)
		if isJSON {
			ix = IndexJSON("f", src)
		}
		for _, p := range []Path{nil, {"rules", 0, "pattern"}, {"a", "b", 1}} {
			ix.Pos(p)
			ix.Keys(p)
			ix.DiagnosticAtText(p, 3, "x")
		}
		var dst target
		Render(&bytes.Buffer{}, ix.BindFileTo(&dst))
		if raw := ix.Root().AppendJSON(nil); !json.Valid(raw) && ix.FirstPossibleProblem() == nil {
			t.Errorf("not JSON: %s", raw)
		}
	})
}

func TestEditDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"abc", "abc", 0},
		{"abc", "acb", 1},
		{"abc", "abcd", 1},
		{"kitten", "sitting", 3},
		{"ab", "abcdef", 4},
		{"ca", "abc", 3},
	} {
		if got := EditDistanceInBytes(tt.a, tt.b); got != tt.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := EditDistanceInBytes(tt.b, tt.a); got != tt.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
