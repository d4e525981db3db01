package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// recordResult records the costs of a turn, and whether the turn limit or a deferred call ended the turn early.
func (r *recorder) recordResult(ev *protocol.ResultEvent) error {
	r.costs.updateFromResult(ev)
	if ev.TerminalReason == "budget_exhausted" { // no request follows the first reply
		r.requests.getOrAddInputOf("").replyID = ""
	}
	var err error
	if d := ev.DeferredToolUse; d != nil {
		err = r.lines.writeAfterPendingLines(r.conversation.takeNextAttachmentLine("", "", newAttachment(hookDeferredToolType, "toolUseID", d.ID, "toolName", d.Name,
			"toolInput", d.Input, "hookName", "settings", "hookEvent", "PreToolUse", "permissionMode", r.sessionListLines.lastPromptMode)))
	}
	if err = cmp.Or(err, r.writePromptAndToolsSnapshotOnce("")); err != nil {
		return err
	}
	var lines []any
	if limit, hit := parseReachedTurnLimit(ev); hit && r.conversation.hasStarted() {
		lines = append(r.requests.takeReminderLinesOfNextRequest("", r.requests.getOrAddInputOf(""), r.requests.currentRequestContextOf("")), r.conversation.takeNextAttachmentLine("", "", newAttachment("max_turns_reached", "maxTurns", limit, "turnCount", ev.NumTurns, "exitCommitted", false)))
	}
	if th := r.conversation; th.options.Machine.IsTerminal && !ev.IsError && ev.LocalCommand == "" && ev.NumTurns > 0 && th.hasStarted() {
		count := th.lineCount
		th.inQuery = false
		e := th.takeNextLineEnvelope("", "", "")
		lines = append(lines, protocol.TurnDurationLine{
			LineHead: e.LineHead, Type: "system", Subtype: "turn_duration", DurationMS: ev.DurationMS, MessageCount: count, AgentCount: r.agents.countRunningAgents(),
			SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, LineTrailer: e.LineTrailer,
		})
	}
	closes := !r.sessionListLines.lastPromptWritten
	if r.conversation.options.Machine.IsTerminal {
		closes, r.turnClosed = !r.turnClosed && ev.LocalCommand == "", r.turnClosed || ev.LocalCommand == ""
	}
	if closes && r.conversation.hasStarted() {
		lines = append(lines, r.sessionListLines.takeTranscriptClosingLines()...)
	}
	if len(lines) == 0 {
		return nil
	}
	return r.lines.writeAfterPendingLines(lines...)
}

func parseReachedTurnLimit(ev *protocol.ResultEvent) (maxTurns int, isReached bool) {
	if ev.Subtype != "error_max_turns" {
		return 0, false
	}
	for _, text := range ev.Errors {
		if _, err := fmt.Sscanf(text, "Reached maximum number of turns (%d)", &maxTurns); err == nil {
			return maxTurns, true
		}
	}
	return 0, true
}

func (r *recorder) recordRetry(ev *protocol.FailedAPIRequestBeforeRetry) error {
	if !r.conversation.hasStarted() {
		return nil
	}
	failure := protocol.RequestError{Message: ev.Body, Formatted: ev.Message, Status: ev.Status, RequestID: ev.RequestID}
	if ev.Status == 0 {
		failure.Connection = &protocol.ConnectionError{Code: connectionErrorCode(ev.Message), Message: ev.Message}
	} else {
		failure.Formatted = strconv.Itoa(ev.Status) + " " + ev.Message
	}
	source := "request_retry"
	if c := failure.Connection; c != nil && c.Code == "ECONNRESET" {
		failure.Message, failure.Formatted, source = "Connection error.", "Connection dropped (ECONNRESET)", "connection_retry"
	}
	lines := r.takeRequestAndFallbackLines("", &protocol.AssistantEvent{IsAPIErrorMessage: true})
	r.requests.getOrAddInputOf("").isRepetition = true
	if r.conversation.options.Machine.IsTerminal {
		return r.lines.writeAfterPendingLines(lines...)
	}
	e := r.conversation.takeNextLineEnvelope("", "", "")
	return r.lines.writeAfterPendingLines(append(lines, protocol.APIErrorLine{
		LineHead: e.LineHead, Type: "system", Subtype: "api_error", Level: "error", Source: source,
		Error: failure, RetryAttempt: ev.Attempt, RetryInMS: ev.RetryInMS, MaxRetries: ev.MaxRetries,
		SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, LineTrailer: e.LineTrailer,
	})...)
}

// recordRepeatedRequest writes the lines of a failed request. The next request has the form of ev.
func (r *recorder) recordRepeatedRequest(ev *protocol.RequestRepeated) error {
	c := r.requests.getOrAddInputOf(ev.AgentID)
	leavesOutSearch := slices.Contains(claudecode.BetasOmittedOnRetry(ev.Attempt), claudecode.BetaToolSearch)
	if leavesOutSearch && !c.context.Placeholder {
		return nil // the request has no such part, so it is not repeated
	}
	lines := r.takeRequestAndFallbackLines(ev.AgentID, &protocol.AssistantEvent{IsAPIErrorMessage: true})
	if c.isRepetition = true; ev.Attempt > 0 {
		c.repeated = *ev
	}
	if leavesOutSearch && c.beforeReduction == nil {
		c.addToolSearchGoneMessage()
	}
	return r.writeLinesToTranscriptOf(ev.AgentID, lines...)
}

func (r *recorder) recordSystem(ev *protocol.SystemEvent) error {
	switch ev.Subtype {
	case "session_title_changed":
		return r.setTitle(ev.Text("title"), ev.Text("title"))
	case "informational":
		if ev.StreamOnly {
			return nil
		}
		e := r.conversation.takeNextLineEnvelope("", ev.UUID, "")
		e.QuerySession = "" // the text does not come from a query
		return r.lines.writeAfterPendingLines(protocol.InformationalLine{
			LineHead: e.LineHead, Type: "system", Subtype: "informational", SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID},
			Content: ev.Text("content"), Level: ev.Text("level"),
			PreventContinuing: ev.FieldValue("prevent_continuation") == true, Ending: hookDecisionAboutPrompt(ev), LineTrailer: e.LineTrailer,
		})
	case "model_fallback": // the line about it is written after the next request
		r.unrecordedFallback = ev
	case "compact_boundary":
		return r.recordCompactionBoundary(ev)
	case "task_started":
		r.agents.rememberStartedAgent(ev)
	case "task_notification":
		id := ev.Text("task_id")
		err := r.writePromptAndToolsSnapshotOnce(id)
		if ev.Text("status") == "completed" {
			err = cmp.Or(err, r.writeLinesToTranscriptOf(id, r.requests.takeListingsWithFirstResults(id)...))
		}
		if err != nil {
			return err
		}
		return r.agents.writeMetaOfFinishedAgent(ev)
	}
	return nil
}

// takeRequestAndFallbackLines returns the lines before a message of the model: the lines about its request and, if the model has
// changed, a [protocol.ModelFallbackLine].
func (r *recorder) takeRequestAndFallbackLines(agentID string, reply *protocol.AssistantEvent) []any {
	lines, changed := r.requests.recordRequestAndReturnLines(agentID, reply), r.unrecordedFallback
	if changed == nil || agentID != "" || len(lines) == 0 {
		return lines
	}
	r.unrecordedFallback = nil
	e := r.conversation.takeNextLineEnvelope("", changed.UUID, "")
	return append(lines, protocol.ModelFallbackLine{
		LineHead: e.LineHead, Type: "system", Subtype: changed.Subtype, SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID},
		Content: changed.Text("content"), Trigger: changed.Text("trigger"), Original: changed.Text("original_model"),
		Fallback: changed.Text("fallback_model"), Level: "warning", LineTrailer: e.LineTrailer,
	})
}

// hookDecisionAboutPrompt returns the decision of hooks about a prompt; nil if the event contains none.
func hookDecisionAboutPrompt(ev *protocol.SystemEvent) *protocol.PromptSubmitEnding {
	outcome, is := ev.FieldValue("prompt_submit_outcome").(protocol.PromptSubmitOutcome)
	if !is || outcome.NoVerdict != "" {
		return nil
	}
	e := &protocol.PromptSubmitEnding{Kept: outcome.IsKept}
	e.Ending.Kind, e.Ending.Reason = outcome.Kind, outcome.Reason
	return e
}

func (r *recorder) recordStopHooks(ev *protocol.StopHooksRan) error {
	e := r.conversation.takeNextLineEnvelope("", "", "")
	return r.lines.writeAfterPendingLines(protocol.StopHookLine{
		LineHead: e.LineHead, Type: "system", Subtype: "stop_hook_summary", StopHookSummary: ev.Summary, Level: "suggestion",
		SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, ToolUseID: ev.ToolUseID, LineTrailer: e.LineTrailer,
	})
}

// recordCompactionBoundary writes the boundary, which has no parent, so that a new chain of lines begins with it.
func (r *recorder) recordCompactionBoundary(ev *protocol.SystemEvent) error {
	before := r.conversation.lastLineUUIDs[""]
	r.conversation.ensurePlanName("")
	if r.conversation.options.Machine.IsTerminal {
		if err := r.writeClosingAndResetRequests(); err != nil {
			return err
		}
	}
	meta, _ := ev.FieldValue("compact_metadata").(protocol.CompactMetadata)
	delete(r.conversation.lastLineUUIDs, "")
	r.conversation.inQuery = r.conversation.inQuery && meta.Trigger == "auto"
	e := r.conversation.takeNextLineEnvelope("", ev.UUID, "")
	e.LogicalParentUUID = before
	line := protocol.CompactBoundaryLine{
		LineHead: e.LineHead, Type: "system", Subtype: "compact_boundary", Content: "Conversation compacted",
		SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, Level: "info", LineTrailer: e.LineTrailer,
		Metadata: protocol.LineCompactMetadata{Trigger: meta.Trigger, PreTokens: meta.PreTokens, PostTokens: meta.PostTokens, DurationMS: meta.DurationMS, Dropped: meta.Dropped},
	}
	r.retainedUUIDs = nil
	if meta.Segment != nil {
		r.retainedUUIDs = meta.Messages.UUIDs
		segment, messages := protocol.LinePreservedSegment(*meta.Segment), protocol.LinePreservedMessages(*meta.Messages)
		line.Metadata.Segment, line.Metadata.Messages = &segment, &messages
	}
	r.conversation.inQuery = r.conversation.options.Machine.IsTerminal
	switch {
	case meta.Trigger == "auto":
		line.Metadata.Running = &struct{}{}
	case !r.conversation.inQuery:
		line.IsMeta = new(bool)
	}
	return r.lines.writeAfterPendingLines(line)
}

// writeClosingAndResetRequests writes the lines before the boundary in a terminal. Afterwards, requests are recorded as in a new transcript.
func (r *recorder) writeClosingAndResetRequests() error {
	r.compactionUUID = r.conversation.options.Clock.NewID()
	r.conversation.recordFilesBeforePrompt(r.compactionUUID)
	err := r.lines.writeAfterPendingLines(r.sessionListLines.takeTranscriptClosingLines()...)
	r.turnClosed, r.requests.inputByAgentID, r.requests.writtenHashes = false, map[string]*modelInput{}, map[string]bool{}
	return err
}

// recordLinesAfterCompactBoundary writes the lines after the boundary: the summary, the /compact command, and the model's context.
func (r *recorder) recordLinesAfterCompactBoundary(ev *protocol.ConversationCompacted) error {
	line := protocol.UserLine{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: ev.Summary.Message.Content.Plain()}},
		TranscriptOnly: true, IsSummary: true, TurnPosition: &protocol.SessionTurnPosition{TurnIndex: r.promptCount},
	}
	r.requests.getOrAddInputOf("").snapshotCount = 0
	if ev.Command == nil {
		return r.writeLinesAfterCompactionInTurn(ev, line)
	}
	if r.conversation.options.Machine.IsTerminal {
		line.TurnPosition.PromptIndex, ev.Command.UUID = r.promptCount, r.compactionUUID
	}
	e := r.conversation.takeNextLineEnvelope("", ev.Summary.UUID, ev.Summary.Timestamp)
	e.PromptID = r.conversation.setPromptIDUnlessWrittenByCLI(ev.Command)
	line.LineHead, line.LineID, line.LineTrailer, line.RowSource, line.SentAtMS = e.LineHead, e.LineID, e.LineTrailer, "local", unixMilli(ev.Command.Timestamp)
	if err := r.lines.writeAfterPendingLines(line); err != nil {
		return err
	}
	if err := r.recordSlashCommandPrompt(ev.Command, 0); err != nil {
		return err
	}
	if r.conversation.options.Machine.IsTerminal {
		ev.Output.Message = userStringContent("<local-command-stdout>\x1b[2mCompacted (ctrl+o to see full summary)\x1b[22m</local-command-stdout>")
	}
	e = r.conversation.takeNextLineEnvelope("", ev.Output.UUID, ev.Output.Timestamp)
	e.PromptID = ev.Command.PromptID
	if err := r.lines.writeAfterPendingLines(protocol.UserLine{
		LineHead: e.LineHead, Type: "user", Message: ev.Output.Message, RepeatsSummary: ev.HasHookReports, RowSource: "local", LineID: e.LineID, LineTrailer: e.LineTrailer,
	}); err != nil {
		return err
	}
	r.attachments.contextPending = true // the compaction has removed the listings and the environment from the conversation
	return r.lines.writeAfterPendingLines(r.attachments.takeLinesAfterCompaction(ev.Restored)...)
}

// writeLinesAfterCompactionInTurn writes the lines after the boundary of a compaction during a turn. The lines include the complete
// context. If the compaction keeps the turn's prompt, the summary belongs to the previous prompt and has that prompt's turn index.
func (r *recorder) writeLinesAfterCompactionInTurn(ev *protocol.ConversationCompacted, summaryLine protocol.UserLine) error {
	lines := r.attachments.takeInstructionsGitAndDateLines("")
	e := r.conversation.takeNextLineEnvelope("", ev.Summary.UUID, ev.Summary.Timestamp)
	e.PromptID = r.conversation.promptID
	summaryLine.LineHead, summaryLine.LineID, summaryLine.LineTrailer = e.LineHead, e.LineID, e.LineTrailer
	summaryLine.TurnOrigin, summaryLine.SummarizedPrompts = "sdk", []string{ev.Prompt}
	if slices.Contains(r.retainedUUIDs, ev.Prompt) {
		summaryLine.TurnPosition.TurnIndex--
	}
	lines = append(append(lines, summaryLine), r.attachments.takeLinesAfterCompaction(ev.Restored)...)
	return r.lines.writeAfterPendingLines(append(lines, r.attachments.takeCommitAndPRAttributionLines("")...)...)
}

func (r *recorder) recordLocalCommand(ev *protocol.AssistantEvent) error {
	e := r.conversation.takeNextLineEnvelope("", ev.UUID, ev.Timestamp)
	return r.lines.writeAfterPendingLines(protocol.LocalCommandLine{
		LineHead: e.LineHead, Type: "system", Subtype: "local_command", Content: ev.LocalCommandSource, Level: "info",
		SystemLineID: protocol.SystemLineID{Timestamp: e.Timestamp, UUID: e.UUID}, CommandRun: ev.LocalCommandRun, ContextUsage: ev.ContextUsage,
		Outcome: ev.LocalCommandOutcome, DisplayOnly: ev.LocalCommandRun != nil && ev.LocalCommandRun.IsDisplayOnly, LineTrailer: e.LineTrailer,
	})
}

const (
	humanOrigin                = `{"kind":"human"}`
	taskNoticeWithoutRunOrigin = `{"kind":"task-notification","producer":"session-task"}`
)

// recorderStateBeforePrompt is the state of a recorder before a prompt. The recorder returns to it if the user takes the prompt back.
type recorderStateBeforePrompt struct {
	leafUUID               string
	lineCount, promptCount int
	turnClosed             bool
	attachments            contextAttachmentWriter
	input                  modelInput
}

// writeLinesBeforePrompt writes messages of the host and a new tools-used line, and records files before the prompt.
func (r *recorder) writeLinesBeforePrompt(ev *protocol.PromptAccepted) error {
	for _, host := range ev.Assistant {
		if err := r.lines.writeAfterPendingLines(r.conversation.takeNextHostAssistantLine(host)); err != nil {
			return err
		}
	}
	tool := map[bool]string{true: "Bash"}[ev.Typed != ""]
	if ev.Expansion != nil {
		tool = ev.Expansion.UsedTool
	}
	if err := r.lines.writeUsedToolIfNew(tool); err != nil {
		return err
	}
	if !ev.WrittenByCLI && !ev.Blocked && !ev.UnknownCommand && ev.Source != "system" {
		r.conversation.recordFilesBeforePrompt(ev.UUID)
	}
	return nil
}

func (r *recorder) saveRecorderStateAndNamePlan(ev *protocol.PromptAccepted) {
	th, input := r.conversation, *r.requests.getOrAddInputOf("")
	input.messages = slices.Clone(input.messages)
	r.stateBeforePrompt = recorderStateBeforePrompt{th.lastLineUUIDs[""], th.lineCount, r.promptCount, r.turnClosed, *r.attachments, input}
	if ev.PermissionMode == protocol.ModePlan {
		th.ensurePlanName(ev.Content.Plain())
	}
}

// writeRequestAndRestoreState writes the lines about the unanswered request, and restores the state before the prompt. The
// next line gets the parent of the prompt, as if the prompt had not been typed.
func (r *recorder) writeRequestAndRestoreState() error {
	lines := r.takeRequestAndFallbackLines("", &protocol.AssistantEvent{IsAPIErrorMessage: true})
	err := r.lines.writeAfterPendingLines(append(lines, r.sessionListLines.takeTranscriptClosingLines()...)...)
	th, mark := r.conversation, r.stateBeforePrompt
	th.lineCount, r.promptCount, r.turnClosed, *r.attachments, *r.requests.getOrAddInputOf("") = mark.lineCount, mark.promptCount, mark.turnClosed, mark.attachments, mark.input
	r.sessionListLines.lastPromptLeaf = mark.leafUUID // prevents a second last-prompt line at the end of the session
	th.lastLineUUIDs[""] = mark.leafUUID
	return err
}

// recordShellPrompt writes two lines, for a shell command that the user has typed and for its output. Each has one block.
func (r *recorder) recordShellPrompt(ev *protocol.PromptAccepted) error {
	r.promptCount++
	r.sessionListLines.lastPromptText, r.sessionListLines.lastPromptMode, r.sessionListLines.rawPrompt = "! "+ev.Typed[1:], ev.PermissionMode, protocol.Content{}
	r.attachments.contextPending = !r.attachments.contextWritten
	var lines []any
	for i, block := range ev.Content.Blocks {
		e := r.conversation.takeNextLineEnvelope("", map[bool]string{true: ev.UUID}[i == 0], ev.Timestamp)
		e.PromptID = r.conversation.setPromptIDUnlessWrittenByCLI(ev)
		line := protocol.UserLine{LineHead: e.LineHead, LineID: e.LineID, LineTrailer: e.LineTrailer, Type: "user", Message: userStringContent(protocol.Content{Blocks: []protocol.Block{block}}.Plain())}
		if i > 0 {
			line.TurnOrigin, line.TurnPosition = "human", &protocol.SessionTurnPosition{TurnIndex: r.promptCount, PromptIndex: r.promptCount - r.untypedPromptCount}
		}
		lines = append(lines, line)
	}
	r.conversation.inQuery = r.conversation.options.Machine.IsTerminal
	return r.lines.writeAfterPendingLines(lines...)
}

func (r *recorder) recordAbsorbedPrompt(ev *protocol.PromptAbsorbed) error {
	in := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: ev.Timestamp, SessionID: r.conversation.id}
	if ev.Content.Blocks == nil {
		in.Content = &ev.Content.Text
	}
	out := in
	out.Operation, out.Reason, out.CommandUUID, out.DeliveryID = "remove", "absorbed_mid_turn", ev.UUID, r.conversation.options.Clock.NewID()
	command := protocol.QueuedCommand{
		Type: "queued_command", Prompt: ev.Content, SourceUUID: ev.UUID, DeliveryID: out.DeliveryID, Mode: "prompt",
		Origin: ev.Origin, Timestamp: ev.Timestamp,
	}
	if protocol.IsPeerOrigin(ev.Origin) {
		command.IsMeta = true
		return r.lines.writeAfterPendingLines(in, out, r.conversation.takeNextReminderLine("", command, protocol.PeerMessageText("sent a message while you were working", ev.Content.Plain())))
	}
	if ev.Notice {
		_ = json.Unmarshal(ev.Origin, &command) // takes the id of the run, which the attachment has outside the origin
		command.Mode, command.Origin = "task-notification", json.RawMessage(taskNoticeWithoutRunOrigin)
		return r.lines.writeAfterPendingLines(in, out, r.conversation.takeNextAttachmentLine("", "system", command))
	}
	var lines []any
	if r.conversation.options.Machine.IsTerminal {
		command.HumanTurn, command.Origin = true, json.RawMessage(humanOrigin)
	} else {
		lines = append(lines, in) // in a terminal, the line was written when the prompt arrived
	}
	return r.lines.writeAfterPendingLines(append(lines, out, r.conversation.takeNextReminderLine("", command, "The user sent a new message while you were working:\n"+ev.Content.Plain()))...)
}

// setInterruptedMessageID records in a transcript line which message was interrupted in a terminal. It records nothing if the
// user stopped the message by refusing a tool call.
func (r *recorder) setInterruptedMessageID(line *protocol.UserLine, ev *protocol.UserEvent) {
	if r.conversation.options.Machine.IsTerminal && ev.Tool == "" && !r.refusedByUser && strings.HasSuffix(ev.Message.Content.Plain(), "by user for tool use]") {
		line.InterruptedMessageID = r.attribution.lastMessageID
	}
	r.refusedByUser = line.DeniedBeforeRun || line.PermissionDecision != nil && line.PermissionDecision.Source == "user_reject"
}

// writePromptAndToolsSnapshotOnce writes, once, the system prompt and tools of an agent's first request; "" means the main conversation.
func (r *recorder) writePromptAndToolsSnapshotOnce(agentID string) error {
	if agentID != "" && r.agents.metaByAgentID[agentID] == nil {
		return nil
	}
	lines := r.requests.takePromptSnapshotAfterReply(agentID)
	if lines == nil {
		return nil
	}
	return r.writeLinesToTranscriptOf(agentID, lines...)
}

// writeUnansweredRequest writes the lines of a request that was interrupted before its reply began.
func (r *recorder) writeUnansweredRequest(agentID string) error {
	if !r.requests.getOrAddInputOf(agentID).isUnanswered {
		return nil
	}
	return r.writeLinesToTranscriptOf(agentID, r.requests.recordRequestAndReturnLines(agentID, &protocol.AssistantEvent{IsAPIErrorMessage: true})...)
}

func (r *recorder) writeLinesToTranscriptOf(agentID string, lines ...any) error {
	if agentID == "" {
		return r.lines.writeAfterPendingLines(lines...)
	}
	return r.conversation.writer.writeLines(r.conversation.agentTranscriptPath(agentID), lines...)
}

func (r *recorder) recordAttachment(ev *protocol.AttachmentAdded) error {
	if ev.AgentID != "" {
		if r.agents.metaByAgentID[ev.AgentID] == nil {
			return nil
		}
		if _, isHook := ev.Attachment.(protocol.HookAttachment); ev.Role != "" || isHook {
			if err := r.writePromptAndToolsSnapshotOnce(ev.AgentID); err != nil {
				return err
			}
		}
		if ev.Role == "user" || ev.FollowsAllResults {
			if err := r.writeLinesToTranscriptOf(ev.AgentID, r.requests.takeListingsWithFirstResults(ev.AgentID)...); err != nil {
				return err
			}
		}
	}
	if err := r.lines.writeUsedToolIfNew(ev.Tool); err != nil {
		return err
	}
	return r.writeLinesToTranscriptOf(ev.AgentID, r.conversation.takeNextLineOfAddedAttachment(ev))
}

const lostResultText = "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. " +
	"Check whether it took effect before relying on it or running it again.]"

// takeLinesCompletingTurn returns the lines that complete an interrupted conversation before its next prompt: results
// for calls without one, and an empty reply if the model had not answered yet.
func (r *recorder) takeLinesCompletingTurn(promptID string) []any {
	var lines []any
	for _, c := range r.unanswered {
		e := r.conversation.takeNextLineEnvelope("", "", "")
		e.PromptID, e.ParentUUID = promptID, &c.messageUUID
		result := protocol.ToolResultBlock{Type: "tool_result", ToolUseID: c.toolUseID, Content: protocol.Content{Text: lostResultText}, IsError: new(true)}
		lines = append(lines, protocol.UserLine{
			LineHead: e.LineHead, Type: "user", LineID: e.LineID, ToolUseResult: lostResultText, ToolDenialKind: "interrupted", SourceToolAssistantUUID: c.messageUUID,
			Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{result}}}, LineTrailer: e.LineTrailer,
		})
	}
	if len(lines) > 0 || r.awaitsReply {
		e, sequence := r.conversation.takeNextLineEnvelope("", "", ""), ""
		message := protocol.SyntheticMessage(r.conversation.options.Clock.NewID(), "No response requested.", "stop_sequence")
		message.StopSequence = &sequence
		lines = append(lines, protocol.SyntheticLine{LineHead: e.LineHead, Type: "assistant", LineID: e.LineID, Message: message, MadeBy: "other", LineTrailer: e.LineTrailer})
	}
	r.unanswered, r.awaitsReply = nil, false
	return lines
}

// writeEnvironmentAndImages writes the environment and the images of the last prompt, unless they were written before.
func (r *recorder) writeEnvironmentAndImages() error {
	ev := r.attachments.prompt
	if r.attachments.prompt = nil; ev == nil {
		return nil
	}
	if ev.Expansion != nil {
		return r.recordExpansionContext(ev.Expansion)
	}
	if ev.WithoutContext {
		r.attachments.contextPending = !r.attachments.contextWritten
		return nil
	}
	err := r.attachments.writeEnvironmentOrChanges(r.attachments.currentSessionContextOf(""))
	if ev.CommandFallback != nil && err == nil {
		err = r.lines.writeAfterPendingLines(r.conversation.takeNextLineOfAddedAttachment(ev.CommandFallback))
	}
	ids := imageNumbersAfter(ev.Content, r.imageCount)
	if source := r.conversation.options.Context; source != nil && ids != nil && err == nil {
		r.imageCount += len(ids)
		line := r.conversation.takeNextCLILineOfPrompt(ev, storePromptImages(filepath.Join(source.SessionContext("").TempDir, "images"), ev.Content, ids))
		line.RowSource = "local"
		err = r.lines.writeAfterPendingLines(line)
	}
	return err
}
