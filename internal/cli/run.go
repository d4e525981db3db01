package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/host"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/output"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claude/terminal"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/internal/cli/toolserver"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

func runPrint(ctx context.Context, sys *process.System, f *flags.Flags) error {
	ctx, signals := sys.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	sys = signals.WithWriteTimeoutAfterSignal(sys)
	plan, err := resolvePlanInNewWorktreeIfAsked(ctx, sys, f)
	if err != nil {
		return reportStartError(sys, &plan, err)
	}
	sys = withStdoutFilteredForVersion(sys, &plan)
	s, err := session.Open(plan, nil)
	if err != nil {
		return reportStartError(sys, &plan, err)
	}
	defer func() { closeAndWriteStreamJSONFrames(context.WithoutCancel(ctx), s, sys.Stdout) }()
	if f.InitOnly {
		session.RunSetupAndSessionStartHooks(ctx, s)
		return nil
	}
	prompts, err := textRunPrompts(ctx, sys, f, s)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return process.SignalErrorOr(ctx, err)
	}
	turns, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	signals.CancelOnInterrupt(func() { interrupt(simulator.ErrSignalled) })
	end := sessionEnd{sys: sys, session: s}
	events := s.PlayTurnsAndBackgroundWork(turns, prompts)
	if plan.Output.Format != "stream-json" {
		events = end.moveClassifierWarningToStderr(events)
	}
	end.err = encoderForFormat(&plan)(sys.Stdout, events)
	return exitErrorOrScriptedCrash(ctx, turns, end)
}

// runStreamJSONSessionForHost runs claude for SDK hosts: prompts and requests arrive as frames on stdin, until stdin ends.
func runStreamJSONSessionForHost(ctx context.Context, sys *process.System, f *flags.Flags) error {
	ctx, signals := sys.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	sys = signals.WithWriteTimeoutAfterSignal(sys)
	plan, err := resolvePlanInNewWorktreeIfAsked(ctx, sys, f)
	if err != nil {
		return reportStartError(sys, &plan, err)
	}
	sys = withStdoutFilteredForVersion(sys, &plan)
	h, err := host.Open(plan, sys, signals)
	if err != nil {
		return reportStartError(sys, &plan, err)
	}
	defer func() { closeAndWriteStreamJSONFrames(context.WithoutCancel(ctx), h.Session(), sys.Stdout) }()
	return exitErrorOrScriptedCrash(ctx, ctx, sessionEnd{sys: sys, session: h.Session(), err: h.Serve(ctx)})
}

// withStdoutFilteredForVersion returns the system with a stdout that has exactly the keys of the plan's version of claude.
func withStdoutFilteredForVersion(sys *process.System, plan *launch.Plan) *process.System {
	changed := *sys
	switch plan.Output.Format {
	case "json":
		changed.Stdout = plan.Profile.EventWriter(sys.Stdout, nil)
	case "stream-json":
		changed.Stdout = plan.Profile.EventWriter(sys.Stdout, plan.Clock)
	}
	return &changed
}

// closeAndWriteStreamJSONFrames ends a session. For stream-json, it then writes the remaining frames to frameOutput, and before
// them those of SessionStart hooks that did not run before because the session had no turn.
func closeAndWriteStreamJSONFrames(ctx context.Context, s *session.Session, frameOutput io.Writer) {
	frames := session.RunSessionStartHooks(ctx, s)
	s.Close(ctx)
	if s.Plan().Output.Format == "stream-json" {
		_ = output.StreamJSON(frameOutput, func(yield func(protocol.Event, error) bool) {
			_ = !slices.ContainsFunc(frames, func(ev protocol.Event) bool { return !yield(ev, nil) })
		})
		_ = output.StreamJSON(frameOutput, s.TakeRemainingFrames()) // the reader may have closed stdout
	}
}

func encoderForFormat(plan *launch.Plan) output.Encoder {
	switch {
	case plan.Output.Format == "stream-json":
		return output.StreamJSON
	case plan.Output.Format == "json" && plan.Output.Verbose:
		return output.JSONVerbose
	case plan.Output.Format == "json":
		return output.LastResultJSON
	default:
		return output.ResultTexts(output.Limits{MaxTurns: plan.Limits.MaxTurns, MaxBudgetUSD: plan.Limits.MaxBudgetUSD})
	}
}

type sessionEnd struct {
	sys     *process.System
	session *session.Session
	err     error

	hasUncheckedCalls bool // calls were refused because no classifier could check them, and stdout does not say so
}

// moveClassifierWarningToStderr moves the warning about calls that no classifier can check from the events to stderr.
func (e *sessionEnd) moveClassifierWarningToStderr(events output.Events) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		for ev, err := range events {
			if s, ok := ev.(*protocol.SystemEvent); ok && slices.Contains(s.Fields, protocol.Field{Key: "tag", Value: "auto_mode_no_server_check"}) {
				e.hasUncheckedCalls = true
				fmt.Fprintln(e.sys.Stderr, s.Fields[0].Value)
			} else if !yield(ev, err) {
				return
			}
		}
	}
}

// exitErrorOrScriptedCrash converts the end of a run to an exit error (spec: cli-observed 2 and 10). An interrupt counts as
// success, and so does a blocked stdout; otherwise the last result decides. It crashes if the scenario says so, and prints missed expectations.
func exitErrorOrScriptedCrash(ctx, turnsContext context.Context, end sessionEnd) error {
	if crashed, ok := errors.AsType[*simulator.CrashError](end.err); ok {
		return crashAsScripted(context.WithoutCancel(ctx), end.sys, end.session, crashed)
	}
	err, cut := end.exitErrorPrintingUncheckedCalls(ctx, turnsContext)
	unmet := end.session.JudgeScenarioAndStopTelemetry(process.PrintErrorReturningExitCode(io.Discard, err))
	if cut {
		return err
	}
	for _, line := range unmet {
		fmt.Fprintln(end.sys.Stderr, line)
	}
	if len(unmet) > 0 && end.session.Plan().Output.FailOnMissedExpectations {
		return &process.ExitError{Code: process.ExitUnmetExpectation}
	}
	return err
}

func (e *sessionEnd) exitErrorPrintingUncheckedCalls(ctx, turnsContext context.Context) (err error, endedWithoutResult bool) {
	switch {
	case errors.Is(e.err, host.ErrInterrupted):
		return nil, true
	case errors.Is(e.err, io.ErrClosedPipe):
		return process.SignalErrorOr(ctx, nil), true
	case errors.Is(e.err, syscall.ENOSPC):
		return process.Verbatimf("Error: Claude Code could not save all of the output sent to a file because the disk is full (ENOSPC). Free up space on that disk before the next run."), true
	case e.err != nil:
		return process.SignalErrorOr(ctx, e.err), true
	case turnsContext.Err() != nil:
		return process.SignalErrorOr(ctx, nil), true
	}
	if e.hasUncheckedCalls {
		fmt.Fprintln(e.sys.Stderr, "Error: auto mode could not check some actions Claude tried, so they did not run. To run them, use another permission mode. Exiting with code 1.")
	}
	if last := e.session.LastResult(); e.hasUncheckedCalls || last != nil && last.IsError {
		err = &process.ExitError{Code: process.ExitFailed}
	}
	return err, false
}

func crashAsScripted(ctx context.Context, sys *process.System, s *session.Session, c *simulator.CrashError) error {
	if c.Signal == "" {
		s.JudgeScenarioAndStopTelemetry(c.ExitCode)
		return &process.ExitError{Code: c.ExitCode}
	}
	sig, ok := map[string]syscall.Signal{
		"SIGABRT": syscall.SIGABRT, "SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL,
		"SIGQUIT": syscall.SIGQUIT, "SIGSEGV": syscall.SIGSEGV, "SIGTERM": syscall.SIGTERM, "SIGBUS": syscall.SIGBUS, "SIGPIPE": syscall.SIGPIPE,
	}[c.Signal]
	if !ok {
		return fmt.Errorf("unknown signal %q in `crash` of the scenario: use a name such as SIGKILL or SIGTERM", c.Signal)
	}
	s.JudgeScenarioAndStopTelemetry(128 + int(sig))
	s.Close(ctx)
	if err := sys.Lifetime.Kill(sig); err != nil {
		return err
	}
	return &process.ExitError{Code: 128 + int(sig)}
}

// reportStartError ends a run that could not start. It writes the error to stderr. Stream-json output also
// has a result if a session cannot be resumed, the configuration file is invalid (spec: cli-observed 8), or a sandbox is missing.
func reportStartError(sys *process.System, plan *launch.Plan, err error) error {
	result, stderrText := simulator.FailedResult(err.Error()), err.Error()
	if missing, ok := errors.AsType[*transcript.NotFoundError](err); ok && missing.ID == plan.Transcript.Resume {
		result.SessionID = missing.ID
	} else if cut, ok := errors.AsType[*transcript.ResumeAtRefusedError](err); ok {
		result.SessionID = cut.SessionID
	} else if isSessionLookupError(err) {
		result.SessionID = plan.Clock.NewID()
	} else if broken, ok := errors.AsType[*launch.ClaudeJSONError](err); ok {
		result.SessionID, result.StartupFailureReason = plan.Clock.NewID(), "config_file_invalid"
		result.InvalidConfigFile = &protocol.ConfigFileThatPreventedStart{Path: broken.Path, IsGlobal: true}
	} else if unavailable, ok := errors.AsType[*launch.MissingSandboxError](err); ok {
		result.SessionID, result.StartupFailureReason = plan.Clock.NewID(), "sandbox_required_unavailable"
		result.ModelUsageSince = &map[string]protocol.ModelUsage{}
		stderrText = unavailable.StderrText()
	} else {
		return err
	}
	result.UUID = plan.Clock.NewID()
	if plan.Output.Format == "stream-json" {
		events := func(yield func(protocol.Event, error) bool) { yield(result, nil) }
		if err := encoderForFormat(plan)(sys.Stdout, events); err != nil {
			return err
		}
	}
	return process.Verbatimf("%s", stderrText)
}

func isSessionLookupError(err error) bool {
	_, path := errors.AsType[*transcript.NotFoundError](err)
	_, title := errors.AsType[*transcript.UnknownTitleError](err)
	_, several := errors.AsType[*transcript.AmbiguousTitleError](err)
	return path || title || several
}

// requiredPromptFromArgOrStdin returns the prompt of a text run: the argument, the content of stdin, or both separated by a newline.
// Do not call it for stream-json input. If ctx ends first, the error is its cause.
func requiredPromptFromArgOrStdin(ctx context.Context, s *process.System, f *flags.Flags) (string, error) {
	prompt, err := joinPromptArgumentAndStdin(ctx, s, f)
	switch {
	case err != nil:
		return "", err
	case prompt == "" && (f.Continue || f.Resume != ""):
		return "", process.Verbatimf("Error: No deferred tool marker found in the resumed session. Either the session was not deferred, the marker is " +
			"stale (tool already ran), or it exceeds the tail-scan window. Provide a prompt to continue the conversation.")
	case prompt == "":
		return "", process.Verbatimf("%sError: Input must be provided either through stdin or as a prompt argument when using --print", f.HintThatVariadicFlagTookPrompt())
	case strings.TrimSpace(prompt) == "":
		return "", process.Verbatimf("Error: Input contained only whitespace. Provide a prompt with text through stdin or as a prompt argument when using --print")
	}
	return prompt, nil
}

func joinPromptArgumentAndStdin(ctx context.Context, s *process.System, f *flags.Flags) (string, error) {
	piped, err := s.ReadPipedStdinUnlessSilent(ctx)
	switch {
	case err != nil:
		return "", err
	case f.Prompt == "":
		return piped, nil
	case piped == "":
		return f.Prompt, nil
	}
	return f.Prompt + "\n" + piped, nil
}

// textRunPrompts returns the prompts of the run. If an earlier run deferred a call, the first prompt continues this call, and the user
// need not give another one.
func textRunPrompts(ctx context.Context, sys *process.System, f *flags.Flags, s *session.Session) ([]protocol.UserMessage, error) {
	deferred, ok := s.PromptToRunDeferredCall()
	if !ok {
		if main, ok := s.Plan().Catalog.Agent(s.Plan().Customization.Agent); ok && main.First != "" {
			text, err := joinPromptArgumentAndStdin(ctx, sys, f)
			return []protocol.UserMessage{{Content: protocol.Content{Text: strings.TrimSuffix(main.First+"\n\n"+text, "\n\n")}}}, err
		}
		prompt, err := requiredPromptFromArgOrStdin(ctx, sys, f)
		return []protocol.UserMessage{{Content: protocol.Content{Text: prompt}}}, err
	}
	prompt, err := joinPromptArgumentAndStdin(ctx, sys, f)
	if err != nil || prompt == "" {
		return []protocol.UserMessage{deferred}, err
	}
	return []protocol.UserMessage{deferred, {Content: protocol.Content{Text: prompt}}}, nil
}

// createWorktreeAndEnter creates the worktree of --worktree and moves the run into it. Without the flag, it returns nil.
func createWorktreeAndEnter(ctx context.Context, sys *process.System, f *flags.Flags) (*launch.Worktree, error) {
	if !f.WasGiven("worktree") {
		return nil, nil
	}
	dir, err := f.AbsoluteWorkingDirectory(sys)
	if err != nil {
		return nil, err
	}
	git := gitworktree.Git{Environ: sys.Environ}
	top, err := git.MainWorktreeTop(ctx, dir)
	if err != nil {
		return nil, process.Verbatimf("Error: Can only use --worktree in a git repository, but %s is not a git repository. "+
			"Configure a WorktreeCreate hook to use --worktree with other VCS systems.", dir)
	}
	name := cmp.Or(f.Worktree, gitworktree.WorktreeNameFromNumber(sys.Now().UnixNano()))
	if fault := gitworktree.WorktreeNameProblem(name); fault != "" {
		return nil, process.Verbatimf("Error creating worktree: %s", fault)
	}
	former := git.Branch(ctx, dir)
	tree, err := git.CreateOrReuse(ctx, gitworktree.Options{
		Top: top, Name: name, Lock: fmt.Sprintf("claude session %s (pid %d)", strings.ReplaceAll(name, "/", "+"), sys.PID),
	})
	if err != nil {
		return nil, process.Verbatimf("Error creating worktree: %v", err)
	}
	f.WorktreeDir = tree.Path
	return &launch.Worktree{Worktree: tree, Name: name, OriginalDir: dir, OriginalBranch: former}, nil
}

func resolvePlanInNewWorktreeIfAsked(ctx context.Context, sys *process.System, f *flags.Flags) (launch.Plan, error) {
	tree, err := createWorktreeAndEnter(ctx, sys, f)
	if err != nil {
		return launch.Plan{}, err
	}
	plan, err := launch.Resolve(sys, f)
	plan.Worktree = tree
	return plan, err
}

func runMCP(ctx context.Context, s *process.System, words []string) error {
	ctx, signals := s.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	s = signals.WithWriteTimeoutAfterSignal(s)
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
		Terminal: terminal, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr, Progress: s.ProgressTerminalOrNil(),
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

// runInteractive runs claude on a terminal. Output to stderr is delayed until the terminal is restored.
func runInteractive(ctx context.Context, sys *process.System, f *flags.Flags) (err error) {
	ctx, signals := sys.WatchSignals(ctx)
	defer signals.StopAndCancelContext()
	var warnings bytes.Buffer
	own := *sys
	faults := &terminal.Faults{}
	own.Stderr, own.Stdout, own.StderrIsTTY = &warnings, faults, false
	plan, err := resolvePlanInNewWorktreeIfAsked(ctx, &own, f)
	if err != nil {
		return writeWarningsAndReturnError(sys, &warnings, err)
	}
	console, err := terminal.OpenConsoleInRawMode(sys, signals, faults, &plan)
	if err != nil {
		return err
	}
	defer func() { _ = console.Close() }() // the terminal may be closed already
	changed, err := terminal.AskStartupQuestions(ctx, console, &plan, sys.Getenv("ANTHROPIC_API_KEY"))
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
	unmet := s.JudgeScenarioAndStopTelemetry(process.PrintErrorReturningExitCode(io.Discard, err))
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
