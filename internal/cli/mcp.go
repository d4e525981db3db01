package cli

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/mcpcmd"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// runMCP is the command mcp.
func runMCP(ctx context.Context, s *process.System, words []string) error {
	ctx, signals := s.Watch(ctx)
	defer signals.Stop()
	plan, err := launch.Resolve(s, nil)
	if err != nil {
		return err
	}
	client := plan.Servers.Client
	client.SessionID = s.NewID()
	err = mcpcmd.Run(ctx, mcpcmd.Options{
		Name: s.Name(), Store: plan.Store, Own: !s.AsClaude(), Approved: plan.Settings.Approved, DisabledProject: plan.Settings.DisabledMCPJSONServers, Client: client,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Progress: s.Progress(),
	}, words)
	var verbatim *mcpcmd.Error
	var usage *mcpcmd.UsageError
	switch {
	case ctx.Err() != nil:
		if sig, ok := errors.AsType[*process.SignalError](context.Cause(ctx)); ok && sig.Signal == syscall.SIGINT {
			return &process.ExitError{Code: 128 + int(syscall.SIGINT)} // a turn that is interrupted is no failure, this is
		}
		return process.OrSignal(ctx, ctx.Err())
	case errors.As(err, &verbatim) && verbatim.Text == "":
		return &process.ExitError{Code: process.ExitFailed}
	case errors.As(err, &verbatim):
		return process.Verbatimf("%s", verbatim.Text)
	case errors.As(err, &usage):
		return process.Hinted(usage.Text, usage.Hint)
	}
	return err
}

// serverTools are the tools of the servers and those for their resources, which --tools does not take away.
func (r *run) serverTools() executor.Composite {
	if r.manager == nil {
		return nil
	}
	return executor.Composite{
		executor.Hide(r.hidden)(executor.MCP{Manager: r.manager}),
		executor.Hide(func(t protocol.Tool) bool { return slices.Contains(r.Tools.Disallowed, t.Name) })(executor.Resources{Manager: r.manager, SaveBlob: r.saveResource}),
	}
}

// serverTool finds one of serverTools by its canonical name.
func (r *run) serverTool(name string) (protocol.Tool, bool) {
	if r.manager == nil {
		return protocol.Tool{}, false
	}
	if t, err := r.manager.Resolve(name); err == nil && t.Name == name {
		return t, !r.hidden(t)
	}
	for _, t := range executor.ResourceTools() {
		if t.Name == name && r.manager.HasResources() {
			return t, !slices.Contains(r.Tools.Disallowed, name)
		}
	}
	return protocol.Tool{}, false
}

// search is the tool ToolSearch over the tools that init lists.
func (r *run) search(all executor.Executor) executor.Executor {
	return executor.Hide(func(t protocol.Tool) bool { return !r.exists(t.Name) })(executor.ToolSearch{
		Catalogue: func(ctx context.Context) ([]protocol.Tool, error) {
			tools, err := all.Tools(ctx)
			listed := persona.Tools(r.toolOptions(r.manager != nil && r.manager.HasResources()))
			return slices.DeleteFunc(tools, func(t protocol.Tool) bool { return t.Server == "" && !slices.Contains(listed, t.Name) }), err
		},
		Deferred: r.isDeferred,
	})
}

// isDeferred tells the tools of which the model knows only the names.
func (r *run) isDeferred(t protocol.Tool) bool {
	loaded := slices.ContainsFunc(r.Servers.Configs, func(s mcp.ServerConfig) bool { return s.AlwaysLoad && s.Name == t.Server })
	return executor.DeferredByDefault(t) && !loaded
}
