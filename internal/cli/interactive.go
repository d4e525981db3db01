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

// runInteractive runs claude on a terminal. Output to stderr is delayed until the terminal is restored.
func runInteractive(ctx context.Context, sys *process.System, f *flags.Flags) (err error) {
	ctx, signals := sys.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	var warnings bytes.Buffer
	own := *sys
	faults := &terminal.Faults{}
	own.Stderr, own.Stdout, own.StderrIsTTY = &warnings, faults, false
	plan, err := resolvePlanInWorktree(ctx, &own, f)
	if err != nil {
		return writeWarningsAndReturnError(sys, &warnings, err)
	}
	console, err := terminal.OpenConsoleInRawMode(sys, signals, faults, &plan)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }() // the terminal may be closed already
	changed, err := terminal.RunStartup(ctx, console, &plan, sys.Getenv("ANTHROPIC_API_KEY"))
	if err == nil && f.WasGiven("resume") && f.Resume == "" {
		f.Resume, err = terminal.ChooseSession(ctx, console, &plan)
	}
	if (changed || f.WasGiven("resume")) && err == nil {
		warnings.Reset()
		err = resolvePlanAgainKeepingWorktree(&own, f, &plan)
	}
	if err != nil {
		_ = console.Close() // the terminal may be closed already
		if errors.Is(err, terminal.ErrUntrustedFolder) {
			fmt.Fprintln(sys.Stderr, terminal.UntrustedFolderExitText)
		}
		return writeWarningsAndReturnError(sys, &warnings, errors.Join(console.WriteStartupAnswersToJournal(&plan), exitErrorOfTerminalStartup(ctx, err)))
	}
	hint, err := runTerminalSessionsUntilQuit(ctx, &own, f, &plan, console)
	_ = console.Close() // a session whose start failed leaves the console open
	if err == nil {
		fmt.Fprint(sys.Stdout, hint)
	}
	return writeWarningsAndReturnError(sys, &warnings, err)
}

func resolvePlanAgainKeepingWorktree(sys *process.System, f *flags.Flags, plan *launch.Plan) (err error) {
	tree := plan.Worktree
	*plan, err = launch.Resolve(sys, f)
	plan.Worktree = tree
	return err
}

// runTerminalSessionsUntilQuit runs a session and every session to which the user switches. resumeHint is for the last.
func runTerminalSessionsUntilQuit(ctx context.Context, sys *process.System, f *flags.Flags, plan *launch.Plan, console *terminal.Console) (resumeHint string, runErr error) {
	for prompt := f.Prompt; ; prompt = "" {
		t, err := terminal.Open(*plan, console, sys.Args[1:])
		if err != nil {
			return "", reportStartError(sys, plan, err)
		}
		err = checkTerminalOutcome(ctx, sys, t.Session(), t.Run(ctx, prompt))
		if t.NextSessionID == "" {
			_ = console.Close() // the terminal may be closed already
		}
		hint := t.ResumeHint()
		closeAndWriteStreamJSONFrames(context.WithoutCancel(ctx), t.Session(), io.Discard)
		if err != nil || t.NextSessionID == "" {
			return hint, err
		}
		f.Resume, f.Continue, f.SessionID, f.ForkSession = t.NextSessionID, false, "", false
		if err := resolvePlanAgainKeepingWorktree(sys, f, plan); err != nil {
			return "", err
		}
	}
}

func checkTerminalOutcome(ctx context.Context, sys *process.System, s *session.Session, runErr error) error {
	if crashed, ok := errors.AsType[*simulator.CrashError](runErr); ok {
		return crashAsScripted(context.WithoutCancel(ctx), sys, s, crashed)
	}
	err := process.SignalErrorOr(ctx, runErr)
	unmet := s.CheckScenarioExpectations(process.ReportError(io.Discard, err))
	if runErr != nil {
		return err
	}
	for _, line := range unmet {
		fmt.Fprintln(sys.Stderr, line)
	}
	if len(unmet) > 0 && s.Plan().Output.FailOnMissedExpectations {
		return &process.ExitError{Code: process.ExitUnmetExpectation}
	}
	return nil
}

func exitErrorOfTerminalStartup(ctx context.Context, startupErr error) error {
	switch {
	case errors.Is(startupErr, terminal.ErrDialogCancelled):
		return nil
	case errors.Is(startupErr, terminal.ErrStartDeclined):
		return &process.ExitError{Code: process.ExitFailed}
	}
	return process.SignalErrorOr(ctx, startupErr)
}

func writeWarningsAndReturnError(sys *process.System, warnings *bytes.Buffer, err error) error {
	_, _ = warnings.WriteTo(sys.Stderr) // the reader may have closed stderr
	return err
}
