package match

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type unredacted struct{}

func (unredacted) Hide(s string) string { return s }

// TestText checks which texts each kind of pattern matches (spec: scenario-format 1; also
// scenario-compat 1.3.1).
func TestText(t *testing.T) {
	regex := func(s string) Pattern {
		m, err := Regex(s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		name string
		m    Pattern
		yes  []string
		no   []string
	}{
		{"zero", Pattern{}, []string{"", "x"}, nil},
		{"exact", Exact("Hi"), []string{"Hi"}, []string{"hi", "Hi ", " Hi", "Hi\n", ""}},
		{"contains", Contains("ell"), []string{"hello", "ell"}, []string{"hEllo", ""}},
		{"contains nothing", Contains(""), []string{"", "x"}, nil},
		{"regex is unanchored", regex(`w\w+d`), []string{"hello world", "wd wod"}, []string{"hello", "WORLD"}},
		{"regex with flags", regex(`(?i)^hi$`), []string{"HI", "hi"}, []string{"hi there"}},
		{"regex without metacharacters", regex("abc"), []string{"xabcx"}, []string{"ab"}},
		{"any", Any(), []string{"", "x"}, nil},
		{"all", All(Contains("a"), Contains("b")), []string{"ab", "ba"}, []string{"a", "b", ""}},
		{"all of none", All(), []string{""}, nil},
		{"any of", AnyOf(Contains("a"), Exact("b")), []string{"xa", "b"}, []string{"xb", ""}},
		{"any of none", AnyOf(), nil, []string{""}},
		{"not", Not(Contains("a")), []string{"", "b"}, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range tt.yes {
				if _, ok := tt.m.Match(s); !ok {
					t.Errorf("%q does not match", s)
				}
			}
			for _, s := range tt.no {
				if _, ok := tt.m.Match(s); ok {
					t.Errorf("%q matches", s)
				}
				if why := tt.m.Explain(s, unredacted{}); why == "" || why == "it matches" {
					t.Errorf("%q: the reason is %q", s, why)
				}
			}
		})
	}
}

// The globs are those of Rust's glob crate (scenario-compat 1.3.1).
func TestGlob(t *testing.T) {
	for pattern, cases := range map[string]struct{ yes, no []string }{
		"*.txt":     {[]string{".txt", "a.txt", "a/b/c.txt", "l1\nl2.txt"}, []string{"a.txt ", "a.TXT", "a.txtx"}},
		"fix *bug*": {[]string{"fix bug", "fix the bug", "fix my bugs"}, []string{"fix", "fix bu"}},
		"a?c":       {[]string{"abc", "a/c", "aéc"}, []string{"ac", "abbc"}},
		"[a-cx]1":   {[]string{"a1", "b1", "x1"}, []string{"d1", "-1"}},
		"[!a-c]":    {[]string{"d", "é"}, []string{"a", "", "dd"}},
		"[]]":       {[]string{"]"}, []string{"["}},
		"[!]]":      {[]string{"a"}, []string{"]"}},
		"[a-]":      {[]string{"a", "-"}, []string{"b"}},
		"{a,b}":     {[]string{"{a,b}"}, []string{"a"}},
		`\*`:        {[]string{`\x`, `\`}, []string{"*"}},
		"**":        {[]string{"", "a/b"}, nil},
		"**/x":      {[]string{"x", "a/x", "a/b/x"}, []string{"ax", "x/"}},
		"a/**/b":    {[]string{"a/b", "a/x/b", "a/x/y/b"}, []string{"ab", "a/xb"}},
		"a/**":      {[]string{"a/", "a/b/c"}, []string{"a"}},
		"*a*b*c*":   {[]string{"abc", "xaxbxcx"}, []string{"acb", "ab"}},
		"héllo*":    {[]string{"héllo wörld"}, []string{"hello"}},
	} {
		t.Run(pattern, func(t *testing.T) {
			m, err := Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range cases.yes {
				if _, ok := m.Match(s); !ok {
					t.Errorf("%q does not match", s)
				}
			}
			for _, s := range cases.no {
				if _, ok := m.Match(s); ok {
					t.Errorf("%q matches", s)
				}
			}
		})
	}
	for _, bad := range []string{"[", "[]", "[!", "[!]", "[a", "a**", "**b", "***", "[z-a]", "a/**b"} {
		if _, err := Glob(bad); err == nil || !strings.Contains(err.Error(), "glob pattern") {
			t.Errorf("%q: error is %v", bad, err)
		}
	}
}

func TestRegexErrors(t *testing.T) {
	for expr, want := range map[string]string{
		`(`:            "missing closing",
		`a**`:          "invalid nested repetition",
		`[a-z&&[^b]]`:  "`&&`",
		`[[a-c]x]`:     "inside a class",
		`[a--b]`:       "`--`",
		`(?x)a b`:      "`(?x)`",
		`\u{41}`:       "`\\u`",
		`\<word\>`:     "`\\<`",
		`\b{start}x`:   "`\\b{…}`",
		`(?=x)`:        "invalid",
		`(?P<a>x)(?P<`: "invalid",
	} {
		if _, err := Regex(expr); err == nil || !strings.Contains(err.Error(), "regex pattern") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q in it", expr, err, want)
		}
	}
	for _, good := range []string{`(?<n>x)`, `(?P<n>x)`, `[[:alpha:]_]`, `[^]a]`, `[\[\]]`, `a{2,3}`, `\x{41}`, `(?s-i:x)`, `[a&b]`} {
		if _, err := Regex(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestCaptures(t *testing.T) {
	m, err := Regex(`in (?P<city>\w+)( now)?`)
	if err != nil {
		t.Fatal(err)
	}
	both := All(Contains("weather"), m)
	for _, m := range []Pattern{m, both} {
		c, ok := m.Match("weather in Oslo")
		want := Captures{Groups: []string{"in Oslo", "Oslo", ""}, Names: []string{"", "city", ""}}
		if diff := cmp.Diff(want, c); diff != "" || !ok {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"city"}, m.GroupNames()); diff != "" {
			t.Error(diff)
		}
	}
	if c, _ := Contains("ell").Match("hello"); c.Groups[0] != "ell" {
		t.Errorf("contains captured %q", c.Groups)
	}
}

func TestSubset(t *testing.T) {
	for _, tt := range []struct{ want, got, diff string }{
		{`{}`, `{"a":1}`, ""},
		{`{"a":1}`, `{"a":1.0,"b":2}`, ""},
		{`{"a":{"b":[1,{"c":"x"}]}}`, `{"a":{"b":[1,{"c":"x","d":0}],"e":1}}`, ""},
		{`{"a":1}`, `{"b":1}`, "`a` is missing"},
		{`{"f":1,"e":1,"d":1,"c":1,"b":1,"a":1}`, `{}`, "`a` is missing"}, // the first of the names
		{`{"a":{"b":2}}`, `{"a":{"b":3}}`, "`a.b` is 3, not 2"},
		{`{"a":[1,2]}`, `{"a":[1]}`, "`a` is [1], not [1,2]"},
		{`{"a":[1,"x"]}`, `{"a":[1,"y"]}`, "`a[1]` is \"y\", not \"x\""},
		{`9007199254740993`, `9007199254740992`, "it is 9007199254740992, not 9007199254740993"},
		{`"1"`, `1`, "it is 1, not \"1\""},
		{`null`, `null`, ""},
		{`null`, `0`, "it is 0, not null"},
		{`true`, `"true"`, "it is \"true\", not true"},
	} {
		t.Run(tt.want+" in "+tt.got, func(t *testing.T) {
			diff, ok := Subset(decodeNumber(t, tt.want), decodeNumber(t, tt.got))
			if diff != tt.diff || ok != (tt.diff == "") {
				t.Errorf("got %q, %v; want %q", diff, ok, tt.diff)
			}
		})
	}
	if _, ok := Subset(map[string]any{"n": int64(3)}, map[string]any{"n": json.Number("3")}); !ok {
		t.Error("Go types of numbers matter")
	}
}

func decodeNumber(t *testing.T, s string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// FuzzGlob compares the matcher with a translation into a regular expression.
func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"*.txt", "a.txt"}, {"**/x", "a/x"}, {"a/**/b/*", "a/b/b/c"}, {"[a-c]?*", "bé"}, {"*a*b", "aabab"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		m, err := Glob(pattern)
		if err != nil || !utf8.ValidString(pattern) || !utf8.ValidString(s) || strings.Contains(pattern, "[") {
			return
		}
		expr := regexp.QuoteMeta(pattern)
		expr = strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `\*\*`, `.*`, `\*`, `.*`, `\?`, `.`).Replace(expr)
		want := regexp.MustCompile(`(?s)\A` + expr + `\z`).MatchString(s)
		if _, got := m.Match(s); got != want {
			t.Errorf("glob %q on %q: %v, want %v", pattern, s, got, want)
		}
	})
}

// FuzzRegex checks that expressions that are accepted without compiling do compile, and that the quick test for a
// literal never rejects a match.
func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a(b|c)+d`, `(?P<n>\w+) x`, `[[:alpha:]]`, `a{2}`, `(?i)Abc`, `x*yz`} {
		f.Add(s, "abcd x yz")
	}
	f.Fuzz(func(t *testing.T, expr, s string) {
		if !utf8.ValidString(expr) {
			return
		}
		m, err := Regex(expr)
		if err != nil {
			return
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Fatalf("%q was accepted: %v", expr, err)
		}
		if _, got := m.Match(s); got != re.MatchString(s) {
			t.Errorf("%q on %q: %v", expr, s, got)
		}
	})
}
