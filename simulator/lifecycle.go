package simulator

import (
	"context"
	"strings"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// stopBlockCap is how many times in a row Stop hooks may keep a turn going
// before it ends all the same (spec: cli-observed 11).
const stopBlockCap = 9

// hookBase is the common part of hook inputs for events of this turn.
func (t *turn) hookBase() protocol.HookBase {
	base := t.s.sessionBase()
	base.PromptID, base.PermissionMode = t.promptID, t.s.o.Mode()
	return base
}

// sessionBase names the session of right now: /clear changes it.
func (s *Simulator) sessionBase() protocol.HookBase {
	base := protocol.HookBase{SessionID: s.o.SessionID}
	if s.o.TranscriptPath != nil {
		base.TranscriptPath = s.o.TranscriptPath()
	}
	return base
}

// runHooks runs the hooks of one event and yields what they show.
func (t *turn) runHooks(in protocol.HookInput) (hook.Outcome, error) {
	event, _ := in.HookEvent()
	if t.s.o.Hooks == nil || !t.s.o.Hooks.Has(event) {
		return hook.Outcome{}, nil
	}
	base := t.hookBase()
	switch event {
	case "SessionStart":
		base = t.s.sessionBase()
	case "PostToolBatch", "MessageDisplay", "Stop": // the others precede the first request
		base.Effort = t.s.o.effort()
	}
	out := t.s.o.Hooks.Run(t.ctx, hook.Input{Base: base, Event: in})
	t.beside = append(t.beside, out.AdditionalContext...)
	if t.s.o.HookEvents || event == "SessionStart" {
		if err := t.emitAll(out.Frames); err != nil {
			return out, err
		}
	}
	if err := t.emitAll(attached(out)); err != nil {
		return out, err
	}
	return out, t.ctx.Err()
}

// attached is what transcripts keep of hooks.
func attached(out hook.Outcome) []protocol.Event {
	var events []protocol.Event
	for _, a := range out.Attachments {
		ev := &protocol.Attached{Attachment: a}
		switch a.Type {
		case "hook_additional_context", "hook_blocking_error", "hook_stopped_continuation":
			ev.Role = "system"
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
	case t.s.o.Resumed:
		source = "resume"
	default:
		source = "startup"
	}
	out, err := t.runHooks(protocol.SessionStartHook{Source: source})
	if err != nil {
		return err
	}
	if err := t.emitAll(out.Notices); err != nil {
		return err
	}
	if title := t.s.o.Title; title != "" {
		if err := t.system("session_title_changed", protocol.Field{Key: "title", Value: title}); err != nil {
			return err
		}
	}
	if !t.s.o.Reduced {
		return nil
	}
	return t.system("ui_invalidate", protocol.Field{Key: "event", Value: "ui.render"})
}

// submit runs the hooks of the prompt, before init. A non-nil finish refuses
// the prompt; died says that not even init is shown.
func (t *turn) submit() (out hook.Outcome, end *finish, died bool, err error) {
	if t.in.Source == sourceSystem {
		return out, nil, false, nil
	}
	out, err = t.runHooks(protocol.UserPromptSubmitHook{Prompt: t.in.Content.Plain()})
	switch {
	case err != nil:
		return out, nil, false, err
	case out.CrashError != "":
		return out, &finish{
			subtype: "error_during_execution", isError: true, untouched: true,
			errors: []string{out.CrashError, "[session_crash] the session ended because of a hook"},
		}, true, nil
	case out.Block || out.StopTurn:
		text := strings.Join(out.Texts, "\n")
		return out, &finish{subtype: "success", untouched: true, result: &text}, false, nil
	}
	return out, nil, false, nil
}

// batchDone runs the hooks that follow all calls of one message.
func (t *turn) batchDone(calls []call, results []scenarios.Result) error {
	in := protocol.PostToolBatchHook{}
	for i, c := range calls {
		in.ToolCalls = append(in.ToolCalls, protocol.HookToolCall{
			ToolName: c.use.Name, ToolInput: c.use.Input, ToolUseID: c.use.ID, ToolResponse: results[i].Structured,
		})
	}
	out, err := t.runHooks(in)
	if err != nil {
		return err
	}
	return t.emitAll(out.Notices)
}

// keepGoing runs the Stop hooks. A block puts its feedback into the
// conversation, and the model is asked again with the returned text.
func (t *turn) keepGoing() (feedback string, again bool, err error) {
	out, err := t.runHooks(protocol.StopHook{StopHookActive: t.stopBlocks > 0, LastAssistantMessage: t.lastText, BackgroundTasks: t.s.backgroundTasks()})
	if err != nil {
		return "", false, err
	}
	if err := t.emitAll(out.Notices); err != nil || out.StopTurn || !out.Block {
		t.prevented = out.StopTurn
		return "", false, err
	}
	if t.stopBlocks++; t.stopBlocks > t.s.o.stopCap() {
		return "", false, t.stopCapped()
	}
	for _, text := range out.Texts {
		if err := t.inject(text, true); err != nil {
			return "", false, err
		}
	}
	err = t.system("notification",
		protocol.Field{Key: "key", Value: "stop-hook-error"},
		protocol.Field{Key: "text", Value: "stop hook problem · ctrl+o to see"},
		protocol.Field{Key: "priority", Value: "immediate"})
	return strings.Join(out.Texts, "\n"), true, err
}

// stopCapped says that Stop hooks are not listened to any more.
func (t *turn) stopCapped() error {
	const text = "Stop hooks have kept the turn going too often in a row; it ends now."
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
	base.PromptID = s.PromptID()
	return base
}

// effort is the level that hooks are told; nil = none.
func (o Options) effort() *protocol.HookEffort {
	if o.Effort == "" {
		return nil
	}
	return &protocol.HookEffort{Level: o.Effort}
}

func (o Options) stopCap() int {
	if o.StopBlockCap > 0 {
		return o.StopBlockCap
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
