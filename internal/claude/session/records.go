package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claude/telemetry"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/record/redact"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// recorder writes the records of a session: transcript, journal, debug log, file checkpoints and
// the state of the scenario. It also writes warnings to stderr.
type recorder struct {
	stderr      io.Writer
	environ     []string // environment whose values are redacted in warnings
	noHints     bool
	transcript  *transcript.Transcript
	scenario    *playedScenario
	mirror      *stdoutTranscriptMirror // nil means no --session-mirror
	journal     *journal.Journal        // nil means no --capture
	journalFile io.Closer               // closed with the journal
	debug       *debugLog               // nil means no --debug
	telemetry   *telemetryExport        // nil means that none is sent
	checkpoints *checkpoint.History     // nil means files are not kept
	lastInit    atomic.Pointer[protocol.InitEvent]
	lastResult  atomic.Pointer[protocol.ResultEvent]
	clock       *clock.TimeAndIDSource
}

func openTranscriptAndRestoreScenario(plan launch.Plan, t transcript.ContextSource) (*recorder, error) {
	r := &recorder{stderr: plan.Stderr, environ: plan.Environ, noHints: plan.AsClaude, clock: plan.Clock}
	o := plan.Transcript
	o.Context = t
	if w := plan.Worktree; w != nil {
		o.Machine.Worktree = &protocol.WorktreeSession{Original: w.OriginalDir, BeforeEntering: w.OriginalDir, Path: w.Path, Name: w.Name, Branch: w.Branch, OriginalBranch: w.OriginalBranch, OriginalHead: w.Base}
	}
	if plan.Output.MirrorTranscript {
		r.mirror = &stdoutTranscriptMirror{}
		o.OnLine = r.mirror.addPendingLine
	}
	var err error
	if r.transcript, err = transcript.Open(o); err != nil {
		if used, ok := errors.AsType[*transcript.InUseError](err); ok {
			return nil, process.Verbatimf("Error: %v", used)
		}
		return nil, err // the error for a missing conversation keeps its type, because it is reported as a result
	}
	plan.Scenario.HideSecrets(redact.NewFinder(redact.Options{Environ: plan.Environ}))
	r.scenario = &playedScenario{Engine: scenarios.NewEngine(plan.Scenario.Scenario, plan.Scenario.Engine), scenario: plan.Scenario.Scenario, clock: plan.Clock, started: plan.Clock.Now()}
	state := r.transcript.ScenarioState()
	if state != nil {
		if err := r.scenario.RestoreReportingDroppedParts(state); err != nil {
			r.WarnOnStderr("the state of the scenario was not restored: " + err.Error())
		}
	}
	if state == nil || o.ResumeAt != "" { // a host's session store does not keep the state
		r.scenario.SetPromptCount(r.transcript.PromptCount())
	}
	if plan.Host.Checkpoints { // a resumed session keeps the copies that it made earlier
		r.checkpoints = checkpoint.New(checkpoint.Options{CWD: plan.CWD, Transcript: r.transcript, Clock: plan.Clock, IsReadOnly: builtin.ReadOnlyCall})
		r.checkpoints.Load(r.transcript.FileHistory())
	}
	return r, nil
}

func (r *recorder) openJournalAndDebugLog(plan launch.Plan) error {
	if plan.Records.Capture != "" {
		if file, err := os.OpenFile(plan.Records.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			r.WarnOnStderr("cannot open the --capture file, so no journal is written: " + err.Error())
		} else {
			r.journalFile = file
			r.journal = journal.New(journal.Options{W: file, Now: plan.Clock.Now, PID: plan.PID, SessionID: r.transcript.ID(), Environ: plan.Environ})
			run := plan.Records.Run
			run.ScenarioDigest = plan.Scenario.Digest() // computed only for a journal, because it reads the whole text again
			r.journal.Write(run)
		}
	}
	var err error
	r.debug, err = openDebugLog(plan, r.stderr, r.transcript.ID())
	r.debug.printf("session %s in %s, scenario %s", r.transcript.ID(), plan.CWD, cmp.Or(plan.Scenario.Scenario.Name, "without a name"))
	return err
}

func (r *recorder) recordOutsideTranscript(ctx context.Context, ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.StderrWarning:
		r.WarnOnStderr(ev.Text)
	case *protocol.VerbatimOutput:
		fmt.Fprint(r.stderr, ev.Stderr)
	case *protocol.RuleMatchOutcome:
		if ev.Rule == "" {
			r.explainUnmatchedPrompt(ev)
		}
	case *protocol.ToolExecuted:
		if r.journal == nil {
			r.hintAtSetupMistakeOfCall(ev)
		}
	case *protocol.InitEvent:
		r.lastInit.Store(ev)
	case *protocol.ResultEvent:
		r.lastResult.Store(ev)
		r.saveScenarioStateInTranscript()
		r.journalUnmetResultsAndUnplayedStep(ctx)
	}
	if prompt, ok := ev.(*protocol.PromptAccepted); ok && prompt.WrittenByCLI {
		r.scenario.injectedPrompt = prompt.Content.Plain()
	}
	if r.debug != nil {
		r.debug.logEvent(ev)
	}
	r.recordFileCheckpoints(ev)
	if r.journal != nil || r.scenario.hasExpectations() {
		r.journalAndCountForExpectations(journal.LinesOfEvent(ev))
	}
}

// hintAtSetupMistakeOfCall warns about a call that did not run because of a mistake in the set-up of the test.
func (r *recorder) hintAtSetupMistakeOfCall(ev *protocol.ToolExecuted) {
	result, scenario := ev.Result.Content.Plain(), r.scenario.scenario
	rejected := ev.Result.IsError && strings.HasPrefix(result, "<tool_use_error>InputValidationError: ")
	switch {
	case rejected && !scenario.HasExpectationForCall(ev.Use.Name, ev.Use.Input):
		r.WarnUnlessRunAsClaude("the tool " + ev.Use.Name + " rejected its scripted input")
	case rejected || scenario.HasExpectationAboutTool(ev.Use.Name):
	case ev.Result.UnknownTool:
		r.WarnUnlessRunAsClaude("the script calls the tool " + ev.Use.Name + ", which does not exist here")
	case journal.PermissionOf(ev).IsDeniedForLackOfAllowRule():
		r.WarnUnlessRunAsClaude("the scripted call of " + ev.Use.Name + " was denied: allow the tool with --allowedTools")
	case ev.Result.IsError && journal.SaysNoFixtureCaseMatched(result):
		r.WarnUnlessRunAsClaude("the fixture has no case for a call of " + ev.Use.Name)
	}
}

// explainUnmatchedPrompt explains why no rule answers a prompt. The explanation is written to the journal. It is also written
// to stderr if the prompt gets an empty reply, except when the program runs under the name claude.
func (r *recorder) explainUnmatchedPrompt(ev *protocol.RuleMatchOutcome) {
	tell := ev.Prompt != r.scenario.injectedPrompt && r.scenario.scenario.Unmatched != "error" && !r.noHints
	if !tell && r.journal == nil {
		return
	}
	ev.Nearest = r.scenario.ExplainNearMisses(scenarios.Request{Prompt: ev.Prompt})
	if tell {
		r.WarnOnStderr(ev.Nearest[0] + ", so nothing answers it")
		for _, why := range ev.Nearest[1:] {
			fmt.Fprintf(r.stderr, "hint: %s\n", why)
		}
	}
}

// journalUnmetResultsAndUnplayedStep records in the journal which expectations about tool results were missed since its last call. Unless
// the turn was stopped, it also records the next step that was not played.
func (r *recorder) journalUnmetResultsAndUnplayedStep(ctx context.Context) {
	if r.journal == nil {
		return
	}
	for _, m := range r.scenario.takeNewMisses() {
		r.journal.Write(journalLineOfExpectation(m))
	}
	last := r.lastResult.Load()
	if last.Subtype == "error_during_execution" || strings.HasPrefix(last.TerminalReason, "aborted") || last.DeferredToolUse != nil {
		return // the turn was stopped on request
	}
	if text, at, ok := r.scenario.NextUnplayedStep(ctx); ok {
		r.journal.Write(journal.Unplayed{Text: text, File: at.File, Line: at.Line})
	}
}

// stopTelemetryAndJudgeExpectations compares the actions of the process with the expectations of the scenario and writes the outcome to
// the journal. It returns one line for each expectation that was not met, unexpected results first.
func (r *recorder) stopTelemetryAndJudgeExpectations(exitCode int) (unmet []string) {
	sent, _ := r.telemetry.stopAndSendRemaining() // stopTelemetryAndCloseLogs reports the error
	for name, n := range sent {
		r.scenario.addToExpectationSummary(journal.Telemetry{Name: name, Count: n})
	}
	r.scenario.addToExpectationSummary(journal.Exit{Code: exitCode})
	judged := r.scenario.summary.CheckExpectations(r.scenario.scenario)
	if r.journal != nil {
		whole := r.journal.WithoutSession()
		for _, j := range judged {
			whole.Write(journalLineOfExpectation(j))
		}
	}
	for _, j := range append(r.scenario.UnmetResultExpectations(), judged...) {
		if !j.IsMet {
			unmet = append(unmet, j.String())
		}
	}
	return unmet
}

// saveScenarioStateInTranscript saves counters and turn sequences for the next process, before the result is written to stdout.
func (r *recorder) saveScenarioStateInTranscript() {
	state, err := r.scenario.State()
	if err == nil {
		err = r.transcript.SetScenarioState(state)
	}
	if err != nil {
		r.WarnOnStderr("the state of the scenario is not saved: " + err.Error())
	}
}

func (r *recorder) promptLifecycleEvents(prompt protocol.UserMessage, lifecycleState string, more ...protocol.Field) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for _, id := range prompt.UUIDs {
			frame := protocol.CommandLifecycleEvent(id, lifecycleState)
			frame.Fields = append(frame.Fields, more...)
			frame.UUID, frame.SessionID = r.clock.NewID(), r.ID()
			if !yield(frame, nil) {
				return
			}
		}
	}
}

func (r *recorder) ID() string { return r.transcript.ID() }

// SetTitle sets the title for the command /rename.
func (r *recorder) SetTitle(title string) {
	r.warnIfTranscriptNotSaved(r.transcript.SetTitleAndWriteTitleFile(title))
}

func (r *recorder) warnIfTranscriptNotSaved(err error) {
	if err != nil {
		r.WarnOnStderr("the session is not saved: " + err.Error())
	}
}

func (r *recorder) recordFileCheckpoints(ev protocol.Event) {
	if r.checkpoints == nil {
		return
	}
	if err := r.checkpoints.Record(ev); err != nil {
		r.WarnOnStderr("saving a checkpoint: " + err.Error())
	}
}

func (r *recorder) saveToolResultFile(name string, data []byte) (string, error) {
	dir := r.transcript.ToolResultsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

// stopTelemetryAndCloseLogs closes journal and debug log after everything else has stopped.
func (r *recorder) stopTelemetryAndCloseLogs() {
	sent, err := r.telemetry.stopAndSendRemaining()
	if err != nil {
		r.debug.printf("telemetry: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if r.journal != nil {
			r.journal.WithoutSession().Write(journal.Telemetry{Name: name, Count: sent[name]})
		}
	}
	r.debug.close()
	if r.journal != nil {
		if err := errors.Join(r.journal.Err(), r.journalFile.Close()); err != nil {
			r.WarnOnStderr("writing --capture: " + err.Error())
		}
	}
}

// WarnUnlessRunAsClaude writes a warning that the real CLI does not have. Under the name claude, it writes nothing (spec: cli-observed 1).
func (r *recorder) WarnUnlessRunAsClaude(text string) {
	if !r.noHints {
		r.WarnOnStderr(text)
	}
}

// WriteJournal writes a line to the journal, if any. The line also counts when the expectations of the scenario are
// checked, even without a journal.
func (r *recorder) WriteJournal(b journal.Body) {
	r.journalAndCountForExpectations([]journal.Body{b}, nil)
}

// journalAndCountForExpectations writes lines to the journal, if there is one. The lines also count when the expectations of the scenario
// are checked. If err is not nil, the journal keeps err and writes no further lines.
func (r *recorder) journalAndCountForExpectations(lines []journal.Body, err error) {
	r.scenario.addToExpectationSummary(lines...)
	if r.journal != nil {
		r.journal.WriteLinesAndKeepError(lines, err)
	}
}

// WarnOnStderr writes a warning to stderr, without secrets.
func (r *recorder) WarnOnStderr(text string) {
	fmt.Fprintf(r.stderr, "claudeless: warning: %s\n", r.redactSecrets(text))
}

func (r *recorder) redactSecrets(text string) string {
	return redact.New(redact.Options{Environ: r.environ}).String(text)
}

// playedScenario is the scenario that this process plays, with the facts that are compared with the scenario's expectations.
type playedScenario struct {
	*scenarios.Engine
	scenario       *scenarios.Scenario
	clock          *clock.TimeAndIDSource
	started        time.Time
	summary        journal.Summary // empty without expectations
	missesReported int             // how many of the unexpected results are already in the journal
	injectedPrompt string          // the last prompt that the CLI itself wrote; explainUnmatchedPrompt does not warn about it
}

func (p *playedScenario) hasExpectations() bool { return len(p.scenario.Expect) > 0 }

// addToExpectationSummary adds lines to the summary that expectations are checked against, even if no journal is written.
func (p *playedScenario) addToExpectationSummary(lines ...journal.Body) {
	if !p.hasExpectations() {
		return
	}
	at := journal.LineOrigin{AfterMS: float64(p.clock.Now().Sub(p.started)) / float64(time.Millisecond)}
	for _, l := range lines {
		p.summary.Add(at, l)
	}
}

// takeNewMisses returns the unexpected results since its last call.
func (p *playedScenario) takeNewMisses() []scenarios.ExpectationResult {
	all := p.UnmetResultExpectations()
	fresh := all[min(p.missesReported, len(all)):]
	p.missesReported = len(all)
	return fresh
}

func journalLineOfExpectation(j scenarios.ExpectationResult) journal.Expectation {
	return journal.Expectation{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.IsMet, Got: j.Actual}
}

type telemetryExport struct {
	recorder *telemetry.Recorder
	hooks    *hook.Runner
	state    *simulator.SessionState
	quit     chan struct{} // closed to stop the goroutine that sends at intervals
	stopped  chan struct{} // closed when the goroutine has returned
	once     sync.Once
	ctx      context.Context // context of the start, without its cancellation
}

// startTelemetryIfEnabled starts the telemetry that the environment requests; nil means none.
func startTelemetryIfEnabled(ctx context.Context, plan launch.Plan, t *transcript.Transcript, state *simulator.SessionState, hooks *hook.Runner) *telemetryExport {
	if !plan.Records.Telemetry.IsEnabled() {
		return nil
	}
	machine := telemetry.Machine{Arch: runtime.GOARCH, OS: runtime.GOOS, UserID: fmt.Sprintf("%x", sha256.Sum256([]byte("user of "+plan.State)))}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil { // only on Linux; elsewhere the value is omitted
		machine.Release = strings.TrimSpace(string(release))
	}
	e := &telemetryExport{ctx: context.WithoutCancel(ctx), hooks: hooks, state: state, quit: make(chan struct{}), stopped: make(chan struct{}), recorder: telemetry.New(telemetry.Options{
		Config: plan.Records.Telemetry, Clock: plan.Clock, Version: plan.Version, Machine: machine, SessionID: t.ID(), Resumed: t.Resumed(),
		CustomBaseURL: !plan.Profile.Environment().UsesDefaultURL, Interactive: plan.Records.Run.Interactive, Hooks: registeredHooks(plan),
	})}
	go func() {
		defer close(e.stopped)
		e.recorder.Run(e.ctx, e.quit)
	}()
	return e
}

func registeredHooks(plan launch.Plan) (list []telemetry.RegisteredHook) {
	if plan.Settings.DisableAllHooks || plan.Customization.AllDisabled() {
		return nil
	}
	var sources []hook.SettingsHooks
	for _, h := range plan.Settings.Hooks {
		sources = append(sources, hook.SettingsHooks{Name: string(h.Source), Raw: h.Raw})
	}
	for _, h := range hook.List(sources, hook.Policy{}).Hooks {
		list = append(list, telemetry.RegisteredHook{Event: h.Event, Kind: h.Type, Source: h.Source, Matcher: h.Matcher})
	}
	return list
}

// recordEvent reports an event to telemetry. It first reports the hooks that ran since its last call.
func (e *telemetryExport) recordEvent(ev protocol.Event, mode protocol.PermissionMode) {
	if e == nil {
		return
	}
	for _, ran := range e.hooks.TakeEventStats() {
		e.recorder.RecordHooks(ran)
	}
	now := e.state.SessionStateSnapshot()
	e.recorder.Record(ev, telemetry.SessionModeAndModel{Mode: mode, Effort: now.Effort, Model: claudecode.ResolveModel(now.Model)})
}

// stopAndSendRemaining stops the goroutine, sends the remaining data and returns how many items of each name were accepted.
func (e *telemetryExport) stopAndSendRemaining() (acceptedCountsByName map[string]int, exportErr error) {
	if e == nil {
		return nil, nil
	}
	e.once.Do(func() {
		close(e.quit)
		<-e.stopped
		e.recorder.Close(e.ctx)
	})
	return e.recorder.CollectorAcceptedCounts(), e.recorder.LastError()
}
