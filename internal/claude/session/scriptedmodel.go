package session

import (
	"context"
	"errors"
	"io"

	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// scriptedModel answers from the scenario.
type scriptedModel struct {
	modelNameOverrider
	records journalAndWarningWriter
	engine  *scenarios.Engine
	failure *scenarios.Failure // the failure of every reply; nil means the scenario answers
	fault   string             // the name of a fault that lasts for the whole run; empty means none
	stdout  io.Writer          // the output of the run; faults can corrupt it
	gates   string             // the directory of the gates, at which steps wait until another process releases them; empty means none
}

// modelNameOverrider maps model names to those that the environment sets for them.
type modelNameOverrider interface{ ModelNameAfterOverrides(name string) string }

// journalAndWarningWriter receives the journal lines of a run, such as findings, and its warnings.
type journalAndWarningWriter interface {
	WriteJournal(b journal.Body)
	WarnOnStderr(text string)
	// WarnUnlessRunAsClaude writes a warning of claudeless, which the real CLI does not have.
	WarnUnlessRunAsClaude(text string)
}

func (p *scriptedModel) ArmFaultAndSelectMainModel() simulator.Model {
	failure := p.failure
	if name := procio.ArmFault(p.stdout, p.fault); name != "" && failure == nil {
		failure = scenarios.FailureByName(name)
	}
	if failure == nil {
		return p
	}
	return failingModel{failure}
}

func (p *scriptedModel) AgentModel(script *protocol.SubagentScript) simulator.Model {
	if p.failure != nil {
		return failingModel{p.failure}
	}
	return scriptedAgentModel{p, p.engine.NewSubagentEngine(script)}
}

type scriptedAgentModel struct {
	mainModel *scriptedModel
	*scenarios.Engine
}

// Next returns the reply from the script of the agent. If the step has a gate, it first waits until the gate is released.
func (a scriptedAgentModel) Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error) {
	reply, err := a.Engine.Next(ctx, r)
	a.mainModel.reportReplyProblems(ctx, reply, err)
	if err == nil {
		err = a.mainModel.waitAtGates(ctx, reply)
	}
	return reply, err
}

// reportReplyProblems records an endless rule, a failed expression and each missing value of a reply in the journal.
func (p *scriptedModel) reportReplyProblems(ctx context.Context, reply scenarios.Reply, err error) {
	if broken, ok := errors.AsType[*scenarios.RuleEvaluationError](err); ok && ctx.Err() == nil {
		p.records.WriteJournal(journal.NewFailedExpressionFinding(broken.Rule.File, broken.Rule.Line, broken.Err.Error()))
	}
	if reply.IsEndless {
		p.records.WriteJournal(journal.NewEndlessRuleFinding(reply.Rule.Name, reply.Rule.File, reply.Rule.Line))
	}
	for _, path := range reply.Missing {
		p.records.WarnUnlessRunAsClaude("`" + path + "` in a template has no value (" + reply.Rule.String() + ")")
		p.records.WriteJournal(journal.NewMissingTemplateValueFinding(reply.Rule.File, reply.Rule.Line, path))
	}
}

type failingModel struct{ failure *scenarios.Failure }

func (m failingModel) Next(context.Context, scenarios.Request) (scenarios.Reply, error) {
	return scenarios.Reply{Failure: m.failure, Rule: scenarios.RuleLocation{Name: "--failure"}}, nil
}

// Next returns the reply of the engine after waiting at the gates of its step. A fault of the reply is activated first:
// it affects the output from then on, or turns the reply into a failure.
func (p *scriptedModel) Next(ctx context.Context, r scenarios.Request) (scenarios.Reply, error) {
	reply, err := p.engine.Next(ctx, r)
	p.reportReplyProblems(ctx, reply, err)
	if err != nil {
		return reply, err
	}
	if name := procio.ArmFault(p.stdout, reply.Fault); name != "" && reply.Failure == nil {
		reply.Failure = scenarios.FailureByName(name)
	}
	return reply, p.waitAtGates(ctx, reply)
}

func (p *scriptedModel) waitAtGates(ctx context.Context, reply scenarios.Reply) error {
	for _, g := range []struct {
		name string
		own  bool
	}{{reply.After, false}, {reply.Gate, true}} {
		if g.name == "" {
			continue
		}
		err := errNoGates
		if p.gates != "" {
			err = p.waitForGateRelease(ctx, g.name, g.own)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.records.WarnOnStderr("gate " + g.name + ": " + err.Error()) // the run continues
			p.records.WriteJournal(journal.NewUnreleasedGateFinding(g.name, err.Error(), "claudeless gates release "+g.name, reply.Rule.File, reply.Rule.Line))
		}
	}
	return nil
}

var errNoGates = errors.New("the scenario waits at a gate, but CLAUDELESS_GATES is not set: use claudeless exec, or set the variable to a directory")

// waitForGateRelease waits until a gate is released, or until its time-out. If recordsArrival is true, the gate belongs to this
// step, and waitForGateRelease first records that the step has reached the gate.
func (p *scriptedModel) waitForGateRelease(ctx context.Context, gateName string, recordsArrival bool) error {
	if recordsArrival {
		if err := gate.MarkGateReached(p.gates, gateName); err != nil {
			return err
		}
		p.records.WriteJournal(journal.Gate{Name: gateName, Event: "reached"})
	}
	err := gate.AwaitReleased(ctx, p.gates, gateName, gate.DefaultMaxWaitAtGate)
	switch {
	case err == nil:
		p.records.WriteJournal(journal.Gate{Name: gateName, Event: "released"})
	case errors.Is(err, gate.ErrGateWaitTimedOut):
		p.records.WriteJournal(journal.Gate{Name: gateName, Event: "timeout"})
	}
	return err
}
