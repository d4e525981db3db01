// Package agent runs sub-agents: an Agent (or Task) call starts a conversation
// of its own with the same tools, whose events appear in the conversation of
// the caller.
//
// An agent is a [simulator.Simulator]. Its events pass through its task, which
// keeps the events of one agent in order while several agents run.
package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// MaxDepth is how deep agents may start agents.
const MaxDepth = 5

// Definition is a kind of agent.
type Definition struct {
	Name       string
	Prompt     string   // its system prompt
	Tools      []string // nil = all
	Disallowed []string
	Model      string // empty or "inherit" = that of the session
	MaxTurns   int    // 0 = no limit
	// Background says whether calls wait when they do not say so themselves;
	// nil = they do not wait.
	Background *bool
}

// Kinds are the kinds of agents that there are.
type Kinds interface {
	Find(name string) (Definition, bool)
	// Names lists them, for messages.
	Names() []string
	// Denied is the rule that keeps agents of a kind from starting, and its
	// source; empty = none does.
	Denied(name string) (rule, source string)
}

// Models make what agents are played by.
type Models interface {
	// Script is the model of one agent: what the call scripts, or rules that have
	// seen no prompt yet.
	Script(script *protocol.SubagentScript) simulator.Model
	// Name is what the environment has in the place of a model's name.
	Name(name string) string
}

// Session is the session that agents belong to.
type Session interface {
	// Options are those of its own conversation, as it runs right now.
	Options() simulator.Options
	// Name is how other sessions would call it.
	Name() string
	// Shown tells whether texts of agents that the caller waits for are shown on
	// stdout.
	Shown() bool
}

// Options configures [New]. Everything but CWD is required.
type Options struct {
	Tasks   *task.Set
	Kinds   Kinds
	Models  Models
	Session Session
	// CWD is taken away from the front of paths in progress; empty = nothing is.
	CWD string
}

// Agents runs the calls of the Agent tool. Safe for concurrent use.
type Agents struct {
	o Options

	mu      sync.Mutex
	workers []*agentRun // in the order of their start
}

var _ executor.Executor = (*Agents)(nil)

// New makes the executor of Agent calls. It starts nothing.
func New(o Options) *Agents { return &Agents{o: o} }

// IsCall tells whether a tool name is that of the Agent tool: it has two.
func IsCall(name string) bool { return name == "Agent" || name == "Task" }

// Tools lists nothing: the definitions stand among the built-in tools.
func (a *Agents) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

type input struct {
	Description  string  `json:"description"`
	Prompt       string  `json:"prompt"`
	SubagentType *string `json:"subagent_type"`
	Model        string  `json:"model"`
	Background   *bool   `json:"run_in_background"`
	Name         string  `json:"name"` // that messages are sent to
}

// Execute runs an Agent call to its end, or only starts the agent; ListAgents
// and SendMessage are about those that it started. Other calls are
// [executor.ErrUnknownTool].
func (a *Agents) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	switch {
	case call.Name == "ListAgents":
		return executor.Plain(a.list()), nil
	case call.Name == "SendMessage":
		return executor.Plain(a.send(ctx, call)), nil
	case !IsCall(call.Name):
		return executor.Result{}, executor.ErrUnknownTool
	}
	var in input
	if err := json.Unmarshal(call.Input, &in); err != nil {
		return executor.Plain(protocol.UsageError(fmt.Sprintf("InputValidationError: %s failed due to the following issue:\n%v", call.Name, err))), nil
	}
	var script *protocol.SubagentScript
	if call.Script != nil {
		script = call.Script.Subagent
	}
	name := "general-purpose"
	switch {
	case in.SubagentType != nil: // also a name that is empty
		name = *in.SubagentType
	case script != nil && script.Type != "":
		name = script.Type
	}
	def, ok := a.kind(name)
	if !ok {
		return failed(fmt.Sprintf("Agent type '%s' not found. Available agents: %s", name, strings.Join(a.o.Kinds.Names(), ", "))), nil
	}
	if rule, source := a.o.Kinds.Denied(def.Name); rule != "" {
		return failed(fmt.Sprintf("Agent type '%s' has been denied by permission rule '%s' from %s.", def.Name, rule, source)), nil
	}
	depth, parent := 1, ""
	if call.Agent != nil {
		depth, parent = call.Agent.Depth+1, call.Agent.ID
	}
	a.o.Tasks.Request(in.Background)
	if depth > MaxDepth {
		a.o.Tasks.Refuse()
		return failed(fmt.Sprintf("Agents may start agents to a depth of %d; this one would be deeper.", MaxDepth)), nil
	}
	t := a.o.Tasks.Start(task.Info{
		Kind: task.Agent, ToolUseID: call.ID, Description: in.Description, AgentType: def.Name, Prompt: in.Prompt,
		Depth: depth, ParentID: parent, Background: background(in, def, script),
	})
	w := &agentRun{a: a, t: t, def: def, in: in, script: script, caller: call.ID, started: a.now()}
	a.mu.Lock()
	w.runs = true
	a.workers = append(a.workers, w)
	a.mu.Unlock()
	return w.start(ctx)
}

// kind finds a kind of agent by its name, else by one that differs from it in the case of letters only.
func (a *Agents) kind(name string) (Definition, bool) {
	if def, ok := a.o.Kinds.Find(name); ok {
		return def, true
	}
	for _, other := range a.o.Kinds.Names() {
		if strings.EqualFold(other, name) {
			return a.o.Kinds.Find(other)
		}
	}
	return Definition{}, false
}

// failed is a tool error whose text is shown as it is.
func failed(text string) executor.Result { return executor.Plain(protocol.ErrorResult(text)) }

// background decides whether the call waits: its input, the scenario, the kind
// of agent, and in the end it does not (spec: cli-contract 9.5).
func background(in input, def Definition, script *protocol.SubagentScript) bool {
	switch {
	case in.Background != nil:
		return *in.Background
	case script != nil:
		return script.Background
	case def.Background != nil:
		return *def.Background
	default:
		return true
	}
}

func (a *Agents) now() time.Time { return a.o.Session.Options().Clock.Now() }
