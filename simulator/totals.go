package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

type turnTotals struct {
	session   *sessionTotals
	clock     ClockWithIDs
	budgetUSD float64 // limit for the session; 0 means no limit
	maxRounds int     // 0 means no limit
	rounds    int     // rounds of tool calls, and continuations by Stop hooks or for structured output
	display   DisplayOptions
	started   time.Time

	usage             scenarios.Usage
	thinkingTokens    int
	lastReply         *replyUsage // the last reply, until it is counted in usage
	denials           []protocol.PermissionDenial
	startedMessageIDs []string

	hasModelRequest bool
	apiTime         time.Duration // time spent waiting for the model
	firstRequest    time.Time
	firstUsage      *scenarios.Usage // usage of the first reply; nil if there was none
	firstToken      time.Time
}

func (l *turnTotals) addReplyToSession(model string, reply replyUsage) {
	l.session.addReplyUsage(model, reply)
	l.firstUsage = cmp.Or(l.firstUsage, &reply.usage)
}

// addLastReplyUsageToTurn adds the last reply to the usage of the turn. It is called before the next request and at the end of
// the turn, unless the reply was interrupted or exceeded a limit.
func (l *turnTotals) addLastReplyUsageToTurn() {
	if l.lastReply == nil {
		return
	}
	l.usage = l.usage.Add(l.lastReply.usage)
	l.thinkingTokens += l.lastReply.thinkingTokens
	l.lastReply = nil
}

func (l *turnTotals) recordDenial(use protocol.ToolUse, input json.RawMessage) {
	l.denials = append(l.denials, protocol.PermissionDenial{ToolName: claudecode.ToolNameInInitEvent(use.Name), ToolUseID: use.ID, ToolInput: input})
}

// turnEndErrorIfBudgetSpent returns the error that ends the turn if the budget is spent; otherwise nil (spec: cli-observed 3). The usage
// of the turn does not include a reply after which the turn ends immediately.
func (l *turnTotals) turnEndErrorIfBudgetSpent(immediatelyAfterReply bool) error {
	if l.budgetUSD <= 0 || l.session.spentUSDInProcess() < l.budgetUSD {
		return nil
	}
	return &turnEndError{
		subtype: "error_max_budget_usd", terminalReason: "budget_exhausted", isError: true, excludeLastReply: immediatelyAfterReply,
		errors: []string{"Reached maximum budget ($" + protocol.FormatNumber(l.budgetUSD) + ")"},
	}
}

const maxTurnsSubtype = "error_max_turns"

// countRoundAndCheckLimit returns the error that ends the turn at its limit of rounds.
func (l *turnTotals) countRoundAndCheckLimit() error {
	if l.rounds++; l.maxRounds == 0 || l.rounds < l.maxRounds {
		return nil
	}
	reason := fmt.Sprintf("Reached maximum number of turns (%d)", l.maxRounds)
	return &turnEndError{subtype: maxTurnsSubtype, terminalReason: "max_turns", isError: true, errors: []string{reason}}
}

func (l *turnTotals) fillResultAndAddTimesToSession(result *protocol.ResultEvent, timeOfDialogs time.Duration) {
	b, took := l.session, l.clock.Now().Sub(l.started)-timeOfDialogs
	b.apiTime += l.apiTime
	result.DurationMS, result.DurationAPIMS = milliseconds(took), milliseconds(b.apiTime)
	result.TotalCostUSD, result.ModelUsage, result.Usage = b.usd, b.usageByModel(), finalUsage(l.usage, l.thinkingTokens)
	result.PermissionDenials = append([]protocol.PermissionDenial{}, l.denials...)
	b.wallTime += took
	if l.display.PartialMessages && l.hasModelRequest {
		result.BegunMessageIDs = new(append([]string{}, l.startedMessageIDs...))
	}
	result.ModelUsageSince = new(b.takeModelsSinceResult())
	if l.display.LegacyCost {
		result.CostUSD = &result.TotalCostUSD
	}
}

// fillFirstTokenTimes sets the times of the turn's first reply in the turn's result. hasHostID is true if the host gave the
// prompt a uuid; some fields are set only then.
func (l *turnTotals) fillFirstTokenTimes(r *protocol.ResultEvent, hasHostID bool) {
	if l.firstToken.IsZero() {
		return
	}
	toRequest, ttft := milliseconds(l.firstRequest.Sub(l.started)), milliseconds(l.firstToken.Sub(l.firstRequest))
	frame, stream := milliseconds(l.firstToken.Sub(l.started)), ttft
	r.TTFTMS, r.TTFTStreamMS, r.TimeToRequestMS, r.FirstContentFrameMS = &ttft, &stream, &toRequest, &frame
	if hasHostID {
		r.RequestSentWallMS, r.FirstCacheReadTokens = l.firstRequest.UnixMilli(), new(int)
		if u := l.firstUsage; u != nil {
			r.FirstInputTokens, r.FirstCacheReadTokens = &u.InputTokens, &u.CacheReadInputTokens
		}
	}
}

// RefreshTotals updates results that were held back while background agents worked. As in the real CLI, each result
// gets the current totals of the session. The first result also gets all usage since the last result that was shown.
func (s *Simulator) RefreshTotals(heldBackResults []*protocol.ResultEvent) {
	var between sessionTotals
	between.restoreCosts(nil)
	for _, r := range heldBackResults {
		if r.ModelUsageSince != nil {
			between.addModelUsage(*r.ModelUsageSince)
		}
	}
	between.addModelUsage(s.totals.takeModelsSinceResult())
	for _, r := range heldBackResults {
		if r.SubagentStats == nil { // the session crashed
			continue
		}
		r.DurationAPIMS, r.TotalCostUSD, r.ModelUsage = milliseconds(s.totals.apiTime), s.totals.usd, s.totals.usageByModel()
		r.ModelUsageSince = new(between.takeModelsSinceResult())
		r.SubagentStats = new(s.main.Tasks.Stats())
	}
}

type sessionTotals struct {
	contextTokens atomic.Int64
	lastReply     atomic.Pointer[slash.ReplyUsage] // nil before the first reply

	// The following fields are used only by the running turn.
	costs             map[string]protocol.ModelUsage // by model
	modelsByFirstUse  []string                       // the keys of costs
	usd               float64                        // the sum of all costs, added up in the order of the replies
	modelsSinceResult map[string]protocol.ModelUsage
	requests          int // number of requests that got a reply
	apiTime, wallTime time.Duration
	restoredUSD       float64 // the part of usd that earlier processes have spent
}

func (b *sessionTotals) spentUSDInProcess() float64 { return b.usd - b.restoredUSD }

type replyUsage struct {
	usage          scenarios.Usage
	thinkingTokens int  // output tokens of the model's reasoning
	isSummary      bool // the reply is the summary of a compaction, which the number of requests does not include
	isScripted     bool // usage comes from the scenario and counts the whole conversation, not only this reply
}

func (b *sessionTotals) restoreCosts(costs map[string]protocol.ModelUsage) {
	b.costs, b.modelsSinceResult = map[string]protocol.ModelUsage{}, map[string]protocol.ModelUsage{}
	b.modelsByFirstUse, b.usd = slices.Sorted(maps.Keys(costs)), 0
	for _, name := range b.modelsByFirstUse {
		f, m := claudecode.FactsOfModel(name), costs[name]
		m.ContextWindow, m.MaxOutputTokens = f.ContextWindow, f.MaxOutput
		b.costs[name] = m
		b.usd += m.CostUSD
	}
	b.restoredUSD = b.usd
}

func (b *sessionTotals) addReplyUsage(model string, reply replyUsage) {
	u := reply.usage
	b.addModelUsage(map[string]protocol.ModelUsage{model: withModelFacts(model, protocol.ModelUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ThinkingTokens: reply.thinkingTokens,
		CacheReadInputTokens: u.CacheReadInputTokens, CacheCreationInputTokens: u.CacheCreationInputTokens, CacheCreation5m: u.CacheCreationInputTokens,
		CostUSD: claudecode.FactsOfModel(model).Cost(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens),
	})})
	if !reply.isSummary {
		b.requests++
	}
	if reply.isScripted {
		b.contextTokens.Store(0)
	}
	b.contextTokens.Add(int64(u.Total()))
	b.lastReply.Store(&slash.ReplyUsage{Input: u.InputTokens, Output: u.OutputTokens, CacheCreation: u.CacheCreationInputTokens, CacheRead: u.CacheReadInputTokens})
}

func (b *sessionTotals) addModelUsage(addedUsage map[string]protocol.ModelUsage) {
	for _, model := range slices.Sorted(maps.Keys(addedUsage)) {
		u := addedUsage[model]
		if _, known := b.costs[model]; !known {
			b.modelsByFirstUse = append(b.modelsByFirstUse, model)
		}
		b.usd += u.CostUSD
		for _, costs := range []map[string]protocol.ModelUsage{b.costs, b.modelsSinceResult} {
			m := costs[model]
			m.InputTokens += u.InputTokens
			m.OutputTokens += u.OutputTokens
			m.CacheReadInputTokens += u.CacheReadInputTokens
			m.CacheCreationInputTokens += u.CacheCreationInputTokens
			m.CacheCreation5m += u.CacheCreation5m
			m.CacheCreation1h += u.CacheCreation1h
			m.ThinkingTokens += u.ThinkingTokens
			m.CostUSD += u.CostUSD
			m.ContextWindow, m.MaxOutputTokens = u.ContextWindow, u.MaxOutputTokens
			m.CanonicalModel, m.Provider, m.CostBasis = u.CanonicalModel, u.Provider, u.CostBasis
			costs[model] = m
		}
	}
}

func (b *sessionTotals) usageByModel() map[string]protocol.ModelUsage { return maps.Clone(b.costs) }

func (b *sessionTotals) takeModelsSinceResult() map[string]protocol.ModelUsage {
	since := b.modelsSinceResult
	b.modelsSinceResult = map[string]protocol.ModelUsage{}
	return since
}

func withModelFacts(model string, m protocol.ModelUsage) protocol.ModelUsage {
	f := claudecode.FactsOfModel(model)
	m.ContextWindow, m.MaxOutputTokens = f.ContextWindow, f.MaxOutput
	m.CanonicalModel, m.Provider, m.CostBasis = f.Name, "firstParty", "unknown"
	if f.HasListPrice {
		m.CostBasis = "list"
	}
	return m
}

// usageAtMessageStart returns the usage for message_start and for assistant events. It counts at
// most one output token, because the rest of the output is not known yet.
func usageAtMessageStart(scenarioUsage scenarios.Usage) protocol.Usage {
	return protocol.Usage{
		InputTokens: scenarioUsage.InputTokens, OutputTokens: min(1, scenarioUsage.OutputTokens), ServiceTier: new("standard"),
		CacheReadInputTokens: scenarioUsage.CacheReadInputTokens, CacheCreationInputTokens: scenarioUsage.CacheCreationInputTokens,
		CacheCreation: protocol.CacheCreation{Ephemeral5m: scenarioUsage.CacheCreationInputTokens},
	}
}

func finalUsage(u scenarios.Usage, thinkingTokens int) protocol.Usage {
	return protocol.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadInputTokens: u.CacheReadInputTokens, CacheCreationInputTokens: u.CacheCreationInputTokens,
		CacheCreation:       protocol.CacheCreation{Ephemeral5m: u.CacheCreationInputTokens},
		OutputTokensDetails: protocol.NullOf(protocol.OutputTokenDetails{ThinkingTokens: thinkingTokens}),
		ServerToolUse:       &protocol.ServerToolUsage{}, ServiceTier: new("standard"), InferenceGeo: protocol.NullOf(""),
		Iterations: protocol.NullOf([]struct{}{}), Speed: protocol.NullOf("standard"), FallbackCredit: protocol.NullValue[struct{}](),
	}
}

// FailedResult returns the result of a session that failed outside a turn, with zero totals, no ids and these errors.
func FailedResult(errors ...string) *protocol.ResultEvent {
	return &protocol.ResultEvent{
		Type: "result", Subtype: "error_during_execution", IsError: true, Usage: finalUsage(scenarios.Usage{}, 0),
		ModelUsage: map[string]protocol.ModelUsage{}, PermissionDenials: []protocol.PermissionDenial{}, Errors: errors,
	}
}
