package simulator

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/internal/failure"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// stopBlockCap is how many times in a row Stop hooks may keep a turn going
// before it ends all the same (spec: cli-observed 11).
const stopBlockCap = 8

// cutCap is how many times in a turn the model is asked to go on after a reply
// that was cut short.
const cutCap = 3

// What the CLI itself says to the model then, as it was seen to say it.
const (
	goOnText = "Output token limit hit. Resume directly — no apology, no recap of what you were doing. Pick up mid-thought if that is where " +
		"the cut happened. Break remaining work into smaller pieces."
	retryText = "Your response above was stopped by a safety classifier — this is not a tool or API error. The rest of it was withheld, and " +
		"tool calls in it that had not finished did not run. Do not produce that content again, even reworded."
	emptyText = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
)

// continuation asks the model again although its reply has nothing to run: one that was
// cut short, prompts that wait for an answer, an output that is missing, hooks
// that keep the turn from ending.
type continuation struct {
	*turnContext
	x *exchange

	cuts        int  // replies cut short so far
	safetyStops int  // refusals so far
	prodded     bool // an empty reply was asked about
	blocks      int  // Stop hooks that kept this turn going so far
	prevented   bool // a Stop hook has answered continue: false
}

// answered finds out what follows a reply that has nothing to run: the next
// request, or nil when the turn is over.
func (a *continuation) answered(ctx context.Context) (*scenarios.Request, error) {
	text, err := a.cutShort()
	if err = cmp.Or(err, a.out.gone()); err != nil {
		return nil, err
	}
	paused := a.x.last.stop != nil && *a.x.last.stop == "pause_turn" // the API would go on; the CLI does not ask it to
	if a.x.last.more && !paused || text == emptyText {
		a.x.last.goesOn = text != emptyText
		return &scenarios.Request{Results: []scenarios.Result{}}, nil
	}
	if text == "" {
		if prompt, ok := a.prompts.next(); ok {
			return &scenarios.Request{Prompt: prompt, Added: true}, nil
		}
		goesOn := false
		if text, goesOn, err = a.goOn(ctx); err != nil || !goesOn {
			return nil, err
		}
	}
	return &scenarios.Request{Prompt: text, Injected: true}, nil
}

// over is how a turn ends that has nothing more to do.
func (a *continuation) over() *turnEndError {
	if a.prevented {
		return &turnEndError{subtype: "success", terminal: "stop_hook_prevented"}
	}
	return &turnEndError{subtype: "success", terminal: "completed"}
}

// goOn tells whether the CLI itself asks the model again although it has
// nothing more to run: for a structured output, or because of a Stop hook.
func (a *continuation) goOn(ctx context.Context) (text string, again bool, err error) {
	if text, again = a.structured.reminder(); again {
		a.out.inject(text, true)
		return text, true, nil
	}
	return a.stopHooks(ctx)
}

// cutShort finds out whether the last reply, which has nothing to run, ended
// before its time. At the token limit or at the end of the context the CLI asks
// for the rest, after a refusal it tries once more; when that does not help, the
// turn ends. An empty reply is asked about once: the next step of the response
// answers, and where there is none it has nothing to say again.
func (a *continuation) cutShort() (text string, err error) {
	if a.x.last.stop == nil {
		return "", nil
	}
	switch stop := *a.x.last.stop; stop {
	case "max_tokens", "model_context_window_exceeded":
		if a.cuts++; a.cuts > cutCap {
			return "", a.x.giveUp(a.overLimit(stop))
		}
		a.out.emit(a.companion(goOnText))
		return goOnText, nil
	case "refusal":
		if a.safetyStops++; a.safetyStops > 1 {
			return "", a.refused()
		}
		a.afterRefusal()
		return retryText, nil
	case "end_turn":
		if a.x.last.empty && !a.prodded {
			a.prodded = true
			a.out.emit(a.companion(emptyText))
			return emptyText, nil
		}
	}
	return "", nil
}

// companion is what the CLI itself says after a reply that was not whole.
func (a *continuation) companion(text string) *protocol.User {
	ev := a.out.injected(text, true)
	ev.Companion = true
	return ev
}

// overLimit words the end of a turn whose replies never fit.
func (a *continuation) overLimit(stop string) failure.API {
	api := failure.API{Connection: "max_output_tokens", Class: "max_output_tokens", Cut: "context_window"}
	api.Text = "API Error: The model has reached its context window limit."
	if stop == "max_tokens" {
		most := model.Of(a.s.resolved()).MaxOutput
		api.Cut = "output_limit"
		api.Text = "API Error: Claude's response exceeded the " + strconv.Itoa(most) + " output token maximum. To configure this behavior, " +
			"set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
	}
	return api
}

// afterRefusal yields the notice of a refusal and the text that tries again.
func (a *continuation) afterRefusal() {
	a.out.inform(a.family()+"'s safeguards stopped the response above · continuing once with that noted", "notice")
	text := a.companion(retryText)
	text.RefusedMessageID = a.x.last.message
	a.out.emit(text)
}

// refused ends a turn that was refused twice.
func (a *continuation) refused() error {
	a.out.system("model_refusal_no_fallback",
		protocol.Field{Key: "original_model", Value: a.s.resolved()},
		protocol.Field{Key: "request_id", Value: a.x.last.request},
		protocol.Field{Key: "api_refusal_category", Value: nil},
		protocol.Field{Key: "api_refusal_explanation", Value: nil},
		protocol.Field{Key: "refused_user_message_uuid", Value: a.prompts.uuid()},
		protocol.Field{Key: "content", Value: ""})
	family := a.family()
	return a.x.giveUp(failure.API{
		Class: "invalid_request", Stop: "refusal", Refused: a.x.last.message,
		Text: "API Error: " + family + "'s safeguards flagged this message (https://www.anthropic.com/legal/aup). This sometimes happens with " +
			"safe, normal conversations. Claude Code can't respond to this message with " + family + ".\n\nTry rephrasing the request in a " +
			"new session or change your model.\n\nLearn more: https://support.claude.com/en/articles/8106465\n\nRequest ID: " + a.x.last.request +
			"\n\nMessage ID: " + a.x.last.message,
	})
}

// family is the model's name for people.
func (a *continuation) family() string { return model.Display(a.s.resolved()) }

// trace says for the transcript how the Stop hooks went.
func (a *continuation) trace(out hook.Outcome) {
	a.out.all(out.Attached())
	if out.Ended != nil {
		a.out.emit(out.Ended)
	}
}

// stopHooks runs the Stop hooks. A block puts its feedback into the
// conversation, and the model is asked again with the returned text.
func (a *continuation) stopHooks(ctx context.Context) (feedback string, again bool, err error) {
	out, err := a.hooks.ask(ctx, protocol.StopHook{
		StopHookActive: a.blocks > 0, LastAssistantMessage: a.x.last.text,
		BackgroundTasks: a.behind.backgroundTasks(), SessionCrons: a.behind.sessionCrons(),
	})
	if err != nil {
		return "", false, err
	}
	a.out.all(out.Notices)
	if !out.Block { // else after what it says
		a.trace(out)
	}
	context := strings.Join(out.AdditionalContext, "\n")
	switch {
	case out.StopTurn:
		a.prevented = true
		return "", false, nil
	case out.Failed && !out.Block:
		a.out.emit(a.out.stamp(hook.StopNotification()))
		return "", false, nil
	case !out.Block && context == "":
		return "", false, nil
	}
	first := a.blocks == 0
	a.blocks++
	for _, text := range out.Texts {
		a.out.inject(text, true)
	}
	if out.Block {
		a.trace(out)
	}
	limit := stopBlockCap
	if own := a.s.o.Limits.StopBlocks; own > 0 {
		limit = own
	}
	if a.blocks > limit {
		if out.Block {
			a.x.last.text, a.x.last.shown = "", nil // the feedback is what was said last
		}
		a.stopCapped()
		return "", false, nil
	}
	if !out.Block {
		return context, true, nil
	}
	if first {
		a.out.emit(a.out.stamp(hook.StopNotification()))
	}
	return strings.Join(out.Texts, "\n"), true, nil
}

// stopCapped says that Stop hooks are not listened to any more.
func (a *continuation) stopCapped() {
	text := fmt.Sprintf("A hook blocked the turn from ending %d consecutive times—overriding and ending turn. "+
		"For Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. "+
		"Set CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit.", a.blocks)
	a.out.inform(text, "warning")
	a.out.system("notification",
		protocol.Field{Key: "key", Value: "stop-hook-block-cap"},
		protocol.Field{Key: "text", Value: text},
		protocol.Field{Key: "priority", Value: "high"},
		protocol.Field{Key: "color", Value: "warning"})
}
