package simulator

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// DefaultModel is the model of a run that names none.
const DefaultModel = "claude-opus-5-5"

// price is a model's list price in dollars per million tokens, and its limits.
type price struct {
	in, out                  float64
	contextWindow, maxOutput int
	basis                    string
}

func priceOf(model string) price {
	switch {
	case strings.HasPrefix(model, "claude-opus-5"):
		return price{4, 20, 1_000_000, 128_000, "list"}
	case strings.HasPrefix(model, "claude-fable-5"):
		return price{8, 40, 1_000_000, 128_000, "list"}
	case strings.HasPrefix(model, "claude-sonnet-5"):
		return price{2, 10, 1_000_000, 128_000, "list"}
	case strings.HasPrefix(model, "claude-haiku-5"):
		return price{0.1, 0.5, 200_000, 128_000, "list"}
	case strings.HasPrefix(model, "claude-opus-4"):
		return price{5, 25, 200_000, 32_000, "list"}
	case strings.HasPrefix(model, "claude-sonnet-4"):
		return price{3, 15, 200_000, 32_000, "list"}
	case strings.HasPrefix(model, "claude-haiku-4"):
		return price{1, 5, 200_000, 32_000, "list"}
	default:
		return price{4, 20, 1_000_000, 32_000, "unknown"}
	}
}

// Canonical resolves the short model names; full and unknown names stay.
func Canonical(model string) string {
	switch model {
	case "", "default", "opus":
		return DefaultModel
	case "sonnet":
		return "claude-sonnet-5-5"
	case "haiku":
		return "claude-haiku-5-5"
	case "fable":
		return "claude-fable-5-2"
	default:
		return model
	}
}

// DisplayName is a model as the CLI words it: "Opus 5.5" for claude-opus-5-5;
// any other name stays as it is.
func DisplayName(model string) string {
	family, version, ok := strings.Cut(strings.TrimPrefix(model, "claude-"), "-")
	if !ok || !strings.HasPrefix(model, "claude-") || strings.Trim(version, "0123456789-") != "" {
		return model
	}
	return strings.ToUpper(family[:1]) + family[1:] + " " + strings.ReplaceAll(version, "-", ".")
}

// KnownModel tells whether the real CLI knows a model by this name; of the
// others it warns.
func KnownModel(name string) bool {
	name, _, _ = strings.Cut(name, "[") // sonnet[1m]
	for _, family := range []string{"claude-opus-", "claude-sonnet-", "claude-haiku-", "claude-3-"} {
		if strings.Contains(Canonical(name), family) {
			return true
		}
	}
	return name == "opusplan" || name == "best"
}

// described adds what a model's costs of an earlier process do not keep.
func described(model string, m protocol.ModelUsage) protocol.ModelUsage {
	p := priceOf(model)
	m.ContextWindow, m.MaxOutputTokens = p.contextWindow, p.maxOutput
	m.CanonicalModel, m.Provider, m.CostBasis = model, "firstParty", p.basis
	return m
}

// spend adds one reply to the books of the session and of the turn.
func (t *turn) spend(model string, u scenarios.Usage, thinking int) {
	p := priceOf(model)
	add := func(books map[string]protocol.ModelUsage) {
		m := described(model, books[model])
		m.InputTokens += u.InputTokens
		m.OutputTokens += u.OutputTokens
		m.ThinkingTokens += thinking
		m.CostUSD += (float64(u.InputTokens)*p.in + float64(u.OutputTokens)*p.out) / 1e6
		books[model] = m
	}
	add(t.s.costs)
	add(t.s.since)
	t.s.requests++
	if t.firstInput == nil {
		t.firstInput = &u.InputTokens
	}
	t.s.said.Add(int64(u.InputTokens + u.OutputTokens))
	t.usage.InputTokens += u.InputTokens
	t.usage.OutputTokens += u.OutputTokens
	t.thinking += thinking
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

// syntheticUsage is the usage of a message no model wrote.
func syntheticUsage() protocol.Usage {
	return protocol.Usage{
		OutputTokensDetails: protocol.NullNow[protocol.OutputDetails](),
		ServerToolUse:       &protocol.ServerToolUse{},
		InferenceGeo:        protocol.NullNow[string](),
		Iterations:          protocol.NullNow[[]struct{}](),
		Speed:               protocol.NullNow[string](),
		FallbackCredit:      protocol.NullNow[struct{}](),
	}
}

// NoUsage is the usage of a result without a run.
func NoUsage() protocol.Usage { return finalUsage(scenarios.Usage{}, 0) }

// overBudget tells whether the session has spent more than it may; from then
// on no request is made any more (spec: cli-observed 3).
func (t *turn) overBudget() bool {
	limit := t.s.o.MaxBudgetUSD
	t.s.exhausted = limit > 0 && t.s.totalCost() >= limit
	return t.s.exhausted
}

func (t *turn) budgetSpent() finish {
	limit := strconv.FormatFloat(t.s.o.MaxBudgetUSD, 'f', -1, 64)
	return finish{
		subtype: "error_max_budget_usd", terminal: "budget_exhausted", isError: true,
		errors: []string{"Reached maximum budget ($" + limit + ")"},
	}
}

func (t *turn) turnsSpent() finish {
	return finish{
		subtype: "error_max_turns", terminal: "max_turns", isError: true,
		errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", t.s.o.MaxTurns)},
	}
}
