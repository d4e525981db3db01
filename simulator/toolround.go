package simulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// ran is a call with its result.
type ran struct {
	i       int
	result  executor.Result
	started time.Time
	took    time.Duration
	err     error
}

// toolRound runs the calls of one message as the real CLI does: read-only
// neighbours in parallel, all others one after another in order; a failed call
// does not stop its siblings (spec: cli-observed 2). Results are in call order.
func (t *turn) toolRound(calls []call) ([]scenarios.Result, *finish, error) {
	t.inTools = true
	results := make([]scenarios.Result, len(calls))
	shown := make([]bool, len(calls))
	for i := range calls {
		calls[i].use.Siblings = len(calls) - 1
	}
	for start := 0; start < len(calls); {
		end := start + 1
		for calls[start].beside() && end < len(calls) && calls[end].beside() {
			end++
		}
		stop, err := t.batch(calls, start, end, func(r ran) error {
			shown[r.i] = true
			results[r.i] = scenarioResult(calls[r.i].use, r.result.ToolResult)
			return t.show(calls[r.i], r)
		})
		if err != nil {
			return nil, nil, t.rejectRest(calls, shown, end, err)
		}
		if stop != nil {
			end, err := t.stopped(*stop)
			return nil, &end, err
		}
		start = end
	}
	t.inTools = false
	return results, t.structured.done(t.s.main.Schema, t.s.o.Limits.SchemaTries), nil
}

// beside tells whether the call may run while its neighbours do.
func (c call) beside() bool { return c.readOnly || c.tool.ReadOnly }

// batch runs calls[start:end] at once and shows each as it ends, or in call
// order when the run must be repeatable.
func (t *turn) batch(calls []call, start, end int, show func(ran) error) (*executor.StopTurn, error) {
	ctx, cancel := context.WithCancel(t.ctx)
	done := make(chan ran, end-start)
	var wg sync.WaitGroup
	for i := start; i < end; i++ {
		ready := t.s.o.Tools.Ready(ctx, calls[i].use)
		calls[i].use.Seen, calls[i].refused = ready.Seen, ready.Refused
		wg.Go(func() { done <- t.execute(ctx, i, calls[i]) }) // ends with its call, which ends with ctx
	}
	defer wg.Wait()
	defer cancel()
	alive := newHeartbeat(calls[start:end])
	defer alive.ticker.Stop()
	var stop *executor.StopTurn
	for left := end - start; left > 0; {
		ready, err := t.ready(done, left, alive)
		if err != nil {
			return nil, err
		}
		left -= len(ready)
		for _, r := range ready {
			alive.over(calls[r.i].use.ID)
			if r.err != nil {
				return nil, r.err
			}
			if r.result.Stop != nil && stop == nil {
				stop = r.result.Stop
			}
			if err := show(r); err != nil {
				return nil, err
			}
		}
	}
	return stop, nil
}

// together is how close two calls must end to count as ending at once.
const together = time.Millisecond

// ready waits for the next calls to end: those that end at once are in call
// order, so that quick calls do not swap by chance. A repeatable run waits for
// all of them.
func (t *turn) ready(done <-chan ran, left int, alive *heartbeat) ([]ran, error) {
	first, err := t.first(done, alive)
	if err != nil {
		return nil, err
	}
	batch := []ran{first}
	var late <-chan time.Time
	if !t.s.o.Show.InOrder {
		timer := time.NewTimer(together)
		defer timer.Stop()
		late = timer.C
	}
	for len(batch) < left {
		select {
		case r := <-done:
			batch = append(batch, r)
			continue
		case <-t.news():
			if err := t.drain(task.InTurn); err != nil {
				return nil, err
			}
			continue
		case <-alive.ticker.C:
			if err := t.beat(alive); err != nil {
				return nil, err
			}
			continue
		case <-late:
		}
		break
	}
	slices.SortFunc(batch, func(a, b ran) int { return a.i - b.i })
	return batch, nil
}

// first waits for one call to end and shows what tasks say meanwhile, and that
// the calls still run.
func (t *turn) first(done <-chan ran, alive *heartbeat) (ran, error) {
	for {
		select {
		case r := <-done:
			return r, nil
		case <-alive.ticker.C:
			if err := t.beat(alive); err != nil {
				return ran{}, err
			}
		case <-t.news():
			if err := t.drain(task.InTurn); err != nil {
				return ran{}, err
			}
		}
	}
}

// execute runs one call through the chain. Err is set only when the turn was
// interrupted.
func (t *turn) execute(ctx context.Context, i int, c call) ran {
	r := ran{i: i, started: t.s.o.Clock.Now()}
	r.result, r.err = t.answer(ctx, c)
	r.took = t.s.o.Clock.Now().Sub(r.started)
	if ctx.Err() != nil && r.err == nil {
		r.err = ctx.Err()
	}
	return r
}

func (t *turn) answer(ctx context.Context, c call) (executor.Result, error) {
	if c.alias != "" && c.tool.Name == "" {
		return executor.Plain(executor.Missing(c.alias)), nil
	}
	if c.use.Name == structuredTool && t.s.main.Schema != nil {
		return executor.Plain(t.structured.check(t.s.main.Schema, c.use)), nil
	}
	if c.refused != nil {
		return *c.refused, nil
	}
	result, err := t.s.o.Tools.Execute(ctx, c.use)
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, executor.ErrUnknownTool):
		return executor.Plain(executor.Unknown(c.use.Name, nil)), nil
	case ctx.Err() != nil && !asked(err):
		return result, ctx.Err()
	case ctx.Err() != nil, crashes(err):
		return result, err
	default:
		return failed(err.Error()), nil
	}
}

// asked tells whether a call ended while somebody was asked about it.
func asked(err error) bool {
	_, ok := errors.AsType[*unansweredError](err)
	return ok
}

// crashes tells whether a sub-agent's script ends the process.
func crashes(err error) bool {
	_, ok := errors.AsType[*CrashError](err)
	return ok
}

// show yields everything about one finished call.
func (t *turn) show(c call, r ran) error {
	res := r.result
	if err := t.drain(task.InTurn); err != nil {
		return err
	}
	if err := t.emitAll(res.Before); err != nil {
		return err
	}
	t.beside = append(t.beside, res.Context...)
	if res.Stop != nil && res.Stop.Deferred != nil {
		return nil // a deferred call has no result
	}
	if d := res.Denied; d != nil {
		d.Type, d.Subtype, d.UUID, d.SessionID = "system", "permission_denied", t.s.o.Clock.NewID(), t.s.o.Live.SessionID()
		if err := t.emit(d); err != nil {
			return err
		}
	}
	if res.CountDenial {
		t.denials = append(t.denials, protocol.PermissionDenial{ToolName: c.use.Name, ToolUseID: c.use.ID, ToolInput: c.use.Observed()})
	}
	err := t.emit(&protocol.ToolRan{
		Use: c.use, Result: res.ToolResult, Breakpoints: res.Breakpoints, CountDenial: res.CountDenial, RanWith: res.RanWith, Started: r.started, Duration: r.took,
	})
	if err != nil {
		return err
	}
	if err := t.emit(t.toolEvent(c, res.ToolResult)); err != nil {
		return err
	}
	if t.s.main.Tasks != nil {
		t.s.main.Tasks.Launched(c.use.ID)
	}
	return t.emitAll(res.After)
}

// toolEvent is the user event that shows a result.
func (t *turn) toolEvent(c call, res protocol.ToolResult) *protocol.User {
	block := protocol.ToolResultBlock{ToolUseID: c.use.ID, Type: "tool_result", Content: res.Content}
	if res.IsError || res.ExplicitOK {
		block.IsError = &res.IsError
	}
	output := res.Output
	switch {
	case output != nil:
	case res.IsError:
		output = "Error: " + res.Content.Plain()
	default:
		output = res.Content
	}
	ev := &protocol.User{
		Type:      "user",
		Message:   protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{block}}},
		SessionID: t.s.o.Live.SessionID(), UUID: t.s.o.Clock.NewID(), Timestamp: t.timestamp(),
		ToolUseResult: output, SourceUUID: c.event, Tool: c.use.Name,
	}
	if res.Decision != nil || res.NonExecutionKind != "" {
		ev.ToolResultMeta = []protocol.ToolResultMeta{{ID: c.use.ID, NonExecutionKind: res.NonExecutionKind, PermissionDecision: res.Decision}}
	}
	return ev
}

// stamp gives an event made by a tool layer its ids.
func (t *turn) stamp(ev protocol.Event) protocol.Event {
	switch ev := ev.(type) {
	case *protocol.System:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = t.s.o.Live.SessionID(), t.s.o.Clock.NewID()
		}
	case *protocol.Frame:
		if ev.UUID == "" {
			ev.SessionID, ev.UUID = t.s.o.Live.SessionID(), t.s.o.Clock.NewID()
		}
	case *protocol.User:
		if ev.UUID == "" {
			ev.Type, ev.UUID, ev.Timestamp = "user", t.s.o.Clock.NewID(), t.timestamp()
		}
		ev.SessionID = t.s.o.Live.SessionID()
	case *protocol.Assistant:
		ev.SessionID = t.s.o.Live.SessionID()
	case *protocol.Unshown:
		t.stamp(ev.Event)
	}
	return ev
}

// rejectRest answers the calls that an interrupt left without a result; those
// from begun on had not started.
func (t *turn) rejectRest(calls []call, shown []bool, begun int, cause error) error {
	if t.ctx.Err() == nil {
		return cause
	}
	superseded := errors.Is(context.Cause(t.ctx), ErrSuperseded)
	for i, c := range calls {
		if shown[i] {
			continue
		}
		result := executor.Plain(executor.Interrupted())
		unanswered, ok := errors.AsType[*unansweredError](cause)
		waits := ok && unanswered.call == c.use.ID // for an answer to whether it may run
		result.CountDenial = waits && !superseded
		switch {
		case superseded && i < begun:
			result.ToolResult = executor.Aborted()
		case superseded:
			result.ToolResult = executor.Skipped()
		case i < begun && !waits:
			result.ToolResult = executor.Stopped()
		}
		if err := t.show(c, ran{i: i, result: result, started: t.s.o.Clock.Now()}); err != nil {
			return err
		}
	}
	return cause
}

// stopped ends the turn as a tool layer asked.
func (t *turn) stopped(stop executor.StopTurn) (finish, error) {
	if stop.Interrupted {
		return t.abortedTools()
	}
	empty := ""
	end := finish{subtype: "success", terminal: stop.TerminalReason, stop: stop.StopReason, deferred: stop.Deferred, result: &empty}
	if end.stop == "" {
		end.stop = "tool_use"
	}
	return end, nil
}

func scenarioResult(use protocol.ToolUse, r protocol.ToolResult) scenarios.Result {
	content, err := protocol.Marshal(r.Content)
	if err != nil {
		content = nil
	}
	return scenarios.Result{
		ToolUseID: use.ID, Tool: use.Name, Text: r.Content.Plain(), IsError: r.IsError,
		Content: content, Structured: r.Output,
	}
}

// heartbeatEvery is how often a call says that it still runs, whatever tool it
// is of.
const heartbeatEvery = 30 * time.Second

// heartbeat follows the calls that run side by side.
type heartbeat struct {
	ticker *time.Ticker
	calls  []call // those that have not ended
	beats  int
}

func newHeartbeat(calls []call) *heartbeat {
	return &heartbeat{ticker: time.NewTicker(heartbeatEvery), calls: slices.Clone(calls)}
}

// over says that a call has ended.
func (h *heartbeat) over(id string) {
	for i, c := range h.calls {
		if c.use.ID == id {
			h.calls = append(h.calls[:i:i], h.calls[i+1:]...)
			return
		}
	}
}

// beat yields a sign of life for every call that still runs.
func (t *turn) beat(h *heartbeat) error {
	h.beats++
	for _, c := range h.calls {
		err := t.emit(t.stamp(&protocol.Frame{Type: "tool_progress", Fields: []protocol.Field{
			{Key: "tool_use_id", Value: fmt.Sprintf("%s-heartbeat-%d", c.use.ID, h.beats-1)},
			{Key: "tool_name", Value: c.use.Name},
			{Key: "parent_tool_use_id", Value: c.use.ID},
			{Key: "elapsed_time_seconds", Value: h.beats * int(heartbeatEvery/time.Second)},
			{Key: "heartbeat", Value: true},
		}}))
		if err != nil {
			return err
		}
	}
	return nil
}
