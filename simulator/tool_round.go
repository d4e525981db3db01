package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// toolRound runs the calls of a message and shows what comes of them.
type toolRound struct {
	*turnContext
	inTools bool // calls are running or have been refused
}

// executedCall is a call with its result.
type executedCall struct {
	i       int
	result  executor.Result
	started time.Time
	took    time.Duration
	err     error
}

// rank puts calls that were denied, which is quick, before those that ran.
func (r *executedCall) rank() int {
	if r.result.Denied != nil {
		return 0
	}
	return 1
}

// run runs the calls of one message as the real CLI does: read-only
// neighbours in parallel, all others one after another in order; a failed call
// does not stop its siblings (spec: cli-observed 2). Results are in call order.
func (d *toolRound) run(ctx context.Context, calls []call) ([]scenarios.Result, error) {
	d.inTools = true
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
		stop, err := d.batch(ctx, calls, start, end, func(r executedCall) {
			shown[r.i] = true
			results[r.i] = scenarioResult(calls[r.i].use, r.result.ToolResult)
			d.show(calls[r.i], r)
		})
		if err != nil {
			return nil, d.rejectRest(ctx, calls, shown, end, err)
		}
		if stop != nil {
			return nil, d.halt(calls[end:], end, *stop)
		}
		start = end
	}
	d.inTools = false
	return results, d.structured.done()
}

// beside tells whether the call may run while its neighbours do.
func (c call) beside() bool { return c.readOnly || c.tool.ReadOnly }

// batch runs calls[start:end] at once and shows each as it ends, or in call
// order when the run must be repeatable.
func (d *toolRound) batch(ctx context.Context, calls []call, start, end int, show func(executedCall)) (*executor.StopTurn, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan executedCall, end-start)
	var wg sync.WaitGroup
	for i := start; i < end; i++ {
		ready := d.s.o.Tools.Ready(ctx, calls[i].use)
		calls[i].use.Seen, calls[i].refused = ready.Seen, ready.Refused
		wg.Go(func() { done <- d.execute(ctx, i, calls[i]) }) // ends with its call, which ends with ctx
	}
	defer wg.Wait()
	defer cancel()
	alive := &heartbeat{ticker: time.NewTicker(heartbeatEvery), calls: slices.Clone(calls[start:end])}
	defer alive.ticker.Stop()
	var stop *executor.StopTurn
	for left := end - start; left > 0; {
		ready, err := d.ready(done, left, alive)
		if err != nil {
			return nil, err
		}
		left -= len(ready)
		for _, r := range ready {
			alive.calls = slices.DeleteFunc(alive.calls, func(c call) bool { return c.event == calls[r.i].event })
			if r.err != nil {
				return nil, r.err
			}
			if r.result.Stop != nil && stop == nil {
				stop = r.result.Stop
			}
			show(r)
			if err := d.out.gone(); err != nil {
				return nil, err
			}
		}
	}
	return stop, nil
}

// together is how close two calls must end to count as ending at once.
const together = time.Millisecond

// ready waits for the next calls to end and shows meanwhile what tasks say, and
// that the calls still run. Those that end at once are in call order, denied ones
// first, so that quick calls do not swap by chance; a repeatable run waits for
// all of them.
func (d *toolRound) ready(done <-chan executedCall, left int, alive *heartbeat) ([]executedCall, error) {
	var batch []executedCall
	var late <-chan time.Time // nil = none has ended, or all are waited for
	for len(batch) < left {
		select {
		case r := <-done:
			if batch = append(batch, r); len(batch) == 1 && !d.s.o.Show.InOrder {
				late = time.After(together)
			}
		case <-d.behind.news():
			d.behind.drain(task.InTurn)
		case <-alive.ticker.C:
			d.beat(alive)
		case <-late:
			left = len(batch)
		}
		if err := d.out.gone(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(batch, func(a, b executedCall) int { return cmp.Or(a.rank()-b.rank(), a.i-b.i) })
	return batch, nil
}

// execute runs one call through the chain. Err is set only when the turn was
// interrupted.
func (d *toolRound) execute(ctx context.Context, i int, c call) executedCall {
	r := executedCall{i: i, started: d.s.o.Clock.Now()}
	r.result, r.err = d.answer(ctx, c)
	r.took = d.s.o.Clock.Now().Sub(r.started)
	if ctx.Err() != nil && r.err == nil {
		r.err = ctx.Err()
	}
	return r
}

func (d *toolRound) answer(ctx context.Context, c call) (executor.Result, error) {
	if c.alias != "" && c.tool.Name == "" {
		return executor.Plain(executor.Missing(c.alias)), nil
	}
	if c.use.Name == structuredTool && d.s.main.Schema != nil {
		return executor.Plain(d.structured.check(c.use)), nil
	}
	if c.refused != nil {
		return *c.refused, nil
	}
	result, err := d.s.o.Tools.Execute(ctx, c.use)
	_, asked := errors.AsType[*UnansweredError](err)
	_, crashes := errors.AsType[*CrashError](err) // of a sub-agent's script
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, executor.ErrUnknownTool):
		return executor.Plain(executor.Unknown(c.use.Name, nil)), nil
	case ctx.Err() != nil && !asked:
		return result, ctx.Err()
	case ctx.Err() != nil, crashes:
		return result, err
	default:
		return executor.Plain(protocol.ErrorResult(err.Error())), nil
	}
}

// UnansweredError is what a layer around the tools returns when the turn ended
// while somebody was asked about a call: it counts as a denial.
type UnansweredError struct {
	Call string // id
	Err  error  // that of the asker
}

func (e *UnansweredError) Error() string { return "asking for permission: " + e.Err.Error() }

// Unwrap returns that of the asker.
func (e *UnansweredError) Unwrap() error { return e.Err }

// show yields everything about one finished call.
func (d *toolRound) show(c call, r executedCall) {
	res := r.result
	d.behind.drain(task.InTurn)
	d.out.all(res.Before)
	d.prompts.beside = append(d.prompts.beside, res.Context...)
	if res.Stop != nil && res.Stop.Deferred != nil {
		return // a deferred call has no result
	}
	if no := res.Denied; no != nil {
		no.Type, no.Subtype, no.UUID, no.SessionID = "system", "permission_denied", d.s.o.Clock.NewID(), d.s.o.Live.SessionID()
		d.out.emit(no)
	}
	if res.CountDenial {
		d.ledger.deny(c.use, c.use.Observed())
	}
	d.out.emit(&protocol.ToolRan{
		Use: c.use, Result: res.ToolResult, Breakpoints: res.Breakpoints, CountDenial: res.CountDenial, RanWith: res.RanWith, Started: r.started, Duration: r.took,
	})
	d.out.emit(d.toolEvent(c, res.ToolResult))
	if d.s.main.Tasks != nil {
		d.s.main.Tasks.Launched(c.use.ID)
	}
	for _, ev := range res.After {
		if text, is := ev.(*protocol.User); is && text.Expansion != nil {
			text.ToolUseID = c.use.ID
		}
	}
	d.out.all(res.After)
}

// toolEvent is the user event that shows a result.
func (d *toolRound) toolEvent(c call, res protocol.ToolResult) *protocol.User {
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
		SessionID: d.s.o.Live.SessionID(), UUID: d.s.o.Clock.NewID(), Timestamp: d.out.timestamp(),
		ToolUseResult: output, SourceUUID: c.event, Tool: c.use.Name,
	}
	if c.tool.Server != "" {
		ev.MCP = &protocol.MCPCall{Server: c.tool.Server, Tool: c.tool.RawName, Result: res.MCP, NotReadOnly: notReadOnly(c.tool, res)}
	}
	if res.Decision != nil || res.NonExecutionKind != "" {
		ev.ToolResultMeta = []protocol.ToolResultMeta{{ID: c.use.ID, NonExecutionKind: res.NonExecutionKind, PermissionDecision: res.Decision}}
	}
	return ev
}

// notReadOnly is why a call that succeeded may have changed something.
func notReadOnly(t protocol.Tool, res protocol.ToolResult) string {
	var hints struct {
		ReadOnly *bool `json:"readOnlyHint"`
	}
	_ = json.Unmarshal(t.Annotations, &hints) // what is none gives no hint
	switch {
	case res.IsError || hints.ReadOnly != nil && *hints.ReadOnly:
		return ""
	case hints.ReadOnly != nil:
		return "declared"
	}
	return "no_hint"
}

// rejectRest answers the calls that an interrupt left without a result; those
// from begun on had not started.
func (d *toolRound) rejectRest(ctx context.Context, calls []call, shown []bool, begun int, cause error) error {
	if ctx.Err() == nil || d.out.left {
		return cause
	}
	superseded := errors.Is(context.Cause(ctx), ErrSuperseded)
	for i, c := range calls {
		if shown[i] {
			continue
		}
		result := executor.Plain(executor.Interrupted())
		unanswered, ok := errors.AsType[*UnansweredError](cause)
		waits := ok && unanswered.Call == c.use.ID // for an answer to whether it may run
		result.CountDenial = waits && !superseded
		switch {
		case superseded && i < begun:
			result.ToolResult = executor.Aborted()
		case superseded:
			result.ToolResult = executor.Skipped()
		case i < begun && !waits && !errors.Is(context.Cause(ctx), ErrSignalled):
			result.ToolResult = executor.Stopped()
		}
		d.show(c, executedCall{i: i, result: result, started: d.s.o.Clock.Now()})
	}
	return cause
}

// halt ends the turn in the middle of a message. Who refuses one call for good
// refuses those that have not begun: each has its own result, and no denial.
func (d *toolRound) halt(rest []call, begun int, stop executor.StopTurn) error {
	if stop.Interrupted {
		for i, c := range rest {
			d.show(c, executedCall{i: begun + i, result: executor.Plain(executor.Interrupted()), started: d.s.o.Clock.Now()})
		}
	}
	return d.stopped(stop)
}

// stopped ends the turn as a tool layer asked.
func (d *toolRound) stopped(stop executor.StopTurn) error {
	switch {
	case stop.Err != nil:
		return stop.Err
	case stop.Interrupted:
		return d.aborted()
	}
	end := &turnEndError{subtype: "success", terminal: stop.TerminalReason, stop: stop.StopReason, deferred: stop.Deferred, result: new("")}
	end.stop = cmp.Or(end.stop, "tool_use")
	return end
}

// aborted ends a turn whose tool was interrupted or refused for good; the
// refused calls have had their results.
func (d *toolRound) aborted() *turnEndError {
	d.out.inject("[Request interrupted by user for tool use]", false)
	return &turnEndError{
		subtype: "error_during_execution", terminal: "aborted_tools", isError: true, stop: "tool_use",
		errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"},
	}
}

// done runs the hooks that follow all calls of one message.
func (d *toolRound) done(ctx context.Context, calls []call, results []scenarios.Result) error {
	in := protocol.PostToolBatchHook{}
	for i, c := range calls {
		in.ToolCalls = append(in.ToolCalls, protocol.HookToolCall{
			ToolName: c.use.Name, ToolInput: c.use.Input, ToolUseID: c.use.ID, ToolResponse: results[i].Content,
		})
	}
	out, err := d.hooks.run(ctx, in)
	if err != nil {
		return err
	}
	d.out.all(out.Notices)
	if !out.Block && !out.StopTurn {
		return d.hooks.reached(ctx, succeeded(calls, results))
	}
	return d.stopped(executor.StopTurn{TerminalReason: "hook_stopped"})
}

// succeeded are the calls that did what they were to do.
func succeeded(calls []call, results []scenarios.Result) []protocol.ToolUse {
	uses := make([]protocol.ToolUse, 0, len(calls))
	for i, c := range calls {
		if !results[i].IsError {
			uses = append(uses, c.use)
		}
	}
	return uses
}

func scenarioResult(use protocol.ToolUse, r protocol.ToolResult) scenarios.Result {
	content, err := protocol.Marshal(r.Content)
	if err != nil {
		content = nil
	}
	return scenarios.Result{
		ToolUseID: use.ID, Tool: use.Name, Text: r.Content.Plain(), IsError: r.IsError,
		Content: content, Structured: structuredOf(use.Name, r),
	}
}

// structuredOf is the structured content of the result of an MCP tool, and the output of a built-in one; nil means none.
func structuredOf(tool string, r protocol.ToolResult) any {
	if !strings.HasPrefix(tool, "mcp__") {
		return r.Output
	}
	if r.MCP == nil || r.MCP.Structured == nil {
		return nil
	}
	return r.MCP.Structured
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

// beat yields a sign of life for every call that still runs.
func (d *toolRound) beat(h *heartbeat) {
	h.beats++
	for _, c := range h.calls {
		d.out.emit(d.out.stamp(&protocol.Frame{Type: "tool_progress", Fields: []protocol.Field{
			{Key: "tool_use_id", Value: fmt.Sprintf("%s-heartbeat-%d", c.use.ID, h.beats-1)},
			{Key: "tool_name", Value: c.use.Name},
			{Key: "parent_tool_use_id", Value: c.use.ID},
			{Key: "elapsed_time_seconds", Value: h.beats * int(heartbeatEvery/time.Second)},
			{Key: "heartbeat", Value: true},
		}}))
	}
}
