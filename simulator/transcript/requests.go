package transcript

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
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

// repliesWithoutTextBeforeReminder is how many consecutive replies without text cause a reminder, at most three times (observed
// with 2.1.330).
const (
	repliesWithoutTextBeforeReminder    = 5
	linesWithoutTaskCallBeforeReminder  = 10
	reminderTextAfterRepliesWithoutText = "Tell the user about the state of the work."
)

func (l *modelRequestLog) getOrAddInputOf(agentID string) *modelInput {
	if l.inputByAgentID[agentID] == nil {
		l.inputByAgentID[agentID] = &modelInput{loadedTools: map[string]bool{}, snapshotCount: map[bool]int{true: 2}[l.conversation.options.Machine.IsBare]}
	}
	return l.inputByAgentID[agentID]
}

func (l *modelRequestLog) addWrittenLinesToModelInput() {
	written := l.conversation.writer.valuesSinceRequest
	l.conversation.writer.valuesSinceRequest = nil
	for _, line := range written {
		l.addLineToModelInput(line)
	}
}

func (l *modelRequestLog) addLineToModelInput(transcriptLine any) {
	switch line := transcriptLine.(type) {
	case protocol.UserLine:
		l.getOrAddInputOf(line.AgentID).addUserMessage(rawContentBlocks(line.Message.Content), line.TurnOrigin == taskNoticeOrigin)
	case protocol.AssistantLine:
		l.getOrAddInputOf(line.AgentID).addReplyOrReopenMessages(line.Message.ID, rawContentBlocks(protocol.Content{Blocks: line.Message.Content}), false)
	case protocol.LocalCommandLine:
		if !line.DisplayOnly {
			l.getOrAddInputOf("").addOrMergeMessage("user", "", []json.RawMessage{rawTextBlock(line.Content)}, false)
		}
	case hostAssistantLine:
		l.getOrAddInputOf("").addOrMergeMessage("assistant", plainjson.JSString(line.Message.Get("id")), contentBlocksFromJSON(line.Message.Get("content")), false)
	case protocol.SyntheticLine:
		l.getOrAddInputOf(line.AgentID).addReplyOrReopenMessages(line.Message.ID, rawContentBlocks(protocol.Content{Blocks: line.Message.Content}), line.IsAPIErrorMessage)
	case protocol.AttachmentLine:
		if c := l.getOrAddInputOf(line.AgentID); !l.remindedUUIDs[line.UUID] {
			c.addMentionedImage(line.RenderedRole, line.Rendered, line.Attachment)
			c.addAttachmentTexts(line.RenderedRole, line.Rendered)
		}
	case protocol.CompactBoundaryLine:
		c := l.getOrAddInputOf(line.AgentID)
		c.messages, c.sentMessages, c.sentHashes = nil, 0, nil
	}
}

const taskNoticeOrigin = "task_notification"

type recordedAttachment struct {
	Type                     string
	Snapshot                 environmentSnapshot
	Identity                 struct{ ModelID string }
	Style                    json.RawMessage // a name, or an object with the name
	Filename                 string
	Commit                   string
	AddedNames, RemovedNames []string
	FailedMCPServers         []FailedServer
	Content                  json.RawMessage
}

func (l *modelRequestLog) restoreFromAttachment(c *modelInput, a recordedAttachment) {
	switch a.Type {
	case "deferred_tools_record":
		for name := range c.loadedTools {
			c.loadedTools[name] = true
		}
	case "prompt_snapshot":
		c.snapshotCount++
		c.replyID = "resumed"
	case "model":
		l.attachments.describedModel = a.Identity.ModelID
	case "output_style_instructions":
		l.attachments.describedStyle = plainjson.DecodeIgnoringErrors[struct{ Name string }](a.Style).Name
	case "deferred_tools_delta":
		l.attachments.listed.updateTools(a.AddedNames, a.RemovedNames, a.FailedMCPServers)
	case "mcp_instructions_delta":
		servers := &l.attachments.listed.instructedServers
		*servers = append(missingFrom(a.RemovedNames, *servers), a.AddedNames...)
	case "remote_session_change":
		l.attachments.attribution = a.Commit
	case "environment":
		c.lastRequestDir = a.Snapshot.WorkingDirectory
	}
}

// restoreFromTranscript rebuilds the state from a resumed transcript. A fork begins without the requests of its source.
func (l *modelRequestLog) restoreFromTranscript(t *parsedTranscript, leafUUID string, isFork bool) {
	c := l.getOrAddInputOf("")
	for _, e := range t.branchLines(leafUUID) {
		var line struct {
			Subtype, TurnOrigin, RenderedRole string
			Message                           struct {
				ID, Model string
				Content   json.RawMessage
				Usage     protocol.Usage
			}
			Attachment        recordedAttachment
			Rendered          []protocol.AttachmentText
			Content           json.RawMessage // of a local command
			IsAPIErrorMessage bool
			IsDisplayOnly     bool
		}
		if e.isSidechain || json.Unmarshal(e.raw, &line) != nil {
			continue
		}
		switch e.kind {
		case "user":
			c.addUserMessage(contentBlocksFromJSON(line.Message.Content), line.TurnOrigin == taskNoticeOrigin)
		case "assistant":
			c.addReplyOrReopenMessages(line.Message.ID, contentBlocksFromJSON(line.Message.Content), line.IsAPIErrorMessage)
			l.attachments.recordMaxUsedTokens("", line.Message.Model, line.Message.Usage)
		case "attachment":
			c.addMentionedImage(line.RenderedRole, line.Rendered, line.Attachment)
			c.addAttachmentTexts(line.RenderedRole, line.Rendered)
			l.restoreFromAttachment(c, line.Attachment)
		case "system":
			switch {
			case line.Subtype == "compact_boundary":
				c.messages, l.attachments.listed = nil, announcedToolsAndServers{}
			case line.Subtype == "local_command" && !line.IsDisplayOnly:
				c.addOrMergeMessage("user", "", contentBlocksFromJSON(line.Content), false)
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

// recordRequestAndReturnLines records that the request that reply answers was sent, and returns the lines about it. It returns
// nil if reply answers no request, or if an earlier block of reply has written the lines. reply may be an API error message.
func (l *modelRequestLog) recordRequestAndReturnLines(agentID string, reply *protocol.AssistantEvent) []any {
	c := l.getOrAddInputOf(agentID)
	c.isUnanswered = false
	failed := reply.IsAPIErrorMessage
	if l.conversation.writer.isDisabled || reply.Message.Model == protocol.SyntheticModel && !failed || reply.Message.ID == c.replyID && !failed {
		return nil
	}
	l.addWrittenLinesToModelInput()
	now := l.currentRequestContextOf(agentID)
	c.context = now
	var lines []any
	if c.snapshotCount == 0 {
		c.snapshotCount++
		lines = append(lines, l.conversation.takeNextAttachmentLine(agentID, "", newAttachment("prompt_snapshot", "systemPrompt", []string{systemPromptText}, "reminderFold", false, "echoWireToolInputs", false, "contextRendering", "announced")))
	} else {
		lines = l.takePromptSnapshotAfterReply(agentID)
	}
	if !c.isRepetition {
		c.updateReminderCounters()
		for _, line := range l.takeReminderLinesOfNextRequest(agentID, c, now) {
			line := line.(protocol.AttachmentLine)
			c.addAttachmentTexts(line.RenderedRole, line.Rendered)
			lines, l.remindedUUIDs[line.UUID] = append(lines, line), true
		}
	}
	now = now.repeatedInForm(c.repeated)
	c.moveUnsentReminders(now.SystemTurns)
	c.addEmptySystemMessageForConfig(now)
	shape := now.systemPromptAndTools(c.loadedTools)
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
	lines = append(lines, l.markSentAndReturnBlobLines(agentID, c, now)...)
	line := protocol.RequestLine{
		Type: "api-request", SessionID: l.conversation.id, AgentID: agentID, ID: l.conversation.options.Clock.NewID(), Timestamp: at, Version: l.conversation.options.Version,
		QuerySource: now.Source, ShapeHash: shapeHash, Params: now.Params, Thread: protocol.RequestThread{Type: "none"},
	}
	hashes, count, blocks := c.messageHashesDroppingAnswered()
	for line.Keep < min(len(hashes), len(c.sentHashes)) && hashes[line.Keep] == c.sentHashes[line.Keep] {
		line.Keep, line.Base = line.Keep+1, c.requestID
	}
	line.CacheControl = now.cacheControlMarks(count, blocks)
	params, _ := protocol.Marshal(now.Params) // cannot fail
	line.Tail, line.RequestDigest = hashes[line.Keep:], hexSHA256OfKindAndText(shapeHash, string(params)+strings.Join(hashes, " "))
	c.requestID, c.sentMessages, c.sentHashes, c.isRepetition = line.ID, len(c.messages), hashes, false
	if !failed && !reply.Aborted {
		c.replyID = reply.Message.ID
	}
	if !failed && c.repeated.WithoutStreaming {
		c.repeated = protocol.RequestRepeated{}
	}
	return l.appendLoadedToolsRecord(append(append(lines, line), l.takeContextLinesOfBareSession()...), agentID, shape.Tools)
}

func (l *modelRequestLog) currentRequestContextOf(agentID string) (now RequestContext) {
	if l.conversation.options.Context != nil {
		now = l.conversation.options.Context.RequestContext(agentID)
	}
	return now
}

// takeContextLinesOfBareSession returns, once, the session context of a --bare session, which the model does not receive.
func (l *modelRequestLog) takeContextLinesOfBareSession() (lines []any) {
	if a := l.attachments; l.conversation.options.Machine.IsBare && !a.contextWritten && !l.conversation.resumed {
		a.contextWritten, lines = true, a.takeContextDateAttributionLines("")
	}
	for _, line := range lines {
		l.remindedUUIDs[line.(protocol.AttachmentLine).UUID] = true
	}
	return lines
}

// takeReminderLinesOfNextRequest returns the attachments that a request adds, and records what they report, so that the next call
// returns only later changes. An agent's second request lists agents and may recommend Bash.
func (l *modelRequestLog) takeReminderLinesOfNextRequest(agentID string, input *modelInput, now RequestContext) (lines []any) {
	if l.conversation.options.Machine.IsBare {
		return nil
	}
	if agentID != "" {
		lines = append(lines, l.takeListingsWithFirstResults(agentID)...)
		if input.requestID != "" {
			lines = append(lines, l.attachments.takeRemindersOfEachRequest(agentID, now.Remaining)...)
		}
		return lines
	}
	if n := input.repliesWithoutText; n > 0 && n%repliesWithoutTextBeforeReminder == 0 && n <= 3*repliesWithoutTextBeforeReminder && claudecode.FactsOfModel(now.Params.Model).RemindedOfSilence {
		lines = append(lines, l.conversation.takeNextReminderLine("", newAttachment("silent_turn_reminder", "text", reminderTextAfterRepliesWithoutText), reminderTextAfterRepliesWithoutText))
	}
	if !now.SystemTurns && input.linesSinceTaskCall >= linesWithoutTaskCallBeforeReminder {
		input.linesSinceTaskCall = 0
		lines = append(lines, l.conversation.takeNextReminderLine("", newAttachment("task_reminder", "content", []string{}, "itemCount", 0), "Keep the list of tasks up to date, if there is one."))
	}
	if session := l.attachments.currentSessionContextOf(""); l.conversation.options.Machine.IsTerminal || l.attachments.planMode && session.ShellMode != protocol.ModePlan {
		lines = append(lines, l.attachments.takeModeChangeLines(session)...)
	}
	if n := len(input.messages); l.attachments.autoModeCompacted && n > 0 && countBlocks(input.messages[n-1].content, "tool_result") > 0 {
		l.attachments.autoModeCompacted = false
		lines = append(lines, l.attachments.takeAutoOrBypassModeStartLines("", l.attachments.currentSessionContextOf(""))...)
	}
	if dir := l.conversation.workingDirOf(""); input.lastRequestDir != dir && input.lastRequestDir != "" {
		lines = append(lines, l.conversation.takeEnvironmentChangeLine(now.AdditionalDirs, environmentChange{Field: "workingDirectory", From: input.lastRequestDir}, "The working directory is now: "+dir))
	}
	input.lastRequestDir = l.conversation.workingDirOf("")
	lines = append(lines, l.conversation.takeAdditionalDirsChangeLines(*cmp.Or(input.lastRequestAdditionalDirs, &now.AdditionalDirs), now.AdditionalDirs)...)
	input.lastRequestAdditionalDirs = &now.AdditionalDirs
	session, told := l.attachments.currentSessionContextOf(""), l.attachments.describedModel
	isNew := told != "" && session.Model != told && !l.attachments.remainingWritten // a command's model is described only after its first request
	if isNew {
		lines = append(lines, l.attachments.takeModelIdentityLine("", session))
	}
	session.FailedServers = l.attachments.listed.failedServers // a server that fails during a turn is connected again
	lines = append(lines, l.attachments.takeToolAndServerChangeLines(session)...)
	if !l.attachments.remainingWritten {
		lines = append(lines, l.attachments.takeRemindersOfEachRequest("", now.Remaining)...)
	}
	if l.attachments.remainingWritten = false; isNew || l.attachments.attributionPending {
		l.attachments.attributionPending = false
		lines = append(lines, l.attachments.takeCommitAndPRAttributionLines("")...)
	}
	return lines
}

// takeListingsWithFirstResults returns, once, the attachments that a sub-agent gets with its first results.
func (l *modelRequestLog) takeListingsWithFirstResults(agentID string) []any {
	c := l.getOrAddInputOf(agentID)
	if !c.hasResults || c.listsAgents {
		return nil
	}
	c.listsAgents = true
	now := l.attachments.currentSessionContextOf(agentID)
	return append(l.attachments.takeToolAgentAndSkillLines(agentID, SessionContext{Model: now.Model, Agents: now.Agents}, false), l.attachments.takeAutoOrBypassModeStartLines(agentID, now)...)
}

// markSentAndReturnBlobLines returns the lines for the messages that no other line contains.
func (l *modelRequestLog) markSentAndReturnBlobLines(agentID string, input *modelInput, now RequestContext) (lines []any) {
	hasSystem := false
	for i := range input.messages {
		m := &input.messages[i]
		isFirstSystem := m.role == "system" && !hasSystem
		if hasSystem = hasSystem || isFirstSystem; m.hash != "" {
			continue
		}
		message := protocol.RequestMessage{Role: m.role, Content: m.content}
		if isFirstSystem {
			message.OutputConfig = now.MessageConfig
		}
		// A system message is a list of blocks only if its end is marked for the cache.
		if isMarked := i == len(input.messages)-1 && now.PromptCache != "off"; m.id == mentionMessageID {
			message.Content = m.content[0]
		} else if text := (protocol.TextBlock{}); m.role == "system" && !isMarked && len(m.content) > 0 && json.Unmarshal(m.content[0], &text) == nil {
			message.Content = text.Text
		}
		m.hash = hexSHA256OfKindAndText(m.role, string(slices.Concat(m.content...)))
		if isNew := l.recordBlobHash(agentID, m.hash); isNew && m.differsFromLines {
			lines = append(lines, protocol.RequestBlobLine{Type: "api-request-blob", SessionID: l.conversation.id, AgentID: agentID, Hash: m.hash, Message: message})
		}
	}
	return lines
}

func (l *modelRequestLog) recordBlobHash(agentID, hash string) (isNew bool) {
	known := l.writtenHashes[agentID+hash]
	l.writtenHashes[agentID+hash] = true
	return !known
}

// takePromptSnapshotAfterReply returns the attachment with an agent's system prompt and tools, once, after the agent's first
// complete reply. All other calls return nil.
func (l *modelRequestLog) takePromptSnapshotAfterReply(agentID string) []any {
	c := l.getOrAddInputOf(agentID)
	if l.conversation.writer.isDisabled || c.snapshotCount != 1 || c.replyID == "" || c.isReplyTruncated {
		return nil
	}
	c.snapshotCount++
	return []any{l.conversation.takeNextAttachmentLine(agentID, "", c.context.promptSnapshot())}
}

// appendLoadedToolsRecord appends an attachment with the requested tools that ToolSearch has loaded and that no earlier
// attachment contains. If there are none, it returns lines unchanged.
func (l *modelRequestLog) appendLoadedToolsRecord(lines []any, agentID string, requested []protocol.RequestTool) []any {
	c, loaded := l.getOrAddInputOf(agentID), []protocol.RequestTool(nil)
	for _, t := range requested {
		if isRecorded, isLoaded := c.loadedTools[t.Name]; isLoaded && t.DeferLoading && !isRecorded {
			c.loadedTools[t.Name], loaded = true, append(loaded, t)
		}
	}
	if len(loaded) == 0 {
		return lines
	}
	return append(lines, l.conversation.takeNextAttachmentLine(agentID, "", newAttachment("deferred_tools_record", "entries", loaded)))
}

func (now RequestContext) systemPromptAndTools(loaded map[string]bool) protocol.SystemPromptAndTools {
	shape := protocol.SystemPromptAndTools{System: []protocol.TextBlock{protocol.Text(systemPromptIntroduction)}, Tools: now.requestTools(loaded)}
	if !now.NoSystemPrompt {
		shape.System = append(shape.System, protocol.Text(systemPromptText))
	}
	if now.AnthropicAPI {
		shape.System = append(shape.System, protocol.Text(systemPromptText))
	}
	if now.Placeholder {
		placeholder := protocol.RequestTool{Name: deferredToolsPlaceholderName, Description: "Stands for the tools that ToolSearch loads.", InputSchema: json.RawMessage(anyObjectInputSchema), DeferLoading: true}
		shape.Tools = slices.Insert(shape.Tools, max(len(shape.Tools)-1, 0), placeholder)
	}
	return shape
}

// repeatedInForm returns the request as the CLI sends it when it repeats a failed one.
func (now RequestContext) repeatedInForm(form protocol.RequestRepeated) RequestContext {
	if form.WithoutStreaming {
		now.Params.MaxTokens = min(now.Params.MaxTokens, claudecode.MaxTokensWithoutStreaming)
		return now
	}
	leftOut := claudecode.BetasOmittedOnRetry(form.Attempt)
	now.Params.Betas = missingFrom(leftOut, now.Params.Betas)
	if slices.Contains(leftOut, claudecode.BetaThinkingShow) && now.Params.Thinking != nil {
		now.Params.Thinking = new(*now.Params.Thinking)
		now.Params.Thinking.Display = ""
	}
	if slices.Contains(leftOut, claudecode.BetaToolSearch) && now.Placeholder {
		now.Deferred, now.Placeholder = nil, false
		now.Tools = slices.DeleteFunc(slices.Clone(now.Tools), func(t protocol.Tool) bool { return t.Name == "ToolSearch" })
	}
	return now
}

const anyObjectInputSchema = `{"type":"object"}`

// requestTools returns the tools that are not deferred, and the deferred tools that are keys of loaded.
func (now RequestContext) requestTools(loaded map[string]bool) []protocol.RequestTool {
	var tools []protocol.RequestTool
	for _, t := range now.Tools {
		r := requestTool(t)
		r.DeferLoading = slices.Contains(now.Deferred, t.Name)
		if _, isLoaded := loaded[t.Name]; isLoaded || !r.DeferLoading {
			tools = append(tools, r)
		}
	}
	return tools
}

func requestTool(t protocol.Tool) protocol.RequestTool {
	schema := t.InputSchema
	if schema == nil {
		schema = json.RawMessage(anyObjectInputSchema)
	}
	return protocol.RequestTool{Name: t.Name, Description: cmp.Or(t.Description, "The tool "+t.Name+"."), InputSchema: schema}
}

// cacheControlMarks returns the places of a request up to which the API caches it.
func (now RequestContext) cacheControlMarks(messageCount, lastMessageBlockCount int) []protocol.CacheControlMark {
	value := map[string]string{"type": "ephemeral"}
	switch now.PromptCache {
	case "off":
		return []protocol.CacheControlMark{}
	case "1h":
		value["ttl"] = "1h"
	}
	marks := []protocol.CacheControlMark{{Path: []any{"system", 0}, Value: value}}
	if !now.NoSystemPrompt {
		marks = append(marks, protocol.CacheControlMark{Path: []any{"system", 1}, Value: value})
	}
	if now.AnthropicAPI {
		shared := maps.Clone(value)
		shared["scope"] = "global"
		marks = []protocol.CacheControlMark{{Path: []any{"system", 1}, Value: shared}, {Path: []any{"system", 2}, Value: value}}
	}
	if messageCount > 0 {
		marks = append(marks, protocol.CacheControlMark{Path: []any{"messages", messageCount - 1, "content", max(lastMessageBlockCount-1, 0)}, Value: value})
	}
	return marks
}

// promptSnapshot returns the attachment that records, after the first reply, the system prompt and the tools.
func (now RequestContext) promptSnapshot() attachment {
	var tools []promptSnapshotTool
	for _, t := range now.Tools {
		if r := requestTool(t); !slices.Contains(now.Deferred, t.Name) {
			tools = append(tools, promptSnapshotTool{r.Name, r.Description, t.Server, r})
		}
	}
	snapshot := newAttachment("prompt_snapshot", "systemPrompt", []string{systemPromptText}, "tools", tools, "cliPrefix", systemPromptIntroduction, "reminderFold", false)
	if now.SystemTurns {
		snapshot = snapshot.with("systemTurns", true, "toolChangeHeader", true, "inlineTools", false, "keptReminders", now.AnthropicAPI)
	}
	return snapshot.with("echoWireToolInputs", false, "contextRendering", "announced")
}

// toolsReferencedByResult returns the names of the tools in a result of ToolSearch; other blocks have none.
func toolsReferencedByResult(block json.RawMessage) (names []string) {
	var result struct{ Content json.RawMessage }
	var parts []struct {
		Tool string `json:"tool_name"`
	}
	if json.Unmarshal(block, &result) != nil || json.Unmarshal(result.Content, &parts) != nil {
		return nil
	}
	for _, part := range parts {
		if part.Tool != "" {
			names = append(names, part.Tool)
		}
	}
	return names
}
