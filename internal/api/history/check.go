package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Check returns a [*RejectedRequestError] for a request that the API would refuse.
func (r *Request) Check() error {
	switch {
	case r.Model == "": // reported below
	case !r.hasMaxTokens:
		return InvalidRequest("max_tokens", "Field required")
	case r.MaxTokens < 1:
		return InvalidRequest("max_tokens", "Input should be greater than or equal to 1")
	}
	return r.CheckAsTokenCountRequest()
}

// CheckAsTokenCountRequest is like [Request.Check] for a request that only counts tokens, which has fewer required keys.
func (r *Request) CheckAsTokenCountRequest() error {
	switch {
	case r.Model == "":
		return InvalidRequest("model", "Field required")
	case r.raw == nil:
		return InvalidRequest("messages", "Field required")
	case len(r.Messages) == 0:
		return InvalidRequest("messages", "at least one message is required")
	case r.Messages[0].Role != "user":
		return InvalidRequest("messages", `first message must use the "user" role`)
	}
	if err := r.checkThinkingBlocksOfAssistant(); err != nil {
		return err
	}
	return checkCallsHaveResults(r.Messages)
}

// checkThinkingBlocksOfAssistant checks the thinking blocks that a client sends back while thinking is enabled. A block must
// not have the signature of another text. Unless thinking is adaptive, each block must also be signed, and a message with
// thinking blocks must begin with a thinking block. Adjacent messages of one role count as one.
func (r *Request) checkThinkingBlocksOfAssistant() error {
	var thinking struct{ Type string }
	if r.Thinking == nil || json.Unmarshal(r.Thinking, &thinking) != nil || thinking.Type != "enabled" && thinking.Type != "adaptive" {
		return nil
	}
	loose := thinking.Type == "adaptive"
	first := "" // type of the first block of the message
	for i, m := range r.Messages {
		if m.Role != "assistant" {
			first = ""
			continue
		}
		for k, p := range m.parts {
			at := fmt.Sprintf("messages.%d.content.%d", i, k)
			first = cmp.Or(first, p.kind)
			switch {
			case p.kind != "thinking" && p.kind != "redacted_thinking":
			case p.isAltered, p.isUnsigned && !loose:
				return InvalidRequest(at, "Invalid `signature` in `thinking` block")
			case !loose && first != "thinking" && first != "redacted_thinking":
				return InvalidRequest(fmt.Sprintf("messages.%d.content.0.type", i),
					"If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. Found `"+first+"`.")
			}
		}
	}
	return nil
}

// checkCallsHaveResults checks that every call has its result in the next user message, and that every result has its call in
// the message before. Adjacent messages of one role count as one.
func checkCallsHaveResults(messages []*Message) error {
	var open []ToolUse // calls of the assistant's last message
	from := 0          // index of that message
	for i, m := range messages {
		switch m.Role {
		case "assistant":
			if len(open) > 0 && messages[i-1].Role != "assistant" {
				return missingResultError(from, open)
			}
			if len(m.Uses) > 0 {
				from = i
			}
			open = append(open, m.Uses...)
		case "user":
			var err error
			if open, err = m.withoutAnsweredCalls(open, i); err != nil {
				return err
			}
		}
	}
	if len(open) > 0 && messages[len(messages)-1].Role != "assistant" {
		return missingResultError(from, open)
	}
	return nil
}

// withoutAnsweredCalls returns the calls that have no result in this message. A result without a call is an error.
func (c *Message) withoutAnsweredCalls(unansweredCalls []ToolUse, messageIndex int) (remainingCalls []ToolUse, err error) {
	for _, p := range c.parts {
		if p.result == nil {
			continue
		}
		at := slices.IndexFunc(unansweredCalls, func(u ToolUse) bool { return u.ID == p.result.ID })
		if at < 0 {
			return nil, InvalidRequest(fmt.Sprintf("messages.%d.content.%d", messageIndex, p.result.index), "unexpected `tool_use_id` found in `tool_result` blocks: "+p.result.ID+
				". Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
		}
		unansweredCalls = slices.Delete(slices.Clone(unansweredCalls), at, at+1)
	}
	return unansweredCalls, nil
}

func missingResultError(messageIndex int, unansweredCalls []ToolUse) error {
	ids := make([]string, len(unansweredCalls))
	for i, u := range unansweredCalls {
		ids[i] = u.ID
	}
	return InvalidRequest(fmt.Sprintf("messages.%d", messageIndex), "`tool_use` ids were found without `tool_result` blocks immediately after: "+strings.Join(ids, ", ")+
		". Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
}
