package redact

import (
	"cmp"
	"slices"
)

// Finding is one secret in a text.
type Finding struct {
	Kind       string // upper-case words, as in placeholders
	Start, End int    // bytes of the text
	// Sure is set where nothing but a secret looks so, or where the value is
	// known; the other findings are guesses from the name beside a value.
	Sure bool
}

// shortest is the length from which a text can hold a secret.
const shortest = 6

// merge orders findings and joins those that overlap: the first one's name, a
// sure one's before a guess.
func merge(found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	out := found[:0]
	for _, f := range found {
		last := len(out) - 1
		if last < 0 || f.Start >= out[last].End {
			out = append(out, f)
			continue
		}
		if f.Sure && !out[last].Sure {
			out[last].Kind, out[last].Sure = f.Kind, true
		}
		out[last].End = max(out[last].End, f.End)
	}
	return out
}
