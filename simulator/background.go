package simulator

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

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
		t := &turn{s: s, ctx: ctx, yield: yield, started: s.o.Clock.Now()}
		for t.drain(task.BetweenTurns) == nil && !tasks.Pending() && tasks.Busy() {
			tasks.Advance()
			select {
			case <-ctx.Done():
				return
			case <-tasks.Ready():
			}
		}
		// A task may have ended since the queue was looked at. A consumer that
		// left in between is not asked again.
		if !t.left {
			_ = t.drain(task.BetweenTurns) // the only error is a consumer that leaves now
		}
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

// sourceSystem marks a prompt that no user wrote.
const sourceSystem = "system"

// drain yields what tasks have queued.
func (t *turn) drain(p task.Phase) error {
	if t.s.main.Tasks == nil {
		return nil
	}
	events := t.s.main.Tasks.Take(p)
	if len(events) == 0 {
		return nil
	}
	defer t.s.main.Tasks.Shown()
	for _, ev := range events {
		if spent, ok := ev.(*protocol.Spent); ok {
			t.s.charge(spent.Models)
		}
		if ran, ok := ev.(*protocol.ToolRan); ok && ran.CountDenial { // a sub-agent's
			t.denials = append(t.denials, protocol.PermissionDenial{ToolName: ran.Use.Name, ToolUseID: ran.Use.ID, ToolInput: ran.Use.Input})
		}
		if err := t.emit(t.stamp(ev)); err != nil {
			t.left = true
			return err
		}
	}
	return nil
}

// wait sleeps, and shows meanwhile what tasks have to show.
func (t *turn) wait(d time.Duration) error {
	if t.s.main.Tasks == nil || !t.s.main.Tasks.Live() || !t.s.main.Tasks.Busy() {
		return t.s.o.Clock.Sleep(t.ctx, d)
	}
	ctx, cancel := context.WithCancel(t.ctx)
	slept := make(chan error, 1)
	go func() { slept <- t.s.o.Clock.Sleep(ctx, d) }() // ends with the sleep, which cancel ends
	for {
		select {
		case err := <-slept:
			cancel()
			return err
		case <-t.news():
			if err := t.drain(task.InTurn); err != nil {
				cancel()
				<-slept //nolint:errcheck // what counts is that the consumer has left
				return err
			}
		}
	}
}

// charge adds what a sub-agent has used to the session's books.
func (s *Simulator) charge(models map[string]protocol.ModelUsage) {
	for _, model := range sortedKeys(models) {
		u := models[model]
		for _, books := range []map[string]protocol.ModelUsage{s.costs, s.since} {
			m := books[model]
			m.InputTokens += u.InputTokens
			m.OutputTokens += u.OutputTokens
			m.ThinkingTokens += u.ThinkingTokens
			m.CostUSD += u.CostUSD
			m.ContextWindow, m.MaxOutputTokens = u.ContextWindow, u.MaxOutputTokens
			m.CanonicalModel, m.Provider, m.CostBasis = u.CanonicalModel, u.Provider, u.CostBasis
			books[model] = m
		}
	}
}

// news is the channel that tells of queued events; nil = never.
func (t *turn) news() <-chan struct{} {
	if t.s.main.Tasks == nil || !t.s.main.Tasks.Live() {
		return nil
	}
	return t.s.main.Tasks.Ready()
}

// subagents counts the sub-agents of the session for a result.
func (s *Simulator) subagents() *protocol.SubagentStats {
	if s.main.Tasks == nil {
		return &protocol.SubagentStats{ByType: map[string]int{}}
	}
	stats := s.main.Tasks.Stats()
	return &stats
}

// backgroundTasks lists what still runs, for Stop hooks.
func (s *Simulator) backgroundTasks() protocol.HookList[protocol.BackgroundTask] {
	if s.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.BackgroundTask]
	for _, i := range s.main.Tasks.Running() {
		kind := "shell"
		if i.Kind == task.Agent {
			kind = "subagent"
		}
		list = append(list, protocol.BackgroundTask{
			ID: i.ID, Type: kind, Status: "running", Description: i.Description, Command: i.Command, AgentType: i.AgentType,
		})
	}
	return list
}

// sessionCrons lists the scheduled prompts of the session, for Stop hooks.
func (s *Simulator) sessionCrons() protocol.HookList[protocol.SessionCron] {
	if s.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.SessionCron]
	for _, j := range s.main.Tasks.Scheduled() {
		list = append(list, protocol.SessionCron{ID: j.ID, Schedule: j.Cron.Expr(), Recurring: j.Recurring, Prompt: j.Prompt})
	}
	return list
}

// Deferred is a tool call that a PreToolUse hook put off in an earlier run of
// the session, so that somebody could be asked meanwhile.
type Deferred struct {
	Use     protocol.ToolUse
	Message string // uuid of the message that made the call
}

// Deferred gives the turn that answers the call of [Options.Deferred], before
// any prompt, under a fresh id; false = there is none to answer.
func (s *Simulator) Deferred() (protocol.UserMessage, bool) {
	if s.main.Deferred == nil {
		return protocol.UserMessage{}, false
	}
	return protocol.UserMessage{Source: sourceDeferred, UUIDs: []string{s.o.Clock.NewID()}}, true
}

// sourceDeferred marks a turn without a prompt.
const sourceDeferred = "deferred"

// answerDeferred runs the call that was put off, hooks included, and goes on
// with the model. A tool that is there no more ends the turn before its hooks.
func (t *turn) answerDeferred() (finish, error) {
	d := t.s.main.Deferred
	t.in.UUIDs = nil // nobody sent it: neither init nor the result names it
	if err := t.sessionStart(); err != nil {
		return finish{}, err
	}
	tools, err := t.s.o.Tools.Tools(t.ctx)
	if err != nil {
		return finish{}, err
	}
	at := slices.IndexFunc(tools, func(tool protocol.Tool) bool { return tool.Name == d.Use.Name })
	if at < 0 {
		const reason = "tool_deferred_unavailable"
		text := d.Use.Name + " isn't available, so its deferred call didn't run. Reconnect the tool and resume, or resume with a prompt and " +
			"CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL=1 to drop the call and continue."
		return finish{subtype: "success", isError: true, terminal: reason, stop: reason, deferred: &d.Use, result: &text}, nil
	}
	calls := []call{{use: d.Use, tool: tools[at], event: d.Message}}
	results, end, err := t.toolRound(calls)
	if err != nil || end != nil {
		return deref(end), err
	}
	t.rounds++
	if end, err = t.batchDone(calls, results); err != nil || end != nil {
		return deref(end), err
	}
	t.users = 0 // the call belongs to the run that made it
	if err := t.init(""); err != nil {
		return finish{}, err
	}
	return t.converse(scenarios.Request{Results: results})
}
