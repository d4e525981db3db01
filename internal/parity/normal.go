// Package parity makes two recorded runs comparable.
//
// It replaces only values that differ in every run (ids, times, durations,
// costs, paths, versions). Equal values within a run get equal replacements.
package parity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options describe a run. The zero value is ready to use.
type Options struct {
	// Paths maps directories to placeholders such as "<cwd>".
	Paths map[string]string
}

// Normaliser replaces values that differ between runs. It numbers ids by first
// occurrence, so each run needs its own. It is not safe for concurrent use.
type Normaliser struct {
	paths []string // longest first, each followed by its placeholder
	ids   map[string]string
	next  *int // last number given to an id; two normalisers may share it
}

// New creates a Normaliser.
func New(o Options) *Normaliser {
	n := &Normaliser{ids: map[string]string{}, next: new(int)}
	var from []string
	for p := range o.Paths {
		if p != "" {
			from = append(from, p)
		}
	}
	slices.SortFunc(from, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, p := range from {
		n.paths = append(n.paths, p, o.Paths[p])
	}
	return n
}

// ID returns the placeholder of an id; equal ids get equal placeholders.
func (n *Normaliser) ID(id string) string {
	if n.ids[id] == "" {
		*n.next++
		n.ids[id] = "<id " + strconv.Itoa(*n.next) + ">"
	}
	return n.ids[id]
}

type volatilePattern struct {
	expr        *regexp.Regexp
	placeholder string // replacement; "" means the text is an id, which is numbered
}

// textPatterns are replaced anywhere in a text.
var textPatterns = sync.OnceValue(func() []volatilePattern {
	return []volatilePattern{
		{regexp.MustCompile(`/tmp/claude-\d+/[^\s"'<>]*`), "<path>"},
		{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?`), "<time>"},
		{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), ""},
		{regexp.MustCompile(`\b(?:msg|req|toolu|srvtoolu|run|call)_[A-Za-z0-9]{8,}\b`), ""},
		{regexp.MustCompile(`\ba[0-9a-f]{16}\b`), ""},
		{regexp.MustCompile(`\bfirst after \d+ ms, none in the final \d+ ms\b`), "<wait>"},
		{regexp.MustCompile(`\bblob-(\d{10,}-[0-9a-z]+)\b`), ""},
		{regexp.MustCompile(`(?:\btool-results/|/tasks/|<task-id>|\bID: |\btask: |"task_id":")(b[0-9a-z]{8})\b`), ""},
		{regexp.MustCompile(`(Total duration \((?:API|wall)\):\s+)(?:\d+h )?(?:\d+m )?\d+s`), "${1}<time>"},
		{regexp.MustCompile(`\bREDACTED_ID_\d+\b`), ""},
		{regexp.MustCompile(`((?:duration_ms|tokens|total_tokens|tool_uses|subagent_tokens)["']?\s*[:>=]\s*)\d+(?:\.\d+)?`), "${1}<n>"},
		{regexp.MustCompile(`\$\d+\.\d{2,}`), "<cost>"},
		{regexp.MustCompile(`/cc-socks/\d+`), "/cc-socks/<pid>"},
	}
})

// Text replaces values in a text.
func (n *Normaliser) Text(s string) string {
	for i := 0; i < len(n.paths); i += 2 {
		s = strings.ReplaceAll(s, n.paths[i], n.paths[i+1])
	}
	for _, shape := range textPatterns() {
		if shape.placeholder == "" {
			s = n.numberMatches(shape.expr, s)
			continue
		}
		s = shape.expr.ReplaceAllString(s, shape.placeholder)
	}
	return s
}

// numberMatches replaces the ids in s by placeholders. An id is the last group of a match, or the whole match.
func (n *Normaliser) numberMatches(expr *regexp.Regexp, s string) string {
	var b strings.Builder
	end := 0
	for _, at := range expr.FindAllStringSubmatchIndex(s, -1) {
		from, to := at[len(at)-2], at[len(at)-1]
		b.WriteString(s[end:from] + n.ID(s[from:to]))
		end = to
	}
	return b.String() + s[end:]
}

// keyPlaceholders has the word that replaces the value of each key. If the word is empty, the value is numbered like an
// id.
var keyPlaceholders = [...]struct{ key, word string }{
	{"uuid", ""},
	{"session_id", ""},
	{"sessionId", ""},
	{"parentUuid", ""},
	{"request_id", ""},
	{"requestId", ""},
	{"tool_use_id", ""},
	{"parent_tool_use_id", ""},
	{"promptId", ""},
	{"agentId", ""},
	{"agent_id", ""},
	{"message_id", ""},
	{"slug", ""},
	{"run_id", ""},
	{"runId", ""},
	{"task_id", ""},
	{"taskId", ""},
	{"backgroundTaskId", ""},
	{"requestDigest", ""}, // a hash over ids and times
	{"tail", ""},          // a list of hashes
	{"hash", ""},
	{"shapeHash", ""},
	{"contentHash", ""},
	{"timestamp", "<time>"},
	{"sentAtMs", "<time>"},
	{"time", "<time>"},
	{"date", "<time>"}, // midnight may fall between the lanes
	{"startTime", "<time>"},
	{"end_time", "<time>"},
	{"endTime", "<time>"},
	{"duration_ms", "<ms>"},
	{"seconds_since_last_response", "<s>"},
	{"duration_api_ms", "<ms>"},
	{"ms", "<ms>"},
	{"ttft_ms", "<ms>"},
	{"ttft_stream_ms", "<ms>"},
	{"time_to_request_ms", "<ms>"},
	{"request_sent_wall_ms", "<time>"},
	{"first_content_frame_ms", "<ms>"},
	{"durationMs", "<ms>"},
	{"totalDurationMs", "<ms>"},
	{"retryInMs", "<ms>"},
	{"retry_delay_ms", "<ms>"},
	{"thinking_duration_ms", "<ms>"},
	{"toolInputStreamMs", "<ms>"},
	{"thinkingDurationMs", "<ms>"},
	{"totalAPIDuration", "<ms>"},
	{"totalAPIDurationWithoutRetries", "<ms>"},
	{"totalDuration", "<ms>"},
	{"totalToolDuration", "<ms>"},
	{"total_cost_usd", "<cost>"},
	{"costUSD", "<cost>"},
	{"totalCostUSD", "<cost>"},
	{"version", "<version>"},
	{"claude_code_version", "<version>"},
	{"pid", "<pid>"},
	{"ppid", "<pid>"},
}

// JSON replaces values in the strings of a JSON text and in the values of keys that hold ids, times, durations,
// costs and versions. Keys are sorted. Input that is not JSON is handled as text.
func (n *Normaliser) JSON(raw json.RawMessage) string {
	var b strings.Builder
	if err := n.writeValue(&b, raw); err != nil {
		return n.Text(string(raw))
	}
	return b.String()
}

func (n *Normaliser) writeValue(b *strings.Builder, raw json.RawMessage) error {
	switch plainjson.TypeOf(raw) {
	case "object":
		return n.writeObject(b, raw)
	case "array":
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
		b.WriteByte('[')
		for i, item := range items {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := n.writeValue(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case "string":
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		b.WriteString(strconv.Quote(n.Text(s)))
	default:
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		same, err := json.Marshal(v) // 1.0 and 1 are the same number
		if err != nil {
			return err
		}
		b.Write(same)
	}
	return nil
}

func (n *Normaliser) writeObject(b *strings.Builder, raw json.RawMessage) error {
	o, err := plainjson.Parse(raw)
	if err != nil {
		return err
	}
	slices.SortStableFunc(o, func(x, y plainjson.Member) int { return strings.Compare(x.Key, y.Key) })
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(m.Key) + ":")
		if word, ok := n.keyPlaceholder(m); ok {
			b.WriteString(word)
			continue
		}
		if err := n.writeValue(b, m.Value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

func (n *Normaliser) keyPlaceholder(m plainjson.Member) (word string, ok bool) {
	if kind := plainjson.TypeOf(m.Value); kind == "object" || kind == "array" || kind == "null" {
		return "", false
	}
	word, ok = PlaceholderFor(m.Key)
	if ok && word == "" {
		word = n.ID(strings.Trim(string(m.Value), `"`))
	}
	return word, ok
}

// PlaceholderFor returns the placeholder for values of a key; empty means an id.
func PlaceholderFor(key string) (word string, ok bool) {
	for _, k := range keyPlaceholders {
		if k.key == key {
			return k.word, true
		}
	}
	return "", false
}

func (n *Normaliser) findIDs(s string) []string {
	var ids []string
	for _, shape := range textPatterns() {
		if shape.placeholder == "" {
			for _, m := range shape.expr.FindAllStringSubmatch(s, -1) {
				ids = append(ids, m[len(m)-1])
			}
		}
	}
	return ids
}

// normaliserPair holds the normalisers of two recordings. Ids that first occur at the same position get the same
// number. An id that only one side has does not shift the other numbers.
type normaliserPair struct{ ours, theirs *Normaliser }

func newNormaliserPair(ours, theirs *Recording) *normaliserPair {
	p := &normaliserPair{New(Options{Paths: ours.Paths}), New(Options{Paths: theirs.Paths})}
	p.theirs.next = p.ours.next
	return p
}

// numberPair walks two values in parallel and numbers their ids.
func (p *normaliserPair) numberPair(a, b any, key string) {
	word, keyed := PlaceholderFor(key)
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for _, k := range keysOf(x) {
			if v, ok := y[k]; ok {
				p.numberPair(x[k], v, k)
			}
		}
	case []any:
		y, _ := b.([]any)
		for i := range min(len(x), len(y)) {
			p.numberPair(x[i], y[i], key)
		}
	default:
		if keyed && word == "" && isScalar(a) && isScalar(b) {
			p.numberEqually(fmt.Sprint(a), fmt.Sprint(b))
			return
		}
		s, _ := a.(string)
		t, _ := b.(string)
		left, right := p.ours.findIDs(s), p.theirs.findIDs(t)
		if len(left) == len(right) {
			for i := range left {
				p.numberEqually(left[i], right[i])
			}
		}
	}
}

// numberEqually gives two ids the same number, unless one of them already has one.
func (p *normaliserPair) numberEqually(a, b string) {
	if p.ours.ids[a] == "" && p.theirs.ids[b] == "" {
		p.theirs.ids[b] = p.ours.ID(a)
	}
}

// unlinkLine removes a line that only one side has from the chain of its transcript: the next line gets the line's
// parent.
func (n *Normaliser) unlinkLine(line any) {
	object, _ := line.(map[string]any)
	id, parent := textOf(object["uuid"]), textOf(object["parentUuid"])
	if id != "" && parent != "" && n.ids[id] == "" {
		n.ids[id] = n.ID(parent)
	}
}

func (n *Normaliser) formatValue(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if s, ok := v.(string); ok {
		return n.Text(s)
	}
	return n.JSON(raw)
}

func (n *Normaliser) formatList(key string, list []any) string {
	if word, ok := PlaceholderFor(key); !ok || word != "" {
		return n.formatValue(list)
	}
	var ids []string
	for _, v := range list {
		ids = append(ids, n.ID(fmt.Sprint(v)))
	}
	return strings.Join(ids, " ")
}
