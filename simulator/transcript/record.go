package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// recorder is what the lines written so far leave behind.
type recorder struct {
	leaf     map[string]string // last line by agent; "" = the main conversation
	agents   map[string]*agent
	tools    []string
	typed    string // the prompt as it came
	prompt   string // text of the last prompt, as lists of sessions show it
	promptID string
	turns    int    // prompts so far
	told     string // leaf that the last last-prompt line names

	opened bool // the lines at the head of the file are written
	closed bool // a last-prompt line was written by this process
	listed bool // the model was told its surroundings
	asked  bool // what the model is told with the first request is still to come
	spent  bool // something happened whose costs no line tells
}

// Record appends the lines that an event gives. Call it before the event is
// shown. The first failure to write is returned, later ones are not: after it
// nothing more is written.
func (s *Transcript) Record(ev protocol.Event) error {
	switch ev := ev.(type) {
	case *protocol.Queued:
		return s.queued(ev)
	case *protocol.Prompted:
		return s.prompted(ev)
	case *protocol.Absorbed:
		return s.absorbed(ev)
	case *protocol.Init:
		return s.context()
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
	case *protocol.Compacted:
		return s.compacted(ev)
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

// write appends lines to the session's own transcript: at its head what it
// begins with, and before the first line of a fork's conversation that of its
// source.
func (s *Transcript) write(lines ...any) error {
	if err := s.open(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if copied := s.pending; copied != nil {
		s.pending = nil
		if err := s.writer.copied(s.path, copied(cmp.Or(s.rec.promptID, s.opts.NewID()))); err != nil {
			return err
		}
	}
	return s.writer.lines(s.path, lines...)
}

// flush writes the lines that wait for others.
func (s *Transcript) flush() error {
	held := s.held
	s.held = nil
	return s.writer.lines(s.path, held...)
}

// queued keeps that a prompt came and was taken, once there is more to keep.
func (s *Transcript) queued(ev *protocol.Queued) error {
	in := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: s.at(ev.Timestamp), SessionID: s.id}
	out := in
	out.Operation = "dequeue"
	if ev.Content.Blocks == nil {
		in.Content = &ev.Content.Text
	}
	s.held = append(s.held, in, out)
	s.rec.typed = firstLine(ev.Content)
	return nil
}

func (s *Transcript) prompted(ev *protocol.Prompted) error {
	switch {
	case ev.Local:
		return s.command(ev)
	case ev.Refused:
		s.rec.promptID = ev.PromptID
		return nil
	}
	mended := s.mended(ev.PromptID)
	e := s.envelope("", ev.UUID, ev.Timestamp)
	e.PromptID = s.promptIDOf(ev)
	line := protocol.UserLine{
		Head: e.Head, Stamp: e.Stamp, Foot: e.Foot, Type: "user",
		Message: protocol.UserContent{Role: "user", Content: ev.Content}, IsMeta: ev.Injected,
	}
	if ev.Injected {
		return s.write(append(mended, line)...)
	}
	s.lastPrompt(ev)
	s.rec.turns++
	line.PermissionMode, line.PromptSource, line.TurnOrigin = ev.PermissionMode, cmp.Or(ev.Source, "sdk"), "sdk"
	if ev.Source == "system" {
		line.TurnOrigin = "task_notification"
	}
	if ev.Source == "system" {
		line.Origin = ev.Origin
	}
	line.TurnPosition = &protocol.TurnPosition{TurnIndex: s.rec.turns}
	line.AttributionKey, line.MergedUUIDs, line.ImageIDs = ev.HostID, ev.Merged, imageIDs(ev.Content)
	if err := s.write(append(mended, line)...); err != nil {
		return err
	}
	return s.environment()
}

// lastPrompt notes what lists of sessions show. A fork begins with the first
// prompt of its source.
func (s *Transcript) lastPrompt(ev *protocol.Prompted) {
	text := s.rec.typed
	s.rec.typed = ""
	if text == "" {
		text = firstLine(ev.Content)
	}
	inherited := s.forked && !s.rec.closed && s.rec.prompt != ""
	if text != "" && !inherited && ev.Source != "system" {
		s.rec.prompt = text
	}
}

// firstLine is a prompt as lists of sessions show it: its first text, in one
// line, cut when it is long.
func firstLine(c protocol.Content) string {
	const most = 200
	text := c.Text
	for _, b := range c.Blocks {
		if first, is := b.(protocol.TextBlock); is {
			text = first.Text
			break
		}
	}
	line := []rune(strings.TrimSpace(strings.ReplaceAll(text, "\n", " ")))
	if len(line) > most {
		return strings.TrimSpace(string(line[:most])) + "…"
	}
	return string(line)
}

// promptIDOf notes which prompt the lines to come belong to.
func (s *Transcript) promptIDOf(ev *protocol.Prompted) string {
	if !ev.Injected {
		s.rec.promptID = ev.PromptID
	}
	return ev.PromptID
}

// imageIDs numbers the images of a prompt.
func imageIDs(c protocol.Content) (ids []int) {
	for _, b := range c.Blocks {
		if _, is := b.(protocol.ImageBlock); is {
			ids = append(ids, len(ids)+1)
		}
	}
	return ids
}

// caveat precedes the slash commands that the CLI itself runs.
const caveat = "<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request, and its " +
	"output goes straight to the user. It's recorded here as context for later messages.</local-command-caveat>"

// command keeps a slash command of the CLI itself, which is no prompt.
func (s *Transcript) command(ev *protocol.Prompted) error {
	var lines []any
	for _, text := range []protocol.UserLine{
		{Message: userText(caveat), IsMeta: true}, {Message: protocol.UserContent{Role: "user", Content: ev.Content}},
	} {
		e := s.envelope("", "", ev.Timestamp)
		text.Head, text.Stamp, text.Foot, text.Type = e.Head, e.Stamp, e.Foot, "user"
		text.PromptID = s.promptIDOf(ev)
		lines = append(lines, text)
	}
	return s.write(lines...)
}

func userText(text string) protocol.UserContent {
	return protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}
}

// absorbed keeps a prompt that became part of the running turn.
func (s *Transcript) absorbed(ev *protocol.Absorbed) error {
	in := protocol.QueueLine{Type: "queue-operation", Operation: "enqueue", Timestamp: ev.Timestamp, SessionID: s.id}
	if ev.Content.Blocks == nil {
		in.Content = &ev.Content.Text
	}
	out := in
	out.Operation, out.Reason, out.CommandUUID, out.DeliveryID = "remove", "absorbed_mid_turn", ev.UUID, s.opts.NewID()
	mode := "prompt"
	if ev.Notice {
		mode = "task-notification"
	}
	line := s.attachment("", "user", protocol.QueuedCommand{
		Type: "queued_command", Prompt: ev.Content, SourceUUID: ev.UUID, DeliveryID: out.DeliveryID, Mode: mode,
		Origin: ev.Origin, Timestamp: ev.Timestamp,
	})
	return s.write(in, line, out)
}

func (s *Transcript) assistant(ev *protocol.Assistant) error {
	if ev.LocalCommandRun != nil {
		return s.localCommand(ev)
	}
	agentID := s.agentOf(ev.ParentToolUseID, ev.AgentID)
	line := s.assistantLine(agentID, ev)
	if agentID != "" {
		return s.writeAgent(agentID, agentOfAssistant(ev), line)
	}
	var lines []any
	if s.newTools(ev) {
		lines = append(lines, s.toolsUsed())
	}
	lines = append(lines, line)
	if !s.rec.closed && (ev.Final == nil || ev.Final.Left == 0) {
		lines = append(lines, s.closing()...)
	}
	return s.write(lines...)
}

func (s *Transcript) assistantLine(agentID string, ev *protocol.Assistant) any {
	e := s.envelope(agentID, ev.UUID, ev.Timestamp)
	if ev.Message.Model == "<synthetic>" {
		return protocol.SyntheticLine{
			Head: e.Head, Type: "assistant", Stamp: e.Stamp, Message: ev.Message, RequestID: ev.RequestID, Error: ev.Error,
			IsAPIErrorMessage: ev.IsAPIErrorMessage, APIErrorStatus: ev.APIErrorStatus, APIErrorType: ev.APIErrorType, APIError: ev.APIError,
			PerTurnEffort: s.turnEffort(), NoToolCall: ev.IsAPIErrorMessage, MadeBy: "other", Foot: e.Foot,
		}
	}
	m := ev.Message
	line := protocol.AssistantLine{
		Head: e.Head,
		Message: protocol.LineMessage{
			ID: m.ID, Type: m.Type, Role: m.Role, Model: m.Model, Content: m.Content,
			StopReason: m.StopReason, StopSequence: m.StopSequence, Usage: m.Usage, StopDetails: protocol.NullNow[struct{}](),
		},
		ThinkingDurationMS: ev.ThinkingDurationMS, ThinkingDisplay: ev.ThinkingDisplay, IsAbortedMidStream: ev.Aborted,
		RequestID: ev.RequestID, RequestedModel: m.Model, PromptCache: "5m",
		Attribution: protocol.Attribution{Agent: ev.SubagentType},
		Type:        "assistant", Stamp: e.Stamp, PerTurnEffort: s.turnEffort(), MadeBy: "model", Foot: e.Foot,
	}
	if line.PerTurnEffort != nil {
		line.Effort = *line.PerTurnEffort
	}
	if f := ev.Final; f != nil {
		if f.StopReason != "" {
			line.Message.StopReason = &f.StopReason
		}
		line.Message.StopSequence, line.Message.Usage = f.StopSequence, f.Usage
		line.APIBlockIndex, line.ToolInputStreamMS = f.Index, f.InputMS
	}
	return line
}

// turnEffort is the level of the model's effort; nil = it has none.
func (s *Transcript) turnEffort() *string {
	if s.opts.Effort == nil {
		return nil
	}
	if level := s.opts.Effort(); level != "" {
		return &level
	}
	return nil
}

// newTools notes the tools that a message calls, with its first block.
func (s *Transcript) newTools(ev *protocol.Assistant) bool {
	before := len(s.rec.tools)
	var calls []string
	if ev.Final != nil {
		calls = ev.Final.Calls
	}
	for _, name := range calls {
		if !slices.Contains(s.rec.tools, name) {
			s.rec.tools = append(s.rec.tools, name)
		}
	}
	return len(s.rec.tools) > before
}

func (s *Transcript) user(ev *protocol.User) error {
	if ev.IsReplay != nil {
		return nil // what it repeats has its line
	}
	agentID := s.agentOf(ev.ParentToolUseID, ev.AgentID)
	e := s.envelope(agentID, ev.UUID, ev.Timestamp)
	e.PromptID = s.rec.promptID
	if ev.SourceUUID != "" {
		e.ParentUUID = &ev.SourceUUID
	}
	line := protocol.UserLine{
		Head: e.Head, Type: "user", Message: ev.Message, IsMeta: ev.IsSynthetic, Stamp: e.Stamp, RefusedMessageID: ev.RefusedMessageID,
		ToolUseResult: ev.ToolUseResult, SourceToolAssistantUUID: ev.SourceUUID, Foot: e.Foot,
	}
	ran := len(ev.ToolResultMeta) > 0 && ev.ToolResultMeta[0].NonExecutionKind == ""
	if ran && ev.Tool == "Bash" {
		line.Sandboxed = new(bool)
	}
	line.ToolEndsTurn = ran && ev.Tool == "StructuredOutput"
	if len(ev.ToolResultMeta) > 0 {
		meta := ev.ToolResultMeta[0]
		line.ToolDenialKind = meta.NonExecutionKind
		if d := meta.PermissionDecision; d != nil {
			line.PermissionDecision = &protocol.LineDecision{Decision: d.Decision, Source: d.Source, ReasonType: d.ReasonType}
		}
	}
	if agentID != "" {
		return s.agentSaid(agentID, ev, line)
	}
	return s.write(line)
}

// envelope begins a line that follows the agent's last one and is what the
// next one follows.
func (s *Transcript) envelope(agentID, uuid, timestamp string) protocol.Envelope {
	if uuid == "" {
		uuid = s.opts.NewID()
	}
	e := protocol.Envelope{
		Head:  protocol.Head{IsSidechain: agentID != "", AgentID: agentID},
		Stamp: protocol.Stamp{UUID: uuid, Timestamp: s.at(timestamp)},
		Foot: protocol.Foot{
			UserType: "external", Entrypoint: s.opts.Entrypoint, CWD: s.opts.CWD, SessionID: s.id,
			Version: s.opts.Version, GitBranch: s.opts.GitBranch,
		},
	}
	if leaf := s.rec.leaf[agentID]; leaf != "" {
		e.ParentUUID = &leaf
	}
	if s.rec.leaf == nil {
		s.rec.leaf = map[string]string{}
	}
	s.rec.leaf[agentID] = uuid
	return e
}

// at is the time of a line: that of its event, else now.
func (s *Transcript) at(timestamp string) string {
	if timestamp != "" {
		return timestamp
	}
	return s.opts.Now().UTC().Format("2006-01-02T15:04:05.000Z")
}
