package cli

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/mcpcmd"
	"github.com/claudeless/claudeless/internal/persona"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// runMCP is the command mcp.
func runMCP(ctx context.Context, s *process.System, words []string) error {
	ctx, signals := s.Watch(ctx)
	defer signals.Stop()
	r := &run{sys: s, f: &flags.Flags{}, scenario: &scenarios.Scenario{}}
	for _, step := range []func() error{r.locate, r.loadSettings} {
		if err := step(); err != nil {
			return err
		}
	}
	err := mcpcmd.Run(ctx, mcpcmd.Options{
		Name: s.Name(), Store: r.store(), Own: !s.AsClaude(), Approved: r.approved, DisabledProject: r.settings.DisabledMCPJSONServers,
		Client: mcp.Options{
			ClientVersion: r.version(), Environ: r.environ(), CWD: r.cwd, SessionID: s.NewID(),
			ConnectTimeout: r.millis("MCP_TIMEOUT", 0), ToolTimeout: r.toolTimeout(),
			LocalBatch: r.number("MCP_SERVER_CONNECTION_BATCH_SIZE"), RemoteBatch: r.number("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"),
		},
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

// store is where the command mcp keeps servers: beside the settings if a variable says where those are, else where the
// real CLI has them (spec: cli-observed 6).
func (r *run) store() mcpcmd.Store {
	const file = ".claude.json"
	home := r.sys.Getenv("HOME")
	store := mcpcmd.Store{CWD: r.cwd}
	switch {
	case r.dir != "" && r.dir != filepath.Join(home, ".claudeless"):
		store.File = filepath.Join(r.dir, file)
	case home != "":
		store.File = filepath.Join(home, file)
	}
	return store
}

// approved tells whether the settings approve a server of .mcp.json.
func (r *run) approved(server string) bool {
	return r.settings.EnableAllProjectMCPServers || slices.Contains(r.settings.EnabledMCPJSONServers, server)
}

// scopes are the servers of user and local scope that a run starts.
func (r *run) scopes() []mcp.Scope {
	if r.f.StrictMCPConfig || r.f.Bare {
		return nil
	}
	all, err := r.store().Scopes()
	if err != nil {
		r.warn("MCP servers of user and local scope are left out: " + err.Error())
	}
	return slices.DeleteFunc(all, func(s mcp.Scope) bool { return !r.reads(s.Source) })
}

// serverTools are the tools of the servers and those for their resources, which --tools does not take away.
func (r *run) serverTools() executor.Composite {
	if r.manager == nil {
		return nil
	}
	return executor.Composite{
		executor.Hide(r.hidden)(executor.MCP{Manager: r.manager}),
		executor.Hide(func(t protocol.Tool) bool { return slices.Contains(r.f.DisallowedTools, t.Name) })(executor.Resources{Manager: r.manager, SaveBlob: r.saveResource}),
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
			return t, !slices.Contains(r.f.DisallowedTools, name)
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
	loaded := slices.ContainsFunc(r.servers.Servers, func(s mcp.ServerConfig) bool { return s.AlwaysLoad && s.Name == t.Server })
	return executor.DeferredByDefault(t) && !loaded
}
