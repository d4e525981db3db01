package redact

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A value that looks like a word is not a secret if only a variable name suggests it; one digit or symbol makes it
// one.
func TestIsWord(t *testing.T) {
	for value, want := range map[string]bool{
		"required": true, "Required": true, "REQUIRED": true, "az-AZ": false, "my-password": true, "YOUR_TOKEN": true,
		"aA": false, "aZ": false, "zM": false, "Aa": true, "AA": true, "Az": true, "AaB": false, "abc0": false, "abc9": false, "abc5": false,
		"ab+c": false, "ab/c": false, "abc=": false, "": true, "{|}~": true, "{A": true, "`A": true, "a@": true, "a[": true, "ab:": true, "a.": true,
		strings.Repeat("a", 24): true, strings.Repeat("a", 25): false,
	} {
		if got := looksLikeWordOrExample(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// A value is random if it is long enough, has more than two letters and more than one digit, and contains no blank.
func TestLooksRandom(t *testing.T) {
	for value, want := range map[string]bool{
		"abc4567890": true, "azAZ090000": true, "ab34567890": false, "aaz0000000": true, "zzz0000000": true, "AAZ0000000": true, "ZZZ9999999": true,
		"aaA0000000": true, "abc456789": false, "abcdefghi9": false, "abcdefgh99": true, "abcdefgh90": true, "abcdefgh00": true, "abc 567890": false,
		"abc!567890": true, "dir/a1.b23456": false, "dirx/a1b23456": true, "[[[0000000{": false, "@@@0000000`": false, "//:abc//99": true,
		"//:abc:::9": false,
	} {
		if got := looksRandom(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// The kind of a finding is the variable name in capitals, with underscores for all characters except letters and
// digits.
func TestKindOf(t *testing.T) {
	for name, want := range map[string]string{"my-token": "MY_TOKEN", "AZ_az_09": "AZ_AZ_09", "_A:B@C[D/E_": "A_B_C_D_E", "": ""} {
		if got := upperSnakeCase(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// A known value is searched in base64 only if it is too long to match by chance.
func TestKnownLengths(t *testing.T) {
	for value, want := range map[string][2]string{
		"abc":      {"abc", ""},
		"Abc4567":  {"[redacted]", "plain"},
		"Abc45678": {"[redacted]", "encoded"},
	} {
		r := New(Options{Values: []string{value}})
		if got := r.String("x " + value); (got == "x [redacted]") != (want[0] == "[redacted]") {
			t.Errorf("%q: %q", value, got)
		}
		text := base64.RawStdEncoding.EncodeToString([]byte("--" + value + "--"))
		if got := r.String("x " + text); (got == "x [redacted]") != (want[1] == "encoded") {
			t.Errorf("%q in base64: %q", value, got)
		}
	}
	r := New(Options{Values: []string{"Abc456789012"}})
	for _, before := range []string{"", "-", "--", "---"} {
		for _, after := range []string{"", "+", "++", "+++"} {
			text := base64.StdEncoding.EncodeToString([]byte(before + "Abc456789012" + after))
			if got := r.String(text + " x"); got != "[redacted] x" {
				t.Errorf("%q: %q", text, got)
			}
		}
	}
	for text, want := range map[string]string{"Abc456789012": "[redacted]", "Abc456789012=": "[redacted]="} {
		if got := r.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Words that may be encoded: long enough but not as long as images, with letters of both cases or an escape.
func TestEncodedWords(t *testing.T) {
	mixed := func(n int) string { return "aA" + strings.Repeat("0", n-2) }
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{mixed(19), nil},
		{mixed(20), []string{mixed(20)}},
		{" " + mixed(20) + " ", []string{mixed(20)}},
		{"==.~" + mixed(20), []string{mixed(20)}},
		{mixed(19) + " " + mixed(21), []string{mixed(21)}},
		{mixed(64 << 10), []string{mixed(64 << 10)}},
		{mixed(64<<10 + 1), nil},
		{"zZ" + strings.Repeat("0", 18), []string{"zZ" + strings.Repeat("0", 18)}},
		{strings.Repeat("a", 20), nil},
		{strings.Repeat("A", 20), nil},
		{"{[" + strings.Repeat("0", 20), nil},
		{"`@" + strings.Repeat("0", 20), nil},
		{strings.Repeat("0", 19) + "a", nil},
		{strings.Repeat("0", 19) + "%", []string{strings.Repeat("0", 19) + "%"}},
		{"%" + strings.Repeat("0", 19), []string{"%" + strings.Repeat("0", 19)}},
		{"", nil},
	} {
		var got []string
		for _, w := range base64AndPercentEncodedWordSpans(tt.in) {
			got = append(got, tt.in[w[0]:w[1]])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%.60q (-want +got):\n%s", tt.in, diff)
		}
	}
}

// TestDecode decodes words in each encoding.
func TestDecode(t *testing.T) {
	for word, want := range map[string]string{
		"a%20b": "a b", "a%2": "", "%ff%fe": "", "YSBi": "a b", "YSBiYw==": "a bc", "YWI_Pw": "", "YWI/Pw": "ab??", "AAECAwQF": "", "YQpi": "a\nb", "Y": "",
	} {
		got, ok := decodeWord(word)
		if word == "YWI_Pw" {
			want, _ = "ab?\x3f", ok
		}
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", word, got, ok, want)
		}
	}
}

// Concatenated literals are joined without the text between them, and the position of each byte is kept.
func TestRemoveSeams(t *testing.T) {
	line := strings.Repeat("a", 40)
	for _, tt := range []struct{ in, want string }{
		{`ab""cd`, "abcd"},
		{`ab''cd`, "abcd"},
		{`ab"'"cd`, "abcd"},
		{"ab\\\ncd", "abcd"},
		{"ab\\\n  cd", "abcd"},
		{`"ab" + "cd"`, `"abcd"`},
		{`"ab" "cd"`, `"ab" "cd"`},
		{`ab"cd`, "abcd"},
		{`.'cd`, ".cd"},
		{`!'cd`, "!'cd"},
		{`ab"!`, `ab"!`},
		{`ab"`, `ab"`},
		{`"ab`, `"ab`},
		{`ab""""""""""cd`, "abcd"},
		{`ab"""""""""""cd`, "abcd"},
		{`ab""""""""""""cd`, `ab""""""""""""cd`},
		{line + "\n" + line, line + line},
		{line + "a\n" + line, line + "a" + line},
		{" " + line + "\nb", " " + line + "b"},
		{line[1:] + "\n" + line, line[1:] + "\n" + line},
		{" " + line[1:] + "\n" + line, " " + line[1:] + "\n" + line},
		{line + "\n!", line + "\n!"},
		{line + "\n", line + "\n"},
	} {
		got, at := joinConcatenatedStrings(tt.in)
		if got != tt.want || len(at) != len(got) {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
			continue
		}
		for i := range got {
			if tt.in[at[i]] != got[i] || i > 0 && at[i] <= at[i-1] {
				t.Errorf("%q: byte %d of %q is not at %d", tt.in, i, got, at[i])
			}
		}
	}
}

// The areas around joints do not overlap, and include the text on both sides that may belong to a secret.
func TestSeams(t *testing.T) {
	pad := strings.Repeat(".", 500)
	for _, tt := range []struct {
		in   string
		want [][2]int
	}{
		{"ab", nil},
		{`"ab"`, nil},
		{`a""b`, [][2]int{{0, 4}}},
		{pad + `a""b` + pad, [][2]int{{301, 703}}},
		{pad + `a""b` + `c""d` + pad, [][2]int{{301, 707}}},
		{`a""b` + pad + `a""b`, [][2]int{{0, 203}, {305, 508}}},
		{`a""b` + pad[:398] + `a""b`, [][2]int{{0, 406}}},
		{`a""b` + pad[:399] + `a""b`, [][2]int{{0, 203}, {204, 407}}},
		{`a'`, nil},
	} {
		if diff := cmp.Diff(tt.want, spansAroundConcatenations(tt.in)); diff != "" {
			t.Errorf("%d bytes (-want +got):\n%s", len(tt.in), diff)
		}
	}
}

// The value that is assigned to a name is found, given the position of the first part of the name.
func TestAssigned(t *testing.T) {
	for _, tt := range []struct {
		rest         string
		want, digits bool // digits means that the value must have a digit
	}{
		{"=abcdef", true, false},
		{"=abcdef", false, true},
		{"=abcde", false, false},
		{"=abcde0", true, true},
		{"=abcde9", true, true},
		{"=abcdefgh5", true, true},
		{"_NAME = 'abcdef'", true, false},
		{`-name.x": "abcdef"`, true, false},
		{" :=> |abcdef", true, false},
		{"(=abcdef", false, false},
		{"=(abcdef", true, false},
		{"", false, false},
		{"=", false, false},
		{"=a'bcdef", false, false},
		{"=abcde f", false, false},
		{"=abcde!f", true, false},
		{strings.Repeat("x", 47) + "=abcdef", true, false},
		{strings.Repeat("x", 48) + "=abcdef", false, false},
		{"=========abcdef", true, false},
		{"==========abcdef", true, false},
		{"= = = = = = = =   abcdef", true, false},
		{"=" + strings.Repeat(" ", 60) + "abcdef", true, false},
		{"=========\"abcdef", false, false},
		{"========\"abcdef", true, false},
	} {
		if got := hasAssignmentAfterKeyword(tt.rest, tt.digits); got != tt.want {
			t.Errorf("assigned(%q, %v) = %v", tt.rest, tt.digits, got)
		}
	}
}

// A rule is tried only if a keyword has these characters around it.
func TestGates(t *testing.T) {
	for _, tt := range []struct {
		name     string
		precheck keywordContextCheck
		before   string
		word     string
		rest     string
		want     bool
	}{
		{"a value in quotes", precheckAssignedValueIsQuoted, "", "password", `: "abcdef"`, true},
		{"in single quotes", precheckAssignedValueIsQuoted, "", "password", `='abcdef' x`, true},
		{"too short", precheckAssignedValueIsQuoted, "", "password", `: "abcde"`, false},
		{"not closed", precheckAssignedValueIsQuoted, "", "password", `: "abcdef`, false},
		{"with a blank", precheckAssignedValueIsQuoted, "", "password", `: "abcdef g"`, false},
		{"with an escape", precheckAssignedValueIsQuoted, "", "password", `: "abcdef\"`, false},
		{"with the lowest character of text", precheckAssignedValueIsQuoted, "", "password", `: "abcde!"`, true},
		{"no quotes", precheckAssignedValueIsQuoted, "", "password", `: abcdef`, false},
		{"no value", precheckAssignedValueIsQuoted, "", "password", `: `, false},
		{"no sign", precheckAssignedValueIsQuoted, "", "password", `(`, false},

		{"an option", precheckKeywordInCommandFlag, "x --api-", "token", " abc", true},
		{"a word", precheckKeywordInCommandFlag, "x api_", "token", " abc", false},
		{"the beginning", precheckKeywordInCommandFlag, "", "token", " abc", false},
		{"an option at the beginning", precheckKeywordInCommandFlag, "-", "token", " abc", true},

		{"a header", precheckFollowingColon, "", "x-key", ": a", true},
		{"a header in quotes", precheckFollowingColon, "", "x-key", `":`, true},
		{"one character", precheckFollowingColon, "", "x-key", ":", false},
		{"no header", precheckFollowingColon, "", "x-key", "ab:", false},

		{"user and password", precheckUserInfo, "", "://", "u:p@h", true},
		{"a path first", precheckUserInfo, "", "://", "h/p@h", false},
		{"a blank first", precheckUserInfo, "", "://", "h p@h", false},
		{"a quote first", precheckUserInfo, "", "://", `h"p@h`, false},
		{"the end", precheckUserInfo, "", "://", "host", false},
		{"512 bytes", precheckUserInfo, "", "://", strings.Repeat("a", 512), false},
		{"more than that may have one later", precheckUserInfo, "", "://", strings.Repeat("a", 513), true},

		{"a web token", precheckWebToken, "", "eyj", "abcdef.", true},
		{"a short one", precheckWebToken, "", "eyj", "abcde.", false},
		{"without a dot", precheckWebToken, "", "eyj", "abcdefghi", false},

		{"a long word", precheckLongWordAfterKeyword, "", "s.", strings.Repeat("a", 23), true},
		{"up to z", precheckLongWordAfterKeyword, "", "s.", strings.Repeat("z", 23), true},
		{"a shorter word", precheckLongWordAfterKeyword, "", "s.", strings.Repeat("a", 22), false},
		{"with an underscore", precheckLongWordAfterKeyword, "", "s.", strings.Repeat("_", 23), false},
		{"with a dot", precheckLongWordAfterKeyword, "", "s.", strings.Repeat(".", 23), false},
		{"with another letter", precheckLongWordAfterKeyword, "", "s.", strings.Repeat("é", 23), false},

		{"capitals", precheckUpperCaseNameWithDigitValue, "", "PASS", "=abcde1", true},
		{"capitals up to Z", precheckUpperCaseNameWithDigitValue, "", "ZASS", "=abcde1", true},
		{"small letters", precheckUpperCaseNameWithDigitValue, "", "aass", "=abcde1", false},
	} {
		text := tt.before + tt.word + tt.rest
		if got := tt.precheck.canRuleMatchAround(text, len(tt.before), len(tt.before)+len(tt.word)); got != tt.want {
			t.Errorf("%s: %q: %v, want %v", tt.name, text, got, tt.want)
		}
	}
}

// Adjacent findings stay separate, overlapping ones are merged, and the kind of a certain finding is used.
func TestMerge(t *testing.T) {
	for _, tt := range []struct{ in, want []Finding }{
		{[]Finding{{"B", 3, 5, true}, {"A", 0, 3, true}}, []Finding{{"A", 0, 3, true}, {"B", 3, 5, true}}},
		{[]Finding{{"A", 0, 3, false}, {"B", 2, 5, true}}, []Finding{{"B", 0, 5, true}}},
		{[]Finding{{"A", 0, 3, true}, {"B", 2, 5, false}}, []Finding{{"A", 0, 5, true}}},
		{[]Finding{{"A", 0, 9, false}, {"B", 2, 5, false}}, []Finding{{"A", 0, 9, false}}},
	} {
		if diff := cmp.Diff(tt.want, mergeFindings(tt.in)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Each part of a Discord token has its own length.
func TestDiscordLengths(t *testing.T) {
	token := func(id, time, signature int) string {
		return "M" + strings.Repeat("T", id-1) + "." + strings.Repeat("c", time) + "." + strings.Repeat("0", signature)
	}
	for _, tt := range []struct {
		in   string
		want bool
	}{
		{token(23, 5, 27), true},
		{token(30, 7, 45), true},
		{token(22, 5, 27), false},
		{token(31, 5, 27), false},
		{token(23, 4, 27), false},
		{token(23, 8, 27), false},
		{token(23, 5, 26), false},
		{token(23, 5, 46), false},
		{"X" + token(23, 5, 27)[1:], false},
		{strings.ReplaceAll(token(23, 5, 27), "0", "a"), false},
		{token(23, 5, 27)[:29], false},
		{"." + strings.Repeat("c", 22), false},
	} {
		for _, text := range []string{tt.in, "x " + tt.in + " y"} {
			if got := findDiscordTokens(text); (len(got) == 1) != tt.want {
				t.Errorf("%q: %+v", text, got)
			}
		}
	}
	if got := findDiscordTokens(token(23, 5, 27) + " " + token(23, 5, 27)); len(got) != 2 {
		t.Errorf("two tokens: %+v", got)
	}
}
