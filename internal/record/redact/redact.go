// Package redact removes credentials from text and JSON. Everything that
// claudeless records uses it: the journal, the trace of MCP messages and
// imported scenarios.
//
// It finds two kinds of secrets: known secret values in any encoding (plain,
// URL, base64, part of a longer base64 text), and text that has the form of a
// secret, by the rule set of gitleaks and some additional rules.
//
// Redacted JSON stays valid JSON with the same keys in the same order.
package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
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
	// Personal is what tells whose a text is; nil = personal data stays.
	Personal *Personal
	// Label names what was hidden; nil = Hidden.
	Label Label
}

// Redactor hides secrets. It may be used by many goroutines.
type Redactor struct {
	label    Label
	known    known
	more     known     // known values of one command line
	personal *personal // nil = it stays

	mu     sync.Mutex
	shapes *shapes // made on first use: a run that records nothing does not pay
}

// New makes a redactor.
func New(o Options) *Redactor {
	r := &Redactor{label: o.Label, known: newKnown(o.Environ, o.Values)}
	if r.label == nil {
		r.label = FixedLabel{}
	}
	if o.Personal != nil {
		r.personal = newPersonal(o.Personal)
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
	shapes := r.rules()
	found := slices.Concat(r.known.find(s), r.more.find(s), shapes.find(s), encoded(s, r.known, shapes), glued(s, r.known, shapes))
	if plain := withoutEscapes(s); plain != s {
		for _, f := range shapes.find(plain) {
			for f.End > f.Start && plain[f.End-1] <= ' ' { // half of an escape
				f.End--
			}
			found = append(found, f)
		}
	}
	if r.personal != nil {
		found = append(found, r.personal.find(s)...)
	}
	return merge(found)
}

// Finder finds where the secrets of texts are. It makes its redactor when it is
// first used. It may be used by many goroutines.
type Finder struct {
	options Options

	once     sync.Once
	redactor *Redactor
}

// NewFinder makes a finder.
func NewFinder(o Options) *Finder { return &Finder{options: o} }

// Places lists where the secrets of a text begin and end, in order.
func (f *Finder) Places(text string) (places [][2]int) {
	f.once.Do(func() { f.redactor = New(f.options) })
	for _, found := range f.redactor.Find(text) {
		places = append(places, [2]int{found.Start, found.End})
	}
	return places
}

// rules are the shapes of secrets, made when they are first needed.
func (r *Redactor) rules() *shapes {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shapes == nil {
		r.shapes = newShapes()
	}
	return r.shapes
}

func (r *Redactor) text(s string) string { return r.without(s, r.Find(s)) }

// without is a text without what was found in it.
func (r *Redactor) without(s string, found []Finding) string {
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

// JSON hides the secrets in the strings of a JSON text, keys included, and the
// whole value of a string whose key looks like that of a credential. Everything
// else stays byte for byte; what is no JSON comes back as a text would.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(r.text(string(raw)))
	}
	var out []byte // nil = nothing is hidden so far
	done := 0      // what of raw is in out
	secret := false
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] != ':' && raw[i] > ' ' {
				secret = false
			}
			i++
			continue
		}
		end := stringEnd(raw, i)
		key := isKey(raw[end:])
		text := decoded(raw[i:end])
		hidden := r.value(text, secret && !key)
		if hidden != text {
			out = append(append(out, raw[done:i]...), plainjson.Text(hidden)...)
			done = end
		}
		secret = key && (nameLooksSecret(text) || text == "apiKeyHelper")
		i = end
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// value hides what is secret in a string of JSON.
func (r *Redactor) value(text string, whole bool) string {
	if whole && text != "" && !isPlaceholder(text) {
		return r.label.For("VALUE", text)
	}
	return r.String(text)
}
