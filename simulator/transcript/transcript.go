// Package transcript keeps the files of one conversation: ids, transcripts
// (JSONL), resume, fork, and the scenario's own state beside them.
//
// Its one invariant: a line of a transcript is one append of one write, and
// the line of an event has the event's own uuid. It must not know who made the
// events, nor how the state directory was chosen.
package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options says which session to open and how to write it. The zero value with
// StateDir, CWD, NewID and Now is a fresh session.
type Options struct {
	StateDir string // holds projects/ and claudeless/
	CWD      string // absolute; symbolic links are resolved here
	Project  string // the directory that names the project folder; empty = CWD
	ID       string // --session-id; a conversation that exists is an error
	// DefaultID is the id of a fresh session without ID; empty = NewID(). If it
	// exists its transcript is appended to.
	DefaultID string

	Resume    string  // --resume: session id, path of a .jsonl file, or title
	ResumeAt  string  // --resume-session-at: uuid of the last line to keep
	DropsTurn *string // --resume-drops-turn: uuid of the prompt after ResumeAt; nil = not given
	Continue  bool    // --continue: the most recent session of CWD, or a fresh one
	Fork      bool    // --fork-session: go on in a copy under a new id
	NoPersist bool    // --no-session-persistence: write nothing

	Version    string // of the simulated CLI; empty = 2.1.329
	Entrypoint string // empty = sdk-cli
	GitBranch  string
	Agent      string // --agent; empty = none
	Title      string // --name; empty = none
	Machine    Machine
	// Surroundings tells what the model has right now; nil = nothing is known.
	Surroundings func() Surroundings
	// Effort is the model's level right now; nil, or empty = it has none.
	Effort func() string

	NewID func() string    // uuid v4; required
	Now   func() time.Time // required
	// OnLine is told every line after it was written, in order and without its
	// newline (--session-mirror); nil = nobody. Not called with NoPersist.
	OnLine func(path string, line []byte)
}

// Machine is what the environment attachment of a transcript tells.
type Machine struct {
	Platform       string // "linux"
	OSVersion      string
	Shell          string
	IsGitRepo      bool
	IsWorktree     bool // a linked one
	AdditionalDirs []string
}

// NotFoundError says that --resume names no conversation. Its text is the real
// CLI's, which has an id of its own for a path.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return "No conversation found with session ID: " + e.ID }

// InUseError says that --session-id names a conversation that exists.
type InUseError struct{ ID string }

func (e *InUseError) Error() string { return "Session ID " + e.ID + " is already in use." }

// TitleError says that --resume is neither a session id nor a known title.
type TitleError struct{ Value string }

func (e *TitleError) Error() string {
	return "Error: --resume requires a valid session ID or session title when used with --print. Usage: claude -p --resume <session-id|title>. Provided value " +
		fmt.Sprintf("%q", e.Value) + " is not a UUID and does not match any session title."
}

// SeveralError says that --resume is the title of several sessions.
type SeveralError struct {
	Title    string
	Sessions []string // ids with the times of their last changes, newest first
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("Error: --resume %q matches %d sessions. Pass one of these session IDs to disambiguate:\n  %s",
		e.Title, len(e.Sessions), strings.Join(e.Sessions, "\n  "))
}

// RefusedError says that the history cannot be cut as ResumeAt and DropsTurn
// demand.
type RefusedError struct {
	SessionID string // of the session that was to be resumed
	Message   string
}

func (e *RefusedError) Error() string { return e.Message }

// Transcript is that of an open session. Record, SetScenarioState and Reset are for one
// goroutine at a time.
type Transcript struct {
	opts    Options
	id      string
	path    string
	resumed bool
	forked  bool   // resumed under an id of its own
	cleared bool   // begun by /clear
	title   string // empty = none
	named   bool   // this process gave the title
	source  string // session that was resumed; another one than id after a fork

	history  []Message
	deferred string            // id of the call that was put off last
	lost     []lostCall        // at the end of the history
	mute     bool              // the history ends without an answer
	files    []json.RawMessage // lines about copies of files, of the resumed transcript
	costs    map[string]protocol.ModelUsage
	totals   protocol.CostStateLine
	state    []byte

	closed bool // by [Transcript.Close]
	cutOff bool // the transcript ends within a line
	// pending gives the history to be copied before the first line of a fork, under
	// the id of its first prompt; nil = nothing.
	pending func(promptID string) []byte
	held    []any // lines that wait for the next ones
	writer  writer
	rec     recorder
}

// Message is one message of a conversation as a transcript keeps it.
type Message struct {
	UUID    string
	Role    string // "user" or "assistant"
	Content protocol.Content
}

// Open finds or makes the session that o describes. Nothing is written before
// the first [Transcript.Record]. Errors: [*NotFoundError], [*InUseError],
// [*TitleError], [*SeveralError], [*RefusedError], or what reading a transcript gave.
func Open(o Options) (*Transcript, error) {
	if o.NewID == nil || o.Now == nil {
		return nil, errors.New("session: NewID and Now are required")
	}
	if o.Version == "" {
		o.Version = "2.1.329"
	}
	if o.Entrypoint == "" {
		o.Entrypoint = "sdk-cli"
	}
	if o.Project == "" {
		o.Project = o.CWD
	}
	for _, dir := range []*string{&o.CWD, &o.Project} {
		if path, err := filepath.EvalSymlinks(*dir); err == nil {
			*dir = path
		}
	}
	s := &Transcript{opts: o}
	s.writer = writer{off: o.NoPersist, onLine: o.OnLine}
	path, err := o.find()
	if err != nil {
		return nil, err
	}
	if path != "" {
		if err := s.resume(path); err != nil {
			return nil, err
		}
	} else if err := s.fresh(); err != nil {
		return nil, err
	}
	if o.Title != "" {
		s.title, s.named = o.Title, true
	}
	if s.totals.StartTime == 0 {
		s.totals.StartTime = o.Now().UnixMilli()
	}
	return s, nil
}

// fresh starts a session of its own.
func (s *Transcript) fresh() error {
	s.id = s.opts.ID
	if s.id == "" && !s.opts.Fork {
		s.id = s.opts.DefaultID
	}
	if s.id == "" {
		s.id = s.opts.NewID()
	}
	s.path = filepath.Join(s.opts.projectDir(), s.id+".jsonl")
	if s.opts.ID != "" {
		if _, err := os.Stat(s.path); err == nil {
			return &InUseError{ID: s.id}
		}
	}
	return nil
}

// ID returns the session id.
func (s *Transcript) ID() string { return s.id }

// Path returns the transcript's path, whether or not it exists yet.
func (s *Transcript) Path() string { return s.path }

// ToolResultsDir returns where large tool results are saved; nobody made it
// yet.
func (s *Transcript) ToolResultsDir() string { return filepath.Join(s.dir(), "tool-results") }

// dir holds what belongs to the session beside its transcript.
func (s *Transcript) dir() string { return filepath.Join(filepath.Dir(s.path), s.id) }

// HistoryDir returns where copies of the files that the session changes are
// kept; empty = nothing is kept. Nobody made it yet.
func (s *Transcript) HistoryDir() string {
	if s.writer.off {
		return ""
	}
	return s.historyOf(s.id)
}

// historyOf is the place of those copies of any session.
func (s *Transcript) historyOf(id string) string {
	return filepath.Join(s.opts.StateDir, "file-history", id)
}

// FileHistory returns the lines about copies of files that the resumed
// transcript holds, and where these copies are; no lines = there are none.
func (s *Transcript) FileHistory() (lines []json.RawMessage, dir string) {
	return s.files, s.historyOf(s.source)
}

// Resumed reports whether the session goes on with an earlier conversation.
func (s *Transcript) Resumed() bool { return s.resumed }

// Title is the title that the session has; empty = none.
func (s *Transcript) Title() string { return s.title }

// Lines tells how many lines of files the session has added and removed.
func (s *Transcript) Lines() (added, removed int) {
	return s.totals.TotalLinesAdded, s.totals.TotalLinesRemoved
}

// Costs returns the usage by model of the earlier runs. A transcript does not
// keep what is known of the model itself: ContextWindow, MaxOutputTokens,
// CanonicalModel, Provider and CostBasis are empty.
func (s *Transcript) Costs() map[string]protocol.ModelUsage { return maps.Clone(s.costs) }

// History returns the messages of the conversation that is gone on with,
// oldest first; nil in a fresh session. The caller must not change it.
func (s *Transcript) History() []Message { return s.history }

// deferredType marks the attachment that names a deferred call.
const deferredType = "hook_deferred_tool"

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

// Reset ends the conversation and starts a new one under a fresh id, as /clear
// does, and returns the id and where its transcript is.
func (s *Transcript) Reset() (id, path string, err error) {
	err = s.ended()
	s.opts.ID = ""
	s.id = s.opts.NewID()
	s.path = filepath.Join(filepath.Dir(s.path), s.id+".jsonl")
	s.resumed, s.forked, s.cleared, s.source, s.cutOff = false, false, true, "", false
	s.history, s.files, s.costs, s.state, s.pending, s.held, s.deferred = nil, nil, nil, nil, nil, nil, ""
	s.totals = protocol.CostStateLine{StartTime: s.opts.Now().UnixMilli()}
	s.rec = recorder{}
	return s.id, s.path, err
}
