// Package procio wraps the standard streams, the signals and the exit of a
// simulated claude process. It records what the calling program does with them,
// and applies process faults.
//
// Without a fault, every byte passes unchanged and unbuffered.
package procio

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// Options configures an [Wrapper].
type Options struct {
	// Journal gets the lines; nil = nothing is noted.
	Journal *journal.Journal
	// System is the process; it is required.
	System *process.System
	// Fault has the output spoiled from the start; nil = none. A scenario may arm one
	// later, with [ArmOutput].
	Fault *Fault
}

// Wrapper watches one process. All methods may be called from many goroutines.
type Wrapper struct {
	o       Options
	started time.Time
	spoiler *faultWriter

	mu        sync.Mutex
	asked     map[string]question // control requests of ours
	results   int                 // written
	messages  int                 // read
	stdinOver bool
	ended     bool
	signal    string
}

// question is a control request of ours: open, withdrawn or answered.
type question struct {
	subtype   string
	answered  bool
	withdrawn time.Time // zero = it was not
}

const (
	// blocked is how long a write may wait for its reader.
	blocked = time.Second
	// late is how long after its withdrawal an answer may still be on its way.
	late = 5 * time.Second
)

// New makes an edge.
func New(o Options) *Wrapper {
	return &Wrapper{
		o: o, started: o.System.Now(), asked: map[string]question{},
		spoiler: &faultWriter{system: o.System, fault: o.Fault, over: make(chan struct{})},
	}
}

func (e *Wrapper) note(b journal.Body) {
	if e.o.Journal != nil {
		e.o.Journal.Write(b)
	}
}

// stdin watches what is read from r.
func (e *Wrapper) stdin(r io.Reader) io.Reader {
	if r == nil || e.o.Journal == nil {
		return r
	}
	return &reader{e: e, r: r}
}

type reader struct {
	e    *Wrapper
	r    io.Reader
	part []byte // of a line
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	data := p[:n]
	for {
		before, after, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			break
		}
		r.e.received(append(r.part, before...))
		r.part, data = r.part[:0], after
	}
	r.part = append(r.part, data...)
	if err != nil {
		r.e.stdinEnded()
	}
	return n, err
}

// received looks at a line of the host.
func (e *Wrapper) received(line []byte) {
	switch {
	case bytes.Contains(line, []byte(`"control_response"`)):
		e.answer(line)
	case bytes.Contains(line, []byte(`"initialize"`)):
		e.initialize(line)
	case bytes.Contains(line, []byte(`"user"`)):
		e.mu.Lock()
		e.messages++
		e.mu.Unlock()
	}
}

func (e *Wrapper) answer(line []byte) {
	var frame struct {
		Type     string `json:"type"`
		Response struct {
			RequestID string `json:"request_id"`
		} `json:"response"`
	}
	if json.Unmarshal(line, &frame) != nil || frame.Type != "control_response" {
		return
	}
	id := frame.Response.RequestID
	e.mu.Lock()
	defer e.mu.Unlock()
	q, known := e.asked[id]
	switch {
	case !known:
		return // not seen here, so nothing is certain
	case q.answered:
		e.note(journal.Host{What: "answered_twice", RequestID: id, Subtype: q.subtype})
	case !q.withdrawn.IsZero() && e.o.System.Now().Sub(q.withdrawn) > late:
		ms := float64(e.o.System.Now().Sub(q.withdrawn)) / float64(time.Millisecond)
		e.note(journal.Host{What: "answered_late", RequestID: id, Subtype: q.subtype, MS: ms})
	}
	q.answered = true
	e.asked[id] = q
}

func (e *Wrapper) initialize(line []byte) {
	var frame struct {
		Type    string `json:"type"`
		Request struct {
			Subtype string                       `json:"subtype"`
			Hooks   map[string][]json.RawMessage `json:"hooks"`
		} `json:"request"`
	}
	if json.Unmarshal(line, &frame) != nil || frame.Type != "control_request" || frame.Request.Subtype != "initialize" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.messages > 0 && len(frame.Request.Hooks) > 0 {
		e.note(journal.Host{What: "late_initialize"})
	}
}

// stdinEnded notes the end of stdin and what was never answered.
func (e *Wrapper) stdinEnded() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stdinOver {
		return
	}
	e.stdinOver = true
	e.note(journal.Host{What: "stdin_closed", Results: e.results})
	for id, q := range e.asked {
		if !q.answered && q.withdrawn.IsZero() && decides(q.subtype) {
			e.note(journal.Host{What: "request_unanswered", RequestID: id, Subtype: q.subtype})
		}
	}
}

// decides tells whether a turn waits for the answer to a request.
func decides(subtype string) bool {
	return subtype == "can_use_tool" || subtype == "hook_callback" || subtype == "elicitation"
}

// stdout watches what is written to w, and spoils it.
func (e *Wrapper) stdout(w io.Writer) io.Writer {
	return &spoiled{faultWriter: e.spoiler, w: &writer{e: e, w: w}}
}

type writer struct {
	e *Wrapper
	w io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	if w.e.o.Journal == nil {
		return w.w.Write(p)
	}
	w.e.sent(p)
	waits := time.AfterFunc(blocked, func() { w.e.note(journal.Host{What: "stdout_blocked", Results: w.e.written()}) })
	n, err := w.w.Write(p)
	waits.Stop()
	if err != nil {
		w.e.note(journal.Host{What: "stdout_closed", Results: w.e.written()})
		return n, err
	}
	if isResult(p) {
		w.e.mu.Lock()
		w.e.results++
		w.e.mu.Unlock()
	}
	return n, nil
}

func (e *Wrapper) written() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.results
}

// sent looks at a line of ours before it goes out.
func (e *Wrapper) sent(line []byte) {
	if !bytes.HasPrefix(line, []byte(`{"type":"control_`)) {
		return
	}
	var frame struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Request   struct {
			Subtype string `json:"subtype"`
		} `json:"request"`
	}
	if json.Unmarshal(line, &frame) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch frame.Type {
	case "control_request":
		e.asked[frame.RequestID] = question{subtype: frame.Request.Subtype}
	case "control_cancel_request":
		q := e.asked[frame.RequestID]
		q.withdrawn = e.o.System.Now()
		e.asked[frame.RequestID] = q
	}
}

// System is the process as it looks from inside of the edge.
func (e *Wrapper) System() *process.System {
	s := *e.o.System
	s.Stdin, s.Stdout = e.stdin(s.Stdin), e.stdout(s.Stdout)
	if s.Fate != nil {
		s.Fate = lifetime{s.Fate, e}
	}
	return &s
}

// lifetime is that of the process; what comes of it is noted.
type lifetime struct {
	process.Lifetime
	e *Wrapper
}

// Notify relays signals as the process does, and notes them.
func (f lifetime) Notify(to chan<- os.Signal, signals ...os.Signal) func() {
	from, done := make(chan os.Signal, 4), make(chan struct{})
	stop := f.Lifetime.Notify(from, signals...)
	go func() { // ends when done is closed
		for {
			select {
			case <-done:
				return
			case sig := <-from:
				if f.e.signalled(sig) {
					to <- sig
				}
			}
		}
	}()
	return func() { stop(); close(done) }
}

// Kill notes that the process is about to die of a signal of its own.
func (f lifetime) Kill(sig syscall.Signal) error {
	e := f.e
	e.mu.Lock()
	e.signal = signalName(sig)
	e.mu.Unlock()
	e.End(128+int(sig), "")
	return f.Lifetime.Kill(sig)
}

// signalled notes a signal; false = a fault keeps it from having an effect.
func (e *Wrapper) signalled(sig os.Signal) bool {
	e.mu.Lock()
	e.signal = signalName(sig)
	line := journal.Host{What: "signal", Signal: e.signal, StdinOpen: !e.stdinOver, Results: e.results}
	e.mu.Unlock()
	e.note(line)
	return e.spoiler.signalled(sig)
}

// End notes the end of the process; refused is what was said of a command line
// that was refused. It returns the code to exit with.
func (e *Wrapper) End(code int, refused string) int {
	code = e.finish(code)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return code
	}
	e.ended = true
	x := journal.Exit{Code: code, Refused: refused, MS: float64(e.o.System.Now().Sub(e.started)) / float64(time.Millisecond)}
	if code > 128 {
		x.Signal = e.signal
	}
	e.note(x)
	return code
}

// finish holds back the end of the process where the fault wants it.
func (e *Wrapper) finish(code int) int {
	do := e.spoiler.armed()
	if do == nil {
		return code
	}
	if do.HangAfterResult && code == 0 && e.o.System.Fate != nil {
		signals := make(chan os.Signal, 1)
		stop := lifetime{e.o.System.Fate, e}.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		defer stop()
		e.spoiler.hang()
		code = 143
	}
	if do.ExitCode != nil && code < 128 {
		code = *do.ExitCode
	}
	return code
}

// signalName is SIGTERM for "terminated".
func signalName(sig os.Signal) string {
	switch sig {
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGKILL:
		return "SIGKILL"
	}
	return sig.String()
}
