package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// random makes matchers and texts of few letters, so that many match.
type random struct{ *rand.Rand }

func (r random) word(most int) string {
	const letters = "aabbc é\xff/\ufffd"
	var b strings.Builder
	for range r.IntN(most) {
		at := r.IntN(len(letters))
		b.WriteString(letters[at : at+1]) // invalid characters, too
	}
	return b.String()
}

func (r random) text(tb testing.TB, depth int) Pattern {
	tb.Helper()
	must := func(t Pattern, err error) Pattern {
		if err != nil {
			return Any() // a pattern that cannot be loaded
		}
		return t
	}
	parts := func() []Pattern {
		all := make([]Pattern, r.IntN(3))
		for i := range all {
			all[i] = r.text(tb, depth-1)
		}
		return all
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	kind := r.IntN(9)
	if depth == 0 {
		kind = r.IntN(5)
	}
	switch kind {
	case 0:
		return Exact(r.word(10))
	case 1:
		return Contains(r.word(8))
	case 2:
		return must(Regex(pick("", "(?i)", "^") + r.word(6) + pick("", "(?P<g>.)", ".*", "+", "*", "?", "(x|a)", "{0,2}", "|ab", "[ab]", `\w`) + r.word(6) + pick("", "$", "|b")))
	case 3:
		return must(Glob(r.word(5) + pick("*", "?", "**", "/**/", "[ab]", "[!a]", "**/") + r.word(5) + pick("", "*", "/**")))
	case 4:
		return Any()
	case 5:
		return All(parts()...)
	case 6:
		return AnyOf(parts()...)
	default:
		return Not(r.text(tb, depth-1))
	}
}

// TestIndexFindsWhatMatches: the index finds every matcher that matches, in the order of the matchers.
func TestIndexFindsWhatMatches(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	left, tried := 0, 0
	for range 400 {
		texts := make([]Pattern, r.IntN(60))
		for i := range texts {
			texts[i] = r.text(t, 2)
		}
		x := NewPatternIndex(texts)
		for range 25 {
			s := r.word(40)
			got := slices.Collect(x.Candidates(s))
			if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Fatalf("%q: %v is no order", s, got)
			}
			for i, m := range texts {
				if _, ok := m.Match(s); ok && !slices.Contains(got, i) {
					t.Fatalf("%q: matcher %d (%#v) was left out", s, i, m.m)
				}
			}
			left, tried = left+len(texts)-len(got), tried+len(texts)
		}
	}
	if left*5 < tried {
		t.Errorf("of %d matchers only %d were left out", tried, left)
	}
}

// TestIndexNarrows: a matcher with a literal is a candidate only if the text contains the literal.
func TestIndexNarrows(t *testing.T) {
	var texts []Pattern
	for i := range 1000 {
		texts = append(texts, Contains(fmt.Sprintf("prompt %d end", i)))
	}
	texts = append(texts, Any())
	x := NewPatternIndex(texts)
	for s, most := range map[string]int{"prompt 7 end": 2, "prompt 777 end": 2, "another": 1, "": 1, strings.Repeat("prompt 123 end ", 1000): 2} {
		if got := slices.Collect(x.Candidates(s)); len(got) > most || !slices.Contains(got, 1000) {
			t.Errorf("%.30q: %d candidates", s, len(got))
		}
	}
	for range x.Candidates("prompt 7 end") {
		break // a goroutine that has found a match returns
	}
}

func BenchmarkIndex(b *testing.B) {
	texts := make([]Pattern, 10_000)
	for i := range texts {
		texts[i] = Contains(fmt.Sprintf("prompt %d end", i))
	}
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			NewPatternIndex(texts)
		}
	})
	x := NewPatternIndex(texts)
	for _, size := range []int{10, 10_000} {
		s := strings.Repeat("words ", size/6) + "prompt 1234 end"
		b.Run(fmt.Sprintf("find in %d", len(s)), func(b *testing.B) {
			for b.Loop() {
				for range x.Candidates(s) {
				}
			}
		})
	}
	b.Run("one by one", func(b *testing.B) {
		s := "message 0"
		for b.Loop() {
			for i := range texts {
				texts[i].Match(s)
			}
		}
	})
}
