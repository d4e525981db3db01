// Package redact hides what can hold a credential in text and JSON: the one
// list of it for every record that this program writes (the capture file, the
// trace of MCP messages, imported scenarios).
//
// Two things are looked for: values that are known to be secret, however they
// are encoded (plain, URL, base64, as part of a longer base64 text), and shapes
// of secrets, by the rule set of gitleaks and a few rules beside it.
//
// Its one invariant: what it returns has the form of what it was given; JSON
// stays JSON with the same keys in the same order. It must not know what the
// text is for, and it remembers no text but the labels it has given out.
package redact

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Options says what is secret and how it is called afterwards. The zero value
// finds shapes alone and calls them "[redacted]".
type Options struct {
	// Environ is an environment, as "K=V": values of variables whose names look
	// secret are known values.
	Environ []string
	// Values are further known values. Values shorter than six bytes would hide
	// half of every text and are left alone.
	Values []string
	// Label names what was hidden; nil = Hidden.
	Label Label
}

// Label gives the text that stands in the place of a secret.
type Label interface {
	// For is the text for a secret of a kind such as "GITHUB_PAT". It holds
	// nothing that JSON would escape.
	For(kind, secret string) string
}

// Redactor hides secrets. It may be used by many goroutines.
type Redactor struct {
	label Label
	known known

	mu     sync.Mutex
	shapes *shapes // made on first use: a run that records nothing does not pay
}

// Finding is one secret in a text.
type Finding struct {
	Kind       string // upper-case words, as in placeholders
	Start, End int    // bytes of the text
	// Sure is set where nothing but a secret looks so, or where the value is
	// known; the other findings are guesses from the name beside a value.
	Sure bool
}

// New makes a redactor.
func New(o Options) *Redactor {
	r := &Redactor{label: o.Label, known: newKnown(o.Environ, o.Values)}
	if r.label == nil {
		r.label = Hidden{}
	}
	return r
}

// String hides the secrets of a text; a text that is JSON is taken as such.
func (r *Redactor) String(s string) string {
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if raw := json.RawMessage(s); json.Valid(raw) {
			return string(r.JSON(raw))
		}
	}
	return r.text(s)
}

// Find lists the secrets of a text in its order; they do not overlap.
func (r *Redactor) Find(s string) []Finding {
	if len(s) < shortest {
		return nil
	}
	r.mu.Lock()
	if r.shapes == nil {
		r.shapes = newShapes()
	}
	shapes := r.shapes
	r.mu.Unlock()
	return merge(slices.Concat(r.known.find(s), shapes.find(s), r.encoded(s, shapes)))
}

// shortest is the length from which a text can hold a secret.
const shortest = 6

func (r *Redactor) text(s string) string {
	found := r.Find(s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	end := 0
	for _, f := range found {
		b.WriteString(s[end:f.Start])
		b.WriteString(r.label.For(f.Kind, s[f.Start:f.End]))
		end = f.End
	}
	b.WriteString(s[end:])
	return b.String()
}

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
