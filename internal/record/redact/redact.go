// Package redact removes credentials from text and JSON. All records of claudeless use it: the journal, the trace
// of MCP messages and imported scenarios.
//
// It finds two kinds of secrets: known secret values in any encoding (plain, URL, base64, part of a longer base64
// text), and text that has the form of a secret, by the rule set of gitleaks and some additional rules.
//
// Redacted JSON stays valid JSON. Its keys stay in the same order; they change only if they contain secrets.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options define what is secret and what replaces it. The zero value replaces what looks like a secret by "[redacted]".
type Options struct {
	Environ []string // an environment ("K=V"); the values of variables whose names look secret are known secrets
	// Values are further known values. Values shorter than six bytes are ignored, because they would match too often.
	Values   []string
	Personal *PersonalData    // the personal data to redact; nil means none
	Label    PlaceholderMaker // creates the replacements; nil means FixedTextPlaceholderMaker
}

// Redactor replaces secrets. It may be used by many goroutines.
type Redactor struct {
	label       PlaceholderMaker
	knownValues knownValues
	argValues   knownValues         // known values of one command line
	personal    *personalDataFinder // nil means personal data is kept

	mu     sync.Mutex
	shapes *secretShapeFinder // created on first use, because a process that records nothing does not need it
}

// New creates a redactor for the secrets that the options describe.
func New(o Options) *Redactor {
	r := &Redactor{label: o.Label, knownValues: newKnownValues(o.Environ, o.Values)}
	r.label = cmp.Or[PlaceholderMaker](r.label, FixedTextPlaceholderMaker{})
	if o.Personal != nil {
		r.personal = newPersonalDataFinder(o.Personal)
	}
	return r
}

// String redacts a text; a text that is JSON is handled as JSON.
func (r *Redactor) String(s string) string {
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if raw := json.RawMessage(s); json.Valid(raw) {
			return string(r.JSON(raw))
		}
	}
	return r.redactText(s)
}

// Find lists the secrets of a text in order; they do not overlap.
func (r *Redactor) Find(s string) []Finding {
	if len(s) < minSecretTextBytes {
		return nil
	}
	shapes := r.getOrCreateSecretShapeFinder()
	found := slices.Concat(r.knownValues.find(s), r.argValues.find(s), shapes.find(s), findEncoded(s, r.knownValues, shapes), findConcatenatedSecrets(s, r.knownValues, shapes))
	if plain := replaceBackslashEscapesBySpaces(s); plain != s {
		for _, f := range shapes.find(plain) {
			for f.End > f.Start && plain[f.End-1] <= ' ' { // white space at the end comes from an escape
				f.End--
			}
			found = append(found, f)
		}
	}
	if r.personal != nil {
		found = append(found, r.personal.find(s)...)
	}
	return mergeFindings(found)
}

// Finder finds the positions of secrets. It creates its redactor on first use. It may be used by many goroutines.
type Finder struct {
	options Options

	once     sync.Once
	redactor *Redactor
}

// NewFinder creates a finder.
func NewFinder(o Options) *Finder { return &Finder{options: o} }

// Places returns the start and end of each secret in a text, in order.
func (f *Finder) Places(text string) (places [][2]int) {
	f.once.Do(func() { f.redactor = New(f.options) })
	for _, found := range f.redactor.Find(text) {
		places = append(places, [2]int{found.Start, found.End})
	}
	return places
}

// getOrCreateSecretShapeFinder returns the finder that finds secrets by their form. It is created on first use.
func (r *Redactor) getOrCreateSecretShapeFinder() *secretShapeFinder {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shapes == nil {
		r.shapes = newSecretShapeFinder()
	}
	return r.shapes
}

func (r *Redactor) redactText(s string) string { return r.redactFindings(s, r.Find(s)) }

func (r *Redactor) redactFindings(s string, found []Finding) string {
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	end := 0
	for _, f := range found {
		b.WriteString(s[end:f.Start])
		b.WriteString(r.label.Placeholder(f.Kind, s[f.Start:f.End]))
		end = f.End
	}
	b.WriteString(s[end:])
	return b.String()
}

// JSON redacts the secrets in all strings of a JSON text, including keys. If a key looks like a credential, its string value is redacted
// completely. Everything else is unchanged byte for byte. Input that is not JSON is handled as text.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(r.redactText(string(raw)))
	}
	var out []byte // nil means that nothing is redacted yet
	done := 0      // number of bytes of raw that were copied to out
	secret := false
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			if raw[i] != ':' && raw[i] > ' ' {
				secret = false
			}
			i++
			continue
		}
		end := offsetAfterString(raw, i)
		key := bytes.HasPrefix(bytes.TrimLeft(raw[end:], " \t\r\n"), []byte(":"))
		text := decodeString(raw[i:end])
		var hidden string
		if secret && !key && text != "" && !isPlaceholder(text) { // the key of the string makes it secret as a whole
			hidden = r.label.Placeholder("VALUE", text)
		} else {
			hidden = r.String(text)
		}
		if hidden != text {
			out = append(append(out, raw[done:i]...), plainjson.MarshalString(hidden)...)
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

// offsetAfterString returns the position after the string that begins at i.
func offsetAfterString(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func decodeString(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return string(quoted[1 : len(quoted)-1])
	}
	return s
}

// Args redacts the secrets of a command line, given as separate arguments: values of options such as --token X and -u
// user:password, repetitions of these values, and everything that String redacts.
func (r *Redactor) Args(args []string) []string {
	inside := r.withSecretValuesFromArgs(args)
	found := inside.secretsAfterOptions(args)
	out := make([]string, len(args))
	for i, arg := range args {
		switch start := secretOffsetInArg(args, i); {
		case start >= 0 && !isPlaceholder(arg[start:]):
			out[i] = arg[:start] + r.label.Placeholder("VALUE", arg[start:])
		case (strings.HasPrefix(arg, "{") || strings.HasPrefix(arg, "[")) && json.Valid([]byte(arg)):
			out[i] = inside.String(arg)
		default:
			out[i] = inside.redactFindings(arg, mergeFindings(append(inside.Find(arg), found[i]...)))
		}
	}
	return out
}

// withSecretValuesFromArgs returns a redactor that also knows the secret values in the arguments of a command line.
func (r *Redactor) withSecretValuesFromArgs(args []string) *Redactor {
	values := newKnownValues(nil, nil)
	for i, arg := range args {
		if start := secretOffsetInArg(args, i); start >= 0 {
			values.addPlainURLAndBase64Forms(arg[start:], "VALUE")
		}
	}
	return &Redactor{label: r.label, knownValues: r.knownValues, argValues: values, personal: r.personal, shapes: r.getOrCreateSecretShapeFinder()}
}

// secretOffsetInArg returns where a secret begins in args[argIndex], or -1. The secret is the value of the option before it
// (--token X, -u user:X), or of a name in the same argument (token=X).
func secretOffsetInArg(args []string, argIndex int) int {
	arg := args[argIndex]
	if argIndex > 0 && strings.HasPrefix(args[argIndex-1], "-") && !strings.HasPrefix(arg, "-") {
		name := strings.TrimLeft(args[argIndex-1], "-")
		if nameLooksSecret(name) {
			return 0
		}
		if user, _, ok := strings.Cut(arg, ":"); ok && (name == "u" || name == "user" || name == "proxy-user") {
			return len(user) + 1
		}
	}
	if name, _, ok := strings.Cut(arg, "="); ok && nameLooksSecret(strings.TrimLeft(name, "-")) && !strings.ContainsAny(name, " /?&") {
		return len(name) + 1
	}
	return -1
}

// secretsAfterOptions finds secrets after options of well-known commands, such as sshpass -p X. The result is keyed by
// the index of the argument. It searches the arguments as one line, in which each argument is one word.
func (r *Redactor) secretsAfterOptions(args []string) map[int][]Finding {
	const inWord = '_' // replaces characters that would end a word
	var line []byte
	starts := make([]int, len(args))
	for i, arg := range args {
		starts[i] = len(line)
		for _, c := range []byte(arg) {
			if c <= ' ' || strings.IndexByte("\"'|;&", c) >= 0 {
				c = inWord
			}
			line = append(line, c)
		}
		line = append(line, ' ')
	}
	found := map[int][]Finding{}
	for _, f := range r.getOrCreateSecretShapeFinder().findWithRules(string(line), func(r rule) bool { return r.isCommandOption }) {
		for i, arg := range args {
			if start, end := max(f.Start-starts[i], 0), min(f.End-starts[i], len(arg)); start < end {
				found[i] = append(found[i], Finding{Kind: f.Kind, Start: start, End: end, Certain: f.Certain})
			}
		}
	}
	return found
}
