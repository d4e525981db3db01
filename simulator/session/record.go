package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// recorder is what the lines written so far leave behind.
type recorder struct {
	leaf     map[string]string // last message by agent; "" = the main conversation
	agents   map[string]*agent
	tools    []string
	prompt   string // text of the last prompt
	promptID string
	told     string // leaf that the last last-prompt line names
	listed   bool   // the environment attachments are written
	resumed  bool   // the first line is still to come, and a mode line before it
}

// Record appends the lines that an event gives. Call it before the event is
// shown. The first failure to write is returned, later ones are not: after it
// nothing more is written.
func (s *Session) Record(ev protocol.Event) error {
	switch ev := ev.(type) {
	case *protocol.Prompted:
		return s.prompted(ev)
	case *protocol.Absorbed:
		return s.absorbed(ev)
	case *protocol.Init:
		return s.environment(ev)
	case *protocol.Assistant:
		return s.assistant(ev)
	case *protocol.User:
		return s.user(ev)
	case *protocol.Result:
		return s.result(ev)
	case *protocol.CLIRetry:
		return s.retry(ev)
	case *protocol.ToolRan:
		s.totals.TotalToolDuration += int(ev.Duration / time.Millisecond)
		added, removed := changedLines(ev.Result)
		s.totals.TotalLinesAdded += added
		s.totals.TotalLinesRemoved += removed
	case *protocol.Attached:
		return s.write(s.attached(ev))
	case *protocol.System:
		return s.system(ev)
	case *protocol.Unshown:
		return s.Record(ev.Event)
	case *protocol.Custom:
		var line bytes.Buffer
		if json.Compact(&line, ev.Line) == nil {
			return s.write(json.RawMessage(line.Bytes()))
		}
	}
	return nil
}

// write appends lines to the session's own transcript.
func (s *Session) write(lines ...any) error {
	if s.pending != nil {
		data := s.pending
		s.pending = nil
		if err := s.copied(data); err != nil {
			return err
		}
	}
	if s.rec.resumed {
		s.rec.resumed = false
		lines = slices.Insert(lines, 0, any(protocol.ModeLine{Type: "mode", Mode: "normal", SessionID: s.id}))
	}
	return s.writer.lines(s.path, lines...)
}

func (s *Session) copied(data []byte) error {
	if err := s.writer.bytes(s.path, data); err != nil {
		return err
	}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 && s.writer.onLine != nil && !s.writer.off {
			s.writer.onLine(s.path, line)
		}
	}
	return nil
}

func (s *Session) prompted(ev *protocol.Prompted) error {
	source, origin := ev.Source, "sdk"
	if source == "" {
		source = "sdk"
	}
	if source == "system" {
		origin = "task_notification"
	}
	line := protocol.UserLine{
		Envelope: s.envelope("", ev.UUID, ev.Timestamp), Type: "user", PromptID: ev.PromptID,
		Message: protocol.UserContent{Role: "user", Content: ev.Content},
		IsMeta:  ev.Injected,
	}
	if ev.Injected {
		s.advance("", line.UUID)
		return s.write(line)
	}
	line.PermissionMode, line.PromptSource, line.TurnOrigin = ev.PermissionMode, source, origin
	line.MergedUUIDs = ev.Merged
	s.rec.promptID, s.rec.prompt, s.rec.told = ev.PromptID, ev.Content.Plain(), ""
	enqueue := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: line.Timestamp, SessionID: s.id}
	dequeue := enqueue
	dequeue.Operation = "dequeue"
	if ev.Content.Blocks == nil {
		enqueue.Content = &ev.Content.Text
	}
	if ev.Refused {
		return s.write(enqueue, dequeue)
	}
	s.advance("", line.UUID)
	return s.write(enqueue, dequeue, line)
}

// absorbed keeps a prompt that became part of the running turn.
func (s *Session) absorbed(ev *protocol.Absorbed) error {
	in := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: ev.Timestamp, SessionID: s.id}
	if ev.Content.Blocks == nil {
		in.Content = &ev.Content.Text
	}
	out := in
	out.Operation, out.Reason, out.CommandUUID, out.DeliveryID = "remove", "absorbed_mid_turn", ev.UUID, s.opts.NewID()
	line := protocol.AttachmentLine{
		Envelope: s.envelope("", "", ev.Timestamp), Type: "attachment", RenderedRole: "user",
		Attachment: protocol.QueuedCommand{
			Type: "queued_command", Prompt: ev.Content, SourceUUID: ev.UUID, DeliveryID: out.DeliveryID, Mode: "prompt",
			Origin: ev.Origin, Timestamp: ev.Timestamp,
		},
	}
	return s.write(in, line, out)
}

func (s *Session) assistant(ev *protocol.Assistant) error {
	if ev.LocalCommandRun != nil {
		return s.localCommand(ev)
	}
	agentID := s.agentOf(ev.ParentToolUseID, ev.AgentID)
	line := protocol.AssistantLine{
		Envelope: s.envelope(agentID, ev.UUID, ev.Timestamp), Type: "assistant",
		Message: ev.Message, RequestID: ev.RequestID, MadeBy: "model",
		ThinkingDisplay: ev.ThinkingDisplay, ThinkingDurationMS: ev.ThinkingDurationMS,
		IsAbortedMidStream: ev.Aborted, IsAPIErrorMessage: ev.IsAPIErrorMessage, Error: ev.Error,
		APIErrorStatus: ev.APIErrorStatus, APIErrorType: ev.APIErrorType, APIError: ev.APIError,
	}
	if ev.Message.Model == "<synthetic>" {
		line.MadeBy = "other"
	}
	if ev.Final != nil {
		if ev.Final.StopReason != "" {
			line.Message.StopReason = &ev.Final.StopReason
		}
		line.Message.StopSequence = ev.Final.StopSequence
		line.Message.Usage = ev.Final.Usage
	}
	s.advance(agentID, line.UUID)
	if agentID != "" {
		return s.writeAgent(agentID, agentOfAssistant(ev), line)
	}
	var lines []any
	if s.newTools(ev.Message.Content) {
		lines = append(lines, protocol.ToolsUsedLine{Type: "tools-used", Tools: slices.Clone(s.rec.tools), SessionID: s.id})
	}
	lines = append(lines, line)
	if s.rec.told == "" {
		lines = append(lines, s.lastPrompt())
	}
	return s.write(lines...)
}

func (s *Session) newTools(blocks []protocol.Block) bool {
	before := len(s.rec.tools)
	for _, b := range blocks {
		if use, is := b.(protocol.ToolUse); is && !slices.Contains(s.rec.tools, use.Name) {
			s.rec.tools = append(s.rec.tools, use.Name)
		}
	}
	return len(s.rec.tools) > before
}

func (s *Session) lastPrompt() protocol.LastPromptLine {
	s.rec.told = s.rec.leaf[""]
	return protocol.LastPromptLine{Type: "last-prompt", LastPrompt: s.rec.prompt, LeafUUID: s.rec.told, SessionID: s.id}
}

func (s *Session) user(ev *protocol.User) error {
	if ev.IsReplay != nil && *ev.IsReplay {
		return nil // the prompt has its line, and local output is none
	}
	agentID := s.agentOf(ev.ParentToolUseID, ev.AgentID)
	line := protocol.UserLine{
		Envelope: s.envelope(agentID, ev.UUID, ev.Timestamp), Type: "user", PromptID: s.rec.promptID,
		Message: ev.Message, IsMeta: ev.IsSynthetic, RefusedMessageID: ev.RefusedMessageID,
		ToolUseResult: cmp.Or(ev.ToolUseResult, ev.Kept), SourceToolAssistantUUID: ev.SourceUUID,
	}
	if len(ev.ToolResultMeta) > 0 && ev.ToolResultMeta[0].PermissionDecision != nil {
		d := ev.ToolResultMeta[0].PermissionDecision
		line.PermissionDecision = &protocol.LineDecision{Decision: d.Decision, Source: d.Source, ReasonType: d.ReasonType}
	}
	s.advance(agentID, line.UUID)
	if agentID != "" {
		return s.writeAgent(agentID, agentOfUser(ev), line)
	}
	return s.write(line)
}

// envelope starts a line that follows the agent's last message.
func (s *Session) envelope(agentID, uuid, timestamp string) protocol.Envelope {
	if uuid == "" {
		uuid = s.opts.NewID()
	}
	if timestamp == "" {
		timestamp = s.opts.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	}
	e := protocol.Envelope{
		IsSidechain: agentID != "", AgentID: agentID, UUID: uuid, Timestamp: timestamp, UserType: "external",
		Entrypoint: s.opts.Entrypoint, CWD: s.opts.CWD, SessionID: s.id, Version: s.opts.Version, GitBranch: s.opts.GitBranch,
	}
	if leaf := s.rec.leaf[agentID]; leaf != "" {
		e.ParentUUID = &leaf
	}
	return e
}

// advance makes a message the one that the next line follows.
func (s *Session) advance(agentID, uuid string) {
	if s.rec.leaf == nil {
		s.rec.leaf = map[string]string{}
	}
	s.rec.leaf[agentID] = uuid
}
