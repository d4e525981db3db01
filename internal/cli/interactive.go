package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claude/terminal"
	"github.com/claudeless/claudeless/simulator"
)

func isInteractive(s *process.System, f *flags.Flags) bool {
	return !f.Print && s.Terminal != nil && f.InputFormat != "stream-json"
}

// runInteractive runs claude on a terminal. Output to stderr is delayed until the terminal is restored.
func runInteractive(ctx context.Context, sys *process.System, f *flags.Flags) (err error) {
	ctx, signals := sys.Watch(ctx)
	defer signals.Stop()
	f.Interactive = true
	var warnings bytes.Buffer
	own := *sys
	faults := &terminal.Faults{}
	own.Stderr, own.Stdout, own.StderrIsTTY = &warnings, faults, false
	plan, err := resolvePlan(ctx, &own, f)
	if err != nil {
		return writeWarnings(sys, &warnings, err)
	}
	console, err := terminal.OpenConsole(sys, signals, faults, &plan)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }() // the terminal may be closed already
	answers, err := terminal.Startup(ctx, console, &plan, sys.Getenv("ANTHROPIC_API_KEY"))
	if answers.Changed && err == nil {
		warnings.Reset()
		tree := plan.Worktree
		plan, err = launch.Resolve(&own, f)
		plan.Worktree = tree
	}
	if err != nil {
		_ = console.Close() // the terminal may be closed already
		if errors.Is(err, terminal.ErrUntrusted) {
			fmt.Fprintln(sys.Stderr, terminal.UntrustedText)
		}
		return writeWarnings(sys, &warnings, errors.Join(answers.Record(&plan, sys), refusalExitError(ctx, err)))
	}
	t, err := terminal.Open(plan, console, sys.Args[1:], answers)
	if err != nil {
		_ = console.Close() // the terminal may be closed already
		return writeWarnings(sys, &warnings, reportStartError(&own, &plan, err))
	}
	defer func() { closeSession(context.WithoutCancel(ctx), t.Session(), io.Discard) }()
	runErr := t.Run(ctx, f.Prompt)
	_ = console.Close() // the terminal may be closed already
	err = exitTerminal(ctx, &own, t.Session(), runErr)
	if err == nil {
		fmt.Fprint(sys.Stdout, t.ResumeHint())
	}
	return writeWarnings(sys, &warnings, err)
}

// exitTerminal converts the end of an interactive session to an exit code, and reports missed expectations.
func exitTerminal(ctx context.Context, sys *process.System, s *session.Session, runErr error) error {
	if crashed, ok := errors.AsType[*simulator.CrashError](runErr); ok {
		return crashAsScripted(context.WithoutCancel(ctx), sys, s, crashed)
	}
	err := process.SignalOr(ctx, runErr)
	unmet := s.MissedExpectations(process.Exit(io.Discard, err))
	if runErr != nil {
		return err
	}
	for _, line := range unmet {
		fmt.Fprintln(sys.Stderr, line)
	}
	if len(unmet) > 0 && s.Plan().Output.FailOnMissedExpectations {
		return &process.ExitError{Code: process.ExitExpect}
	}
	return nil
}

func refusalExitError(ctx context.Context, err error) error {
	if errors.Is(err, terminal.ErrQuit) {
		return &process.ExitError{Code: process.ExitFailed}
	}
	return process.SignalOr(ctx, err)
}

func writeWarnings(sys *process.System, warnings *bytes.Buffer, err error) error {
	_, _ = warnings.WriteTo(sys.Stderr) // the reader may have closed stderr
	return err
}
