package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/edge"
	"github.com/claudeless/claudeless/internal/persona"
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
	ev.CWD, ev.OriginalCWD = r.CWD, r.CWD
	ev.ClaudeCodeVersion = r.Version
	ev.AdditionalDirectories = append(ev.AdditionalDirectories, r.shownDirs(r.policy.Added())...)
	ev.APIKeySource = r.APIKeySource
	ev.OutputStyle = r.outputStyle()
	if r.State != "" && !r.Custom.Bare && !r.Custom.Restricted && !r.Custom.SafeMode && !r.Settings.NoMemory {
		dir := cmp.Or(r.Settings.MemoryDir, filepath.Join(filepath.Dir(r.session.Path()), "memory"))
		ev.MemoryPaths = &protocol.MemoryPaths{Auto: filepath.Clean(dir) + string(filepath.Separator)}
	}
	if !r.Custom.Bare && !r.Custom.Restricted {
		ev.MessagingSocketPath = r.socketPath()
	}
	resources := false
	var tools []protocol.Tool
	if r.manager != nil {
		resources = r.manager.HasResources()
		tools = slices.DeleteFunc(r.manager.Tools(), func(t protocol.Tool) bool { return r.hidden(t) || t.Name == r.Permission.PromptTool })
		for _, st := range r.manager.Servers() {
			ev.MCPServers = append(ev.MCPServers, protocol.MCPServer{Name: st.Name, Status: initStatus(st.Status), Source: st.Source})
		}
	}
	ev.MCPServerErrors = r.Servers.Errors
	if r.Output.Format != "stream-json" { // nobody listens who could be woken
		ev.Capabilities = slices.DeleteFunc(ev.Capabilities, func(c string) bool { return c == "lifecycle_wakeup_source_v1" })
	}
	ev.Tools = persona.WithMCP(r.ownTools(resources), tools)
	r.Catalog.Fill(&ev)
	for _, p := range r.prompts() {
		ev.SlashCommands = append(ev.SlashCommands, mcp.CanonicalName(p.Server, p.Name))
	}
	if r.Custom.NoCommands {
		ev.SlashCommands, ev.Skills, ev.TerminalSlashCommands = []string{}, []string{}, nil
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
		Tools: r.Tools.Named, Given: r.Tools.Given, Allowed: r.Tools.Allowed, Disallowed: r.disallowed(),
		Bare: r.Custom.Bare, Host: r.Permission.PromptTool != "", NoSkills: r.Custom.NoCommands,
		Schema: r.Prompt.SchemaFlag, HostSchema: r.Prompt.Schema != "" && !r.Prompt.SchemaFlag,
		Resources: resources, Tasks: model.Of(model.Resolve(r.Model.Name)).Tasks, NoTasks: r.Tools.NoTasks,
	}
}

// ownTools lists the built-in tools that init names. What the agent of the
// session is without goes; nothing comes in its place.
func (r *run) ownTools(resources bool) []string {
	o := r.toolOptions(resources)
	all := persona.Tools(o)
	o.Disallowed = slices.Concat(o.Disallowed, r.Tools.Hidden)
	return slices.DeleteFunc(persona.Tools(o), func(name string) bool { return !slices.Contains(all, name) })
}

// exists tells whether a built-in tool is left over from --tools and what
// takes tools away.
func (r *run) exists(name string) bool {
	same := func(other string) bool {
		match, _ := path.Match(other, name) // deny rules may be patterns; a bad one matches nothing
		return match || agent.IsCall(other) && agent.IsCall(name)
	}
	if name == "Skill" && r.Custom.NoCommands {
		return false
	}
	if slices.ContainsFunc(r.disallowed(), same) || slices.ContainsFunc(r.Tools.Hidden, same) {
		return false
	}
	if r.Tools.Default() {
		return true
	}
	return slices.ContainsFunc(r.Tools.Named, same)
}

// disallowed are the tools that --disallowedTools and deny rules take away as a
// whole.
func (r *run) disallowed() []string {
	rules := slices.Clone(r.Tools.Disallowed)
	for _, rule := range r.Settings.Permissions.Rules {
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

// model is the scripted model, or one that fails as --failure says.
func (r *run) model() simulator.Model {
	failure := r.Scenario.Failure
	if name := edge.ArmOutput(r.sys.Stdout, r.Scenario.Fault); name != "" && failure == nil {
		failure = scenarios.FailureByName(name)
	}
	if failure == nil {
		return arming{Engine: r.engine, stdout: r.sys.Stdout}
	}
	return failing{failure: failure}
}

// arming is the scripted model; its replies may want the output spoiled.
type arming struct {
	*scenarios.Engine
	stdout io.Writer
}

func (m arming) Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error) {
	reply, err := m.Engine.Next(ctx, r)
	if name := edge.ArmOutput(m.stdout, reply.Fault); name != "" && reply.Failure == nil {
		reply.Failure = scenarios.FailureByName(name)
	}
	return reply, err
}

// failing is a model whose every reply is the same failure.
type failing struct{ failure *scenarios.Failure }

func (m failing) Next(context.Context, scenarios.Request) (scenarios.Reply, error) {
	return scenarios.Reply{Failure: m.failure, Rule: scenarios.RuleRef{Name: "--failure"}}, nil
}

// canned is what the scenario says about results of tools.
func (r *run) canned() executor.CannedOptions {
	te := r.Scenario.ToolExecution
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
	return tool == "AskUserQuestion" && r.Permission.PromptTool == "" && len(r.answers()) > 0
}

func (r *run) answers() map[string]string {
	if te := r.Scenario.ToolExecution; te != nil {
		return te.Tools["AskUserQuestion"].Answers
	}
	return nil
}

// hookBase is the common part of the inputs of hooks around tools.
func (r *run) hookBase() protocol.HookBase {
	base := protocol.HookBase{SessionID: r.session.ID(), TranscriptPath: r.session.Path(), PermissionMode: r.policy.Mode(), Effort: &protocol.HookEffort{Level: r.effort()}, CWD: r.tools.Dir(), PromptID: r.current.Now().PromptID}
	return base
}

// announce runs the hooks of a tool's own events, which are told of the prompt
// only; a refusal is its feedback.
func (r *run) announce(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event) {
	base := r.hookBase()
	base.PermissionMode, base.Effort = "", nil
	out := r.hooks.Run(ctx, hook.Input{Base: base, Event: in})
	if r.Output.HookEvents {
		shown = out.Frames
	}
	return strings.Join(out.Texts, "\n"), shown
}

// outputStyle is the style in force, whether there is one of that name or not.
func (r *run) outputStyle() string {
	if set := r.style.Load(); set != nil {
		return *set
	}
	return cmp.Or(r.Settings.OutputStyle, "default")
}

// effort is the level that hooks are told.
func (r *run) effort() string { return r.current.Now().Effort }

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
	return r.save(fmt.Sprintf("mcp-resource-%d-%d-%s%s", r.Clock.Now().UnixMilli(), index, r.shortID(), extensionOf(mediaType)), data)
}

func extensionOf(mediaType string) string {
	if known, err := mime.ExtensionsByType(mediaType); err == nil && len(known) > 0 {
		return known[0]
	}
	return ".bin"
}

func (r *run) shortID() string { return strings.ReplaceAll(r.Clock.NewID(), "-", "")[:6] }

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
	return fmt.Sprintf("mcp-%s-%d-%s%s", names, r.Clock.Now().UnixMilli(), r.shortID(), ext)
}

func (r *run) save(name string, data []byte) (string, error) {
	dir := r.session.ToolResultsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, data, 0o600)
}
