package replay

import (
	"encoding/hex"
	"sync"

	"github.com/claudeless/claudeless/internal/api/boundedmap"
	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/promptcache"
	"github.com/claudeless/claudeless/scenarios"
)

// Memory is what the requests under one name have in common. All of it may be lost:
// a request is answered from its history.
type Memory struct {
	mu       sync.Mutex
	states   boundedmap.Map[history.Digest, *state]             // groupAfter a folded prefix
	attempts boundedmap.Map[history.Digest, attemptCount]       // of a history
	last     boundedmap.Map[conversationKey, *lastConversation] // where a session stands
	roots    boundedmap.Map[history.Digest, historyRoot]        // by how they begin: what summaries stand for
	scripts  boundedmap.Map[scriptKey, []*subagentScript]       // subagentEngine sub-agents on their way
	agents   boundedmap.Map[conversationKey, *scenarios.Engine]
	prompts  *promptcache.Cache
	counter  Counter // of the attempts at all replicas; nil = there is no other
}

// NewMemory makes a memory with room for n entries of each kind; 0 and less = it
// remembers nothing.
func NewMemory(n int) *Memory {
	return &Memory{
		states: boundedmap.New[history.Digest, *state](n), attempts: boundedmap.New[history.Digest, attemptCount](n), last: boundedmap.New[conversationKey, *lastConversation](n),
		roots:   boundedmap.New[history.Digest, historyRoot](n),
		scripts: boundedmap.New[scriptKey, []*subagentScript](n), agents: boundedmap.New[conversationKey, *scenarios.Engine](n),
		prompts: promptcache.New(n),
	}
}

// conversationKey is a conversation of a client that names it: a session, and the sub-agent
// in it.
type conversationKey struct{ session, agent string }

// attemptCount counts how often a history was sent.
type attemptCount struct {
	count  int
	failed bool // the last answer was a failure
}

// lastConversation is where a session stands: what cuts of its history go on from.
type lastConversation struct {
	state *state
	roots []historyRoot

	// What was asked last, from which state; tries is how often it failed, 0 = it was
	// answered. What is asked again behind a cut goes on from there.
	lastAsked   history.Digest
	beforeAsked *state
	failures    int
}

// historyRoot is a history that was seen to begin a session, or to go on with it after
// a cut.
type historyRoot struct {
	firstGroup history.Digest // of its first group
	// groupAfter a cut, what the groups before the last one stand for; nil = the
	// beginning
	state    *state
	cutAfter history.Digest // key of the group before the last one, when there was a cut
	retryKey history.Digest // key of a history that asks again what had failed; zero = there is none
	failures int            // how often it had
}

// scriptKey finds the script of a sub-agent by what it will be asked first.
type scriptKey struct{ session, prompt string }

// subagentScript is a scripted sub-agent that has not shown up, or has.
type subagentScript struct {
	call    string // id of the tool call
	engine  *scenarios.Engine
	takenBy string // who took it; "" = nobody yet
}

// attemptCount names a history of a conversation: sessions and sub-agents count for
// themselves.
func (t conversationKey) attemptKey(key history.Digest) history.Digest {
	if t == (conversationKey{}) {
		return key
	}
	return key.Chain("talk", t.session, t.agent)
}

// Counter counts attempts for several servers.
type Counter interface {
	// Next returns the number of the next attempt at what has that name, which is higher
	// than after.
	Next(name string, after int) (int, error)
}

// UseCounter counts attempts together with other servers.
func (m *Memory) UseCounter(c Counter) { m.counter = c }

// countAttempt counts one more attempt at a history. Retries is how often the client says that
// it has asked before: another server may have been asked. The error is that of the
// count of all replicas; the number is this server's then.
func (m *Memory) countAttempt(by conversationKey, key history.Digest, retries int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key = by.attemptKey(key)
	t, _ := m.attempts.Get(key)
	var err error
	if m.counter != nil {
		var n int
		if n, err = m.counter.Next(hex.EncodeToString(key[:]), t.count); err == nil {
			t.count = n - 1
		}
	}
	t.count = max(t.count, retries) + 1
	m.attempts.Put(key, t)
	return t.count, err
}

// recordOutcome notes how the last attempt went, the one of so many.
func (m *Memory) recordOutcome(by conversationKey, key history.Digest, attempt int, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.last.Get(by); ok && failed {
		next := *known
		next.failures = attempt
		m.last.Put(by, &next)
	}
	key = by.attemptKey(key)
	if t, ok := m.attempts.Get(key); ok {
		t.failed = failed
		m.attempts.Put(key, t)
	}
}
