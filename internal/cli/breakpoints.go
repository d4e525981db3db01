package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/client"
	"github.com/claudeless/claudeless/internal/debug/script"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// breakpoints is the layer that stops calls: at the scenario's breakpoints, and
// further in at those of --debugger, so that somebody who watches sees what
// the scripted ones made of a call and decides about its result first.
func (r *run) breakpoints() executor.Middleware {
	var layers []executor.Middleware
	for _, gate := range r.gates() {
		layers = append(layers, debug.Middleware(gate, debug.MiddlewareOptions{
			Session: r.session.ID, PID: r.PID, Started: float64(r.Started.UnixMicro()) / 1e6, Site: callSite, Shape: builtin.Shape,
		}))
	}
	return func(next executor.Executor) executor.Executor {
		next = executor.Chain(next, layers...)
		if r.script != nil {
			next = counted{next, r.script}
		}
		return next
	}
}

// counted lets calls that take the hits of a breakpoint run one after another,
// so that it is the first of them that it stops.
type counted struct {
	executor.Executor
	script *script.Gate
}

// Tools are the tools with fewer of them read-only.
func (c counted) Tools(ctx context.Context) ([]protocol.Tool, error) {
	tools, err := c.Executor.Tools(ctx)
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].ReadOnly = tools[i].ReadOnly && !c.script.Counts(tools[i].Name)
	}
	return tools, err
}

// gates are those that decide about calls, the outermost first.
func (r *run) gates() []debug.Gate {
	var all []debug.Gate
	if r.script != nil {
		all = append(all, r.script)
	}
	if r.gate != nil {
		all = append(all, r.gate)
	}
	return all
}

// callSite tells a debugger of the sub-agent that makes a call; nil = none does.
func callSite(call protocol.ToolUse) json.RawMessage {
	if call.Agent == nil {
		return nil
	}
	raw, err := protocol.Marshal(map[string]any{"agent": call.Agent.Type, "agent_id": call.Agent.ID, "depth": call.Agent.Depth})
	if err != nil {
		return nil
	}
	return raw
}

// makeGates makes the client of the debugger that --debugger names, and the
// one that the scenario's breakpoints play.
func (r *run) makeGates() error {
	if len(r.Scenario.Breakpoints) > 0 {
		gate, err := script.New(script.Options{Breakpoints: r.Scenario.Breakpoints, Now: r.Clock.Now, Resolve: r.canonical})
		if err != nil {
			return err
		}
		r.script = gate
	}
	if r.Records.DebuggerURL == "" {
		return nil
	}
	gate, err := client.New(client.Options{Client: debug.ClientRun, URL: r.Records.DebuggerURL, Token: r.Records.DebuggerToken})
	r.gate = gate
	return err
}

// canonical is the canonical name of a tool of the session.
func (r *run) canonical(ctx context.Context, name string) string {
	tools, err := r.listed(ctx)
	if err != nil {
		return name
	}
	return executor.NewIndex(tools).Canonical(name)
}

// registerTools makes the tools known to those who decide about calls, which
// also shows that a debugger is there before anything runs.
func (r *run) registerTools(ctx context.Context) error {
	gates := r.gates()
	if len(gates) == 0 {
		return nil
	}
	tools, err := r.listed(ctx)
	if err != nil {
		return err
	}
	for _, gate := range gates {
		if err := gate.Register(ctx, tools); err != nil {
			return err
		}
	}
	return nil
}
