package simulator

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// books are what a session has cost so far.
type books struct {
	said atomic.Int64 // tokens of the conversation

	// Owned by the running turn.
	costs     map[string]protocol.ModelUsage // by model
	since     map[string]protocol.ModelUsage // the last result
	requests  int                            // replies of the model
	apiTime   time.Duration
	wallTime  time.Duration
	exhausted bool // the budget is used up
}

// open begins the books with what an earlier process has spent.
func (b *books) open(costs map[string]protocol.ModelUsage) {
	b.costs, b.since = map[string]protocol.ModelUsage{}, map[string]protocol.ModelUsage{}
	for model, m := range costs {
		b.costs[model] = described(model, m)
	}
}

// reset forgets everything but the time spent.
func (b *books) reset() {
	b.said.Store(0)
	clear(b.costs)
	clear(b.since)
	b.exhausted = false
}

// enter adds one reply, or what came of it.
func (b *books) enter(name string, u scenarios.Usage, thinking int) {
	f := model.Of(name)
	for _, costs := range []map[string]protocol.ModelUsage{b.costs, b.since} {
		m := described(name, costs[name])
		m.InputTokens += u.InputTokens
		m.OutputTokens += u.OutputTokens
		m.ThinkingTokens += thinking
		m.CostUSD += f.Cost(u.InputTokens, u.OutputTokens)
		costs[name] = m
	}
	b.requests++
	b.said.Add(int64(u.InputTokens + u.OutputTokens))
}

// charge adds what a sub-agent has used.
func (b *books) charge(models map[string]protocol.ModelUsage) {
	for _, model := range sortedKeys(models) {
		u := models[model]
		for _, costs := range []map[string]protocol.ModelUsage{b.costs, b.since} {
			m := costs[model]
			m.InputTokens += u.InputTokens
			m.OutputTokens += u.OutputTokens
			m.ThinkingTokens += u.ThinkingTokens
			m.CostUSD += u.CostUSD
			m.ContextWindow, m.MaxOutputTokens = u.ContextWindow, u.MaxOutputTokens
			m.CanonicalModel, m.Provider, m.CostBasis = u.CanonicalModel, u.Provider, u.CostBasis
			costs[model] = m
		}
	}
}

func (b *books) total() float64 {
	var sum float64
	for _, model := range sortedKeys(b.costs) {
		sum += b.costs[model].CostUSD
	}
	return sum
}

func (b *books) byModel() map[string]protocol.ModelUsage { return maps.Clone(b.costs) }

// takeSince returns the costs since the last result and starts them anew.
func (b *books) takeSince() map[string]protocol.ModelUsage {
	since := b.since
	b.since = map[string]protocol.ModelUsage{}
	return since
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// described adds what a model's costs of an earlier process do not keep.
func described(name string, m protocol.ModelUsage) protocol.ModelUsage {
	f := model.Of(name)
	m.ContextWindow, m.MaxOutputTokens = f.ContextWindow, f.MaxOutput
	m.CanonicalModel, m.Provider, m.CostBasis = f.Name, "firstParty", "unknown"
	if f.Listed {
		m.CostBasis = "list"
	}
	return m
}

// streamUsage is the usage on assistant events: what message_start reports,
// before the output is known.
func streamUsage(u scenarios.Usage) protocol.Usage {
	tier := "standard"
	return protocol.Usage{InputTokens: u.InputTokens, OutputTokens: min(1, u.OutputTokens), ServiceTier: &tier}
}

// finalUsage is the usage in results and transcripts.
func finalUsage(u scenarios.Usage, thinking int) protocol.Usage {
	tier := "standard"
	return protocol.Usage{
		InputTokens:         u.InputTokens,
		OutputTokens:        u.OutputTokens,
		OutputTokensDetails: protocol.NullOf(protocol.OutputDetails{ThinkingTokens: thinking}),
		ServerToolUse:       &protocol.ServerToolUse{},
		ServiceTier:         &tier,
		InferenceGeo:        protocol.NullOf(""),
		Iterations:          protocol.NullOf([]struct{}{}),
		Speed:               protocol.NullOf("standard"),
		FallbackCredit:      protocol.NullNow[struct{}](),
	}
}

// NoUsage is the usage of a result without a run.
func NoUsage() protocol.Usage { return finalUsage(scenarios.Usage{}, 0) }

func ms(d time.Duration) int { return int(d / time.Millisecond) }
