package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type modelInput struct {
	messages                  []inputMessage
	sentMessages              int                      // number of messages that later lines cannot change
	sentHashes                []string                 // hashes of the messages of the last request
	requestID                 string                   // id of the last request
	isRepetition              bool                     // the next request repeats one that has failed
	repeated                  protocol.RequestRepeated // form of the next request
	beforeReduction           []inputMessage           // messages before ToolSearch was left out; nil means that it is not
	replyID                   string                   // id of the message that answered the last request
	isUnanswered              bool                     // the request for the last prompt has no reply yet
	isReplyTruncated          bool                     // the last reply reached the limit of output tokens
	context                   RequestContext           // context of the last request
	snapshotCount             int                      // number of attachments about the prompt and the tools: at most 2
	hasResults, listsAgents   bool                     // the conversation of a sub-agent has results of calls, and the list of agents that follows them
	lastRequestDir            string                   // working directory at the last request; empty before the first request
	lastRequestAdditionalDirs *[]string                // additional directories at the last request; nil before the first request
	repliesWithoutText        int                      // number of consecutive replies with calls but no text
	linesSinceTaskCall        int                      // number of the model's lines since it changed a task or was reminded of tasks
	loadedTools               map[string]bool          // deferred tools that ToolSearch has loaded; the value is true if the transcript has their definitions
}

type inputMessage struct {
	role, id         string // role of the message, and its API id if it is a reply
	content          []json.RawMessage
	hash             string // hash of the message; empty until it is sent; the content is needed until the reply
	imageEnd         int    // number of blocks up to the last mentioned image; reminders follow them
	differsFromLines bool   // the content differs from the transcript's lines, for example by a reminder; so the message needs a line
}

func isBlankTextBlock(raw json.RawMessage) bool {
	var b protocol.TextBlock
	return json.Unmarshal(raw, &b) == nil && b.Type == "text" && strings.TrimSpace(b.Text) == ""
}

func (c *modelInput) addUserMessage(content []json.RawMessage, isTaskNotice bool) {
	kept := slices.DeleteFunc(slices.Clone(content), func(raw json.RawMessage) bool { return len(content) > 1 && isBlankTextBlock(raw) })
	if isTaskNotice && len(kept) == 1 {
		var b protocol.TextBlock
		if json.Unmarshal(kept[0], &b) == nil {
			kept[0] = rawTextBlock(protocol.InReminderTags(b.Text))
		}
	}
	kept = c.markToolsLoadedAndAddTexts(kept)
	c.addOrMergeMessage("user", "", kept, isTaskNotice || len(kept) != len(content))
}

// addReplyOrReopenMessages adds a block of a reply. The CLI drops an empty reply and an error message. Then the messages since the last reply
// become part of the next ones, because the CLI builds each request from the lines of the transcript.
func (c *modelInput) addReplyOrReopenMessages(id string, content []json.RawMessage, isError bool) {
	if !isError && (len(content) != 1 || !isBlankTextBlock(content[0])) {
		c.addOrMergeMessage("assistant", id, content, false)
		return
	}
	if isError && c.beforeReduction != nil {
		c.messages = c.beforeReduction
	}
	if isError {
		c.repeated, c.beforeReduction = protocol.RequestRepeated{}, nil
	}
	c.reopenMessagesSinceReply()
}

// messageHashesDroppingAnswered returns the hashes of the messages, the number of messages up to the last one with content, and the
// number of its blocks. It drops the content of answered messages.
func (c *modelInput) messageHashesDroppingAnswered() (_ []string, count, lastBlockCount int) {
	hashes, firstUnanswered := []string{}, c.indexAfterLastReply()
	for i, m := range c.messages {
		if hashes = append(hashes, m.hash); m.role != "system" || len(m.content) > 0 {
			count, lastBlockCount = i+1, len(m.content)
		}
		if i+1 < firstUnanswered {
			c.messages[i].content = nil
		}
	}
	return hashes, count, lastBlockCount
}

func (c *modelInput) indexAfterLastReply() int {
	n := len(c.messages)
	for n > 0 && c.messages[n-1].role != "assistant" {
		n--
	}
	return n
}

func (c *modelInput) reopenMessagesSinceReply() {
	c.sentMessages = c.indexAfterLastReply()
	for i := c.sentMessages; i < len(c.messages); i++ {
		m := &c.messages[i]
		m.hash, m.differsFromLines = "", m.differsFromLines || m.hash != ""
	}
}

// addToolSearchGoneMessage adds the message that ToolSearch is gone. If the request fails for good, the message is removed.
func (c *modelInput) addToolSearchGoneMessage() {
	c.beforeReduction = slices.Clone(c.messages)
	c.reopenMessagesSinceReply()
	if len(c.context.Deferred) > 0 {
		c.addAttachmentTexts("system", []protocol.AttachmentText{{Content: protocol.InReminderTags("ToolSearch is gone. Call the tools that it would load directly.")}})
	}
}

func (c *modelInput) addOrMergeMessage(role, id string, content []json.RawMessage, differsFromLines bool) {
	if n := len(c.messages); role == "assistant" && n > c.sentMessages+1 && c.messages[n-2].role == role && c.messages[n-2].id == id {
		// A call of the last reply ended before the next block of the reply was complete.
		reply := &c.messages[n-2]
		reply.content, reply.differsFromLines, c.messages[n-1].differsFromLines = append(reply.content, content...), true, true
		return
	}
	if n := len(c.messages); n > c.sentMessages && c.messages[n-1].role == role && c.messages[n-1].id == id {
		last := &c.messages[n-1]
		k := len(last.content)
		if results := countBlocks(last.content, "tool_result"); results > 0 && results < k && countBlocks(content, "tool_result") > 0 {
			ends := countBlocks(content, "tool_result") // tool results come before texts
			last.content, last.differsFromLines = slices.Concat(last.content[:results], content[:ends], last.content[results:], content[ends:]), true
			return
		}
		if role == "user" && k > 0 && len(content) > 0 {
			var b protocol.TextBlock
			if isBlockOfType(content[0], "text") && json.Unmarshal(last.content[k-1], &b) == nil && b.Type == "text" {
				last.content[k-1], differsFromLines = rawTextBlock(b.Text+"\n"), true
			}
		}
		last.content, last.differsFromLines = append(last.content, content...), last.differsFromLines || differsFromLines
		return
	}
	c.messages = append(c.messages, inputMessage{role: role, id: id, content: content, differsFromLines: differsFromLines})
}

// addAttachmentTexts adds the texts of an attachment. If role is "system", they become a separate message.
func (c *modelInput) addAttachmentTexts(role string, renderedTexts []protocol.AttachmentText) {
	if role == "user" && len(renderedTexts) == 2 && c.insertMentionMessageBeforePrompt(renderedTexts[0].Content) {
		renderedTexts = renderedTexts[1:]
	}
	var systemTexts []string
	for _, text := range renderedTexts {
		if role != "system" {
			c.insertReminderInUserMessage(len(c.messages), text.Content, true)
			continue
		}
		systemTexts = append(systemTexts, text.Content)
	}
	if systemTexts != nil {
		joined := strings.ReplaceAll(strings.Join(systemTexts, ""), "\n</system-reminder><system-reminder>\n", "\n")
		c.addOrMergeMessage(role, "", []json.RawMessage{rawTextBlock(joined)}, true)
	}
}

// insertReminderInUserMessage adds a reminder to the last user message. After tool results, the reminder is a
// separate block if isOwnBlock is set or texts of hooks come before it; otherwise it is part of the last result.
func (c *modelInput) insertReminderInUserMessage(beforeIndex int, text string, isOwnBlock bool) {
	for i := beforeIndex - 1; i >= c.sentMessages; i-- {
		if m := &c.messages[i]; m.role == "user" {
			at := m.indexAfterLeadingReminders()
			if n := len(m.content); n > 0 && isBlockOfType(m.content[0], "tool_result") {
				if isOwnBlock || i < beforeIndex-1 && c.messages[beforeIndex-1].role == "system" { // texts of hooks precede the reminder
					m.content, m.differsFromLines = append(m.content, rawTextBlock(text)), true
					return
				}
				if at = n; appendReminderToToolResult(&m.content[n-1], text) {
					m.differsFromLines = true
					return
				}
			}
			m.content, m.differsFromLines = slices.Insert(m.content, at, rawTextBlock(text+"\n")), true
			return
		}
	}
}

func (c *modelInput) countLinesSinceTaskCall(replyContent []json.RawMessage) {
	for _, block := range replyContent {
		var call struct{ Name string }
		if c.linesSinceTaskCall++; json.Unmarshal(block, &call) == nil && (call.Name == "TaskCreate" || call.Name == "TaskUpdate") {
			c.linesSinceTaskCall = 0
		}
	}
}

// updateReminderCounters updates repliesWithoutText and linesSinceTaskCall with the messages that the next request sends for the first
// time. Texts of the CLI after the results of calls do not count as text. Calls that ask the user do (observed with 2.1.330).
func (c *modelInput) updateReminderCounters() {
	for _, m := range c.messages[c.sentMessages:] {
		if m.role == "assistant" {
			c.countLinesSinceTaskCall(m.content)
		}
		switch {
		case m.role == "system", m.role == "user" && countBlocks(m.content, "tool_result") > 0:
		case countBlocks(m.content, "text") > 0,
			slices.ContainsFunc(m.content, func(b json.RawMessage) bool {
				return bytes.Contains(b, []byte(`"name":"AskUserQuestion"`)) || bytes.Contains(b, []byte(`"name":"ExitPlanMode"`))
			}):
			c.repliesWithoutText = 0
		case m.role == "assistant":
			c.repliesWithoutText++
		}
	}
}

// moveUnsentReminders moves the unsent reminders to a place where the model accepts them. If asSystemMessages is
// true, they become a system message after the user message. Otherwise they become texts in the user message.
func (c *modelInput) moveUnsentReminders(asSystemMessages bool) {
	var texts []string
	messages := c.messages[c.sentMessages:]
	c.messages = slices.Clone(c.messages[:c.sentMessages])
	flush := func() {
		if len(texts) > 0 && asSystemMessages {
			var plain []string
			for _, text := range texts {
				plain = append(plain, strings.TrimSuffix(strings.TrimPrefix(text, "<system-reminder>\n"), "\n</system-reminder>"))
			}
			c.addSystemText(strings.Join(plain, "\n\n"))
		} else {
			for _, text := range texts {
				c.insertReminderInUserMessage(len(c.messages), text, false)
			}
		}
		texts = nil
	}
	for _, m := range messages {
		if m.role == "system" {
			for _, raw := range m.content {
				var b protocol.TextBlock
				if json.Unmarshal(raw, &b) == nil {
					texts = append(texts, b.Text)
				}
			}
			continue
		}
		if m.role == "assistant" {
			flush()
		}
		c.addOrMergeMessage(m.role, m.id, m.content, m.differsFromLines)
	}
	flush()
}

func (c *modelInput) addSystemText(text string) {
	role := "system"
	if n := len(c.messages); n > 0 && c.messages[n-1].role == "assistant" { // no system message may follow a reply
		role, text = "user", protocol.InReminderTags(text)
	}
	c.addOrMergeMessage(role, "", []json.RawMessage{rawTextBlock(text)}, true)
}

// addEmptySystemMessageForConfig adds an empty system message after the first message if no reminder contains the message config.
func (c *modelInput) addEmptySystemMessageForConfig(now RequestContext) {
	if now.MessageConfig != nil && c.sentMessages == 0 && len(c.messages) > 0 && !slices.ContainsFunc(c.messages, func(m inputMessage) bool { return m.role == "system" }) {
		c.messages = slices.Insert(c.messages, 1, inputMessage{role: "system", content: []json.RawMessage{}, differsFromLines: true})
	}
}

func (m *inputMessage) indexAfterLeadingReminders() int {
	const start = `{"type":"text","text":"<system-reminder>`
	for i := m.imageEnd; i < len(m.content); i++ {
		if !strings.HasPrefix(string(m.content[i]), start) {
			return i
		}
	}
	return len(m.content)
}

func countBlocks(blocks []json.RawMessage, kind string) (n int) {
	for _, b := range blocks {
		if isBlockOfType(b, kind) {
			n++
		}
	}
	return n
}

// markToolsLoadedAndAddTexts adds a text after the results of ToolSearch, and marks the tools in them as loaded.
func (c *modelInput) markToolsLoadedAndAddTexts(content []json.RawMessage) (withText []json.RawMessage) {
	for _, block := range slices.Clone(content) {
		names := toolsReferencedByResult(block)
		for _, name := range names {
			isRecorded := c.loadedTools[name]
			c.loadedTools[name] = isRecorded
		}
		if len(names) > 0 {
			content = append(content, rawTextBlock("Tool loaded."))
		}
	}
	return content
}

// insertMentionMessageBeforePrompt inserts callText, about the call that reads a mentioned file, as a message before the prompt. It does
// so at most once after each request; otherwise it returns false.
func (c *modelInput) insertMentionMessageBeforePrompt(callText string) bool {
	at := len(c.messages) - 1
	for at >= c.sentMessages && c.messages[at].role != "user" {
		at--
	}
	if at < c.sentMessages || at > c.sentMessages && c.messages[at-1].id == mentionMessageID {
		return false
	}
	message := inputMessage{role: "user", id: mentionMessageID, content: []json.RawMessage{json.RawMessage(plainjson.MarshalString(callText))}, differsFromLines: true}
	c.messages = slices.Insert(c.messages, at, message)
	return true
}

// addMentionedImage adds an image that a prompt mentions, as the real CLI 2.1.330 does: first the call that reads it, then a block before
// the prompt. For all other attachments, it does nothing.
func (c *modelInput) addMentionedImage(role string, renderedTexts []protocol.AttachmentText, attachment any) {
	var about struct {
		Filename string
		Content  struct{ File struct{ Base64, Type string } }
	}
	raw, err := protocol.Marshal(attachment)
	if role != "user" || renderedTexts != nil || err != nil || json.Unmarshal(raw, &about) != nil {
		return
	}
	image, _ := protocol.Marshal(protocol.Image(about.Content.File.Type, about.Content.File.Base64)) // encoding strings cannot fail
	call := protocol.InReminderTags(`Called the Read tool with the following input: {"file_path":` + plainjson.MarshalString(about.Filename) + "}")
	if !c.insertMentionMessageBeforePrompt(call) {
		c.insertReminderInUserMessage(len(c.messages), call, true)
	}
	m := &c.messages[len(c.messages)-1]
	at := m.indexAfterLeadingReminders()
	m.content, m.imageEnd, m.differsFromLines = slices.Insert(m.content, at, json.RawMessage(image)), at+1, true
}

// mentionMessageID marks a message whose content is a text, not a list of blocks.
const mentionMessageID = "mention"
