package simulator

import (
	"strconv"

	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
)

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

// cutShort finds out whether the last reply, which has nothing to run, ended
// before its time. At the token limit or at the end of the context the CLI asks
// for the rest, after a refusal it tries once more; when that does not help, end
// is how the turn ends. An empty reply is asked about once, and only if the scenario has
// another step for the answer: as a last word it is what a rule without a
// response says.
func (t *turn) cutShort() (text string, end *finish, err error) {
	if t.stopReason == nil {
		return "", nil, nil
	}
	switch *t.stopReason {
	case "max_tokens", "model_context_window_exceeded":
		if t.cuts++; t.cuts > cutCap {
			end, err = t.giveUp(t.overLimit(*t.stopReason))
			return "", end, err
		}
		return goOnText, nil, t.inject(goOnText, true)
	case "refusal":
		if t.safetyStops++; t.safetyStops > 1 {
			end, err = t.refused()
			return "", end, err
		}
		return retryText, nil, t.afterRefusal()
	case "end_turn":
		if t.more && t.empty && !t.prodded {
			t.prodded = true
			return emptyText, nil, t.inject(emptyText, true)
		}
	}
	return "", nil, nil
}

// overLimit words the end of a turn whose replies never fit.
func (t *turn) overLimit(stop string) apiFailure {
	api := apiFailure{connection: "max_output_tokens", class: "max_output_tokens", cut: "context_window"}
	api.text = "API Error: The model has reached its context window limit."
	if stop == "max_tokens" {
		most := model.Of(t.s.resolved()).MaxOutput
		api.cut = "output_limit"
		api.text = "API Error: Claude's response exceeded the " + strconv.Itoa(most) + " output token maximum. To configure this behavior, " +
			"set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable."
	}
	return api
}

// afterRefusal yields the notice of a refusal and the text that tries again.
func (t *turn) afterRefusal() error {
	err := t.system("informational",
		protocol.Field{Key: "content", Value: t.family() + "'s safeguards stopped the response above · continuing once with that noted"},
		protocol.Field{Key: "level", Value: "notice"})
	if err != nil {
		return err
	}
	again := t.injected(retryText, true)
	again.RefusedMessageID = t.messageID
	return t.emit(again)
}

// refused ends a turn that was refused twice.
func (t *turn) refused() (*finish, error) {
	err := t.system("model_refusal_no_fallback",
		protocol.Field{Key: "original_model", Value: t.s.resolved()},
		protocol.Field{Key: "request_id", Value: t.requestID},
		protocol.Field{Key: "api_refusal_category", Value: nil},
		protocol.Field{Key: "api_refusal_explanation", Value: nil},
		protocol.Field{Key: "refused_user_message_uuid", Value: t.uuid()},
		protocol.Field{Key: "content", Value: ""})
	if err != nil {
		return nil, err
	}
	family := t.family()
	return t.giveUp(apiFailure{
		class: "invalid_request", stop: "refusal", refused: t.messageID,
		text: "API Error: " + family + "'s safeguards flagged this message (https://www.anthropic.com/legal/aup). This sometimes happens with " +
			"safe, normal conversations. Claude Code can't respond to this message with " + family + ".\n\nTry rephrasing the request in a " +
			"new session or change your model.\n\nLearn more: https://support.claude.com/en/articles/8106465\n\nRequest ID: " + t.requestID +
			"\n\nMessage ID: " + t.messageID,
	})
}

// family is the model's name for people.
func (t *turn) family() string { return model.Display(t.s.resolved()) }
