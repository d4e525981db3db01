package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// init is the init event of a turn: what flags, settings and servers say now.
func (r *run) init(context.Context) protocol.Init {
	r.warnModel()
	ev := persona.Init()
	ev.CWD, ev.OriginalCWD = r.cwd, r.cwd
	ev.ClaudeCodeVersion = r.version()
	ev.AdditionalDirectories = append(ev.AdditionalDirectories, r.shownDirs(r.policy.Added())...)
	ev.APIKeySource = "none"
	if r.sys.Getenv("ANTHROPIC_API_KEY") != "" {
		ev.APIKeySource = "ANTHROPIC_API_KEY"
	}
	ev.OutputStyle = r.outputStyle()
	if r.dir != "" && !r.f.Bare && !r.f.Restricted && !r.f.SafeMode && !r.settings.NoMemory {
		dir := cmp.Or(r.settings.MemoryDir, filepath.Join(filepath.Dir(r.session.Path()), "memory"))
		ev.MemoryPaths = &protocol.MemoryPaths{Auto: filepath.Clean(dir) + string(filepath.Separator)}
	}
	if !r.f.Bare && !r.f.Restricted {
		ev.MessagingSocketPath = r.socketPath()
	}
	resources := false
	var tools []protocol.Tool
	if r.manager != nil {
		resources = r.manager.HasResources()
		tools = slices.DeleteFunc(r.manager.Tools(), func(t protocol.Tool) bool { return r.hidden(t) })
		for _, st := range r.manager.Servers() {
			ev.MCPServers = append(ev.MCPServers, protocol.MCPServer{Name: st.Name, Status: initStatus(st.Status), Source: st.Source})
		}
	}
	ev.MCPServerErrors = r.servers.Errors
	if r.f.OutputFormat != "stream-json" { // nobody listens who could be woken
		ev.Capabilities = slices.DeleteFunc(ev.Capabilities, func(c string) bool { return c == "lifecycle_wakeup_source_v1" })
	}
	ev.Tools = persona.WithMCP(r.ownTools(resources), tools)
	r.catalog.Fill(&ev)
	for _, p := range r.prompts() {
		ev.SlashCommands = append(ev.SlashCommands, mcp.CanonicalName(p.Server, p.Name))
	}
	return ev
}

// initStatus is a server's status as init words it: there needs-auth is failed.
func initStatus(status string) string {
	if status == "needs-auth" {
		return "failed"
	}
	return status
}

func (r *run) toolOptions(resources bool) persona.ToolOptions {
	return persona.ToolOptions{
		Tools: r.f.Tools, Given: r.f.Has("tools"), Allowed: r.f.AllowedTools, Disallowed: r.disallowed(),
		Bare: r.f.Bare, Host: r.f.PermissionPromptTool == "stdio",
		Schema: r.f.Has("json-schema"), HostSchema: r.f.JSONSchema != "" && !r.f.Has("json-schema"),
		Resources: resources, Tasks: model.Of(model.Resolve(r.modelName())).Tasks, NoTasks: r.sys.Getenv("CLAUDE_CODE_ENABLE_TASKS") == "0",
	}
}

// ownTools lists the built-in tools that init names. What the agent of the
// session is without goes; nothing comes in its place.
func (r *run) ownTools(resources bool) []string {
	o := r.toolOptions(resources)
	all := persona.Tools(o)
	o.Disallowed = slices.Concat(o.Disallowed, r.agentHides)
	return slices.DeleteFunc(persona.Tools(o), func(name string) bool { return !slices.Contains(all, name) })
}

// exists tells whether a built-in tool is left over from --tools and what
// takes tools away.
func (r *run) exists(name string) bool {
	same := func(other string) bool {
		match, _ := path.Match(other, name) // deny rules may be patterns; a bad one matches nothing
		return match || agent.IsCall(other) && agent.IsCall(name)
	}
	if slices.ContainsFunc(r.disallowed(), same) || slices.ContainsFunc(r.agentHides, same) {
		return false
	}
	if !r.f.Has("tools") || slices.Equal(r.f.Tools, []string{"default"}) {
		return true
	}
	return slices.ContainsFunc(r.f.Tools, same)
}

// disallowed are the tools that --disallowedTools and deny rules take away as a
// whole.
func (r *run) disallowed() []string {
	rules := slices.Clone(r.f.DisallowedTools)
	for _, rule := range r.settings.Permissions.Rules {
		if rule.Behavior == permission.BehaviorDeny {
			rules = append(rules, rule.Text)
		}
	}
	for i, rule := range rules {
		rules[i] = strings.TrimSuffix(strings.TrimSuffix(rule, "(*)"), "()")
	}
	return rules
}

// hidden tells whether an MCP tool is taken away for good.
func (r *run) hidden(t protocol.Tool) bool {
	for _, rule := range r.disallowed() {
		rule = strings.TrimSuffix(rule, "__*")
		if rule == t.Name || rule == strings.TrimSuffix(mcp.CanonicalName(t.Server, ""), "__") {
			return true
		}
	}
	return false
}

// loadFile loads a scenario. What that allocates stays, so that collecting
// garbage halfway only costs time: a fifth of it for thousands of rules.
func loadFile(path string) (*scenarios.Scenario, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	return scenarios.Load(path, scenarios.LoadOptions{})
}

func (r *run) loadScenario() error {
	path, library, err := r.findScenario()
	switch {
	case err != nil:
		return err
	case library:
		r.scenario, err = scenarios.LoadLibrary(path)
	case path == "":
		r.scenario = scenarios.Greeting()
	default:
		r.scenarioPath = path
		r.scenario, err = loadFile(path)
	}
	return err
}

// findScenario looks for the scenario: flag or variable, then claudeless.toml
// in the working and in the state directory. A name that is no file and has no
// slash is one of the library; an empty path = none at all.
func (r *run) findScenario() (path string, library bool, err error) {
	if name := r.f.Scenario; name != "" {
		path, err = r.f.Abs(r.sys, name)
		if err != nil {
			return "", false, err
		}
		if _, err := os.Stat(path); err != nil && !strings.ContainsAny(name, `/\`) {
			return name, true, nil
		}
		return path, false, nil
	}
	for _, place := range []string{r.cwd, r.dir} {
		path := filepath.Join(place, "claudeless.toml")
		if _, err := os.Stat(path); place != "" && err == nil {
			return path, false, nil
		}
	}
	return "", false, nil
}

func (r *run) engineOptions() scenarios.EngineOptions {
	return scenarios.EngineOptions{Env: r.sys.Environ, Args: r.sys.Args[1:], CWD: r.cwd}
}

// model is the scripted model, or one that fails as --failure says.
func (r *run) model() (simulator.Model, error) {
	if r.f.Failure == "" {
		return r.engine, nil
	}
	failure := scenarios.FailureByName(r.f.Failure)
	if failure == nil {
		return nil, process.Hinted(fmt.Sprintf("--failure: there is no failure %q", r.f.Failure),
			"one of network-unreachable, connection-timeout, auth-error, rate-limit, out-of-credits, partial-response, malformed-json, "+
				"overloaded, server-error, api-error, prompt-too-long, hang, crash")
	}
	return failing{failure: failure}, nil
}

// failing is a model whose every reply is the same failure.
type failing struct{ failure *scenarios.Failure }

func (m failing) Next(context.Context, scenarios.Request) (scenarios.Reply, error) {
	return scenarios.Reply{Failure: m.failure, Rule: scenarios.RuleRef{Name: "--failure"}}, nil
}

// canned is what the scenario says about results of tools.
func (r *run) canned() executor.CannedOptions {
	te := r.scenario.ToolExecution
	o := executor.CannedOptions{Tools: map[string]executor.CannedTool{}, Shape: builtin.Shape}
	if te == nil {
		return o
	}
	if te.Mode == "mock" {
		o.Mode = executor.Mock
	}
	for name, tool := range te.Tools {
		o.Tools[name] = executor.CannedTool{Result: tool.Result, Error: tool.Error, AutoApprove: tool.AutoApprove}
	}
	return o
}

// answered tells whether the scenario answers a question to the user that no
// host can be asked.
func (r *run) answered(tool string) bool {
	return tool == "AskUserQuestion" && r.f.PermissionPromptTool == "" && len(r.answers()) > 0
}

func (r *run) answers() map[string]string {
	if te := r.scenario.ToolExecution; te != nil {
		return te.Tools["AskUserQuestion"].Answers
	}
	return nil
}

// hookBase is the common part of the inputs of hooks around tools.
func (r *run) hookBase() protocol.HookBase {
	base := protocol.HookBase{SessionID: r.session.ID(), TranscriptPath: r.session.Path(), PermissionMode: r.policy.Mode(), Effort: &protocol.HookEffort{Level: r.effort()}, CWD: r.tools.Dir()}
	if r.sim != nil {
		base.PromptID = r.sim.PromptID()
	}
	return base
}

// announce runs the hooks of a tool's own events, which are told of the prompt
// only; a refusal is its feedback.
func (r *run) announce(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event) {
	base := r.hookBase()
	base.PermissionMode, base.Effort = "", nil
	out := r.hooks.Run(ctx, hook.Input{Base: base, Event: in})
	if r.f.IncludeHookEvents {
		shown = out.Frames
	}
	return strings.Join(out.Texts, "\n"), shown
}

// setup is the trigger of Setup hooks; empty = they are not run.
func (r *run) setup() string {
	switch {
	case r.f.InitSetup:
		return "init"
	case r.f.Maintenance:
		return "maintenance"
	}
	return ""
}

// instructions are the memory files of the session, as hooks are told of them.
func (r *run) instructions() []protocol.InstructionsLoadedHook {
	files := []struct{ path, kind, source string }{
		{filepath.Join(r.dir, "CLAUDE.md"), "User", "user"},
		{filepath.Join(r.cwd, "CLAUDE.md"), "Project", "project"},
		{filepath.Join(r.cwd, ".claude", "CLAUDE.md"), "Project", "project"},
		{filepath.Join(r.cwd, "CLAUDE.local.md"), "Local", "local"},
	}
	var out []protocol.InstructionsLoadedHook
	for _, f := range files {
		if info, err := os.Stat(f.path); err == nil && info.Mode().IsRegular() && r.reads(f.source) {
			out = append(out, protocol.InstructionsLoadedHook{FilePath: f.path, MemoryType: f.kind, LoadReason: "session_start"})
		}
	}
	return out
}

// outputStyle is the style in force, whether there is one of that name or not.
func (r *run) outputStyle() string {
	if set := r.style.Load(); set != nil {
		return *set
	}
	return cmp.Or(r.settings.OutputStyle, "default")
}

// effort is the level that hooks are told.
func (r *run) effort() string {
	if set := r.level.Load(); set != nil {
		return *set
	}
	if r.f.Effort != "" {
		return r.f.Effort
	}
	return "medium"
}

// serverOf names the MCP server of a tool; nil = none.
func (r *run) serverOf(tool string) *protocol.ServerRef {
	if t, ok := r.tool(tool); ok && t.Server != "" {
		return &protocol.ServerRef{Name: t.Server, Source: t.ServerSource}
	}
	return nil
}

// hookTool calls an MCP tool for a hook and returns its text.
func (r *run) hookTool(ctx context.Context, server, tool string, input json.RawMessage) (string, error) {
	if r.manager == nil {
		return "", fmt.Errorf("there is no MCP server %q", server)
	}
	result, err := r.manager.Call(ctx, mcp.CallRequest{Tool: mcp.CanonicalName(server, tool), Input: input})
	switch {
	case err != nil:
		return "", err
	case result.IsError:
		return "", errors.New(result.Content.Plain())
	default:
		return result.Content.Plain(), nil
	}
}

// saveBlob keeps a binary result of an MCP server beside the transcript.
func (r *run) saveBlob(server, mediaType string, data []byte) (string, error) {
	return r.save(r.resultName(server, "blob", extensionOf(mediaType)), data)
}

// saveResource keeps a binary part of a resource there too.
func (r *run) saveResource(index int, mediaType string, data []byte) (string, error) {
	return r.save(fmt.Sprintf("mcp-resource-%d-%d-%s%s", r.clock.Now().UnixMilli(), index, r.shortID(), extensionOf(mediaType)), data)
}

func extensionOf(mediaType string) string {
	if known, err := mime.ExtensionsByType(mediaType); err == nil && len(known) > 0 {
		return known[0]
	}
	return ".bin"
}

func (r *run) shortID() string { return strings.ReplaceAll(r.clock.NewID(), "-", "")[:6] }

// saveText keeps a text result in a file of that name; empty = as blobs are
// named.
func (r *run) saveText(tool protocol.Tool, name, text string) (string, error) {
	if name == "" {
		name = r.resultName(tool.Server, tool.RawName, ".txt")
	}
	return r.save(name, []byte(text))
}

// resultName names a file for what a server's tool gave.
func (r *run) resultName(server, what, ext string) string {
	names := strings.Replace(strings.TrimPrefix(mcp.CanonicalName(server, what), "mcp__"), "__", "-", 1)
	return fmt.Sprintf("mcp-%s-%d-%s%s", names, r.clock.Now().UnixMilli(), r.shortID(), ext)
}

func (r *run) save(name string, data []byte) (string, error) {
	dir := r.session.ToolResultsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

func (r *run) journalRun() journal.Run {
	line := journal.Run{
		Argv: r.sys.Args, CWD: r.cwd, Env: map[string]string{}, Model: model.Resolve(r.modelName()),
		PermissionMode: string(r.policy.Mode()), Scenario: r.f.Scenario, Settings: []string{},
	}
	for _, layer := range r.settings.Layers {
		line.Settings = append(line.Settings, string(layer.Source))
	}
	for _, name := range journalEnv() {
		if value := r.sys.Getenv(name); value != "" {
			line.Env[name] = value
		}
	}
	if r.f.Has("system-prompt") || r.f.Has("system-prompt-file") {
		line.SystemPrompt = &r.f.SystemPrompt
	}
	if r.f.AppendSystemPrompt != "" {
		line.AppendPrompt = &r.f.AppendSystemPrompt
	}
	for _, server := range r.servers.Servers {
		line.MCPServers = append(line.MCPServers, server.Name)
	}
	return line
}

// journalEnv are the variables whose values a test wants to see.
func journalEnv() []string {
	return []string{
		"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_MAX_RETRIES", "CLAUDELESS_SCENARIO", "CLAUDELESS_STRICT_MCP", "CLAUDELESS_COMPAT", "HOME", "PWD",
		"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_THINKING_TOKENS",
	}
}
