package simulator

import (
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ledger is what one turn adds up for its result.
type ledger struct {
	s       *Simulator
	started time.Time

	usage    scenarios.Usage
	thinking int
	latest   *spent // the last reply, if it is not part of the usage yet
	denials  []protocol.PermissionDenial

	asked      bool          // the model has been asked at least once
	apiTime    time.Duration // spent waiting for the model
	firstAsked time.Time
	firstInput *int // tokens of the turn's first request; nil = none was answered
	firstToken time.Time
}

// spent is what one reply took.
type spent struct {
	usage    scenarios.Usage
	thinking int // tokens of it that are reasoning
}

// ask notes that the model is asked at a time.
func (l *ledger) ask(now time.Time) {
	if !l.asked {
		l.firstAsked = now
	}
	l.asked = true
}

// heard notes that a reply has begun.
func (l *ledger) heard() {
	if l.firstToken.IsZero() {
		l.firstToken = l.s.o.Clock.Now()
	}
}

// spend adds one reply, or what came of it, to the books of the session.
func (l *ledger) spend(name string, sp spent) {
	l.s.books.enter(name, sp.usage, sp.thinking)
	if l.firstInput == nil {
		l.firstInput = &sp.usage.InputTokens
	}
}

// count adds the last reply to the usage of the turn, once another is asked for
// or the turn is over. One that was interrupted or exhausts a limit is not part
// of it.
func (l *ledger) count() {
	if l.latest == nil {
		return
	}
	l.usage.InputTokens += l.latest.usage.InputTokens
	l.usage.OutputTokens += l.latest.usage.OutputTokens
	l.thinking += l.latest.thinking
	l.latest = nil
}

// deny counts a call that was kept from running.
func (l *ledger) deny(use protocol.ToolUse, input json.RawMessage) {
	l.denials = append(l.denials, protocol.PermissionDenial{ToolName: use.Name, ToolUseID: use.ID, ToolInput: input})
}

// overBudget ends the turn when the session has spent more than it may; from
// then on no request is made any more (spec: cli-observed 3).
func (l *ledger) overBudget() error {
	limit := l.s.o.Limits.BudgetUSD
	l.s.books.exhausted = limit > 0 && l.s.books.total() >= limit
	return l.budget()
}

// budget ends the turn when there is none left.
func (l *ledger) budget() error {
	if !l.s.books.exhausted {
		return nil
	}
	return &ended{
		subtype: "error_max_budget_usd", terminal: "budget_exhausted", isError: true, exhausted: true,
		errors: []string{"Reached maximum budget ($" + protocol.Number(l.s.o.Limits.BudgetUSD) + ")"},
	}
}

// fill gives a result what the turn has added up; the session's books take its
// times.
func (l *ledger) fill(r *protocol.Result) {
	b, took := &l.s.books, l.s.o.Clock.Now().Sub(l.started)
	r.DurationMS, r.DurationAPIMS = ms(took), ms(l.apiTime)
	r.TotalCostUSD, r.ModelUsage, r.Usage = b.total(), b.byModel(), finalUsage(l.usage, l.thinking)
	r.PermissionDenials = append([]protocol.PermissionDenial{}, l.denials...)
	b.apiTime += l.apiTime
	b.wallTime += took
	since := b.takeSince()
	r.ModelUsageSince = &since
	if l.s.o.Show.Compat {
		r.CostUSD = &r.TotalCostUSD
	}
}

// fillTimes gives the result of an answered prompt the times of its first
// reply; sent says that the host has named the prompt.
func (l *ledger) fillTimes(r *protocol.Result, sent bool) {
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

// ended is how a turn ends. It travels as an error, so that whatever is under
// way unwinds; [turn.run] alone takes it and makes the result of it.
type ended struct {
	subtype    string // "success" or one of the error subtypes
	terminal   string // terminal_reason; empty = left out
	isError    bool
	errors     []string
	api        *reported // nil = no request failed
	structured json.RawMessage
	deferred   *protocol.ToolUse
	result     *string // nil = the last assistant text
	stop       string  // stop_reason; empty = the last reply's
	untouched  bool    // the model loop never ran
	exhausted  bool    // the last reply is one too many: it is no part of the turn's usage
	local      string  // the slash command that ran; empty = none
}

func (e *ended) Error() string { return "the turn has ended: " + e.subtype }

// after is the end, unless what had to happen before has failed.
func (e *ended) after(err error) error {
	if err != nil {
		return err
	}
	return e
}

// unasked is the end of a turn that has its answer without the model.
func unasked(text string) *ended { return &ended{subtype: "success", untouched: true, result: &text} }

// reported is what a result says of a request that failed.
type reported struct {
	status     int    // HTTP status; 0 = no response
	kind       string // api_error_type; empty without a response
	connection string // api_error; empty with a response
}
