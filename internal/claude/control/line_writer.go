package control

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const (
	maxQueuedStdoutBytesBeforeTurnsWait = 1 << 20     // how many bytes may wait for a slow host before turns wait, too
	finalFlushTimeout                   = time.Second // how long the last lines may take after a signal has ended the run
)

// queuedLineWriter writes lines in order from a goroutine, so that stdin is read even while the host does not read stdout.
type queuedLineWriter struct {
	w    io.Writer
	done chan struct{} // closed when the goroutine has returned

	mu               sync.Mutex
	changed          *sync.Cond // signals changes of the fields below
	queue            []queuedLine
	pendingBytes     int // bytes waiting or being written
	closed           bool
	outputDelayCount int   // number of calls of delayTurnOutputUntilRelease that were not released
	turnWriteErr     error // error that every write of a turn returns; nil means that turns may write
	writeErr         error // first error of w; nothing is written after an error
}

type queuedLine struct {
	line  []byte
	write func(w io.Writer) error // writes instead of line; nil means that the bytes of line are written
}

func newUnstartedLineWriter(w io.Writer) *queuedLineWriter {
	l := &queuedLineWriter{w: w, done: make(chan struct{})}
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *queuedLineWriter) writeLinesUntilClosed() {
	defer close(l.done)
	for {
		e, ok := l.waitAndTakeNextLine()
		if !ok {
			return
		}
		var err error
		if e.write != nil {
			err = e.write(l.w)
		} else {
			_, err = l.w.Write(e.line)
		}
		l.mu.Lock()
		l.pendingBytes -= len(e.line)
		if err != nil && l.writeErr == nil {
			l.writeErr = err
		}
		l.changed.Broadcast()
		l.mu.Unlock()
	}
}

func (l *queuedLineWriter) waitAndTakeNextLine() (queuedLine, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed && l.writeErr == nil {
		l.changed.Wait()
	}
	if len(l.queue) == 0 || l.writeErr != nil {
		return queuedLine{}, false
	}
	e := l.queue[0]
	l.queue = l.queue[1:]
	return e, true
}

// queueLine queues a line without waiting.
func (l *queuedLineWriter) queueLine(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendLine(queuedLine{line: append(line, '\n')})
}

func (l *queuedLineWriter) appendLine(e queuedLine) {
	if l.writeErr != nil {
		return
	}
	l.queue = append(l.queue, e)
	l.pendingBytes += len(e.line)
	l.changed.Broadcast()
}

// Write queues a line that ends with a newline. It waits while too many bytes are queued.
func (l *queuedLineWriter) Write(line []byte) (int, error) {
	if err := l.waitAndQueueTurnLine(queuedLine{line: append([]byte(nil), line...)}); err != nil {
		return 0, err
	}
	return len(line), nil
}

// WriteGroup queues the function f. No other lines are written between the lines that f writes.
func (l *queuedLineWriter) WriteGroup(f func(w io.Writer) error) error {
	return l.waitAndQueueTurnLine(queuedLine{write: f})
}

// waitAndQueueTurnLine queues a line of a turn. It waits while too many bytes are queued or while turns may not write.
func (l *queuedLineWriter) waitAndQueueTurnLine(turnLine queuedLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for (l.pendingBytes > maxQueuedStdoutBytesBeforeTurnsWait || l.outputDelayCount > 0) && l.writeErr == nil && l.turnWriteErr == nil {
		l.changed.Wait()
	}
	if err := cmp.Or(l.writeErr, l.turnWriteErr); err != nil {
		return err
	}
	l.appendLine(turnLine)
	return nil
}

// delayTurnOutputUntilRelease makes turns wait with their output until release is called. Other lines that are queued in the
// meantime are written before this output.
func (l *queuedLineWriter) delayTurnOutputUntilRelease() (release func()) {
	add := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.outputDelayCount += n
		l.changed.Broadcast()
	}
	add(1)
	return func() { add(-1) }
}

// failWaitingAndLaterTurnWrites makes every waiting and every later call of Write fail with writeError.
func (l *queuedLineWriter) failWaitingAndLaterTurnWrites(writeError error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turnWriteErr = writeError
	l.changed.Broadcast()
}

// flushAndClose waits until everything is written or w fails, and returns the error of w. Once ctx is cancelled, it waits at
// most [finalFlushTimeout] and then returns nil.
func (l *queuedLineWriter) flushAndClose(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		select {
		case <-l.done:
		case <-time.After(finalFlushTimeout):
			return nil // the goroutine that writes may be blocked; it stops when the process exits
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeErr
}

// maxLineBytes is the maximum length of a line on stdin (observed with 2.1.329).
const maxLineBytes = 256 << 20

// readBoundedLine reads a line including its newline. It joins the pieces only after their total length is
// known to be within the limit, because stdin may never contain a newline.
func readBoundedLine(in *bufio.Reader) ([]byte, error) {
	var pieces [][]byte
	size := 0
	for {
		piece, err := in.ReadSlice('\n')
		if size += len(piece); size > maxLineBytes {
			return nil, invalidStdinLineErrorf("Error: stream-json input carried over 256M characters with no newline. Every message must be one line of JSON that ends with a newline.")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if err != nil {
				err = io.EOF // every read error counts as EOF
			}
			return slices.Concat(append(pieces, piece)...), err
		}
		pieces = append(pieces, bytes.Clone(piece))
	}
}

// frameWriter writes frames to stdout. It queues frames, so that its callers never wait for the host to read.
type frameWriter struct {
	lines                     *queuedLineWriter
	metadata                  FrameMetadata
	stateEvents               SessionStateEventMode
	echoesPromptsAndResponses bool // echo prompts that get no separate turn, and the host's responses

	mu        sync.Mutex
	lastState string
}

func (a *frameWriter) writeFrame(frame any) {
	line, err := protocol.Marshal(frame)
	if err != nil { // only invalid raw JSON from the host can cause an error
		return
	}
	a.lines.queueLine(line)
}

// writeEventsOutsideTurn writes events that belong to no turn, after setting their ids and time stamps.
func (a *frameWriter) writeEventsOutsideTurn(events ...protocol.Event) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case *protocol.SystemEvent:
			ev.UUID, ev.SessionID = a.metadata.NewID(), cmp.Or(ev.SessionID, a.metadata.SessionID())
		case *protocol.Frame:
			ev.UUID, ev.SessionID = a.metadata.NewID(), cmp.Or(ev.SessionID, a.metadata.SessionID())
		case *protocol.UserEvent:
			ev.SessionID, ev.Timestamp = a.metadata.SessionID(), a.metadata.CurrentUTCTimestamp()
		}
		a.writeFrame(ev)
	}
}

func (a *frameWriter) writeStateIfChanged(state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stateEvents == SessionStateEventsOff || a.lastState == state {
		return
	}
	a.lastState = state
	ev := &protocol.SystemEvent{Subtype: "session_state_changed", Fields: []protocol.Field{{Key: "state", Value: state}}}
	if a.stateEvents == SessionStateEventsMarkedHostOnly {
		ev.Fields = append(ev.Fields, protocol.Field{Key: "sdk_host_only", Value: true})
	}
	a.writeEventsOutsideTurn(ev)
}

// echoPromptIfReplaying echoes a prompt that gets no separate turn. The echo has no time stamp.
func (a *frameWriter) echoPromptIfReplaying(in protocol.UserMessage) {
	if !a.echoesPromptsAndResponses || !simulator.IsReplayable(in) {
		return
	}
	a.writeFrame(&protocol.UserEvent{Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, SessionID: a.metadata.SessionID(), UUID: in.UUID, IsReplay: new(true)})
}
