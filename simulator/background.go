package simulator

import (
	"cmp"
	"context"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// backgroundWork is the work behind a turn, which goes on while the turn does: it shows
// what tasks have to show.
type backgroundWork struct {
	s      *Simulator
	out    *emitter
	ledger *turnTotals
}

// drain yields what tasks have queued.
func (b *backgroundWork) drain(p task.Phase) {
	if b.s.main.Tasks == nil || b.out.left {
		return
	}
	events := b.s.main.Tasks.Take(p)
	if len(events) == 0 {
		return
	}
	defer b.s.main.Tasks.Shown()
	for _, ev := range events {
		if spent, ok := ev.(*protocol.AgentUsage); ok {
			b.s.books.charge(spent.Models)
			b.s.books.apiTime += time.Duration(spent.APIMS) * time.Millisecond
		}
		if ran, ok := ev.(*protocol.ToolRan); ok && ran.CountDenial { // a sub-agent's
			b.ledger.deny(ran.Use, ran.Use.Input)
		}
		b.out.emit(b.out.stamp(ev))
	}
}

// sleep waits, and shows meanwhile what tasks have to show; a cancelled turn
// gives the ctx's error, and nobody waits for a consumer who is gone.
func (b *backgroundWork) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || b.out.left {
		return cmp.Or(b.out.gone(), ctx.Err())
	}
	if b.s.main.Tasks == nil || !b.s.main.Tasks.Live() || !b.s.main.Tasks.Busy() {
		return b.s.o.Clock.Sleep(ctx, d)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slept := make(chan error, 1)
	go func() { slept <- b.s.o.Clock.Sleep(ctx, d) }() // ends with the sleep, which cancel ends
	for {
		select {
		case err := <-slept:
			return cmp.Or(b.out.gone(), err)
		case <-b.news():
			if b.drain(task.InTurn); b.out.left {
				cancel()
			}
		}
	}
}

// news is the channel that tells of queued events; nil = never.
func (b *backgroundWork) news() <-chan struct{} {
	if b.s.main.Tasks == nil || !b.s.main.Tasks.Live() {
		return nil
	}
	return b.s.main.Tasks.Ready()
}

// absorb tells the model of background work that has ended by now: no
// turn of its own follows. In an ordered set nobody knows yet.
func (b *backgroundWork) absorb() {
	tasks := b.s.main.Tasks
	if tasks == nil || !tasks.Live() {
		return
	}
	for n, ok := tasks.NextNotice(); ok && !b.out.left; n, ok = tasks.NextNotice() {
		b.out.emit(&protocol.PromptAbsorbed{
			UUID: b.s.o.Clock.NewID(), Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Notice: true, Timestamp: b.out.timestamp(),
		})
	}
}

// subagents counts the sub-agents of the session for a result.
func (b *backgroundWork) subagents() *protocol.SubagentStats {
	if b.s.main.Tasks == nil {
		return &protocol.SubagentStats{ByType: map[string]int{}}
	}
	return new(b.s.main.Tasks.Stats())
}

// backgroundTasks lists what still runs, for Stop hooks.
func (b *backgroundWork) backgroundTasks() protocol.HookList[protocol.BackgroundTask] {
	if b.s.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.BackgroundTask]
	for _, i := range b.s.main.Tasks.Running() {
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
func (b *backgroundWork) sessionCrons() protocol.HookList[protocol.SessionCron] {
	if b.s.main.Tasks == nil {
		return nil
	}
	var list protocol.HookList[protocol.SessionCron]
	for _, j := range b.s.main.Tasks.Scheduled() {
		list = append(list, protocol.SessionCron{ID: j.ID, Schedule: j.Cron.Expr(), Recurring: j.Recurring, Prompt: j.Prompt})
	}
	return list
}
