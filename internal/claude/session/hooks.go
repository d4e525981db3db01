package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/command"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
)

type sessionHooks struct {
	*hook.Runner
	state         *simulator.SessionState
	workspace     toolsAndCurrentDir
	records       *recorder
	showFrames    bool // emit an event when a hook starts and when it ends
	hooksDisabled bool
}

// newSessionHooks reads the hooks of the settings (spec: cli-contract 5.5).
func newSessionHooks(plan launch.Plan, state *simulator.SessionState, b toolsAndCurrentDir, p *permissionPolicy) *sessionHooks {
	h := &sessionHooks{state: state, workspace: b, records: p.records, showFrames: plan.Output.HookEvents, hooksDisabled: plan.Settings.DisableAllHooks || plan.Customization.AllDisabled()}
	id := p.records.ID()
	o := hook.Options{
		CWD: plan.CWD, DisplayCWD: plan.Scenario.WorkingDirectory, SessionID: id, TranscriptPath: p.records.transcript.Path(),
		Environ: slices.Concat(plan.Environ, []string{"AI_AGENT=" + aiAgentVariableValue(plan.Version, "harness")}, variablesOfHooksAndCommands(plan, id, p.records.transcript.Path())), PID: plan.PID, Entrypoint: plan.Entrypoint, NewID: plan.Clock.NewID, Now: plan.Clock.Now,
		DefaultTimeout: plan.Limits.HookTimeout, MCPTool: p.servers.callToolForHook, MatchRule: p.RuleCoversCall,
		AgentType: plan.Customization.Agent, EnvDir: filepath.Join(plan.State, "session-env", id),
		HTTPLimits: plan.Settings.HTTPHooks,
	}
	o.PromptAnswer, _ = plan.Scenario.API.SideRequestAnswer("other")
	o.Reports = plan.Records.Telemetry.IsEnabled()
	if plan.Clock.IsReproducible() {
		o.ProgressEvery = -1
	}
	if host := p.servers.requestAnswerer.host; host != nil {
		o.Callback = host.CallHook
	}
	for _, h := range plan.Settings.Hooks {
		if plan.Customization.AllDisabled() && h.Source != settings.SourceManaged {
			continue
		}
		o.Settings = append(o.Settings, hook.SettingsHooks{Name: string(h.Source), Raw: h.Raw})
	}
	if !h.hooksDisabled {
		for _, parts := range plan.Catalog.InitialPluginParts() {
			o.Settings = append(o.Settings, pluginHooks(parts))
		}
		if a, ok := plan.Catalog.Agent(plan.Customization.Agent); ok {
			o.Settings = append(o.Settings, hook.SettingsHooks{Name: "agent " + a.Name, Raw: a.Hooks})
		}
	}
	runner, warnings := hook.New(o)
	for _, w := range warnings {
		h.records.WarnUnlessRunAsClaude(w.Text)
	}
	h.Runner = runner
	return h
}

func pluginHooks(parts catalog.PluginHooksAndServers) hook.SettingsHooks {
	source := hook.SettingsHooks{Name: "plugin " + parts.Name, Plugin: parts.Name, PluginID: parts.ID, Raw: parts.Hooks}
	if parts.Hooks != nil {
		for name, value := range parts.Environ() {
			source.Environ = append(source.Environ, name+"="+value)
		}
	}
	return source
}

// replaceSource replaces the hooks of a skill or an agent, unless hooks are disabled.
func (h *sessionHooks) replaceSource(s hook.SettingsHooks) {
	if h.hooksDisabled {
		return
	}
	for _, w := range h.ReplaceSettingsHooks(s) {
		h.records.WarnUnlessRunAsClaude(w.Text)
	}
}

func (l *skillLibrary) SetAgentHooks(agentID string, raw json.RawMessage) {
	l.hooks.replaceSource(hook.SettingsHooks{Name: "agent " + agentID, Raw: raw, Agent: agentID})
}

// RunHooks runs the hooks for an event that a tool raises, such as TaskCompleted. feedback is the output of
// the hooks that refuse the event. shown are the events to emit about the hooks; nil if the output excludes them.
func (h *sessionHooks) RunHooks(ctx context.Context, in protocol.HookInput) (feedback string, shown []protocol.Event) {
	out := h.runHooksOfEvent(ctx, in)
	if h.showFrames {
		shown = out.Frames
	}
	return strings.Join(out.Texts, "\n"), shown
}

func (h *sessionHooks) runHooksOfEvent(ctx context.Context, in protocol.HookInput) hook.Outcome {
	now := h.state.SessionStateSnapshot()
	base := protocol.HookBase{SessionID: now.SessionID, TranscriptPath: now.TranscriptPath, CWD: h.workspace.Dir(), PromptID: now.PromptID}
	return h.Run(ctx, hook.EventInput{Base: base, Event: in})
}

// answerElicitation answers a server's question to the user. Elicitation hooks may answer first. Otherwise the scenario or the host
// answers, and ElicitationResult hooks can replace this answer.
func (h *sessionHooks) answerElicitation(ctx context.Context, q mcp.ElicitRequest, user serverRequestAnswerer) mcp.ElicitAnswer {
	asked := protocol.ElicitationHookInput{Server: q.Server, Message: q.Message, Mode: q.Mode, URL: q.URL, ID: q.ID, Schema: q.Schema}
	if byHook := answerOfElicitationHooks(h.runHooksOfEvent(ctx, asked), mcp.ElicitAnswer{}); byHook.Action != "" {
		return byHook
	}
	answer := user.answerFromScenarioOrHost(ctx, q)
	answered := protocol.ElicitationResultHookInput{Server: q.Server, Mode: q.Mode, ID: q.ID, Action: cmp.Or(answer.Action, "cancel"), Content: answer.Content}
	return answerOfElicitationHooks(h.runHooksOfEvent(ctx, answered), answer)
}

func answerOfElicitationHooks(o hook.Outcome, otherwise mcp.ElicitAnswer) mcp.ElicitAnswer {
	switch {
	case o.Block:
		return mcp.ElicitAnswer{Action: "decline"}
	case o.Specific.Action == "":
		return otherwise
	case o.Specific.Content != nil:
		otherwise.Content = o.Specific.Content
	}
	otherwise.Action = o.Specific.Action
	return otherwise
}

// skillLibrary holds the skills and commands that the model may load.
type skillLibrary struct {
	catalog        *catalog.Catalog
	profile        claudecode.Profile
	policy         *permissionPolicy
	hooks          *sessionHooks
	loadableSkills atomic.Pointer[[]string] // skills that the model may load; nil means all
	shell          command.PermissionCheckedShell
	state          *simulator.SessionState
	hooksAdded     sync.Map // names of skills with active hooks
}

// activateForFile makes the skills available that apply to a file, and returns the event about it, if any.
func (l *skillLibrary) activateForFile(cwd, file string) []protocol.Event {
	if !l.catalog.ActivateSkillsForFile(cwd, file) {
		return nil
	}
	said := l.profile.InitEventTemplate()
	l.catalog.FillInit(&said)
	return []protocol.Event{&protocol.SystemEvent{Subtype: "commands_changed", Fields: []protocol.Field{{Key: "commands", Value: l.catalog.DescribeCommands(l.profile, said.SlashCommands)}}}}
}

func (l *skillLibrary) findCommand(name string) (catalog.Command, bool) {
	name = strings.TrimPrefix(name, "/")
	if k, ok := l.catalog.Command(name); ok {
		return k, true
	}
	return catalog.BuiltInSkill(name)
}

func (l *skillLibrary) ActivateSkill(ctx context.Context, name, args string) (builtin.Skill, error) {
	if err := l.Check(name); err != nil {
		return builtin.Skill{}, err
	}
	k, _ := l.findCommand(name)
	l.policy.SetGrantedRules(k.Tools)
	if _, known := l.hooksAdded.LoadOrStore(k.Name, true); !known && k.Hooks != nil {
		l.hooks.replaceSource(hook.SettingsHooks{Name: "skill " + k.Name, Raw: k.Hooks, FromSkill: true})
	}
	text, err := command.ExpandTextRunningShell(ctx, l.shell, l.state, k, args)
	loaded := builtin.Skill{Name: k.Name, Text: text, Tools: k.Tools}
	if k.Model != "" && k.Model != "inherit" {
		loaded.Model = claudecode.ResolveModel(k.Model)
	}
	if agent, _ := ctx.Value(agentIDContextKey{}).(string); err == nil && !k.RunsInAgent {
		loaded.Previous, loaded.WasCompacted = l.state.RecordSkill(agent+k.Name, text)
	}
	return loaded, err
}

func (l *skillLibrary) ActivateForkedSkill(ctx context.Context, name, args string) (s agent.ForkedSkill, ok bool, err error) {
	k, ok := l.findCommand(name)
	if !ok || !k.RunsInAgent || l.Check(name) != nil {
		return s, false, nil
	}
	loaded, err := l.ActivateSkill(ctx, name, args)
	return forkedSkill(k, loaded.Text), true, err
}

// calledSkill returns the skill that a call of the tool Skill names, or the zero value.
func (l *skillLibrary) calledSkill(call protocol.ToolUse) catalog.Command {
	var in struct{ Skill string }
	_ = json.Unmarshal(call.Input, &in) // a call with invalid input names no skill
	k, _ := l.findCommand(in.Skill)
	return k
}

func (l *skillLibrary) forksAgent(call protocol.ToolUse) bool {
	k := l.calledSkill(call)
	return k.RunsInAgent && l.Check(k.Name) == nil
}

// Preload returns the text of a skill that an agent type lists, or false if the skill is unknown or cannot be expanded.
func (l *skillLibrary) Preload(ctx context.Context, name string) (text string, ok bool) {
	k, ok := l.findCommand(name)
	if !ok {
		return "", false
	}
	text, err := command.ExpandTextRunningShell(ctx, l.shell, l.state, k, "")
	return text, err == nil
}

func (l *skillLibrary) isAllowed(name string) bool {
	allowed := l.loadableSkills.Load()
	return allowed == nil || slices.Contains(*allowed, name)
}

func forkedSkill(k catalog.Command, text string) agent.ForkedSkill {
	return agent.ForkedSkill{Name: k.Name, Description: k.Description, Prompt: text, AgentType: k.Agent, Model: k.Model, Effort: k.Effort}
}

// Check returns an error with the text of the real CLI if the model cannot load the named skill.
func (l *skillLibrary) Check(name string) error {
	name = strings.TrimPrefix(name, "/")
	k, ok := l.findCommand(name)
	reserved := " Ask the user to run /" + name + " themselves — it cannot be invoked via the Skill tool."
	switch {
	case name == "":
		return errors.New("Invalid skill format: " + name)
	case !ok && slices.Contains(claudecode.TerminalOnlyCommands(), name):
		return errors.New(name + " is a UI command, not a skill." + reserved)
	case !ok && command.IsKnownBuiltin(name):
		return errors.New(name + " is a built-in CLI command, not a skill." + reserved)
	case !ok:
		return errors.New("Unknown skill: " + name + l.catalog.SimilarNameHint(name))
	case k.HiddenFromModel:
		return errors.New("Skill " + name + " cannot be used with Skill tool due to disable-model-invocation." + reserved + " Do not replicate this skill's workflow by other means — it is reserved for explicit user invocation.")
	case !l.isAllowed(k.Name) && !l.isAllowed(name):
		return errors.New("Skill " + name + " is not in this session's skills allowlist")
	}
	return nil
}

func instructionsLoadedHookInputs(instructionFiles []catalog.InstructionFile) []protocol.InstructionsLoadedHookInput {
	var hooks []protocol.InstructionsLoadedHookInput
	for _, m := range instructionFiles {
		if m.IsAgentsMD {
			continue
		}
		in := protocol.InstructionsLoadedHookInput{FilePath: m.Path, MemoryType: m.Type, LoadReason: "session_start"}
		if m.Parent != "" {
			in.LoadReason, in.ParentFilePath = "include", m.Parent
		}
		hooks = append(hooks, in)
	}
	return hooks
}
