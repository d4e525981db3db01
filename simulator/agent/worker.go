package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// stopBlockCap is how many times in a row SubagentStop hooks may make an agent
// continue.
const stopBlockCap = 8

// agentRun is one run of an agent.
type agentRun struct {
	a      *Agents
	t      *task.Task
	def    Definition
	in     input
	script *protocol.SubagentScript
	model  string           // canonical
	call   protocol.ToolUse // that started it
	caller string           // the Agent call that started it, also when another call continues it
	dir    string           // of its worktree; empty = none
	skill  string           // that it runs; empty = none
	sim    *simulator.Simulator

	// Guarded by Agents.mu.
	runs    bool
	inbox   []string // unread messages
	status  task.Status
	started time.Time

	tree  keptWorktree          // what is left of its worktree
	work  runProgress           // state of this run
	crash *simulator.CrashError // set if the scenario ends the process
}

// name returns the address for messages.
func (w *agentRun) name() string {
	return cmp.Or(w.in.Name, w.t.ID)
}

// ref distinguishes agents with the same name.
func (w *agentRun) ref() string {
	sum := sha256.Sum256([]byte(w.t.ID))
	return fmt.Sprintf("%.3x", sum)
}

// start runs the agent, or starts it as a background task.
func (w *agentRun) start(ctx context.Context) (executor.Result, error) {
	w.begin(ctx)
	if w.t.Background {
		if ctx.Err() != nil { // interrupted before it began
			end := w.stopped()
			w.leaveWorktree(ctx)
			w.finish(end)
			w.t.End(end)
			return executor.Plain(executor.Interrupted()), ctx.Err()
		}
		w.a.o.Tasks.Go(ctx, w.t, w.run)
		return executor.Plain(w.launched()), nil
	}
	end, err := w.wait(ctx)
	if err != nil {
		return executor.Result{}, err
	}
	if ctx.Err() != nil {
		return executor.Plain(executor.Interrupted()), ctx.Err()
	}
	return executor.Plain(w.completed(end)), nil
}

// wait runs a foreground agent to its end. The error is a crash of the process that the scenario asked for.
func (w *agentRun) wait(ctx context.Context) (task.End, error) {
	t := w.t
	end := w.run(ctx)
	t.End(end)
	if w.crash != nil {
		return end, w.crash
	}
	return end, nil
}

// begin resolves the model and runs the start hooks.
func (w *agentRun) begin(ctx context.Context) {
	w.model = claudecode.ResolveModel(w.modelName())
	w.hooks(ctx, protocol.SubagentStartHook{AgentType: w.t.AgentType})
}

func (w *agentRun) modelName() string {
	name := cmp.Or(w.in.Model, w.def.Model, w.a.o.Model, "inherit")
	if name == "inherit" {
		return w.a.o.Session.Options().State.Model()
	}
	return w.a.o.Models.Name(name)
}

// run runs the agent, except for the frames of its task and the context of its
// start hooks.
func (w *agentRun) run(ctx context.Context) task.End {
	sim, err := simulator.New(w.options())
	if err != nil {
		end := w.failed(err.Error())
		w.leaveWorktree(ctx)
		w.finish(end)
		return end
	}
	w.a.mu.Lock()
	w.sim = sim
	w.a.mu.Unlock()
	w.showPrompt(w.in.Prompt)
	return w.continueWith(ctx, w.in.Prompt)
}

// continueWith answers a prompt and then the messages that arrive meanwhile.
func (w *agentRun) continueWith(ctx context.Context, text string) task.End {
	for {
		end := w.converse(ctx, text)
		message, more := w.finish(end)
		if !more {
			w.leaveWorktree(ctx)
			return end
		}
		w.recordMessage(message)
		text = message
	}
}

// finish records the end of a run, unless a message is waiting, which it returns
// instead. A later message continues the agent in another run.
func (w *agentRun) finish(end task.End) (message string, more bool) {
	w.a.mu.Lock()
	defer w.a.mu.Unlock()
	if len(w.inbox) > 0 && end.Status == task.Completed {
		message, w.inbox = w.inbox[0], w.inbox[1:]
		return message, true
	}
	w.runs, w.status = false, end.Status
	return "", false
}

// recordMessage keeps a message in the agent's transcript; the caller's
// conversation does not show it.
func (w *agentRun) recordMessage(message string) {
	ev := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: message}}}
	w.address(ev)
	w.t.Post(&protocol.HiddenEvent{Event: ev})
}

// converse runs one prompt up to the agent's answer.
func (w *agentRun) converse(ctx context.Context, text string) task.End {
	prompt := protocol.UserMessage{Content: protocol.Content{Text: text}}
	for blocks := 0; ; blocks++ {
		if err := w.turn(ctx, w.sim, prompt); err != nil {
			return w.failed(err.Error())
		}
		if ctx.Err() != nil {
			return w.stopped()
		}
		feedback, again := w.stop(ctx, blocks)
		if !again {
			break
		}
		w.postHidden(feedback)
		prompt = protocol.UserMessage{Content: protocol.Content{Text: feedback}, Source: "system"}
	}
	if text := w.text(); text != "" {
		_, _ = w.t.Write([]byte(text + "\n")) // cannot fail
	}
	if w.work.last.IsError && w.work.last.Subtype != outOfTurns {
		return w.refused()
	}
	end := task.End{Status: task.Completed, Summary: w.summary(""), Usage: w.work.usage(w.t)}
	if w.t.Background {
		end.Report = w.text()
	}
	return end
}

// resume continues an agent that has ended, as another run of its task.
func (w *agentRun) resume(ctx context.Context, call, message string) {
	t := w.a.o.Tasks.Start(task.Info{
		ID: w.t.ID, Kind: task.Agent, ToolUseID: call, Description: w.t.Description, AgentType: w.t.AgentType, Prompt: message,
		Depth: w.t.Depth, ParentID: w.t.ParentID, Background: true,
	})
	w.a.mu.Lock()
	w.t = t
	w.a.mu.Unlock()
	w.work = runProgress{}
	w.a.o.Tasks.Go(ctx, t, func(ctx context.Context) task.End {
		w.recordMessage(message)
		return w.continueWith(ctx, message)
	})
}

// stopped returns the end of an agent that was stopped from outside; for a
// foreground agent nothing is reported.
func (w *agentRun) stopped() task.End {
	if !w.t.Background {
		return task.End{Status: task.Killed, Summary: w.t.Description}
	}
	return task.End{Status: task.Killed, Summary: w.summary("was stopped"), Usage: w.work.usage(w.t)}
}

func (w *agentRun) failed(why string) task.End {
	return task.End{Status: task.Failed, Summary: w.summary("failed: " + why), Usage: w.work.usage(w.t)}
}

// refused returns the end of an agent whose model failed or that had no result;
// observers are notified.
func (w *agentRun) refused() task.End {
	ev := w.work.fault
	if ev == nil {
		return w.failed(w.text())
	}
	why := "Agent terminated early due to an API error: " + w.text() + " (error type " + ev.Error
	if ev.APIStatus != 0 {
		why += fmt.Sprintf(", HTTP %d, request id %s", ev.APIStatus, ev.RequestID)
	}
	why += ", model sent to the API: " + claudecode.WireModel(w.model) + ")"
	return task.End{Status: task.Failed, Summary: why, Notice: w.summary("failed: " + why), Error: why}
}

// summary returns the text of the notification: the answer of a foreground agent,
// or the outcome of a background agent.
func (w *agentRun) summary(end string) string {
	switch {
	case end != "":
		return `Agent "` + w.t.Description + `" ` + end
	case w.t.Background:
		return `Agent "` + w.t.Description + `" finished`
	default:
		return w.text()
	}
}

// options returns the simulator options of the agent: those of its session with its
// own changes.
func (w *agentRun) options() simulator.Options {
	s := w.a.o.Session.Options()
	ref := protocol.AgentRef{ID: w.t.ID, Type: w.t.AgentType, Depth: w.t.Depth, Dir: w.dir, Unasked: w.skill != "" && w.call.ID == ""}
	chain := executor.Chain(s.Tools, withAgentRef(ref), reportMissing(s.Tools), executor.Hide(func(t protocol.Tool) bool { return !w.def.allowed(t) }))
	return simulator.Options{
		Model: w.a.o.Models.AgentModel(w.script), Tools: toolbox{chain, s.Tools, ref}, Hooks: s.Hooks, Clock: waitingClock{s.Clock, w},
		State: s.State.ForAgent(w.model), Location: s.Location, System: w.def.Prompt, Agent: &ref,
		Limits:  simulator.Limits{MaxTurns: w.def.MaxTurns, Retries: s.Limits.Retries, RetryScale: s.Limits.RetryScale, FallbackModel: s.Limits.FallbackModel, GatewayHost: s.Limits.GatewayHost},
		Display: simulator.DisplayOptions{HookEvents: s.Display.HookEvents, InOrder: s.Display.InOrder, Thinking: s.Display.Thinking, Stream: s.Display.Stream},
	}
}

// waitingClock is the clock of an agent, whose task waits while it sleeps.
type waitingClock struct {
	simulator.Clock
	w *agentRun
}

// Sleep sleeps.
func (c waitingClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.w.t.Wait(func() error { return c.Clock.Sleep(ctx, d) })
}

// turn runs one prompt and shows it as part of the caller's conversation.
func (w *agentRun) turn(ctx context.Context, sim *simulator.Simulator, prompt protocol.UserMessage) error {
	w.work.last, w.work.fault = nil, nil
	for ev, err := range sim.Turn(ctx, prompt) {
		if err != nil {
			if crash, ok := errors.AsType[*simulator.CrashError](err); ok {
				w.crash = crash
			}
			return err
		}
		if _, answer := ev.(*protocol.User); answer && ctx.Err() != nil {
			continue // only the caller's own call is reported
		}
		w.show(ev)
		if _, ok := ev.(*protocol.Assistant); ok {
			w.t.Settle(ctx) // a call is shown before its hooks and questions
		}
	}
	if w.work.last == nil {
		return errors.New("the agent ended without a result")
	}
	return nil
}

// show forwards an event of the agent's conversation to the caller's.
func (w *agentRun) show(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Assistant:
		w.assistant(ev)
	case *protocol.HiddenEvent:
		if said, ok := ev.Event.(*protocol.Assistant); ok {
			w.claim(said)
			w.t.Post(ev)
		}
	case *protocol.User:
		if ev.IsSynthetic || ev.SourceUUID == "" { // only results of its calls are shown
			return
		}
		w.address(ev)
		if _, failed := ev.ToolUseResult.(string); !failed { // the stream shows only the error
			ev.ToolUseResult = nil
		}
		w.t.Post(ev)
	case *protocol.ToolExecuted:
		w.work.tools.count(ev)
		w.t.Post(ev)
	case *protocol.PermissionDenied:
		ev.AgentID = w.t.ID
		w.t.Post(ev)
	case *protocol.Result:
		w.t.Post(&protocol.AgentUsage{Models: *ev.ModelUsageSince, APIMS: w.work.ended(ev)})
	case *protocol.System:
		if ev.Subtype != "thinking_tokens" {
			w.t.Post(ev)
		}
	case *protocol.AttachmentAdded:
		ev.AgentID = w.t.ID
		w.t.Post(ev)
	case *protocol.APIRetry:
		w.retries(ev)
	case *protocol.RuleMatched, *protocol.Warning:
		w.t.Post(ev)
	}
}

// retries reports a retry of the agent's model as progress of the waiting call; for
// a background agent it reports nothing (observed with 2.1.329).
func (w *agentRun) retries(ev *protocol.APIRetry) {
	if w.t.Background {
		return
	}
	retry := map[string]any{
		"agent_id": w.t.ID, "attempt": ev.Attempt, "max_retries": ev.MaxRetries, "retry_delay_ms": ev.RetryDelayMS,
		"error_status": ev.ErrorStatus, "error_category": ev.Error,
	}
	progress := func(more ...protocol.Field) *protocol.Frame {
		return &protocol.Frame{Type: "tool_progress", Fields: append([]protocol.Field{
			{Key: "tool_use_id", Value: "agent_" + w.caller},
			{Key: "tool_name", Value: "Agent"},
			{Key: "parent_tool_use_id", Value: w.caller},
			{Key: "elapsed_time_seconds", Value: 0},
			{Key: "subagent_type", Value: w.t.AgentType},
		}, more...)}
	}
	w.t.Post(progress(protocol.Field{Key: "subagent_retry", Value: retry}), progress())
}

// assistant shows one block. Texts of foreground agents are shown only on request
// (spec: cli-contract 9.5).
func (w *agentRun) assistant(ev *protocol.Assistant) {
	w.work.replied(ev)
	w.claim(ev)
	if use, ok := ev.Message.Content[0].(protocol.ToolUse); ok {
		u := w.work.calling(w.t)
		if w.t.InBackground() {
			w.t.Post(ev)
		}
		w.t.Progress(activity(use, w.a.o.CWD, w.t.Description), use.Name, u)
		if !w.t.InBackground() {
			w.t.Post(ev)
		}
		return
	}
	if w.t.InBackground() || w.a.o.Session.Shown() {
		w.t.Post(ev)
		return
	}
	w.t.Post(&protocol.HiddenEvent{Event: ev})
}

// claim marks a block as the agent's.
func (w *agentRun) claim(ev *protocol.Assistant) {
	ev.ParentToolUseID = new(w.caller)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.t.ID, w.t.AgentType, w.in.Description
	ev.ThinkingDisplay, ev.ThinkingDurationMS, ev.APIErrorStatus = "", nil, 0
}

// showPrompt shows a prompt of the agent.
func (w *agentRun) showPrompt(text string) {
	if w.t.Background || w.t.Depth > 1 {
		w.postHidden(text)
		return
	}
	w.t.Post(w.prompt(text))
}

// postHidden records a prompt of the agent that only its transcript shows.
func (w *agentRun) postHidden(text string) { w.t.Post(&protocol.HiddenEvent{Event: w.prompt(text)}) }

func (w *agentRun) prompt(text string) *protocol.User {
	ev := &protocol.User{
		Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}},
	}
	if w.skill != "" {
		ev.Expansion = &protocol.Expansion{Name: w.skill}
	}
	w.address(ev)
	return ev
}

func (w *agentRun) address(ev *protocol.User) {
	ev.ParentToolUseID = new(w.caller)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.t.ID, w.t.AgentType, w.in.Description
}

// stop runs the SubagentStop hooks; if one blocks, the agent continues with the
// feedback.
func (w *agentRun) stop(ctx context.Context, blocks int) (feedback string, again bool) {
	out := w.hooks(ctx, protocol.SubagentStopHook{
		AgentType: w.t.AgentType, StopHookActive: blocks > 0, AgentTranscriptPath: w.transcript(),
		LastAssistantMessage: w.text(),
	})
	if !out.Block || blocks >= stopBlockCap {
		return "", false
	}
	return strings.Join(out.Texts, "\n"), true
}

// transcript is where the session keeps what the agent says.
func (w *agentRun) transcript() string {
	path, kept := strings.CutSuffix(w.a.o.Session.Options().State.Snapshot().TranscriptPath, ".jsonl")
	if !kept {
		return ""
	}
	return path + "/subagents/agent-" + w.t.ID + ".jsonl"
}

func (w *agentRun) hooks(ctx context.Context, in protocol.HookInput) hook.Outcome {
	o := w.a.o.Session.Options()
	event, _ := protocol.HookEvent(in)
	if o.Hooks == nil || !o.Hooks.Has(event) {
		return hook.Outcome{}
	}
	w.t.Settle(ctx)
	now := o.State.Snapshot()
	base := protocol.HookBase{
		SessionID: now.SessionID, TranscriptPath: now.TranscriptPath, PromptID: now.PromptID, AgentID: w.t.ID, AgentType: w.t.AgentType,
	}
	if o.Location != nil {
		base.CWD = cmp.Or(w.dir, o.Location.Dir())
	}
	if event == "SubagentStop" {
		if o.Location != nil {
			base.PermissionMode = o.Location.Mode()
		}
		base.Effort = now.HookEffort()
	}
	out := o.Hooks.Run(ctx, hook.Input{Base: base, Event: in})
	if o.Display.HookEvents {
		w.t.Post(out.Frames...)
	}
	w.t.Post(out.Notices...)
	return out
}

// text is the agent's answer.
func (w *agentRun) text() string {
	switch {
	case w.work.last == nil:
		return ""
	case w.work.last.Result != nil:
		return *w.work.last.Result
	case w.work.last.Subtype == outOfTurns:
		return fmt.Sprintf("NOTE: this agent stopped at its %d-turn limit before it had a report. Send it a message (SendMessage) to continue.\n", w.def.MaxTurns)
	default:
		return strings.Join(w.work.last.Errors, "\n")
	}
}
