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
	"github.com/claudeless/claudeless/internal/claude/terminal"
	"github.com/claudeless/claudeless/simulator"
)

// isInteractive reports whether a run has a terminal and nothing asks for another kind of run.
func isInteractive(s *process.System, f *flags.Flags) bool {
	return !f.Print && s.Terminal != nil && f.InputFormat != "stream-json"
}

// runInteractive runs claude on a terminal. What would go to stderr meanwhile is written when
// the terminal is restored.
func runInteractive(ctx context.Context, sys *process.System, f *flags.Flags) (err error) {
	ctx, signals := sys.Watch(ctx)
	defer signals.Stop()
	if f.PermissionPromptTool == "" {
		f.PermissionPromptTool = "stdio"
	}
	var warnings bytes.Buffer
	own := *sys
	own.Stderr, own.Stdout, own.StderrIsTTY = &warnings, io.Discard, false
	plan, err := resolvePlan(ctx, &own, f)
	if err != nil {
		return writeWarnings(sys, &warnings, err)
	}
	console, err := terminal.OpenConsole(sys, signals)
	if err != nil {
		return err
	}
	defer console.Close()
	changed, err := terminal.Startup(ctx, console, &plan, sys.Getenv("ANTHROPIC_API_KEY"))
	if changed && err == nil {
		warnings.Reset()
		tree := plan.Worktree
		plan, err = launch.Resolve(&own, f)
		plan.Worktree = tree
	}
	if err != nil {
		_ = console.Close() // the terminal may be gone
		return writeWarnings(sys, &warnings, refusedStart(ctx, err))
	}
	hint, err := playTerminal(ctx, &own, plan, console, f.Prompt)
	if err == nil && hint != "" {
		fmt.Fprint(sys.Stdout, hint)
	}
	return writeWarnings(sys, &warnings, err)
}

// playTerminal plays the session of a plan, closes the console, and returns the hint how to
// resume the session.
func playTerminal(ctx context.Context, sys *process.System, plan launch.Plan, console *terminal.Console, prompt string) (hint string, err error) {
	t, err := terminal.Open(plan, console, sys.Args[1:])
	if err != nil {
		_ = console.Close() // the terminal may be gone
		return "", reportStartError(sys, &plan, err)
	}
	s := t.Session()
	defer func() { closeSession(context.WithoutCancel(ctx), s, io.Discard) }()
	err = t.Run(ctx, prompt)
	_ = console.Close() // the terminal may be gone
	if crashed, ok := errors.AsType[*simulator.CrashError](err); ok {
		return "", crash(context.WithoutCancel(ctx), sys, s, crashed)
	}
	end := sessionEnd{sys, s, err}
	unmet := s.MissedExpectations(process.Exit(io.Discard, process.OrSignal(ctx, end.err)))
	if err != nil {
		return "", process.OrSignal(ctx, err)
	}
	for _, line := range unmet {
		fmt.Fprintln(sys.Stderr, line)
	}
	if len(unmet) > 0 && plan.Output.FailOnMissed {
		return "", &process.ExitError{Code: process.ExitExpect}
	}
	return t.ResumeHint(), nil
}

// refusedStart converts the refusal of a question before the session to an exit code.
func refusedStart(ctx context.Context, err error) error {
	if errors.Is(err, terminal.ErrQuit) {
		return &process.ExitError{Code: process.ExitFailed}
	}
	return process.OrSignal(ctx, err)
}

// writeWarnings writes what was said while the terminal showed a screen.
func writeWarnings(sys *process.System, warnings *bytes.Buffer, err error) error {
	_, _ = warnings.WriteTo(sys.Stderr) // the reader may be gone
	return err
}
