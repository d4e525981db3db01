package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ScriptedGateOptions configure a ScriptedGate. Breakpoints and Now must be set.
type ScriptedGateOptions struct {
	Breakpoints []scenarios.Breakpoint // breakpoints of a loaded or compiled scenario
	Now         func() time.Time
	// Resolve returns the canonical name of a replacement tool. If it is nil, names must be canonical or "server/tool".
	Resolve func(ctx context.Context, name string) string
}

// ScriptedGate is a [ToolCallGate] whose decisions come from a scenario. All methods may be called from many goroutines.
type ScriptedGate struct {
	hub                          *Hub
	resolveTool                  func(context.Context, string) string
	scenarioBreakpointByRuleName map[string]*scenarios.Breakpoint
}

// NewScriptedGate returns a gate that decides about tool calls as the scenario's breakpoints say. Close also closes its hub.
func NewScriptedGate(o ScriptedGateOptions) (*ScriptedGate, error) {
	if o.Now == nil {
		return nil, errors.New("debug: ScriptedGateOptions.Now must be set")
	}
	// The ids of pauses in this run are only displayed; no request looks one up later.
	var pauses atomic.Int64
	hub, err := New(Options{
		Now: o.Now, NewID: func() string { return fmt.Sprintf("scripted-%d", pauses.Add(1)) },
		Store: cas.New(cas.Options{MaxBytes: 1, MaxValue: 1}), MaxRecords: 1,
	})
	if err != nil {
		return nil, err
	}
	g := &ScriptedGate{hub: hub, resolveTool: o.Resolve, scenarioBreakpointByRuleName: map[string]*scenarios.Breakpoint{}}
	if g.resolveTool == nil {
		g.resolveTool = func(_ context.Context, name string) string { return name }
	}
	for i := range o.Breakpoints {
		b := &o.Breakpoints[i]
		name := b.SourcePosition()
		if _, taken := g.scenarioBreakpointByRuleName[name]; taken { // several breakpoints are on one line
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		rule := PauseRule{Name: name, Tools: b.Names(), Phase: CallPhase(b.Phase), When: b.When, MaxPauses: -1}
		if b.MaxHits != nil {
			rule.MaxPauses = *b.MaxHits
		}
		if err := hub.BreakpointSet.AddRule(rule); err != nil {
			hub.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		g.scenarioBreakpointByRuleName[name] = b
	}
	return g, nil
}

// Close closes the hub.
func (g *ScriptedGate) Close() { g.hub.Close() }

// FailedConditionWarnings returns one message for each condition that could not be evaluated.
func (g *ScriptedGate) FailedConditionWarnings() []string {
	var all []string
	for _, r := range g.hub.BreakpointSet.PauseRules() {
		if r.ConditionError != "" {
			all = append(all, fmt.Sprintf("%s: the condition of the breakpoint could not be evaluated and counts as false: %s", r.Name, r.ConditionError))
		}
	}
	return all
}

// HasRuleWithPauseLimit reports whether a breakpoint with a limited number of pauses matches a tool. Calls of such a tool must
// run in sequence, because their order decides which calls are paused.
func (g *ScriptedGate) HasRuleWithPauseLimit(tool string) bool {
	return g.hub.BreakpointSet.HasRuleWithPauseLimit(tool)
}

// Register adds toolsForNameResolution, so that "server/tool" names can be resolved.
func (g *ScriptedGate) Register(ctx context.Context, toolsForNameResolution []protocol.Tool) error {
	return g.hub.Register(ctx, toolsForNameResolution)
}

// BeforeCall pauses a call that is about to run, if a breakpoint matches it, and returns what happens to the call.
func (g *ScriptedGate) BeforeCall(ctx context.Context, c Call) (string, Decision, error) {
	begun, err := g.hub.ReportCallStart(ctx, c)
	if err != nil || begun.PauseID == "" {
		return begun.CallID, begun.Decision, err
	}
	d, err := g.answerPauseFromScenario(ctx, begun.PauseID)
	return begun.CallID, d, err
}

// AfterCall pauses a call that has run, if a breakpoint matches it, and returns what happens to the result.
func (g *ScriptedGate) AfterCall(ctx context.Context, callID string, o CallOutcome) (Decision, error) {
	pauseID, err := g.hub.RecordCallOutcomeAndPauseIfStopped(ctx, CompletionReport{CallID: callID, CallOutcome: o})
	if err != nil || pauseID == "" {
		return Decision{Action: ActionContinue}, err
	}
	return g.answerPauseFromScenario(ctx, pauseID)
}

// answerPauseFromScenario answers a pause with its breakpoint's action. If that is impossible, the call fails with the reason.
func (g *ScriptedGate) answerPauseFromScenario(ctx context.Context, pauseID string) (Decision, error) {
	p, err := g.hub.PauseByID(pauseID)
	if err != nil {
		return Decision{}, err
	}
	name := p.CallData.Breakpoint
	answer, err := g.resumeRequestOfBreakpoint(ctx, g.scenarioBreakpointByRuleName[name], pauseID)
	if err == nil {
		err = g.hub.Resume(ctx, pauseID, answer)
	}
	if err != nil {
		text := fmt.Sprintf("breakpoint at %s: %v", name, err)
		if err := g.hub.Resume(ctx, pauseID, ResumeRequest{Action: string(ActionRaise), ExceptionMessage: text}); err != nil {
			return Decision{}, err
		}
	}
	d, _, err := g.hub.Wait(ctx, pauseID)
	d.BreakpointName = name
	return d, err
}

func (g *ScriptedGate) resumeRequestOfBreakpoint(ctx context.Context, scenarioBreakpoint *scenarios.Breakpoint, pauseID string) (ResumeRequest, error) {
	names, err := g.hub.Variables(pauseID)
	if err != nil {
		return ResumeRequest{}, err
	}
	// Cancelling ctx must not change the values. The evaluation ends anyway, because its number of steps is limited.
	filled, err := scenarioBreakpoint.WithEvaluatedTemplates(context.WithoutCancel(ctx), names)
	if err != nil {
		return ResumeRequest{}, err
	}
	r := ResumeRequest{Action: filled.Action}
	switch {
	case filled.Action == scenarios.BreakModify && filled.Phase == scenarios.BreakAfter:
		r.ModifiedResult = filled.Result
	case filled.Action == scenarios.BreakModify:
		r.ModifiedArgs = &[]json.RawMessage{filled.Input}
	case filled.Action == scenarios.BreakSkip:
		r.FakeResult = filled.Result
	case filled.Action == scenarios.BreakFail:
		r.Action, r.ExceptionMessage = string(ActionRaise), filled.Message
	case filled.Action == scenarios.BreakReplaceTool:
		r.ReplacementFunction = g.resolveTool(ctx, filled.Replacement)
	}
	return r, nil
}
