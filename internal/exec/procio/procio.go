// Package procio wraps the standard streams, the signals and the exit of a simulated claude process. It records what
// the calling program does with them, and applies process faults.
//
// Without a fault, every byte passes unchanged and unbuffered.
package procio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Options configure a [StreamWrapper].
type Options struct {
	Journal      *journal.Journal // receives the lines; nil means nothing is recorded
	System       *process.System  // the process; required
	RecordOutput bool             // also records what the process writes to stdout and stderr
	// Fault applies from the start; nil means none. A scenario may activate a fault later with [ArmFault].
	Fault *Fault
}

// StreamWrapper wraps the streams and signals of one process. Its methods are safe for concurrent use.
type StreamWrapper struct {
	options Options
	started time.Time
	fault   *faultState

	mu                           sync.Mutex
	controlRequests              map[string]controlRequestState // control requests that the process sent, by their ids
	resultsWritten, messagesRead int
	stdinEOF, ended              bool
	signal                       string
}

// controlRequestState is the state of a control request of the process: open, withdrawn or answered.
type controlRequestState struct {
	subtype     string
	answered    bool
	withdrawnAt time.Time // zero means not withdrawn
}

const (
	blockedWriteThreshold = time.Second // the time after which a blocked write means that the reader does not read
	// maxControlAnswerDelayAfterWithdrawal is how long an answer to a control request may still arrive after its withdrawal.
	maxControlAnswerDelayAfterWithdrawal = 5 * time.Second
)

// New returns a wrapper for the standard streams and signals of the process.
func New(o Options) *StreamWrapper {
	return &StreamWrapper{
		options: o, started: o.System.Now(), controlRequests: map[string]controlRequestState{},
		fault: &faultState{system: o.System, fault: o.Fault, signalReceived: make(chan struct{})},
	}
}

func (e *StreamWrapper) writeToJournal(b journal.Body) {
	if e.options.Journal != nil {
		e.options.Journal.Write(b)
	}
}

type stdinObserver struct {
	wrapper     *StreamWrapper
	r           io.Reader
	partialLine []byte
}

func (r *stdinObserver) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	data := p[:n]
	for {
		before, after, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			break
		}
		r.wrapper.recordEventsOfHostLine(append(r.partialLine, before...))
		r.partialLine, data = r.partialLine[:0], after
	}
	r.partialLine = append(r.partialLine, data...)
	if err != nil {
		r.wrapper.recordStdinEndAndUnansweredRequests()
	}
	return n, err
}

// recordEventsOfHostLine examines a line from the host. It records answers and initialize requests, and counts user messages.
func (e *StreamWrapper) recordEventsOfHostLine(line []byte) {
	switch {
	case bytes.Contains(line, []byte(`"control_response"`)):
		e.recordRepeatedOrLateResponse(line)
	case bytes.Contains(line, []byte(`"initialize"`)):
		e.recordLateInitializeWithHooks(line)
	case bytes.Contains(line, []byte(`"user"`)):
		e.mu.Lock()
		e.messagesRead++
		e.mu.Unlock()
	}
}

func (e *StreamWrapper) recordRepeatedOrLateResponse(hostLine []byte) {
	var frame struct {
		Type     string `json:"type"`
		Response struct {
			RequestID string `json:"request_id"`
		} `json:"response"`
	}
	if json.Unmarshal(hostLine, &frame) != nil || frame.Type != "control_response" {
		return
	}
	id := frame.Response.RequestID
	e.mu.Lock()
	defer e.mu.Unlock()
	q, known := e.controlRequests[id]
	switch {
	case !known:
		return // the request was not recorded, so the answer cannot be judged
	case q.answered:
		e.writeToJournal(journal.Host{What: "answered_twice", RequestID: id, Subtype: q.subtype})
	case !q.withdrawnAt.IsZero() && e.options.System.Now().Sub(q.withdrawnAt) > maxControlAnswerDelayAfterWithdrawal:
		ms := float64(e.options.System.Now().Sub(q.withdrawnAt)) / float64(time.Millisecond)
		e.writeToJournal(journal.Host{What: "answered_late", RequestID: id, Subtype: q.subtype, MS: ms})
	}
	q.answered = true
	e.controlRequests[id] = q
}

func (e *StreamWrapper) recordLateInitializeWithHooks(hostLine []byte) {
	var frame struct {
		Type    string `json:"type"`
		Request struct {
			Subtype string                       `json:"subtype"`
			Hooks   map[string][]json.RawMessage `json:"hooks"`
		} `json:"request"`
	}
	if json.Unmarshal(hostLine, &frame) != nil || frame.Type != "control_request" || frame.Request.Subtype != "initialize" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.messagesRead > 0 && len(frame.Request.Hooks) > 0 {
		e.writeToJournal(journal.Host{What: "late_initialize"})
	}
}

func (e *StreamWrapper) recordStdinEndAndUnansweredRequests() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stdinEOF {
		return
	}
	e.stdinEOF = true
	e.writeToJournal(journal.Host{What: "stdin_closed", Results: e.resultsWritten})
	for _, id := range slices.Sorted(maps.Keys(e.controlRequests)) {
		q := e.controlRequests[id]
		awaited := q.subtype == "can_use_tool" || q.subtype == "hook_callback" || q.subtype == "elicitation" // by a turn
		if !q.answered && q.withdrawnAt.IsZero() && awaited {
			e.writeToJournal(journal.Host{What: "request_unanswered", RequestID: id, Subtype: q.subtype})
		}
	}
}

type stdoutObserver struct {
	wrapper *StreamWrapper
	w       io.Writer
}

func (w *stdoutObserver) Write(p []byte) (int, error) {
	if w.wrapper.options.Journal == nil {
		return w.w.Write(p)
	}
	w.wrapper.noteControlRequests(p)
	waits := time.AfterFunc(blockedWriteThreshold, func() {
		w.wrapper.writeToJournal(journal.Host{What: "stdout_blocked", Results: w.wrapper.countResultMessagesWritten()})
	})
	n, err := w.w.Write(p)
	waits.Stop()
	if err != nil {
		w.wrapper.writeToJournal(journal.Host{What: "stdout_closed", Results: w.wrapper.countResultMessagesWritten()})
		return n, err
	}
	if isResultMessageLine(p) {
		w.wrapper.mu.Lock()
		w.wrapper.resultsWritten++
		w.wrapper.mu.Unlock()
	}
	return n, nil
}

func (e *StreamWrapper) countResultMessagesWritten() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.resultsWritten
}

// noteControlRequests examines a line before the process writes it. It notes new and withdrawn control requests.
func (e *StreamWrapper) noteControlRequests(line []byte) {
	if !bytes.HasPrefix(line, []byte(`{"type":"control_`)) {
		return
	}
	var frame struct {
		Type      string                   `json:"type"`
		RequestID string                   `json:"request_id"`
		Request   struct{ Subtype string } `json:"request"`
	}
	if json.Unmarshal(line, &frame) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch frame.Type {
	case "control_request":
		e.controlRequests[frame.RequestID] = controlRequestState{subtype: frame.Request.Subtype}
	case "control_cancel_request":
		q := e.controlRequests[frame.RequestID]
		q.withdrawnAt = e.options.System.Now()
		e.controlRequests[frame.RequestID] = q
	}
}

// WrappedSystem returns a copy of the System of the process. Its streams and signals pass through the wrapper.
func (e *StreamWrapper) WrappedSystem() *process.System {
	s := *e.options.System
	if s.Stdin != nil && e.options.Journal != nil {
		s.Stdin = &stdinObserver{wrapper: e, r: s.Stdin}
	}
	if e.options.RecordOutput {
		s.Stdout = &journalingOutputWriter{wrapper: e, w: s.Stdout, stream: "stdout"}
		s.Stderr = &journalingOutputWriter{wrapper: e, w: s.Stderr, stream: "stderr"}
	}
	s.Stdout = &faultWriter{faultState: e.fault, w: &stdoutObserver{wrapper: e, w: s.Stdout}}
	if s.Lifetime != nil {
		s.Lifetime = journalingSignalsAndParent{s.Lifetime, e}
	}
	return &s
}

// journalingSignalsAndParent is a [process.SignalsAndParent] that also records the signals of the process in the journal.
type journalingSignalsAndParent struct {
	process.SignalsAndParent
	wrapper *StreamWrapper
}

// Notify records incoming signals and passes them to the channel. Signals that the fault suppresses are only recorded.
func (f journalingSignalsAndParent) Notify(recipient chan<- os.Signal, signals ...os.Signal) (stopNotifying func()) {
	e := f.wrapper
	return process.OnSignals(f.SignalsAndParent, func(sig os.Signal) {
		e.mu.Lock()
		e.signal = signalName(sig)
		line := journal.Host{What: "signal", Signal: e.signal, StdinOpen: !e.stdinEOF, Results: e.resultsWritten}
		e.mu.Unlock()
		e.writeToJournal(line)
		if e.fault.endDelaysUnlessIgnored(sig) {
			recipient <- sig
		}
	}, signals...)
}

// Kill records that a signal ends the process, and then kills the process with this signal.
func (f journalingSignalsAndParent) Kill(sig syscall.Signal) error {
	e := f.wrapper
	e.mu.Lock()
	e.signal = signalName(sig)
	e.mu.Unlock()
	e.ApplyFaultAndRecordExit(128+int(sig), "")
	return f.SignalsAndParent.Kill(sig)
}

// ApplyFaultAndRecordExit records the exit and returns its code, which a fault may change. An empty commandLineRefusal means none.
func (e *StreamWrapper) ApplyFaultAndRecordExit(code int, commandLineRefusal string) (codeAfterFault int) {
	code = e.hangIfFaultyAndReturnExitCode(code)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return code
	}
	e.ended = true
	x := journal.Exit{Code: code, Rejection: commandLineRefusal, MS: float64(e.options.System.Now().Sub(e.started)) / float64(time.Millisecond)}
	if code > 128 {
		x.Signal = e.signal
	}
	e.writeToJournal(x)
	return code
}

func (e *StreamWrapper) hangIfFaultyAndReturnExitCode(code int) int {
	do := e.fault.activeFaultEffects()
	if do == nil {
		return code
	}
	if do.HangAfterResult && code == 0 && e.options.System.Lifetime != nil {
		signals := make(chan os.Signal, 1)
		stop := journalingSignalsAndParent{e.options.System.Lifetime, e}.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		defer stop()
		e.fault.hangUntilSignalOrOrphaned()
		code = 143
	}
	if do.ExitCode != nil && code < 128 {
		code = *do.ExitCode
	}
	return code
}

func signalName(sig os.Signal) string {
	names := map[os.Signal]string{syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGKILL: "SIGKILL"}
	return cmp.Or(names[sig], sig.String())
}

// maxRecordedOutput is how many bytes of one stream are recorded.
const maxRecordedOutput = 1 << 20

type journalingOutputWriter struct {
	wrapper *StreamWrapper
	w       io.Writer
	stream  string

	mu       sync.Mutex
	recorded int // bytes so far
}

// Write writes p, and records the part of it that was written.
func (r *journalingOutputWriter) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	room := maxRecordedOutput - r.recorded
	if n == 0 || room <= 0 {
		return n, err
	}
	text := strings.ToValidUTF8(string(p[:min(n, room)]), "\uFFFD")
	r.recorded += n
	r.wrapper.writeToJournal(journal.Output{Stream: r.stream, Text: text, Truncated: n > room})
	return n, err
}
