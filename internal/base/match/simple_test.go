package match

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// The facts found without parsing an expression agree with the parser (D2): it is valid, has these group names, and
// every match contains the literal.
func TestScanSimple(t *testing.T) {
	for expr, literal := range map[string]string{
		"^prompt (?P<n>12) [a-z]+ (on|off)$": "prompt ", "x[^a-z_]y": "x", "[0-9]{2}": "-", "[z-a]": "-", "[]a]": "-", "[a&&b]": "-", "[[:alpha:]]": "-", "[a-]": "-", "[": "-",
	} {
		info, ok := parseRegexIfInSimpleSubset(expr)
		if want := literal != "-"; ok != want || ok && info.literal != literal {
			t.Errorf("%s: %q, %v; want %q", expr, info.literal, ok, literal)
		}
	}

	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "ab", ".", "[", "]", "[a-c]", "[^b_]", "^", "-", "(", ")", "|", "*", "+", "?", "$", `\w`, `\b`, "(?P<x>", "(?:", " ", "&", "z-a", "{2}"}
	simple := 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		expr := b.String()
		info, ok := parseRegexIfInSimpleSubset(expr)
		if !ok {
			continue
		}
		simple++
		re, err := regexp.Compile(expr)
		if err != nil {
			t.Errorf("%q is taken for valid: %v", expr, err)
			continue
		}
		for range 10 {
			text := make([]byte, r.IntN(8))
			for i := range text {
				text[i] = "abc_ -"[r.IntN(6)]
			}
			if re.Match(text) && !strings.Contains(string(text), info.literal) {
				t.Errorf("%q matches %q, which has no %q", expr, text, info.literal)
			}
		}
	}
	if simple < 1000 {
		t.Errorf("only %d expressions were simple", simple)
	}
}
