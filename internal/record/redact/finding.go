package redact

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
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

// FixedLabel calls every secret "[redacted]": for records of one process among
// many, which cannot agree on numbers.
type FixedLabel struct{}

// For implements Label.
func (FixedLabel) For(string, string) string { return "[redacted]" }

// Numbered gives typed placeholders, REDACTED_GITHUB_PAT_1: the same value has
// the same name wherever it stands, so that what was equal stays equal. The
// zero value works; it may be used by many goroutines.
type Numbered struct {
	mu    sync.Mutex
	names map[string]string // by secret
	count map[string]int    // by kind
}

// For implements Label.
func (n *Numbered) For(kind, secret string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.names[secret]; ok {
		return name
	}
	if n.names == nil {
		n.names, n.count = map[string]string{}, map[string]int{}
	}
	n.count[kind]++
	name := "REDACTED_" + kind + "_" + strconv.Itoa(n.count[kind])
	n.names[secret] = name
	return name
}

// Label gives the text that stands in the place of a secret.
type Label interface {
	// For is the text for a secret of a kind such as "GITHUB_PAT". It holds
	// nothing that JSON would escape.
	For(kind, secret string) string
}
