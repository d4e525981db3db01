// Package parity reads parity cases, compares the recordings of two programs that ran a case, and reports the differences.
//
// Before it compares, it replaces values that differ in every run (ids, times, durations, costs, paths, versions). Equal
// values within a run get equal replacements.
package parity

import (
	"cmp"
	_ "embed" // for the tables
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Normaliser replaces values that differ between runs. It numbers ids by first
// occurrence, so each run needs its own. It is not safe for concurrent use.
type Normaliser struct {
	paths []string // longest first, each followed by its placeholder
	ids   map[string]string
	next  *int // last number given to an id; the two normalisers of a pair share it
}

// NewNormaliser creates a Normaliser. The paths of directories are replaced by placeholders such as "<cwd>".
func NewNormaliser(paths map[string]string) *Normaliser {
	n := &Normaliser{ids: map[string]string{}, next: new(int)}
	var from []string
	for p := range paths {
		if p != "" {
			from = append(from, p)
		}
	}
	slices.SortFunc(from, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, p := range from {
		n.paths = append(n.paths, p, paths[p])
	}
	return n
}

// NumberedIDPlaceholder returns the placeholder of an id; equal ids get equal placeholders.
func (n *Normaliser) NumberedIDPlaceholder(id string) string {
	if n.ids[id] == "" {
		*n.next++
		n.ids[id] = "<id " + strconv.Itoa(*n.next) + ">"
	}
	return n.ids[id]
}

type volatilePattern struct {
	expr        *regexp.Regexp
	placeholder string // what replaces the text; "" means the text is an id, which gets a numbered placeholder
}

// volatileTextTable has rows of a placeholder and an expression.
//
//go:embed volatile_texts.txt
var volatileTextTable string

// volatileTextPatterns match texts that differ in every run. They are replaced anywhere in a string.
var volatileTextPatterns = sync.OnceValue(func() []volatilePattern {
	var patterns []volatilePattern
	for row := range strings.Lines(volatileTextTable) {
		placeholder, expr, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		patterns = append(patterns, volatilePattern{regexp.MustCompile(expr), placeholder})
	}
	return patterns
})

// Text replaces values in a text. A text that equals a known id is replaced by the placeholder of this id.
func (n *Normaliser) Text(s string) string {
	if id := n.ids[s]; id != "" {
		return id
	}
	for i := 0; i < len(n.paths); i += 2 {
		s = strings.ReplaceAll(s, n.paths[i], n.paths[i+1])
	}
	for _, shape := range volatileTextPatterns() {
		if shape.placeholder == "" {
			s = n.replaceMatchesByNumberedIDs(shape.expr, s)
			continue
		}
		s = shape.expr.ReplaceAllString(s, shape.placeholder)
	}
	return s
}

// replaceMatchesByNumberedIDs replaces ids in s by placeholders. The id is the last group of expr or, without groups, the match.
func (n *Normaliser) replaceMatchesByNumberedIDs(expr *regexp.Regexp, s string) string {
	var b strings.Builder
	end := 0
	for _, at := range expr.FindAllStringSubmatchIndex(s, -1) {
		from, to := at[len(at)-2], at[len(at)-1]
		b.WriteString(s[end:from] + n.NumberedIDPlaceholder(s[from:to]))
		end = to
	}
	return b.String() + s[end:]
}

// volatileKeyTable has rows of a placeholder and the keys whose values it replaces. If the placeholder is empty, the values are numbered
// like ids. A few keys are not obvious: requestDigest is a hash over ids and times, and tail is a list of hashes. A date can differ
// because the second program may run after midnight.
//
//go:embed volatile_keys.txt
var volatileKeyTable string

var placeholderByJSONKey = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for row := range strings.Lines(volatileKeyTable) {
		placeholder, keys, _ := strings.Cut(row, "\t")
		for key := range strings.FieldsSeq(keys) {
			all[key] = placeholder
		}
	}
	return all
})

// JSON replaces values in the strings of a JSON text and in the values of keys that hold ids, times, durations,
// costs and versions. Keys are sorted. Input that is not JSON is handled as text.
func (n *Normaliser) JSON(raw json.RawMessage) string {
	v, err := plainjson.DecodeFirstValue(raw)
	if err != nil {
		return n.Text(string(raw))
	}
	var b strings.Builder
	n.writeValue(&b, v)
	return b.String()
}

func (n *Normaliser) writeValue(b *strings.Builder, v any) {
	separator := ""
	switch x := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, key := range sortedKeysOf(x) {
			b.WriteString(separator + strconv.Quote(key) + ":")
			separator = ","
			switch word, ok := PlaceholderForValuesOfJSONKey(key); {
			case !ok || !isNonNullScalar(x[key]):
				n.writeValue(b, x[key])
			case word == "":
				b.WriteString(n.NumberedIDPlaceholder(fmt.Sprint(x[key])))
			default:
				b.WriteString(word)
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for _, item := range x {
			b.WriteString(separator)
			separator = ","
			n.writeValue(b, item)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(strconv.Quote(n.Text(x)))
	default:
		if number, ok := v.(json.Number); ok {
			if f, err := number.Float64(); err == nil { // 1.0 and 1 are the same number
				v = f
			}
		}
		raw, _ := json.Marshal(v) // null, booleans and numbers can be encoded
		b.Write(raw)
	}
}

// PlaceholderForValuesOfJSONKey returns the placeholder of a key's values. If they are ids, it is empty and isReplaced is true.
func PlaceholderForValuesOfJSONKey(key string) (placeholderOrEmptyForID string, isReplaced bool) {
	placeholderOrEmptyForID, isReplaced = placeholderByJSONKey()[key]
	return placeholderOrEmptyForID, isReplaced
}

// replaceIDsInKeys returns a copy of the object in which placeholders replace the keys that are known ids.
func (n *Normaliser) replaceIDsInKeys(object map[string]any) map[string]any {
	replaced := make(map[string]any, len(object))
	for key, value := range object {
		replaced[cmp.Or(n.ids[key], key)] = value
	}
	return replaced
}

func (n *Normaliser) findIDsInText(text string) []string {
	var ids []string
	for _, shape := range volatileTextPatterns() {
		if shape.placeholder == "" {
			for _, m := range shape.expr.FindAllStringSubmatch(text, -1) {
				ids = append(ids, m[len(m)-1])
			}
		}
	}
	return ids
}

// normaliserPair holds two recordings' normalisers. Ids that first occur at the same position get the same number.
type normaliserPair struct{ ours, theirs *Normaliser }

// numberIDs walks two values in parallel and numbers their ids.
func (p *normaliserPair) numberIDs(a, b any, key string) {
	word, keyed := PlaceholderForValuesOfJSONKey(key)
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for _, k := range sortedKeysOf(x) {
			if v, ok := y[k]; ok {
				p.numberIDs(x[k], v, k)
			}
		}
	case []any:
		y, _ := b.([]any)
		for i := range min(len(x), len(y)) {
			p.numberIDs(x[i], y[i], key)
		}
	default:
		if keyed && word == "" && isNonNullScalar(a) && isNonNullScalar(b) {
			p.assignSameNumber(fmt.Sprint(a), fmt.Sprint(b))
			return
		}
		s, _ := a.(string)
		t, _ := b.(string)
		if left, right := p.ours.findIDsInText(s), p.theirs.findIDsInText(t); len(left) == len(right) {
			for i := range left {
				p.assignSameNumber(left[i], right[i])
			}
		}
	}
}

func (p *normaliserPair) assignSameNumber(a, b string) {
	if p.ours.ids[a] == "" && p.theirs.ids[b] == "" {
		p.theirs.ids[b] = p.ours.NumberedIDPlaceholder(a)
	}
}

// mapLineIDToParentPlaceholder is called for a transcript line that only one side has. It replaces the id of this line by the
// placeholder for the id of the line before it. The next line then seems to follow that earlier line, as on the other side.
func (n *Normaliser) mapLineIDToParentPlaceholder(transcriptLine any) {
	object, _ := transcriptLine.(map[string]any)
	if id, parent := stringOrEmpty(object["uuid"]), stringOrEmpty(object["parentUuid"]); id != "" && parent != "" && n.ids[id] == "" {
		n.ids[id] = n.NumberedIDPlaceholder(parent)
	}
}

func (n *Normaliser) formatNormalisedValue(value any) string {
	if s, ok := value.(string); ok {
		return n.Text(s)
	}
	var b strings.Builder
	n.writeValue(&b, value)
	return b.String()
}

func (n *Normaliser) formatNormalisedList(keyOfList string, list []any) string {
	if word, ok := PlaceholderForValuesOfJSONKey(keyOfList); !ok || word != "" {
		return n.formatNormalisedValue(list)
	}
	var ids []string
	for _, v := range list {
		ids = append(ids, n.NumberedIDPlaceholder(fmt.Sprint(v)))
	}
	return strings.Join(ids, " ")
}

func isNonNullScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}
