package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/edge"
	"github.com/claudeless/claudeless/internal/gate"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/command"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// background is what goes on beside the conversation: tasks, and the agents among them.
type background struct {
	tasks   *task.Set
	agents  *agent.Agents
	plan    launch.Plan
	policy  *policy
	records *recorder
	live    *simulator.Live
	shown   atomic.Bool       // texts of agents that are waited for
	options simulator.Options // of the session's own conversation; set before its first turn
	scratch scratch
}

// scratch is a directory that goes with the run.
type scratch struct {
	once sync.Once
	dir  *proc.TempDir // nil = not made
}

// newBackground prepares agents and tasks. It starts nothing.
func newBackground(plan launch.Plan, live *simulator.Live, p *policy) *background {
	b := &background{plan: plan, policy: p, records: p.records, live: live}
	b.tasks = task.New(task.Options{NewID: plan.Clock.NewID, Now: plan.Clock.Now, Dir: b.dir, Ordered: plan.Clock.Repeatable()})
	b.agents = agent.New(agent.Options{Tasks: b.tasks, Kinds: b, Models: players{plan, p.records.engine.Engine, p.records}, Session: b, CWD: plan.CWD})
	b.shown.Store(plan.Output.AgentText)
	return b
}

// dir holds the output of tasks: below the temporary directory, one folder for each user, project and session (observed with
// 2.1.329), or in a directory that goes when nothing is to be kept.
func (b *background) dir() string {
	if b.plan.TaskTemp != "" {
		project := filepath.Base(filepath.Dir(b.records.transcript.Path()))
		return filepath.Join(b.plan.TaskTemp, fmt.Sprintf("claude-%d", b.plan.UID), project, b.records.ID(), "tasks")
	}
	b.scratch.once.Do(func() {
		b.scratch.dir, _ = proc.MakeTempDir("claudeless-tasks-")
	})
	if b.scratch.dir == nil {
		return "" // tasks then write nowhere
	}
	return b.scratch.dir.Path
}

// planFile is where the session keeps its plan; empty = nowhere.
func (b *background) planFile() string {
	if b.plan.Transcript.NoPersist {
		return ""
	}
	return filepath.Join(b.plan.State, "plans", b.records.ID()+".md")
}

// close ends what still runs.
func (b *background) close() {
	b.tasks.Close()
	if err := b.scratch.dir.Remove(); err != nil {
		b.records.warn(err.Error())
	}
}

// Options are those of the session's own conversation.
func (b *background) Options() simulator.Options { return b.options }

// Name is how other sessions would call this one.
func (b *background) Name() string { return command.SessionName(b.live.Now().Title, b.records.ID()) }

// Shown tells whether texts of agents that are waited for are shown.
func (b *background) Shown() bool { return b.shown.Load() }

// Find returns the kind of agent with a name.
func (b *background) Find(name string) (agent.Definition, bool) {
	a, ok := b.plan.Catalog.Agent(name)
	return agent.Definition{
		Name: a.Name, Description: a.Description, Prompt: a.Prompt, Tools: a.Tools, Disallowed: a.Disallowed,
		Model: a.Model, MaxTurns: a.MaxTurns, Background: a.Background,
	}, ok
}

// Names lists the kinds there are.
func (b *background) Names() []string { return b.plan.Catalog.AgentNames() }

// Denied is the rule that keeps agents of a kind from starting.
func (b *background) Denied(name string) (rule, source string) { return b.policy.DeniedAgent(name) }

// players are the models of the session and of its agents.
type players struct {
	plan    launch.Plan
	engine  *scenarios.Engine
	records *recorder
}

// own is the model of the session: the scripted one, or one that fails as --failure says.
func (p players) own() simulator.Model {
	failure := p.plan.Scenario.Failure
	if name := edge.ArmOutput(p.plan.Stdout, p.plan.Scenario.Fault); name != "" && failure == nil {
		failure = scenarios.FailureByName(name)
	}
	if failure == nil {
		return staged{Engine: p.engine, plan: p.plan, records: p.records}
	}
	return failing{failure: failure}
}

// Script is the model of one agent.
func (p players) Script(script *protocol.SubagentScript) simulator.Model {
	if p.plan.Scenario.Failure != nil {
		return p.own()
	}
	return p.engine.Subagent(script)
}

// Name is what the environment has in the place of a model's name.
func (p players) Name(name string) string { return p.plan.Model.Aliases.Name(name) }

// failing is a model whose every reply is the same failure.
type failing struct{ failure *scenarios.Failure }

// Next fails.
func (m failing) Next(context.Context, scenarios.Request) (scenarios.Reply, error) {
	return scenarios.Reply{Failure: m.failure, Rule: scenarios.RuleRef{Name: "--failure"}}, nil
}

// staged is the scripted model; its replies may want to wait at a gate, and the output spoiled.
type staged struct {
	*scenarios.Engine
	plan    launch.Plan
	records *recorder
}

// Next is the engine's reply, when it may go on.
func (m staged) Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error) {
	reply, err := m.Engine.Next(ctx, r)
	if err != nil {
		return reply, err
	}
	if name := edge.ArmOutput(m.plan.Stdout, reply.Fault); name != "" && reply.Failure == nil {
		reply.Failure = scenarios.FailureByName(name)
	}
	for _, g := range []struct {
		name string
		own  bool
	}{{reply.After, false}, {reply.Gate, true}} {
		if g.name == "" {
			continue
		}
		err := errNoGates
		if m.plan.Records.Gates != "" {
			err = m.wait(ctx, g.name, g.own)
		}
		if ctx.Err() != nil {
			return reply, ctx.Err()
		}
		if err != nil {
			m.complain(g.name, reply.Rule, err)
		}
	}
	return reply, nil
}

var errNoGates = errors.New("there are none outside of claudeless exec: name a directory with CLAUDELESS_GATES")

// wait holds a message back until its own gate, or that of another step, is released.
func (m staged) wait(ctx context.Context, name string, own bool) error {
	dir := m.plan.Records.Gates
	if own {
		if err := gate.Reach(dir, name); err != nil {
			return err
		}
		m.write(journal.Gate{Name: name, Event: "reached"})
	}
	err := gate.AwaitReleased(ctx, dir, name, gate.Patience)
	switch {
	case err == nil:
		m.write(journal.Gate{Name: name, Event: "released"})
	case errors.Is(err, gate.ErrTimeout):
		m.write(journal.Gate{Name: name, Event: "timeout"})
	}
	return err
}

// complain says that nobody came: the message goes on, and the run has a finding.
func (m staged) complain(name string, rule scenarios.RuleRef, err error) {
	m.records.warn("gate " + name + ": " + err.Error())
	m.write(journal.Finding{
		ID: "T01", Level: "error", Text: "the gate " + name + " was not released: " + err.Error(),
		Advice: "release it: claudeless gates release " + name, File: rule.File, Line: rule.Line,
	})
}

func (m staged) write(b journal.Body) {
	if m.records.journal != nil {
		m.records.journal.Write(b)
	}
}
