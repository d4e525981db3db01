// Package script makes the [[breakpoints]] of a scenario work: it decides about
// paused calls as the scenario says, within the process of the run and without
// user interaction. It uses the hub like any other front end.
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
	// Resolve finds the canonical name of the tool that replaces another; nil =
	// names are canonical, or "server/tool".
	Resolve func(ctx context.Context, name string) string
}

// Gate is a [debug.Gate] that a scenario decides at. All methods may be called
// from many goroutines.
type Gate struct {
	hub     *debug.Hub
	resolve func(context.Context, string) string
	byName  map[string]*scenarios.Breakpoint // by the name of their rule
}

// New makes a gate with a hub of its own, which Close ends.
func New(o Options) (*Gate, error) {
	if o.Now == nil {
		return nil, errors.New("script: Now must be set")
	}
	// Ids of the run are for what it shows; nobody looks anything up here later.
	var pauses atomic.Int64
	hub, err := debug.New(debug.Options{
		Now: o.Now, NewID: func() string { return fmt.Sprintf("scripted-%d", pauses.Add(1)) },
		Store: cas.New(cas.Options{MaxBytes: 1, MaxValue: 1}), MaxRecords: 1,
	})
	if err != nil {
		return nil, err
	}
	g := &Gate{hub: hub, resolve: o.Resolve, byName: map[string]*scenarios.Breakpoint{}}
	if g.resolve == nil {
		g.resolve = func(_ context.Context, name string) string { return name }
	}
	for i := range o.Breakpoints {
		b := &o.Breakpoints[i]
		name := b.Place()
		if _, taken := g.byName[name]; taken { // several on one line
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		rule := debug.Rule{Name: name, Tools: b.Names(), Phase: debug.Phase(b.Phase), When: b.When, Most: -1}
		if b.MaxHits != nil {
			rule.Most = *b.MaxHits
		}
		if err := hub.AddRule(rule); err != nil {
			hub.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		g.byName[name] = b
	}
	return g, nil
}

// Close ends the hub.
func (g *Gate) Close() { g.hub.Close() }

// Warnings tell of conditions that could not be evaluated.
func (g *Gate) Warnings() []string {
	var all []string
	for _, r := range g.hub.Rules() {
		if r.ConditionError != "" {
			all = append(all, fmt.Sprintf("%s: the condition of the breakpoint could not be evaluated, so it did not hold: %s", r.Name, r.ConditionError))
		}
	}
	return all
}

// Counts tells whether calls of a tool take the hits of a breakpoint that has
// only so many: their order matters then.
func (g *Gate) Counts(tool string) bool { return g.hub.Counts(tool) }

// Register makes tools known, by which "server/tool" is understood.
func (g *Gate) Register(ctx context.Context, tools []protocol.Tool) error {
	return g.hub.Register(ctx, tools)
}

// Before decides about a call about to run.
func (g *Gate) Before(ctx context.Context, c debug.Call) (string, debug.Decision, error) {
	begun, err := g.hub.Start(ctx, c)
	if err != nil || begun.PauseID == "" {
		return begun.CallID, begun.Decision, err
	}
	d, err := g.decide(ctx, begun.PauseID)
	return begun.CallID, d, err
}

// After decides about a call that has run.
func (g *Gate) After(ctx context.Context, callID string, o debug.Outcome) (debug.Decision, error) {
	pauseID, err := g.hub.Complete(ctx, debug.Completion{CallID: callID, Outcome: o})
	if err != nil || pauseID == "" {
		return debug.Decision{Action: debug.ActionContinue}, err
	}
	return g.decide(ctx, pauseID)
}

// decide answers a pause as its breakpoint says. What cannot be done fails the
// call with the reason.
func (g *Gate) decide(ctx context.Context, pauseID string) (debug.Decision, error) {
	p, err := g.hub.Pause(pauseID)
	if err != nil {
		return debug.Decision{}, err
	}
	name := p.CallData.Breakpoint
	answer, err := g.answer(ctx, g.byName[name], pauseID)
	if err == nil {
		err = g.hub.Resume(ctx, pauseID, answer)
	}
	if err != nil {
		text := fmt.Sprintf("breakpoint at %s: %v", name, err)
		if err := g.hub.Resume(ctx, pauseID, debug.Resume{Action: string(debug.ActionRaise), ExceptionMessage: text}); err != nil {
			return debug.Decision{}, err
		}
	}
	d, _, err := g.hub.Wait(ctx, pauseID)
	d.Breakpoint = name
	return d, err
}

// answer is what a breakpoint says to one of its pauses.
func (g *Gate) answer(ctx context.Context, b *scenarios.Breakpoint, pauseID string) (debug.Resume, error) {
	names, err := g.hub.Names(pauseID)
	if err != nil {
		return debug.Resume{}, err
	}
	// The steps of templates are bounded; that the caller goes away does not
	// change their values.
	filled, err := b.Fill(context.WithoutCancel(ctx), names)
	if err != nil {
		return debug.Resume{}, err
	}
	r := debug.Resume{Action: filled.Action}
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
