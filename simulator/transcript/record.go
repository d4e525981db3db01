package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type recorder struct {
	conversation            *conversation
	sessionListLines        *sessionListLineBuilder
	lines                   *lineWriter
	attachments             *contextAttachmentWriter
	agents                  *agentTranscripts
	requests                *modelRequestLog
	costs                   sessionCosts
	attribution             attributionTracker         // attribution of the model's next lines
	promptCount, imageCount int                        // number of prompts and of their images so far
	untypedPromptCount      int                        // number of those prompts that no user has typed on a terminal
	retainedUUIDs           []string                   // uuids of the messages that the last compaction kept
	compactionUUID          string                     // id of the command for the last compaction in a terminal
	unanswered              []unansweredCall           // calls without a result at the end of the history
	awaitsReply             bool                       // the history ends with a prompt that the model has not answered
	turnClosed              bool                       // the closing lines of the first turn in a terminal are written
	stateBeforePrompt       recorderStateBeforePrompt  // state before the last prompt
	unrecordedHostCommands  []*protocol.HostCommandRan // commands that are recorded with the next prompt
	refusedByUser           bool                       // the user has refused the last call

	lastCallCheck        struct{ messageID, requestID string } // last check of the calls of a message
	lastStructuredOutput attachment                            // output of the last call
	unrecordedFallback   *protocol.SystemEvent                 // change of the model that is not recorded yet; nil means none
}

func newRecorder(th *conversation) *recorder {
	r := &recorder{conversation: th, sessionListLines: &sessionListLineBuilder{conversation: th}}
	r.lines = &lineWriter{conversation: th, sessionListLines: r.sessionListLines}
	r.attachments = &contextAttachmentWriter{conversation: th, lines: r.lines}
	r.agents = &agentTranscripts{conversation: th, attachments: r.attachments, metaByAgentID: map[string]*agentMeta{}}
	r.requests = &modelRequestLog{th, r.attachments, map[string]*modelInput{}, map[string]bool{}, map[string]bool{}}
	th.writer.valuesSinceRequest = nil
	return r
}

func (r *recorder) writeLinesOfEvent(ev protocol.Event) error {
	if isHeld, err := r.writeLinesBeforeEvent(ev); isHeld || err != nil {
		return err
	}
	switch ev := ev.(type) {
	case *protocol.PromptQueued:
		return r.holdLinesAboutQueuedPrompt(ev)
	case *protocol.PromptAccepted:
		return r.recordPrompt(ev)
	case *protocol.PromptAbsorbed:
		return r.recordAbsorbedPrompt(ev)
	case *protocol.HostCommandRan:
		r.unrecordedHostCommands = append(r.unrecordedHostCommands, ev)
	case *protocol.InitEvent:
		r.conversation.inQuery = r.conversation.options.Machine.IsTerminal
		return r.attachments.writeFirstRequestAttachments()
	case *protocol.AssistantEvent:
		return r.recordAssistant(ev)
	case *protocol.UserEvent:
		return r.recordUser(ev)
	case *protocol.ResultEvent:
		return r.recordResult(ev)
	case *protocol.FailedAPIRequestBeforeRetry:
		return r.recordRetry(ev)
	case *protocol.RequestRepeated:
		return r.recordRepeatedRequest(ev)
	case *protocol.ToolExecuted:
		r.costs.addToolDurationAndLineChanges(ev)
		data := map[bool]json.RawMessage{true: ev.Use.Input, false: ev.ExecutedInput}[ev.ExecutedInput == nil]
		r.lastStructuredOutput = newAttachment("structured_output", "data", data, "toolUseID", ev.Use.ID)
	case *protocol.ConversationCompacted:
		return r.recordLinesAfterCompactBoundary(ev)
	case *protocol.TurnPromptWithdrawnByUser:
		return r.writeRequestAndRestoreState()
	case *protocol.StopHooksRan:
		return r.recordStopHooks(ev)
	case *protocol.AttachmentAdded:
		return r.recordAttachment(ev)
	case *protocol.SystemEvent:
		return r.recordSystem(ev)
	case *protocol.TranscriptOnlyEvent:
		return r.writeLinesOfEvent(ev.Event)
	case *protocol.RawTranscriptOnlyLine:
		var line bytes.Buffer
		if json.Compact(&line, ev.Line) == nil {
			return r.lines.writeAfterPendingLines(json.RawMessage(line.Bytes()))
		}
	}
	return nil
}

// writeLinesBeforeEvent writes the lines that precede those of ev. After the first reply, it writes the system prompt and the tools. It
// writes the last prompt's context before the first event that is not about a mentioned file. isHeld is true if ev is about instructions
// for a mentioned file; its lines are written with that context.
func (r *recorder) writeLinesBeforeEvent(ev protocol.Event) (isHeld bool, err error) {
	if matched, is := ev.(*protocol.RuleMatchOutcome); is {
		r.requests.getOrAddInputOf(matched.AgentID).isUnanswered = true
	}
	if showsThatReplyHasEnded(ev) && r.lines.opened {
		err = cmp.Or(r.writeUnansweredRequest(""), r.writePromptAndToolsSnapshotOnce(""))
	}
	if at, is := ev.(*protocol.AttachmentAdded); is && r.attachments.prompt != nil && at.AgentID == "" {
		switch {
		case at.Tool == "Read":
			return false, err
		case at.Role == "user":
			r.attachments.memory = append(r.attachments.memory, at)
			return true, err
		}
	}
	return false, cmp.Or(err, r.writeEnvironmentAndImages())
}

func showsThatReplyHasEnded(ev protocol.Event) bool {
	switch ev := ev.(type) {
	case *protocol.StopHooksRan, *protocol.PromptAccepted:
		return true
	case *protocol.AttachmentAdded:
		a, _ := ev.Attachment.(protocol.HookAttachment)
		return ev.AgentID == "" && (ev.Role == "user" || a.Type == "async_hook_response" || slices.ContainsFunc(a.Fields, func(f protocol.Field) bool { return f.Value == "PostToolBatch" }))
	case *protocol.UserEvent:
		return ev.ParentToolUseID == nil && !hasToolResult(ev.Message.Content) && ev.IsReplay == nil && !ev.Summary && ev.Expansion == nil
	}
	return false
}

// holdLinesAboutQueuedPrompt prepares the lines about a prompt that entered and left the queue. They are written with the next lines.
func (r *recorder) holdLinesAboutQueuedPrompt(ev *protocol.PromptQueued) error {
	in := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: r.conversation.timestampOrNow(ev.Timestamp), SessionID: r.conversation.id}
	out := in
	out.Operation = "dequeue"
	if ev.Content.Blocks == nil {
		in.Content = &ev.Content.Text
	}
	if !r.conversation.options.Machine.IsTerminal || ev.Source == "system" {
		r.lines.waitingLines = append(r.lines.waitingLines, in, out)
	}
	r.sessionListLines.rawPrompt = ev.Content
	return nil
}

func (r *recorder) recordPrompt(ev *protocol.PromptAccepted) error {
	if err := r.writeLinesBeforePrompt(ev); err != nil {
		return err
	}
	switch {
	case ev.LocalCommand:
		return r.recordSlashCommandPrompt(ev, unixMilli(ev.Timestamp))
	case ev.Blocked:
		r.conversation.promptID = ev.PromptID
		return nil
	}
	if ev.Typed != "" {
		return r.recordShellPrompt(ev)
	}
	if err := r.recordHostCommandsBeforePrompt(ev); err != nil {
		return err
	}
	r.saveRecorderStateAndNamePlan(ev)
	r.conversation.inQuery = false
	mended := r.takeLinesCompletingTurn(ev.PromptID)
	if ev.Preamble != "" {
		line := r.conversation.takeNextCLILineOfPrompt(ev, userStringContent(protocol.InReminderTags(ev.Preamble)))
		line.SkipAttachments = true
		mended = append(mended, line)
	}
	e := r.conversation.takeNextLineEnvelope("", ev.UUID, ev.Timestamp)
	e.PromptID = r.conversation.setPromptIDUnlessWrittenByCLI(ev)
	line := protocol.UserLine{
		LineHead: e.LineHead, LineID: e.LineID, LineTrailer: e.LineTrailer, Type: "user",
		Message: protocol.UserContent{Role: "user", Content: ev.Content}, IsMeta: ev.WrittenByCLI, RowSource: "local",
	}
	if ev.WrittenByCLI {
		if line.Companion = ev.Expansion != nil; line.Companion {
			r.attachments.prompt = ev
			if n := countBlocks(rawContentBlocks(ev.Content), "text"); n > 1 {
				line.CommandBlocks = &protocol.CommandTextBlockCounts{All: n, Command: 1}
			}
		}
		return r.lines.writeAfterPendingLines(append(mended, line)...)
	}
	r.attribution, r.turnClosed = attributionTracker{byAgentID: r.attribution.byAgentID}, r.turnClosed && r.attachments.environmentWritten
	r.sessionListLines.recordPrompt(ev)
	mended = append(mended, r.sessionListLines.takeLinesMissingBeforePrompt()...)
	r.countPromptAndSetPositionAndSource(&line, ev)
	line.AttributionKey, line.MergedUUIDs, line.ImageIDs = ev.HostID, ev.Merged, imageNumbersAfter(ev.Content, r.imageCount)
	if r.attachments.beforeCommand = r.attachments.currentSessionContextOf(""); ev.Expansion == nil {
		r.attachments.prompt = ev
	}
	return r.lines.writeAfterPendingLines(append(mended, r.takePromptLinesSplitIfQueued(ev, line)...)...)
}

// takePromptLinesSplitIfQueued returns the transcript line of a prompt. For a terminal, it returns one line for each queued
// prompt that became part of the turn.
func (r *recorder) takePromptLinesSplitIfQueued(ev *protocol.PromptAccepted, line protocol.UserLine) []any {
	if ev.Queued == nil || ev.Expansion != nil {
		return []any{line}
	}
	var lines []any
	line.PromptSource = "queued"
	for i, text := range ev.Queued {
		line.Message = userStringContent(text)
		if i > 0 {
			e := r.conversation.takeNextLineEnvelope("", "", ev.Timestamp)
			e.PromptID = r.conversation.options.Clock.NewID()
			line.LineHead, line.LineID = e.LineHead, e.LineID
			r.conversation.recordFilesBeforePrompt(e.UUID)
		}
		lines = append(lines, line)
	}
	return lines
}

// recordHostCommandsBeforePrompt records a host's commands since the previous prompt, with the prompt id of prompt.
func (r *recorder) recordHostCommandsBeforePrompt(prompt *protocol.PromptAccepted) (err error) {
	for _, c := range r.unrecordedHostCommands {
		c.Command.PromptID = r.conversation.setPromptIDUnlessWrittenByCLI(prompt)
		err = cmp.Or(err, r.recordSlashCommandPrompt(c.Command, 0), r.recordUser(c.Output))
	}
	r.unrecordedHostCommands = nil
	return err
}

// countPromptAndSetPositionAndSource counts the prompt and sets its source, its time and its position in
// the session. In a terminal, notices about background work are not counted as prompts.
func (r *recorder) countPromptAndSetPositionAndSource(line *protocol.UserLine, prompt *protocol.PromptAccepted) {
	setPromptSourceOutsideTerminal(line, prompt)
	if r.attachments.promptNotSent = prompt.NoQuery; prompt.NoQuery {
		return
	}
	r.promptCount++
	line.SentAtMS = unixMilli(prompt.Timestamp)
	line.TurnPosition = &protocol.SessionTurnPosition{TurnIndex: r.promptCount}
	if r.conversation.options.Machine.IsTerminal {
		if prompt.Source != "system" {
			line.PromptSource, line.TurnOrigin, line.Origin = "typed", "human", json.RawMessage(humanOrigin)
		} else {
			r.untypedPromptCount++
		}
		line.TurnPosition.PromptIndex = r.promptCount - r.untypedPromptCount
	}
	if prompt.Expansion != nil {
		line.PermissionMode, line.PromptSource = "", ""
	}
}

func (r *recorder) recordExpansionContext(x *protocol.ExpandedCommand) error {
	r.attribution.recordSkill(x.Name)
	if strings.HasPrefix(x.Name, "mcp__") { // after the prompt of a server, only the next prompt describes the environment
		r.attachments.contextPending = !r.attachments.contextWritten
	} else if err := r.attachments.writeEnvironmentOrChanges(r.attachments.beforeCommand); err != nil {
		return err
	}
	permissions := newAttachment("command_permissions", "allowedTools", append([]string{}, x.Tools...))
	if x.Model != "" {
		permissions = permissions.with("model", x.Model)
	}
	return r.lines.writeAfterPendingLines(r.conversation.takeNextAttachmentLine("", "", permissions))
}

const commandCaveat = "<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request, and its " +
	"output goes straight to the user. It's recorded here as context for later messages.</local-command-caveat>"

func (r *recorder) recordSlashCommandPrompt(ev *protocol.PromptAccepted, sentAtMS int64) error {
	if ev.UnknownCommand {
		r.sessionListLines.openedByCommand = r.sessionListLines.openedByCommand || !r.lines.opened
		e := r.conversation.takeNextLineEnvelope("", "", ev.Timestamp)
		return r.lines.writeAfterPendingLines(protocol.LocalCommandLine{
			LineHead: e.LineHead, Type: "system", Subtype: "local_command", Content: ev.Content.Plain(), Level: "info",
			SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, SubmitUUID: ev.HostID, LineTrailer: e.LineTrailer,
		})
	}
	if !strings.HasPrefix(ev.Content.Text, "<command-name>") {
		r.sessionListLines.recordPrompt(ev) // a skill that runs in an agent is listed as it was typed
	}
	var lines []any
	uuid := ""
	for _, line := range []protocol.UserLine{
		{Message: userStringContent(commandCaveat), IsMeta: true, RowSource: "harness", SentAtMS: sentAtMS},
		{Message: protocol.UserContent{Role: "user", Content: ev.Content}, AttributionKey: ev.HostID, RowSource: "local"},
	} {
		e := r.conversation.takeNextLineEnvelope("", uuid, ev.Timestamp)
		line.LineHead, line.LineID, line.LineTrailer, line.Type = e.LineHead, e.LineID, e.LineTrailer, "user"
		line.PromptID = r.conversation.setPromptIDUnlessWrittenByCLI(ev)
		lines, uuid = append(lines, line), ev.UUID
	}
	return r.lines.writeAfterPendingLines(lines...)
}

func (r *recorder) recordAssistant(ev *protocol.AssistantEvent) error {
	if ev.LocalCommandSource != "" {
		return r.recordLocalCommand(ev)
	}
	agentID := eventAgentID(ev.ParentToolUseID, ev.AgentID)
	r.sessionListLines.hasReply = r.sessionListLines.hasReply || agentID == ""
	lines := r.takeRequestAndFallbackLines(agentID, ev)
	line := r.takeNextAssistantLine(agentID, ev)
	r.requests.getOrAddInputOf(agentID).isReplyTruncated = ev.Final != nil && ev.Final.StopReason == "max_tokens"
	if agentID != "" {
		if r.sessionListLines.recordUsedTools(ev, r.requests.getOrAddInputOf(agentID).context) && r.lines.opened {
			if err := r.lines.writeAfterPendingLines(r.sessionListLines.toolsUsedLine()); err != nil {
				return err
			}
		}
		return r.agents.writeLinesCreatingMetaFile(agentID, newAgentMeta(ev.SubagentType, ev.TaskDescription, *ev.ParentToolUseID), append(lines, line)...)
	}
	if r.sessionListLines.recordUsedTools(ev, r.requests.getOrAddInputOf("").context) {
		lines = append(lines, r.sessionListLines.toolsUsedLine())
	}
	if err := r.lines.writeAfterPendingLines(append(lines, line)...); err != nil {
		return err
	}
	if r.sessionListLines.lastPromptWritten || ev.Final != nil && ev.Final.BlocksAfter > 0 {
		return nil
	}
	if ev.Final != nil && len(ev.Final.Calls) == 0 {
		if r.conversation.options.Machine.IsTerminal {
			return nil // in a terminal, the closing lines are written later, after the line about the turn's duration
		}
		if err := r.writePromptAndToolsSnapshotOnce(""); err != nil { // the closing lines name the last line, so they come after the snapshot
			return err
		}
	}
	return r.lines.writeAfterPendingLines(r.sessionListLines.takeTranscriptClosingLines()...)
}

func (r *recorder) takeNextAssistantLine(agentID string, ev *protocol.AssistantEvent) any {
	e := r.conversation.takeNextLineEnvelope(agentID, ev.UUID, ev.Timestamp)
	level, perTurn := r.effortLevels(agentID)
	if ev.Message.Model == protocol.SyntheticModel {
		madeBy := "other"
		ofModel := ev.IsAPIErrorMessage && ev.APIError != "autocompact_thrashing" // otherwise the CLI made no request
		if ev.ErrorDetails != "" && ev.APIStatus != 413 || ev.IsAPIErrorMessage && !ofModel {
			perTurn = nil
		} else if ofModel {
			madeBy = "model"
		}
		if ev.APIErrorParams != nil {
			perTurn = nil
		}
		return protocol.SyntheticLine{
			IsTransient: map[bool]*bool{true: new(bool)}[ev.Error == "rate_limit"],
			LineHead:    e.LineHead, Type: "assistant", LineID: e.LineID, Message: ev.Message, RequestID: ev.RequestID, Error: ev.Error,
			IsAPIErrorMessage: ev.IsAPIErrorMessage, APIErrorStatus: ev.APIStatus, APIErrorCode: ev.ErrorCode, APIErrorType: ev.APIErrorType, APIError: ev.APIError, APIErrorParams: ev.APIErrorParams,
			ErrorDetails: ev.ErrorDetails, HealsCarrier: ev.APIStatus == 413, ResendCannotCure: ev.Error == "billing_error",
			PerTurnEffort: perTurn, NoToolCall: ofModel, MadeBy: madeBy, LineTrailer: e.LineTrailer,
		}
	}
	m := ev.Message
	line := protocol.AssistantLine{
		LineHead:           e.LineHead,
		Message:            protocol.LineAssistantMessage{ID: m.ID, Type: m.Type, Role: m.Role, Model: m.Model, Content: m.Content, StopReason: m.StopReason, StopSequence: m.StopSequence, Usage: m.Usage},
		ThinkingDurationMS: ev.ThinkingDurationMS, ThinkingDisplay: ev.ThinkingDisplay, IsAbortedMidStream: ev.Aborted,
		RequestID: ev.RequestID, RequestRef: r.requests.getOrAddInputOf(agentID).requestID, RequestedModel: m.Model, PromptCache: cmp.Or(r.requests.getOrAddInputOf(agentID).context.PromptCache, "5m"),
		LineAttribution: r.attribution.getOrAddForAgent(agentID).attributeMessage(ev),
		Type:            "assistant", LineID: e.LineID, Effort: level, PerTurnEffort: perTurn, MadeBy: "model", LineTrailer: e.LineTrailer,
	}
	if r.requests.getOrAddInputOf(agentID).context.ChecksCalls {
		if r.lastCallCheck.messageID != m.ID {
			r.lastCallCheck.messageID, r.lastCallCheck.requestID = m.ID, r.conversation.options.Clock.NewID()
		}
		line.CheckRequest = r.lastCallCheck.requestID
	}
	if m.StopReason == nil && !ev.Aborted { // a streamed reply gets its stop reason from ev.Final
		line.Message.StopDetails = protocol.NullValue[protocol.StopDetails]()
	}
	if f := ev.Final; f != nil {
		if f.StopReason != "" {
			line.Message.StopReason = &f.StopReason
		}
		if f.StopReason == "refusal" {
			line.Message.StopDetails = protocol.NullOf(protocol.StopDetails{Type: f.StopReason})
		}
		line.Message.StopSequence, line.Message.Usage = f.StopSequence, f.Usage
		r.attachments.recordMaxUsedTokens(agentID, m.Model, f.Usage)
		line.APIBlockIndex, line.ToolInputStreamMS, line.IngestContext = f.Index, f.InputStreamMS, cwdOfPrefixedBashCall(m.Content, e.CWD)
	}
	return line
}

// effortLevels returns the effort level of the model. perTurn is the same level, or nil if it is fixed for the session.
func (r *recorder) effortLevels(agentID string) (level string, perTurn *string) {
	if r.conversation.options.Context == nil {
		return "", nil
	}
	now := r.conversation.options.Context.CurrentModel(agentID)
	if !now.PerTurnEffort {
		return now.Effort, nil
	}
	return now.Effort, &now.Effort
}

// writeLinesBeforeUser writes the structured output that ends a turn, or, before a CLI prompt to an agent, its system prompt and tools.
func (r *recorder) writeLinesBeforeUser(ev *protocol.UserEvent, agentID string, endsTurn bool) error {
	switch {
	case endsTurn && agentID == "":
		return r.lines.writeAfterPendingLines(r.conversation.takeNextAttachmentLine("", "", r.lastStructuredOutput))
	case agentID != "" && ev.IsSynthetic:
		return r.writePromptAndToolsSnapshotOnce(agentID)
	case agentID != "" && !hasToolResult(ev.Message.Content):
		return r.writeUnansweredRequest(agentID)
	}
	return nil
}

func (r *recorder) recordUser(ev *protocol.UserEvent) error {
	if ev.IsReplay != nil || ev.Summary {
		return nil // the transcript already contains the text
	}
	agentID := eventAgentID(ev.ParentToolUseID, ev.AgentID)
	ran := len(ev.ToolResultMeta) > 0 && ev.ToolResultMeta[0].NonExecutionKind == ""
	endsTurn := ran && ev.Tool == "StructuredOutput" && !isFailedResult(ev)
	if err := r.writeLinesBeforeUser(ev, agentID, endsTurn); err != nil {
		return err
	}
	e := r.conversation.takeNextLineEnvelope(agentID, ev.UUID, ev.Timestamp)
	e.PromptID = r.conversation.promptID
	if ev.SourceUUID != "" {
		e.ParentUUID = &ev.SourceUUID
	}
	line := protocol.UserLine{
		LineHead: e.LineHead, Type: "user", Message: ev.Message, IsMeta: ev.IsSynthetic, LineID: e.LineID, SourceToolUseID: ev.ToolUseID, RefusedMessageID: ev.RefusedMessageID, RefusalRetry: ev.RefusalRetry,
		Origin: ev.Origin, ToolUseResult: ev.ToolUseResult, SourceToolAssistantUUID: ev.SourceUUID, LineTrailer: e.LineTrailer,
	}
	line.ToolEndsTurn = endsTurn
	if r, ok := ev.ToolUseResult.(protocol.AbridgedResult); ok {
		line.ToolUseResult = r.Abridged()
	}
	setPermissionDecisionAndRefusal(&line, ev)
	r.setInterruptedMessageID(&line, ev)
	if ev.Tool != "" {
		call := ev.MCP
		if !ran && len(ev.ToolResultMeta) > 0 {
			call = nil
		}
		r.attribution.getOrAddForAgent(agentID).attributeFollowingMessagesToMCPCall(call)
	}
	setMCPResult(&line, ev.MCP)
	if line.Companion = ev.Companion || ev.Expansion != nil; ev.Expansion != nil && ev.Expansion.Reminds {
		line.Message = userStringContent(line.Message.Content.Plain())
	}
	if ev.Expansion == nil && (agentID == "" || ev.Companion) {
		setTextFormAndRowSource(&line)
	}
	if agentID != "" && ev.Expansion != nil {
		line.IsMeta, line.Companion = true, false
		r.attribution.recordForkedSkillAgent(agentID, ev.Expansion.Name)
	}
	if agentID != "" {
		r.requests.getOrAddInputOf(agentID).hasResults = r.requests.getOrAddInputOf(agentID).hasResults || hasToolResult(ev.Message.Content)
		return r.agents.writeUserLineAndStartContext(agentID, ev, line)
	}
	if err := r.lines.writeAfterPendingLines(line); err != nil || ev.Expansion == nil {
		return err
	}
	return r.recordExpansionContext(ev.Expansion)
}

func (r *recorder) setTitle(title, agentName string) error {
	if title == r.sessionListLines.title {
		return nil
	}
	r.sessionListLines.title, r.sessionListLines.agentName, r.sessionListLines.hasUserTitle = title, agentName, true
	if !r.lines.opened {
		return nil
	}
	return r.lines.writeAfterPendingLines(r.sessionListLines.titleLines()...)
}

func (r *recorder) writeClosingLinesAndCosts() error {
	if err := cmp.Or(r.writeEnvironmentAndImages(), r.writeUnansweredRequest(""), r.writePromptAndToolsSnapshotOnce("")); err != nil {
		return err
	}
	if leaf := r.conversation.lastLineUUIDs[""]; leaf != "" && leaf != r.sessionListLines.lastPromptLeaf {
		written := r.sessionListLines.writtenMode
		lines := r.sessionListLines.takeTranscriptClosingLines()
		if r.turnClosed || r.conversation.isFirstConversationInTerminal() && r.promptCount == 0 {
			lines = lines[:1] // only the first line and perhaps the mode have changed
			if written != "" && written != r.sessionListLines.writtenMode {
				lines = append(lines, r.sessionListLines.takePermissionModeLine())
			}
		}
		if err := r.lines.writeAfterPendingLines(lines...); err != nil {
			return err
		}
	}
	return r.writeCosts()
}
