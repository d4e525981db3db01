// Package transcript writes and reads conversations: transcripts (JSONL), resuming, forking, and the scenario's state.
//
// Every line is appended by a single write, so that the lines of several processes do not mix. The
// line of an event has the UUID of that event.
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
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Transcript is the transcript of an open session. Record, SetScenarioState and Reset must not be called concurrently.
type Transcript struct {
	conversation     *conversation
	recorder         *recorder
	history          []Message
	previousReply    *protocol.LastReplyBeforeResume // last reply of the resumed conversation; nil means none
	readFiles        map[string]string               // content of the files that calls read or wrote, by path
	instructionFiles []string                        // instruction files that were loaded between calls
	// hookTexts and unansweredHookTexts are outputs of SessionStart hooks since the last compaction. The next request contains the latter.
	hookTexts, unansweredHookTexts []string
	unansweredPrompts              []string          // last prompts of the history if the session is resumed at one of them; the next request contains them
	fileHistoryLines               []json.RawMessage // lines of the resumed transcript that describe copies of files
	deferredCallID                 string            // id of the last deferred call
	scenarioState                  []byte
	closed                         bool
}

// Open finds or creates the session described by o. Nothing is written before the first [Transcript.Record]. Possible errors are
// [*NotFoundError], [*InUseError], [*UnknownTitleError], [*AmbiguousTitleError], [*ResumeAtRefusedError] and errors of the file system.
func Open(o Options) (*Transcript, error) {
	if o.Clock == nil {
		return nil, errors.New("transcript: Clock is required")
	}
	o.Version = cmp.Or(o.Version, claudecode.DefaultVersion)
	o.Entrypoint = cmp.Or(o.Entrypoint, "sdk-cli")
	o.Project = cmp.Or(o.Project, o.CWD)
	given := o.CWD
	if path, err := filepath.EvalSymlinks(o.CWD); err == nil {
		o.CWD = path
	}
	if o.Project == given { // usually both are the same directory, which needs to be resolved only once
		o.Project = o.CWD
	} else if path, err := filepath.EvalSymlinks(o.Project); err == nil {
		o.Project = path
	}
	th := &conversation{options: o, lastLineUUIDs: map[string]string{}, writer: transcriptWriter{isDisabled: o.NoPersist, lineObserver: o.OnLine, filter: claudecode.ProfileForExactVersion(o.Version).TranscriptFilter()}}
	s := &Transcript{conversation: th, recorder: newRecorder(th)}
	path, err := o.findTranscriptToResumeOrContinue()
	if err != nil {
		return nil, err
	}
	if path != "" {
		if err := s.openResumed(path); err != nil {
			return nil, err
		}
	} else if err := s.conversation.chooseSessionIDAndPath(); err != nil {
		return nil, err
	}
	if o.Title != "" {
		s.recorder.sessionListLines.title, s.recorder.sessionListLines.agentName, s.recorder.sessionListLines.hasUserTitle = o.Title, o.Title, true
	}
	if totals := &s.recorder.costs.totals; totals.StartTime == 0 {
		totals.StartTime = o.Clock.Now().UnixMilli()
	}
	return s, nil
}

func (th *conversation) chooseSessionIDAndPath() error {
	th.id = th.options.ID
	if th.id == "" && !th.options.Fork {
		th.id = th.options.DefaultID
	}
	if th.id == "" {
		if err := th.claimSessionIDUnusedBySeededRuns(); err != nil {
			return err
		}
	}
	th.path = filepath.Join(th.options.projectDir(), th.id+".jsonl")
	if th.options.ID != "" {
		if _, err := os.Stat(th.path); err == nil {
			return &InUseError{ID: th.id}
		}
	}
	return nil
}

func (th *conversation) claimSessionIDUnusedBySeededRuns() error {
	th.id = th.options.Clock.NewID()
	if th.options.RestartIDs == nil || th.options.NoPersist {
		return nil
	}
	claims := filepath.Join(th.options.StateDir, "claudeless", "seeded")
	made := os.MkdirAll(claims, 0o700) // an error is ignored here, because writing the first line will fail with the same error
	for n := 2; made == nil; n++ {
		if err := os.Mkdir(filepath.Join(claims, th.id), 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
		if n > maxSessionsPerSeed {
			return fmt.Errorf("%s already has the maximum of %d runs with this seed: remove the directory, or use another seed", claims, maxSessionsPerSeed)
		}
		th.options.RestartIDs(n)
		th.id = th.options.Clock.NewID()
	}
	return nil
}

const maxSessionsPerSeed = 10_000 // maximum number of sessions with the same seed in one state directory

// ResumeAtRefusedError means that the resumed conversation cannot be cut as ResumeAt and DropsTurn require.
type ResumeAtRefusedError struct {
	SessionID string // id of the session to resume
	Message   string
}

func (e *ResumeAtRefusedError) Error() string { return e.Message }

func (s *Transcript) openResumed(path string) error {
	t, err := readTranscript(path)
	if err != nil {
		return err
	}
	s.conversation.resumedSessionID = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	if !isSessionID(s.conversation.resumedSessionID) && t.sessionID != "" {
		s.conversation.resumedSessionID = t.sessionID
	}
	leaf := t.lastConversationLine
	if s.conversation.options.ResumeAt != "" {
		if err := t.dropLinesAfterMessage(leaf, s.conversation.options.ResumeAt, s.conversation.options.DropsTurn); err != nil {
			return &ResumeAtRefusedError{SessionID: s.conversation.resumedSessionID, Message: err.Error()}
		}
		leaf = s.conversation.options.ResumeAt
	}
	th, rec := s.conversation, s.recorder
	th.resumed, th.id, th.path = true, th.resumedSessionID, path
	if th.options.Fork && th.options.ID != th.resumedSessionID {
		if err := th.chooseSessionIDAndPath(); err != nil {
			return err
		}
		th.forked, rec.lines.forkLines = true, func(promptID string) []byte { return t.linesForFork(th.id, leaf, promptID) }
	}
	rec.lines.endsInPartialLine = !th.forked && !t.endsInNewline
	s.history, s.previousReply, s.deferredCallID, s.instructionFiles, s.hookTexts, s.unansweredHookTexts = t.branchMessagesOnePerLine(leaf), t.previousReply(leaf), t.deferredCallID, t.instructionFiles, t.hookTexts, t.unansweredHookTexts
	s.readFiles = t.readFiles
	for _, e := range t.entries {
		if strings.HasPrefix(e.kind, "file-history-") {
			s.fileHistoryLines = append(s.fileHistoryLines, e.raw)
		}
	}
	if s.deferredCallID == "" {
		rec.unanswered = unansweredCalls(s.history)
	}
	if th.options.ResumeAt != "" {
		s.unansweredPrompts = t.promptsAfterLastReply(leaf)
	}
	rec.requests.restoreFromTranscript(t, leaf, th.forked)
	rec.awaitsReply, rec.promptCount, rec.untypedPromptCount, rec.attachments.environmentWritten, rec.attachments.contextPending = s.unansweredPrompts == nil && t.endsWithUnansweredUserMessage(leaf), t.promptCount, t.untypedPromptCount, t.environmentWritten, t.contextPending
	th.lastLineUUIDs, th.lineCount = map[string]string{"": leaf}, len(t.branchLines(leaf))
	rec.sessionListLines.title, rec.sessionListLines.agentName, rec.sessionListLines.tools, rec.sessionListLines.lastPromptText = t.title, t.title, t.tools, t.lastPromptText
	if th.forked {
		rec.sessionListLines.lastPromptText = t.firstPromptTextOfBranch(leaf)
	} else if t.planName != "" {
		th.planName.Store(&t.planName)
	}
	if t.costs != nil {
		rec.costs.restoreFromLine(*t.costs)
	}
	return nil
}

// PromptCount returns the number of prompts so far, without those that the next request repeats.
func (s *Transcript) PromptCount() int { return s.recorder.promptCount - len(s.unansweredPrompts) }

// Record appends the lines of an event; it must be called before the event is shown. After a write error, which is
// returned once, Record writes nothing more.
func (s *Transcript) Record(ev protocol.Event) error { return s.recorder.writeLinesOfEvent(ev) }

// SetCosts sets the costs of the session, which may include those of a turn without a result.
func (s *Transcript) SetCosts(total *protocol.ResultEvent) { s.recorder.costs.updateFromResult(total) }

// SetTitle sets the title of the session. An unchanged title writes nothing.
func (s *Transcript) SetTitle(title string) error { return s.recorder.setTitle(title, title) }

// SetTitleAndWriteTitleFile is like [Transcript.SetTitle], but the title is also written to custom-title.json, as /rename does.
func (s *Transcript) SetTitleAndWriteTitleFile(title string) error {
	file := filepath.Join(strings.TrimSuffix(s.conversation.path, ".jsonl"), "custom-title.json")
	text := plainjson.MarshalString(map[string]string{"customTitle": title})
	return errors.Join(s.SetTitle(title), s.conversation.writer.replaceFile(file, []byte(text), 0o600))
}

// SetTitleOfHost is like [Transcript.SetTitle], but the title is not recorded as the name of the agent.
func (s *Transcript) SetTitleOfHost(title string) error { return s.recorder.setTitle(title, "") }

// RecordCostsAndFilesAtExit writes the costs at the end of a session in a terminal. Then it records files for the
// command exitCommandID, which ends the session; empty means none. For an empty transcript, it does nothing.
func (s *Transcript) RecordCostsAndFilesAtExit(exitCommandID string) error {
	err := s.recorder.writeCosts()
	if s.recorder.lines.opened {
		s.conversation.recordFilesBeforePrompt(exitCommandID)
	}
	return err
}

// Close writes the closing lines and the costs, unless the transcript is empty. Afterwards, nothing may be recorded. A
// second call has no effect.
func (s *Transcript) Close() error {
	if idle := s.conversation.resumed && s.conversation.options.Machine.IsTerminal; s.closed || !s.recorder.lines.opened && !idle {
		return s.conversation.writer.close()
	}
	if s.closed = true; !s.recorder.lines.opened { // resumed in a terminal, without a prompt
		return errors.Join(s.recorder.lines.writeOpeningLinesOnce(), s.recorder.writeCosts(), s.conversation.writer.close())
	}
	return errors.Join(s.recorder.writeClosingLinesAndCosts(), s.conversation.writer.close())
}

// ID returns the session id.
func (s *Transcript) ID() string { return s.conversation.id }

// Path returns the path of the transcript, which may not exist yet.
func (s *Transcript) Path() string { return s.conversation.path }

// PlanName returns the name of the plan file; empty means that the session has none yet.
func (s *Transcript) PlanName() string { return s.conversation.currentPlanName() }

// EnsurePlanName returns the name of the plan file. The first call determines the name, which begins with the first words of
// the prompt. Without a prompt, the name has three random words.
func (s *Transcript) EnsurePlanName(prompt string) string {
	return s.conversation.ensurePlanName(prompt)
}

// LastLineUUID returns the uuid of the last line of the main conversation; empty means that it has no line.
func (s *Transcript) LastLineUUID() string { return s.conversation.lastLineUUIDs[""] }

// UsedTools returns the sorted names of the tools that the main conversation has used.
func (s *Transcript) UsedTools() []string {
	return slices.Sorted(slices.Values(s.recorder.sessionListLines.tools))
}

// ToolResultsDir returns the directory for large tool results. It may not exist yet.
func (s *Transcript) ToolResultsDir() string {
	return filepath.Join(s.conversation.sessionFilesDir(), "tool-results")
}

// FileHistoryDir returns the directory for copies of changed files; empty if none are kept. It may not exist yet.
func (s *Transcript) FileHistoryDir() (dir string) {
	if s.conversation.writer.isDisabled {
		return ""
	}
	return s.fileHistoryDirOf(s.conversation.id)
}

func (s *Transcript) fileHistoryDirOf(sessionID string) string {
	return filepath.Join(s.conversation.options.StateDir, "file-history", sessionID)
}

// FileHistory returns the records of file copies in the resumed transcript, if any, and the directory of the copies.
func (s *Transcript) FileHistory() (lines []json.RawMessage, dir string) {
	return s.fileHistoryLines, s.fileHistoryDirOf(s.conversation.resumedSessionID)
}

// Resumed reports whether the session continues an earlier conversation.
func (s *Transcript) Resumed() bool { return s.conversation.resumed }

// Title returns the session's title; it may be empty.
func (s *Transcript) Title() string { return s.recorder.sessionListLines.title }

// LineChanges returns how many lines of files the session has added and removed.
func (s *Transcript) LineChanges() (added, removed int) {
	return s.recorder.costs.totals.TotalLinesAdded, s.recorder.costs.totals.TotalLinesRemoved
}

// PreviousModelUsage returns the usage by model of earlier runs of the session. Transcripts do not record properties of models, so
// ContextWindow, MaxOutputTokens, CanonicalModel, Provider and CostBasis are empty.
func (s *Transcript) PreviousModelUsage() map[string]protocol.ModelUsage {
	return maps.Clone(s.recorder.costs.previousUsage)
}

// ResumedHistory returns the messages of a resumed conversation, oldest first; otherwise nil. The caller must not change it.
func (s *Transcript) ResumedHistory() []Message { return s.history }

// PreviousReply returns the last reply of the resumed conversation; nil in a new session.
func (s *Transcript) PreviousReply() *protocol.LastReplyBeforeResume { return s.previousReply }

// UnansweredPrompts returns the prompts at the end of the history if the session is resumed at one of them. The next request contains them.
func (s *Transcript) UnansweredPrompts() []string { return s.unansweredPrompts }

// InstructionFilesLoadedByCalls lists the instruction files that the model read between the calls of the resumed conversation.
func (s *Transcript) InstructionFilesLoadedByCalls() []string { return s.instructionFiles }

// FilesReadBeforeResume returns the content of the files that the resumed conversation has read or written, by path.
func (s *Transcript) FilesReadBeforeResume() (contentByPath map[string]string) { return s.readFiles }

// SessionStartHookOutputs lists the outputs of SessionStart hooks in the resumed conversation.
func (s *Transcript) SessionStartHookOutputs() []string { return s.hookTexts }

// UnansweredHookOutputs lists those of them that no reply follows.
func (s *Transcript) UnansweredHookOutputs() []string { return s.unansweredHookTexts }

// DeferredCall returns the call that a hook deferred at the end of the history, and the uuid of the message with the call.
// ok is false if there is no such call.
func (s *Transcript) DeferredCall() (use protocol.ToolUse, messageUUID string, ok bool) {
	if s.deferredCallID == "" || len(s.history) == 0 {
		return use, "", false
	}
	last := s.history[len(s.history)-1]
	for _, b := range last.Content.Blocks {
		if use, is := b.(protocol.ToolUse); is && use.ID == s.deferredCallID {
			return use, last.UUID, true
		}
	}
	return use, "", false
}

// ScenarioState returns the state last stored with [Transcript.SetScenarioState] for this session, by any process;
// nil if none exists. A fork starts with the state of its source. The caller must not change it.
func (s *Transcript) ScenarioState() []byte {
	if s.scenarioState == nil && s.conversation.resumed {
		for _, id := range []string{s.conversation.id, s.conversation.resumedSessionID} {
			if data, err := os.ReadFile(s.scenarioStatePath(id)); err == nil {
				s.scenarioState = data
				break
			}
		}
	}
	return s.scenarioState
}

// SetScenarioState stores the scenario's state, which a resumed session reads back with [Transcript.ScenarioState]. A
// write error is returned once per session, here or by [Transcript.Record].
func (s *Transcript) SetScenarioState(state []byte) error {
	s.scenarioState = bytes.Clone(state)
	return s.conversation.writer.replaceFile(s.scenarioStatePath(s.conversation.id), state, 0o600)
}

func (s *Transcript) scenarioStatePath(sessionID string) string {
	return filepath.Join(s.conversation.options.StateDir, "claudeless", sessionID+".json")
}

// Reset starts a new conversation with a new id, as /clear does. It returns the id and the path of the new transcript.
func (s *Transcript) Reset() (id, path string, err error) {
	if s.conversation.resumed {
		err = s.recorder.lines.writeAfterPendingLines() // the lines about the queued command
	}
	err = errors.Join(err, s.recorder.writeCosts(), s.conversation.writer.close())
	before, named := s.conversation, s.recorder.sessionListLines
	if before.promptID == "" && !before.resumed && !before.wasCleared && !before.options.Machine.IsTerminal {
		_ = os.Remove(before.path) // the real CLI creates the file with the first prompt
	}
	before.options.ID = ""
	s.conversation = &conversation{options: before.options, lastLineUUIDs: map[string]string{}, id: before.options.Clock.NewID(), wasCleared: true, idBeforeFirstClear: cmp.Or(before.idBeforeFirstClear, before.id), writer: before.writer}
	s.conversation.path = filepath.Join(filepath.Dir(before.path), s.conversation.id+".jsonl")
	s.recorder = newRecorder(s.conversation)
	s.recorder.sessionListLines.title, s.recorder.sessionListLines.agentName, s.recorder.sessionListLines.hasUserTitle = named.title, named.agentName, named.hasUserTitle
	s.recorder.costs.totals.StartTime = before.options.Clock.Now().UnixMilli()
	s.history, s.fileHistoryLines, s.scenarioState, s.deferredCallID = nil, nil, nil, ""
	return s.conversation.id, s.conversation.path, err
}
