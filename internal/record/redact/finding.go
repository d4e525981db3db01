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
	Start, End int    // positions in the text, in bytes
	// Certain is set if the form is unambiguous, or the value is known. Other findings are guesses based on a name.
	Certain bool
}

// minSecretTextBytes is the minimum length of a text that can contain a secret.
const minSecretTextBytes = 6

// mergeFindings sorts findings and joins those that overlap. A joined finding has the kind of its first certain part
// or, if no part is certain, of its first part.
func mergeFindings(found []Finding) []Finding {
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
		if f.Certain && !out[last].Certain {
			out[last].Kind, out[last].Certain = f.Kind, true
		}
		out[last].End = max(out[last].End, f.End)
	}
	return out
}

// FixedTextPlaceholderMaker replaces every secret by "[redacted]". It is used where several processes write one record.
type FixedTextPlaceholderMaker struct{}

// Placeholder implements [PlaceholderMaker].
func (FixedTextPlaceholderMaker) Placeholder(string, string) string { return "[redacted]" }

// NumberedPlaceholders makes typed placeholders such as REDACTED_GITHUB_PAT_1. Equal values get equal placeholders. The
// zero value is ready to use and may be used by many goroutines.
type NumberedPlaceholders struct {
	mu    sync.Mutex
	names map[string]string // label of each secret
	count map[string]int    // number of labels of each kind
}

// Placeholder implements [PlaceholderMaker].
func (n *NumberedPlaceholders) Placeholder(kind, secret string) string {
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

// PlaceholderMaker creates the replacement for a secret.
type PlaceholderMaker interface {
	// Placeholder returns the replacement for a secret of a kind, for example "GITHUB_PAT". The replacement must not
	// contain characters that JSON escapes.
	Placeholder(kind, secret string) string
}
