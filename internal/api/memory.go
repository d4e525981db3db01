package api

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// requestNamespaceMemory contains what the requests of one namespace share. Entries may be dropped, because a request
// can be answered from its history alone.
type requestNamespaceMemory struct {
	mu                sync.Mutex
	states            history.LRUCache[history.Digest, *conversationState] // state after each replayed prefix of a history
	attempts          history.LRUCache[history.Digest, attemptCount]
	lastConversations history.LRUCache[conversationKey, *lastConversation]
	compactedRoots    history.LRUCache[string, historyRoot]                  // compacted histories, by their summary
	scripts           history.LRUCache[subagentScriptKey, []*subagentScript] // scripts of sub-agents that are about to start
	agents            history.LRUCache[conversationKey, *scenarios.Engine]
	prompts           *promptCache
	counter           *gate.ExclusiveNameClaimsOfProcesses // counts attempts over several servers; nil means only this server

	ruleClaims   scenarios.RuleCounter  // counts the matches of rules over the whole run; nil means per session
	claimedSteps map[history.Digest]int // numbers that [replayableMatchCounter.Next] returned, by step
}

// newRequestNamespaceMemory returns a memory for at least minEntriesOfEachKind entries of each kind; 0 or less means none.
func newRequestNamespaceMemory(minEntriesOfEachKind int) *requestNamespaceMemory {
	return &requestNamespaceMemory{
		states: history.NewLRUCache[history.Digest, *conversationState](minEntriesOfEachKind), attempts: history.NewLRUCache[history.Digest, attemptCount](minEntriesOfEachKind), lastConversations: history.NewLRUCache[conversationKey, *lastConversation](minEntriesOfEachKind),
		compactedRoots: history.NewLRUCache[string, historyRoot](minEntriesOfEachKind),
		scripts:        history.NewLRUCache[subagentScriptKey, []*subagentScript](minEntriesOfEachKind), agents: history.NewLRUCache[conversationKey, *scenarios.Engine](minEntriesOfEachKind),
		prompts: newPromptCache(minEntriesOfEachKind), claimedSteps: map[history.Digest]int{},
	}
}

type conversationKey struct{ session, agent string }

type attemptCount struct {
	count             int
	lastAttemptFailed bool // the last answer was a failure
}

// lastConversation is the last known state of a session. A history that was cut (compacted) continues from it.
type lastConversation struct {
	state *conversationState
	roots []historyRoot

	// lastRequest is the digest of the last request, and stateBefore is the state before this request. failures is how often
	// it has failed; 0 means that it was answered. If it is repeated after a cut, the conversation continues from stateBefore.
	lastRequest history.Digest
	stateBefore *conversationState
	failures    int
	compactions int // number of requests for a summary of the conversation
}

// historyRoot identifies a history that began a session, or that continued a session after its history was cut.
type historyRoot struct {
	firstGroup history.Digest // key of the first group of the history
	// State of the session when its history was cut. Nil means that the history was not cut.
	state    *conversationState
	cutAfter history.Digest // if the history was cut: key of the last group before the session continues
	retryKey history.Digest // if the history was cut: key of the history that repeats a failed request; zero means none
	failures int            // number of times that this request failed before the history was cut

	compactions int // see [lastConversation]
}

// subagentScriptKey identifies the script of a sub-agent by the first prompt that it will receive.
type subagentScriptKey struct{ session, prompt string }

// subagentScript is the script of a sub-agent and the conversation that uses it.
type subagentScript struct {
	toolCallID        string // id of the tool call
	engine            *scenarios.Engine
	ownerConversation string // the conversation that uses the script; "" means none yet
}

// attemptCounterKey returns the key under which attempts at a history are counted. Sessions and sub-agents count separately.
func (t conversationKey) attemptCounterKey(historyKey history.Digest) history.Digest {
	if t == (conversationKey{}) {
		return historyKey
	}
	return historyKey.Chain("talk", t.session, t.agent)
}

// countAttempt counts a request and returns its number among those with the same history, from 1. retries is the number
// of earlier attempts that the client reports. If the shared counter fails, only this server's attempts count.
func (m *requestNamespaceMemory) countAttempt(conversation conversationKey, key history.Digest, retries int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key = conversation.attemptCounterKey(key)
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

// promptCache computes how many tokens of a request the API's prompt cache would have read and written. It stores
// digests, not prompts, and is safe for concurrent use.
//
// A prefix is a hit if an earlier request had a cache mark after the same tools, system prompt and blocks, and the
// entry of that mark has not expired. ComputeUsageAndStorePrefixes looks up the prefix at each mark of a request, and the prefixes at
// the maxLookBackBlocks blocks before the mark.
type promptCache struct {
	mu             sync.Mutex
	expiryByPrefix history.LRUCache[history.Digest, time.Time]
}

// newPromptCache creates a cache of the last n prefixes; with n <= 0 it stores nothing.
func newPromptCache(n int) *promptCache {
	return &promptCache{expiryByPrefix: history.NewLRUCache[history.Digest, time.Time](n)}
}

// cacheUsageBytes holds the bytes of a request that were read from the cache, written to it for 5 minutes or 1 hour, or neither.
type cacheUsageBytes struct{ Read, Created5m, Created1h, Uncached int }

const (
	minCachedPrefixBytes = 4 * 1024 // the API caches prefixes of at least 1,024 tokens
	maxLookBackBlocks    = 20       // maximum number of blocks before a mark at which the cache is looked up
)

// ComputeUsageAndStorePrefixes computes the usage of a request and stores its marked prefixes.
func (m *promptCache) ComputeUsageAndStorePrefixes(r *history.Request, now time.Time) cacheUsageBytes {
	prefixes := r.PrefixesEndingAtEachBlock()
	if len(prefixes) == 0 {
		return cacheUsageBytes{}
	}
	s := cacheUsageBytes{Uncached: prefixes[len(prefixes)-1].Size}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := -1 // index of the last prefix with a cache mark
	for i, p := range prefixes {
		if p.CacheTTL == 0 || p.Size < minCachedPrefixBytes {
			continue
		}
		last = i
		for k := i; k >= max(0, i-maxLookBackBlocks); k-- {
			if until, ok := m.expiryByPrefix.Get(prefixes[k].Key); ok && now.Before(until) {
				s.Read = max(s.Read, prefixes[k].Size)
				break
			}
		}
	}
	if last < 0 {
		return s
	}
	from := s.Read
	for _, p := range prefixes[:last+1] {
		if p.CacheTTL == 0 || p.Size < minCachedPrefixBytes {
			continue
		}
		m.expiryByPrefix.Put(p.Key, now.Add(p.CacheTTL))
		if more := p.Size - from; more > 0 && p.CacheTTL > 5*time.Minute {
			s.Created1h, from = s.Created1h+more, p.Size
		} else if more > 0 {
			s.Created5m, from = s.Created5m+more, p.Size
		}
	}
	s.Uncached -= from
	return s
}

// compactionsBefore returns the number of compactions before a history that begins with a summary.
func (m *requestNamespaceMemory) compactionsBefore(c conversationKey, summary string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.lastConversations.Get(c); ok && known.state != nil {
		return known.compactions
	}
	cut, _ := m.compactedRoots.Get(summary)
	return cut.compactions
}

// conversationState is the state of a conversation at one point of its history. It is immutable; steps create new ones.
type conversationState struct {
	engine         *scenarios.Engine
	answer         *scriptedAnswer // answer to the last group; nil means that none exists
	pendingPrompts []string        // prompts that were typed while the model worked and are not answered yet
	context        []string        // texts that accompany the prompt and the results, for expressions
	failureCounts  map[string]int  // number of failures since the last success, by rule
	wasReminded    bool            // Claude Code has asked again after an empty reply, which it does once per prompt
}

// scriptedAnswer is the scenario's answer to the last group of a history.
type scriptedAnswer struct {
	firstRequest scenarios.Request
	lastRequest  scenarios.Request // the last request that was answered
	reply        scenarios.Reply   // the first reply, which determines rule, failure, delay and pace
	blocks       []protocol.Block
	stopReason   string
	usage        *scenarios.Usage
	structured   json.RawMessage
	pendingGates []pendingGate
	hasMoreSteps bool // the scenario has another step, which does not wait for results
	hasCalls     bool
}

func (a *scriptedAnswer) hasOnlyEmptyTexts() bool {
	return !slices.ContainsFunc(a.blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
}

// pendingGate is a gate at which a part of an answer waits. The scenario names it in the key `gate` or `after` of that part.
type pendingGate struct {
	Gate, After string // exactly one of the two is set
	Rule        scenarios.RuleLocation
}

type missingTemplateValue struct {
	Rule scenarios.RuleLocation
	Path string
}

func (a *scriptedAnswer) addReplyBlocksUsageAndGates(reply scenarios.Reply) {
	a.blocks = append(a.blocks, reply.Blocks...)
	a.stopReason, a.hasMoreSteps = reply.StopReason, reply.HasMore
	if a.stopReason == "end_turn" {
		a.stopReason = ""
	}
	if reply.StructuredOutput != nil {
		a.structured = reply.StructuredOutput
	}
	if reply.After != "" {
		a.pendingGates = append(a.pendingGates, pendingGate{After: reply.After, Rule: reply.Rule})
	}
	if reply.Gate != "" {
		a.pendingGates = append(a.pendingGates, pendingGate{Gate: reply.Gate, Rule: reply.Rule})
	}
	if u := reply.Usage; u != nil {
		sum := *u
		if a.usage != nil {
			sum = sum.Add(*a.usage)
		}
		a.usage = &sum
	}
	a.hasCalls = scenarios.DefaultStopReason(reply.Blocks) == "tool_use"
}
