package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// stopBlockCap is how many times in a row SubagentStop hooks may keep an agent
// going.
const stopBlockCap = 8

// worker is one agent at work.
type worker struct {
	a      *Agents
	t      *task.Task
	def    Definition
	in     input
	script *protocol.SubagentScript
	model  string // canonical
	caller string // the Agent call, whatever call it goes on for
	sim    *simulator.Simulator

	// Guarded by Agents.mu.
	runs    bool
	inbox   []string // messages that it has not read
	status  task.Status
	started time.Time

	tools  tally
	last   *protocol.Result      // the agent's last result; nil = none yet
	fault  *protocol.Assistant   // what stood for a reply that the API refused; nil = nothing
	final  protocol.Usage        // of its last message
	saying string                // id of that message
	length int                   // of its blocks so far, in bytes
	crash  *simulator.CrashError // the scenario ends the process
}

// run is the whole life of the agent but the frames of its task and what hooks
// say to its start.
func (w *worker) run(ctx context.Context) task.End {
	sim, err := simulator.New(w.options())
	if err != nil {
		end := w.failed(err.Error())
		w.finish(end)
		return end
	}
	w.a.mu.Lock()
	w.sim = sim
	w.a.mu.Unlock()
	w.say(w.in.Prompt)
	return w.goOn(ctx, w.in.Prompt)
}

// goOn plays a prompt, and then what was sent to the agent meanwhile.
func (w *worker) goOn(ctx context.Context, text string) task.End {
	for {
		end := w.converse(ctx, text)
		message, more := w.finish(end)
		if !more {
			return end
		}
		w.heard(message)
		text = message
	}
}

// converse plays one prompt to the agent's answer.
func (w *worker) converse(ctx context.Context, text string) task.End {
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
		w.told(feedback)
		prompt = protocol.UserMessage{Content: protocol.Content{Text: feedback}, Source: "system"}
	}
	if text := w.text(); text != "" {
		_, _ = w.t.Write([]byte(text + "\n")) // never fails
	}
	if w.last.IsError && w.last.Subtype != outOfTurns {
		return w.refused()
	}
	end := task.End{Status: task.Completed, Summary: w.summary(""), Usage: w.usage()}
	if w.t.Background {
		end.Report = w.text()
	}
	return end
}

// stopped is the end of an agent by somebody else; of one that the caller waited
// for nothing is told.
func (w *worker) stopped() task.End {
	if !w.t.Background {
		return task.End{Status: task.Killed, Summary: w.t.Description}
	}
	return task.End{Status: task.Killed, Summary: w.summary("was stopped"), Usage: w.usage()}
}

func (w *worker) failed(why string) task.End {
	return task.End{Status: task.Failed, Summary: w.summary("failed: " + why), Usage: w.usage()}
}

// refused is the end of an agent whose model could not be asked, which is told
// to those who watch, or that came to no end.
func (w *worker) refused() task.End {
	ev := w.fault
	if ev == nil {
		return w.failed(w.text())
	}
	why := "Agent terminated early due to an API error: " + w.text() + " (error type " + ev.Error
	if ev.APIStatus != 0 {
		why += fmt.Sprintf(", HTTP %d, request id %s", ev.APIStatus, ev.RequestID)
	}
	why += ", model sent to the API: " + model.Wire(w.model) + ")"
	return task.End{Status: task.Failed, Summary: why, Notice: w.summary("failed: " + why), Error: why}
}

// summary is what the notification says: of an agent that the caller waits for
// its answer, of another what has become of it.
func (w *worker) summary(end string) string {
	switch {
	case end != "":
		return `Agent "` + w.t.Description + `" ` + end
	case w.t.Background:
		return `Agent "` + w.t.Description + `" finished`
	default:
		return w.text()
	}
}

// options are what the agent shares with its session, and what is its own.
func (w *worker) options() simulator.Options {
	s := w.a.o.Session.Options()
	ref := protocol.AgentRef{ID: w.t.ID, Type: w.t.AgentType, Depth: w.t.Depth}
	chain := executor.Chain(s.Tools, marked(ref), missing(s.Tools), executor.Hide(func(t protocol.Tool) bool { return !w.def.allowed(t) }))
	return simulator.Options{
		Model: w.a.o.Models.Script(w.script), Tools: toolbox{chain, s.Tools}, Hooks: s.Hooks, Clock: s.Clock,
		Live: s.Live.Agent(w.model), Here: s.Here, System: w.def.Prompt, Agent: &ref,
		Limits: simulator.Limits{Turns: w.def.MaxTurns, Retries: s.Limits.Retries, RetryScale: s.Limits.RetryScale, Fallback: s.Limits.Fallback, Gateway: s.Limits.Gateway},
		Show:   simulator.Show{Hooks: s.Show.Hooks, InOrder: s.Show.InOrder, Thinking: s.Show.Thinking, Stream: s.Show.Stream},
	}
}

// toolbox has an agent's tools, of whose calls the session's know.
type toolbox struct {
	executor.Executor
	known simulator.Tools
}

func (t toolbox) Prepare(call protocol.ToolUse) simulator.Prepared { return t.known.Prepare(call) }

func (t toolbox) Ready(ctx context.Context, call protocol.ToolUse) simulator.Ready {
	return t.known.Ready(ctx, call)
}

func (t toolbox) Reached(agent *protocol.AgentRef, calls []protocol.ToolUse) []simulator.Instructions {
	if known, ok := t.known.(simulator.Instructing); ok {
		return known.Reached(agent, calls)
	}
	return nil
}

// marked tells the layers around the tools whose call it is.
func marked(ref protocol.AgentRef) executor.Middleware {
	return executor.Func(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		call.Agent = &ref
		return next.Execute(ctx, call)
	})
}

// missing says of tools that the session has and the agent may not call that
// they are not among its own.
func missing(session executor.Executor) executor.Middleware {
	return executor.Func(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		result, err := next.Execute(ctx, call)
		if !errors.Is(err, executor.ErrUnknownTool) {
			return result, err
		}
		tools, listErr := session.Tools(ctx)
		if listErr != nil || !slices.ContainsFunc(tools, func(t protocol.Tool) bool { return t.Name == call.Name }) {
			return result, err
		}
		return executor.Plain(executor.Missing(call.Name)), nil
	})
}

// turn plays one prompt and shows it as part of the caller's conversation.
func (w *worker) turn(ctx context.Context, sim *simulator.Simulator, prompt protocol.UserMessage) error {
	w.last, w.fault = nil, nil
	for ev, err := range sim.Turn(ctx, prompt) {
		if err != nil {
			if crash, ok := errors.AsType[*simulator.CrashError](err); ok {
				w.crash = crash
			}
			return err
		}
		if _, answer := ev.(*protocol.User); answer && ctx.Err() != nil {
			continue // the caller is told of its own call only
		}
		w.show(ev)
		if _, ok := ev.(*protocol.Assistant); ok {
			w.t.Settle(ctx) // a call is shown before its hooks and questions
		}
	}
	if w.last == nil {
		return errors.New("the agent ended without a result")
	}
	return nil
}

// show hands an event of the agent's own conversation to its caller's.
func (w *worker) show(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Assistant:
		w.assistant(ev)
	case *protocol.User:
		if ev.IsSynthetic || ev.SourceUUID == "" { // only what answers its calls is shown
			return
		}
		w.address(ev)
		if _, failed := ev.ToolUseResult.(string); !failed { // the stream shows what went wrong only
			ev.ToolUseResult = nil
		}
		w.t.Post(ev)
	case *protocol.ToolRan:
		w.tools.count(ev)
		w.t.Post(ev)
	case *protocol.PermissionDenied:
		ev.AgentID = w.t.ID
		w.t.Post(ev)
	case *protocol.Result:
		waited := ev.DurationAPIMS
		if w.last != nil {
			waited -= w.last.DurationAPIMS
		}
		w.last = ev
		w.t.Post(&protocol.Spent{Models: *ev.ModelUsageSince, APIMS: waited})
	case *protocol.System:
		if ev.Subtype != "thinking_tokens" {
			w.t.Post(ev)
		}
	case *protocol.Attached:
		ev.AgentID = w.t.ID
		w.t.Post(ev)
	case *protocol.APIRetry:
		w.retries(ev)
	case *protocol.Matched, *protocol.Warning:
		w.t.Post(ev)
	}
}

// retries tells that the agent's model is asked again, as progress of the call that waits for it; where none does, nobody
// is told (observed with 2.1.329).
func (w *worker) retries(ev *protocol.APIRetry) {
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

// assistant shows one block. Texts of an agent that the caller waits for are
// shown only to those who asked (spec: cli-contract 9.5).
func (w *worker) assistant(ev *protocol.Assistant) {
	if ev.IsAPIErrorMessage {
		w.fault = ev
	}
	ev.ParentToolUseID = new(w.caller)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.t.ID, w.t.AgentType, w.t.Description
	ev.ThinkingDisplay, ev.ThinkingDurationMS, ev.APIErrorStatus = "", nil, 0
	if ev.Final != nil && ev.Message.ID != w.saying {
		w.saying, w.final, w.length = ev.Message.ID, ev.Final.Usage, 0
	}
	w.length += length(ev.Message.Content[0])
	if use, ok := ev.Message.Content[0].(protocol.ToolUse); ok {
		u := *w.usage()
		u.ToolUses++
		u.TotalTokens = w.final.InputTokens + w.length/4 // its end is still to come
		if w.t.Behind() {
			w.t.Post(ev)
		}
		w.t.Progress(activity(use, w.a.o.CWD, w.t.Description), use.Name, u)
		if !w.t.Behind() {
			w.t.Post(ev)
		}
		return
	}
	if w.t.Behind() || w.a.o.Session.Shown() {
		w.t.Post(ev)
		return
	}
	w.t.Post(&protocol.Unshown{Event: ev})
}

// length is that of what a block says.
func length(b protocol.Block) int {
	switch b := b.(type) {
	case protocol.TextBlock:
		return len(b.Text)
	case protocol.ThinkingBlock:
		return len(b.Thinking)
	case protocol.ToolUse:
		return len(b.Input)
	default:
		return 0
	}
}

// say shows a prompt of the agent.
func (w *worker) say(text string) {
	if w.t.Background || w.t.Depth > 1 {
		w.told(text)
		return
	}
	w.t.Post(w.prompt(text))
}

// told keeps a prompt of the agent that only its transcript shows.
func (w *worker) told(text string) { w.t.Post(&protocol.Unshown{Event: w.prompt(text)}) }

func (w *worker) prompt(text string) *protocol.User {
	ev := &protocol.User{
		Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}},
	}
	w.address(ev)
	return ev
}

func (w *worker) address(ev *protocol.User) {
	ev.ParentToolUseID = new(w.caller)
	ev.AgentID, ev.SubagentType, ev.TaskDescription = w.t.ID, w.t.AgentType, w.t.Description
}

// stop runs the SubagentStop hooks; their block goes on with the feedback.
func (w *worker) stop(ctx context.Context, blocks int) (feedback string, again bool) {
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
func (w *worker) transcript() string {
	path, kept := strings.CutSuffix(w.a.o.Session.Options().Live.Now().Transcript, ".jsonl")
	if !kept {
		return ""
	}
	return path + "/subagents/agent-" + w.t.ID + ".jsonl"
}

func (w *worker) hooks(ctx context.Context, in protocol.HookInput) hook.Outcome {
	o := w.a.o.Session.Options()
	event, _ := protocol.HookEvent(in)
	if o.Hooks == nil || !o.Hooks.Has(event) {
		return hook.Outcome{}
	}
	w.t.Settle(ctx)
	now := o.Live.Now()
	base := protocol.HookBase{
		SessionID: now.SessionID, TranscriptPath: now.Transcript, PromptID: now.PromptID, AgentID: w.t.ID, AgentType: w.t.AgentType,
	}
	if o.Here != nil {
		base.CWD = o.Here.Dir()
	}
	if event == "SubagentStop" {
		if o.Here != nil {
			base.PermissionMode = o.Here.Mode()
		}
		base.Effort = now.HookEffort()
	}
	out := o.Hooks.Run(ctx, hook.Input{Base: base, Event: in})
	if o.Show.Hooks {
		w.t.Post(out.Frames...)
	}
	w.t.Post(out.Notices...)
	return out
}

// outOfTurns is the subtype of a result at the limit of turns. That is no failure of an agent: it can go on (observed with
// 2.1.329).
const outOfTurns = "error_max_turns"

// text is the agent's answer.
func (w *worker) text() string {
	switch {
	case w.last == nil:
		return ""
	case w.last.Result != nil:
		return *w.last.Result
	case w.last.Subtype == outOfTurns:
		return fmt.Sprintf("NOTE: this agent stopped at its %d-turn limit before it had a report. Send it a message (SendMessage), and it goes on from there.\n", w.def.MaxTurns)
	default:
		return strings.Join(w.last.Errors, "\n")
	}
}
