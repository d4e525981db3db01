package simulator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// stopBlockCap is how many times in a row Stop hooks may keep a turn going
// before it ends all the same (spec: cli-observed 11).
const stopBlockCap = 8

// sourceCompact is the source of a session start that follows a compaction.
const sourceCompact = "compact"

// hookBase is the common part of hook inputs for events of this turn: what
// precedes the prompt has no id of it, what is not about the model's work has
// no mode, and the effort is told where the model has worked.
func (t *turn) hookBase(in protocol.HookInput) protocol.HookBase {
	base := t.s.sessionBase()
	event, subject := in.HookEvent()
	if subject == sourceCompact {
		event = "PreCompact"
	}
	switch event {
	case "SessionStart", "InstructionsLoaded", "Setup":
		return base
	case "PreCompact", "PostCompact", "MessageDisplay":
		base.PromptID = t.promptID
		return base
	case "Stop", "PostToolBatch": // the others precede the first request
		base.Effort = t.s.o.Live.effort()
	}
	base.PromptID, base.PermissionMode = t.promptID, t.s.o.Here.Mode()
	if agent := t.s.o.Agent; agent != nil {
		base.AgentID, base.AgentType, base.PromptID = agent.ID, agent.Type, t.s.o.Live.Now().PromptID
	}
	return base
}

// sessionBase names the session of right now: /clear changes it.
func (s *Simulator) sessionBase() protocol.HookBase {
	now := s.o.Live.Now()
	return protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.Transcript, CWD: s.o.Here.Dir()}
}

// runHooks runs the hooks of one event and yields what they show and what
// transcripts keep of them.
func (t *turn) runHooks(in protocol.HookInput) (hook.Outcome, error) {
	out, err := t.askHooks(in)
	if err != nil {
		return out, err
	}
	return out, t.emitAll(attached(out))
}

// askHooks runs the hooks of one event and yields what they show.
func (t *turn) askHooks(in protocol.HookInput) (hook.Outcome, error) {
	event, _ := in.HookEvent()
	if t.s.o.Hooks == nil || !t.s.o.Hooks.Has(event) || t.s.o.Agent != nil && event != "PostToolBatch" {
		return hook.Outcome{}, nil
	}
	out := t.s.o.Hooks.Run(t.ctx, hook.Input{Base: t.hookBase(in), Event: in})
	t.beside = append(t.beside, out.AdditionalContext...)
	if t.s.o.Show.Hooks || event == "SessionStart" || event == "Setup" {
		if err := t.emitAll(out.Frames); err != nil {
			return out, err
		}
	}
	return out, t.ctx.Err()
}

// attached is what transcripts keep of hooks.
func attached(out hook.Outcome) []protocol.Event {
	var events []protocol.Event
	for _, a := range out.Attachments {
		ev := &protocol.Attached{Attachment: a}
		if a.Rendered != "" {
			ev.Role, ev.Rendered = "system", protocol.Reminder(a.Rendered)
		}
		events = append(events, ev)
	}
	return events
}

func (t *turn) emitAll(events []protocol.Event) error {
	for _, ev := range events {
		if err := t.emit(t.stamp(ev)); err != nil {
			return err
		}
	}
	return nil
}

// sessionStart runs the hooks that come before the session's first turn. They
// never block.
func (t *turn) sessionStart() error {
	if t.s.begun {
		return nil
	}
	t.s.begun = true
	source := t.s.started
	switch {
	case source != "":
	case t.s.main.Start.Forked:
		source = "fork"
	case t.s.resumed:
		source = "resume"
	default:
		source = "startup"
	}
	if t.s.main.Start.Setup != "" {
		if _, err := t.runHooks(protocol.SetupHook{Trigger: t.s.main.Start.Setup}); err != nil {
			return err
		}
	}
	out, err := t.runHooks(protocol.SessionStartHook{Source: source, AgentType: t.s.main.Start.Agent, SessionTitle: t.s.main.Start.Title})
	if err != nil {
		return err
	}
	if err := t.emitAll(out.Notices); err != nil {
		return err
	}
	for _, file := range t.s.main.Start.Instructions {
		if _, err := t.runHooks(file); err != nil {
			return err
		}
	}
	if title := cmp.Or(out.Specific.SessionTitle, t.s.main.Start.Title); title != "" {
		if err := t.system("session_title_changed", protocol.Field{Key: "title", Value: title}); err != nil {
			return err
		}
	}
	if !t.s.main.Start.Reduced {
		return nil
	}
	return t.system("ui_invalidate", protocol.Field{Key: "event", Value: "ui.render"})
}

// submission is what the hooks of a prompt say together.
type submission struct {
	notices []protocol.Event // for after init
	end     *finish          // not nil = the prompt is refused
	died    bool             // not even init is shown
}

// submit runs the hooks of the prompt and of the command that it is, before
// init, and yields the prompt's trace.
func (t *turn) submit(c slash.Call, x *slash.Expansion) (s submission, err error) {
	var out, expansion hook.Outcome
	if t.in.Source != sourceSystem {
		out, err = t.askHooks(protocol.UserPromptSubmitHook{Prompt: t.in.Content.Plain(), SessionTitle: t.s.main.Start.Title})
	}
	switch {
	case err != nil:
		return s, err
	case out.CrashError != "":
		s.end = &finish{
			subtype: "error_during_execution", isError: true, untouched: true,
			errors: []string{out.CrashError, "[session_crash] the session ended because of a hook"},
		}
		s.died = true
		return s, t.prompted(false)
	case keepsOut(out):
		s.notices, s.end = out.Notices, refusal(out, "")
		return s, t.turnAway(out, out.Block)
	case x != nil:
		expansion, err = t.askHooks(protocol.UserPromptExpansionHook{
			ExpansionType: x.Kind, CommandName: c.Name, CommandArgs: c.Args, CommandSource: x.Source, Prompt: t.in.Content.Plain(),
		})
		if err != nil {
			return s, err
		}
		if keepsOut(expansion) {
			s.notices, s.end = expansion.Notices, refusal(expansion, "custom")
			return s, t.turnAway(expansion, true)
		}
	}
	s.notices = append(expansion.Notices, out.Notices...)
	return s, t.accept(x, append(attached(expansion), attached(out)...), out.Specific.SessionTitle)
}

// accept yields the trace of a prompt that hooks let pass, and of the text
// behind it.
func (t *turn) accept(x *slash.Expansion, kept []protocol.Event, title string) error {
	if err := t.prompted(false); err != nil {
		return err
	}
	if x != nil {
		if err := t.added(protocol.Content{Blocks: []protocol.Block{protocol.Text(x.Text)}}); err != nil {
			return err
		}
	}
	if err := t.emitAll(kept); err != nil || title == "" {
		return err
	}
	return t.system("session_title_changed", protocol.Field{Key: "title", Value: title})
}

// keepsOut reports whether hooks of a prompt keep it from the model.
func keepsOut(out hook.Outcome) bool { return out.Block || out.StopTurn }

// refusal is the end of a turn whose prompt hooks keep from the model.
func refusal(out hook.Outcome, command string) *finish {
	text := strings.Join(out.Texts, "\n")
	return &finish{subtype: "success", untouched: true, result: &text, local: command}
}

// turnAway yields the trace of a prompt that hooks keep from the model; dropped
// says that the prompt itself does not stay in the conversation.
func (t *turn) turnAway(out hook.Outcome, dropped bool) error {
	if err := t.prompted(dropped); err != nil {
		return err
	}
	if !out.Block {
		if err := t.added(protocol.Content{Text: strings.Join(out.Texts, "\n")}); err != nil {
			return err
		}
	}
	return t.emitAll(attached(out))
}

// added yields the trace of text that the CLI itself puts beside the prompt.
func (t *turn) added(text protocol.Content) error {
	return t.emit(&protocol.Prompted{
		UUID: t.s.o.Clock.NewID(), PromptID: t.promptID, Timestamp: t.timestamp(), Injected: true, Content: text,
	})
}

// batchDone runs the hooks that follow all calls of one message; end is set
// when they end the turn.
func (t *turn) batchDone(calls []call, results []scenarios.Result) (end *finish, err error) {
	in := protocol.PostToolBatchHook{}
	for i, c := range calls {
		in.ToolCalls = append(in.ToolCalls, protocol.HookToolCall{
			ToolName: c.use.Name, ToolInput: c.use.Observed(), ToolUseID: c.use.ID, ToolResponse: results[i].Content,
		})
	}
	out, err := t.runHooks(in)
	if err != nil {
		return nil, err
	}
	if err := t.emitAll(out.Notices); err != nil || !out.Block && !out.StopTurn {
		return nil, err
	}
	stopped, err := t.stopped(executor.StopTurn{TerminalReason: "hook_stopped"})
	return &stopped, err
}

// keepGoing runs the Stop hooks. A block puts its feedback into the
// conversation, and the model is asked again with the returned text.
func (t *turn) keepGoing() (feedback string, again bool, err error) {
	out, err := t.runHooks(protocol.StopHook{
		StopHookActive: t.stopBlocks > 0, LastAssistantMessage: t.lastText,
		BackgroundTasks: t.s.backgroundTasks(), SessionCrons: t.s.sessionCrons(),
	})
	if err != nil {
		return "", false, err
	}
	if err := t.emitAll(out.Notices); err != nil {
		return "", false, err
	}
	context := strings.Join(out.AdditionalContext, "\n")
	switch {
	case out.StopTurn:
		t.prevented = true
		return "", false, nil
	case out.Failed && !out.Block:
		return "", false, t.emit(t.stamp(hook.StopNotification()))
	case !out.Block && context == "":
		return "", false, nil
	}
	first := t.stopBlocks == 0
	t.stopBlocks++
	for _, text := range out.Texts {
		if err := t.inject(text, true); err != nil {
			return "", false, err
		}
	}
	if t.stopBlocks > t.s.o.Limits.stopBlocks() {
		if out.Block {
			t.lastText = "" // the feedback is what was said last
		}
		return "", false, t.stopCapped()
	}
	if !out.Block {
		return context, true, nil
	}
	if first {
		err = t.emit(t.stamp(hook.StopNotification()))
	}
	return strings.Join(out.Texts, "\n"), true, err
}

// stopCapped says that Stop hooks are not listened to any more.
func (t *turn) stopCapped() error {
	text := fmt.Sprintf("A hook blocked the turn from ending %d consecutive times—overriding and ending turn. "+
		"For Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. "+
		"Set CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit.", t.stopBlocks)
	err := t.system("informational", protocol.Field{Key: "content", Value: text}, protocol.Field{Key: "level", Value: "warning"})
	if err != nil {
		return err
	}
	return t.system("notification",
		protocol.Field{Key: "key", Value: "stop-hook-block-cap"},
		protocol.Field{Key: "text", Value: text},
		protocol.Field{Key: "priority", Value: "high"},
		protocol.Field{Key: "color", Value: "warning"})
}

// endBase is the common part of SessionEnd inputs.
func (s *Simulator) endBase() protocol.HookBase {
	base := s.sessionBase()
	base.PromptID = s.o.Live.Now().PromptID
	return base
}

// effort is the level that hooks are told; nil = none.
func (l *Live) effort() *protocol.HookEffort {
	level := l.Now().Effort
	if level == "" {
		return nil
	}
	return &protocol.HookEffort{Level: level}
}

func (l Limits) stopBlocks() int {
	if l.StopBlocks > 0 {
		return l.StopBlocks
	}
	return stopBlockCap
}

// Close runs the SessionEnd hooks of a session that has had a turn. Reason is
// that of the hook's input; empty = "other".
func (s *Simulator) Close(ctx context.Context, reason string) {
	if s.o.Hooks == nil {
		return
	}
	if reason == "" {
		reason = "other"
	}
	if s.begun {
		s.o.Hooks.Run(ctx, hook.Input{Base: s.endBase(), Event: protocol.SessionEndHook{Reason: reason}})
	}
	s.o.Hooks.Close(ctx)
}
