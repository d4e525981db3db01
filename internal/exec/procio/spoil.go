package procio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/ordered"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
)

// errStalled ends a write that was never to succeed.
var errStalled = errors.New("stdout has stalled")

// faultWriter is the fault of a process, once it is known, and how long what it does
// may last.
type faultWriter struct {
	system *process.System

	mu    sync.Mutex
	fault *Fault        // nil = none
	dying bool          // over is about to be closed
	over  chan struct{} // closed when a signal ends the process
}

// told is how long a signal takes to be known everywhere.
const told = 20 * time.Millisecond

func (s *faultWriter) arm(f *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// armed is what to spoil; nil = nothing.
func (s *faultWriter) armed() *FaultEffects {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return &s.fault.Do
}

// signalled ends what is held back, soon; false = the fault keeps the signal from
// having an effect.
func (s *faultWriter) signalled(sig os.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig == syscall.SIGTERM && s.fault != nil && s.fault.Do.IgnoreSIGTERM {
		return false
	}
	if !s.dying {
		s.dying = true
		time.AfterFunc(told, func() { close(s.over) })
	}
	return true
}

// pause waits, but not longer than until a signal ends the process.
func (s *faultWriter) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.over:
	}
}

// hang waits until a signal ends the process, or until its parent is gone.
func (s *faultWriter) hang() {
	parent := os.Getppid()
	for os.Getppid() == parent {
		select {
		case <-s.over:
			return
		case <-time.After(time.Second):
		}
	}
}

// ArmOutput arms the fault of that name at an output that an edge has made, and
// returns the failure of the model that belongs to it, as --failure names it. An
// unknown name and another output are left alone.
func ArmOutput(stdout io.Writer, name string) (failure string) {
	f := FaultByName(name)
	if f == nil {
		return ""
	}
	for w, ok := stdout.(interface{ Unwrap() io.Writer }); ok; w, ok = stdout.(interface{ Unwrap() io.Writer }) {
		stdout = w.Unwrap()
	}
	if s, ok := stdout.(*spoiled); ok {
		s.arm(f)
	}
	return f.Do.Failure
}

// spoiled is stdout as a fault has it; the writer behind it is a watched one. Each
// write is a line, or all there is.
type spoiled struct {
	*faultWriter
	w     io.Writer
	lines int      // so far
	array [][]byte // lines of an array that is not written yet
}

func (s *spoiled) Write(p []byte) (int, error) {
	do := s.armed()
	if do == nil {
		return s.w.Write(p)
	}
	if s.lines++; s.lines == 1 && do.HoldAll > 0 {
		s.pause(seconds(do.HoldAll))
	}
	line := p
	result := isResult(p) || !bytes.HasPrefix(p, []byte("{"))
	if do.StallAfter > 0 && (result || s.lines > do.StallAfter) { // the only line never comes
		s.hang()
		return 0, errStalled
	}
	if result {
		if err := s.before(do); err != nil {
			return 0, err
		}
		line = lie(do, line)
	}
	if do.ReverseKeys {
		line = reversed(line)
	}
	if do.CRLF {
		line = append(bytes.TrimSuffix(slices.Clone(line), []byte("\n")), '\r', '\n')
	}
	if err := s.out(do, line, result); err != nil {
		return 0, err
	}
	return len(p), nil
}

// before is what comes before the result.
func (s *spoiled) before(do *FaultEffects) error {
	if do.StderrBytes > 0 {
		noise := strings.Repeat(strings.Repeat("noise ", 12)+"\n", do.StderrBytes/73+1)
		if _, err := io.WriteString(s.system.Stderr, noise[:do.StderrBytes]); err != nil {
			return err
		}
	}
	if do.DelayResult > 0 {
		s.pause(seconds(do.DelayResult))
	}
	if do.Insert == "" || s.lines == 1 { // an event has no place in a text
		return nil
	}
	text := strings.Repeat(do.Insert, max(do.InsertTimes, 1))
	event, err := ordered.Object{
		{Key: "type", Value: json.RawMessage(`"system"`)},
		{Key: "subtype", Value: json.RawMessage(`"informational"`)},
		{Key: "content", Value: raw(text)},
		{Key: "level", Value: json.RawMessage(`"info"`)},
		{Key: "session_id", Value: json.RawMessage(`""`)},
		{Key: "uuid", Value: raw(s.system.NewID())},
	}.MarshalJSON()
	if err != nil {
		return err
	}
	return s.pieces(do, append(event, '\n'))
}

// raw is a JSON string in which nothing is escaped that need not be.
func raw(text string) json.RawMessage {
	return json.RawMessage(strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(plainjson.Text(text)))
}

// out writes a line as often and as far as it is to be.
func (s *spoiled) out(do *FaultEffects, line []byte, result bool) error {
	switch {
	case do.Array:
		s.array = append(s.array, bytes.TrimSpace(slices.Clone(line)))
		if !result {
			return nil
		}
		line = append(append([]byte("["), bytes.Join(s.array, []byte(","))...), ']', '\n')
		s.array = nil
	case result && do.DropResult:
		return nil
	case result && do.CutResult:
		line = line[:len(line)/2]
	case result && do.RepeatResult:
		if err := s.pieces(do, line); err != nil {
			return err
		}
	}
	return s.pieces(do, line)
}

// pieces writes a line, where the fault wants it in pieces that end inside of
// characters.
func (s *spoiled) pieces(do *FaultEffects, line []byte) error {
	const most = 20 // pauses of a line
	for n := 0; do.Pieces && n < most; n++ {
		cut := slices.IndexFunc(line, func(b byte) bool { return b >= utf8.RuneSelf })
		if cut < 0 {
			break
		}
		if _, err := s.w.Write(line[:cut+1]); err != nil {
			return err
		}
		line = line[cut+1:]
		for len(line) > 0 && !utf8.RuneStart(line[0]) {
			s.pause(5 * time.Millisecond)
			if _, err := s.w.Write(line[:1]); err != nil {
				return err
			}
			line = line[1:]
		}
	}
	_, err := s.w.Write(line)
	return err
}

// lie makes the result say what the fault wants.
func lie(do *FaultEffects, line []byte) []byte {
	if do.Lie == "" && !do.ZeroUsage {
		return line
	}
	o, err := ordered.Parse(bytes.TrimSpace(line))
	if err != nil {
		if do.Lie == "" {
			return line
		}
		return []byte(do.Lie + "\n")
	}
	if do.Lie != "" {
		o = o.With("subtype", raw("success")).With("is_error", json.RawMessage("false")).With("result", raw(do.Lie))
	}
	if usage, err := ordered.Parse(o.Get("usage")); do.ZeroUsage && err == nil {
		if zero, err := usage.With("output_tokens", json.RawMessage("0")).MarshalJSON(); err == nil {
			o = o.With("usage", zero)
		}
	}
	out, err := o.MarshalJSON()
	if err != nil {
		return line
	}
	return append(out, '\n')
}

// reversed is a line whose keys stand the other way round.
func reversed(line []byte) []byte {
	o, err := ordered.Parse(bytes.TrimSpace(line))
	if err != nil {
		return line
	}
	slices.Reverse(o)
	out, err := o.MarshalJSON()
	if err != nil {
		return line
	}
	return append(out, '\n')
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// isResult tells a result from other lines. Its type is not its first key.
func isResult(line []byte) bool {
	if !bytes.Contains(line, []byte(`"type":"result"`)) {
		return false
	}
	var frame struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &frame) == nil && frame.Type == "result"
}
