package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// modelRequestLog writes the lines about requests to the model: the system prompt, the tools, the messages that no
// other line contains, and the requests. The system prompt is claudeless's own text, not the real CLI's.
type modelRequestLog struct {
	conversation   *conversation
	attachments    *contextAttachmentWriter
	inputByAgentID map[string]*modelInput // by agent id; "" is the main conversation
	remindedUUIDs  map[string]bool        // uuids of the attachments that are already in the messages of a request
	writtenHashes  map[string]bool        // hashes of the shapes and messages that are in each file
}

type modelInput struct {
	messages                  []inputMessage
	sentMessages              int            // number of messages of the last request
	requestID                 string         // id of the last request
	replyID                   string         // id of the message that answered the last request
	isUnanswered              bool           // the request for the last prompt has no reply yet
	context                   RequestContext // context of the last request
	snapshotCount             int
	lastRequestDir            string          // working directory at the last request; empty before the first request
	lastRequestAdditionalDirs *[]string       // additional directories at the last request; nil before the first request
	effortSent                bool            // the effort was sent to the model
	repliesWithoutText        int             // number of consecutive replies with calls but no text
	loadedTools               map[string]bool // deferred tools that ToolSearch has loaded; the value is true if the transcript has their definitions
}

type inputMessage struct {
	role, id         string // role of the message, and its API id if it is a reply
	content          []json.RawMessage
	hash             string // hash of the message; empty until it is sent
	blockCount       int    // number of content blocks, also after content was set to nil
	imageEnd         int    // number of blocks up to the last mentioned image; reminders follow them
	differsFromLines bool   // the content differs from the transcript's lines, for example by a reminder; so the message needs a line
}

// repliesWithoutTextBeforeReminder is how many consecutive replies without text cause a reminder, at most three times (observed
// with 2.1.330).
const (
	repliesWithoutTextBeforeReminder    = 5
	reminderTextAfterRepliesWithoutText = "Tell the user about the state of the work."
)

func (l *modelRequestLog) inputOf(agentID string) *modelInput {
	if l.inputByAgentID == nil {
		l.inputByAgentID, l.writtenHashes, l.remindedUUIDs = map[string]*modelInput{}, map[string]bool{}, map[string]bool{}
	}
	c := l.inputByAgentID[agentID]
	if c == nil {
		c = &modelInput{loadedTools: map[string]bool{}}
		l.inputByAgentID[agentID] = c
	}
	return c
}

func (l *modelRequestLog) addLineToModelInput(transcriptLine any) {
	switch line := transcriptLine.(type) {
	case protocol.UserLine:
		l.inputOf(line.AgentID).addUserMessage(rawContentBlocks(line.Message.Content), line.TurnOrigin == taskNoticeOrigin)
	case protocol.LocalCommandLine:
		if !line.DisplayOnly {
			l.inputOf("").addMessage("user", "", []json.RawMessage{rawTextBlock(line.Content)}, false)
		}
	case protocol.AssistantLine:
		l.inputOf(line.AgentID).addMessage("assistant", line.Message.ID, rawContentBlocks(protocol.Content{Blocks: line.Message.Content}), false)
	case hostAssistantLine:
		l.inputOf("").addMessage("assistant", plainjson.JSString(line.Message.Get("id")), contentBlocksFromJSON(line.Message.Get("content")), false)
	case protocol.SyntheticLine:
		if !line.IsAPIErrorMessage {
			l.inputOf(line.AgentID).addMessage("assistant", line.Message.ID, rawContentBlocks(protocol.Content{Blocks: line.Message.Content}), false)
		}
	case protocol.AttachmentLine:
		if c := l.inputOf(line.AgentID); !l.remindedUUIDs[line.UUID] {
			c.addMentionedImage(line.RenderedRole, line.Rendered, line.Attachment)
			c.addAttachmentTexts(line.RenderedRole, line.Rendered)
		}
	case protocol.CompactBoundaryLine:
		c := l.inputOf(line.AgentID)
		c.messages, c.sentMessages, c.requestID = nil, 0, ""
	}
}

const taskNoticeOrigin = "task_notification"

// restoreFromTranscript rebuilds the state from a resumed transcript. A fork begins without the requests of its source.
func (l *modelRequestLog) restoreFromTranscript(t *parsedTranscript, leafUUID string, isFork bool) {
	c := l.inputOf("")
	for _, e := range t.branchLines(leafUUID) {
		var line struct {
			Subtype, TurnOrigin, RenderedRole string
			Message                           struct {
				ID      string
				Content json.RawMessage
			}
			Attachment struct {
				Type     string
				Snapshot environmentSnapshot
				Identity modelIdentity
				Filename string
				Content  json.RawMessage
			}
			Rendered          []protocol.AttachmentText
			Content           json.RawMessage // of a local command
			IsDisplayOnly     bool
			IsAPIErrorMessage bool
		}
		if e.isSidechain || json.Unmarshal(e.raw, &line) != nil {
			continue
		}
		switch e.kind {
		case "user":
			c.addUserMessage(contentBlocksFromJSON(line.Message.Content), line.TurnOrigin == taskNoticeOrigin)
		case "assistant":
			if !line.IsAPIErrorMessage {
				c.addMessage("assistant", line.Message.ID, contentBlocksFromJSON(line.Message.Content), false)
			}
		case "attachment":
			c.addMentionedImage(line.RenderedRole, line.Rendered, line.Attachment)
			c.addAttachmentTexts(line.RenderedRole, line.Rendered)
			switch line.Attachment.Type {
			case "deferred_tools_record":
				for name := range c.loadedTools {
					c.loadedTools[name] = true
				}
			case "prompt_snapshot":
				c.snapshotCount++
				c.effortSent, c.replyID = true, "resumed"
			case "model":
				l.attachments.describedModel = line.Attachment.Identity.ModelID
			case "environment":
				c.lastRequestDir = line.Attachment.Snapshot.WorkingDirectory
			}
		case "system":
			switch {
			case line.Subtype == "compact_boundary":
				c.messages = nil
			case line.Subtype == "local_command" && !line.IsDisplayOnly:
				c.addMessage("user", "", contentBlocksFromJSON(line.Content), false)
			}
		}
	}
	for _, e := range t.entries {
		var line struct{ Hash, ShapeHash string }
		if !isFork && strings.HasPrefix(e.kind, "api-request-") && json.Unmarshal(e.raw, &line) == nil {
			l.recordBlobHash("", cmp.Or(line.Hash, line.ShapeHash))
		}
	}
}

func (c *modelInput) addUserMessage(content []json.RawMessage, isTaskNotice bool) {
	kept := slices.DeleteFunc(slices.Clone(content), func(raw json.RawMessage) bool {
		var b protocol.TextBlock
		return len(content) > 1 && json.Unmarshal(raw, &b) == nil && b.Type == "text" && strings.TrimSpace(b.Text) == ""
	})
	if isTaskNotice && len(kept) == 1 {
		var b protocol.TextBlock
		if json.Unmarshal(kept[0], &b) == nil {
			kept[0] = rawTextBlock(protocol.Reminder(b.Text))
		}
	}
	kept = c.loadReferencedTools(kept)
	c.addMessage("user", "", kept, isTaskNotice || len(kept) != len(content))
}

func (c *modelInput) addMessage(role, id string, content []json.RawMessage, differsFromLines bool) {
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
			end := withNewlineIfTextFollows(last.content[k-1], content[0])
			differsFromLines = differsFromLines || string(end) != string(last.content[k-1])
			last.content[k-1] = end
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
			c.insertReminderInUserMessage(len(c.messages), text.Content)
			continue
		}
		systemTexts = append(systemTexts, text.Content)
	}
	if systemTexts != nil {
		joined := strings.ReplaceAll(strings.Join(systemTexts, ""), "\n</system-reminder><system-reminder>\n", "\n")
		c.addMessage(role, "", []json.RawMessage{rawTextBlock(joined)}, true)
	}
}

func (c *modelInput) insertReminderInUserMessage(beforeIndex int, text string) {
	for i := beforeIndex - 1; i >= c.sentMessages; i-- {
		if m := &c.messages[i]; m.role == "user" {
			at := m.countLeadingReminders()
			if n := len(m.content); n > 0 && isBlockOfType(m.content[0], "tool_result") {
				if i < beforeIndex-1 && c.messages[beforeIndex-1].role == "system" { // texts of hooks precede the reminder
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

// countRepliesWithoutText updates repliesWithoutText with the messages that the next request sends for the first time. Texts of
// the CLI after the results of calls do not count.
func (c *modelInput) countRepliesWithoutText() {
	for _, m := range c.messages[c.sentMessages:] {
		switch {
		case m.role == "system", m.role == "user" && countBlocks(m.content, "tool_result") > 0:
		case countBlocks(m.content, "text") > 0:
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
			c.addMessage("system", "", []json.RawMessage{rawTextBlock(strings.Join(plain, "\n\n"))}, true)
		} else {
			for _, text := range texts {
				c.insertReminderInUserMessage(len(c.messages), text)
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
		c.addMessage(m.role, m.id, m.content, m.differsFromLines)
	}
	flush()
}

func (m *inputMessage) countLeadingReminders() int {
	const start = `{"type":"text","text":"<system-reminder>`
	for i := m.imageEnd; i < len(m.content); i++ {
		if !strings.HasPrefix(string(m.content[i]), start) {
			return i
		}
	}
	return len(m.content)
}

// recordRequestAndReturnLines records that the request that reply answers was sent, and returns the lines about it. It returns
// nil if reply answers no request, or if an earlier block of reply has written the lines. reply may be an API error message.
func (l *modelRequestLog) recordRequestAndReturnLines(agentID string, reply *protocol.Assistant) []any {
	c := l.inputOf(agentID)
	c.isUnanswered = false
	failed := reply.IsAPIErrorMessage
	if l.conversation.writer.isDisabled || reply.Message.Model == protocol.SyntheticModel && !failed || reply.Message.ID == c.replyID && !failed {
		return nil
	}
	for _, value := range l.conversation.writer.valuesSinceRequest {
		l.addLineToModelInput(value)
	}
	l.conversation.writer.valuesSinceRequest = nil
	var now RequestContext
	if l.conversation.options.Context != nil {
		now = l.conversation.options.Context.RequestContext(agentID)
	}
	c.context = now
	var lines []any
	if c.snapshotCount == 0 {
		c.snapshotCount++
		lines = append(lines, l.conversation.attachmentLine(agentID, "", promptSnapshot{Type: "prompt_snapshot", SystemPrompt: []string{systemPromptText}, ContextRendering: "announced"}))
	} else {
		lines = l.promptAndToolsSnapshotAfterFirstReply(agentID)
	}
	c.countRepliesWithoutText()
	for _, line := range l.takeReminderLinesOfNextRequest(agentID, c, now, lines != nil && c.snapshotCount == 2) {
		c.addAttachmentTexts(line.RenderedRole, line.Rendered)
		lines, l.remindedUUIDs[line.UUID] = append(lines, line), true
	}
	c.moveUnsentReminders(now.SystemTurns)
	shape := now.shape(c.loadedTools)
	names := make([]string, len(shape.Tools))
	for i, t := range shape.Tools {
		names[i] = t.Name
	}
	at := l.conversation.timestampOrNow("")
	shapeHash := hexSHA256OfKindAndText(now.Source, strings.Join(names, " "))
	if l.recordBlobHash(agentID, shapeHash) {
		lines = append(lines, protocol.RequestShapeLine{
			Type: "api-request-shape", SessionID: l.conversation.id, AgentID: agentID, ShapeHash: shapeHash, Timestamp: at, Version: l.conversation.options.Version, Shape: shape,
		})
	}
	for i := range c.messages {
		if line := l.markSentAndReturnBlobLine(agentID, c, i, now.MessageConfig); line != nil {
			lines = append(lines, line)
		}
	}
	line := protocol.RequestLine{
		Type: "api-request", SessionID: l.conversation.id, AgentID: agentID, ID: l.conversation.options.Clock.NewID(), Timestamp: at, Version: l.conversation.options.Version,
		QuerySource: now.Source, ShapeHash: shapeHash, Params: now.Params, Base: c.requestID, Thread: protocol.RequestLineThread{Type: "none"},
	}
	if c.requestID != "" {
		line.Keep = c.sentMessages
	}
	hashes, blocks := []string{}, 0
	for _, m := range c.messages {
		hashes, blocks = append(hashes, m.hash), m.blockCount
	}
	line.CacheControl = now.cacheControlMarks(len(hashes), blocks)
	line.Tail, line.RequestDigest = hashes[line.Keep:], hexSHA256OfKindAndText(shapeHash, strings.Join(hashes, " "))
	c.requestID, c.sentMessages = line.ID, len(c.messages)
	if !failed && !reply.Aborted {
		c.replyID = reply.Message.ID
	}
	return l.appendLoadedToolsRecord(append(lines, line), agentID, shape.Tools)
}

// takeReminderLinesOfNextRequest returns the attachments that a request adds, and records what they report, so that the next call
// returns only later changes. An agent's second request lists agents and may recommend Bash.
func (l *modelRequestLog) takeReminderLinesOfNextRequest(agentID string, input *modelInput, now RequestContext, isSecondRequest bool) (lines []protocol.AttachmentLine) {
	if agentID != "" {
		if isSecondRequest {
			lines = l.attachments.subagentSecondRequestAttachments(agentID)
		}
		if input.requestID != "" {
			lines = append(lines, l.attachments.remainingLimitLines(agentID, now.Remaining)...)
		}
		return lines
	}
	if n := input.repliesWithoutText; n > 0 && n%repliesWithoutTextBeforeReminder == 0 && n <= 3*repliesWithoutTextBeforeReminder {
		lines = append(lines, l.conversation.reminderLine("", textAttachment{"silent_turn_reminder", reminderTextAfterRepliesWithoutText}, reminderTextAfterRepliesWithoutText))
	}
	if session := l.attachments.currentSessionContextOf(""); l.conversation.options.Machine.IsTerminal || l.attachments.planMode && session.ShellMode != protocol.ModePlan {
		for _, line := range l.attachments.modeChangeLines(session) {
			lines = append(lines, line.(protocol.AttachmentLine))
		}
	}
	if dir := l.conversation.workingDirOf(""); input.lastRequestDir != dir && input.lastRequestDir != "" {
		lines = append(lines, l.conversation.environmentChangeReminder(now.AdditionalDirs, environmentChange{Field: "workingDirectory", From: input.lastRequestDir}, "The working directory is now: "+dir))
	}
	input.lastRequestDir = l.conversation.workingDirOf("")
	if line := l.conversation.additionalDirsChangeReminder(*cmp.Or(input.lastRequestAdditionalDirs, &now.AdditionalDirs), now.AdditionalDirs); line != nil {
		lines = append(lines, *line)
	}
	input.lastRequestAdditionalDirs = &now.AdditionalDirs
	session, told := l.attachments.currentSessionContextOf(""), l.attachments.describedModel
	isNew := told != "" && session.Model != told
	if isNew {
		lines = append(lines, l.attachments.modelIdentityLine("", session))
	}
	if !l.attachments.remainingWritten {
		lines = append(lines, l.attachments.remainingLimitLines("", now.Remaining)...)
	}
	if l.attachments.remainingWritten = false; isNew {
		for _, line := range l.attachments.commitAndPullRequestAttributionLines("") {
			lines = append(lines, line.(protocol.AttachmentLine))
		}
	}
	return lines
}

func (l *modelRequestLog) lastRequestID(agentID string) string {
	if l.conversation.writer.isDisabled {
		return ""
	}
	return l.inputOf(agentID).requestID
}

func (l *modelRequestLog) markSentAndReturnBlobLine(agentID string, input *modelInput, messageIndex int, effort *protocol.OutputConfig) any {
	m := &input.messages[messageIndex]
	if m.hash != "" {
		return nil
	}
	message := protocol.RequestMessage{Role: m.role, Content: m.content}
	if m.id == mentionMessageID {
		message.Content = m.content[0]
	}
	m.hash, m.blockCount, m.content = hexSHA256OfKindAndText(m.role, string(slices.Concat(m.content...))), len(m.content), nil
	if m.role == "system" && !input.effortSent {
		input.effortSent, message.OutputConfig = true, effort
	}
	if !m.differsFromLines || !l.recordBlobHash(agentID, m.hash) {
		return nil
	}
	return protocol.RequestBlobLine{Type: "api-request-blob", SessionID: l.conversation.id, AgentID: agentID, Hash: m.hash, Message: message}
}

func countBlocks(blocks []json.RawMessage, kind string) (n int) {
	for _, b := range blocks {
		if isBlockOfType(b, kind) {
			n++
		}
	}
	return n
}

func (l *modelRequestLog) recordBlobHash(agentID, hash string) (isNew bool) {
	known := l.writtenHashes[agentID+hash]
	l.writtenHashes[agentID+hash] = true
	return !known
}

// promptAndToolsSnapshotAfterFirstReply returns the attachment with an agent's prompt and tools, once, after the agent's first
// reply. All other calls return nil.
func (l *modelRequestLog) promptAndToolsSnapshotAfterFirstReply(agentID string) []any {
	c := l.inputOf(agentID)
	if l.conversation.writer.isDisabled || c.snapshotCount != 1 || c.replyID == "" {
		return nil
	}
	c.snapshotCount++
	return []any{l.conversation.attachmentLine(agentID, "", c.context.promptSnapshot())}
}

// appendLoadedToolsRecord appends an attachment with the requested tools that ToolSearch has loaded and that no earlier
// attachment contains. If there are none, it returns lines unchanged.
func (l *modelRequestLog) appendLoadedToolsRecord(lines []any, agentID string, requested []protocol.RequestTool) []any {
	c, record := l.inputOf(agentID), deferredToolsRecord{Type: "deferred_tools_record"}
	for _, t := range requested {
		if isRecorded, isLoaded := c.loadedTools[t.Name]; isLoaded && t.DeferLoading && !isRecorded {
			c.loadedTools[t.Name], record.Entries = true, append(record.Entries, t)
		}
	}
	if len(record.Entries) == 0 {
		return lines
	}
	return append(lines, l.conversation.attachmentLine(agentID, "", record))
}

// loadReferencedTools adds a text after the results of ToolSearch, and marks the tools in them as loaded.
func (c *modelInput) loadReferencedTools(content []json.RawMessage) (withText []json.RawMessage) {
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
