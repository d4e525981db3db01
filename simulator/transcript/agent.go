package transcript

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// agentMeta is the content of an agent's .meta.json.
type agentMeta struct {
	AgentType              string `json:"agentType"`
	IsBuiltIn              *bool  `json:"isBuiltIn,omitempty"`
	WorktreePath           string `json:"worktreePath,omitempty"`
	SpawnedWithWorktree    bool   `json:"spawnedWithWorktree,omitempty"`
	WorktreeBranch         string `json:"worktreeBranch,omitempty"`
	LaunchedWithDefaults   bool   `json:"launchedWithDefaults,omitempty"` // in the background, and the call names no model
	Description            string `json:"description,omitempty"`
	Name                   string `json:"name,omitempty"`
	ToolUseID              string `json:"toolUseId,omitempty"`
	Parent                 string `json:"parentAgentId,omitempty"`
	SpawnDepth             int    `json:"spawnDepth,omitempty"`
	RequestShape           string `json:"requestShape"`
	NonInteractive         bool   `json:"requestNonInteractive"`
	Model                  string `json:"model,omitempty"`
	ModelNotNamed          bool   `json:"modelNotNamed,omitempty"` // by the call
	SessionModel           string `json:"pickedEffortModel,omitempty"`
	Finished               bool   `json:"finished,omitempty"`
	WorktreeCleanlyRemoved bool   `json:"worktreeCleanlyRemoved,omitempty"`

	isOfSkill, isWritten, hasEnded bool
}

// attributionTracker tracks the skill, the plugin and the MCP server to which the next lines of the model are attributed.
type attributionTracker struct {
	protocol.LineAttribution
	hasReplySinceResult    bool                     // the model has written since the last result
	lastMessageID          string                   // id of the model's last message
	lastMessageAttribution protocol.LineAttribution // attribution of the last message; calls that end while the message is streamed do not change it
	isForked               bool                     // the conversation is that of an agent that runs a skill
	byAgentID              map[string]*attributionTracker
}

// getOrAddForAgent returns the attribution of an agent. A new attribution has the skill of the main conversation.
func (c *attributionTracker) getOrAddForAgent(agentID string) *attributionTracker {
	if agentID == "" {
		return c
	}
	if c.byAgentID == nil {
		c.byAgentID = map[string]*attributionTracker{}
	}
	if c.byAgentID[agentID] == nil {
		c.byAgentID[agentID] = &attributionTracker{LineAttribution: protocol.LineAttribution{Skill: c.Skill, Plugin: c.Plugin}}
	}
	return c.byAgentID[agentID]
}

func (c *attributionTracker) recordForkedSkillAgent(agentID, skillName string) {
	agent := c.getOrAddForAgent(agentID)
	agent.isForked = true
	agent.recordSkill(skillName)
}

func (c *attributionTracker) recordSkill(name string) {
	c.Skill, c.Plugin = name, ""
	if plugin, _, ok := strings.Cut(name, ":"); ok {
		c.Plugin = plugin
	}
}

func (c *attributionTracker) attributeMessage(ev *protocol.AssistantEvent) protocol.LineAttribution {
	if !c.isForked {
		c.Agent = ev.SubagentType
	}
	c.hasReplySinceResult = true
	if c.lastMessageID != ev.Message.ID || c.lastMessageID == "" {
		c.lastMessageID, c.lastMessageAttribution = ev.Message.ID, c.LineAttribution
	}
	return c.lastMessageAttribution
}

// attributeFollowingMessagesToMCPCall attributes the next messages to an MCP call; call is nil if the tool has no MCP server.
func (c *attributionTracker) attributeFollowingMessagesToMCPCall(call *protocol.MCPCall) {
	if c.hasReplySinceResult {
		c.hasReplySinceResult, c.MCPServer, c.MCPTool = false, "", ""
	}
	if call != nil {
		c.MCPServer, c.MCPTool = call.Server, call.Tool
	}
}

type agentTranscripts struct {
	conversation  *conversation
	attachments   *contextAttachmentWriter
	metaByAgentID map[string]*agentMeta
}

// eventAgentID returns the id of the sub-agent that an event belongs to; empty means the main conversation.
func eventAgentID(parentToolUseID *string, agentID string) string {
	switch {
	case parentToolUseID == nil:
		return ""
	case agentID != "":
		return agentID
	}
	return *parentToolUseID
}

func newAgentMeta(agentType, description, toolUseID string) agentMeta {
	return agentMeta{AgentType: agentType, IsBuiltIn: new(slices.Contains([]string{"claude", "claude-code-guide", "Explore", "general-purpose", "Plan", "statusline-setup"}, agentType)), Description: description, ToolUseID: toolUseID, SpawnDepth: 1}
}

// writeLinesCreatingMetaFile appends lines to a sub-agent's transcript. Before the first line, it creates the .meta.json file.
func (a *agentTranscripts) writeLinesCreatingMetaFile(id string, meta agentMeta, lines ...any) error {
	if a.metaByAgentID[id] == nil {
		a.metaByAgentID[id] = &meta
	}
	if meta := a.metaByAgentID[id]; !meta.isWritten {
		meta.isWritten = true
		now := a.attachments.currentSessionContextOf(id)
		meta.setLaunch(now.Launch, now.Model)
		meta.SessionModel, meta.NonInteractive = a.attachments.currentSessionContextOf("").Model, !a.conversation.options.Machine.IsTerminal
		if err := a.writeMetaFile(id); err != nil {
			return err
		}
	}
	return a.conversation.writer.writeLines(a.conversation.agentTranscriptPath(id), lines...)
}

// setLaunch sets how the agent was started. model is its full name.
func (m *agentMeta) setLaunch(launch protocol.AgentLaunch, model string) {
	m.Name, m.Model, m.RequestShape, m.isOfSkill = launch.Name, cmp.Or(launch.Model, model), "foreground", launch.OfSkill
	m.ModelNotNamed = launch.Model == ""
	m.WorktreePath, m.WorktreeBranch, m.SpawnedWithWorktree = launch.WorktreePath, launch.WorktreeBranch, launch.WorktreePath != ""
	if launch.InBackground {
		m.RequestShape, m.LaunchedWithDefaults = "background", launch.Model == "" && !m.SpawnedWithWorktree
	}
	if !m.isOfSkill {
		return
	}
	if m.Model, m.Description, m.Finished = model, "", false; m.ToolUseID == "" { // the user has typed the skill
		m.SpawnDepth = 0
	}
	m.ToolUseID = ""
}

func (a *agentTranscripts) writeUserLineAndStartContext(id string, ev *protocol.UserEvent, line protocol.UserLine) error {
	first := line.ParentUUID == nil
	if blocks := line.Message.Content.Blocks; first && len(blocks) == 1 {
		if text, is := blocks[0].(protocol.TextBlock); is {
			line.Message, line.RowSource = userStringContent(text.Text), "recorded"
		}
	}
	if err := a.writeLinesCreatingMetaFile(id, newAgentMeta(ev.SubagentType, ev.TaskDescription, *ev.ParentToolUseID), line); err != nil || !first {
		return err
	}
	var lines []any
	for _, ev := range ev.StartContext {
		switch added := ev.(type) {
		case *protocol.AttachmentAdded:
			added.AgentID = id
			lines = append(lines, a.conversation.takeNextLineOfAddedAttachment(added))
		case *protocol.UserEvent:
			e := a.conversation.takeNextLineEnvelope(id, "", "")
			e.PromptID = a.conversation.promptID
			lines = append(lines, protocol.UserLine{LineHead: e.LineHead, Type: "user", Message: added.Message, IsMeta: true, LineID: e.LineID, LineTrailer: e.LineTrailer})
		}
	}
	now := a.attachments.currentSessionContextOf(id)
	lines = append(lines, a.attachments.takeToolAgentAndSkillLines(id, SessionContext{Model: now.Model, Deferred: now.Deferred}, false)...)
	lines = append(lines, a.attachments.takeEnvironmentSnapshotLines(id, now)...)
	lines = append(lines, a.attachments.takeToolAgentAndSkillLines(id, SessionContext{Skills: now.Skills}, false)...)
	return a.conversation.writer.writeLines(a.conversation.agentTranscriptPath(id), append(lines, a.attachments.takeContextDateAttributionLines(id)...)...)
}

func (a *agentTranscripts) writeMetaFile(id string) error {
	entry, err := protocol.Marshal(struct {
		Type string `json:"type"`
		agentMeta
	}{"agent_metadata", *a.metaByAgentID[id]})
	if err != nil {
		return err
	}
	path, writer := a.conversation.agentTranscriptPath(id), &a.conversation.writer
	entry = writer.filter.Apply(entry)
	if a.conversation.options.NoPersist {
		writer = &transcriptWriter{} // --no-session-persistence does not prevent this file
	}
	meta := bytes.Replace(entry, []byte(`"type":"agent_metadata",`), nil, 1)
	if err := writer.replaceFile(path[:len(path)-len(".jsonl")]+".meta.json", meta, 0o644); err != nil {
		return err
	}
	if a.conversation.writer.lineObserver == nil || a.conversation.writer.isDisabled {
		return nil
	}
	a.conversation.writer.lineObserver(path, entry)
	return nil
}

func (a *agentTranscripts) rememberStartedAgent(ev *protocol.SystemEvent) {
	depth, isAgent := ev.FieldValue("spawn_depth").(int)
	if !isAgent {
		return // the task is not an agent
	}
	id := ev.Text("task_id")
	if again := a.metaByAgentID[id]; again != nil {
		again.hasEnded = false
		return
	}
	meta := newAgentMeta(ev.Text("subagent_type"), ev.Text("description"), ev.Text("tool_use_id"))
	meta.SpawnDepth, meta.Parent = depth, ev.Text("parent_task_id")
	a.metaByAgentID[id] = &meta
}

func (a *agentTranscripts) writeMetaOfFinishedAgent(taskEnd *protocol.SystemEvent) error {
	id := taskEnd.Text("task_id")
	meta := a.metaByAgentID[id]
	if meta == nil || meta.hasEnded {
		return nil
	}
	if meta.hasEnded = true; meta.isOfSkill || taskEnd.Text("status") == "stopped" {
		return nil
	}
	if meta.Finished = true; meta.SpawnedWithWorktree && a.attachments.currentSessionContextOf(id).Launch.WorktreePath == "" {
		meta.IsBuiltIn, meta.WorktreePath, meta.WorktreeBranch, meta.SpawnedWithWorktree, meta.WorktreeCleanlyRemoved = nil, "", "", false, true
	}
	return a.writeMetaFile(id)
}

func (a *agentTranscripts) countRunningAgents() (n int) {
	for _, meta := range a.metaByAgentID {
		if !meta.hasEnded {
			n++
		}
	}
	return n
}

func userStringContent(text string) protocol.UserContent {
	return protocol.UserContent{Role: "user", Content: protocol.Content{Text: text}}
}

func setTextFormAndRowSource(line *protocol.UserLine) {
	text := line.Message.Content.Plain()
	if line.IsMeta {
		line.Message = userStringContent(text) // the CLI writes these texts as strings, not as lists of blocks
	} else if !strings.HasPrefix(text, "[Request interrupted by user") && !strings.HasPrefix(text, "<local-command-stdout>") {
		return
	}
	if line.RowSource = "harness"; line.SourceToolUseID != "" {
		line.RowSource = "" // the text of a skill
	}
	switch {
	case strings.HasPrefix(text, "<local-command-stdout>"):
		line.RowSource = "local"
	case strings.HasPrefix(text, "Stop hook feedback:"):
		line.RowSource, line.HookText, line.HookTextLead = "hook", true, claudecode.HookOutputIntroductionPrefix
	case claudecode.IsCLIContinuationRequest(text):
		line.RowSource, line.OwnNote = "", true
	}
}

// setPromptSourceOutsideTerminal sets the keys that describe who sent a prompt that did not come from a terminal.
func setPromptSourceOutsideTerminal(line *protocol.UserLine, ev *protocol.PromptAccepted) {
	line.PermissionMode, line.PromptSource, line.TurnOrigin = ev.PermissionMode, cmp.Or(ev.Source, "sdk"), "sdk"
	if ev.Source == "system" {
		line.TurnOrigin, line.SkipAttachments, line.Origin, line.RowSource = "task_notification", true, ev.Origin, "recorded"
	} else if ev.NoQuery {
		line.QueueOnly, line.TurnOrigin = true, ""
	}
	if ev.Source == protocol.PromptSourceWakeup {
		line.IsMeta, line.PromptSource, line.TurnOrigin, line.SkipCommands, line.WakeupSource, line.SkipAttachments = true, "system", "scheduled", true, ev.Source, true
	}
	if string(ev.Origin) == protocol.SyntheticPromptOriginJSON {
		line.IsMeta, line.PromptSource, line.TurnOrigin, line.SkipAttachments, line.Origin = true, "system", "host_synthetic", true, ev.Origin
	}
	if protocol.IsPeerOrigin(ev.Origin) {
		line.IsMeta, line.TurnOrigin, line.SkipCommands, line.RowSource = true, "peer", true, ""
	}
	if ev.OfHook || string(ev.Origin) == protocol.SyntheticPromptOriginJSON {
		line.RowSource = ""
	}
}

// setMCPResult sets the keys of a call of an MCP tool; nil means another tool.
func setMCPResult(line *protocol.UserLine, call *protocol.MCPCall) {
	if call != nil {
		line.MCPNotReadOnly = call.NotReadOnly
		if call.Result != nil {
			line.ToolUseResult, line.MCPMeta = call.Result.Content, call.Result
		}
	}
}

// setPermissionDecisionAndRefusal sets the keys that say who decided about a call, and why a refused call did not run.
func setPermissionDecisionAndRefusal(line *protocol.UserLine, ev *protocol.UserEvent) {
	if ev.Tool != "" && ev.ToolUseResult != nil && !isFailedResult(ev) {
		line.ToolResultScreened = new(len(ev.ToolResultMeta) > 0 && ev.ToolResultMeta[0].Screened)
	}
	if len(ev.ToolResultMeta) == 0 {
		return
	}
	meta := ev.ToolResultMeta[0]
	line.ToolDenialKind, line.DeniedBeforeRun, line.ToolResultRemedy = meta.NonExecutionKind, meta.DeniedBeforeRun, meta.Remedy
	if meta.IsInputChanged {
		line.ExecutedInput = map[string][]string{"sources": {meta.InputChanger}}
	}
	if meta.NonExecutionKind != "" {
		line.UserFeedback = meta.Feedback
	}
	if text, _ := line.ToolUseResult.(string); strings.HasPrefix(text, "Error: Tool permission request failed: AbortError: ") {
		line.ToolDenialUnanswered = "stream-closed"
	}
	rejected := false
	if d := meta.PermissionDecision; d != nil {
		rejected = d.Decision != "accept"
		decision := &protocol.LinePermissionDecision{Decision: d.Decision, Source: d.Source, ReasonType: d.ReasonType, RuleSource: d.RuleSource, ReasonCode: d.ReasonCode, GrantScope: d.GrantScope, CircuitBreaker: d.CircuitBreaker}
		if d.Decision == "reject" && d.Source == "hook" && d.ReasonCode == "" {
			decision.ReasonCode = "hook:PreToolUse"
		}
		line.PermissionDecision = decision
		line.IsHumanText = d.Source == "user_reject" && d.RuleSource == ""
	}
	if ev.Tool == "Bash" && meta.NonExecutionKind == "" && !rejected && meta.Remedy == nil {
		line.Sandboxed = new(bool)
	}
}

func isFailedResult(ev *protocol.UserEvent) bool {
	return slices.ContainsFunc(ev.Message.Content.Blocks, func(b protocol.Block) bool {
		r, is := b.(protocol.ToolResultBlock)
		return is && r.IsError != nil && *r.IsError
	})
}
