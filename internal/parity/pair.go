package parity

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
