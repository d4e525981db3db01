// Package transcript writes and reads the files of a conversation: transcripts
// (JSONL), resuming and forking, and the state of the scenario.
//
// Every transcript line is appended with a single write, and the line of an
// event has the UUID of that event.
package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Transcript is that of an open session. Record, SetScenarioState and Reset are for one
// goroutine at a time.
type Transcript struct {
	th       *conversation
	rec      *recorder
	history  []Message
	heard    *PreviousReply    // the last reply in it; nil = none
	told     []string          // files of instructions that came between its calls
	files    []json.RawMessage // lines about copies of files, of the resumed transcript
	deferred string            // id of the call that was put off last
	state    []byte
	closed   bool // by [Transcript.Close]
}

// Open finds or makes the session that o describes. Nothing is written before
// the first [Transcript.Record]. Errors: [*NotFoundError], [*InUseError],
// [*TitleError], [*SeveralError], [*RefusedError], or what reading a transcript gave.
func Open(o Options) (*Transcript, error) {
	if o.Clock == nil {
		return nil, errors.New("transcript: Clock is required")
	}
	o.Version = cmp.Or(o.Version, "2.1.329")
	o.Entrypoint = cmp.Or(o.Entrypoint, "sdk-cli")
	o.Project = cmp.Or(o.Project, o.CWD)
	given := o.CWD
	if path, err := filepath.EvalSymlinks(o.CWD); err == nil {
		o.CWD = path
	}
	if o.Project == given { // in most runs: each directory on the way is looked at once
		o.Project = o.CWD
	} else if path, err := filepath.EvalSymlinks(o.Project); err == nil {
		o.Project = path
	}
	th := &conversation{opts: o, writer: writer{off: o.NoPersist, onLine: o.OnLine}}
	s := &Transcript{th: th, rec: newRecorder(th)}
	path, err := o.find()
	if err != nil {
		return nil, err
	}
	if path != "" {
		if err := s.resume(path); err != nil {
			return nil, err
		}
	} else if err := s.th.fresh(); err != nil {
		return nil, err
	}
	if o.Title != "" {
		s.rec.labels.title, s.rec.labels.named = o.Title, true
	}
	if totals := &s.rec.costs.totals; totals.StartTime == 0 {
		totals.StartTime = o.Clock.Now().UnixMilli()
	}
	return s, nil
}

// fresh starts a session of its own.
func (th *conversation) fresh() error {
	th.id = th.opts.ID
	if th.id == "" && !th.opts.Fork {
		th.id = th.opts.DefaultID
	}
	if th.id == "" {
		if err := th.draw(); err != nil {
			return err
		}
	}
	th.path = filepath.Join(th.opts.projectDir(), th.id+".jsonl")
	if th.opts.ID != "" {
		if _, err := os.Stat(th.path); err == nil {
			return &InUseError{ID: th.id}
		}
	}
	return nil
}

// draw takes an id that no run before has: a directory claims it, so that runs
// at the same time do not share one either.
func (th *conversation) draw() error {
	th.id = th.opts.Clock.NewID()
	if th.opts.Again == nil || th.opts.NoPersist {
		return nil
	}
	claims := filepath.Join(th.opts.StateDir, "claudeless", "seeded")
	made := os.MkdirAll(claims, 0o700) // what cannot be written is told when there is something to write
	for n := 2; made == nil; n++ {
		if err := os.Mkdir(filepath.Join(claims, th.id), 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
		if n > mostRuns {
			return fmt.Errorf("%d runs with one seed are kept in %s; remove it, or use another seed", mostRuns, claims)
		}
		th.opts.Again(n)
		th.id = th.opts.Clock.NewID()
	}
	return nil
}

// mostRuns is how many runs with one seed may be kept.
const mostRuns = 10_000

// RefusedError says that the history cannot be cut as ResumeAt and DropsTurn
// demand.
type RefusedError struct {
	SessionID string // of the session that was to be resumed
	Message   string
}

func (e *RefusedError) Error() string { return e.Message }

// resume goes on with the transcript at path, or with a copy of it.
func (s *Transcript) resume(path string) error {
	t, err := readTranscript(path)
	if err != nil {
		return err
	}
	s.th.source = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if !isID(s.th.source) && t.sessionID != "" {
		s.th.source = t.sessionID
	}
	leaf := t.leaf
	if s.th.opts.ResumeAt != "" {
		if err := t.cut(s.th.opts.ResumeAt, s.th.opts.DropsTurn); err != nil {
			return &RefusedError{SessionID: s.th.source, Message: err.Error()}
		}
		leaf = s.th.opts.ResumeAt
	}
	th, rec := s.th, s.rec
	th.resumed, th.id, th.path = true, th.source, path
	if th.opts.Fork && th.opts.ID != th.source {
		if err := th.fresh(); err != nil {
			return err
		}
		th.forked, rec.pen.pending = true, func(promptID string) []byte { return t.copyAs(th.id, leaf, promptID) }
	}
	rec.pen.cutOff = !th.forked && !t.ended
	s.history, s.heard, s.deferred, s.told = t.chain(leaf), t.heard(leaf), t.deferred, t.told
	for _, e := range t.entries {
		if strings.HasPrefix(e.kind, "file-history-") {
			s.files = append(s.files, e.raw)
		}
	}
	if s.deferred == "" {
		rec.lost = unanswered(s.history)
	}
	rec.mute, rec.turns, rec.listing.listed, rec.listing.asked = t.endsMute(leaf), t.turns, t.listed, t.asked
	th.leaf = map[string]string{"": leaf}
	rec.labels.title, rec.labels.tools, rec.labels.prompt = t.title, t.tools, t.prompt
	if th.forked {
		rec.labels.prompt = t.firstPrompt(leaf)
	}
	if t.costs != nil {
		rec.costs.take(*t.costs)
	}
	return nil
}

// Record appends the lines that an event gives. Call it before the event is
// shown. The first failure to write is returned, later ones are not: after it
// nothing more is written.
func (s *Transcript) Record(ev protocol.Event) error { return s.rec.record(ev) }

// Entitle names the session. A name that it has already changes nothing.
func (s *Transcript) Entitle(title string) error { return s.rec.entitle(title) }

// Close writes what the conversation has come to and what it cost, if there
// was one. Nothing may be recorded after it; to close again does nothing.
func (s *Transcript) Close() error {
	if !s.rec.pen.opened || s.closed {
		return s.th.writer.close()
	}
	s.closed = true
	return errors.Join(s.rec.close(), s.th.writer.close())
}

// ID returns the session id.
func (s *Transcript) ID() string { return s.th.id }

// Path returns the transcript's path, whether or not it exists yet.
func (s *Transcript) Path() string { return s.th.path }

// ToolResultsDir returns where large tool results are saved; nobody made it
// yet.
func (s *Transcript) ToolResultsDir() string { return filepath.Join(s.th.dir(), "tool-results") }

// HistoryDir returns where copies of the files that the session changes are
// kept; empty = nothing is kept. Nobody made it yet.
func (s *Transcript) HistoryDir() string {
	if s.th.writer.off {
		return ""
	}
	return s.historyOf(s.th.id)
}

// historyOf is the place of those copies of any session.
func (s *Transcript) historyOf(id string) string {
	return filepath.Join(s.th.opts.StateDir, "file-history", id)
}

// FileHistory returns the lines about copies of files that the resumed
// transcript holds, and where these copies are; no lines = there are none.
func (s *Transcript) FileHistory() (lines []json.RawMessage, dir string) {
	return s.files, s.historyOf(s.th.source)
}

// Resumed reports whether the session goes on with an earlier conversation.
func (s *Transcript) Resumed() bool { return s.th.resumed }

// Title is the title that the session has; empty = none.
func (s *Transcript) Title() string { return s.rec.labels.title }

// Lines tells how many lines of files the session has added and removed.
func (s *Transcript) Lines() (added, removed int) {
	return s.rec.costs.totals.TotalLinesAdded, s.rec.costs.totals.TotalLinesRemoved
}

// Costs returns the usage by model of the earlier runs. A transcript does not
// keep what is known of the model itself: ContextWindow, MaxOutputTokens,
// CanonicalModel, Provider and CostBasis are empty.
func (s *Transcript) Costs() map[string]protocol.ModelUsage { return maps.Clone(s.rec.costs.before) }

// History returns the messages of the conversation that is gone on with,
// oldest first; nil in a fresh session. The caller must not change it.
func (s *Transcript) History() []Message { return s.history }

// Heard returns the last reply of the conversation that is continued, or nil in a
// fresh session.
func (s *Transcript) Heard() *PreviousReply { return s.heard }

// Told lists the files of instructions that the model was told of between the
// calls of the conversation that is gone on with.
func (s *Transcript) Told() []string { return s.told }

// Deferred returns the call that a hook put off at the end of the history, and
// the uuid of the message that made it; false = the history ends otherwise.
func (s *Transcript) Deferred() (use protocol.ToolUse, message string, ok bool) {
	if s.deferred == "" || len(s.history) == 0 {
		return use, "", false
	}
	last := s.history[len(s.history)-1]
	for _, b := range last.Content.Blocks {
		if use, is := b.(protocol.ToolUse); is && use.ID == s.deferred {
			return use, last.UUID, true
		}
	}
	return use, "", false
}

// ScenarioState returns what [Transcript.SetScenarioState] last kept for this
// session, by this process or an earlier one; nil = nothing. A fork starts with
// the state of its source. The caller must not change it.
func (s *Transcript) ScenarioState() []byte {
	if s.state == nil && s.th.resumed {
		for _, id := range []string{s.th.id, s.th.source} {
			if data, err := os.ReadFile(s.statePath(id)); err == nil {
				s.state = data
				break
			}
		}
	}
	return s.state
}

// SetScenarioState keeps the scenario's state beside the transcripts, so that
// a resumed session goes on with it. A failure to write is returned once per
// session, here or by [Transcript.Record].
func (s *Transcript) SetScenarioState(state []byte) error {
	s.state = bytes.Clone(state)
	return s.th.writer.replace(s.statePath(s.th.id), state, 0o600)
}

func (s *Transcript) statePath(id string) string {
	return filepath.Join(s.th.opts.StateDir, "claudeless", id+".json")
}

// Reset ends the conversation and starts a new one under a fresh id, as /clear
// does, and returns the id and where its transcript is.
func (s *Transcript) Reset() (id, path string, err error) {
	err = s.rec.ended()
	err = errors.Join(err, s.th.writer.close())
	before, named := s.th, s.rec.labels
	before.opts.ID = ""
	s.th = &conversation{opts: before.opts, id: before.opts.Clock.NewID(), cleared: true, writer: before.writer}
	s.th.path = filepath.Join(filepath.Dir(before.path), s.th.id+".jsonl")
	s.rec = newRecorder(s.th)
	s.rec.labels.title, s.rec.labels.named = named.title, named.named
	s.rec.costs.totals.StartTime = before.opts.Clock.Now().UnixMilli()
	s.history, s.files, s.state, s.deferred = nil, nil, nil, ""
	return s.th.id, s.th.path, err
}
