package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// recorder follows the session: the transcript, the journal, the debug log, the copies of files, and the state of the
// scenario. It also has the word on stderr.
type recorder struct {
	stderr      io.Writer
	quiet       bool // hints of our own are not told
	transcript  *transcript.Transcript
	engine      *scenarioProgress
	mirror      *mirror                         // nil = no --session-mirror
	journal     *journal.Journal                // nil = no --capture
	captured    io.Closer                       // the file of the journal
	debug       *debugLog                       // nil = no --debug
	checkpoints *checkpoint.History             // nil = files are not kept
	shown       atomic.Pointer[protocol.Init]   // the last one yielded
	last        atomic.Pointer[protocol.Result] // the last one yielded
	clock       *clock.Source
}

// openRecords opens the transcript, and the scenario where the session left it.
func openRecords(plan launch.Plan, t transcript.ContextSource) (*recorder, error) {
	r := &recorder{stderr: plan.Stderr, quiet: plan.AsClaude, clock: plan.Clock}
	o := plan.Transcript
	o.Teller = t
	if plan.Output.Mirror {
		r.mirror = &mirror{}
		o.OnLine = r.mirror.line
	}
	var err error
	if r.transcript, err = transcript.Open(o); err != nil {
		if used, ok := errors.AsType[*transcript.InUseError](err); ok {
			return nil, process.Verbatimf("Error: %v", used)
		}
		return nil, err // a missing conversation keeps its type, because it has a result
	}
	r.engine = &scenarioProgress{Engine: scenarios.NewEngine(plan.Scenario.Scenario, plan.Scenario.Engine), scenario: plan.Scenario.Scenario, clock: plan.Clock, began: plan.Clock.Now(), heard: map[string]string{}}
	if state := r.transcript.ScenarioState(); state != nil {
		if err := r.engine.Restore(state); err != nil {
			r.Warn("the state of the scenario was not restored: " + err.Error())
		}
	}
	if plan.Host.Checkpoints { // a resumed session goes on with its copies
		r.checkpoints = checkpoint.New(checkpoint.Options{CWD: plan.CWD, Transcript: r.transcript, Clock: plan.Clock})
		r.checkpoints.Load(r.transcript.FileHistory())
	}
	return r, nil
}

// follow opens the journal and the debug log.
func (r *recorder) follow(plan launch.Plan) error {
	if plan.Records.Capture != "" {
		file, err := os.OpenFile(plan.Records.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			r.Warn("opening --capture: " + err.Error())
		} else {
			r.captured = file
			r.journal = journal.New(journal.Options{W: file, Now: plan.Clock.Now, PID: plan.PID, SessionID: r.transcript.ID(), Environ: plan.Environ})
			r.journal.Write(plan.Records.Run)
		}
	}
	var err error
	r.debug, err = openDebug(plan, r.stderr, r.transcript.ID())
	r.debug.printf("session %s in %s, scenario %s", r.transcript.ID(), plan.CWD, cmp.Or(plan.Scenario.Scenario.Name, "without a name"))
	return err
}

// see lets everything that only looks on see an event on its way out.
func (r *recorder) see(ctx context.Context, ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Warning:
		r.Warn(ev.Text)
	case *protocol.Verbatim:
		fmt.Fprint(r.stderr, ev.Stderr)
	case *protocol.Matched:
		if ev.Rule == "" {
			r.unmatched(ev)
		}
	case *protocol.Init:
		r.shown.Store(ev)
	case *protocol.Result:
		r.last.Store(ev)
		r.keepScenario()
		r.tellScript(ctx)
	}
	r.engine.see(ev)
	if r.debug != nil {
		r.debug.event(ev)
	}
	if r.checkpoints != nil {
		if err := r.checkpoints.See(ev); err != nil {
			r.Warn("keeping a checkpoint: " + err.Error())
		}
	}
	if r.journal != nil {
		r.journal.Event(ev)
	}
}

// unmatched explains a prompt that no rule answers, in the journal and, where nobody judges the run, on stderr.
func (r *recorder) unmatched(ev *protocol.Matched) {
	tell := r.engine.silent(ev.Prompt) && !r.quiet
	if !tell && r.journal == nil {
		return
	}
	ev.Nearest = r.engine.Explain(scenarios.Request{Prompt: ev.Prompt})
	if tell {
		r.Warn(ev.Nearest[0] + ", so nothing answers it")
		for _, why := range ev.Nearest[1:] {
			fmt.Fprintf(r.stderr, "hint: %s\n", why)
		}
	}
}

// tellScript writes into the journal what the script of the turn expected and did not get.
func (r *recorder) tellScript(ctx context.Context) {
	if r.journal == nil {
		return
	}
	for _, m := range r.engine.misses() {
		r.journal.Write(expectation(m))
	}
	last := r.last.Load()
	if last.Subtype == "error_during_execution" || strings.HasPrefix(last.TerminalReason, "aborted") || last.DeferredToolUse != nil {
		return // somebody wanted the turn to end there
	}
	if text, at, ok := r.engine.Unplayed(ctx); ok {
		r.journal.Write(journal.Unplayed{Text: text, File: at.File, Line: at.Line})
	}
}

// judge holds what the process did against the expectations of the scenario and writes the verdict into the journal. What
// was missed comes back, a line each, results that did not fit first.
func (r *recorder) judge(code int) (unmet []string) {
	judged := r.engine.judge(code)
	if r.journal != nil {
		whole := r.journal.Process()
		for _, j := range judged {
			whole.Write(expectation(j))
		}
	}
	for _, j := range append(r.engine.Misses(), judged...) {
		if !j.Met {
			unmet = append(unmet, j.String())
		}
	}
	return unmet
}

// keepScenario saves counts and turn sequences for the session's next process, before the result is on stdout.
func (r *recorder) keepScenario() {
	state, err := r.engine.State()
	if err == nil {
		err = r.transcript.SetScenarioState(state)
	}
	if err != nil {
		r.Warn("the state of the scenario is not saved: " + err.Error())
	}
}

// lifecycle tells how far the prompts are that have an id.
func (r *recorder) lifecycle(in protocol.UserMessage, state string) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		for _, id := range in.UUIDs {
			frame := protocol.Lifecycle(id, state)
			frame.UUID, frame.SessionID = r.clock.NewID(), r.ID()
			if !yield(frame, nil) {
				return
			}
		}
	}
}

// id is that of the session as it was last shown.
func (r *recorder) id() string {
	if shown := r.shown.Load(); shown != nil {
		return shown.SessionID
	}
	return r.transcript.ID()
}

// ID is that of the conversation.
func (r *recorder) ID() string { return r.transcript.ID() }

// Entitle gives the session a title.
func (r *recorder) Entitle(title string) {
	if err := r.transcript.Entitle(title); err != nil {
		r.Warn("the title is not saved: " + err.Error())
	}
}

// save keeps what a tool gave beside the transcript and returns the path.
func (r *recorder) save(name string, data []byte) (string, error) {
	dir := r.transcript.ToolResultsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

// close writes the end of the transcript.
func (r *recorder) close() {
	if err := r.transcript.Close(); err != nil {
		r.Warn("the session is not saved: " + err.Error())
	}
}

// closeLogs is for the very end.
func (r *recorder) closeLogs() {
	r.debug.close()
	if r.journal != nil {
		if err := errors.Join(r.journal.Err(), r.captured.Close()); err != nil {
			r.Warn("writing --capture: " + err.Error())
		}
	}
}

// Hint warns of what is passed over and of which the real CLI says nothing (spec: cli-observed 1).
func (r *recorder) Hint(text string) {
	if !r.quiet {
		r.Warn(text)
	}
}

// Note writes into the journal, if there is one.
func (r *recorder) Note(b journal.Body) {
	if r.journal != nil {
		r.journal.Write(b)
	}
}

// Warn says something on stderr.
func (r *recorder) Warn(text string) { fmt.Fprintf(r.stderr, "claudeless: warning: %s\n", text) }

// scenarioProgress is the scenario as this process plays it, with what its expectations want to know and the engine does not see. It
// tells what happened as internal/exec/verdict finds it in a journal.
type scenarioProgress struct {
	*scenarios.Engine
	scenario *scenarios.Scenario
	clock    *clock.Source
	began    time.Time
	heard    map[string]string // by agent: the message of the model that came last
	retries  int               // before the next one
	missed   int               // resultStore that did not fit and are in the journal
	injected string            // the last prompt that is the CLI's own

	mu    sync.Mutex // calls of servers come at the same time
	asked []record.Call
}

// see takes an event on its way out.
func (p *scenarioProgress) see(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.Matched:
		if ev.Rule != "" {
			p.Seen().Rule(scenarios.RuleRef{Name: ev.Rule, File: ev.File, Line: ev.Line})
		}
	case *protocol.PromptAccepted:
		if ev.Injected {
			p.injected = ev.Content.Plain()
		}
		p.ObservePrompt(ev.Content.Plain())
	case *protocol.ToolRan:
		p.ObserveCall(ev.Use.Name, ev.Use.Input)
	case *protocol.CLIRetry:
		p.retries = ev.Attempt
	case *protocol.HiddenEvent:
		p.see(ev.Event)
	case *protocol.Assistant:
		p.said(ev)
	}
}

// said takes a block of the model: the first of a message answers a request, unless it goes on with the one before.
func (p *scenarioProgress) said(ev *protocol.Assistant) {
	agent := ""
	if ev.ParentToolUseID != nil {
		agent = *ev.ParentToolUseID
	}
	if p.heard[agent] == ev.Message.ID {
		return
	}
	p.heard[agent] = ev.Message.ID
	if ev.Final != nil && ev.Final.GoesOn {
		p.Seen().GoOn(p.retries)
	} else {
		after := float64(p.clock.Now().Sub(p.began)) / float64(time.Millisecond)
		p.Seen().Request(scenarios.RequestSeen{Model: ev.Message.Model, Retries: p.retries, AfterMS: after})
	}
	p.retries = 0
}

// silent tells whether a prompt that no rule answers gets an empty reply of which nobody is told: it is none of the CLI's own,
// and the scenario does not take it for an error.
func (p *scenarioProgress) silent(prompt string) bool {
	return prompt != p.injected && p.scenario.Unmatched != "error"
}

// wantsServers tells whether an expectation speaks of what servers are asked.
func (p *scenarioProgress) wantsServers() bool {
	for i := range p.scenario.Expect {
		if p.scenario.Expect[i].MCP != nil {
			return true
		}
	}
	return false
}

// callObserver takes a call of a server.
func (p *scenarioProgress) called(c record.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, c)
}

// misses are the results that did not fit since they were asked for last.
func (p *scenarioProgress) misses() []scenarios.ExpectationResult {
	all := p.Misses()
	fresh := all[min(p.missed, len(all)):]
	p.missed = len(all)
	return fresh
}

// judge holds what the process did against the expectations, now that it ends with a code.
func (p *scenarioProgress) judge(code int) []scenarios.ExpectationResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.asked {
		p.Seen().ServerCall(c.Server, c.RawTool)
	}
	p.asked = nil
	p.Seen().Exit(code)
	return p.scenario.Judge(p.Seen())
}

// expectation is the line of the journal for one of them.
func expectation(j scenarios.ExpectationResult) journal.Expectation {
	return journal.Expectation{File: j.At.File, Line: j.At.Line, Text: j.Text, Met: j.Met, Got: j.Got}
}
