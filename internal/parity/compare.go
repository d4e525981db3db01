package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Compare holds two recordings of one case against each other, place by place, and
// tells each place once.
func Compare(ours, theirs *Recording) []Difference {
	c := &comparison{pair: newPair(ours, theirs), seen: map[string]int{}}
	for _, side := range []*Recording{ours, theirs} {
		for _, p := range side.Problems {
			c.add("problem."+p.Kind, one(side == ours, p.Text), one(side == theirs, p.Text))
		}
	}
	rank, several := [2]map[string]int{{}, {}}, [2]bool{}
	for i := range max(len(ours.Runs), len(theirs.Runs)) {
		if i >= len(ours.Runs) || i >= len(theirs.Runs) {
			c.add("runs", strconv.Itoa(len(ours.Runs)), strconv.Itoa(len(theirs.Runs)))
			break
		}
		a, b := eventsOf(ours.Runs[i].Stdout), eventsOf(theirs.Runs[i].Stdout)
		maps.Copy(rank[0], callOrder(a))
		maps.Copy(rank[1], callOrder(b))
		several[0] = byAgent(a, rank[0]) || several[0]
		several[1] = byAgent(b, rank[1]) || several[1]
		c.events("stdout", a, b, rank)
		c.event = 0
		c.text("stderr", strings.TrimSpace(ours.Runs[i].Stderr), strings.TrimSpace(theirs.Runs[i].Stderr))
		c.text("exit", ours.Runs[i].end(), theirs.Runs[i].end())
	}
	c.events("hooks", eventsFrom(ours.Hooks), eventsFrom(theirs.Hooks), rank)
	for _, name := range keysOf(ours.MCP, theirs.MCP) {
		c.events("mcp."+name, named(ours.MCP[name]), named(theirs.MCP[name]), rank)
	}
	c.transcripts(ours, theirs, rank)
	c.events("requests", asked(ours.Requests, several[0]), asked(theirs.Requests, several[1]), rank)
	c.event = 0
	for _, name := range keysOf(ours.Files, theirs.Files) {
		a, inA := ours.Files[name]
		b, inB := theirs.Files[name]
		if inA != inB {
			c.add("files."+c.pair.ours.Text(name), one(inA, "there"), one(inB, "there"))
			continue
		}
		c.text("files."+c.pair.ours.Text(name), a, b)
	}
	return c.found
}

func one(there bool, text string) string {
	if there {
		return text
	}
	return ""
}

// end is the exit status, with the signal that ended the process.
func (r Run) end() string { return strings.TrimSpace(strconv.Itoa(r.Code) + " " + r.Signal) }

func keysOf[V any](maps ...map[string]V) []string {
	var all []string
	for _, m := range maps {
		for k := range m {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mcpRecordLine is a line of the record of an MCP server.
type mcpRecordLine struct {
	Session, From string
	Message       struct {
		ID     json.RawMessage
		Method string
	}
}

// named gives the answers of an MCP session the methods that they answer, in the
// place of the numbers by which they refer to them.
func named(list []json.RawMessage) []event {
	events, asked := eventsFrom(list), map[string]string{}
	for i, raw := range list {
		var l mcpRecordLine
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		unnumber(events[i].value)
		key := l.Session + " " + string(l.Message.ID)
		switch {
		case l.Message.ID == nil:
		case l.Message.Method != "":
			asked[l.From+" "+key] = l.Message.Method
		default:
			other := map[string]string{"client": "server", "server": "client"}[l.From]
			events[i].kind = l.From + " answer to " + asked[other+" "+key]
			events[i].key = events[i].kind
		}
	}
	listed(events)
	return events
}

// listed puts what clients ask for at once, each over a connection of its own, in
// one order: tools, prompts, resources, every question before its answer.
func listed(events []event) {
	rank := func(e event) int {
		for i, list := range []string{"tools/list", "prompts/list", "resources/list"} {
			switch e.kind {
			case "client " + list:
				return 2*i + 1
			case "server answer to " + list:
				return 2*i + 2
			}
		}
		return 0
	}
	for i := 0; i < len(events); {
		j := i
		for j < len(events) && rank(events[j]) > 0 {
			j++
		}
		slices.SortStableFunc(events[i:j], func(a, b event) int { return rank(a) - rank(b) })
		i = max(j, i+1)
	}
}

// unnumber takes the numbers out by which messages refer to each other.
func unnumber(line any) {
	object, _ := line.(map[string]any)
	message, _ := object["message"].(map[string]any)
	params, _ := message["params"].(map[string]any)
	meta, _ := params["_meta"].(map[string]any)
	for _, ref := range []struct {
		in  map[string]any
		key string
	}{{message, "id"}, {meta, "progressToken"}, {params, "progressToken"}, {params, "requestId"}} {
		if _, ok := ref.in[ref.key]; ok {
			ref.in[ref.key] = "<number>"
		}
	}
}

// comparison is one under way.
type comparison struct {
	pair  *pair
	found []Difference
	seen  map[string]int // path → index in found
	event int
}

func (c *comparison) add(path, ours, theirs string) {
	if i, ok := c.seen[path]; ok {
		c.found[i].Count++
		return
	}
	c.seen[path] = len(c.found)
	c.found = append(c.found, Difference{Path: path, Ours: short(ours), Real: short(theirs), Event: c.event, Count: 1})
}

func short(s string) string {
	const most = 400
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// events compares two streams.
func (c *comparison) events(name string, a, b []event, rank [2]map[string]int) {
	byCall(a, rank[0])
	byCall(b, rank[1])
	pairs := align(a, b)
	for _, p := range pairs {
		switch {
		case p[0] < 0:
			c.pair.theirs.bridge(b[p[1]].value)
		case p[1] < 0:
			c.pair.ours.bridge(a[p[0]].value)
		default:
			c.pair.bind(a[p[0]].value, b[p[1]].value, "")
		}
	}
	for n, p := range pairs {
		c.event = n + 1
		switch {
		case p[1] < 0:
			c.add(name+"."+a[p[0]].kind, c.pair.ours.any(a[p[0]].value), "")
		case p[0] < 0:
			c.add(name+"."+b[p[1]].kind, "", c.pair.theirs.any(b[p[1]].value))
		default:
			c.value(name+"."+a[p[0]].kind, "", a[p[0]].value, b[p[1]].value)
		}
	}
}

// transcripts compares session files by their names, in which ids are numbered: one
// that nothing else has named is that of the other side which is as old.
func (c *comparison) transcripts(ours, theirs *Recording, rank [2]map[string]int) {
	left, right := c.pair.ours.unnamed(ours.Transcripts), c.pair.theirs.unnamed(theirs.Transcripts)
	for i := range min(len(left), len(right)) {
		c.pair.bind(left[i], right[i], "")
	}
	a, b := renamed(ours.Transcripts, c.pair.ours), renamed(theirs.Transcripts, c.pair.theirs)
	for _, name := range keysOf(a, b) {
		x, inA := a[name]
		y, inB := b[name]
		c.event = 0
		if inA != inB {
			c.add("transcript", one(inA, name), one(inB, name))
			continue
		}
		c.events("transcript", settled(eventsFrom(x)), settled(eventsFrom(y)), rank)
	}
}

// unnamed are the names of files with an id that has no number yet, the oldest first.
func (n *Normaliser) unnamed(files map[string][]json.RawMessage) []string {
	var names []string
	for name := range files {
		if slices.ContainsFunc(n.idsIn(name), func(id string) bool { return n.ids[id] == "" }) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(began(files[a])+a, began(files[b])+b) })
	return names
}

// began is the first time in a file of lines.
func began(list []json.RawMessage) string {
	for _, raw := range list {
		var line struct{ Timestamp string }
		if json.Unmarshal(raw, &line) == nil && line.Timestamp != "" {
			return line.Timestamp
		}
	}
	return ""
}

func renamed(files map[string][]json.RawMessage, n *Normaliser) map[string][]json.RawMessage {
	all := map[string][]json.RawMessage{}
	for name, list := range files {
		all[n.Text(name)] = list
	}
	return all
}

// value compares two values of JSON at a place.
func (c *comparison) value(path, key string, a, b any) {
	if word, ok := wordFor(key); ok && isScalar(a) && isScalar(b) {
		if word == "" && c.pair.ours.ID(fmt.Sprint(a)) != c.pair.theirs.ID(fmt.Sprint(b)) {
			c.add(path, c.pair.ours.ID(fmt.Sprint(a)), c.pair.theirs.ID(fmt.Sprint(b)))
		}
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.object(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.list(path, key, x, y)
			return
		}
	case string:
		if y, ok := b.(string); ok {
			c.text(path, x, y)
			return
		}
	}
	if ours, theirs := c.pair.ours.any(a), c.pair.theirs.any(b); ours != theirs {
		c.add(path, ours, theirs)
	}
}

func (c *comparison) object(path string, a, b map[string]any) {
	for _, key := range keysOf(a, b) {
		x, inA := a[key]
		y, inB := b[key]
		at := path + "." + c.pair.ours.Text(key)
		switch {
		case !inB:
			c.add(at, c.pair.ours.any(x), "")
		case !inA:
			c.add(at, "", c.pair.theirs.any(y))
		default:
			c.value(at, key, x, y)
		}
	}
}

// onlyHere stands before the words of a list that the other side does not have.
const onlyHere = "only here: "

// list compares lists: of words as a whole, of anything else one by one.
func (c *comparison) list(path, key string, a, b []any) {
	if slices.ContainsFunc(append(slices.Clone(a), b...), func(v any) bool { return !isScalar(v) }) {
		if len(a) != len(b) {
			c.add(path+"[]", c.pair.ours.any(a), c.pair.theirs.any(b))
			return
		}
		for i := range a {
			c.value(path+"[]", key, a[i], b[i])
		}
		return
	}
	ours, theirs := c.pair.ours.words(key, a), c.pair.theirs.words(key, b)
	if ours == theirs {
		return
	}
	onlyA, onlyB := without(a, b), without(b, a)
	if onlyA != "" || onlyB != "" {
		ours, theirs = onlyHere+onlyA, onlyHere+onlyB
	}
	c.add(path, ours, theirs)
}

// without are the words of a that are not in b.
func without(a, b []any) string {
	var words []string
	for _, v := range a {
		if !slices.Contains(b, v) {
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

func (c *comparison) text(path, a, b string) {
	if ours, theirs := c.pair.ours.Text(a), c.pair.theirs.Text(b); ours != theirs {
		c.add(path, ours, theirs)
	}
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}
