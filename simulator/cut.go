package simulator

import "github.com/claudeless/claudeless/simulator/protocol"

// cutCap is how many times in a turn the model is asked to go on after a reply
// that was cut short.
const cutCap = 3

// What the CLI itself says to the model then. The first is the real CLI's, the
// others are ours.
const (
	continued = "continue"
	retried   = "The reply before this was stopped. Answer once more."
	nothing   = "The reply before this was empty. Answer once more."
)

// cutShort tells whether the last reply, which has nothing to run, ended before
// its time: at the token limit or at the end of the context the CLI asks for the
// rest, after a refusal it tries once more (spec: cli-observed 2). An empty reply
// is asked about only if the scenario has another step for the answer: as a last
// word it is what a rule without a response says.
func (t *turn) cutShort() (text string, again bool, err error) {
	if t.stopReason == nil {
		return "", false, nil
	}
	switch *t.stopReason {
	case "max_tokens", "model_context_window_exceeded":
		if t.cuts++; t.cuts > cutCap {
			return "", false, nil
		}
		return continued, true, t.inject(continued, true)
	case "refusal":
		if t.safetyStops++; t.safetyStops > 1 {
			return "", false, nil
		}
		return retried, true, t.afterRefusal()
	case "end_turn":
		if t.more && t.empty {
			return nothing, true, t.inject(nothing, true)
		}
	}
	return "", false, nil
}

// afterRefusal yields the notice of a refusal and the text that tries again.
func (t *turn) afterRefusal() error {
	err := t.system("informational",
		protocol.Field{Key: "content", Value: "The model refused to answer; it is asked once more."},
		protocol.Field{Key: "level", Value: "warning"})
	if err != nil {
		return err
	}
	again := t.injected(retried, true)
	again.RefusedMessageID = t.messageID
	return t.emit(again)
}
