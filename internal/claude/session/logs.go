package session

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/record/redact"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// stdoutTranscriptMirror repeats the transcript lines on stdout (--session-mirror; spec: cli-contract 8.5), except those about requests
// to the model. The session records an event, emits the new transcript lines, and then yields the event. So all lines of a turn
// precede its result.
type stdoutTranscriptMirror struct {
	mu                    sync.Mutex
	filesWithPendingLines []*unemittedTranscriptLines // files in the order of their first line
}

// unemittedTranscriptLines holds the lines of one transcript file that have not been emitted yet.
type unemittedTranscriptLines struct {
	path    string
	entries []json.RawMessage
}

func (m *stdoutTranscriptMirror) addPendingLine(path string, line []byte) {
	if bytes.HasPrefix(line, []byte(`{"type":"api-request`)) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	entry := json.RawMessage(bytes.Clone(line))
	if n := len(m.filesWithPendingLines); n > 0 && m.filesWithPendingLines[n-1].path == path {
		m.filesWithPendingLines[n-1].entries = append(m.filesWithPendingLines[n-1].entries, entry)
		return
	}
	m.filesWithPendingLines = append(m.filesWithPendingLines, &unemittedTranscriptLines{path: path, entries: []json.RawMessage{entry}})
}

// takeFrames returns the frames of all lines added since its last call. A nil mirror returns nil.
func (m *stdoutTranscriptMirror) takeFrames() []protocol.Event {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var frames []protocol.Event
	for _, f := range m.filesWithPendingLines {
		frames = append(frames, &protocol.Frame{Type: "transcript_mirror", Fields: []protocol.Field{{Key: "filePath", Value: f.path}, {Key: "entries", Value: f.entries}}})
	}
	m.filesWithPendingLines = nil
	return frames
}

// debugLog is the log of --debug, one line per event. Lines have the real CLI's format but other words.
type debugLog struct {
	w      io.WriteCloser
	clock  *clock.TimeAndIDSource
	redact *redact.Redactor
}

// openDebugLog opens the log that the plan requests: on stderr, in a file, or in the state directory; nil means no log.
func openDebugLog(plan launch.Plan, stderr io.Writer, sessionID string) (log *debugLog, err error) {
	path := plan.Records.DebugFile
	switch {
	case !plan.Records.Debug, path == "" && plan.State == "" && !plan.Records.DebugToStderr:
		return log, nil
	case plan.Records.DebugToStderr:
		return newDebugLog(plan, nopWriteCloser{stderr}), nil
	case path == "":
		path = filepath.Join(plan.State, "debug", sessionID+".txt")
	}
	_ = os.MkdirAll(filepath.Dir(path), 0o700) // without the directory, OpenFile fails
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the debug log: %w", err)
	}
	latest := filepath.Join(filepath.Dir(path), "latest")
	_ = os.Remove(latest)
	_ = os.Symlink(path, latest) // a link to the newest log, as in the real CLI; the log works without it
	return newDebugLog(plan, file), nil
}

func newDebugLog(plan launch.Plan, w io.WriteCloser) *debugLog {
	return &debugLog{w, plan.Clock, redact.New(redact.Options{Environ: plan.Environ})}
}

// nopWriteCloser writes to a stream that stays open when the log is closed.
type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

func (l *debugLog) printf(format string, args ...any) {
	if l == nil {
		return
	}
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = l.redact.String(text)
		}
	}
	text := strings.ReplaceAll(l.redact.String(fmt.Sprintf(format, args...)), "\n", "\\n")
	// An error while writing the log does not affect the run.
	_, _ = fmt.Fprintf(l.w, "%s [DEBUG] %s\n", l.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z"), text)
}

func (l *debugLog) close() {
	if l != nil {
		_ = l.w.Close() // as in printf, errors are ignored
	}
}

func (l *debugLog) logEvent(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.PromptAccepted:
		l.printf("prompt %s from %s: %q", ev.UUID, ev.Source, ev.Content.Plain())
	case *protocol.InitEvent:
		l.printf("turn begins: model %s, mode %s, %d tools", ev.Model, ev.PermissionMode, len(ev.Tools))
	case *protocol.RuleMatchOutcome:
		l.printf("answered by %s %s:%d", cmp.Or(ev.Rule, "no rule"), ev.File, ev.Line)
	case *protocol.ToolExecuted:
		l.printf("%s %s took %s, error %t", ev.Use.Name, ev.Use.ID, ev.Duration, ev.Result.IsError)
	case *protocol.FailedAPIRequestBeforeRetry:
		l.printf("request failed with %d, attempt %d: %s", ev.Status, ev.Attempt, ev.Message)
	case *protocol.StderrWarning:
		l.printf("warning: %s", ev.Text)
	case *protocol.SystemEvent:
		l.printf("system/%s", ev.Subtype)
	case *protocol.ResultEvent:
		l.printf("turn ends: %s, %s, %d turns", ev.Subtype, ev.TerminalReason, ev.NumTurns)
	}
}
