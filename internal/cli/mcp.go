package cli

import (
	"context"
	"errors"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/internal/cli/toolserver"
)

func runMCP(ctx context.Context, s *process.System, words []string) error {
	ctx, signals := s.WatchSignals(ctx)
	defer signals.Stop()
	s = signals.LimitWrites(s)
	plan, err := launch.Resolve(s, nil)
	if err != nil {
		return err
	}
	client := plan.Servers.Client
	client.SessionID, client.Listing.DeclaredOnly, client.Listing.ToolsOnly = s.NewID(), s.CalledAsClaude(), s.CalledAsClaude()
	var terminal mcpcmd.Terminal
	if s.StdinIsTTY {
		terminal = s
	}
	err = mcpcmd.Run(ctx, mcpcmd.Options{
		Name: s.InvokedProgramName(), Store: plan.Store, Extended: !s.CalledAsClaude(), Approved: plan.Settings.IsApproved, DisabledProject: plan.Settings.DisabledMCPJSONServers, Client: client,
		Terminal: terminal, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Progress: s.ProgressTerminal(),
	}, words)
	switch {
	case errors.Is(err, mcpcmd.ErrCallerMustServeBuiltinTools):
		return toolserver.Serve(ctx, toolserver.Options{CWD: plan.CWD, Environ: plan.Environ, Clock: plan.Clock, Profile: plan.Profile, In: s.Stdin, Out: s.Stdout})
	case ctx.Err() != nil:
		if sig, ok := errors.AsType[*process.SignalError](context.Cause(ctx)); ok && sig.Signal == syscall.SIGINT {
			return &process.ExitError{Code: 128 + int(syscall.SIGINT)} // an interrupted `claude mcp` is a failure, unlike an interrupted turn
		}
		return process.SignalErrorOr(ctx, ctx.Err())
	}
	return err
}
