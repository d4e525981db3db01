package redact

import (
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The keywords and conditions of a rule do not lose matches. The texts are generated from the expression of each rule.
func TestGatesLoseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	s := newSecretShapeFinder()
	for n := range s.rules {
		re, err := syntax.Parse(s.rules[n].expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range 40 {
			text := "and so on, " + example(re, r) + "\nand more"
			if !slices.ContainsFunc(strings.Split(s.rules[n].keywords, "|"), func(w string) bool { return strings.Contains(strings.ToLower(text), w) }) {
				text += s.rules[n].keywords // such a keyword may be anywhere in the text
			}
			whole := s.findRuleMatches(text, n, [2]int{0, len(text)})
			found += len(whole)
			near := mergeFindings(s.find(text))
			for _, w := range whole {
				if !slices.ContainsFunc(near, func(f Finding) bool { return f.Start <= w.Start && w.End <= f.End }) {
					t.Errorf("%s is not found near its keywords %s: %q in %q", s.rules[n].id, s.rules[n].keywords, text[w.Start:w.End], text)
					break
				}
			}
		}
		if found == 0 && !slices.Contains(neverFound[:], s.rules[n].id) {
			t.Errorf("%s: no example of it is found at all", s.rules[n].id)
		}
	}
}

// A rule for a name with a value is compiled without its beginning; its matches begin at the same positions.
func TestNamesAreFoundBackwards(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 7))
	s := newSecretShapeFinder()
	tried := 0
	for n, rule := range s.rules {
		if !strings.HasPrefix(rule.expr, gitleaksPatternOfNameBeforeKeyword) {
			continue
		}
		re, err := syntax.Parse(rule.expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		whole := regexp.MustCompile(rule.expr)
		for range 20 {
			text := "and so on, (" + example(re, r) + "\nand.more_" + example(re, r)
			want := whole.FindAllStringSubmatchIndex(text, -1)
			got := s.compiledPattern(n).FindAllStringSubmatchIndex(text, -1)
			for _, m := range got {
				m[0] = startOfNameContaining(text, m[0])
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s in %q: %s", rule.id, text, d)
			}
			tried += len(want)
		}
	}
	if tried == 0 {
		t.Error("no rule was tried")
	}
}

// neverFound lists the rules whose generated examples are not random enough.
var neverFound = [...]string{"assignment"}

// example is a text that an expression matches.
func example(re *syntax.Regexp, r *rand.Rand) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for {
			i := r.IntN(len(re.Rune)/2) * 2
			lo, hi := re.Rune[i], min(re.Rune[i+1], 0x7e)
			if lo <= hi {
				if c := lo + rune(r.IntN(int(hi-lo)+1)); c >= ' ' || c == '\n' || c == '\t' {
					return string(c)
				}
			}
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "." // instead of any character
	case syntax.OpCapture:
		return example(re.Sub[0], r)
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(example(sub, r))
		}
		return b.String()
	case syntax.OpAlternate:
		return example(re.Sub[r.IntN(len(re.Sub))], r)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		from, to := 0, 1
		switch {
		case re.Op == syntax.OpStar:
			to = 4
		case re.Op == syntax.OpPlus:
			from, to = 1, 12
		case re.Op == syntax.OpRepeat && re.Max < 0:
			from, to = re.Min, re.Min+20
		case re.Op == syntax.OpRepeat:
			from, to = re.Min, re.Max
		}
		var b strings.Builder
		for range from + r.IntN(to-from+1) {
			b.WriteString(example(re.Sub[0], r))
		}
		return b.String()
	default: // places, not text
		return ""
	}
}

// Addresses of machines are personal data, except those of this machine and of examples.
func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"ping 93.184.216.34":          "93.184.216.34",
		"from 93.184.216.34.":         "93.184.216.34",
		"127.0.0.1":                   "",
		"127.8.8.8":                   "",
		"0.0.0.0":                     "",
		"224.0.0.1":                   "",
		"255.255.255.255":             "",
		"255.255.255.254":             "255.255.255.254",
		"1.2.3.4":                     "1.2.3.4",
		"1.2.3.4.5":                   "",
		"1.2.3":                       "",
		"300.1.1.1":                   "",
		"version 1.2.3.4-rc1":         "",
		"a1.2.3.4":                    "",
		"10.0.0.1 and 127.0.0.1, too": "10.0.0.1",
	} {
		var got strings.Builder
		for _, f := range findUnicastNonLoopbackIPv4(text) {
			got.WriteString(text[f.Start:f.End])
		}
		if got.String() != want {
			t.Errorf("addresses in %q: %q, want %q", text, got.String(), want)
		}
	}
}
