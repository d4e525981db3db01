package transcript

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Attachments that say how a turn ended.
type (
	maxTurnsReached struct {
		Type          string `json:"type"` // "max_turns_reached"
		MaxTurns      int    `json:"maxTurns"`
		TurnCount     int    `json:"turnCount"`
		ExitCommitted bool   `json:"exitCommitted"`
	}
	deferredTool struct {
		Type      string          `json:"type"` // deferredType
		ToolUseID string          `json:"toolUseID"`
		ToolName  string          `json:"toolName"`
		ToolInput json.RawMessage `json:"toolInput"`
	}
)

// attached is the line of what the session's layers attach.
func (s *Transcript) attached(ev *protocol.Attached) protocol.AttachmentLine {
	line := s.attachment("", ev.Role, ev.Attachment)
	if ev.Rendered != "" {
		line.Rendered = []protocol.Rendered{{Content: ev.Rendered}}
	}
	return line
}

// result notes what the session cost and keeps what limit or hook ended the
// turn.
func (s *Transcript) result(ev *protocol.Result) error {
	s.totals.TotalCostUSD = ev.TotalCostUSD
	s.totals.TotalAPIDuration += ev.DurationAPIMS
	s.totals.TotalAPIDurationWithoutRetries += ev.DurationAPIMS
	s.totals.TotalDuration += ev.DurationMS
	s.totals.ModelUsage = make(map[string]protocol.LineCost, len(ev.ModelUsage))
	s.totals.HasUnknownModelCost = false
	for model, u := range ev.ModelUsage {
		s.totals.ModelUsage[model] = costOf(u)
		s.totals.HasUnknownModelCost = s.totals.HasUnknownModelCost || u.CostBasis == "unknown"
	}
	s.rec.spent = true
	var lines []any
	if limit, hit := maxTurns(ev); hit && s.rec.leaf[""] != "" {
		lines = append(lines, s.attachment("", "", maxTurnsReached{"max_turns_reached", limit, ev.NumTurns, true}))
	}
	if d := ev.DeferredToolUse; d != nil {
		lines = append(lines, s.attachment("", "", deferredTool{deferredType, d.ID, d.Name, d.Input}))
	}
	if !s.rec.closed && s.rec.leaf[""] != "" {
		lines = append(lines, s.closing()...)
	}
	if len(lines) == 0 {
		return nil
	}
	return s.write(lines...)
}

func maxTurns(ev *protocol.Result) (limit int, hit bool) {
	if ev.Subtype != "error_max_turns" {
		return 0, false
	}
	for _, text := range ev.Errors {
		if _, err := fmt.Sscanf(text, "Reached maximum number of turns (%d)", &limit); err == nil {
			return limit, true
		}
	}
	return 0, true
}

func (s *Transcript) retry(ev *protocol.CLIRetry) error {
	if s.rec.leaf[""] == "" {
		return nil
	}
	failure := protocol.RequestError{Message: ev.Message, Formatted: ev.Message, Status: ev.Status}
	if ev.Status == 0 {
		failure.Connection = &protocol.ConnectionError{Code: connectionCode(ev.Message), Message: ev.Message}
	} else {
		failure.Formatted = strconv.Itoa(ev.Status) + " " + ev.Message
	}
	e := s.envelope("", "", "")
	return s.write(protocol.APIErrorLine{
		Head: e.Head, Type: "system", Subtype: "api_error", Level: "error", Source: "request_retry",
		Error: failure, RetryAttempt: ev.Attempt, RetryInMS: ev.RetryInMS, MaxRetries: ev.MaxRetries,
		TimedStamp: protocol.TimedStamp{Timestamp: e.Timestamp, UUID: e.UUID}, Foot: e.Foot,
	})
}

// connectionCode finds the errno name in a message, as "(ECONNREFUSED)".
func connectionCode(message string) string {
	for word := range strings.FieldsFuncSeq(message, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		if len(word) > 3 && strings.HasPrefix(word, "E") {
			return word
		}
	}
	return "UNKNOWN"
}

// system writes the system events that a transcript keeps.
func (s *Transcript) system(ev *protocol.System) error {
	switch ev.Subtype {
	case "session_title_changed":
		return s.Entitle(text(ev.Fields, "title"))
	case "informational":
		if ev.Shown {
			return nil
		}
		e := s.envelope("", ev.UUID, "")
		return s.write(protocol.InformationalLine{
			Head: e.Head, Type: "system", Subtype: "informational", TimedStamp: protocol.TimedStamp{Timestamp: e.Timestamp, UUID: e.UUID},
			Content: text(ev.Fields, "content"), Level: text(ev.Fields, "level"),
			PreventContinuing: field(ev.Fields, "prevent_continuation") == true, Foot: e.Foot,
		})
	case "compact_boundary":
		return s.bounded(ev)
	case "task_started":
		return s.agentStarted(ev)
	case "task_notification":
		return s.agentEnded(ev)
	}
	return nil
}

// bounded begins the conversation anew: the next message hangs on the
// boundary, which hangs on nothing.
func (s *Transcript) bounded(ev *protocol.System) error {
	before := s.rec.leaf[""]
	meta, _ := field(ev.Fields, "compact_metadata").(protocol.CompactMetadata)
	delete(s.rec.leaf, "")
	e := s.envelope("", ev.UUID, "")
	e.LogicalParentUUID = before
	return s.write(protocol.CompactLine{
		Head: e.Head, Type: "system", Subtype: "compact_boundary", Content: "Conversation compacted",
		TimedStamp: protocol.TimedStamp{Timestamp: e.Timestamp, UUID: e.UUID}, Level: "info", Foot: e.Foot,
		Metadata: protocol.LineCompact{
			Trigger: meta.Trigger, PreTokens: meta.PreTokens, PostTokens: meta.PostTokens, DurationMS: meta.DurationMS, Dropped: meta.Dropped,
		},
	})
}

// compacted keeps what follows the boundary: the summary, the command that
// asked for it, and what the model is told anew.
func (s *Transcript) compacted(ev *protocol.Compacted) error {
	e := s.envelope("", ev.Summary.UUID, ev.Summary.Timestamp)
	e.PromptID = s.promptIDOf(ev.Command)
	err := s.write(protocol.UserLine{
		Head: e.Head, Type: "user", Message: ev.Summary.Message, OnlyShown: true, IsSummary: true, Stamp: e.Stamp,
		TurnPosition: &protocol.TurnPosition{TurnIndex: s.rec.turns}, Foot: e.Foot,
	})
	if err != nil {
		return err
	}
	if err := s.command(ev.Command); err != nil {
		return err
	}
	e = s.envelope("", ev.Output.UUID, ev.Output.Timestamp)
	e.PromptID = ev.Command.PromptID
	if err := s.write(protocol.UserLine{Head: e.Head, Type: "user", Message: ev.Output.Message, Stamp: e.Stamp, Foot: e.Foot}); err != nil {
		return err
	}
	return s.relisted()
}

// localCommand writes what a command of the CLI itself has said.
func (s *Transcript) localCommand(ev *protocol.Assistant) error {
	e := s.envelope("", ev.UUID, ev.Timestamp)
	return s.write(protocol.LocalCommandLine{
		Head: e.Head, Type: "system", Subtype: "local_command", Content: ev.LocalCommandSource, Level: "info",
		TimedStamp: protocol.TimedStamp{Timestamp: e.Timestamp, UUID: e.UUID}, CommandRun: ev.LocalCommandRun, ContextUsage: ev.ContextUsage, Foot: e.Foot,
	})
}

func field(fields []protocol.Field, key string) any {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

func text(fields []protocol.Field, key string) string {
	value, _ := field(fields, key).(string)
	return value
}

// changedLines counts the lines that an edit added and removed.
func changedLines(r protocol.ToolResult) (added, removed int) {
	if r.IsError || r.Output == nil {
		return 0, 0
	}
	raw, err := protocol.Marshal(r.Output)
	if err != nil {
		return 0, 0
	}
	var out struct {
		Type            string `json:"type"`
		Content         string `json:"content"`
		StructuredPatch []struct {
			Lines []string `json:"lines"`
		} `json:"structuredPatch"`
	}
	if json.Unmarshal(raw, &out) != nil || !strings.Contains(string(raw), `"structuredPatch"`) {
		return 0, 0
	}
	if out.Type == "create" && out.Content != "" {
		added = strings.Count(out.Content, "\n") + 1
	}
	for _, hunk := range out.StructuredPatch {
		for _, line := range hunk.Lines {
			if strings.HasPrefix(line, "+") {
				added++
			} else if strings.HasPrefix(line, "-") {
				removed++
			}
		}
	}
	return added, removed
}
