// Package script runs the [[breakpoints]] of a scenario: it decides about paused
// calls as the scenario says, within the process of the run and without user
// interaction. It uses the hub like any other front end.
package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configure a Gate. Breakpoints and Now must be set.
type Options struct {
	Breakpoints []scenarios.Breakpoint // as a loaded or compiled scenario holds them
	Now         func() time.Time
	// Resolve returns the canonical name of a replacement tool. If it is nil, names
	// must be canonical or "server/tool".
	Resolve func(ctx context.Context, name string) string
}

// Gate is a [debug.Gate] whose decisions come from a scenario. All methods may be
// called from many goroutines.
type Gate struct {
	hub        *debug.Hub
	resolve    func(context.Context, string) string
	byRuleName map[string]*scenarios.Breakpoint // by rule name
}

// New returns a gate with its own hub, which Close closes.
func New(o Options) (*Gate, error) {
	if o.Now == nil {
		return nil, errors.New("script: Now must be set")
	}
	// The ids of this run are only displayed; no request looks one up later.
	var pauses atomic.Int64
	hub, err := debug.New(debug.Options{
		Now: o.Now, NewID: func() string { return fmt.Sprintf("scripted-%d", pauses.Add(1)) },
		Store: cas.New(cas.Options{MaxBytes: 1, MaxValue: 1}), MaxRecords: 1,
	})
	if err != nil {
		return nil, err
	}
	g := &Gate{hub: hub, resolve: o.Resolve, byRuleName: map[string]*scenarios.Breakpoint{}}
	if g.resolve == nil {
		g.resolve = func(_ context.Context, name string) string { return name }
	}
	for i := range o.Breakpoints {
		b := &o.Breakpoints[i]
		name := b.Place()
		if _, taken := g.byRuleName[name]; taken { // several breakpoints on one line
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		rule := debug.Rule{Name: name, Tools: b.Names(), Phase: debug.Phase(b.Phase), When: b.When, MaxPauses: -1}
		if b.MaxHits != nil {
			rule.MaxPauses = *b.MaxHits
		}
		if err := hub.AddRule(rule); err != nil {
			hub.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		g.byRuleName[name] = b
	}
	return g, nil
}

// Close closes the hub.
func (g *Gate) Close() { g.hub.Close() }

// Warnings returns one message for each condition that could not be evaluated.
func (g *Gate) Warnings() []string {
	var all []string
	for _, r := range g.hub.Rules() {
		if r.ConditionError != "" {
			all = append(all, fmt.Sprintf("%s: the condition of the breakpoint could not be evaluated and counts as false: %s", r.Name, r.ConditionError))
		}
	}
	return all
}

// HasLimitedRule reports whether a breakpoint with a limited number of pauses
// matches a tool. The order of such calls matters.
func (g *Gate) HasLimitedRule(tool string) bool { return g.hub.HasLimitedRule(tool) }

// Register adds tools, so that "server/tool" names can be resolved.
func (g *Gate) Register(ctx context.Context, tools []protocol.Tool) error {
	return g.hub.Register(ctx, tools)
}

// Before returns the decision about a call that is about to run.
func (g *Gate) Before(ctx context.Context, c debug.Call) (string, debug.Decision, error) {
	begun, err := g.hub.Start(ctx, c)
	if err != nil || begun.PauseID == "" {
		return begun.CallID, begun.Decision, err
	}
	d, err := g.decide(ctx, begun.PauseID)
	return begun.CallID, d, err
}

// After returns the decision about a call that has run.
func (g *Gate) After(ctx context.Context, callID string, o debug.Outcome) (debug.Decision, error) {
	pauseID, err := g.hub.Complete(ctx, debug.Completion{CallID: callID, Outcome: o})
	if err != nil || pauseID == "" {
		return debug.Decision{Action: debug.ActionContinue}, err
	}
	return g.decide(ctx, pauseID)
}

// decide answers a pause as its breakpoint says. If the breakpoint's action cannot
// be carried out, the call fails with the reason.
func (g *Gate) decide(ctx context.Context, pauseID string) (debug.Decision, error) {
	p, err := g.hub.Pause(pauseID)
	if err != nil {
		return debug.Decision{}, err
	}
	name := p.CallData.Breakpoint
	answer, err := g.resumeRequest(ctx, g.byRuleName[name], pauseID)
	if err == nil {
		err = g.hub.Resume(ctx, pauseID, answer)
	}
	if err != nil {
		text := fmt.Sprintf("breakpoint at %s: %v", name, err)
		if err := g.hub.Resume(ctx, pauseID, debug.ResumeRequest{Action: string(debug.ActionRaise), ExceptionMessage: text}); err != nil {
			return debug.Decision{}, err
		}
	}
	d, _, err := g.hub.Wait(ctx, pauseID)
	d.Breakpoint = name
	return d, err
}

// resumeRequest builds the decision that a breakpoint makes about one of its
// pauses.
func (g *Gate) resumeRequest(ctx context.Context, b *scenarios.Breakpoint, pauseID string) (debug.ResumeRequest, error) {
	names, err := g.hub.Variables(pauseID)
	if err != nil {
		return debug.ResumeRequest{}, err
	}
	// Template evaluation is bounded in steps; cancelling the caller must not
	// change its values.
	filled, err := b.Fill(context.WithoutCancel(ctx), names)
	if err != nil {
		return debug.ResumeRequest{}, err
	}
	r := debug.ResumeRequest{Action: filled.Action}
	switch {
	case filled.Action == scenarios.BreakModify && filled.Phase == scenarios.BreakAfter:
		r.ModifiedResult = filled.Result
	case filled.Action == scenarios.BreakModify:
		r.ModifiedArgs = &[]json.RawMessage{filled.Input}
	case filled.Action == scenarios.BreakSkip:
		r.FakeResult = filled.Result
	case filled.Action == scenarios.BreakFail:
		r.Action, r.ExceptionMessage = string(debug.ActionRaise), filled.Message
	case filled.Action == scenarios.BreakReplace:
		r.ReplacementFunction = g.resolve(ctx, filled.Replacement)
	}
	return r, nil
}
