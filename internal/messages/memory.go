package messages

import (
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// cache is a bounded map that forgets what was not used for long: at least the
// last n entries used are there. It is for one goroutine at a time.
type cache[K comparable, V any] struct {
	n          int // 0 = it keeps nothing
	young, old map[K]V
}

func newCache[K comparable, V any](n int) cache[K, V] {
	return cache[K, V]{n: max(0, n), young: map[K]V{}}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	v, ok := c.young[k]
	if ok {
		return v, true
	}
	if v, ok = c.old[k]; ok {
		c.put(k, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	if c.n == 0 {
		return
	}
	if _, known := c.young[k]; !known && len(c.young) >= c.n {
		c.old, c.young = c.young, make(map[K]V, c.n)
	}
	c.young[k] = v
}

// talk is a conversation of a client that names it: a session, and the sub-agent
// in it.
type talk struct{ session, agent string }

// namespace is what the requests under one name have in common. All of it is
// memory that may be lost: a request is answered from its history.
type namespace struct {
	name string

	mu       sync.Mutex
	states   cache[digest, *state]      // after a folded prefix
	attempts cache[digest, *tries]      // of a history
	last     cache[talk, *lastTalk]     // where a session stands
	scripts  cache[scriptKey, []*child] // scripted sub-agents on their way
	agents   cache[talk, *scenarios.Engine]
	unknown  map[string]bool // keys that were reported

	lines    []entry        // the last ones
	dropped  int            // lines before them
	requests int            // of conversations
	others   int            // answers whose id is only counted
	seen     scenarios.Seen // what the conversations did, for expectations
	misses   []scenarios.Judged
}

// tries counts how often a history was sent.
type tries struct {
	n      int
	failed bool // the last answer was a failure
}

// lastTalk is where a session stands: what cuts of its history go on from.
type lastTalk struct {
	state *state
	roots []root
}

// root is a history that was seen to begin a session, or to go on with it after
// a cut.
type root struct {
	first digest // of its first group
	// after a cut, what the groups before the last one stand for; nil = the
	// beginning
	state *state
	at    digest // key of the group before the last one, when there was a cut
}

// scriptKey finds the script of a sub-agent by what it will be asked first.
type scriptKey struct{ session, prompt string }

// child is a scripted sub-agent that has not shown up, or has.
type child struct {
	call   string // id of the tool call
	engine *scenarios.Engine
	agent  string // who took it; "" = nobody yet
}

func (s *Server) newNamespace(name string) *namespace {
	n := s.o.Memory
	return &namespace{
		name: name, unknown: map[string]bool{},
		states: newCache[digest, *state](n), attempts: newCache[digest, *tries](n), last: newCache[talk, *lastTalk](n),
		scripts: newCache[scriptKey, []*child](n), agents: newCache[talk, *scenarios.Engine](n),
	}
}

// entry is a journal line and its time.
type entry struct {
	at   time.Time
	body journal.Body
}

// maxLines is how many journal lines a namespace keeps for the control routes.
const maxLines = 2000

// note keeps a journal line for the control routes.
func (ns *namespace) note(l entry) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if len(ns.lines) >= maxLines {
		cut := maxLines / 4
		ns.lines, ns.dropped = append([]entry(nil), ns.lines[cut:]...), ns.dropped+cut
	}
	ns.lines = append(ns.lines, l)
}
