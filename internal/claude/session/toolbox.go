package session

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/rest"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolbox holds the tools of the session and the middleware around their calls.
type toolbox struct {
	executor.Executor // the tools with their middleware
	builtin           *builtin.Tools
	servers           *sessionMCPServers
	policy            *permissionPolicy
	inventory         *toolInventory
	breakpointGates   breakpointGates
	instructions      *instructionFileTracker
	aliases           map[string]string // requested tool → tool that runs instead; set by the host
	sequentialAgents  bool              // agents run one after another, for a repeatable run
	options           builtin.Options
	hooks             *hook.Runner
	prompter          permission.Prompter // answers questions about calls; nil means none
	skills            *skillLibrary
	worktreeAgents    worktreeAgentTools
	agents            *agent.CallExecutor
	loadedTools       *loadedTools
}

type toolboxDependencies struct {
	host       Host
	state      *simulator.SessionState
	hooks      *sessionHooks
	library    *skillLibrary
	background *backgroundTasksAndAgents
}

func (t *toolbox) createToolsAndMiddleware(plan launch.Plan, deps toolboxDependencies, mcpServers *sessionMCPServers, pol *permissionPolicy) error {
	t.servers, t.policy, t.inventory, t.sequentialAgents = mcpServers, pol, mcpServers.inventory, plan.Clock.IsReproducible()
	t.instructions = &instructionFileTracker{customization: plan.Customization, cwd: plan.CWD, state: deps.state, pathsReceivedBeforeResume: mcpServers.records.transcript.InstructionFilesLoadedByCalls(), receivedPathsByConversation: map[string]map[string]bool{}}
	var err error
	t.options = builtin.Options{
		CWD: plan.CWD, PID: plan.PID, AdditionalDirs: plan.Permission.DirectoryPaths(), OutputDir: mcpServers.records.transcript.ToolResultsDir(),
		Environ: commandEnviron(plan, deps.state.SessionStateSnapshot().Effort, mcpServers.records.ID(), mcpServers.records.transcript.Path()), Clock: plan.Clock, Allowed: t.inventory.hasBuiltinTool, Answers: pol.scriptedAnswers,
		ReadFiles: mcpServers.records.transcript.FilesReadBeforeResume(),
		Hooks:     deps.hooks, Tasks: deps.background.tasks, Skills: deps.library, Modes: pol, Access: fileAccessPolicy{pol, t.inventory}, Paths: deps.background,
	}
	if w := plan.Worktree; w != nil {
		t.options.Worktree = &builtin.Worktree{Worktree: w.Worktree, PreviousDir: w.OriginalDir}
	}
	if t.builtin, err = builtin.New(t.options); err != nil {
		return err
	}
	if t.breakpointGates, err = newUnconnectedBreakpointGates(plan, t); err != nil {
		return err
	}
	t.buildMiddlewareChain(plan, deps)
	return nil
}

// buildMiddlewareChain puts the layers around the tools in order:
// hooks(permission(breakpoint(canned(runCallAndRecordLoadedTools(composite))))).
func (t *toolbox) buildMiddlewareChain(plan launch.Plan, p toolboxDependencies) {
	base := executor.Composite{simulator.StructuredOutputExecutor{}, p.background.agents}
	base = append(base, t.servers.toolsAndResourceTools()...)
	base = append(base, t.newToolSearchOver(append(slices.Clone(base), t.builtin)), builtinCallRouter{t})
	around := layer.HookOptions{Runner: p.hooks.Runner, State: p.state, Location: t, Tools: t, Frames: plan.Output.HookEvents}
	host := t.policy.selectPermissionPrompter(p.host)
	permit := layer.PermissionOptions{Policy: t.policy.Policy, Ask: layer.NewPrompterRacingHooks(around, host), Tools: t, Clock: plan.Clock, ReportChanges: plan.Profile.Has(claudecode.FeatureEditResultsReportChangesMadeByHost), Files: permissionUpdateFiles{plan, t.servers.records}}
	t.agents = p.background.agents
	t.loadedTools = newLoadedTools(t.servers.records.transcript.ResumedHistory())
	t.hooks, t.prompter, t.skills = p.hooks.Runner, host, p.library
	t.Executor = executor.Chain(base,
		layer.Hooks(around), layer.Permission(permit), t.breakpointGates.middleware(plan, t.servers.records), executor.Canned(t.policy.cannedResults), executor.NewMiddleware(t.runCallAndRecordLoadedTools))
}

func (t *toolbox) Dir() string { return t.builtin.Dir() }

func (t *toolbox) ProjectDir() string { return t.options.CWD }

func (t *toolbox) Mode() protocol.PermissionMode { return t.policy.Mode() }

// Prepare returns what changes in a call before it is shown: its input, the tool that runs instead if the host has set an
// alias, and whether it may run in parallel with other calls. Calls that start agents may run in parallel, except in a
// repeatable run. Calls run one after another if a breakpoint of the scenario stops only a limited number of them; otherwise it
// would be left to chance which calls it stops.
func (t *toolbox) Prepare(call protocol.ToolUse) simulator.ToolCallChangesBeforeShown {
	p := simulator.ToolCallChangesBeforeShown{Input: t.builtinToolsForCaller(call).PrepareInput(call), ExecutedName: t.aliases[call.Name]}
	call.Name = cmp.Or(p.ExecutedName, call.Name)
	p.ReadOnly = builtin.ReadOnlyCall(call) || agent.IsAgentOrTask(call.Name) && !t.sequentialAgents
	p.RunsAlone = t.breakpointGates.script != nil && t.breakpointGates.script.HasRuleWithPauseLimit(call.Name)
	return p
}

// Precheck inspects a call right before it runs, and may refuse it. A call with a result in the scenario is never
// refused, because it runs no tool.
func (t *toolbox) Precheck(ctx context.Context, call protocol.ToolUse) simulator.PrecheckResult {
	ready := simulator.PrecheckResult{ObservedInput: t.builtinToolsForCaller(call).ObservedInput(call)}
	if _, known := t.Tool(call.Name); known {
		t.agents.RecordToolKnownToCaller(call)
	}
	if !t.policy.cannedResults.HasResult(call) {
		ready.Refusal = t.reconnectOrRefuseCall(ctx, call)
	}
	return ready
}

// refuseSkillInItsOwnAgent returns the error for a call of the skill that the calling agent runs, or nil.
func (t *toolbox) refuseSkillInItsOwnAgent(call protocol.ToolUse) *protocol.ToolResult {
	name := t.skills.calledSkill(call).Name
	if name == "" || call.Name != "Skill" || call.Agent == nil || t.agents.RequestingAgent(call.Agent.ID).Skill != name {
		return nil
	}
	text := "Skill " + name + " is already executing in this forked context — you are the subagent running it. Execute the instructions in the skill body directly instead of re-invoking the Skill tool."
	refusal := protocol.UsageErrorResult(text)
	refusal.Output = "Error: " + text
	return &refusal
}

// reconnectOrRefuseCall returns the error for a call that no tool of the session accepts, or nil. If the tool may belong to
// a failed MCP server, it first connects this server again.
func (t *toolbox) reconnectOrRefuseCall(ctx context.Context, call protocol.ToolUse) *executor.Result {
	if v, refused := t.policy.FileDenialByRule(call); refused {
		return new(layer.Denial(v))
	}
	if text, refused := t.inventory.unavailableBuiltinToolText(call); refused {
		result := executor.UnknownToolResultWithText(text)
		result.UnknownTool = t.inventory.isAvailable(call.Name) // false if the user has removed the tool
		return new(executor.ResultOf(result))
	}
	if refused := cmp.Or(executor.SearchOrResourceInputError(call), t.builtinToolsForCaller(call).Precheck(ctx, call), t.refuseSkillInItsOwnAgent(call)); refused != nil {
		if def, _ := t.Tool(call.Name); strings.HasPrefix(refused.Content.Text, "<tool_use_error>InputValidationError: ") {
			t.setOrClearUnsentSchema(call, def, refused)
		}
		return new(executor.ResultOf(*refused))
	}
	if _, known := t.Tool(call.Name); known {
		return nil
	}
	note, known := t.servers.reconnectFailedServerOfCall(ctx, call)
	switch {
	case known:
		return nil
	case note != "":
		return new(executor.ResultOf(executor.UnknownToolResultWithText("Error: No such tool available: " + call.Name + ". " + note)))
	}
	names := t.inventory.offeredBuiltinTools(t.servers.manager.HasResources())
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // the name used in calls
	}
	return new(executor.ResultOf(executor.UnknownToolResult(call.Name, names)))
}

func (t *toolbox) Server(toolName string) (serverOrNil *protocol.ServerNameAndSource) {
	if def, ok := t.Tool(toolName); ok && def.Server != "" {
		return &protocol.ServerNameAndSource{Name: def.Server, Source: def.ServerSource}
	}
	return nil
}

// ContentOfHookOutput converts tool output that a hook has replaced to the content of a result; see [builtin.ContentFromHookOutput].
func (t *toolbox) ContentOfHookOutput(tool string, output json.RawMessage) (protocol.Content, bool) {
	return builtin.ContentFromHookOutput(tool, output)
}

// CompleteAndCheckHookInput checks and completes input that a hook has set for a call. refusal is nil if the call may run.
func (t *toolbox) CompleteAndCheckHookInput(ctx context.Context, call protocol.ToolUse) (checkedCall protocol.ToolUse, refusal *executor.Result) {
	call.Input = t.policy.RemoveUnknownBuiltinInputKeys(call.Name, call.Input)
	if complete := t.Prepare(call).Input; complete != nil && call.ObservedInput == nil {
		call.Input = complete
	}
	check := t.Precheck(ctx, call)
	if check.Refusal == nil && call.ObservedInput == nil && check.ObservedInput != nil {
		call.Input = check.ObservedInput // the hook has chosen another file
	}
	return call, check.Refusal
}

func (t *toolbox) Tool(name string) (protocol.Tool, bool) {
	if def, ok := t.servers.findTool(name); ok {
		return def, true
	}
	return t.builtin.Tool(name)
}

func (t *toolbox) newToolSearchOver(searchableTools executor.Executor) executor.Executor {
	return executor.RemoveTools(func(def protocol.Tool) bool { return isGlobOrGrep(def.Name) || !t.inventory.hasBuiltinTool(def.Name) })(executor.ToolSearch{
		Catalogue: func(ctx context.Context) ([]protocol.Tool, error) {
			tools, err := searchableTools.Tools(ctx)
			listed := t.inventory.offeredBuiltinTools(t.servers.manager.HasResources())
			return slices.DeleteFunc(tools, func(def protocol.Tool) bool { return def.Server == "" && !slices.Contains(listed, def.Name) }), err
		},
		Deferred: t.servers.isSearchable,
	})
}

// breakpointGates are the breakpoints around calls. A call passes those of the scenario first, then the debugger. Its
// result passes them in the opposite order.
type breakpointGates struct {
	script   *debug.ScriptedGate // nil means the scenario has no breakpoints
	debugger *rest.Client        // nil means no --debugger
}

func newUnconnectedBreakpointGates(plan launch.Plan, t *toolbox) (breakpointGates, error) {
	var g breakpointGates
	var err error
	if len(plan.Scenario.Breakpoints) > 0 {
		g.script, err = debug.NewScriptedGate(debug.ScriptedGateOptions{Breakpoints: plan.Scenario.Breakpoints, Now: plan.Clock.Now, Resolve: t.canonicalToolName})
	}
	if err == nil && plan.Records.DebuggerURL != "" {
		g.debugger, err = rest.NewClient(rest.ClientOptions{Client: debug.ClientClaudelessRun, URL: plan.Records.DebuggerURL, Token: plan.Records.DebuggerToken})
	}
	return g, err
}

func (g breakpointGates) scenarioThenDebuggerGates() []debug.ToolCallGate {
	var all []debug.ToolCallGate
	if g.script != nil {
		all = append(all, g.script)
	}
	if g.debugger != nil {
		all = append(all, g.debugger)
	}
	return all
}

func (g breakpointGates) middleware(plan launch.Plan, r *recorder) executor.Middleware {
	var layers []executor.Middleware
	for _, gate := range g.scenarioThenDebuggerGates() {
		layers = append(layers, debug.Middleware(gate, debug.MiddlewareOptions{Run: debuggerCallDescriber{r}, PID: plan.PID, Started: float64(plan.Started.UnixMicro()) / 1e6}))
	}
	return func(next executor.Executor) executor.Executor { return executor.Chain(next, layers...) }
}

// sendToolsToGates sends the tools to the breakpoints of the scenario and to the debugger. It fails if the debugger cannot be reached.
func (g breakpointGates) sendToolsToGates(ctx context.Context, tools executor.Executor) error {
	all := g.scenarioThenDebuggerGates()
	if len(all) == 0 {
		return nil
	}
	listed, err := tools.Tools(ctx)
	if err != nil {
		return err
	}
	for _, gate := range all {
		if err := gate.Register(ctx, listed); err != nil {
			return err
		}
	}
	return nil
}

func (g breakpointGates) closeGatesAndWarnFailedConditions(r *recorder) {
	if g.script != nil {
		for _, text := range g.script.FailedConditionWarnings() {
			r.WarnOnStderr(text)
		}
		g.script.Close()
	}
	if g.debugger != nil {
		g.debugger.Close()
	}
}

func (t *toolbox) canonicalToolName(ctx context.Context, name string) string {
	tools, err := t.Tools(ctx)
	if err != nil {
		return name
	}
	return executor.NewToolNameIndex(tools).Canonical(name)
}

// debuggerCallDescriber gives a debugger access to the session's calls.
type debuggerCallDescriber struct{ *recorder }

// ToolResultFromText converts a text to a tool result.
func (debuggerCallDescriber) ToolResultFromText(call protocol.ToolUse, text string) protocol.ToolResult {
	return builtin.ShapeResult(call, text)
}

// CallingAgentJSON describes the sub-agent that makes a call; nil means the main conversation.
func (debuggerCallDescriber) CallingAgentJSON(call protocol.ToolUse) json.RawMessage {
	if call.Agent == nil {
		return nil
	}
	raw, err := protocol.Marshal(map[string]any{"agent": call.Agent.Type, "agent_id": call.Agent.ID, "depth": call.Agent.Depth})
	if err != nil {
		return nil
	}
	return raw
}

// realCLITextError is an error message of the real CLI, so claudeless adds nothing to it.
type realCLITextError string

func (e realCLITextError) Error() string { return string(e) }

// GrantRulesAndRunShellCommand runs a shell command that a command file contains. Either the session's permission rules or
// allowRulesOfFile must allow the command. commandAsWritten is the command as it is written in the file, for errors.
func (t *toolbox) GrantRulesAndRunShellCommand(ctx context.Context, allowRulesOfFile []string, command, commandAsWritten string) (string, error) {
	input, err := protocol.Marshal(map[string]string{"command": command})
	if err != nil {
		return "", err
	}
	use := protocol.ToolUse{Type: "tool_use", ID: "command", Name: "Bash", Input: input}
	t.policy.SetGrantedRules(allowRulesOfFile)
	if v := t.policy.Decide(use); v.Behavior != permission.Allow {
		t.policy.SetGrantedRules(nil)
		return "", realCLITextError("Shell command permission check failed for pattern \"" + commandAsWritten + "\": " + v.Message)
	}
	result, err := t.builtin.Execute(ctx, use)
	if err != nil {
		return "", err
	}
	out := strings.TrimRight(result.Content.Plain(), "\n")
	if first, rest, _ := strings.Cut(out, "\n"); result.IsError && strings.HasPrefix(first, "Exit code ") {
		out = rest
	}
	if result.IsError {
		t.policy.SetGrantedRules(nil)
		return "", realCLITextError(strings.TrimSuffix("Shell command failed for pattern \""+commandAsWritten+"\": [stderr]\n"+out, "[stderr]\n"))
	}
	return out, nil
}

// instructionFileTracker tracks which instruction files each conversation has received and finds those that its calls add.
type instructionFileTracker struct {
	customization             launch.ResolvedCustomization
	cwd                       string
	state                     *simulator.SessionState
	pathsReceivedBeforeResume []string // instruction files that the model received before the session was resumed

	mu                          sync.Mutex                 // guards the following fields
	receivedPathsByConversation map[string]map[string]bool // paths by id of the session or agent
}

// findOrAddReceivedPaths returns the paths of the instruction files that a conversation has received: that of an agent
// or, if agentOrNil is nil, that of the session. In a conversation that was cleared, these are only the initial files.
func (i *instructionFileTracker) findOrAddReceivedPaths(agentOrNil *protocol.AgentRef) map[string]bool {
	id := i.state.SessionID()
	if agentOrNil != nil {
		id = agentOrNil.ID
	}
	known := i.receivedPathsByConversation[id]
	if known == nil {
		known = map[string]bool{}
		for _, m := range i.customization.InstructionFiles {
			known[m.Path] = true
		}
		if len(i.receivedPathsByConversation) == 0 && agentOrNil == nil {
			for _, path := range i.pathsReceivedBeforeResume {
				known[path] = true
			}
		}
		i.receivedPathsByConversation[id] = known
	}
	return known
}

// takeInstructionsForAccessedFile returns the instructions that apply after a call has read or written a file. The contents of AGENTS.md
// files are one text, which looks like the output of a hook (observed with 2.1.330).
func (i *instructionFileTracker) takeInstructionsForAccessedFile(call protocol.ToolUse, accessedFile string) []simulator.ContextFile {
	if i.customization.InstructionFileOptions == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.findOrAddReceivedPaths(call.Agent)
	known[accessedFile] = true // a file that the model itself has read is already known
	var all []simulator.ContextFile
	var agentsTexts []string
	for _, m := range catalog.FindInstructionFilesForAccess(*i.customization.InstructionFileOptions, accessedFile, known) {
		known[m.Path] = true
		if m.IsAgentsMD {
			agentsTexts = append(agentsTexts, "Contents of "+m.Path+":\n\n"+m.Text)
			continue
		}
		all = append(all, i.instructionFileToContextFile(m, accessedFile))
	}
	if agentsTexts != nil {
		all = slices.Insert(all, 0, simulator.ContextFile{
			Role: "system", Text: "tool.call hook additional context: " + strings.Join(agentsTexts, "\n"),
			Attachment: map[string]any{"type": "hook_additional_context", "content": agentsTexts, "hookName": "tool.call", "toolUseID": call.ID + "-context", "hookEvent": "PostToolUse"},
		})
	}
	return all
}

func (i *instructionFileTracker) instructionFileToContextFile(m catalog.InstructionFile, accessedFile string) simulator.ContextFile {
	in := protocol.InstructionsLoadedHookInput{FilePath: m.Path, MemoryType: m.Type, LoadReason: "nested_traversal", Globs: m.Globs, TriggerFilePath: accessedFile, ParentFilePath: m.Parent}
	switch {
	case m.Parent != "":
		in.LoadReason = "include"
	case m.Globs != nil:
		in.LoadReason = "path_glob_match"
	}
	content := map[string]any{"path": m.Path, "type": m.Type, "content": m.Text, "contentDiffersFromDisk": m.Raw != ""}
	for key, value := range map[string]any{"parent": m.Parent, "rawContent": m.Raw, "isRule": m.Rule} {
		if value != "" && value != false {
			content[key] = value
		}
	}
	if m.Globs != nil {
		content["globs"] = m.Globs
	}
	shown, err := filepath.Rel(i.cwd, m.Path)
	if err != nil {
		shown = m.Path
	}
	return simulator.ContextFile{
		Hook: &in, Role: "user", Text: "Contents of " + m.Path + ":\n\n" + m.Text,
		Attachment: map[string]any{"type": "nested_memory", "path": m.Path, "displayPath": shown, "content": content},
	}
}

// initialInstructionsOfAgent returns the instructions that an agent receives at its start; agents of type Explore and Plan
// receive none (observed with 2.1.329).
func (i *instructionFileTracker) initialInstructionsOfAgent(agent *protocol.AgentRef) []simulator.ContextFile {
	text := instructionText(i.customization.InstructionFiles)
	if text == "" || claudecode.AgentResultHasOnlyReport(agent.Type) {
		return nil
	}
	return []simulator.ContextFile{{Text: text}}
}

// instructionText returns the text of the instruction files for the model; empty means none.
func instructionText(memories []catalog.InstructionFile) string {
	var files strings.Builder
	for _, m := range memories {
		files.WriteString("\n\n" + m.HeadingInModelContext() + "\n\n" + strings.TrimSpace(m.Text))
	}
	if files.Len() == 0 {
		return ""
	}
	return "Codebase and user instructions are shown below." + files.String()
}

// TakeNewContextFiles implements [simulator.ContextSource]. It returns files that changed after the session
// wrote them, and instruction files that apply from now on.
func (t *toolbox) TakeNewContextFiles(agent *protocol.AgentRef, calls []protocol.ToolUse) []simulator.ContextFile {
	if calls == nil && agent != nil {
		return t.instructions.initialInstructionsOfAgent(agent)
	}
	all := changedFilesContext(t.builtinToolsForCaller(protocol.ToolUse{Agent: agent}).TakeFilesChangedAfterWrite(agent))
	for _, call := range calls {
		call.Name = cmp.Or(t.aliases[call.Name], call.Name)
		call.Agent = agent
		if file := t.builtinToolsForCaller(call).TargetFile(call); file != "" {
			for _, instructions := range t.instructions.takeInstructionsForAccessedFile(call, file) {
				if all = append(all, instructions); instructions.Hook != nil && agent == nil {
					t.builtin.RecordInstructionsAsRead(instructions.Hook.FilePath)
				}
			}
		}
	}
	return all
}
