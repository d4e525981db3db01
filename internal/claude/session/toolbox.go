package session

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/client"
	"github.com/claudeless/claudeless/internal/debug/script"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/layer"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// toolbox is the tools of the session, with what is known of their calls and what happens around each.
type toolbox struct {
	executor.Executor // the chain
	builtin           *builtin.Tools
	servers           *servers
	policy            *policy
	inventory         *inventory
	gates             callGates
	instructed        *nestedInstructions
	aliases           map[string]string // tools that the host wants in the place of others
	inOrder           bool              // agents run one after another, for a run that is to be repeatable
}

// toolParts is what the toolbox is made of.
type toolParts struct {
	host    Host
	live    *simulator.SessionState
	hooks   *hooks
	library *library
	work    *background
}

// fill makes the built-in tools and the chain.
func (t *toolbox) fill(plan launch.Plan, p toolParts, v *servers, pol *policy) error {
	t.servers, t.policy, t.inventory, t.inOrder = v, pol, v.inventory, plan.Clock.Repeatable()
	t.instructed = &nestedInstructions{custom: plan.Custom, cwd: plan.CWD, live: p.live, before: v.records.transcript.Told(), told: map[string]map[string]bool{}}
	var err error
	t.builtin, err = builtin.New(builtin.Options{
		CWD: plan.CWD, AdditionalDirs: plan.Permission.Paths(), OutputDir: v.records.transcript.ToolResultsDir(),
		Environ: shellEnviron(plan, p.live.Now().Effort, v.records.ID()), Clock: plan.Clock, Allowed: t.inventory.exists, Answers: pol.answers,
		Hooks: p.hooks, Tasks: p.work.tasks, Skills: p.library, Modes: pol, Access: pol, PlanFile: p.work.planFile,
	})
	if err != nil {
		return err
	}
	if t.gates, err = newGates(plan, t); err != nil {
		return err
	}
	t.chain(plan, p)
	return nil
}

// chain is the one place where the layers around the tools are put in order:
// hooks(permission(breakpoint(canned(composite)))).
func (t *toolbox) chain(plan launch.Plan, p toolParts) {
	base := executor.Composite{p.work.agents}
	base = append(base, t.servers.tools()...)
	base = append(base, t.search(append(slices.Clone(base), t.builtin)), t.builtin)
	around := layer.HookOptions{Runner: p.hooks.Runner, Live: p.live, Here: t, Tools: t, Frames: plan.Output.HookEvents}
	permit := layer.PermitOptions{Policy: t.policy.Policy, Ask: layer.AskHooks(around, t.policy.asker(p.host)), Tools: t, Clock: plan.Clock}
	t.Executor = executor.Chain(base,
		layer.Hooks(around), layer.Permission(permit), t.gates.layer(plan, t.servers.records), executor.Canned(t.policy.canned))
}

// shellEnviron is the environment of the commands that the model runs: they can tell who runs them (observed with 2.1.329).
func shellEnviron(plan launch.Plan, level, id string) []string {
	env := append(slices.Clone(plan.Environ),
		"AI_AGENT=claude-code_"+strings.ReplaceAll(plan.Version, ".", "-")+"_agent",
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_SESSION_ID="+id,
		"CLAUDE_EFFORT="+level,
		"CLAUDE_PID="+strconv.Itoa(plan.PID),
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
	)
	if plan.Executable != "" {
		env = append(env, "CLAUDE_CODE_EXECPATH="+plan.Executable)
	}
	return env
}

// Dir is the directory the shell is in.
func (t *toolbox) Dir() string { return t.builtin.Dir() }

// Mode is the permission mode.
func (t *toolbox) Mode() protocol.PermissionMode { return t.policy.Mode() }

// Prepare looks at a call as the model has written it. The name of an alias is not looked up again. Agents run beside their
// neighbours, calls that take the hits of a breakpoint do not.
func (t *toolbox) Prepare(call protocol.ToolUse) simulator.PreparedCall {
	p := simulator.PreparedCall{Input: t.builtin.Prepare(call), Runs: t.aliases[call.Name]}
	if p.Runs != "" {
		call.Name = p.Runs
	}
	p.ReadOnly = !t.gates.counts(call.Name) && (builtin.ReadOnlyCall(call) || agent.IsCall(call.Name) && !t.inOrder)
	return p
}

// Ready looks at a call that is about to run. What is answered without a tool is not checked.
func (t *toolbox) Ready(ctx context.Context, call protocol.ToolUse) simulator.Precheck {
	ready := simulator.Precheck{Seen: t.builtin.Observed(call)}
	if !t.policy.canned.Answers(call) {
		ready.Refused = t.check(ctx, call)
	}
	return ready
}

// Server names the MCP server of a tool; nil = none.
func (t *toolbox) Server(tool string) *protocol.ServerRef {
	if def, ok := t.Tool(tool); ok && def.Server != "" {
		return &protocol.ServerRef{Name: def.Server, Source: def.ServerSource}
	}
	return nil
}

// Rewrite gives the content of a built-in tool's result.
func (t *toolbox) Rewrite(tool string, output json.RawMessage) (protocol.Content, bool) {
	return builtin.Rewrite(tool, output)
}

// Replaced is a call with a hook's input, as its tool takes it, and what refuses it.
func (t *toolbox) Replaced(ctx context.Context, call protocol.ToolUse) (protocol.ToolUse, *executor.Result) {
	call.Input = t.policy.Known(call.Name, call.Input)
	return call, t.Ready(ctx, call).Refused
}

// Tool finds a tool by its canonical name.
func (t *toolbox) Tool(name string) (protocol.Tool, bool) {
	if def, ok := t.servers.tool(name); ok {
		return def, true
	}
	return t.builtin.Tool(name)
}

// check refuses calls that no tool of the session can take.
func (t *toolbox) check(ctx context.Context, call protocol.ToolUse) *executor.Result {
	if v, refused := t.policy.Refuses(call); refused {
		return new(layer.Denial(v))
	}
	if refused := t.builtin.Check(ctx, call); refused != nil {
		return new(executor.Plain(*refused))
	}
	if _, known := t.Tool(call.Name); known {
		return nil
	}
	names := t.inventory.all(t.servers.hasResources())
	if i := slices.Index(names, "Task"); i >= 0 {
		names[i] = "Agent" // as calls name it
	}
	return new(executor.Plain(executor.Unknown(call.Name, names)))
}

// search is the tool ToolSearch over the tools that init lists.
func (t *toolbox) search(all executor.Executor) executor.Executor {
	return executor.Hide(func(def protocol.Tool) bool { return !t.inventory.exists(def.Name) })(executor.ToolSearch{
		Catalogue: func(ctx context.Context) ([]protocol.Tool, error) {
			tools, err := all.Tools(ctx)
			listed := t.inventory.all(t.servers.hasResources())
			return slices.DeleteFunc(tools, func(def protocol.Tool) bool { return def.Server == "" && !slices.Contains(listed, def.Name) }), err
		},
		Deferred: t.servers.isDeferred,
	})
}

// deferred names the tools that the model has to search for. Of two that a search finds it is not told.
func (t *toolbox) deferred(ctx context.Context) []string {
	tools, err := t.Tools(ctx)
	if err != nil {
		return nil
	}
	exists := t.inventory.all(false)
	names := []string{}
	for _, def := range tools {
		untold := def.Name == "ListAgents" || def.Name == "ScheduleWakeup"
		if t.servers.isDeferred(def) && !untold && (def.Server != "" || slices.Contains(exists, def.Name)) {
			names = append(names, def.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// callGates are those that decide about calls: the scenario's breakpoints, and further in those of a debugger, so that somebody
// who watches sees what the scripted ones made of a call and decides about its result first.
type callGates struct {
	script   *script.Gate   // nil = the scenario has no breakpoints
	debugger *client.Client // nil = no --debugger
}

func newGates(plan launch.Plan, t *toolbox) (callGates, error) {
	var g callGates
	var err error
	if len(plan.Scenario.Breakpoints) > 0 {
		g.script, err = script.New(script.Options{Breakpoints: plan.Scenario.Breakpoints, Now: plan.Clock.Now, Resolve: t.canonical})
	}
	if err == nil && plan.Records.DebuggerURL != "" {
		g.debugger, err = client.New(client.Options{Client: debug.ClientRun, URL: plan.Records.DebuggerURL, Token: plan.Records.DebuggerToken})
	}
	return g, err
}

// all are the gates there are, the outermost first.
func (g callGates) all() []debug.Gate {
	var all []debug.Gate
	if g.script != nil {
		all = append(all, g.script)
	}
	if g.debugger != nil {
		all = append(all, g.debugger)
	}
	return all
}

// counts tells whether calls of a tool take the hits of a breakpoint.
func (g callGates) counts(tool string) bool { return g.script != nil && g.script.Counts(tool) }

// layer is the middleware that stops calls.
func (g callGates) layer(plan launch.Plan, r *recorder) executor.Middleware {
	var layers []executor.Middleware
	for _, gate := range g.all() {
		layers = append(layers, debug.Middleware(gate, debug.MiddlewareOptions{
			Run: callObserver{r}, PID: plan.PID, Started: float64(plan.Started.UnixMicro()) / 1e6,
		}))
	}
	return func(next executor.Executor) executor.Executor {
		next = executor.Chain(next, layers...)
		if g.script != nil {
			next = serializedHits{next, g.script}
		}
		return next
	}
}

// register makes the tools known to those who decide about calls, which also shows that a debugger is there before anything
// runs.
func (g callGates) register(ctx context.Context, tools executor.Executor) error {
	all := g.all()
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

// canonical is the canonical name of a tool of the session.
func (t *toolbox) canonical(ctx context.Context, name string) string {
	tools, err := t.Tools(ctx)
	if err != nil {
		return name
	}
	return executor.NewIndex(tools).Canonical(name)
}

// serializedHits lets calls that take the hits of a breakpoint run one after another,
// so that it is the first of them that it stops.
type serializedHits struct {
	executor.Executor
	script *script.Gate
}

// Tools are the tools with fewer of them read-only.
func (c serializedHits) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := c.Executor.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].ReadOnly = tools[i].ReadOnly && !c.script.Counts(tools[i].Name)
	}
	return tools, err
}

// callObserver is what a debugger is told of the session's calls.
type callObserver struct{ *recorder }

// Shape makes a result of a text.
func (callObserver) Shape(call protocol.ToolUse, text string) protocol.ToolResult {
	return builtin.Shape(call, text)
}

// Site tells of the sub-agent that makes a call; nil = none does.
func (callObserver) Site(call protocol.ToolUse) json.RawMessage {
	if call.Agent == nil {
		return nil
	}
	raw, err := protocol.Marshal(map[string]any{"agent": call.Agent.Type, "agent_id": call.Agent.ID, "depth": call.Agent.Depth})
	if err != nil {
		return nil
	}
	return raw
}

// shellError is why a command file has no text, in the words of the real CLI.
type shellError string

func (e shellError) Error() string { return string(e) }

// nothingPrinted is what the model is told of a command without an output.
const nothingPrinted = "(Bash completed with no output)"

// Print runs a shell command of a command file, under the rules of the session and those that the file brings.
func (t *toolbox) Print(ctx context.Context, rules []string, command, pattern string) (string, error) {
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
	case out == nothingPrinted:
		out = ""
	}
	if result.IsError {
		t.policy.Grant(nil)
		return "", shellError(strings.TrimSuffix("Shell command failed for pattern \""+pattern+"\": [stderr]\n"+out, " [stderr]\n"))
	}
	return out, nil
}

// nestedInstructions knows which files of instructions each conversation has been told of, and finds those that its calls lead to.
type nestedInstructions struct {
	custom launch.Custom
	cwd    string
	live   *simulator.SessionState
	before []string // of the conversation that is gone on with

	mu   sync.Mutex                 // guards what follows
	told map[string]map[string]bool // paths by conversation
}

// known are the paths that the conversation of an agent, or of the session, has been told of. What is cleared begins anew.
func (i *nestedInstructions) known(agent *protocol.AgentRef) map[string]bool {
	id := i.live.SessionID()
	if agent != nil {
		id = agent.ID
	}
	known := i.told[id]
	if known == nil {
		known = map[string]bool{}
		for _, m := range i.custom.Memories {
			known[m.Path] = true
		}
		if len(i.told) == 0 && agent == nil {
			for _, path := range i.before {
				known[path] = true
			}
		}
		i.told[id] = known
	}
	return known
}

// reached are the instructions that count since the model has read or written a file.
func (i *nestedInstructions) reached(agent *protocol.AgentRef, file string) []simulator.Instructions {
	if i.custom.Memory == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	known := i.known(agent)
	known[file] = true // one that was read itself is known
	var all []simulator.Instructions
	for _, m := range catalog.Reached(*i.custom.Memory, file, known) {
		known[m.Path] = true
		all = append(all, i.nested(m, file))
	}
	return all
}

// nested is one file that a call led to, as hooks, transcripts and the model are told of it.
func (i *nestedInstructions) nested(m catalog.Memory, file string) simulator.Instructions {
	in := protocol.InstructionsLoadedHook{
		FilePath: m.Path, MemoryType: m.Type, LoadReason: "nested_traversal", Globs: m.Globs, TriggerFilePath: file, ParentFilePath: m.Parent,
	}
	switch {
	case m.Parent != "":
		in.LoadReason = "include"
	case m.Globs != nil:
		in.LoadReason = "path_glob_match"
	}
	content := map[string]any{"path": m.Path, "type": m.Type, "content": m.Text, "contentDiffersFromDisk": m.Raw != ""}
	for key, value := range map[string]string{"parent": m.Parent, "rawContent": m.Raw} {
		if value != "" {
			content[key] = value
		}
	}
	if m.Rule {
		content["isRule"] = true
	}
	if m.Globs != nil {
		content["globs"] = m.Globs
	}
	shown, err := filepath.Rel(i.cwd, m.Path)
	if err != nil {
		shown = m.Path
	}
	return simulator.Instructions{
		Hook: &in, Text: "Contents of " + m.Path + ":\n\n" + m.Text,
		Attachment: map[string]any{"type": "nested_memory", "path": m.Path, "displayPath": shown, "content": content},
	}
}

// beginning is what an agent is told from the start; the kinds that only look around are told nothing (observed with 2.1.329).
func (i *nestedInstructions) beginning(agent *protocol.AgentRef) []simulator.Instructions {
	text := heading(i.custom.Memories)
	if text == "" || agent.Type == "Explore" || agent.Type == "Plan" {
		return nil
	}
	return []simulator.Instructions{{Text: text}}
}

// heading is the files of instructions as the model reads them first; empty = there are none.
func heading(memories []catalog.Memory) string {
	var files strings.Builder
	for _, m := range memories {
		files.WriteString("\n\n" + m.Heading() + "\n\n" + strings.TrimSpace(m.Text))
	}
	if files.Len() == 0 {
		return ""
	}
	return "Codebase and user instructions are shown below." + files.String()
}

// Reached tells which instructions count from now on.
func (t *toolbox) Reached(agent *protocol.AgentRef, calls []protocol.ToolUse) []simulator.Instructions {
	if calls == nil && agent != nil {
		return t.instructed.beginning(agent)
	}
	var all []simulator.Instructions
	for _, call := range calls {
		call.Name = cmp.Or(t.aliases[call.Name], call.Name)
		if file := t.builtin.Touched(call); file != "" {
			all = append(all, t.instructed.reached(agent, file)...)
		}
	}
	return all
}
