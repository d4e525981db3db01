package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
	"github.com/claudeless/claudeless/simulator/task"
)

// Turn runs one prompt and yields its events in order, ending with exactly one
// result. Cancelling ctx interrupts the turn as the real CLI does: it still
// ends with a result (spec: cli-contract 4.4). Breaking out of the loop abandons
// it. The error is non-nil only as the last pair: a [*CrashError] of the scenario, or
// a failure of this program. Turns of one simulator must not overlap.
func (s *Simulator) Turn(ctx context.Context, in protocol.UserMessage) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		t := newTurn(newStage(s, in, yield))
		err := t.run(ctx)
		s.past.turns++
		if err != nil {
			t.out.fail(err)
		}
	}
}

// turn is one prompt, from its first event to its result: the order in which the
// acts follow each other.
type turn struct {
	*turnContext
	exchange *exchange
	round    *toolRound
	again    *continuation
	local    *localCommands
	rounds   int // tool rounds so far
}

func newTurn(st *turnContext) *turn {
	x := &exchange{turnContext: st}
	return &turn{turnContext: st, exchange: x, round: &toolRound{turnContext: st}, again: &continuation{turnContext: st, x: x}, local: &localCommands{st}}
}

// run plays the turn and yields the result of its end. From an interrupt on it no
// longer listens to ctx.
func (t *turn) run(ctx context.Context) error {
	err := t.play(ctx)
	t.prompts.repeat() // nobody has been asked
	end, isEnd := errors.AsType[*turnEndError](err)
	if !isEnd && ctx.Err() != nil && !t.out.left {
		end, isEnd = t.interrupted(errors.Is(context.Cause(ctx), ErrSuperseded)), true
	}
	if !isEnd || t.out.left {
		return err
	}
	t.close(end)
	return nil
}

// play yields everything of the turn but its result. Its error is never nil: at
// best it is how the turn ends, a [turnEndError].
func (t *turn) play(ctx context.Context) error {
	in := t.prompts.in
	if in.Source == sourceDeferred {
		return t.answerDeferred(ctx)
	}
	t.prompts.recorded = in.Content
	if blank(in.Content) {
		return t.local.refuseBlank(ctx)
	}
	var command *slash.Expansion
	call, isCall := t.local.call()
	if isCall {
		said, expansion := t.local.find(ctx, call)
		if said != nil {
			return t.local.say(ctx, call, *said, nil)
		}
		if expansion == nil && OwnCommand(call.Name) {
			return t.local.run(ctx, call)
		}
		command = expansion
	}
	defer t.local.under(command)()
	if command != nil {
		t.prompts.recorded = protocol.Content{Text: call.Tags()}
	}
	if err := t.open(ctx, call, command); err != nil {
		return err
	}
	if in.NoQuery {
		return unasked("")
	}
	req := scenarios.Request{Prompt: heard(in.Content), Injected: in.Source == sourceSystem, Notice: in.Source == sourceSystem}
	if command != nil {
		req = scenarios.Request{Prompt: heard(t.prompts.expanded(command))}
	}
	reads, err := t.prompts.attach(ctx, req.Prompt)
	if err == nil && len(reads) > 0 {
		err = t.hooks.reached(ctx, reads)
	}
	if err != nil {
		return err
	}
	return t.converse(ctx, req)
}

// open yields what precedes the first request, unless hooks refuse the prompt.
func (t *turn) open(ctx context.Context, call slash.Call, command *slash.Expansion) error {
	if err := t.hooks.begin(ctx); err != nil {
		return err
	}
	sub, err := t.hooks.submit(ctx, call, command)
	if err != nil {
		return err
	}
	t.prompts.init(ctx)
	t.out.all(sub.notices)
	if sub.end != nil {
		return sub.end
	}
	t.prompts.owed = true
	return nil
}

// answerDeferred runs the call that was put off, hooks included, and goes on
// with the model. A tool that is there no more ends the turn before its hooks.
func (t *turn) answerDeferred(ctx context.Context) error {
	d := t.s.main.Deferred
	t.prompts.in.UUIDs = nil // nobody sent it: neither init nor the result names it
	if err := t.hooks.sessionStart(ctx); err != nil {
		return err
	}
	tools, err := t.s.o.Tools.Tools(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(tools, func(tool protocol.Tool) bool { return tool.Name == d.Use.Name })
	if at < 0 {
		const reason = "tool_deferred_unavailable"
		text := d.Use.Name + " isn't available, so its deferred call didn't run. Reconnect the tool and resume, or resume with a prompt and " +
			"CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL=1 to drop the call and continue."
		return &turnEndError{subtype: "success", isError: true, terminal: reason, stop: reason, deferred: &d.Use, result: &text}
	}
	calls := []call{{use: d.Use, tool: tools[at], event: d.Message}}
	results, err := t.round.run(ctx, calls)
	if err != nil {
		return err
	}
	t.rounds++
	if err := t.round.done(ctx, calls, results); err != nil {
		return err
	}
	t.out.users = 0 // the call belongs to the run that made it
	t.prompts.init(ctx)
	return t.converse(ctx, scenarios.Request{Results: results})
}

// converse asks the model until it has nothing more to run.
func (t *turn) converse(ctx context.Context, req scenarios.Request) error {
	if err := t.ledger.budget(); err != nil {
		return err
	}
	for {
		calls, err := t.exchange.request(ctx, req)
		if err != nil {
			return err
		}
		if err := t.ledger.overBudget(); err != nil {
			return err
		}
		next, err := t.after(ctx, calls)
		if err != nil {
			return err
		}
		if next == nil {
			return t.again.over()
		}
		req = *next
	}
}

// after is what follows a reply: the next request, or nil when the turn is over.
func (t *turn) after(ctx context.Context, calls []call) (*scenarios.Request, error) {
	if len(calls) == 0 {
		return t.again.answered(ctx)
	}
	results, err := t.round.run(ctx, calls)
	if err != nil {
		return nil, err
	}
	if err := t.round.done(ctx, calls, results); err != nil {
		return nil, err
	}
	if t.rounds++; t.s.o.Limits.Turns != 0 && t.rounds >= t.s.o.Limits.Turns {
		return nil, t.spent()
	}
	t.behind.absorb()
	if err := t.hooks.absorb(ctx); err != nil {
		return nil, err
	}
	return &scenarios.Request{Results: results}, nil
}

const maxTurns = "error_max_turns"

// replyUsage is the end of a turn that may have no more rounds.
func (t *turn) spent() *turnEndError {
	return &turnEndError{
		subtype: maxTurns, terminal: "max_turns", isError: true,
		errors: []string{fmt.Sprintf("Reached maximum number of turns (%d)", t.s.o.Limits.Turns)},
	}
}

// interrupted yields what an interrupt shows and tells how the turn ends
// (spec: cli-contract 4.4); superseded says that another prompt waits.
func (t *turn) interrupted(superseded bool) *turnEndError {
	open := t.exchange.current
	if open != nil {
		open.abort()
	}
	switch {
	case t.round.inTools && superseded:
		return &turnEndError{subtype: "success", terminal: "aborted_tools", stop: "tool_use", result: new("")}
	case t.round.inTools:
		return t.round.aborted()
	case !superseded:
		t.out.inject("[Request interrupted by user]", false)
	}
	if open != nil {
		open.abandon()
	}
	stop := "null"
	if t.exchange.last.stop != nil {
		stop = *t.exchange.last.stop
	}
	return &turnEndError{
		subtype: "error_during_execution", terminal: "aborted_streaming", isError: true,
		errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=" + stop},
	}
}

// close yields the result.
func (t *turn) close(end *turnEndError) {
	if !end.exhausted {
		t.ledger.count()
	}
	s, stop := t.s, t.exchange.last.stop
	if end.stop != "" {
		stop = &end.stop
	}
	r := &protocol.Result{
		Type: "result", Subtype: end.subtype, IsError: end.isError,
		SessionID: s.o.Live.SessionID(), UUID: s.o.Clock.NewID(), NumTurns: t.numTurns(end),
		StopReason: stop, TerminalReason: end.terminal,
		FastModeState: "off", FastModeDisabledReason: "sdk_opt_in_required",
		SubagentStats: t.behind.subagents(),
		SafetyStops:   &t.again.safetyStops, QueuedTurnCount: new(int),
		ResultIndex: s.past.results, Errors: end.errors, Origin: t.prompts.origin(),
		StructuredOutput: end.structured, LocalCommand: end.local,
	}
	t.ledger.fill(r)
	r.UserMessageUUID, r.UserMessageUUIDs = t.prompts.labels()
	if s.main.Prompts != nil {
		*r.QueuedTurnCount = s.main.Prompts.Waiting()
	}
	if end.deferred != nil {
		r.DeferredToolUse = &protocol.DeferredToolUse{ID: end.deferred.ID, Name: end.deferred.Name, Input: end.deferred.Input}
	}
	if end.subtype == "success" {
		t.closeSuccess(r, end)
	}
	s.past.results++
	t.prompts.settle(r)
	t.out.emit(r)
}

// numTurns counts the user events of the turn and the prompt itself, and rounds
// where there may be no more; a turn that never reached the model has none.
func (t *turn) numTurns(end *turnEndError) int {
	if end.untouched {
		return 0
	}
	if end.subtype == maxTurns {
		return 1 + t.rounds
	}
	return 1 + t.out.users
}

// closeSuccess fills what only the success subtype has, API errors included.
func (t *turn) closeSuccess(r *protocol.Result, end *turnEndError) {
	r.Result = cmp.Or(end.result, t.exchange.last.shown, &t.exchange.last.text)
	if end.deferred != nil {
		return
	}
	if t.ledger.asked {
		r.APIErrorStatus = protocol.NullNow[int]()
	}
	if f := end.api; f != nil {
		if f.status != 0 {
			r.APIErrorStatus = protocol.NullOf(f.status)
		}
		r.APIErrorType, r.APIError = f.kind, f.connection
		return
	}
	t.ledger.fillTimes(r, t.prompts.in.UUID != "")
}

// Idle yields what work in the background shows while no turn runs. It ends
// when ctx does, when no task is left, or when a task has ended of which the
// model is to be told: then [Simulator.Notice] has the prompt of the next turn.
// It must not overlap a turn.
func (s *Simulator) Idle(ctx context.Context) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		tasks := s.main.Tasks
		if tasks == nil {
			return
		}
		o := &emitter{s: s, yield: yield}
		b := &backgroundWork{s: s, out: o, ledger: &turnTotals{books: &s.books}}
		for {
			if b.drain(task.BetweenTurns); o.left || tasks.Pending() || !tasks.Busy() {
				break
			}
			tasks.Advance()
			select {
			case <-ctx.Done():
				return
			case <-tasks.Ready():
			}
		}
		// A task may have ended since the queue was looked at.
		b.drain(task.BetweenTurns)
	}
}

// Notice takes the prompt of the extra turn that tells the model about ended
// background work; false = there is none.
func (s *Simulator) Notice() (protocol.UserMessage, bool) {
	if s.main.Tasks == nil {
		return protocol.UserMessage{}, false
	}
	n, ok := s.main.Tasks.NextNotice()
	return protocol.UserMessage{Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Source: sourceSystem}, ok
}

// Busy tells whether background work runs or the model is still to be told of
// its end.
func (s *Simulator) Busy() bool {
	return s.main.Tasks != nil && (s.main.Tasks.Busy() || s.main.Tasks.Pending())
}

// Settle waits for background work as the real CLI does before it exits: it
// yields what the work shows and the turns that follow from it, until nothing
// is left or, from now on, ceiling is over. Cancelling ctx ends it and
// interrupts such a turn.
func (s *Simulator) Settle(ctx context.Context, ceiling time.Duration) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		limited, cancel := context.WithTimeout(ctx, ceiling)
		defer cancel()
		for limited.Err() == nil && s.Busy() {
			for ev, err := range s.Idle(limited) {
				if !yield(ev, err) {
					return
				}
			}
			prompt, ok := s.Notice()
			if !ok {
				continue
			}
			for ev, err := range s.Turn(ctx, prompt) {
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}
