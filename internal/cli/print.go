package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/output"
	"github.com/claudeless/claudeless/internal/process"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// runPrint is the claude face: one prompt in, its events out in the chosen
// format, the exit code from the last result.
func runPrint(ctx context.Context, s *process.System, f *flags.Flags) error {
	ctx, signals := s.Watch(ctx)
	defer signals.Stop()
	r, err := assemble(s, f)
	if err != nil {
		return r.refuse(err)
	}
	defer func() { r.close(context.WithoutCancel(ctx)) }()
	prompts, err := r.turns(ctx, f)
	if err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return process.OrSignal(ctx, err)
	}
	turnCtx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	signals.Interrupts(interrupt)
	err = r.encoder()(s.Stdout, r.watch(ctx, r.settled(turnCtx, prompts)))
	return r.outcome(ctx, turnCtx, err)
}

// turns are the prompts of the run: first the call that an earlier run put off,
// which makes the prompt optional.
func (r *run) turns(ctx context.Context, f *flags.Flags) ([]protocol.UserMessage, error) {
	deferred, ok := r.sim.Deferred()
	if !ok {
		prompt, err := readPrompt(ctx, r.sys, f)
		return []protocol.UserMessage{{Content: protocol.Content{Text: prompt}}}, err
	}
	prompt, err := promptText(ctx, r.sys, f)
	if err != nil || prompt == "" {
		return []protocol.UserMessage{deferred}, err
	}
	return []protocol.UserMessage{deferred, {Content: protocol.Content{Text: prompt}}}, nil
}

// watch lets everything that only looks on see the events on their way out:
// the journal, the scenario's state and expectations, warnings for stderr. It
// cuts the stream when a signal has ended the run.
func (r *run) watch(ctx context.Context, events output.Events) output.Events {
	return func(yield func(protocol.Event, error) bool) {
		for ev, err := range events {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			if err == nil {
				r.see(ctx, ev)
			}
			for _, frame := range r.mirror.take() {
				if !yield(frame, nil) {
					return
				}
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (r *run) see(ctx context.Context, ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Warning:
		r.warn(ev.Text)
	case *protocol.Verbatim:
		fmt.Fprint(r.sys.Stderr, ev.Stderr)
	case *protocol.Matched:
		if ev.Rule == "" && r.journal != nil {
			ev.Nearest = r.engine.Explain(scenarios.Request{Prompt: ev.Prompt})
		}
	case *protocol.Prompted:
		r.engine.ObservePrompt(ev.Content.Plain())
	case *protocol.ToolRan:
		r.engine.ObserveCall(ev.Use.Name, ev.Use.Input)
	case *protocol.Init:
		r.shown.Store(ev)
	case *protocol.Result:
		r.last.Store(ev)
		r.keepScenario()
		r.tellScript(ctx)
	}
	if r.debug != nil {
		r.debug.event(ev)
	}
	if r.checkpoints != nil {
		if err := r.checkpoints.See(ev); err != nil {
			r.warn("keeping a checkpoint: " + err.Error())
		}
	}
	if r.journal != nil {
		r.journal.Event(ev)
	}
}

// captured is the file of the journal.
type captured struct {
	io.Closer
	missed int // results that did not fit and are in it
}

// tellScript writes into the journal what the script of the turn expected and did
// not get.
func (r *run) tellScript(ctx context.Context) {
	if r.journal == nil {
		return
	}
	missed := r.engine.Misses()
	for _, m := range missed[min(r.captured.missed, len(missed)):] {
		r.journal.Write(journal.Expectation{File: m.At.File, Line: m.At.Line, Text: m.Text, Got: m.Got})
	}
	r.captured.missed = len(missed)
	last := r.last.Load()
	if last.Subtype == "error_during_execution" || strings.HasPrefix(last.TerminalReason, "aborted") || last.DeferredToolUse != nil {
		return // somebody wanted the turn to end there
	}
	if text, at, ok := r.engine.Unplayed(context.WithoutCancel(ctx)); ok {
		r.journal.Write(journal.Unplayed{Text: text, File: at.File, Line: at.Line})
	}
}

// keepScenario saves counts and turn sequences for the session's next process,
// before the result is on stdout.
func (r *run) keepScenario() {
	state, err := r.engine.State()
	if err == nil {
		err = r.session.SetScenarioState(state)
	}
	if err != nil {
		r.warn("the state of the scenario is not saved: " + err.Error())
	}
}

func (r *run) encoder() output.Encoder {
	switch {
	case r.Output.Format == "stream-json":
		return output.StreamJSON
	case r.Output.Format == "json" && r.Output.Verbose:
		return output.JSONVerbose
	case r.Output.Format == "json":
		return output.JSON
	default:
		return output.Text(output.Limits{MaxTurns: r.Limits.MaxTurns, MaxBudgetUSD: r.Limits.MaxBudgetUSD})
	}
}

// outcome turns the end of a run into an exit code: a closed stdout and an
// interrupt are normal ends, else the last result decides (spec: cli-observed
// 2 and 10).
func (r *run) outcome(ctx, turnCtx context.Context, err error) error {
	crash, crashed := errors.AsType[*simulator.CrashError](err)
	switch {
	case crashed:
		return r.crash(crash)
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return nil
	case err != nil:
		return process.OrSignal(ctx, err)
	case turnCtx.Err() != nil:
		return process.OrSignal(ctx, nil)
	}
	unmet := r.unmet()
	for _, line := range unmet {
		fmt.Fprintln(r.sys.Stderr, line)
	}
	switch {
	case len(unmet) > 0 && r.Output.Expect:
		return &process.ExitError{Code: process.ExitExpect}
	case failed(r.last.Load()):
		return &process.ExitError{Code: process.ExitFailed}
	default:
		return nil
	}
}

// unmet are the expectations that this process can judge itself; none where
// others judge the whole run.
func (r *run) unmet() []string {
	if r.Output.Defer {
		return nil
	}
	return r.engine.Unmet()
}

func failed(last *protocol.Result) bool { return last != nil && last.IsError }

// crash ends the process as the scenario asks. A signal is sent to ourselves.
func (r *run) crash(c *simulator.CrashError) error {
	if c.Signal == "" {
		return &process.ExitError{Code: c.ExitCode}
	}
	sig, ok := signalByName(c.Signal)
	if !ok {
		return fmt.Errorf("the scenario crashes with an unknown signal %q", c.Signal)
	}
	r.close(context.Background())
	if err := r.sys.Kill(sig); err != nil {
		return err
	}
	return &process.ExitError{Code: 128 + int(sig)}
}

func signalByName(name string) (syscall.Signal, bool) {
	known := map[string]syscall.Signal{
		"SIGABRT": syscall.SIGABRT, "SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGKILL": syscall.SIGKILL,
		"SIGQUIT": syscall.SIGQUIT, "SIGSEGV": syscall.SIGSEGV, "SIGTERM": syscall.SIGTERM, "SIGBUS": syscall.SIGBUS, "SIGPIPE": syscall.SIGPIPE,
	}
	sig, ok := known[name]
	return sig, ok
}

// refuse ends a run that could not be assembled. A session that cannot be
// resumed and a broken configuration file have, in stream-json, a result without
// a run beside their text on stderr (spec: cli-observed 8).
func (r *run) refuse(err error) error {
	result := &protocol.Result{
		Type: "result", Subtype: "error_during_execution", IsError: true,
		Usage: simulator.NoUsage(), ModelUsage: map[string]protocol.ModelUsage{}, PermissionDenials: []protocol.PermissionDenial{},
		Errors: []string{err.Error()},
	}
	if missing, ok := errors.AsType[*transcript.NotFoundError](err); ok && missing.ID == r.Transcript.Resume {
		result.SessionID = missing.ID
	} else if cut, ok := errors.AsType[*transcript.RefusedError](err); ok {
		result.SessionID = cut.SessionID
	} else if unresolved(err) {
		result.SessionID = r.Clock.NewID()
	} else if broken, ok := errors.AsType[*launch.ConfigError](err); ok {
		result.SessionID, result.StartupFailureReason = r.Clock.NewID(), "config_file_invalid"
		result.InvalidConfigFile = &protocol.InvalidConfigFile{Path: broken.Path, IsGlobal: true}
	} else {
		return err
	}
	result.UUID = r.Clock.NewID()
	if r.Output.Format == "stream-json" {
		events := func(yield func(protocol.Event, error) bool) { yield(result, nil) }
		if err := r.encoder()(r.sys.Stdout, events); err != nil {
			return err
		}
	}
	return process.Verbatimf("%s", err.Error())
}

// unresolved tells that --resume is the id of no session.
func unresolved(err error) bool {
	_, path := errors.AsType[*transcript.NotFoundError](err)
	_, title := errors.AsType[*transcript.TitleError](err)
	_, several := errors.AsType[*transcript.SeveralError](err)
	return path || title || several
}
