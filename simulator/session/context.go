package session

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// object is an attachment.
type object = map[string]any

// environment writes what the model is told beside the first prompt. The
// lines hang on the prompt but no message hangs on them.
func (s *Session) environment(ev *protocol.Init) error {
	if s.rec.listed || s.resumed || s.rec.leaf[""] == "" {
		return nil
	}
	s.rec.listed = true
	dirs := s.opts.Machine.AdditionalDirs
	if dirs == nil {
		dirs = []string{}
	}
	if s.opts.Agent != "" {
		if err := s.write(protocol.AgentSettingLine{Type: "agent-setting", AgentSetting: s.opts.Agent, SessionID: s.id}); err != nil {
			return err
		}
	}
	m := s.opts.Machine
	return s.write(
		s.attachment("system", object{"type": "environment", "snapshot": object{
			"workingDirectory": s.opts.CWD, "additionalWorkingDirectories": dirs, "isGitRepo": m.IsGitRepo,
			"isWorktree": m.IsWorktree, "platform": m.Platform, "shell": m.Shell, "osVersion": m.OSVersion,
		}}),
		s.attachment("system", object{
			"type":     "model",
			"identity": object{"modelId": ev.Model, "marketingName": nil, "knowledgeCutoff": nil},
			"text":     "You are powered by the model " + ev.Model + ".",
		}),
		s.attachment("system", object{"type": "date", "date": s.opts.Now().Format("2006-01-02")}),
		s.attachment("", object{"type": "session_context", "context": object{}}),
	)
}

func (s *Session) attachment(role string, value any) protocol.AttachmentLine {
	return protocol.AttachmentLine{Envelope: s.envelope("", "", ""), Type: "attachment", Attachment: value, RenderedRole: role}
}

// attached is the line of what the session's layers attach.
func (s *Session) attached(ev *protocol.Attached) protocol.AttachmentLine {
	line := s.attachment(ev.Role, ev.Attachment)
	if ev.Rendered != "" {
		line.Rendered = []protocol.Rendered{{Content: ev.Rendered}}
	}
	return line
}

// result writes the end of a turn: what limit ended it, what a list of
// sessions shows, what the session cost.
func (s *Session) result(ev *protocol.Result) error {
	var lines []any
	if limit, hit := maxTurns(ev); hit && s.rec.leaf[""] != "" {
		lines = append(lines, s.attachment("", object{
			"type": "max_turns_reached", "maxTurns": limit, "turnCount": ev.NumTurns, "exitCommitted": true,
		}))
	}
	if d := ev.DeferredToolUse; d != nil {
		lines = append(lines, s.attachment("", object{"type": deferredType, "toolUseID": d.ID, "toolName": d.Name, "toolInput": d.Input}))
	}
	if leaf := s.rec.leaf[""]; leaf != "" && leaf != s.rec.told {
		lines = append(lines, s.lastPrompt())
	}
	s.totals.TotalCostUSD = ev.TotalCostUSD
	s.totals.TotalAPIDuration += ev.DurationAPIMS
	s.totals.TotalAPIDurationWithoutRetries += ev.DurationAPIMS
	s.totals.TotalDuration += ev.DurationMS
	costs := s.totals
	costs.Type, costs.SessionID = "cost-state", s.id
	costs.ModelUsage = make(map[string]protocol.LineCost, len(ev.ModelUsage))
	costs.HasUnknownModelCost = false
	for model, u := range ev.ModelUsage {
		costs.ModelUsage[model] = costOf(u)
		costs.HasUnknownModelCost = costs.HasUnknownModelCost || u.CostBasis == "unknown"
	}
	return s.write(append(lines, costs)...)
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

func (s *Session) retry(ev *protocol.CLIRetry) error {
	if s.rec.leaf[""] == "" {
		return nil
	}
	failure := protocol.RequestError{Message: ev.Message, Formatted: ev.Message, Status: ev.Status}
	if ev.Status == 0 {
		failure.Connection = &protocol.ConnectionError{Code: connectionCode(ev.Message), Message: ev.Message}
	} else {
		failure.Formatted = strconv.Itoa(ev.Status) + " " + ev.Message
	}
	return s.write(protocol.APIErrorLine{
		Envelope: s.envelope("", "", ""), Type: "system", Subtype: "api_error", Level: "error", Source: "request_retry",
		Error: failure, RetryAttempt: ev.Attempt, RetryInMS: ev.RetryInMS, MaxRetries: ev.MaxRetries,
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
func (s *Session) system(ev *protocol.System) error {
	switch ev.Subtype {
	case "session_title_changed":
		title := text(ev.Fields, "title")
		return s.write(
			protocol.CustomTitleLine{Type: "custom-title", CustomTitle: title, SessionID: s.id},
			protocol.AgentNameLine{Type: "agent-name", AgentName: title, SessionID: s.id},
		)
	case "informational":
		if ev.Shown {
			return nil
		}
		return s.write(protocol.InformationalLine{
			Envelope: s.envelope("", ev.UUID, ""), Type: "system", Subtype: "informational",
			Content: text(ev.Fields, "content"), Level: text(ev.Fields, "level"),
			PreventContinuing: field(ev.Fields, "prevent_continuation") == true,
		})
	case "compact_boundary":
		return s.compacted(ev)
	case "task_started":
		return s.agentStarted(ev)
	case "task_notification":
		return s.agentEnded(ev)
	}
	return nil
}

// compacted begins the conversation anew: the next message hangs on the
// boundary, which hangs on nothing.
func (s *Session) compacted(ev *protocol.System) error {
	before := s.rec.leaf[""]
	meta, _ := field(ev.Fields, "compact_metadata").(protocol.CompactMetadata)
	delete(s.rec.leaf, "")
	line := protocol.CompactLine{
		Envelope: s.envelope("", ev.UUID, ""), Type: "system", Subtype: "compact_boundary", Content: "Conversation compacted",
		Level: "info", LogicalParentUUID: before, Metadata: protocol.LineCompact(meta),
	}
	s.advance("", line.UUID)
	return s.write(line)
}

// localCommand writes what a command of the CLI itself has said.
func (s *Session) localCommand(ev *protocol.Assistant) error {
	line := protocol.LocalCommandLine{
		Envelope: s.envelope("", ev.UUID, ev.Timestamp), Type: "system", Subtype: "local_command", Content: ev.LocalCommandSource,
		Level: "info", CommandRun: ev.LocalCommandRun, ContextUsage: ev.ContextUsage,
	}
	s.advance("", line.UUID)
	return s.write(line)
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
		added = strings.Count(strings.TrimSuffix(out.Content, "\n"), "\n") + 1
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
