package simulator

import (
	"cmp"
	"context"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// backgroundWork emits the events of background tasks while a turn runs, and lists the tasks for hooks and results.
type backgroundWork struct {
	sim    *Simulator
	out    *emitter
	totals *turnTotals
}

func (b *backgroundWork) emitTaskEvents(p task.Phase) {
	if b.sim.main.Tasks == nil || b.out.stopped {
		return
	}
	events := b.sim.main.Tasks.Take(p)
	if len(events) == 0 {
		return
	}
	defer b.sim.main.Tasks.MarkShown()
	b.emitAndCountUsage(events)
}

// emitAndCountUsage emits events of tasks, and adds the usage of sub-agents that they report to the session's totals.
func (b *backgroundWork) emitAndCountUsage(events []protocol.Event) {
	for _, ev := range events {
		if spent, ok := ev.(*protocol.AgentUsage); ok {
			b.sim.totals.addModelUsage(spent.Models)
			b.sim.totals.apiTime += time.Duration(spent.APIMS) * time.Millisecond
		}
		if ran, ok := ev.(*protocol.ToolExecuted); ok && ran.CountDenial { // a sub-agent executed the call
			b.totals.recordDenial(ran.Use, ran.Use.DisplayInput())
		}
		b.out.emit(b.out.assignIDs(ev))
	}
}

// sleep waits for d and emits the events of tasks in the meantime. It returns early with the error of ctx when the turn
// is cancelled, and with errStopped when the consumer has stopped iterating.
func (b *backgroundWork) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || b.out.stopped {
		return cmp.Or(b.out.checkOpen(), ctx.Err())
	}
	if b.sim.main.Tasks == nil || !b.sim.main.Tasks.ShowsEventsLive() || !b.sim.main.Tasks.HasRunningTask() {
		return b.sim.options.Clock.Sleep(ctx, d)
	}
	b.sim.main.Tasks.MarkLaunched()
	return b.sleepWhile(ctx, d, func() bool { return true })
}

// agentSettleTime is how long the result of a turn waits for background agents to finish.
const agentSettleTime = 300 * time.Millisecond

// waitForAgents waits for background agents, for agentSettleTime at most, so that the turn's result follows their
// events as in the real CLI. It does not wait for agents that are waiting themselves, for example before a retry.
// Without a prompt queue it does not wait at all, because results are then held back until all agents have finished.
func (b *backgroundWork) waitForAgents(ctx context.Context) {
	tasks := b.sim.main.Tasks
	if tasks == nil || !tasks.ShowsEventsLive() || b.sim.main.Prompts == nil || !tasks.HasAgent() {
		return
	}
	_ = b.sleepWhile(ctx, agentSettleTime, func() bool { return tasks.HasActiveAgent() }) // the turn ends even after an error
	b.emitTaskEvents(task.PhaseInTurn)
}

// sleepWhile waits for d, but returns as soon as condition is false. In the meantime, it emits the events of tasks.
func (b *backgroundWork) sleepWhile(ctx context.Context, d time.Duration, condition func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slept := make(chan error, 1)
	go func() { slept <- b.sim.options.Clock.Sleep(ctx, d) }() // the goroutine returns when Sleep does; cancel ends Sleep
	for condition() {
		select {
		case err := <-slept:
			return cmp.Or(b.out.checkOpen(), err)
		case <-b.taskEventSignal():
			if b.emitTaskEvents(task.PhaseInTurn); b.out.stopped {
				cancel()
			}
		}
	}
	return nil
}

// taskEventSignal returns a channel that signals queued events of tasks. It is nil if events are not shown as they happen.
func (b *backgroundWork) taskEventSignal() <-chan struct{} {
	if b.sim.main.Tasks == nil || !b.sim.main.Tasks.ShowsEventsLive() {
		return nil
	}
	return b.sim.main.Tasks.Ready()
}

// mergeTaskNotices adds the notices about finished tasks to the running turn, so that they do not start a separate turn.
func (b *backgroundWork) mergeTaskNotices() {
	tasks := b.sim.main.Tasks
	if tasks == nil || !tasks.ShowsEventsLive() {
		return
	}
	for n, ok := tasks.NextNotice(); ok && !b.out.stopped; n, ok = tasks.NextNotice() {
		b.out.emit(&protocol.PromptAbsorbed{UUID: b.sim.options.Clock.NewID(), Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Notice: true, Timestamp: b.out.timestamp()})
	}
}

func (b *backgroundWork) subagentStats() *protocol.SubagentStats {
	if b.sim.main.Tasks == nil {
		return &protocol.SubagentStats{ByType: map[string]int{}}
	}
	return new(b.sim.main.Tasks.Stats())
}

func (b *backgroundWork) backgroundTasks() protocol.HookList[protocol.BackgroundTask] {
	if b.sim.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.BackgroundTask]
	for _, i := range b.sim.main.Tasks.Running() {
		kind := "shell"
		if i.Kind == task.KindAgent {
			kind = "subagent"
		}
		list = append(list, protocol.BackgroundTask{ID: i.ID, Type: kind, Status: "running", Description: i.Description, Command: i.Command, AgentType: i.AgentType})
	}
	return list
}

func (b *backgroundWork) sessionCrons() protocol.HookList[protocol.SessionCron] {
	if b.sim.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.SessionCron]
	for _, j := range b.sim.main.Tasks.Scheduled() {
		list = append(list, protocol.SessionCron{ID: j.ID, Schedule: j.Cron.Expression(), Recurring: j.Recurring, Prompt: j.Prompt})
	}
	return list
}
