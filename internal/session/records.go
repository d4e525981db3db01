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
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/checkpoint"
	"github.com/claudeless/claudeless/internal/clock"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/launch"
	"github.com/claudeless/claudeless/internal/process"
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
	engine      *scenarios.Engine
	mirror      *mirror          // nil = no --session-mirror
	journal     *journal.Journal // nil = no --capture
	captured    captured
	debug       *debugLog                       // nil = no --debug
	checkpoints *checkpoint.History             // nil = files are not kept
	shown       atomic.Pointer[protocol.Init]   // the last one yielded
	last        atomic.Pointer[protocol.Result] // the last one yielded
	clock       *clock.Source
}

// openRecords opens the transcript, and the scenario where the session left it.
func openRecords(plan launch.Plan, t transcript.Teller) (*recorder, error) {
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
	r.engine = scenarios.NewEngine(plan.Scenario.Scenario, plan.Scenario.Engine)
	if state := r.transcript.ScenarioState(); state != nil {
		if err := r.engine.Restore(state); err != nil {
			r.warn("the state of the scenario was not restored: " + err.Error())
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
			r.warn("opening --capture: " + err.Error())
		} else {
			r.captured.Closer = file
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
		r.warn(ev.Text)
	case *protocol.Verbatim:
		fmt.Fprint(r.stderr, ev.Stderr)
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

// tellScript writes into the journal what the script of the turn expected and did not get.
func (r *recorder) tellScript(ctx context.Context) {
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
	if text, at, ok := r.engine.Unplayed(ctx); ok {
		r.journal.Write(journal.Unplayed{Text: text, File: at.File, Line: at.Line})
	}
}

// keepScenario saves counts and turn sequences for the session's next process, before the result is on stdout.
func (r *recorder) keepScenario() {
	state, err := r.engine.State()
	if err == nil {
		err = r.transcript.SetScenarioState(state)
	}
	if err != nil {
		r.warn("the state of the scenario is not saved: " + err.Error())
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
		r.warn("the title is not saved: " + err.Error())
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
		r.warn("the session is not saved: " + err.Error())
	}
}

// closeLogs is for the very end.
func (r *recorder) closeLogs() {
	r.debug.close()
	if r.journal != nil {
		if err := errors.Join(r.journal.Err(), r.captured.Close()); err != nil {
			r.warn("writing --capture: " + err.Error())
		}
	}
}

// hint warns of settings that are passed over, of which the real CLI says nothing (spec: cli-observed 1).
func (r *recorder) hint(text string) {
	if !r.quiet {
		r.warn(text)
	}
}

func (r *recorder) warn(text string) { fmt.Fprintf(r.stderr, "claudeless: warning: %s\n", text) }
