package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// sessionContext describes the session to the host (init) and to the model (with the first prompt).
type sessionContext struct {
	plan            launch.Plan
	state           *simulator.SessionState
	tools           *toolbox
	records         *recorder
	spentUSD        func() float64 // the costs of the session in this process; called while an event is recorded
	warnedModels    []string
	hasCheckedCalls atomic.Bool // the API has checked the tool calls of an earlier request
}

// InitEventWithModelWarning returns the init event of a turn from flags, settings and the current servers.
func (s *sessionContext) InitEventWithModelWarning(context.Context) protocol.InitEvent {
	s.warnAboutUnknownModel()
	plan, v := &s.plan, s.tools.servers
	ev := plan.Profile.InitEventTemplate()
	ev.FastModeState, ev.FastModeDisabledReason = plan.Profile.FastMode(plan.Model.Name)
	if plan.Limits.NoCompactCommand {
		ev.SlashCommands = slices.DeleteFunc(ev.SlashCommands, func(name string) bool { return name == "compact" })
	}
	ev.CWD, ev.OriginalCWD = cmp.Or(s.ChangedDirectory(), plan.CWD), plan.CWD
	ev.AdditionalDirectories = append(ev.AdditionalDirectories, s.additionalDirsListedInInit(s.tools.policy.AdditionalDirectories())...)
	ev.APIKeySource, ev.Betas = plan.APIKeySource, plan.Model.Betas
	ev.OutputStyle = s.state.SessionStateSnapshot().OutputStyle
	if plan.State != "" && !plan.Customization.Bare && !plan.Customization.Restricted && !plan.Customization.SafeMode && !plan.Settings.NoMemory {
		ev.MemoryPaths = &protocol.MemoryPaths{Auto: projectMemoryDirs(*plan, filepath.Dir(s.records.transcript.Path()))[0] + string(filepath.Separator)}
	}
	ev.MessagingSocketPath = RealCLIMessagingSocketPath(*plan)
	tools := slices.DeleteFunc(v.manager.Tools(), func(t protocol.Tool) bool {
		return s.tools.inventory.isMCPToolDenied(t) || t.Name == plan.Permission.PromptTool
	})
	for _, st := range v.manager.Servers() {
		ev.MCPServers = append(ev.MCPServers, protocol.MCPServer{Name: st.Name, Status: st.Status, Source: st.Source})
	}
	ev.MCPServerErrors = v.plan.InitErrors
	if plan.Output.Format != "stream-json" { // only a host that reads stream-json can be woken up
		ev.Capabilities = slices.DeleteFunc(ev.Capabilities, func(c string) bool { return c == "lifecycle_wakeup_source_v1" })
	}
	ev.Tools = appendMCPNames(s.tools.inventory.initEventBuiltinTools(v.manager.HasResources()), tools)
	_, disabledPlugins := plan.Settings.EnabledAndDisabledPlugins()
	ev.Plugins = slices.DeleteFunc(ev.Plugins, func(p protocol.Plugin) bool { return slices.Contains(disabledPlugins, p.Source) })
	plan.Catalog.FillInit(&ev)
	for _, st := range v.manager.Servers() {
		for _, p := range st.Prompts {
			ev.SlashCommands = append(ev.SlashCommands, p.SlashCommand())
		}
	}
	if plan.Customization.NoCommands {
		ev.SlashCommands, ev.Skills, ev.TerminalSlashCommands = []string{}, []string{}, nil
	}
	return ev
}

// FirstPromptContext returns what the model receives in addition to the first prompt. The caller inserts the
// output of hooks between the two lists. beforeHookOutput contains the instruction files. afterHookOutput
// contains the output style, the instructions of MCP servers and, in plan mode, the path of the plan file.
func (s *sessionContext) FirstPromptContext(prompt string) (beforeHookOutput, afterHookOutput []string) {
	if text := instructionText(s.plan.Customization.InstructionFiles); text != "" {
		beforeHookOutput = append(beforeHookOutput, text)
	}
	style := s.state.SessionStateSnapshot().OutputStyle
	if text := s.plan.Catalog.OutputStyleText(style); text != "" {
		afterHookOutput = append(afterHookOutput, "# Output Style: "+style+"\n"+text)
	}
	texts := []string{"# MCP Server Instructions"}
	for _, server := range s.tools.servers.instructions() {
		texts = append(texts, server.Text)
	}
	if len(texts) > 1 {
		afterHookOutput = append(afterHookOutput, strings.Join(texts, "\n\n"))
	}
	if s.tools.policy.Mode() == protocol.ModePlan && !s.plan.Transcript.NoPersist {
		afterHookOutput = append(afterHookOutput, "Plan mode is active. The plan file is "+s.plan.PlanModeFile(s.records.transcript.EnsurePlanName(prompt)))
	}
	return beforeHookOutput, afterHookOutput
}

// additionalDirsListedInInit selects the additional directories that init lists. It lists all that the host added. Of
// the others, it omits those below the session's directory and those that only the project's settings name.
func (s *sessionContext) additionalDirsListedInInit(candidates []permission.WorkingDirectory) []string {
	var own, others []settings.AdditionalWorkingDirectory
	for _, d := range s.plan.Settings.Permissions.Directories {
		if d.Source == settings.SourceProject || d.Source == settings.SourceLocal {
			own = append(own, d)
		} else {
			others = append(others, d)
		}
	}
	hidden, told := s.plan.AbsolutePathsOfExistingDirs(own), s.plan.AbsolutePathsOfExistingDirs(others)
	var dirs []string
	for _, d := range candidates {
		fromProject := d.Source == launch.SourceReportedForDirectoriesFromSettings && slices.Contains(hidden, d.Path) && !slices.Contains(told, d.Path)
		if !fromProject && (d.Source == HostAddedDirSource || !strings.HasPrefix(d.Path+"/", s.plan.CWD+"/")) {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

// warnAboutUnknownModel warns on stderr, once for each model, that the real CLI does not know the
// current model (spec: cli-observed 1). It accepts the scenario's default model under any name.
func (s *sessionContext) warnAboutUnknownModel() {
	name := s.state.NextRequestModel()
	if claudecode.FactsOfModel(claudecode.ResolveModel(name)).IsKnown || name == s.plan.Scenario.DefaultModel || slices.Contains(s.warnedModels, name) {
		return
	}
	s.warnedModels = append(s.warnedModels, name)
	note, err := protocol.Marshal(struct {
		Model  string `json:"model"`
		Source string `json:"query_source"`
	}{name, "sdk"})
	if s.plan.Output.Format == "text" {
		fmt.Fprintf(s.records.stderr, "Claude Code doesn't recognize the model %q, so it assumes a context window of 1m tokens. Update Claude Code, or see "+
			"https://code.claude.com/docs/en/model-config#correct-the-window-for-a-gateway-or-custom-model-id to set the window.\n", name)
	}
	if err == nil {
		fmt.Fprintf(s.records.stderr, "[claude-code:unrecognized_model] %s\n", note)
	}
}

// SessionContext returns the context that the model sees in addition to the first prompt.
func (s *sessionContext) SessionContext(agentID string) transcript.SessionContext {
	requester, name := s.requestingAgentAndModel(agentID)
	listed := s.builtinToolsOfferedTo(requester)
	facts := claudecode.FactsOfModel(claudecode.ResolveModel(s.state.NextRequestModel()))
	now := transcript.SessionContext{Model: name, KnowledgeCutoff: claudecode.FactsOfModel(name).KnowledgeCutoff, BashSteer: facts.Prompts.PreferBash, ExplainsAuto: facts.Prompts.AutoModeWithoutBashHint}
	_, now.Deferred = s.toolDefinitions(requester, listed)
	if now.Launch = requester.Launch; now.Launch.WorktreePath != "" {
		a, _ := s.tools.worktreeAgents.find(agentID)
		now.Launch.WorktreeBranch = a.tree.Branch
	}
	now.FailedServers, now.ServersToLogInTo = s.tools.servers.failedServersAndServersToLogInTo()
	now.ServerInstructions = s.tools.servers.instructions()
	now.Instructed = instructionText(s.plan.Customization.InstructionFiles)
	for _, m := range s.plan.Customization.InstructionFiles {
		if claudecode.AgentResultHasOnlyReport(requester.Name) {
			break
		}
		now.Instructions = append(now.Instructions, transcript.InstructionFile{Path: m.Path, Type: m.Type, Content: strings.TrimSpace(m.Text)})
	}
	style := s.state.SessionStateSnapshot().OutputStyle
	now.StyleInstructions = s.plan.Catalog.OutputStyleText(style)
	now.OutputStyle = map[bool]string{true: style}[now.StyleInstructions != ""]
	now.TempDir = sessionDirBelowTaskTemp(s.plan, s.records.transcript.Path(), s.records.ID())
	now.AdditionalDirs = s.additionalDirs()
	now.Remaining = s.remainingLimits(name)
	if shown := claudecode.ModelDisplayName(name); shown != name && claudecode.FactsOfModel(name).IsKnown {
		now.ModelName = shown
	}
	now.Signature = "Claude " + cmp.Or(now.ModelName, "Code")
	shell := slices.Contains(listed, "Bash")
	now.NoCommitTexts = !shell || s.plan.Customization.NoGitInstructions
	if shell && slices.Contains(listed, "Edit") {
		now.ShellMode = s.tools.Mode()
	}
	if slices.Contains(listed, "Agent") {
		isDenied := func(a catalog.Agent) bool { text, _ := s.tools.policy.DenyRuleForAgentType(a.Name); return text != "" }
		for _, a := range slices.DeleteFunc(s.plan.Catalog.Agents(), isDenied) {
			now.Agents = append(now.Agents, transcript.ListedItem{Name: a.Name, Text: "- " + a.Name + ": " + a.Description + " (Tools: " + toolsTextOfAgent(a) + ")", BuiltIn: a.Source == "built-in"})
		}
	}
	if slices.Contains(listed, "Skill") {
		for _, k := range s.plan.Catalog.Commands() {
			if k.IsListedForModel() && s.tools.skills.isAllowed(k.Name) {
				now.Skills = append(now.Skills, transcript.ListedItem{Name: k.Name, Text: k.LineInModelContext()})
			}
		}
		for _, b := range s.plan.Profile.BuiltInSkillsListedForModel() {
			if s.tools.skills.isAllowed(b.Name) {
				now.Skills = append(now.Skills, transcript.ListedItem{Name: b.Name, Text: "- " + b.Name, BuiltIn: true})
			}
		}
	}
	return now
}

func (s *sessionContext) remainingLimits(model string) protocol.RemainingLimits {
	left := protocol.RemainingLimits{BudgetUSD: s.plan.Limits.MaxBudgetUSD, SpentUSD: s.spentUSD()}
	if claudecode.FactsOfModel(model).Prompts.ToldRemainingTokens {
		left.Tokens = claudecode.TokensOfSession
	}
	return left
}

func (s *sessionContext) requestingAgentAndModel(agentID string) (requestingAgent agent.RequestingAgent, modelName string) {
	r := s.tools.agents.RequestingAgent(agentID)
	if r.ModelName == "" && s.tools.policy.Mode() == protocol.ModePlan {
		return r, claudecode.ResolveModelInPlanMode(s.state.NextRequestModel())
	}
	return r, claudecode.ResolveModel(cmp.Or(r.ModelName, s.state.NextRequestModel()))
}

// builtinToolsOfferedTo returns the names of the built-in tools that the main conversation or an agent can call.
func (s *sessionContext) builtinToolsOfferedTo(r agent.RequestingAgent) []string {
	names := s.tools.inventory.offeredBuiltinTools(s.tools.servers.manager.HasResources())
	if r.Name == "" {
		names = s.tools.inventory.initEventBuiltinTools(s.tools.servers.manager.HasResources())
	}
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // the name used in calls
	}
	return r.OfferedTools(names, func(name string) bool { return s.tools.inventory.hasBuiltinTool(name) })
}

// toolDefinitions returns the requester's tools. deferred lists those that the model must load with ToolSearch.
func (s *sessionContext) toolDefinitions(r agent.RequestingAgent, offered []string) (tools []protocol.Tool, deferred []string) {
	tools, _ = s.tools.Tools(s.tools.servers.callContext) // if the definitions cannot be read, the model gets only names
	tools = slices.DeleteFunc(tools, func(t protocol.Tool) bool {
		return t.Server != "" && (!r.AllowsMCPTool(t) || t.Name == s.plan.Permission.PromptTool)
	})
	deferred = []string{}
	for _, def := range tools {
		isListed := def.Server != "" || slices.Contains(offered, def.Name)
		if isListed && s.tools.servers.isDeferred(def) && slices.Contains(offered, "ToolSearch") {
			deferred = append(deferred, def.Name)
		}
	}
	for _, name := range offered { // these tools have no definition
		if t := claudecode.ToolNamed(name); t.Deferred && t.Unsimulated && slices.Contains(offered, "ToolSearch") {
			deferred = append(deferred, name)
		}
	}
	slices.Sort(deferred)
	return tools, slices.Compact(deferred)
}

func toolsTextOfAgent(a catalog.Agent) string {
	switch {
	case a.Tools != nil && !slices.Contains(a.Tools, "*"):
		isDisallowed := func(tool string) bool { return slices.Contains(a.Disallowed, tool) }
		return cmp.Or(strings.Join(slices.DeleteFunc(slices.Clone(a.Tools), isDisallowed), ", "), "None")
	case len(a.Disallowed) > 0:
		return "All tools except " + strings.Join(a.Disallowed, ", ")
	}
	if a.Source != "built-in" {
		return "All tools"
	}
	return "*"
}

// ChangedDirectory returns the directory that a command of the model changed to, or "".
func (s *sessionContext) ChangedDirectory() string {
	if s.tools.builtin == nil {
		return ""
	}
	if dir := s.tools.Dir(); dir != s.plan.CWD {
		return dir
	}
	return ""
}

// AgentWorktreeOrChangedDir returns the worktree of an agent, or ""; for the main conversation, see [sessionContext.ChangedDirectory].
func (s *sessionContext) AgentWorktreeOrChangedDir(agentID string) string {
	if agentID == "" {
		return s.ChangedDirectory()
	}
	a, _ := s.tools.worktreeAgents.find(agentID)
	return a.tree.Path
}

// GitStatus describes the repository for the model, or returns "". Agents of type Explore or Plan, and a main conversation without the
// default system prompt, get no description.
func (s *sessionContext) GitStatus(agentID string) string {
	if s.plan.Customization.NoGitInstructions || agentID == "" && s.plan.Prompt.ReplacesSystem || !s.plan.Transcript.Machine.IsGitRepo || claudecode.AgentResultHasOnlyReport(s.tools.agents.RequestingAgent(agentID).Name) {
		return ""
	}
	return gitworktree.Git{Environ: s.tools.options.Environ}.DescribeRepository(s.tools.servers.callContext, cmp.Or(s.AgentWorktreeOrChangedDir(agentID), s.plan.CWD))
}

func (s *sessionContext) additionalDirs() []string {
	var dirs []string
	for _, d := range s.tools.policy.AdditionalDirectories() {
		if d.Source == HostAddedDirSource || !strings.HasPrefix(d.Path+"/", s.plan.CWD+"/") {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

// RecordFilesBeforePrompt records the files before a prompt that is typed in a terminal.
func (s *sessionContext) RecordFilesBeforePrompt(promptUUID string) {
	s.records.recordFileCheckpoints(&protocol.PromptAccepted{UUID: promptUUID})
}

func (s *sessionContext) CurrentModel(agentID string) transcript.CurrentModel {
	requester, name := s.requestingAgentAndModel(agentID)
	effort := s.state.ForAgent(name).SessionStateSnapshot().Effort
	if effort != "" {
		effort = cmp.Or(requester.Effort, effort)
	}
	return transcript.CurrentModel{Name: claudecode.ModelDisplayName(claudecode.ResolveModel(s.state.NextRequestModel())), Effort: effort, PerTurnEffort: effort != "" && claudecode.FactsOfModel(name).EffortPerTurn}
}

// RequestContext returns the parts of requests to the model other than messages.
func (s *sessionContext) RequestContext(agentID string) transcript.RequestContext {
	requester, name := s.requestingAgentAndModel(agentID)
	offered, facts := s.builtinToolsOfferedTo(requester), claudecode.FactsOfModel(name)
	thinking := s.state.SessionStateSnapshot().Thinking
	tools, deferred := s.toolDefinitions(requester, offered)
	now := transcript.RequestContext{Deferred: deferred, SystemTurns: !facts.HasTaskList, AnthropicAPI: s.plan.Profile.UsesDefaultURL(), PromptCache: s.plan.Profile.Environment().PromptCacheTTL(), AdditionalDirs: s.additionalDirs(), NoSystemPrompt: s.plan.Prompt.ReplacesDefaultWithEmpty(), Remaining: s.remainingLimits(name), Source: s.modelRequestSource(requester)}
	updates := (agentID == "" || requester.InBackground || s.plan.Output.AgentText) && (s.plan.Output.Format == "stream-json" || s.plan.Output.Format == "json" && s.plan.Output.Verbose || s.plan.Records.Run.Interactive)
	now.ChecksCalls = agentID == "" && (s.plan.Records.Run.Interactive || !s.plan.Permission.BypassAllowed) && s.tools.policy.UsesClassifier()
	s.hasCheckedCalls.CompareAndSwap(false, now.ChecksCalls && !s.plan.Records.Run.Interactive)
	fast, _ := s.plan.Profile.FastMode(name)
	now.Params = protocol.RequestParams{Model: name, MaxTokens: facts.MaxOutput, Betas: s.plan.Profile.RequestBetas(claudecode.BetaHeaderConditions{
		Model: facts.Name, CanThink: facts.ThinkingMode() != "", EffortPerTurn: facts.EffortPerTurn, SystemReminders: now.SystemTurns, Bare: s.plan.Customization.Bare,
		MillionTokens: len(s.plan.Model.Betas) > 0, FastMode: fast == "on", HasToolSearch: len(deferred) > 0, HasEffort: facts.DefaultEffort != "", ThinkingUpdates: updates && thinking.LetsModelThink(facts), ChecksCalls: now.ChecksCalls, CheckedCalls: now.ChecksCalls || agentID == "" && s.hasCheckedCalls.Load(),
	})}
	now.Params.Speed = map[string]string{"on": "fast"}[fast]
	setThinking(&now.Params, thinking, facts, updates)
	if level := s.CurrentModel(agentID).Effort; level != "" {
		now.Params.OutputConfig = &protocol.OutputConfig{Effort: level}
		if facts.EffortPerTurn {
			now.MessageConfig = now.Params.OutputConfig
		}
	}
	now.Placeholder = len(deferred) > 0 || agentID == "" && !s.plan.Tools.NoSearch && !s.plan.Customization.Bare
	defined := map[string]protocol.Tool{}
	for _, t := range tools {
		defined[t.Name] = t
		if t.Server != "" {
			now.Tools = append(now.Tools, t)
		}
	}
	for _, name := range offered {
		t := defined[name]
		t.Name = name
		now.Tools = append(now.Tools, t)
	}
	if requester.Tools == nil {
		sorted := now.Tools
		if last := len(sorted) - 1; s.tools.inventory.hostSchema.Load() && last >= 0 { // StructuredOutput stays last
			sorted = sorted[:last]
		}
		slices.SortFunc(sorted, func(a, b protocol.Tool) int {
			return cmp.Or(cmp.Compare(min(len(a.Server), 1), min(len(b.Server), 1)), compareToolNamesTaskFirst(a.Name, b.Name))
		})
	}
	return now
}

// setThinking sets the parameters of a request that are about thinking. If a model that can think with a budget must not think, the
// request sets the default temperature.
func setThinking(p *protocol.RequestParams, allowed claudecode.Thinking, model claudecode.ModelFacts, showUpdates bool) {
	t := &protocol.RequestThinking{Type: allowed.Mode(model), Display: "omitted"}
	switch t.Type {
	case "", "disabled":
		if t.Type != "" {
			p.Thinking = &protocol.RequestThinking{Type: t.Type}
		}
		if model.ThinkingMode() == "enabled" {
			p.Temperature = 1
		}
		return
	case "enabled":
		t.BudgetTokens = model.MaxOutput - 1
		if allowed.Budget != nil {
			t.BudgetTokens = *allowed.Budget
		}
	}
	if showUpdates {
		t.Display = "updates"
	}
	p.Thinking, p.ContextManagement = t, &protocol.RequestContextManagement{Edits: []protocol.ContextManagementRule{{Type: "clear_thinking_20251015", Keep: "all"}}}
}

func (s *sessionContext) modelRequestSource(requestingAgent agent.RequestingAgent) string {
	a, _ := s.plan.Catalog.Agent(requestingAgent.Name)
	switch {
	case requestingAgent.Name == "" && s.plan.Records.Run.Interactive:
		return "repl_main_thread"
	case requestingAgent.Name == "":
		return "sdk"
	case requestingAgent.Skill != "":
		return "agent:custom"
	case a.Source == "built-in":
		return "agent:builtin:" + requestingAgent.Name
	}
	return "agent:custom:" + requestingAgent.Name
}

// HostAddedDirSource is the source of working directories that a host added while the session runs.
const HostAddedDirSource = "session"
