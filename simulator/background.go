package simulator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// backgroundTaskReporter emits the events of background tasks while a turn runs, and lists the tasks for hooks and results.
type backgroundTaskReporter struct {
	sim       *Simulator
	out       *recordingEmitter
	totals    *turnTotals
	budgetEnd error // ends the turn because an agent for which the turn waits has spent the budget; nil otherwise
}

func (b *backgroundTaskReporter) emitTaskEventsAndEnforceBudget(phase task.ConversationPhase) {
	if b.out.consumerStopped {
		return
	}
	events := b.sim.main.Tasks.TakeEvents(phase)
	if len(events) > 0 {
		defer b.sim.main.Tasks.MarkTakenEventsEmitted()
		b.emitAndAddAgentUsageToTotals(events)
	}
	if phase == task.ConversationPhaseBetweenTurns && b.totals.turnEndErrorIfBudgetSpent(false) != nil && b.sim.main.Tasks.StopBackgroundAgentsKeepingEvents() {
		b.out.emitAsIs(&protocol.VerbatimOutput{Stderr: fmt.Sprintf("Budget limit reached ($%.2f of $%s); stopping background agents.\n", b.sim.totals.spentUSDInProcess(), protocol.FormatNumber(b.totals.budgetUSD))})
	}
}

// endTurnIfBudgetIsSpent sets budgetEnd if the budget is spent. The agents for which the turn waits then show no more events.
func (b *backgroundTaskReporter) endTurnIfBudgetIsSpent() (isSpent bool) {
	if b.budgetEnd = b.totals.turnEndErrorIfBudgetSpent(false); b.budgetEnd != nil {
		b.sim.main.Tasks.AbandonForeground()
	}
	return b.budgetEnd != nil
}

// emitAndAddAgentUsageToTotals emits events of tasks, and adds the usage of sub-agents in these events to the session's totals.
func (b *backgroundTaskReporter) emitAndAddAgentUsageToTotals(taskEvents []protocol.Event) {
	for _, ev := range taskEvents {
		if spent, ok := ev.(*protocol.AgentUsage); ok {
			b.sim.totals.addModelUsage(spent.Models)
			b.sim.totals.apiTime += time.Duration(spent.APIMS) * time.Millisecond
			if spent.BeforeAwaitedWork {
				b.endTurnIfBudgetIsSpent()
			}
		}
		if ran, ok := ev.(*protocol.ToolExecuted); ok && ran.CountDenial { // a sub-agent executed the call
			b.totals.recordDenial(ran.Use, ran.Use.InputForHooksAndHosts())
		}
		b.out.emitAsIs(b.out.assignIDs(ev))
	}
}

// sleepWhileEmittingTaskEvents waits for d and emits the events of tasks in the meantime. It returns early with the error of ctx when the turn
// is cancelled, and with errConsumerStopped when the consumer has stopped iterating.
func (b *backgroundTaskReporter) sleepWhileEmittingTaskEvents(ctx context.Context, d time.Duration) error {
	if d <= 0 || b.out.consumerStopped {
		return cmp.Or(b.out.errorIfConsumerStopped(), ctx.Err())
	}
	if !b.sim.main.Tasks.ShowsEventsLive() || !b.sim.main.Tasks.HasRunningBackgroundTask() {
		return b.sim.options.Clock.Sleep(ctx, d)
	}
	b.sim.main.Tasks.ReleaseEventsOfLaunchedTasks()
	return b.emitTaskEventsWhile(ctx, d, func() bool { return true })
}

// maxWaitForAgentsBeforeResult is how long the result of a turn waits for background agents to finish.
const maxWaitForAgentsBeforeResult = 300 * time.Millisecond

// waitForAgentsBeforeResult waits for background agents, for maxWaitForAgentsBeforeResult at most, so that the turn's result follows their
// events as in the real CLI. It does not wait for agents that are waiting themselves, for example before a retry. If no more
// prompts can arrive, it returns immediately: in this case, results are held back until all agents have finished.
func (b *backgroundTaskReporter) waitForAgentsBeforeResult(ctx context.Context) {
	tasks := b.sim.main.Tasks
	if tasks == nil || !tasks.ShowsEventsLive() || b.sim.main.Prompts == nil || b.sim.main.Prompts.IsClosedForNewPrompts() || !tasks.HasRunningOrUnshownBackgroundAgent() {
		return
	}
	_ = b.emitTaskEventsWhile(ctx, maxWaitForAgentsBeforeResult, func() bool { return tasks.HasNonWaitingBackgroundAgent() }) // the turn ends even after an error
	b.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn)
}

// emitTaskEventsWhile emits the events of tasks while condition is true, for maxWait at most.
func (b *backgroundTaskReporter) emitTaskEventsWhile(ctx context.Context, maxWait time.Duration, condition func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slept := make(chan error, 1)
	go func() { slept <- b.sim.options.Clock.Sleep(ctx, maxWait) }() // the goroutine returns when Sleep does; cancel ends Sleep
	for condition() {
		select {
		case err := <-slept:
			return cmp.Or(b.out.errorIfConsumerStopped(), err)
		case <-b.taskEventQueuedSignal():
			if b.emitTaskEventsAndEnforceBudget(task.ConversationPhaseInTurn); b.out.consumerStopped {
				cancel()
			}
		}
	}
	return nil
}

// taskEventQueuedSignal returns a channel that signals queued events of tasks. It is nil if events are not shown as they happen.
func (b *backgroundTaskReporter) taskEventQueuedSignal() <-chan struct{} {
	if !b.sim.main.Tasks.ShowsEventsLive() {
		return nil
	}
	return b.sim.main.Tasks.ChangeSignal()
}

// addTaskNoticesToRunningTurn adds the notices about finished tasks to the running turn, so that they do not start a separate turn.
func (b *backgroundTaskReporter) addTaskNoticesToRunningTurn() {
	tasks := b.sim.main.Tasks
	if !tasks.ShowsEventsLive() {
		return
	}
	for n, ok := tasks.TakeNextNotice(task.ConversationPhaseInTurn); ok && !b.out.consumerStopped; n, ok = tasks.TakeNextNotice(task.ConversationPhaseInTurn) {
		b.out.emitAsIs(&protocol.PromptAbsorbed{UUID: b.sim.options.Clock.NewID(), Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Notice: true, Timestamp: b.out.currentTimestamp()})
	}
}

func (b *backgroundTaskReporter) sessionCrons() protocol.NeverNullJSONList[protocol.SessionCron] {
	var list protocol.NeverNullJSONList[protocol.SessionCron]
	for _, j := range b.sim.main.Tasks.Jobs() {
		list = append(list, protocol.SessionCron{ID: j.ID, Schedule: j.Cron.Expression(), Recurring: j.Recurring, Prompt: j.Prompt})
	}
	return list
}
