package claudecode

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

func eventKeysHiddenInEnvironment(e Environment) []nameWithFirstVersion {
	if !e.usesAnthropicAPI() {
		return nil
	}
	return []nameWithFirstVersion{{"system/init original_cwd", ""}, {"system/init additional_directories", ""}}
}

// JSONKeyFilter removes from JSON objects the keys that a version does not have yet. A nil JSONKeyFilter removes nothing.
type JSONKeyFilter struct {
	paths       map[string][][]string // paths of keys by event type, with or without subtype
	quotedWords [][]byte              // last key of each path, in quotes; an object without any of them needs no change
}

// FilterOfEventKeysMissingInVersion returns the filter for events; nil means that the version has all keys.
func (p Profile) FilterOfEventKeysMissingInVersion() *JSONKeyFilter {
	return p.newKeyFilter(tableOfFirstVersions("event keys"), eventKeysHiddenInEnvironment(p.env))
}

// TranscriptFilter returns the filter for lines of a transcript; nil means that the version has all keys.
func (p Profile) TranscriptFilter() *JSONKeyFilter {
	return p.newKeyFilter(tableOfFirstVersions("transcript keys"), nil)
}

// newKeyFilter returns a filter that removes the keys in rows that only later versions have, and all keys in hidden.
func (p Profile) newKeyFilter(rows, hidden []nameWithFirstVersion) *JSONKeyFilter {
	rows = slices.DeleteFunc(rows, func(r nameWithFirstVersion) bool { return p.isAtLeast(r.firstVersion) })
	var f *JSONKeyFilter
	for _, r := range slices.Concat(rows, hidden) {
		if f == nil {
			f = &JSONKeyFilter{paths: map[string][][]string{}}
		}
		kind, path, _ := strings.Cut(r.name, " ")
		f.paths[kind] = append(f.paths[kind], strings.Split(path, "."))
		word := path[strings.LastIndexByte(path, '.')+1:]
		if path == "" {
			word = kind
		}
		f.quotedWords = append(f.quotedWords, []byte(`"`+word+`"`))
	}
	return f
}

// Apply returns a JSON object without the keys that the version does not have; nil means the version does not write the
// object at all. Values that are not objects, or need no change, are returned unchanged.
func (f *JSONKeyFilter) Apply(object []byte) (filtered []byte) {
	if f == nil || !slices.ContainsFunc(f.quotedWords, func(name []byte) bool { return bytes.Contains(object, name) }) {
		return object
	}
	o, err := plainjson.Parse(object)
	if err != nil {
		return object
	}
	kind := plainjson.DecodeIgnoringErrors[string](o.Get("type"))
	changed := false
	for _, path := range slices.Concat(f.paths[kind], f.paths[kind+"/"+plainjson.DecodeIgnoringErrors[string](o.Get("subtype"))]) {
		if path[0] == "" {
			return nil
		}
		shorter, removed := removeKey(o, path)
		o, changed = shorter, changed || removed
	}
	if !changed {
		return object
	}
	return o.Raw()
}

// removeKey returns the object without the key at a path; false means no such key.
func removeKey(object plainjson.Object, path []string) (plainjson.Object, bool) {
	removed := false
	for _, m := range slices.Clone(object) {
		switch {
		case path[0] != "*" && path[0] != m.Key:
		case len(path) == 1:
			object, removed = object.Delete(m.Key), true
		default:
			if shorter, ok := removeKey(plainjson.DecodeIgnoringErrors[plainjson.Object](m.Value), path[1:]); ok {
				object, removed = object.Set(m.Key, shorter.Raw()), true
			}
		}
	}
	return object, removed
}

// A Clock returns the current time.
type Clock interface{ Now() time.Time }

// EventWriter returns a writer that removes keys of events that the version lacks. If clock is not nil, it also adds the time of
// writing that the version has. Each call of Write must pass one JSON object, with its separators.
func (p Profile) EventWriter(w io.Writer, clock Clock) io.Writer {
	if !p.Has(FeatureEventsSayWhenTheyWereWritten) {
		clock = nil
	}
	return &eventWriter{p.FilterOfEventKeysMissingInVersion(), w, clock}
}

type eventWriter struct {
	filter *JSONKeyFilter
	output io.Writer
	clock  Clock // nil means that no time is added
}

// Write changes and writes jsonObjectWithSeparators. It returns the length of its argument, not the number of bytes written.
func (w *eventWriter) Write(jsonObjectWithSeparators []byte) (int, error) {
	start := bytes.IndexByte(jsonObjectWithSeparators, '{')
	end := bytes.LastIndexByte(jsonObjectWithSeparators, '}') + 1
	if start < 0 || end <= start {
		return w.output.Write(jsonObjectWithSeparators)
	}
	object := w.withTimeOfWriting(w.filter.Apply(jsonObjectWithSeparators[start:end]))
	if len(object) == end-start {
		return w.output.Write(jsonObjectWithSeparators)
	}
	if _, err := w.output.Write(slices.Concat(jsonObjectWithSeparators[:start], object, jsonObjectWithSeparators[end:])); err != nil {
		return 0, err
	}
	return len(jsonObjectWithSeparators), nil
}

func (w *eventWriter) withTimeOfWriting(object []byte) []byte {
	untimed := []string{"", "user", "stream_event", "control_request", "control_response", "control_cancel_request", "keep_alive", "transcript_mirror"}
	event := plainjson.DecodeIgnoringErrors[struct{ Type, Subtype, Timestamp string }](object)
	if w.clock == nil || event.Timestamp != "" || event.Subtype == "thinking_tokens" || slices.Contains(untimed, event.Type) {
		return object
	}
	return slices.Concat(object[:len(object)-1], []byte(`,"written_at":"`+w.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z")+`"}`))
}

// BetaHeaderConditions determine the beta headers of a request.
type BetaHeaderConditions struct {
	Model           string // without date and provider
	CanThink        bool   // the model may think
	EffortPerTurn   bool   // the effort can change from turn to turn
	SystemReminders bool   // reminders are separate messages
	Bare            bool   // --bare
	HasToolSearch   bool   // the model finds some tools only with ToolSearch
	HasEffort       bool   // the model has effort levels
	ThinkingUpdates bool   // thinking is reported while it is written
	ChecksCalls     bool   // a server checks the calls of the model
	CheckedCalls    bool   // a server checks the calls of the model, or has checked earlier calls
	MillionTokens   bool   // the flag --betas asks for a context of a million tokens
	FastMode        bool   // fast mode is on
}

// UsesDefaultURL reports whether requests go to the vendor's own address.
func (p Profile) UsesDefaultURL() bool { return p.env.UsesDefaultURL }

// These beta headers announce optional parts of a request.
const (
	betaTokenCount   = "thinking-token-count-2026-05-13"
	BetaToolSearch   = "advanced-tool-use-2025-11-20"
	BetaThinkingShow = "thinking-display-updates-2026-08-18"
)

// MaxTokensWithoutStreaming limits the length of a reply that is not streamed (observed with 2.1.330).
const MaxTokensWithoutStreaming = 64_000

// BetasOmittedOnRetry returns the beta headers that the n-th repetition of a refused request leaves out, with the parts that they announce
// (observed with 2.1.330).
func BetasOmittedOnRetry(repetition int) []string {
	return map[int][]string{
		1: {betaTokenCount}, 2: {betaTokenCount, BetaThinkingShow}, 3: {BetaToolSearch},
		4: {BetaToolSearch, betaTokenCount}, 5: {BetaToolSearch, betaTokenCount, BetaThinkingShow},
	}[repetition]
}

// RequestBetas returns the beta headers of requests to the model (observed with 2.1.330).
func (p Profile) RequestBetas(conditions BetaHeaderConditions) []string {
	if !conditions.CanThink {
		return []string{"claude-code-20250219"}
	}
	betas := []string{"claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27"}
	if conditions.Model == "claude-haiku-4-5" || conditions.Model == "claude-haiku-5-5" {
		betas = slices.Concat(betas[1:], betas[:1])
	}
	if hasOAuthCredential(p.env) {
		betas = slices.Insert(betas, 1, "oauth-2025-04-20")
	}
	for _, row := range []struct {
		applies bool
		name    string
	}{
		{p.UsesDefaultURL(), "prompt-caching-scope-2026-01-05"},
		{conditions.EffortPerTurn, "per-turn-control-2026-07-01"},
		{conditions.SystemReminders && !conditions.Bare && conditions.Model != "claude-sonnet-5", "mid-conversation-tool-changes-2026-07-01"},
		{p.UsesDefaultURL() && (p.env.TokenSource != "" || p.env.Credential == CredentialNone), "tool-provenance-2026-10-26"},
		{conditions.MillionTokens, "context-1m-2025-08-07"},
		{true, betaTokenCount},
		{conditions.HasToolSearch, BetaToolSearch},
		{p.UsesDefaultURL(), "mid-conversation-system-clear-at-2026-08-21"},
		{conditions.HasEffort, "effort-2025-11-24"},
		{p.UsesDefaultURL(), "thinking-binding-controls-2026-08-01"},
		{conditions.CheckedCalls, "dangerous-tool-use-2026-09-03"},
		{conditions.ThinkingUpdates, BetaThinkingShow},
		{p.env.PromptCacheTTL() == "1h", "extended-cache-ttl-2025-04-11"},
		{p.UsesDefaultURL(), "cache-diagnosis-2026-04-07"},
		{conditions.FastMode, "fast-mode-2026-02-01"},
		{conditions.ChecksCalls, "afk-mode-2026-01-31"},
	} {
		if row.applies {
			betas = append(betas, row.name)
		}
	}
	return betas
}
