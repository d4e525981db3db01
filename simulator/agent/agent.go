// Package agent runs sub-agents: an Agent (or Task) call starts a separate conversation with the same tools. The events
// of the agent appear in the conversation of the caller.
//
// An agent is a [simulator.Simulator]. Its events pass through its task, which keeps those of several agents in order.
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// MaxDepth is the maximum nesting depth of agents. An agent at this depth has no Agent tool (observed with 2.1.330).
const MaxDepth = 3

// Definition describes an agent type.
type Definition struct {
	Name            string
	Prompt          string   // system prompt
	Tools           []string // nil means all
	DisallowedTools []string
	Model           string // "inherit" means the session's model; empty means Options.Model
	Effort          string // effort level of the model; empty means the level of the session
	MaxTurns        int    // 0 means no limit
	Background      *bool  // selects where calls without run_in_background run; nil means in the background
	UsesWorktree    bool   // agents of this type work in a separate git worktree
	// Mode is the permission mode of the agent's calls; empty means the mode of the session. If the session is in
	// acceptEdits, auto or bypassPermissions, Mode has no effect.
	Mode   protocol.PermissionMode
	Hooks  json.RawMessage // hooks that are active while the agent runs, in the format of settings files; nil means none
	Skills []string        // skills that are loaded before the agent's prompt
}

// DefinitionSource finds agent types.
type DefinitionSource interface {
	FindAgentEvenIfDenied(name string) (Definition, bool)
	// AllAgentTypeNames lists the names of the agent types, for messages.
	AllAgentTypeNames() []string
	// DenyRuleForAgentType returns the rule that forbids an agent type, and its source; both are empty if no rule does.
	DenyRuleForAgentType(name string) (rule, source string)
}

// ModelSource creates the models of agents.
type ModelSource interface {
	// AgentModel returns the model that answers the requests of one agent. script has the answers for the call; if it
	// is nil, the rules of the scenario answer, as in a new conversation.
	AgentModel(script *protocol.SubagentScript) simulator.Model
	// ModelNameAfterOverrides returns the model name that the environment substitutes for name.
	ModelNameAfterOverrides(name string) string
}

// Session is the session that agents belong to.
type Session interface {
	// Options returns the current options of the main conversation.
	Options() simulator.Options
	// SessionName returns the name by which other sessions address this session.
	SessionName() string
	// CreateAgentWorktree creates a git worktree in which the agent's calls work until ReleaseAgent. If it fails, its error
	// becomes the result of the Agent call.
	CreateAgentWorktree(ctx context.Context, id string) (dir string, err error)
	// RemoveAgentWorktreeIfUnchanged ends the isolation of the agent. If nothing was changed in the worktree, it removes the worktree.
	// Otherwise it returns the path and the branch of the worktree.
	RemoveAgentWorktreeIfUnchanged(ctx context.Context, id string) (path, branch string)
	// ShowsTextOfAwaitedAgents reports whether stdout shows the text blocks of agents for which the caller waits.
	ShowsTextOfAwaitedAgents() bool
}

// Options configures [New]. Skills, Model and CWD are optional; everything else is required.
type Options struct {
	Tasks       *task.Set
	Definitions DefinitionSource
	Models      ModelSource
	Session     Session
	Skills      SkillsAndHooks // nil means no skill runs in an agent
	Model       string         // an agent's model if neither its call nor its type has one; empty or "inherit" means the session's model
	// CWD is the directory that is removed from the start of paths in progress messages. Empty means that paths are shown as they are.
	CWD string
	// Foreground makes all agents run in the foreground. A call that asks for the background is counted like a call
	// without run_in_background.
	Foreground bool
	// IsTerminal is set for a session in a terminal: its calls cannot ask for an agent in the foreground, and the
	// transcripts of its agents contain the structured results of tools.
	IsTerminal bool
}

// CallExecutor runs the calls of the Agent tool. It is safe for concurrent use.
type CallExecutor struct {
	options Options

	mu   sync.Mutex
	runs []*agentRun // in start order
	// knownTools contains the tools that each conversation knows, and for each tool the round in which the conversation
	// first knew it. The key "" is the main conversation. A conversation knows the tools that it has used itself, and those that
	// a report of one of its agents has listed.
	knownTools map[string]map[string]int
}

var _ executor.Executor = (*CallExecutor)(nil)

// New returns the executor of Agent calls; it starts nothing.
func New(o Options) *CallExecutor { return &CallExecutor{options: o} }

// IsAgentOrTask reports whether a tool name is one of the two names of the Agent tool.
func IsAgentOrTask(name string) bool { return name == "Agent" || name == "Task" }

// Tools returns no tools, because the definitions of the tools of Agents are among the built-in tools.
func (a *CallExecutor) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

type agentInput struct {
	Description  string  `json:"description"`
	Prompt       string  `json:"prompt"`
	SubagentType *string `json:"subagent_type"`
	Model        string  `json:"model"`
	Background   *bool   `json:"run_in_background"`
	Name         string  `json:"name"` // the name to which messages are addressed
	Isolation    string  `json:"isolation"`
}

// Execute runs an Agent call to its end, or starts the agent in the background. It also runs ListAgents, SendMessage
// and skills that run in an agent. For other calls it returns [executor.ErrUnknownTool].
func (a *CallExecutor) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	switch {
	case call.Name == "ListAgents":
		return executor.ResultOf(a.listReachableAgents(call.Agent != nil)), nil
	case call.Name == "SendMessage":
		return executor.ResultOf(a.sendMessage(ctx, call)), nil
	case call.Name == "Skill" && a.options.Skills != nil:
		return a.runForkedSkill(ctx, call)
	case IsAgentOrTask(call.Name):
		return a.runAgent(ctx, call)
	}
	return executor.Result{}, executor.ErrUnknownTool
}

func (a *CallExecutor) runAgent(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	var in agentInput
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return executor.ResultOf(protocol.UsageErrorResult(fmt.Sprintf("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))), nil
	}
	var script *protocol.SubagentScript
	if call.Script != nil {
		script = call.Script.Subagent
	}
	name := "general-purpose"
	switch {
	case in.SubagentType != nil: // an empty name is not replaced by the default
		name = *in.SubagentType
	case script != nil && script.Type != "":
		name = script.Type
	}
	def, ok := a.findDefinitionIgnoringCase(name)
	if !ok {
		return failedResult(fmt.Sprintf("Agent type '%s' not found. Available agents: %s", name, strings.Join(a.options.Definitions.AllAgentTypeNames(), ", "))), nil
	}
	if rule, source := a.options.Definitions.DenyRuleForAgentType(def.Name); rule != "" {
		return failedResult(fmt.Sprintf("Agent type '%s' has been denied by permission rule '%s' from %s.", def.Name, rule, source)), nil
	}
	depth, parent := 1, ""
	if call.Agent != nil {
		depth, parent = call.Agent.Depth+1, call.Agent.ID
	}
	id, dir := "", ""
	if isolated := def.UsesWorktree || in.Isolation == "worktree"; isolated {
		id, _ = a.options.Tasks.Reserve(task.KindAgent)
		var err error
		if dir, err = a.options.Session.CreateAgentWorktree(ctx, id); err != nil {
			return failedResult(err.Error()), nil
		}
	}
	if a.options.Foreground {
		in.Background, def.Background = nil, new(false)
	}
	if a.options.IsTerminal {
		in.Background = nil
	}
	a.options.Tasks.CountAgentRequest(in.Background)
	if depth >= MaxDepth {
		def.DisallowedTools = append(slices.Clone(def.DisallowedTools), "Agent")
	}
	t := a.options.Tasks.Start(task.Info{
		ID: id, Kind: task.KindAgent, ToolUseID: call.ID, Description: in.Description, AgentType: def.Name, Prompt: in.Prompt,
		Depth: depth, ParentID: parent, Background: runsInBackground(in, def, script),
	})
	w := &agentRun{agents: a, task: t, worktreeDir: dir, definition: def, input: in, script: script, callerToolUseID: call.ID, startingCall: call, started: a.now()}
	a.mu.Lock()
	w.isRunning = true
	a.runs = append(a.runs, w)
	a.mu.Unlock()
	simulator.PauseCallUntilNextStreamEvent(ctx)
	return w.runOrLaunch(ctx)
}

// RecordToolKnownToCaller records that the conversation that makes a call knows the called tool.
func (a *CallExecutor) RecordToolKnownToCaller(call protocol.ToolUse) {
	a.recordToolKnownToConversation(call.CallerAgentID(), call.Name, call.Round, false)
}

// recordToolKnownToConversation records that a conversation knows a tool. isNew is false if it already knew the tool from an
// earlier round or, if inBackground is true, from any earlier call.
func (a *CallExecutor) recordToolKnownToConversation(conversationID, tool string, round int, inBackground bool) (isNew bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.knownTools == nil {
		a.knownTools = map[string]map[string]int{}
	}
	if a.knownTools[conversationID] == nil {
		a.knownTools[conversationID] = map[string]int{}
	}
	first, known := a.knownTools[conversationID][tool]
	if !known {
		a.knownTools[conversationID][tool] = round
	}
	return !known || first >= round && !inBackground
}

// findDefinitionIgnoringCase finds an agent type by its name, first exactly, then ignoring case.
func (a *CallExecutor) findDefinitionIgnoringCase(name string) (Definition, bool) {
	if def, ok := a.options.Definitions.FindAgentEvenIfDenied(name); ok {
		return def, true
	}
	for _, other := range a.options.Definitions.AllAgentTypeNames() {
		if strings.EqualFold(other, name) {
			return a.options.Definitions.FindAgentEvenIfDenied(other)
		}
	}
	return Definition{}, false
}

func failedResult(text string) executor.Result { return executor.ResultOf(protocol.ErrorResult(text)) }

// runsInBackground reports whether the agent runs in the background. It uses the first value set by the
// input, the scenario or the agent type, in this order; the default is yes (spec: cli-contract 9.5).
func runsInBackground(in agentInput, def Definition, script *protocol.SubagentScript) bool {
	switch {
	case in.Background != nil:
		return *in.Background
	case script != nil && script.Background != nil:
		return *script.Background
	case def.Background != nil:
		return *def.Background
	default:
		return true
	}
}

func (a *CallExecutor) now() time.Time { return a.options.Session.Options().Clock.Now() }

// SkillsAndHooks provides the skills of agents, and activates the hooks of agent types.
type SkillsAndHooks interface {
	// SetAgentHooks replaces the hooks of an agent. raw has the format of settings files; nil means no hooks.
	SetAgentHooks(agentID string, raw json.RawMessage)
	// ActivateForkedSkill returns the prompt and options of a skill that runs in an agent. ok is false for unknown skills and
	// for skills that are loaded into the conversation.
	ActivateForkedSkill(ctx context.Context, name, args string) (s ForkedSkill, ok bool, err error)
	// Preload returns the text of a skill that an agent type lists; ok is false for unknown skills.
	Preload(ctx context.Context, name string) (text string, ok bool)
}

// ForkedSkill is the prompt and the options of a skill that runs in an agent.
type ForkedSkill struct {
	Name, Description, Prompt string
	AgentType                 string // empty or an unknown type means general-purpose
	Model, Effort             string // empty means those of the agent type
}

// runForkedSkill runs a skill in an agent. For skills that do not run in an agent, it returns [executor.ErrUnknownTool].
func (a *CallExecutor) runForkedSkill(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	var in struct{ Skill, Args string }
	if json.Unmarshal(call.Input, &in) != nil {
		return executor.Result{}, executor.ErrUnknownTool
	}
	skill, ok, err := a.options.Skills.ActivateForkedSkill(ctx, in.Skill, in.Args)
	switch {
	case !ok:
		return executor.Result{}, executor.ErrUnknownTool
	case err != nil:
		return failedResult(err.Error()), nil
	}
	w := a.startTaskOfForkedRun(skill, call)
	simulator.PauseCallUntilNextStreamEvent(ctx)
	if _, err := w.runTaskToEnd(ctx); err != nil {
		return executor.Result{}, err
	}
	if ctx.Err() != nil {
		return executor.ResultOf(executor.InterruptedResult()), ctx.Err()
	}
	return executor.ResultOf(w.forkedSkillResult(in.Skill)), nil
}

// RunSkill runs, in an agent, a skill that the user typed. It returns the answer of the agent.
func (a *CallExecutor) RunSkill(ctx context.Context, skill ForkedSkill, addedContext []string) (string, error) {
	w := a.startTaskOfForkedRun(skill, protocol.ToolUse{})
	w.callerToolUseID, w.promptContext = "forked-command-"+skill.Name, addedContext
	if _, err := w.runTaskToEnd(ctx); err != nil {
		return "", err
	}
	return cmp.Or(w.progress.answerOrErrorText(), "Command completed"), ctx.Err()
}

func (a *CallExecutor) startTaskOfForkedRun(skill ForkedSkill, call protocol.ToolUse) *agentRun {
	def, ok := a.findDefinitionIgnoringCase(skill.AgentType)
	if !ok {
		def, _ = a.findDefinitionIgnoringCase("general-purpose")
	}
	def.Effort = cmp.Or(skill.Effort, def.Effort)
	depth, parent := 1, ""
	if call.Agent != nil {
		depth, parent = call.Agent.Depth+1, call.Agent.ID
	}
	t := a.options.Tasks.Start(task.Info{
		Kind: task.KindAgent, ToolUseID: call.ID, Description: "/" + skill.Name, AgentType: def.Name, Prompt: skill.Prompt,
		Depth: depth, ParentID: parent, IsAmbient: true,
	})
	w := &agentRun{
		agents: a, task: t, definition: def, callerToolUseID: call.ID, startingCall: call, started: a.now(), skillName: skill.Name,
		input: agentInput{Description: skill.Description, Prompt: skill.Prompt, Model: skill.Model},
	}
	a.mu.Lock()
	w.isRunning = true
	a.runs = append(a.runs, w)
	a.mu.Unlock()
	return w
}

type messageTarget struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Ref  string `json:"ref"`
}

// sendMessageResult is the result of SendMessage. The model does not see Revived and Display.
type sendMessageResult struct {
	Success bool           `json:"success"`
	Message string         `json:"message"`
	Resumed string         `json:"resumedAgentId,omitempty"`
	Pin     *messageTarget `json:"pin,omitempty"`
	Revived string         `json:"revivedAgentId,omitempty"`
	Display string         `json:"display,omitempty"`
}

func (s sendMessageResult) nonErrorToolResult() protocol.ToolResult {
	shown := s
	shown.Revived, shown.Display = "", ""
	text, err := protocol.Marshal(shown)
	if err != nil {
		return protocol.ErrorResult(err.Error())
	}
	return protocol.ToolResult{Content: protocol.Content{Blocks: []protocol.Block{protocol.Text(string(text))}}, Output: s}
}

// sendMessage sends a message to an agent or, from an agent, to the main conversation. A running agent reads it after its
// current reply; an agent that has finished continues in the background with the message.
func (a *CallExecutor) sendMessage(ctx context.Context, call protocol.ToolUse) protocol.ToolResult {
	var in struct{ To, Message string }
	_ = json.Unmarshal(call.Input, &in) // the input was validated before
	if in.To == "main" && call.Agent == nil {
		return sendMessageResult{Message: `You are the main conversation — "main" addresses you. Send to a named agent instead.`}.nonErrorToolResult()
	}
	a.mu.Lock()
	if in.To == "main" {
		sender := a.findReachableAgentLocked(call.Agent.ID)
		sender.unsentToMain = append(sender.unsentToMain, in.Message)
		a.mu.Unlock()
		return sendMessageResult{Success: true, Message: "Message queued for the main conversation's next turn."}.nonErrorToolResult()
	}
	w := a.findReachableAgentLocked(in.To)
	if w == nil {
		a.mu.Unlock()
		return sendMessageResult{
			Message: "No agent named '" + in.To + "' is reachable.\nUse ListAgents to see everyone you can message.",
			Display: "Not sent — no agent named '" + in.To + "' is reachable.",
		}.nonErrorToolResult()
	}
	p := &messageTarget{ID: w.task.ID, Name: w.nameOrTaskID(), Ref: w.digestOfTaskID()}
	if w.isRunning {
		w.undeliveredMessages = append(w.undeliveredMessages, in.Message)
		a.mu.Unlock()
		return sendMessageResult{Success: true, Pin: p, Message: "Message queued for delivery to " + p.Name + " at its next tool round. " +
			"If it finishes first, it is resumed with the message and notifies again, so wait for that notification before resending."}.nonErrorToolResult()
	}
	w.isRunning = true
	a.mu.Unlock()
	w.resumeFinishedAgent(ctx, call.ID, in.Message)
	name := p.Name
	if name == w.task.ID {
		name = name[:min(len(name), 7)]
	}
	return sendMessageResult{Success: true, Message: "Resuming agent " + name, Resumed: w.task.ID, Revived: w.task.ID, Pin: p}.nonErrorToolResult()
}

// findReachableAgentLocked returns the latest agent with this name or id that is running or can be resumed; a.mu must be
// held. It also accepts "name [ref]", the form used in lists.
func (a *CallExecutor) findReachableAgentLocked(nameOrID string) *agentRun {
	name, ref, _ := strings.Cut(strings.TrimSuffix(nameOrID, "]"), " [")
	for i := len(a.runs) - 1; i >= 0; i-- {
		if w := a.runs[i]; (w.nameOrTaskID() == name || w.task.ID == name) && (ref == "" || ref == w.digestOfTaskID()) && (w.isRunning || w.simulator != nil) {
			return w
		}
	}
	return nil
}

func (a *CallExecutor) listReachableAgents(withIntroForSubagent bool) protocol.ToolResult {
	type row struct {
		Name   string `json:"name"`
		Ref    string `json:"ref"`
		ID     string `json:"id"`
		Type   string `json:"type"`
		Status string `json:"status"`
	}
	type section struct {
		Kind  string `json:"kind"`
		Total int    `json:"total"`
		Rows  []row  `json:"rows"`
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var text strings.Builder
	name := a.options.Session.SessionName()
	if withIntroForSubagent {
		text.WriteString("This process's main session is " + name + ` — the name OTHER sessions use to message it (it is not listed below; from inside this process, address the main conversation as "main").` + "\n\n")
	} else {
		text.WriteString("This session is " + name + " — the name other sessions use to message it (it is not listed below; a message to it would be a message to yourself).\n\n")
	}
	sections := []section{}
	reachable := slices.DeleteFunc(slices.Clone(a.runs), func(w *agentRun) bool { return w.input.Name == "" && !w.task.Background && !w.isRunning })
	if len(reachable) == 0 {
		text.WriteString("No reachable agents — no other Claude session is running on this machine right now " +
			"(peer messaging itself is available; a session appears here once it is started).")
	} else {
		s := section{Kind: "subagents", Total: len(reachable)}
		fmt.Fprintf(&text, "Subagents (%d):", s.Total)
		for _, w := range reachable {
			r := row{w.nameOrTaskID(), w.digestOfTaskID(), w.task.ID, w.task.AgentType, string(w.status)}
			if w.isRunning {
				r.Status = "running"
			}
			s.Rows = append(s.Rows, r)
			fmt.Fprintf(&text, "\n  %s [%s]  ·  %s  ·  %s  ·  started %ds ago", r.Name, r.Ref, r.Type, r.Status, int(a.now().Sub(w.started).Seconds()))
		}
		sections = append(sections, s)
	}
	return protocol.ToolResult{Content: protocol.Content{Text: text.String()}, Output: struct {
		Listing  string    `json:"listing"`
		Sections []section `json:"sections"`
		Notes    []string  `json:"notes"`
	}{text.String(), sections, []string{}}}
}
