// Package journal writes what a run received and did to a file, one JSON object per line (--capture FILE,
// CLAUDELESS_CAPTURE). Tests examine it and verdicts are computed from it. The package also reads such files.
//
// Every line is written in one append, so processes may share a file. Package redact replaces secrets before that.
//
// docs/journal.md describes the format; guide.md is its introduction.
package journal

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/record/redact"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configure a Journal. W and Now are required.
type Options struct {
	W         io.Writer // gets each line in one Write; a file must be open for appending
	Now       func() time.Time
	PID       int
	SessionID string
	Environ   []string // environment; its secret values are redacted
}

// Journal writes lines. All methods may be called from many goroutines.
type Journal struct {
	options Options
	redact  *redact.Redactor

	mu  sync.Mutex // serialises lines
	err error
}

// Body is the content of a journal line, without its head. Each struct that a field of [Line] points to is a Body.
type Body interface{ kind() string }

// New creates a journal; it writes nothing yet.
func New(o Options) *Journal {
	return &Journal{options: o, redact: redact.New(redact.Options{Environ: o.Environ})}
}

// WithoutSession returns a journal for lines about the whole process, which have no session id. It writes to j's file.
func (j *Journal) WithoutSession() *Journal {
	o := j.options
	o.SessionID = ""
	return &Journal{options: o, redact: j.redact}
}

// Err returns the first write error; later lines are dropped.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Write appends a line {"time","pid","session_id","type", …fields of b}.
func (j *Journal) Write(b Body) {
	switch l := b.(type) {
	case Start:
		l.Argv = j.redact.Args(l.Argv)
		b = l
	case Run:
		l.Argv = j.redact.Args(l.Argv)
		b = l
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return
	}
	head, err := protocol.Marshal(LineHead{j.options.Now().UTC().Format(time.RFC3339Nano), j.options.PID, j.options.SessionID, b.kind()})
	if err == nil {
		var body []byte
		if body, err = protocol.Marshal(b); err == nil {
			line := append(append(head[:len(head)-1], ','), body[1:]...)
			err = appendLine(j.options.W, append(j.redact.JSON(line), '\n'))
		}
	}
	j.err = err
}

// NewSecretFinder returns a finder of the secrets that a journal with this environment redacts.
func NewSecretFinder(environ []string) *redact.Finder {
	return redact.NewFinder(redact.Options{Environ: environ})
}

// WriteLinesAndKeepError writes lines that the caller has created. creationErr is the error that occurred when they were
// created, if any. After such an error the journal writes no further lines, and Err returns it.
func (j *Journal) WriteLinesAndKeepError(lines []Body, creationErr error) {
	for _, l := range lines {
		j.Write(l)
	}
	if creationErr == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.err = cmp.Or(j.err, creationErr)
}

// LinesOfEvent returns the lines of one event; most events have none.
func LinesOfEvent(ev protocol.Event) ([]Body, error) {
	switch ev := ev.(type) {
	case *protocol.PromptAccepted:
		blocks, err := blocksUnlessText(ev.Content)
		return []Body{Prompt{UUID: ev.UUID, Prompt: ev.Content.Plain(), Blocks: blocks, WrittenByCLI: ev.WrittenByCLI}}, err
	case *protocol.AttachmentAdded:
		return []Body{Attachment{ev.Attachment}}, nil
	case *protocol.ContextAdded:
		return []Body{Context{ev.Texts}}, nil
	case *protocol.RuleMatchOutcome:
		return []Body{Match{Rule: ev.Rule, File: ev.File, Line: ev.Line, Prompt: ev.Prompt, WrittenByCLI: ev.WrittenByCLI, Nearest: ev.Nearest}}, nil
	case *protocol.AssistantEvent:
		line, err := modelLine(ev)
		return []Body{line}, err
	case *protocol.TranscriptOnlyEvent:
		if said, ok := ev.Event.(*protocol.AssistantEvent); ok {
			return LinesOfEvent(said)
		}
	case *protocol.ToolExecuted:
		return toolLines(ev)
	case *protocol.FailedAPIRequestBeforeRetry:
		return []Body{Retry{Attempt: ev.Attempt, Status: ev.Status, Message: ev.Message}}, nil
	case *protocol.StderrWarning:
		return []Body{Warning{Text: ev.Text}}, nil
	case *protocol.ResultEvent:
		return []Body{resultLine(ev)}, nil
	}
	return nil, nil
}

// appendLine writes a complete line or nothing. If the disk fills up, it removes the partial line, because otherwise
// the next line of another process could not be parsed.
func appendLine(w io.Writer, line []byte) error {
	file, ok := w.(*os.File)
	if !ok {
		_, err := w.Write(line)
		return err
	}
	lockShared(file)
	n, err := file.Write(line)
	unlock(file)
	if err == nil || n == 0 {
		return err
	}
	return errors.Join(err, removeOwnPartialLineAtEnd(file, int64(n)))
}

// Before it removes a partial line, a process waits this often and this long for other processes to finish their lines.
const (
	maxLockAttempts = 100
	lockInterval    = time.Millisecond
)

// removeOwnPartialLineAtEnd removes the last partialLineBytes bytes that this process wrote, unless other bytes follow
// them. It first waits briefly for other writing processes, and gives up if they do not finish.
func removeOwnPartialLineAtEnd(file *os.File, partialLineBytes int64) error {
	end, err := file.Seek(0, io.SeekCurrent)
	for range maxLockAttempts {
		if err != nil {
			return err
		}
		if tryLockExclusive(file) {
			var done bool
			done, err = removeBytesIfAtFileEnd(file, end, partialLineBytes)
			unlock(file)
			if done || err != nil {
				return err
			}
		}
		time.Sleep(lockInterval)
	}
	return nil
}

// removeBytesIfAtFileEnd removes the byteCount bytes before endOfBytes if they are at the end of a regular file.
// isDoneOrNotRegular is false if other bytes follow them.
func removeBytesIfAtFileEnd(file *os.File, endOfBytes, byteCount int64) (isDoneOrNotRegular bool, err error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return true, err
	}
	if info.Size() != endOfBytes {
		return false, nil
	}
	return true, file.Truncate(endOfBytes - byteCount)
}

//go:generate go run ../../tools/schemadoc -dir . -type Line -head LineHead -json ../../../docs/schema/journal.json -md ../../../docs/journal.md
