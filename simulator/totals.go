package simulator

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// turnTotals is what one turn adds up for its result.
type turnTotals struct {
	books   *sessionTotals // of the session
	clock   Clock
	limit   float64 // dollars that the session may spend; 0 = no limit
	show    DisplayOptions
	started time.Time

	usage    scenarios.Usage
	thinking int
	latest   *replyUsage // the last reply, if it is not part of the usage yet
	denials  []protocol.PermissionDenial
	begun    []string // ids of messages that were streamed

	asked      bool          // the model has been asked at least once
	apiTime    time.Duration // replyUsage waiting for the model
	firstAsked time.Time
	firstInput *int // tokens of the turn's first request; nil = none was answered
	firstToken time.Time
}

// ask notes that the model is asked at a time.
func (l *turnTotals) ask(now time.Time) {
	if !l.asked {
		l.firstAsked = now
	}
	l.asked = true
}

// spend adds one reply, or what came of it, to the books of the session.
func (l *turnTotals) spend(name string, sp replyUsage) {
	l.books.enter(name, sp)
	l.firstInput = cmp.Or(l.firstInput, &sp.usage.InputTokens)
}

// count adds the last reply to the usage of the turn, once another is asked for
// or the turn is over. One that was interrupted or exhausts a limit is not part
// of it.
func (l *turnTotals) count() {
	if l.latest == nil {
		return
	}
	l.usage.InputTokens += l.latest.usage.InputTokens
	l.usage.OutputTokens += l.latest.usage.OutputTokens
	l.thinking += l.latest.thinking
	l.latest = nil
}

// deny counts a call that was kept from running.
func (l *turnTotals) deny(use protocol.ToolUse, input json.RawMessage) {
	l.denials = append(l.denials, protocol.PermissionDenial{ToolName: use.Name, ToolUseID: use.ID, ToolInput: input})
}

// overBudget ends the turn when the session has spent more than it may; from
// then on no request is made any more (spec: cli-observed 3).
func (l *turnTotals) overBudget() error {
	l.books.exhausted = l.limit > 0 && l.books.total() >= l.limit
	return l.budget()
}

// budget ends the turn when there is none left.
func (l *turnTotals) budget() error {
	if !l.books.exhausted {
		return nil
	}
	return &turnEndError{
		subtype: "error_max_budget_usd", terminal: "budget_exhausted", isError: true, exhausted: true,
		errors: []string{"Reached maximum budget ($" + protocol.Number(l.limit) + ")"},
	}
}

// fill gives a result what the turn has added up; the session's books take its
// times.
func (l *turnTotals) fill(r *protocol.Result) {
	b, took := l.books, l.clock.Now().Sub(l.started)
	b.apiTime += l.apiTime
	r.DurationMS, r.DurationAPIMS = ms(took), ms(b.apiTime)
	r.TotalCostUSD, r.ModelUsage, r.Usage = b.total(), b.byModel(), finalUsage(l.usage, l.thinking)
	r.PermissionDenials = append([]protocol.PermissionDenial{}, l.denials...)
	b.wallTime += took
	if l.show.Partial && l.show.Begun && l.asked {
		r.BegunMessageIDs = new(append([]string{}, l.begun...))
	}
	r.ModelUsageSince = new(b.takeSince())
	if l.show.Compat {
		r.CostUSD = &r.TotalCostUSD
	}
}

// fillTimes gives the result of an answered prompt the times of its first
// reply; sent says that the host has named the prompt.
func (l *turnTotals) fillTimes(r *protocol.Result, sent bool) {
	if l.firstToken.IsZero() {
		return
	}
	toRequest, ttft := ms(l.firstAsked.Sub(l.started)), ms(l.firstToken.Sub(l.firstAsked))
	frame, stream := ms(l.firstToken.Sub(l.started)), ttft
	r.TTFTMS, r.TTFTStreamMS, r.TimeToRequestMS, r.FirstContentFrameMS = &ttft, &stream, &toRequest, &frame
	if sent {
		r.RequestSentWallMS, r.FirstInputTokens, r.FirstCacheReadTokens = l.firstAsked.UnixMilli(), l.firstInput, new(int)
	}
}

// Recount gives results that were held back what the session has used by now, as the real CLI shows them: what was spent since
// the last one that was shown is in the first.
func (s *Simulator) Recount(held []*protocol.Result) {
	var between sessionTotals
	between.open(nil)
	for _, r := range held {
		if r.ModelUsageSince != nil {
			between.charge(*r.ModelUsageSince)
		}
	}
	between.charge(s.books.takeSince())
	for _, r := range held {
		r.DurationAPIMS, r.TotalCostUSD, r.ModelUsage = ms(s.books.apiTime), s.books.total(), s.books.byModel()
		r.ModelUsageSince = new(between.takeSince())
		if s.main.Tasks != nil {
			r.SubagentStats = new(s.main.Tasks.Stats())
		}
	}
}

// sessionTotals are what a session has cost so far.
type sessionTotals struct {
	said atomic.Int64 // tokens of the conversation

	// Owned by the running turn.
	costs     map[string]protocol.ModelUsage // by model
	since     map[string]protocol.ModelUsage // the last result
	requests  int                            // replies of the model
	apiTime   time.Duration
	wallTime  time.Duration
	exhausted bool // the budget is used up
}

// replyUsage is what one reply took.
type replyUsage struct {
	usage    scenarios.Usage
	thinking int  // tokens of it that are reasoning
	whole    bool // the usage is scripted: it tells of the whole conversation
}

// open begins the books with what an earlier process has spent, of whose models
// only the limits are told.
func (b *sessionTotals) open(costs map[string]protocol.ModelUsage) {
	b.costs, b.since = map[string]protocol.ModelUsage{}, map[string]protocol.ModelUsage{}
	for name, m := range costs {
		f := model.Of(name)
		m.ContextWindow, m.MaxOutputTokens = f.ContextWindow, f.MaxOutput
		b.costs[name] = m
	}
}

// reset forgets everything but the time spent.
func (b *sessionTotals) reset() {
	b.said.Store(0)
	clear(b.costs)
	clear(b.since)
	b.exhausted = false
}

// enter adds one reply, or what came of it.
func (b *sessionTotals) enter(name string, sp replyUsage) {
	u := sp.usage
	b.charge(map[string]protocol.ModelUsage{name: described(name, protocol.ModelUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ThinkingTokens: sp.thinking,
		CostUSD: model.Of(name).Cost(u.InputTokens, u.OutputTokens),
	})})
	b.requests++
	if sp.whole {
		b.said.Store(0)
	}
	b.said.Add(int64(u.InputTokens + u.OutputTokens))
}

// charge adds what was used, by a sub-agent for instance.
func (b *sessionTotals) charge(models map[string]protocol.ModelUsage) {
	for _, model := range slices.Sorted(maps.Keys(models)) {
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

func (b *sessionTotals) total() float64 {
	var sum float64
	for _, model := range slices.Sorted(maps.Keys(b.costs)) {
		sum += b.costs[model].CostUSD
	}
	return sum
}

func (b *sessionTotals) byModel() map[string]protocol.ModelUsage { return maps.Clone(b.costs) }

// takeSince returns the costs since the last result and starts them anew.
func (b *sessionTotals) takeSince() map[string]protocol.ModelUsage {
	since := b.since
	b.since = map[string]protocol.ModelUsage{}
	return since
}

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
	return protocol.Usage{InputTokens: u.InputTokens, OutputTokens: min(1, u.OutputTokens), ServiceTier: new("standard")}
}

// finalUsage is the usage in results and transcripts.
func finalUsage(u scenarios.Usage, thinking int) protocol.Usage {
	return protocol.Usage{
		InputTokens:         u.InputTokens,
		OutputTokens:        u.OutputTokens,
		OutputTokensDetails: protocol.NullOf(protocol.OutputDetails{ThinkingTokens: thinking}),
		ServerToolUse:       &protocol.ServerToolUse{},
		ServiceTier:         new("standard"),
		InferenceGeo:        protocol.NullOf(""),
		Iterations:          protocol.NullOf([]struct{}{}),
		Speed:               protocol.NullOf("standard"),
		FallbackCredit:      protocol.NullNow[struct{}](),
	}
}

// NoUsage is the usage of a result without a run.
func NoUsage() protocol.Usage { return finalUsage(scenarios.Usage{}, 0) }
