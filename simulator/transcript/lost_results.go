package transcript

import (
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type unansweredCall struct{ id, message string }

func unansweredCalls(history []Message) (calls []unansweredCall) {
	for _, m := range history {
		for _, b := range m.Content.Blocks {
			switch b := b.(type) {
			case protocol.ToolUse:
				calls = append(calls, unansweredCall{b.ID, m.UUID})
			case protocol.ToolResultBlock:
				calls = slices.DeleteFunc(calls, func(c unansweredCall) bool { return c.id == b.ToolUseID })
			}
		}
	}
	return calls
}

const lostResultText = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. " +
	"Check whether it took effect before relying on it or running it again.]"

// lostResultLines returns the lines that complete the conversation of an earlier process before the next prompt:
// results for interrupted calls, and an empty reply if the model had not answered yet.
func (r *recorder) lostResultLines(promptID string) []any {
	var lines []any
	for _, c := range r.unanswered {
		e := r.conversation.newEnvelope("", "", "")
		e.PromptID, e.ParentUUID = promptID, &c.message
		result := protocol.ToolResultBlock{Type: "tool_result", ToolUseID: c.id, Content: protocol.Content{Text: lostResultText}, IsError: new(true)}
		lines = append(lines, protocol.UserLine{
			LineHead: e.LineHead, Type: "user", LineID: e.LineID, ToolUseResult: lostResultText, ToolDenialKind: "interrupted", SourceToolAssistantUUID: c.message,
			Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{result}}}, LineTrailer: e.LineTrailer,
		})
	}
	if len(lines) > 0 || r.awaitsReply {
		e, sequence := r.conversation.newEnvelope("", "", ""), ""
		message := protocol.SyntheticMessage(r.conversation.options.Clock.NewID(), "No response requested.", "stop_sequence")
		message.StopSequence = &sequence
		lines = append(lines, protocol.SyntheticLine{LineHead: e.LineHead, Type: "assistant", LineID: e.LineID, Message: message, MadeBy: "other", LineTrailer: e.LineTrailer})
	}
	r.unanswered, r.awaitsReply = nil, false
	return lines
}
