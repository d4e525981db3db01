package parity

import (
	"encoding/json"
	"fmt"
	"strings"
)

// pair are the normalisers of two recordings. Ids that stand in the same place for
// the first time get one number, so that one which only one side has shifts no
// others.
type pair struct{ ours, theirs *Normaliser }

func newPair(ours, theirs *Recording) *pair {
	p := &pair{New(Options{Paths: ours.Paths}), New(Options{Paths: theirs.Paths})}
	p.theirs.next = p.ours.next
	return p
}

// bind goes through two values side by side and numbers the ids in them.
func (p *pair) bind(a, b any, key string) {
	word, keyed := wordFor(key)
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		for _, k := range keysOf(x) {
			if v, ok := y[k]; ok {
				p.bind(x[k], v, k)
			}
		}
	case []any:
		y, _ := b.([]any)
		for i := range min(len(x), len(y)) {
			p.bind(x[i], y[i], key)
		}
	default:
		if keyed && word == "" && isScalar(a) && isScalar(b) {
			p.same(fmt.Sprint(a), fmt.Sprint(b))
			return
		}
		s, _ := a.(string)
		t, _ := b.(string)
		left, right := p.ours.idsIn(s), p.theirs.idsIn(t)
		if len(left) == len(right) {
			for i := range left {
				p.same(left[i], right[i])
			}
		}
	}
}

// same gives two ids one number, unless one of them has its own already.
func (p *pair) same(a, b string) {
	if p.ours.ids[a] == "" && p.theirs.ids[b] == "" {
		p.theirs.ids[b] = p.ours.ID(a)
	}
}

// bridge takes a line that only one side has out of the chain of its transcript:
// who follows it follows its parent.
func (n *Normaliser) bridge(line any) {
	object, _ := line.(map[string]any)
	id, parent := textOf(object["uuid"]), textOf(object["parentUuid"])
	if id != "" && parent != "" && n.ids[id] == "" {
		n.ids[id] = n.ID(parent)
	}
}

// any renders a decoded value.
func (n *Normaliser) any(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if s, ok := v.(string); ok {
		return n.Text(s)
	}
	return n.JSON(raw)
}

// words renders a list without objects.
func (n *Normaliser) words(key string, list []any) string {
	if word, ok := wordFor(key); !ok || word != "" {
		return n.any(list)
	}
	var ids []string
	for _, v := range list {
		ids = append(ids, n.ID(fmt.Sprint(v)))
	}
	return strings.Join(ids, " ")
}
