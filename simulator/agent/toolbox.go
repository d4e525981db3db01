package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// agentToolbox contains the tools of an agent. It sets the agent of each call and passes the call to the session's checks.
type agentToolbox struct {
	executor.Executor
	sessionTools simulator.InspectingExecutor
	agent        protocol.AgentRef
	run          *agentRun
}

// isExcludedByAgentDefinition reports whether the agent's definition excludes a tool. A call of an excluded tool is refused
// before its input is checked.
func (t agentToolbox) isExcludedByAgentDefinition(toolName string) bool {
	return !t.run.definition.allowsTool(protocol.Tool{Name: toolName})
}

func (t agentToolbox) Prepare(call protocol.ToolUse) simulator.ToolCallChangesBeforeShown {
	if t.isExcludedByAgentDefinition(call.Name) {
		return simulator.ToolCallChangesBeforeShown{}
	}
	call.Agent = &t.agent
	return t.sessionTools.Prepare(call)
}

func (t agentToolbox) Precheck(ctx context.Context, call protocol.ToolUse) simulator.PrecheckResult {
	call.Agent = &t.agent
	check := t.sessionTools.Precheck(ctx, call)
	if t.isExcludedByAgentDefinition(call.Name) && check.Refusal != nil && !check.Refusal.UnknownTool && !strings.Contains(check.Refusal.Content.Plain(), "Error: No such tool available") {
		return simulator.PrecheckResult{}
	}
	return check
}

func (t agentToolbox) FirstVisibleEffectOfCall(ctx context.Context, call protocol.ToolUse) (firstVisibleEffect simulator.CallStartOrRefusal) {
	if t.isExcludedByAgentDefinition(call.Name) {
		return simulator.CallStartOrRefusal{Point: simulator.StreamPointBeforeBlockStop}
	}
	call.Agent = &t.agent
	return t.sessionTools.FirstVisibleEffectOfCall(ctx, call)
}

func (t agentToolbox) TakeNewContextFiles(agent *protocol.AgentRef, succeededCalls []protocol.ToolUse) (filesToAddToContext []simulator.ContextFile) {
	if known, ok := t.sessionTools.(simulator.ContextSource); ok {
		filesToAddToContext = known.TakeNewContextFiles(agent, succeededCalls)
	}
	return append(filesToAddToContext, t.takeMessagesAsContext()...)
}

// takeMessagesAsContext returns the messages that arrived during the calls of a reply. The model receives them with the results.
func (t agentToolbox) takeMessagesAsContext() (messages []simulator.ContextFile) {
	w := t.run
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	for _, message := range w.undeliveredMessages {
		attachment, _ := protocol.MarshalFields([]protocol.Field{ // cannot fail
			{Key: "type", Value: "queued_command"},
			{Key: "prompt", Value: message},
			{Key: "source_uuid", Value: w.agents.options.Session.Options().Clock.NewID()},
			{Key: "origin", Value: json.RawMessage(messageOrigin)},
			{Key: "isMeta", Value: true},
		})
		messages = append(messages, simulator.ContextFile{Role: "system", Text: promptWithMessage(message), Attachment: json.RawMessage(attachment)})
	}
	w.undeliveredMessages = nil
	return messages
}

func (w *agentRun) sendMessagesToMain() {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	for _, message := range w.unsentToMain {
		w.task.SendToMain(w.nameOrTaskID(), cmp.Or(w.input.Name, w.task.AgentType), message)
	}
	w.unsentToMain = nil
}

func middlewareSettingAgentOfCall(ref protocol.AgentRef) executor.Middleware {
	return executor.NewMiddleware(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		call.Agent = &ref
		return next.Execute(ctx, call)
	})
}

// middlewareRefusingExcludedTools returns an error result for calls of tools that the session has but the agent does not.
func middlewareRefusingExcludedTools(sessionTools executor.Executor) executor.Middleware {
	return executor.NewMiddleware(func(ctx context.Context, call protocol.ToolUse, next executor.Executor) (executor.Result, error) {
		result, err := next.Execute(ctx, call)
		if !errors.Is(err, executor.ErrUnknownTool) {
			return result, err
		}
		tools, listErr := sessionTools.Tools(ctx)
		if listErr != nil || !slices.ContainsFunc(tools, func(t protocol.Tool) bool { return t.Name == call.Name }) {
			return result, err
		}
		return executor.ResultOf(executor.ToolNotOfferedResult(call.Name)), nil
	})
}

func (d Definition) allowsTool(tool protocol.Tool) bool {
	names := func(rule string) bool { return ruleMatchesTool(rule, tool.Name) }
	return !claudecode.ToolNamed(tool.Name).MainOnly && (d.Tools == nil || slices.ContainsFunc(d.Tools, names)) && !slices.ContainsFunc(d.DisallowedTools, names)
}

// ruleMatchesTool reports whether an entry of a list of tools matches a tool. The content of a rule does not matter, so
// Bash(git *) matches every Bash command. mcp__server matches all tools of the server.
func ruleMatchesTool(rule, tool string) bool {
	rule = claudecode.ParsePermissionRule(rule).Tool
	return rule == tool || rule == "*" || IsAgentOrTask(rule) && IsAgentOrTask(tool) ||
		strings.HasPrefix(rule, "mcp__") && strings.HasPrefix(tool, strings.TrimSuffix(rule, "__*")+"__")
}

// RequestingAgent describes the agent that sends a request to the model. RequestingAgent{} means the main conversation.
type RequestingAgent struct {
	Definition
	ModelName    string // full name
	Skill        string // the skill that the agent runs; empty means none
	InBackground bool
	Launch       protocol.AgentLaunch
}

// RequestingAgent returns the agent with this id. An empty id means the main conversation, for which it returns the zero value.
func (a *CallExecutor) RequestingAgent(agentIDOrEmpty string) RequestingAgent {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.runs {
		if w.task.ID == agentIDOrEmpty {
			launch := protocol.AgentLaunch{Name: w.input.Name, Model: w.input.Model, InBackground: w.task.Background, OfSkill: w.skillName != "", WorktreePath: w.worktreeDir}
			if !w.isRunning {
				launch.WorktreePath = w.worktree.Path
			}
			return RequestingAgent{w.definition, w.model, w.skillName, w.task.Background, launch}
		}
	}
	return RequestingAgent{}
}

// AllowsMCPTool reports whether the agent may use a tool of an MCP server.
func (r RequestingAgent) AllowsMCPTool(t protocol.Tool) bool { return r.Name == "" || r.allowsTool(t) }

// OfferedTools returns the tools in requests of the agent: sessionTools or, if the agent's definition lists tools,
// those for which toolExists returns true, in listed order. It leaves out tools that the agent may not use.
func (r RequestingAgent) OfferedTools(sessionTools []string, toolExists func(name string) bool) []string {
	if r.Name == "" {
		return sessionTools
	}
	offered := slices.Clone(sessionTools)
	if r.Tools != nil && !slices.Contains(r.Tools, "*") {
		offered = nil
		for _, rule := range r.Tools {
			if name := claudecode.ToolNamed(claudecode.ParsePermissionRule(rule).Tool).Name; name != "" && toolExists(name) {
				offered = append(offered, name)
			}
		}
	}
	hasShell := slices.Contains(offered, "Bash") && r.allowsTool(protocol.Tool{Name: "Bash"})
	return slices.DeleteFunc(offered, func(name string) bool {
		tool := claudecode.ToolNamed(name)
		return !r.allowsTool(protocol.Tool{Name: name}) || name == "Monitor" && !hasShell || hasShell && (name == "Glob" || name == "Grep") || r.InBackground && tool.ForegroundOnly || tool.Listing == claudecode.InitListsToolIfUserCanAnswer
	})
}
