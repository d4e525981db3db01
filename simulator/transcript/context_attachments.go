package transcript

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type contextAttachmentWriter struct {
	conversation       *conversation
	lines              *lineWriter
	environmentWritten bool // the model has received the description of its environment
	contextPending     bool // the attachments of the first request are not written yet
	contextWritten     bool
	promptNotSent      bool                     // the last prompt had shouldQuery: false; the request of the next prompt will contain it
	attributionPending bool                     // the next request has the texts for commits of another model
	remainingWritten   bool                     // the transcript already has the reminders of the limits for the next request
	planMode           bool                     // the last attachment about plan mode says that it is active
	planModeReminders  int                      // attachments about plan mode since it began
	promptsInPlanMode  int                      // prompts since the last of them
	autoModeCompacted  bool                     // a compaction has removed the attachment about a mode without approvals
	autoMode           attachment               // the last attachment about a mode without approvals; nil means that none is active
	listedSkills       []string                 // skills that attachments of the main conversation list
	listed             announcedToolsAndServers // tools and MCP servers that these attachments list
	describedModel     string                   // model that the last attachment describes; empty means none
	usedTokens         map[string]int           // by agent: tokens of the longest request and reply of a model that is told the remaining tokens
	attribution        string                   // text for commits that the main conversation has received; empty means none
	describedStyle     string                   // output style that the last attachment describes; empty means the default
	beforeCommand      SessionContext           // context before the command of the prompt has set its model

	prompt *protocol.PromptAccepted    // its environment and images are written after the files that it mentions; nil means they are written
	memory []*protocol.AttachmentAdded // instructions for these files, which follow the list of agents
}

// announcedToolsAndServers contains the deferred tools and the MCP servers of which the attachments of a conversation tell.
type announcedToolsAndServers struct {
	tools             map[string]bool // true if the tool is available; false if it was available earlier
	failedServers     []FailedServer
	instructedServers []string
}

func (t *announcedToolsAndServers) updateTools(added, removed []string, failed []FailedServer) {
	if t.failedServers = failed; t.tools == nil {
		t.tools = map[string]bool{}
	}
	for _, name := range added {
		t.tools[name] = true
	}
	for _, name := range removed {
		t.tools[name] = false
	}
}

// These types are the attachments with which a transcript records a [SessionContext].
type (
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
)

func (l *contextAttachmentWriter) currentSessionContextOf(agentID string) SessionContext {
	if l.conversation.options.Context == nil {
		return SessionContext{}
	}
	return l.conversation.options.Context.SessionContext(agentID)
}

// writeEnvironmentOrChanges writes, after the line of the first prompt of a conversation, the description of the environment. In a
// terminal, it writes after each later prompt what has changed since the previous description.
func (l *contextAttachmentWriter) writeEnvironmentOrChanges(now SessionContext) error {
	terminal := l.conversation.options.Machine.IsTerminal
	var lines []any
	if l.conversation.options.Machine.IsBare {
		l.contextPending = !l.contextWritten
		return nil
	}
	if l.environmentWritten {
		lines = l.takeOutputStyleChangeLines("", now)
	}
	switch {
	case !l.environmentWritten:
		l.environmentWritten, l.contextPending = true, !l.contextWritten
		withoutSkills := now
		withoutSkills.Skills = nil
		lines = append(l.takeEnvironmentSnapshotLines("", now), l.takeToolAgentAndSkillLines("", withoutSkills, true)...)
		lines = append(lines, l.takeMemoryLines()...)
		lines = append(append(lines, l.takeToolAgentAndSkillLines("", SessionContext{Skills: now.Skills}, true)...), l.takeAutoOrBypassModeStartLines("", now)...)
		l.autoMode = now.autoOrBypassModeAttachment()
	case l.describedModel != "" && l.describedModel != now.Model:
		lines = append(lines, l.takeModelIdentityLine("", now))
		if l.attributionPending = !terminal; terminal {
			lines = append(lines, l.takeCommitAndPRAttributionLines("")...)
		}
	}
	lines = append(lines, l.takeToolAndServerChangeLines(now)...)
	isListed := func(skill ListedItem) bool { return slices.Contains(l.listedSkills, skill.Name) }
	if late := slices.DeleteFunc(slices.Clone(now.Skills), isListed); l.listedSkills != nil && len(late) > 0 {
		lines = append(lines, l.takeToolAgentAndSkillLines("", SessionContext{Skills: late}, false)...)
	}
	l.remainingWritten = true
	l.promptsInPlanMode++
	lines = append(append(lines, l.takeMemoryLines()...), l.takeModeChangeLines(now)...)
	return l.lines.writeAfterPendingLines(append(lines, l.takeRemindersOfEachRequest("", now.Remaining)...)...)
}

// takeOutputStyleChangeLines returns the attachment with the instructions of the output style, if the style has changed.
func (l *contextAttachmentWriter) takeOutputStyleChangeLines(agentID string, now SessionContext) []any {
	if agentID != "" || now.OutputStyle == l.describedStyle {
		return nil
	}
	var style any
	text := "The output style is the default again."
	if l.describedStyle = now.OutputStyle; now.OutputStyle != "" {
		style = attachment{}.with("name", now.OutputStyle, "prompt", now.StyleInstructions)
		text = "# Output Style: " + now.OutputStyle + "\n" + now.StyleInstructions
	}
	return []any{l.conversation.takeNextReminderLine("", newAttachment("output_style_instructions", "style", style), text)}
}

func (l *contextAttachmentWriter) takeMemoryLines() (lines []any) {
	for _, at := range l.memory {
		lines = append(lines, l.conversation.takeNextLineOfAddedAttachment(at))
	}
	l.memory = nil
	return lines
}

// takeModeChangeLines returns the attachments about a change of plan mode and, in a terminal, a change of auto mode.
func (l *contextAttachmentWriter) takeModeChangeLines(now SessionContext) (lines []any) {
	plans := now.ShellMode == protocol.ModePlan
	if plans != l.planMode {
		l.planMode, l.planModeReminders = plans, 0
		lines = append(lines, l.takePlanModeLine(map[bool]string{true: "plan_mode", false: "plan_mode_exit"}[plans]))
	} else if plans && l.promptsInPlanMode > promptsBetweenPlanModeReminders {
		lines = append(lines, l.takePlanModeLine("plan_mode"))
	}
	before, about := l.autoMode, now.autoOrBypassModeAttachment()
	if !l.conversation.options.Machine.IsTerminal || (before == nil) == (about == nil) {
		return lines
	}
	if l.autoMode = about; about != nil {
		return append(lines, l.takeAutoOrBypassModeStartLines("", now)...)
	}
	steers := before[len(before)-2].Value
	return append(lines, l.conversation.takeNextReminderLine("", newAttachment("auto_mode_exit", "bashFirst", steers, "steerOnly", steers, "finishExposedWork", false),
		"Auto mode has ended. Use the tools for files again to read, search and edit files."))
}

// writeFirstRequestAttachments writes the attachments of the first request: the session context, the date and the texts for commits.
func (l *contextAttachmentWriter) writeFirstRequestAttachments() error {
	if !l.contextPending || l.promptNotSent || l.conversation.resumed && l.conversation.promptID == "" { // no prompt yet: /compact
		return nil
	}
	var lines []any
	l.contextPending, l.contextWritten = false, !l.conversation.options.Machine.IsBare
	if !l.conversation.resumed && !l.conversation.isFirstConversationInTerminal() {
		lines = append(lines, l.conversation.atisLatchLine())
	}
	if l.contextWritten { // otherwise, the lines follow the first request
		lines = append(lines, l.takeContextDateAttributionLines("")...)
	}
	return l.lines.writeAfterPendingLines(lines...)
}

func (l *contextAttachmentWriter) takeLinesAfterCompaction(restored []*protocol.AttachmentAdded) (lines []any) {
	for _, at := range restored {
		lines = append(lines, l.conversation.takeNextLineOfAddedAttachment(at))
	}
	l.environmentWritten, l.describedStyle, l.attribution, l.listed, l.autoModeCompacted = true, "", "", announcedToolsAndServers{}, true
	now := l.currentSessionContextOf("")
	return append(append(lines, l.takeToolAgentAndSkillLines("", now, false)...), l.takeEnvironmentSnapshotLines("", now)...)
}

// autoOrBypassModeAttachment describes a mode in which the user does not approve calls; nil means another mode.
func (now SessionContext) autoOrBypassModeAttachment() attachment {
	steers, bypass, auto := now.BashSteer != "", now.ShellMode == protocol.ModeBypass, now.ShellMode == protocol.ModeAuto
	if (!steers || !bypass) && (!auto || !steers && !now.ExplainsAuto) {
		return nil
	}
	about := newAttachment("auto_mode", "autoModeConsentFlow", false, "finishExposedWork", false, "bashFirst", steers)
	if steers {
		about = about.with("bashFirstSteer", now.BashSteer)
	}
	return about.with("steerOnly", steers, "bypass", bypass)
}

func (l *contextAttachmentWriter) takeAutoOrBypassModeStartLines(agentID string, now SessionContext) []any {
	if about := now.autoOrBypassModeAttachment(); about != nil {
		return []any{l.conversation.takeNextReminderLine(agentID, about, "In this permission mode Bash is welcome wherever it is the simpler tool.")}
	}
	return nil
}

// Plan mode is repeated to the model after some prompts, usually in fewer words (observed with 2.1.330).
const promptsBetweenPlanModeReminders, planModeRemindersPerFullOne = 5, 5

// takePlanModeLine returns the attachment that says that plan mode begins ("plan_mode") or has ended ("plan_mode_exit").
func (l *contextAttachmentWriter) takePlanModeLine(attachmentType string) protocol.AttachmentLine {
	file := filepath.Join(l.conversation.options.StateDir, "plans", l.conversation.ensurePlanName("")+".md")
	_, err := os.Stat(file)
	about := newAttachment(attachmentType)
	if attachmentType == "plan_mode" {
		about = about.with("reminderType", map[bool]string{true: "full", false: "sparse"}[l.planModeReminders%planModeRemindersPerFullOne == 0], "isSubAgent", false)
		l.planModeReminders, l.promptsInPlanMode = l.planModeReminders+1, 0
	}
	about = about.with("planFilePath", file, "planExists", err == nil)
	return l.conversation.takeNextReminderLine("", about, attachmentType+": the plan file is "+file)
}

func (l *contextAttachmentWriter) recordMaxUsedTokens(agentID, model string, u protocol.Usage) {
	if !claudecode.FactsOfModel(model).Prompts.ToldRemainingTokens {
		return
	}
	if l.usedTokens == nil {
		l.usedTokens = map[string]int{}
	}
	l.usedTokens[agentID] = max(l.usedTokens[agentID], u.InputTokens+u.CacheCreationInputTokens+u.CacheReadInputTokens+u.OutputTokens)
}

// takeRemindersOfEachRequest returns the reminders of the tokens and the money that the model may still spend, and of the output style.
func (l *contextAttachmentWriter) takeRemindersOfEachRequest(agentID string, left protocol.RemainingLimits) (lines []any) {
	if left.Tokens > 0 {
		text := "<total_tokens>" + strconv.Itoa(left.Tokens-l.usedTokens[agentID]) + " tokens left</total_tokens>"
		lines = append(lines, l.conversation.takeNextReminderLine(agentID, newAttachment("total_tokens_reminder", "text", text), text))
	}
	if left.BudgetUSD > 0 {
		remaining := left.BudgetUSD - left.SpentUSD
		budget := newAttachment("budget_usd", "used", left.SpentUSD, "total", left.BudgetUSD, "remaining", remaining)
		text := "USD budget: $" + protocol.FormatNumber(left.SpentUSD) + "/$" + protocol.FormatNumber(left.BudgetUSD) + "; $" + protocol.FormatNumber(remaining) + " remaining"
		lines = append(lines, l.conversation.takeNextReminderLine(agentID, budget, text))
	}
	if agentID == "" && l.describedStyle != "" {
		lines = append(lines, l.conversation.takeNextReminderLine("", newAttachment("output_style", "style", l.describedStyle), "The output style is "+l.describedStyle+"."))
	}
	return lines
}

func (l *contextAttachmentWriter) takeEnvironmentSnapshotLines(agentID string, now SessionContext) []any {
	m := l.conversation.options.Machine
	dirs, dir, isWorktree := append([]string{}, now.AdditionalDirs...), l.conversation.workingDirOf(agentID), m.IsWorktree
	if agentID != "" && l.conversation.options.Context != nil && l.conversation.options.Context.AgentWorktreeOrChangedDir(agentID) != "" {
		dirs, isWorktree = append(dirs, dir), true
	}
	return append([]any{
		l.conversation.takeNextReminderLine(agentID, newAttachment("environment", "snapshot", m.snapshot(dir, dirs, isWorktree)),
			"# Environment\n - Working directory: "+dir+"\n - Git repository: "+strconv.FormatBool(m.IsGitRepo)+"\n - Platform: "+m.Platform+"\n - Shell: "+m.Shell+"\n - System: "+m.OSVersion),
		l.takeModelIdentityLine(agentID, now),
	}, l.takeOutputStyleChangeLines(agentID, now)...)
}

func (l *contextAttachmentWriter) takeModelIdentityLine(agentID string, currentContext SessionContext) protocol.AttachmentLine {
	var name, cutoff any
	text := "You are powered by the model " + currentContext.Model + "."
	if currentContext.ModelName != "" {
		name = currentContext.ModelName
		text = "You are powered by the model named " + currentContext.ModelName + ". The exact model ID is " + currentContext.Model + "."
	}
	if currentContext.KnowledgeCutoff != "" {
		cutoff = currentContext.KnowledgeCutoff
		text += " Assistant knowledge cutoff is " + currentContext.KnowledgeCutoff + "."
	}
	if agentID == "" {
		l.describedModel = currentContext.Model
	}
	return l.conversation.takeNextReminderLine(agentID, newAttachment("model", "identity", attachment{}.with("modelId", currentContext.Model, "marketingName", name, "knowledgeCutoff", cutoff), "text", text), text)
}

// takeAdditionalDirsChangeLines returns the line that reminds the model of added or removed directories; nil means no change.
func (th *conversation) takeAdditionalDirsChangeLines(dirsBefore, dirsAfter []string) []any {
	change := environmentChange{Field: "additionalWorkingDirectories", Added: missingFrom(dirsBefore, dirsAfter), Removed: missingFrom(dirsAfter, dirsBefore)}
	if len(change.Added)+len(change.Removed) == 0 {
		return nil
	}
	return []any{th.takeEnvironmentChangeLine(dirsAfter, change, "The additional working directories are now: "+strings.Join(dirsAfter, ", "))}
}

func (th *conversation) takeEnvironmentChangeLine(additionalDirs []string, change environmentChange, text string) protocol.AttachmentLine {
	m := th.options.Machine
	snapshot := m.snapshot(th.workingDirOf(""), append([]string{}, additionalDirs...), m.IsWorktree)
	return th.takeNextReminderLine("", newAttachment("environment", "snapshot", snapshot, "changes", []environmentChange{change}), text)
}

// missingFrom returns the elements of all that are not in known. The result is never nil.
func missingFrom(known, all []string) []string {
	return slices.DeleteFunc(append([]string{}, all...), func(s string) bool { return slices.Contains(known, s) })
}

func (m SessionEnvironment) snapshot(dir string, dirs []string, isWorktree bool) environmentSnapshot {
	return environmentSnapshot{WorkingDirectory: dir, IsWorktree: isWorktree, IsGitRepo: m.IsGitRepo, AdditionalDirs: dirs, Platform: m.Platform, Shell: m.Shell, OSVersion: m.OSVersion}
}

func (l *contextAttachmentWriter) takeToolAgentAndSkillLines(agentID string, now SessionContext, isFirstListing bool) []any {
	var lines []any
	if now.Deferred != nil {
		lines = l.appendDeferredToolsChange(lines, agentID, now, isFirstListing)
	}
	if now.Agents != nil {
		names, texts := namesAndTexts(now.Agents)
		builtIn, _ := namesAndTexts(slices.DeleteFunc(slices.Clone(now.Agents), func(a ListedItem) bool { return !a.BuiltIn }))
		agents := newAttachment("agent_listing_delta", "addedTypes", names, "addedLines", texts, "builtInTypes", builtIn, "builtInPluginTypes", []string{}, "removedTypes", []string{}, "isInitial", true, "showConcurrencyNote", !claudecode.FactsOfModel(now.Model).Prompts.NoConcurrencyNote)
		lines = append(lines, l.conversation.takeNextReminderLine(agentID, agents, "Agents of the Agent tool:\n"+strings.Join(texts, "\n")))
	}
	if now.Deferred != nil {
		lines = l.appendServerInstructionsChange(lines, agentID, now)
	}
	if now.Skills != nil {
		names, texts := namesAndTexts(now.Skills)
		content, digests := strings.Join(texts, "\n"), []string(nil)
		for _, text := range texts {
			digests = append(digests, fmt.Sprintf("%.8x", sha256.Sum256([]byte(text))))
		}
		isInitial := agentID != "" || l.listedSkills == nil || slices.Contains(l.listedSkills, names[0])
		if agentID == "" {
			l.listedSkills = append(l.listedSkills, names...)
		}
		skills := newAttachment("skill_listing", "content", content, "skillCount", len(names), "isInitial", isInitial, "names", names, "digests", digests)
		lines = append(lines, l.conversation.takeNextReminderLine(agentID, skills, "Skills of the Skill tool:\n"+content))
	}
	return lines
}

// takeToolAndServerChangeLines returns the attachments about what has changed since the last ones; without earlier ones, it returns nil.
func (l *contextAttachmentWriter) takeToolAndServerChangeLines(now SessionContext) []any {
	if l.listed.tools == nil {
		return nil
	}
	return l.appendServerInstructionsChange(l.appendDeferredToolsChange(nil, "", now, true), "", now)
}

func (l *contextAttachmentWriter) appendDeferredToolsChange(lines []any, agentID string, now SessionContext, withServers bool) []any {
	told := &announcedToolsAndServers{}
	if agentID == "" {
		told = &l.listed
	}
	isAvailable := func(name string) bool { return told.tools[name] }
	wasListed := func(name string) bool { _, was := told.tools[name]; return was }
	added := slices.DeleteFunc(append([]string{}, now.Deferred...), isAvailable)
	described := slices.DeleteFunc(slices.Clone(added), wasListed)
	readded := missingFrom(described, added)
	removed := slices.DeleteFunc(missingFrom(now.Deferred, slices.Sorted(maps.Keys(told.tools))), func(name string) bool { return !isAvailable(name) })
	isNewFailure := func(f FailedServer) bool { return !slices.Contains(told.failedServers, f) }
	if len(added)+len(removed) == 0 && (told.tools == nil || !slices.ContainsFunc(now.FailedServers, isNewFailure)) {
		return lines
	}
	told.updateTools(added, removed, now.FailedServers)
	tools := newAttachment("deferred_tools_delta", "addedNames", added, "addedLines", described, "removedNames", removed)
	if slices.ContainsFunc(append(readded, removed...), func(name string) bool { return strings.HasPrefix(name, "mcp__") }) {
		tools = tools.with("causeNeutral", true)
	}
	tools = tools.with("wireHiddenNames", []string{}, "readdedNames", readded)
	if withServers {
		tools = tools.with("pendingMcpServers", []string{})
		if !l.conversation.options.Machine.IsTerminal {
			tools = tools.with("needsAuthMcpServers", append([]string{}, now.ServersToLogInTo...))
		}
		tools = tools.with("failedMcpServers", append([]FailedServer{}, now.FailedServers...))
	}
	if claudecode.FactsOfModel(now.Model).Prompts.TextAfterToolBlocks {
		tools = tools.with("textAfterToolBlocks", true)
	}
	text := "Tools that ToolSearch loads:\n" + strings.Join(added, "\n")
	if len(removed) > 0 {
		text += "\nTools that are gone:\n" + strings.Join(removed, "\n")
	}
	return append(lines, l.conversation.takeNextReminderLine(agentID, tools, text))
}

func (l *contextAttachmentWriter) appendServerInstructionsChange(lines []any, agentID string, now SessionContext) []any {
	told := []string(nil)
	if agentID == "" {
		told = l.listed.instructedServers
	}
	added := slices.DeleteFunc(slices.Clone(now.ServerInstructions), func(server ListedItem) bool { return slices.Contains(told, server.Name) })
	names, _ := namesAndTexts(now.ServerInstructions)
	removed := missingFrom(names, told)
	if len(added)+len(removed) == 0 {
		return lines
	}
	if agentID == "" {
		l.listed.instructedServers = names
	}
	names, texts := namesAndTexts(added)
	servers := newAttachment("mcp_instructions_delta", "addedNames", names, "addedBlocks", append([]string{}, texts...), "removedNames", removed)
	return append(lines, l.conversation.takeNextReminderLine(agentID, servers, "# MCP Server Instructions\n\n"+strings.Join(append(texts, removed...), "\n\n")))
}

func namesAndTexts(list []ListedItem) (names, texts []string) {
	names = []string{}
	for _, entry := range list {
		names, texts = append(names, entry.Name), append(texts, entry.Text)
	}
	return names, texts
}

func (l *contextAttachmentWriter) takeContextDateAttributionLines(agentID string) []any {
	return append(l.takeInstructionsGitAndDateLines(agentID), l.takeCommitAndPRAttributionLines(agentID)...)
}

// takeInstructionsGitAndDateLines returns the attachments instructions, session_context (the state of the repository) and date.
func (l *contextAttachmentWriter) takeInstructionsGitAndDateLines(agentID string) []any {
	today := l.conversation.options.Clock.Now().Format("2006-01-02")
	var lines []any
	now := l.currentSessionContextOf(agentID)
	if len(now.Instructions) > 0 {
		line := l.conversation.takeNextReminderLine(agentID, newAttachment("instructions", "files", now.Instructions), now.Instructed)
		line.RenderedRole = "user"
		lines = append(lines, line)
	}
	state := l.conversation.takeNextAttachmentLine(agentID, "", newAttachment("session_context", "context", map[string]string{}))
	text := ""
	if source := l.conversation.options.Context; source != nil && !l.conversation.writer.isDisabled {
		text = source.GitStatus(agentID)
	}
	if text != "" {
		state.Attachment = newAttachment("session_context", "context", map[string]string{"gitStatus": text})
		state.RenderedRole, state.Rendered = "user", []protocol.AttachmentText{{Content: protocol.InReminderTags("# gitStatus\n" + text)}}
	}
	return append(lines, state, l.conversation.takeNextReminderLine(agentID, newAttachment("date", "date", today), "Today's date is "+today+"."))
}

func (l *contextAttachmentWriter) takeCommitAndPRAttributionLines(agentID string) []any {
	now := l.currentSessionContextOf(agentID)
	commit := *cmp.Or(l.conversation.options.Commit, new("Co-Authored-By: "+now.Signature+" <noreply@anthropic.com>"))
	pr := *cmp.Or(l.conversation.options.PR, new("🤖 Generated with [Claude Code](https://claude.com/claude-code)"))
	if commit+pr == "" || now.NoCommitTexts || agentID == "" && commit == l.attribution {
		return nil
	}
	if agentID == "" {
		l.attribution = commit
	}
	signed := newAttachment("remote_session_change", "url", nil, "commit", commit, "pr", pr, "sendUserFileHint", false, "managedCommit", false, "managedPr", false)
	line := l.conversation.takeNextReminderLine(agentID, signed, "Commits end with:\n"+commit+"\nPull requests end with:\n"+pr)
	line.RenderedRole, line.WithToolResult = "user", true
	return []any{line}
}
