package simulator

import (
	"fmt"
	"maps"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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

// spend adds one reply, or what came of it, to the books of the session.
func (t *turn) spend(name string, u scenarios.Usage, thinking int) {
	f := model.Of(name)
	add := func(books map[string]protocol.ModelUsage) {
		m := described(name, books[name])
		m.InputTokens += u.InputTokens
		m.OutputTokens += u.OutputTokens
		m.ThinkingTokens += thinking
		m.CostUSD += f.Cost(u.InputTokens, u.OutputTokens)
		books[name] = m
	}
	add(t.s.costs)
	add(t.s.since)
	t.s.requests++
	if t.firstInput == nil {
		t.firstInput = &u.InputTokens
	}
	t.s.said.Add(int64(u.InputTokens + u.OutputTokens))
}

// count adds the last reply to the usage of the turn, once another is asked for
// or the turn is over. One that was interrupted or exhausts a limit is not part
// of it.
func (t *turn) count() {
	if t.latest == nil {
		return
	}
	t.usage.InputTokens += t.latest.usage.InputTokens
	t.usage.OutputTokens += t.latest.usage.OutputTokens
	t.thinking += t.latest.thinking
	t.latest = nil
}

func (s *Simulator) totalCost() float64 {
	var sum float64
	for _, model := range sortedKeys(s.costs) {
		sum += s.costs[model].CostUSD
	}
	return sum
}

// takeSince returns the costs since the last result and starts them anew.
func (s *Simulator) takeSince() map[string]protocol.ModelUsage {
	since := s.since
	s.since = map[string]protocol.ModelUsage{}
	return since
}

func (s *Simulator) modelUsage() map[string]protocol.ModelUsage { return maps.Clone(s.costs) }

// estimate counts tokens where the scenario does not: four bytes a token.
func estimate(prompt string, blocks []protocol.Block) scenarios.Usage {
	out := 0
	for _, b := range blocks {
		switch b := b.(type) {
		case protocol.TextBlock:
			out += len(b.Text)
		case protocol.ThinkingBlock:
			out += len(b.Thinking)
		case protocol.ToolUse:
			out += len(b.Name) + len(b.Input)
		}
	}
	return scenarios.Usage{InputTokens: tokens(len(prompt)), OutputTokens: tokens(out)}
}

func thinkingTokens(blocks []protocol.Block) int {
	n := 0
	for _, b := range blocks {
		if th, ok := b.(protocol.ThinkingBlock); ok {
			n += tokens(len(th.Thinking))
		}
	}
	return n
}

func tokens(bytes int) int { return max(1, (bytes+3)/4) }

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

// overBudget tells whether the session has spent more than it may; from then
// on no request is made any more (spec: cli-observed 3).
func (t *turn) overBudget() bool {
	limit := t.s.o.Limits.BudgetUSD
	t.s.exhausted = limit > 0 && t.s.totalCost() >= limit
	return t.s.exhausted
}

func (t *turn) budgetSpent() finish {
	limit := protocol.Number(t.s.o.Limits.BudgetUSD)
	return finish{
		subtype: "error_max_budget_usd", terminal: "budget_exhausted", isError: true, exhausted: true,
		errors: []string{"Reached maximum budget ($" + limit + ")"},
	}
}

func (t *turn) turnsSpent() finish {
	return finish{
		subtype: "error_max_turns", terminal: "max_turns", isError: true,
		errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", t.s.o.Limits.Turns)},
	}
}
