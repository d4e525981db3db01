package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type contextAttachmentWriter struct {
	conversation       *conversation
	lines              *lineWriter
	environmentWritten bool // the model has received the description of its environment
	contextPending     bool // the attachments of the first request are not written yet
	contextWritten     bool
	promptNotSent      bool                // the last prompt had shouldQuery: false; the request of the next prompt will contain it
	remainingWritten   bool                // the transcript already has the reminders of the limits for the next request
	planMode           bool                // the last attachment about plan mode says that it is active
	autoMode           *autoModeAttachment // the last attachment about a mode without approvals; nil means that none is active
	describedModel     string              // model that the last attachment describes; empty means none

	prompt *protocol.PromptAccepted    // its environment and images are written after the files that it mentions; nil means they are written
	memory []*protocol.AttachmentAdded // instructions for these files, which follow the list of agents
}

type budgetAttachment struct {
	Type      string  `json:"type"` // "budget_usd"
	Used      float64 `json:"used"`
	Total     float64 `json:"total"`
	Remaining float64 `json:"remaining"`
}

type textAttachment struct {
	Type string `json:"type"` // "silent_turn_reminder" or "total_tokens_reminder"
	Text string `json:"text"`
}

// These types are the attachments with which a transcript records a [SessionContext].
type (
	environmentAttachment struct {
		Type     string              `json:"type"` // "environment"
		Snapshot environmentSnapshot `json:"snapshot"`
		Changes  []environmentChange `json:"changes,omitempty"`
	}
	environmentChange struct {
		Field   string   `json:"field"`
		From    string   `json:"from,omitempty"`
		Added   []string `json:"added,omitzero"`
		Removed []string `json:"removed,omitzero"`
	}
	environmentSnapshot struct {
		WorkingDirectory string   `json:"workingDirectory"`
		IsWorktree       bool     `json:"isWorktree"`
		IsGitRepo        bool     `json:"isGitRepo"`
		AdditionalDirs   []string `json:"additionalWorkingDirectories"`
		Platform         string   `json:"platform"`
		Shell            string   `json:"shell"`
		OSVersion        string   `json:"osVersion"`
	}
	modelAttachment struct {
		Type     string        `json:"type"` // "model"
		Identity modelIdentity `json:"identity"`
		Text     string        `json:"text"`
	}
	modelIdentity struct {
		ModelID         string  `json:"modelId"`
		MarketingName   *string `json:"marketingName"`
		KnowledgeCutoff *string `json:"knowledgeCutoff"`
	}
	deferredToolsAttachment struct {
		Type         string          `json:"type"` // "deferred_tools_delta"
		AddedNames   []string        `json:"addedNames"`
		AddedLines   []string        `json:"addedLines"`
		RemovedNames []string        `json:"removedNames"`
		WireHidden   []string        `json:"wireHiddenNames"`
		Readded      []string        `json:"readdedNames"`
		Pending      *[]string       `json:"pendingMcpServers,omitempty"`
		NeedsAuth    *[]string       `json:"needsAuthMcpServers,omitempty"`
		Failed       *[]FailedServer `json:"failedMcpServers,omitempty"`
	}
	serverInstructionsAttachment struct {
		Type         string   `json:"type"` // "mcp_instructions_delta"
		AddedNames   []string `json:"addedNames"`
		AddedBlocks  []string `json:"addedBlocks"`
		RemovedNames []string `json:"removedNames"`
	}
	agentListingAttachment struct {
		Type            string   `json:"type"` // "agent_listing_delta"
		AddedTypes      []string `json:"addedTypes"`
		AddedLines      []string `json:"addedLines"`
		BuiltIn         []string `json:"builtInTypes"`
		BuiltInPlugin   []string `json:"builtInPluginTypes"`
		Removed         []string `json:"removedTypes"`
		IsInitial       bool     `json:"isInitial"`
		ConcurrencyNote bool     `json:"showConcurrencyNote"`
	}
	skillListingAttachment struct {
		Type      string   `json:"type"` // "skill_listing"
		Content   string   `json:"content"`
		Count     int      `json:"skillCount"`
		IsInitial bool     `json:"isInitial"`
		Names     []string `json:"names"`
		Digests   []string `json:"digests"`
	}
	autoModeAttachment struct {
		Type      string `json:"type"` // "auto_mode"
		Consent   bool   `json:"autoModeConsentFlow"`
		Finish    bool   `json:"finishExposedWork"`
		BashFirst bool   `json:"bashFirst"`
		Steer     string `json:"bashFirstSteer,omitempty"`
		SteerOnly bool   `json:"steerOnly"`
		Bypass    bool   `json:"bypass"`
	}
	autoModeExitAttachment struct {
		Type      string `json:"type"` // "auto_mode_exit"
		BashFirst bool   `json:"bashFirst"`
		SteerOnly bool   `json:"steerOnly"`
		Finish    bool   `json:"finishExposedWork"`
	}
	planModeAttachment struct {
		Type         string `json:"type"`                   // "plan_mode" or "plan_mode_exit"
		ReminderType string `json:"reminderType,omitempty"` // "full"
		IsSubAgent   *bool  `json:"isSubAgent,omitempty"`
		File         string `json:"planFilePath"`
		Exists       bool   `json:"planExists"`
	}
	sessionContextAttachment struct {
		Type    string            `json:"type"` // "session_context"
		Context map[string]string `json:"context"`
	}
	instructionsAttachment struct {
		Type  string            `json:"type"` // "instructions"
		Files []InstructionFile `json:"files"`
	}
	dateAttachment struct {
		Type string `json:"type"` // "date"
		Date string `json:"date"`
	}
	commitAttributionAttachment struct {
		Type          string  `json:"type"` // "remote_session_change"
		URL           *string `json:"url"`
		Commit        string  `json:"commit"`
		PR            string  `json:"pr"`
		FileHint      bool    `json:"sendUserFileHint"`
		ManagedCommit bool    `json:"managedCommit"`
		ManagedPR     bool    `json:"managedPr"`
	}
)

func (l *contextAttachmentWriter) currentSessionContextOf(agentID string) SessionContext {
	if l.conversation.options.Context == nil {
		return SessionContext{}
	}
	return l.conversation.options.Context.SessionContext(agentID)
}

// writeEnvironmentOrChanges writes, after the line of the first prompt of a conversation, the description of the environment. In a
// terminal, it writes after each later prompt what has changed since then.
func (l *contextAttachmentWriter) writeEnvironmentOrChanges() error {
	now, terminal := l.currentSessionContextOf(""), l.conversation.options.Machine.IsTerminal
	var lines []any
	switch {
	case !l.environmentWritten:
		l.environmentWritten, l.contextPending = true, !l.contextWritten
		lines = append(l.environmentAttachments("", now), l.toolAgentAndSkillListings("", SessionContext{Deferred: now.Deferred, FailedServers: now.FailedServers, Agents: now.Agents, ServerInstructions: now.ServerInstructions}, true)...)
		lines = append(lines, l.takeMemoryLines()...)
		lines = append(append(lines, l.toolAgentAndSkillListings("", SessionContext{Skills: now.Skills}, true)...), l.autoModeLines("", now)...)
		l.autoMode = now.autoMode()
	case terminal && l.describedModel != "" && l.describedModel != now.Model:
		lines = append([]any{l.modelIdentityLine("", now)}, l.commitAndPullRequestAttributionLines("")...)
	}
	for _, line := range l.remainingLimitLines("", now.Remaining) {
		lines = append(lines, line)
	}
	l.remainingWritten = true
	return l.lines.write(append(append(lines, l.takeMemoryLines()...), l.modeChangeLines(now)...)...)
}

func (l *contextAttachmentWriter) takeMemoryLines() (lines []any) {
	for _, at := range l.memory {
		lines = append(lines, l.conversation.addedAttachmentLine(at))
	}
	l.memory = nil
	return lines
}

// modeChangeLines returns the attachments about a change of plan mode and, in a terminal, a change of auto mode.
func (l *contextAttachmentWriter) modeChangeLines(now SessionContext) (lines []any) {
	if plans := now.ShellMode == protocol.ModePlan; plans != l.planMode {
		l.planMode = plans
		lines = append(lines, l.planModeLine(map[bool]string{true: "plan_mode", false: "plan_mode_exit"}[plans]))
	}
	before, about := l.autoMode, now.autoMode()
	if !l.conversation.options.Machine.IsTerminal || (before == nil) == (about == nil) {
		return lines
	}
	if l.autoMode = about; about != nil {
		return append(lines, l.autoModeLines("", now)...)
	}
	return append(lines, l.conversation.reminderLine("", autoModeExitAttachment{"auto_mode_exit", before.BashFirst, before.SteerOnly, before.Finish},
		"Auto mode has ended. Use the tools for files again to read, search and edit files."))
}

// writeFirstRequestAttachments writes the attachments of the first request: the session context, the date and the texts for commits.
func (l *contextAttachmentWriter) writeFirstRequestAttachments() error {
	if !l.contextPending || l.promptNotSent {
		return nil
	}
	l.contextPending, l.contextWritten = false, true
	var lines []any
	if !l.conversation.resumed && !l.conversation.isFirstConversationInTerminal() {
		lines = append(lines, l.conversation.atisLatchLine())
	}
	return l.lines.write(append(lines, l.contextDateAndGitAttributionLines("")...)...)
}

func (l *contextAttachmentWriter) listingsAndEnvironmentAfterCompaction() []any {
	l.environmentWritten = true
	now := l.currentSessionContextOf("")
	return append(l.toolAgentAndSkillListings("", now, false), l.environmentAttachments("", now)...)
}

// autoMode describes a mode in which the user does not approve calls; nil means another mode.
func (now SessionContext) autoMode() *autoModeAttachment {
	steers, bypass, auto := now.BashSteer != "", now.ShellMode == protocol.ModeBypass, now.ShellMode == protocol.ModeAuto
	if (!steers || !bypass) && (!auto || !steers && !now.ExplainsAuto) {
		return nil
	}
	return &autoModeAttachment{Type: "auto_mode", BashFirst: steers, Steer: now.BashSteer, SteerOnly: steers, Bypass: bypass}
}

func (l *contextAttachmentWriter) autoModeLines(agentID string, now SessionContext) []any {
	if about := now.autoMode(); about != nil {
		return []any{l.conversation.reminderLine(agentID, *about, "In this permission mode Bash is welcome wherever it is the simpler tool.")}
	}
	return nil
}

// planModeLine returns the attachment that says that plan mode begins ("plan_mode") or has ended ("plan_mode_exit").
func (l *contextAttachmentWriter) planModeLine(kind string) protocol.AttachmentLine {
	file := filepath.Join(l.conversation.options.StateDir, "plans", l.conversation.createPlanName("")+".md")
	_, err := os.Stat(file)
	about := planModeAttachment{Type: kind, File: file, Exists: err == nil}
	if kind == "plan_mode" {
		about.ReminderType, about.IsSubAgent = "full", new(bool)
	}
	return l.conversation.reminderLine("", about, kind+": the plan file is "+file)
}

// remainingLimitLines returns the reminders of the tokens and the money that the model may still spend.
func (l *contextAttachmentWriter) remainingLimitLines(agentID string, left protocol.RemainingLimits) (lines []protocol.AttachmentLine) {
	if left.Tokens > 0 {
		text := "<total_tokens>" + strconv.Itoa(left.Tokens) + " tokens left</total_tokens>"
		lines = append(lines, l.conversation.reminderLine(agentID, textAttachment{"total_tokens_reminder", text}, text))
	}
	if left.BudgetUSD > 0 {
		budget := budgetAttachment{"budget_usd", left.SpentUSD, left.BudgetUSD, left.BudgetUSD - left.SpentUSD}
		text := "USD budget: $" + protocol.FormatNumber(budget.Used) + "/$" + protocol.FormatNumber(budget.Total) + "; $" + protocol.FormatNumber(budget.Remaining) + " remaining"
		lines = append(lines, l.conversation.reminderLine(agentID, budget, text))
	}
	return lines
}

func (l *contextAttachmentWriter) firstAttachmentsOfSubagent(agentID string) []any {
	now := l.currentSessionContextOf(agentID)
	lists := l.toolAgentAndSkillListings(agentID, SessionContext{Deferred: now.Deferred}, false)
	lists = append(lists, l.environmentAttachments(agentID, now)...)
	lists = append(lists, l.toolAgentAndSkillListings(agentID, SessionContext{Skills: now.Skills}, false)...)
	return append(lists, l.contextDateAndGitAttributionLines(agentID)...)
}

func (l *contextAttachmentWriter) subagentSecondRequestAttachments(agentID string) (lines []protocol.AttachmentLine) {
	now := l.currentSessionContextOf(agentID)
	for _, line := range append(l.toolAgentAndSkillListings(agentID, SessionContext{Agents: now.Agents}, false), l.autoModeLines(agentID, now)...) {
		lines = append(lines, line.(protocol.AttachmentLine))
	}
	return lines
}

func (l *contextAttachmentWriter) environmentAttachments(agentID string, now SessionContext) []any {
	m := l.conversation.options.Machine
	dirs, dir, isWorktree := append([]string{}, now.AdditionalDirs...), l.conversation.workingDirOf(agentID), m.IsWorktree
	if agentID != "" && l.conversation.options.Context != nil && l.conversation.options.Context.AgentWorktree(agentID) != "" {
		dirs, isWorktree = append(dirs, dir), true
	}
	return []any{
		l.conversation.reminderLine(agentID, environmentAttachment{Type: "environment", Snapshot: m.snapshot(dir, dirs, isWorktree)},
			"# Environment\n - Working directory: "+dir+"\n - Git repository: "+strconv.FormatBool(m.IsGitRepo)+"\n - Platform: "+m.Platform+"\n - Shell: "+m.Shell+"\n - System: "+m.OSVersion),
		l.modelIdentityLine(agentID, now),
	}
}

func (l *contextAttachmentWriter) modelIdentityLine(agentID string, currentContext SessionContext) protocol.AttachmentLine {
	told := modelAttachment{Type: "model", Identity: modelIdentity{ModelID: currentContext.Model}, Text: "You are powered by the model " + currentContext.Model + "."}
	if currentContext.ModelName != "" {
		told.Identity.MarketingName = &currentContext.ModelName
		told.Text = "You are powered by the model named " + currentContext.ModelName + ". The exact model ID is " + currentContext.Model + "."
	}
	if currentContext.KnowledgeCutoff != "" {
		told.Identity.KnowledgeCutoff = &currentContext.KnowledgeCutoff
		told.Text += " Assistant knowledge cutoff is " + currentContext.KnowledgeCutoff + "."
	}
	if agentID == "" {
		l.describedModel = currentContext.Model
	}
	return l.conversation.reminderLine(agentID, told, told.Text)
}

// additionalDirsChangeReminder returns the line that reminds the model of added or removed directories; nil means no change.
func (th *conversation) additionalDirsChangeReminder(dirsBefore, dirsAfter []string) *protocol.AttachmentLine {
	change := environmentChange{Field: "additionalWorkingDirectories", Added: missingFrom(dirsBefore, dirsAfter), Removed: missingFrom(dirsAfter, dirsBefore)}
	if len(change.Added)+len(change.Removed) == 0 {
		return nil
	}
	return new(th.environmentChangeReminder(dirsAfter, change, "The additional working directories are now: "+strings.Join(dirsAfter, ", ")))
}

func (th *conversation) environmentChangeReminder(additionalDirs []string, change environmentChange, text string) protocol.AttachmentLine {
	m := th.options.Machine
	snapshot := m.snapshot(th.workingDirOf(""), append([]string{}, additionalDirs...), m.IsWorktree)
	return th.reminderLine("", environmentAttachment{"environment", snapshot, []environmentChange{change}}, text)
}

// missingFrom returns the elements of all that are not in known. The result is never nil.
func missingFrom(known, all []string) []string {
	return slices.DeleteFunc(append([]string{}, all...), func(s string) bool { return slices.Contains(known, s) })
}

func (m Machine) snapshot(dir string, dirs []string, isWorktree bool) environmentSnapshot {
	return environmentSnapshot{WorkingDirectory: dir, IsWorktree: isWorktree, IsGitRepo: m.IsGitRepo, AdditionalDirs: dirs, Platform: m.Platform, Shell: m.Shell, OSVersion: m.OSVersion}
}

func (l *contextAttachmentWriter) toolAgentAndSkillListings(agentID string, now SessionContext, isFirstListing bool) []any {
	var lines []any
	if len(now.Deferred) > 0 {
		tools := deferredToolsAttachment{Type: "deferred_tools_delta", AddedNames: now.Deferred, AddedLines: now.Deferred, RemovedNames: []string{}, WireHidden: []string{}, Readded: []string{}}
		if isFirstListing {
			tools.Pending, tools.Failed = &[]string{}, new(append([]FailedServer{}, now.FailedServers...))
			if !l.conversation.options.Machine.IsTerminal {
				tools.NeedsAuth = &[]string{}
			}
		}
		lines = append(lines, l.conversation.reminderLine(agentID, tools, "Tools that ToolSearch loads:\n"+strings.Join(tools.AddedLines, "\n")))
	}
	if now.Agents != nil {
		agents := agentListingAttachment{Type: "agent_listing_delta", BuiltIn: []string{}, BuiltInPlugin: []string{}, Removed: []string{}, IsInitial: true, ConcurrencyNote: true}
		agents.AddedTypes, agents.AddedLines = namesAndTexts(now.Agents)
		for _, a := range now.Agents {
			if a.BuiltIn {
				agents.BuiltIn = append(agents.BuiltIn, a.Name)
			}
		}
		lines = append(lines, l.conversation.reminderLine(agentID, agents, "Agents of the Agent tool:\n"+strings.Join(agents.AddedLines, "\n")))
	}
	if len(now.ServerInstructions) > 0 {
		servers := serverInstructionsAttachment{Type: "mcp_instructions_delta", RemovedNames: []string{}}
		servers.AddedNames, servers.AddedBlocks = namesAndTexts(now.ServerInstructions)
		lines = append(lines, l.conversation.reminderLine(agentID, servers, "# MCP Server Instructions\n\n"+strings.Join(servers.AddedBlocks, "\n\n")))
	}
	if now.Skills != nil {
		skills := skillListingAttachment{Type: "skill_listing", Count: len(now.Skills), IsInitial: true}
		var texts []string
		skills.Names, texts = namesAndTexts(now.Skills)
		for _, text := range texts {
			sum := sha256.Sum256([]byte(text))
			skills.Digests = append(skills.Digests, hex.EncodeToString(sum[:8]))
		}
		skills.Content = strings.Join(texts, "\n")
		lines = append(lines, l.conversation.reminderLine(agentID, skills, "Skills of the Skill tool:\n"+skills.Content))
	}
	return lines
}

func namesAndTexts(list []Listing) (names, texts []string) {
	for _, entry := range list {
		names, texts = append(names, entry.Name), append(texts, entry.Text)
	}
	return names, texts
}

func (l *contextAttachmentWriter) contextDateAndGitAttributionLines(agentID string) []any {
	return append(l.instructionsGitStatusAndDateLines(agentID), l.commitAndPullRequestAttributionLines(agentID)...)
}

// instructionsGitStatusAndDateLines returns the attachments instructions, session_context (the state of the repository) and date.
func (l *contextAttachmentWriter) instructionsGitStatusAndDateLines(agentID string) []any {
	today := l.conversation.options.Clock.Now().Format("2006-01-02")
	var lines []any
	now := l.currentSessionContextOf(agentID)
	if len(now.Instructions) > 0 {
		line := l.conversation.reminderLine(agentID, instructionsAttachment{"instructions", now.Instructions}, now.Instructed)
		line.RenderedRole = "user"
		lines = append(lines, line)
	}
	state := l.conversation.attachmentLine(agentID, "", sessionContextAttachment{"session_context", map[string]string{}})
	text := ""
	if source := l.conversation.options.Context; source != nil && !l.conversation.writer.isDisabled {
		text = source.GitStatus(agentID)
	}
	if text != "" {
		state.Attachment = sessionContextAttachment{"session_context", map[string]string{"gitStatus": text}}
		state.RenderedRole, state.Rendered = "user", []protocol.AttachmentText{{Content: protocol.Reminder("# gitStatus\n" + text)}}
	}
	return append(lines, state, l.conversation.reminderLine(agentID, dateAttachment{"date", today}, "Today's date is "+today+"."))
}

func (l *contextAttachmentWriter) commitAndPullRequestAttributionLines(agentID string) []any {
	now := l.currentSessionContextOf(agentID)
	signed := commitAttributionAttachment{
		Type: "remote_session_change", Commit: "Co-Authored-By: " + now.Signature + " <noreply@anthropic.com>",
		PR: "🤖 Generated with [Claude Code](https://claude.com/claude-code)",
	}
	for given, text := range map[*string]*string{l.conversation.options.Commit: &signed.Commit, l.conversation.options.PR: &signed.PR} {
		if given != nil {
			*text = *given
		}
	}
	if signed.Commit+signed.PR == "" || now.NoCommitTexts {
		return nil
	}
	line := l.conversation.reminderLine(agentID, signed, "Commits end with:\n"+signed.Commit+"\nPull requests end with:\n"+signed.PR)
	line.RenderedRole, line.WithToolResult = "user", true
	return []any{line}
}

type structuredOutputAttachment struct {
	Type      string          `json:"type"` // "structured_output"
	Data      json.RawMessage `json:"data"`
	ToolUseID string          `json:"toolUseID"`
}
