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
	servers           *servers
	policy            *permissionPolicy
	inventory         *toolInventory
	callGates         callGates
	instructions      *nestedInstructions
	aliases           map[string]string // requested tool → tool that runs instead; set by the host
	sequentialAgents  bool              // agents run one after another, for a repeatable run
	options           builtin.Options
	hooks             *hook.Runner
	prompter          permission.Prompter // answers questions about calls; nil means none
	skills            *skillLibrary
	isolated          isolatedTools
	agents            *agent.Agents
}

type toolParts struct {
	host       Host
	state      *simulator.SessionState
	hooks      *sessionHooks
	library    *skillLibrary
	background *backgroundWork
}

func (t *toolbox) build(plan launch.Plan, p toolParts, v *servers, pol *permissionPolicy) error {
	t.servers, t.policy, t.inventory, t.sequentialAgents = v, pol, v.inventory, plan.Clock.IsRepeatable()
	t.instructions = &nestedInstructions{customization: plan.Customization, cwd: plan.CWD, state: p.state, resumed: v.records.transcript.InstructionFiles(), shown: map[string]map[string]bool{}}
	var err error
	t.options = builtin.Options{
		CWD: plan.CWD, PID: plan.PID, AdditionalDirs: plan.Permission.DirectoryPaths(), OutputDir: v.records.transcript.ToolResultsDir(),
		Environ: shellEnviron(plan, p.state.Snapshot().Effort, v.records.ID(), v.records.transcript.Path()), Clock: plan.Clock, Allowed: t.inventory.hasBuiltinTool, Answers: pol.answers,
		ReadFiles: v.records.transcript.ReadFiles(),
		Hooks:     p.hooks, Tasks: p.background.tasks, Skills: p.library, Modes: pol, Access: fileAccess{pol, t.inventory}, PlanFile: p.background.planFile,
	}
	if w := plan.Worktree; w != nil {
		t.options.Worktree = &builtin.Worktree{Worktree: w.Worktree, PreviousDir: w.OriginalDir}
	}
	if t.builtin, err = builtin.New(t.options); err != nil {
		return err
	}
	if t.callGates, err = newCallGates(plan, t); err != nil {
		return err
	}
	t.buildChain(plan, p)
	return nil
}

// buildChain puts the layers around the tools in order: hooks(permission(breakpoint(canned(composite)))).
func (t *toolbox) buildChain(plan launch.Plan, p toolParts) {
	base := executor.Composite{simulator.StructuredCalls{}, p.background.agents}
	base = append(base, t.servers.tools()...)
	base = append(base, t.withToolSearch(append(slices.Clone(base), t.builtin)), builtinExecutor{t})
	around := layer.HookOptions{Runner: p.hooks.Runner, State: p.state, Location: t, Tools: t, Frames: plan.Output.HookEvents}
	host := t.policy.prompter(p.host)
	permit := layer.PermissionOptions{Policy: t.policy.Policy, Ask: layer.AskHooks(around, host), Tools: t, Clock: plan.Clock, ReportChanges: plan.Profile.Has(claudecode.FeatureUserModified), Files: newSettingsFiles(plan, t.servers.records)}
	t.agents = p.background.agents
	t.hooks, t.prompter, t.skills = p.hooks.Runner, host, p.library
	t.Executor = executor.Chain(base,
		layer.Hooks(around), layer.Permission(permit), t.callGates.middleware(plan, t.servers.records), executor.Canned(t.policy.canned))
}

func (t *toolbox) Dir() string { return t.builtin.Dir() }

func (t *toolbox) ProjectDir() string { return t.options.CWD }

func (t *toolbox) Mode() protocol.PermissionMode { return t.policy.Mode() }

// Prepare returns what changes in a call before it is shown: its input, the tool that runs instead if the host has an
// alias, and whether the call may run in parallel with others. A call that starts an agent may, unless a breakpoint
// counts such calls.
func (t *toolbox) Prepare(call protocol.ToolUse) simulator.PreparedCall {
	p := simulator.PreparedCall{Input: t.builtinTools(call).Prepare(call), ExecutedName: t.aliases[call.Name]}
	call.Name = cmp.Or(p.ExecutedName, call.Name)
	p.ReadOnly = !t.callGates.countsBreakpointHits(call.Name) && (builtin.ReadOnlyCall(call) || agent.IsAgentTool(call.Name) && !t.sequentialAgents)
	return p
}

// Precheck inspects a call right before it runs, and may refuse it. A call with a result in the scenario is never
// refused, because it runs no tool.
func (t *toolbox) Precheck(ctx context.Context, call protocol.ToolUse) simulator.Precheck {
	if _, known := t.Tool(call.Name); known {
		t.agents.RecordCall(call)
	}
	ready := simulator.Precheck{ObservedInput: t.builtinTools(call).ObservedInput(call)}
	if !t.policy.canned.HasResult(call) {
		ready.Refusal = t.refuseCall(ctx, call)
	}
	return ready
}

// refuseCall returns the error for a call that no tool of the session accepts, or nil.
func (t *toolbox) refuseCall(ctx context.Context, call protocol.ToolUse) *executor.Result {
	if v, refused := t.policy.RefuseFile(call); refused {
		return new(layer.Denial(v))
	}
	if text, refused := t.inventory.refusalText(call); refused {
		result := executor.UnavailableResult(text)
		result.UnknownTool = t.inventory.isAvailable(call.Name) // if it is false, the user has removed the tool
		return new(executor.ResultOf(result))
	}
	if refused := t.builtinTools(call).Precheck(ctx, call); refused != nil {
		return new(executor.ResultOf(*refused))
	}
	if _, known := t.Tool(call.Name); known {
		return nil
	}
	note, known := t.servers.reconnectFor(ctx, call)
	switch {
	case known:
		return nil
	case note != "":
		return new(executor.ResultOf(executor.UnavailableResult("Error: No such tool available: " + call.Name + ". " + note)))
	}
	names := t.inventory.offeredTools(t.servers.hasResources())
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // the name used in calls
	}
	return new(executor.ResultOf(executor.UnknownToolResult(call.Name, names)))
}

func (t *toolbox) Server(tool string) *protocol.ServerRef {
	if def, ok := t.Tool(tool); ok && def.Server != "" {
		return &protocol.ServerRef{Name: def.Server, Source: def.ServerSource}
	}
	return nil
}

// RewriteOutput converts the output of a built-in tool to the content of its result.
func (t *toolbox) RewriteOutput(tool string, output json.RawMessage) (protocol.Content, bool) {
	return builtin.ReplaceOutput(tool, output)
}

// ReplaceInput checks a call whose input a hook has replaced.
func (t *toolbox) ReplaceInput(ctx context.Context, call protocol.ToolUse) (protocol.ToolUse, *executor.Result) {
	call.Input = t.policy.RemoveUnknownKeys(call.Name, call.Input)
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
	if def, ok := t.servers.tool(name); ok {
		return def, true
	}
	return t.builtin.Tool(name)
}

func (t *toolbox) withToolSearch(all executor.Executor) executor.Executor {
	return executor.Hide(func(def protocol.Tool) bool { return isSearchTool(def.Name) || !t.inventory.hasBuiltinTool(def.Name) })(executor.ToolSearch{
		Catalogue: func(ctx context.Context) ([]protocol.Tool, error) {
			tools, err := all.Tools(ctx)
			listed := t.inventory.offeredTools(t.servers.hasResources())
			return slices.DeleteFunc(tools, func(def protocol.Tool) bool { return def.Server == "" && !slices.Contains(listed, def.Name) }), err
		},
		Deferred: t.servers.isDeferred,
	})
}

// callGates are the breakpoints around calls: those of the scenario outside, those of the debugger inside. So the
// scenario's breakpoints handle a call before the debugger, and its result after the debugger.
type callGates struct {
	script   *debug.ScriptedGate // nil means the scenario has no breakpoints
	debugger *rest.Client        // nil means no --debugger
}

func newCallGates(plan launch.Plan, t *toolbox) (callGates, error) {
	var g callGates
	var err error
	if len(plan.Scenario.Breakpoints) > 0 {
		g.script, err = debug.NewScriptedGate(debug.ScriptedGateOptions{Breakpoints: plan.Scenario.Breakpoints, Now: plan.Clock.Now, Resolve: t.canonicalName})
	}
	if err == nil && plan.Records.DebuggerURL != "" {
		g.debugger, err = rest.NewClient(rest.ClientOptions{Client: debug.ClientClaudeless, URL: plan.Records.DebuggerURL, Token: plan.Records.DebuggerToken})
	}
	return g, err
}

func (g callGates) gates() []debug.Gate {
	var all []debug.Gate
	if g.script != nil {
		all = append(all, g.script)
	}
	if g.debugger != nil {
		all = append(all, g.debugger)
	}
	return all
}

func (g callGates) countsBreakpointHits(tool string) bool {
	return g.script != nil && g.script.HasLimitedRule(tool)
}

func (g callGates) middleware(plan launch.Plan, r *recorder) executor.Middleware {
	var layers []executor.Middleware
	for _, gate := range g.gates() {
		layers = append(layers, debug.Middleware(gate, debug.MiddlewareOptions{Run: debuggerRunInfo{r}, PID: plan.PID, Started: float64(plan.Started.UnixMicro()) / 1e6}))
	}
	return func(next executor.Executor) executor.Executor {
		next = executor.Chain(next, layers...)
		if g.script != nil {
			next = sequentialExecutor{next, g.script}
		}
		return next
	}
}

// register sends the tools to the gates. It fails if the debugger cannot be reached.
func (g callGates) register(ctx context.Context, tools executor.Executor) error {
	all := g.gates()
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

func (g callGates) close(r *recorder) {
	if g.script != nil {
		for _, text := range g.script.Warnings() {
			r.Warn(text)
		}
		g.script.Close()
	}
	if g.debugger != nil {
		g.debugger.Close()
	}
}

func (t *toolbox) canonicalName(ctx context.Context, name string) string {
	tools, err := t.Tools(ctx)
	if err != nil {
		return name
	}
	return executor.NewIndex(tools).Canonical(name)
}

// debuggerRunInfo gives a debugger access to the session's calls.
type debuggerRunInfo struct{ *recorder }

// ResultFromText converts a text to a tool result.
func (debuggerRunInfo) ResultFromText(call protocol.ToolUse, text string) protocol.ToolResult {
	return builtin.ShapeResult(call, text)
}

// CallSite describes the sub-agent that makes a call; nil means the main conversation.
func (debuggerRunInfo) CallSite(call protocol.ToolUse) json.RawMessage {
	if call.Agent == nil {
		return nil
	}
	raw, err := protocol.Marshal(map[string]any{"agent": call.Agent.Type, "agent_id": call.Agent.ID, "depth": call.Agent.Depth})
	if err != nil {
		return nil
	}
	return raw
}

// shellError is the real CLI's error text for a command file whose shell command failed.
type shellError string

func (e shellError) Error() string { return string(e) }

const noOutputText = "(Bash completed with no output)"

// RunCommand runs a shell command that a command file contains. Either the session's permission rules or the rules in
// the file (rules) must allow the command. pattern is the command as it is written in the file, for errors.
func (t *toolbox) RunCommand(ctx context.Context, rules []string, command, pattern string) (string, error) {
	input, err := protocol.Marshal(map[string]string{"command": command})
	if err != nil {
		return "", err
	}
	use := protocol.ToolUse{Type: "tool_use", ID: "command", Name: "Bash", Input: input}
	t.policy.Grant(rules)
	if v := t.policy.Decide(use); v.Behavior != permission.Allow {
		t.policy.Grant(nil)
		return "", shellError("Shell command permission check failed for pattern \"" + pattern + "\": " + v.Message)
	}
	result, err := t.builtin.Execute(ctx, use)
	if err != nil {
		return "", err
	}
	out := strings.TrimRight(result.Content.Plain(), "\n")
	switch first, rest, _ := strings.Cut(out, "\n"); {
	case result.IsError && strings.HasPrefix(first, "Exit code "):
		out = rest
	case out == noOutputText:
		out = ""
	}
	if result.IsError {
		t.policy.Grant(nil)
		return "", shellError(strings.TrimSuffix("Shell command failed for pattern \""+pattern+"\": [stderr]\n"+out, " [stderr]\n"))
	}
	return out, nil
}

// nestedInstructions tracks which instruction files each conversation has received and finds those that its calls add.
type nestedInstructions struct {
	customization launch.Customization
	cwd           string
	state         *simulator.SessionState
	resumed       []string // paths of instruction files that the model received before this session continued the conversation

	mu    sync.Mutex                 // guards the following fields
	shown map[string]map[string]bool // paths by conversation
}

// receivedPaths returns the paths of the instruction files that a conversation has received: that of an agent or, if
// agent is nil, that of the session. After the conversation was cleared, these are only the initial files.
func (i *nestedInstructions) receivedPaths(agent *protocol.AgentRef) map[string]bool {
	id := i.state.SessionID()
	if agent != nil {
		id = agent.ID
	}
	known := i.shown[id]
	if known == nil {
		known = map[string]bool{}
		for _, m := range i.customization.Memories {
			known[m.Path] = true
		}
		if len(i.shown) == 0 && agent == nil {
			for _, path := range i.resumed {
				known[path] = true
			}
		}
		i.shown[id] = known
	}
	return known
}

// newInstructionsFor returns the instructions that apply after the model has read or written a file.
func (i *nestedInstructions) newInstructionsFor(agent *protocol.AgentRef, file string) []simulator.ContextFile {
	if i.customization.MemorySources == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.receivedPaths(agent)
	known[file] = true // a file that the model itself has read is already known
	var all []simulator.ContextFile
	for _, m := range catalog.NestedMemories(*i.customization.MemorySources, file, known) {
		known[m.Path] = true
		all = append(all, i.contextFile(m, file))
	}
	return all
}

func (i *nestedInstructions) contextFile(m catalog.Memory, file string) simulator.ContextFile {
	in := protocol.InstructionsLoadedHook{FilePath: m.Path, MemoryType: m.Type, LoadReason: "nested_traversal", Globs: m.Globs, TriggerFilePath: file, ParentFilePath: m.Parent}
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

// initialInstructions returns the instructions that an agent receives at its start; agents of type Explore and Plan
// receive none (observed with 2.1.329).
func (i *nestedInstructions) initialInstructions(agent *protocol.AgentRef) []simulator.ContextFile {
	text := instructionText(i.customization.Memories)
	if text == "" || claudecode.ReturnsOnlyReport(agent.Type) {
		return nil
	}
	return []simulator.ContextFile{{Text: text}}
}

// instructionText returns the text of the instruction files for the model; empty means none.
func instructionText(memories []catalog.Memory) string {
	var files strings.Builder
	for _, m := range memories {
		files.WriteString("\n\n" + m.Heading() + "\n\n" + strings.TrimSpace(m.Text))
	}
	if files.Len() == 0 {
		return ""
	}
	return "Codebase and user instructions are shown below." + files.String()
}

// NewContext returns files that changed after the session wrote them, and instruction files that apply from now on.
func (t *toolbox) NewContext(agent *protocol.AgentRef, calls []protocol.ToolUse) []simulator.ContextFile {
	if calls == nil && agent != nil {
		return t.instructions.initialInstructions(agent)
	}
	all := changedFilesContext(t.builtinTools(protocol.ToolUse{Agent: agent}).Changes(agent))
	for _, call := range calls {
		call.Name = cmp.Or(t.aliases[call.Name], call.Name)
		call.Agent = agent
		if file := t.builtinTools(call).TargetFile(call); file != "" {
			all = append(all, t.instructions.newInstructionsFor(agent, file)...)
		}
	}
	return all
}
