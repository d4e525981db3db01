package messages

import (
	"fmt"
	"slices"
	"strings"
)

// check refuses what the API would refuse, after the messages were read. counting
// is a request to count_tokens, which needs less.
func (r *request) check(messages []*content, counting bool) error {
	switch {
	case r.model == "":
		return invalid("model", "Field required")
	case counting:
	case !r.hasMax:
		return invalid("max_tokens", "Field required")
	case r.maxTokens < 1:
		return invalid("max_tokens", "Input should be greater than or equal to 1")
	}
	if r.raw == nil {
		return invalid("messages", "Field required")
	}
	if len(messages) == 0 {
		return invalid("messages", "at least one message is required")
	}
	if messages[0].role != "user" {
		return invalid("messages", `first message must use the "user" role`)
	}
	return answered(messages)
}

// answered checks that every call has its result in the next message of the user,
// and every result its call in the message before. Neighbours of one role are one
// message.
func answered(messages []*content) error {
	var open []use // calls of the assistant's last message
	from := 0      // where that message is
	for i, m := range messages {
		switch m.role {
		case "assistant":
			if len(open) > 0 && messages[i-1].role != "assistant" {
				return unanswered(from, open)
			}
			if len(m.uses) > 0 {
				from = i
			}
			open = append(open, m.uses...)
		case "user":
			var err error
			if open, err = m.answers(open, i); err != nil {
				return err
			}
			if len(open) > 0 && (i+1 == len(messages) || messages[i+1].role == "assistant") {
				return unanswered(from, open)
			}
		}
	}
	if len(open) > 0 && messages[len(messages)-1].role != "assistant" {
		return unanswered(from, open)
	}
	return nil
}

// answers takes the calls off that the message at i has results of.
func (c *content) answers(open []use, i int) ([]use, error) {
	for _, p := range c.parts {
		if p.result == nil {
			continue
		}
		at := slices.IndexFunc(open, func(u use) bool { return u.id == p.result.id })
		if at < 0 {
			return nil, invalid(fmt.Sprintf("messages.%d.content.%d", i, p.result.at), "unexpected `tool_use_id` found in `tool_result` blocks: "+p.result.id+
				". Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
		}
		open = slices.Delete(slices.Clone(open), at, at+1)
	}
	return open, nil
}

func unanswered(at int, open []use) error {
	ids := make([]string, len(open))
	for i, u := range open {
		ids[i] = u.id
	}
	return invalid(fmt.Sprintf("messages.%d", at), "`tool_use` ids were found without `tool_result` blocks immediately after: "+strings.Join(ids, ", ")+
		". Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
}
