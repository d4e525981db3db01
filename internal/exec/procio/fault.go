package procio

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
)

// Fault is a defect that the real CLI has shown to its callers.
type Fault struct {
	Name         string `json:"name"`   // selects the fault: in the key `fault` of a scenario, in CLAUDELESS_FAILURE and with --faults
	BugReport    string `json:"bug"`    // the problem in a few words, with its source if known
	RealBehavior string `json:"real"`   // behaviour of the real CLI
	CallerAdvice string `json:"caller"` // how a program that runs claude should handle the fault
	// Interface is "cli", "api" (which needs the Messages API) or "screen" (which needs an interactive terminal).
	Interface string `json:"face"`
	// AllowedEnd is how the calling program may end: "success" (no data is lost), "failure" (no answer arrived) or "either".
	AllowedEnd string `json:"truth"`
	// RealAllowedEnd replaces AllowedEnd for a real claude, which may recover from this fault; empty means AllowedEnd.
	RealAllowedEnd string       `json:"real_truth"`
	Effects        FaultEffects `json:"do"` // effects on the process
}

// FaultEffects are the possible effects of a fault. Without a result line, as in plain text, the whole output is the result.
type FaultEffects struct {
	HangAfterResult bool    `json:"hang_after_result"` // the process does not exit after the result
	IgnoreSIGTERM   bool    `json:"ignore_sigterm"`
	StallAfter      int     `json:"stall_after"` // number of lines after which output stops without EOF
	DropResult      bool    `json:"drop_result"`
	CutResult       bool    `json:"cut_result"` // write only half of the result, without a newline
	RepeatResult    bool    `json:"repeat_result"`
	DelayResult     float64 `json:"delay_result"` // seconds by which the result is delayed
	DelayAll        float64 `json:"hold_all"`     // seconds by which all output is delayed
	AsArray         bool    `json:"array"`        // one JSON array instead of lines
	CRLF            bool    `json:"crlf"`
	ReverseKeys     bool    `json:"reverse_keys"`
	Insert          string  `json:"insert"`       // text of a line before the result
	InsertTimes     int     `json:"insert_times"` // number of times that Insert is written; 0 means once
	SplitCharacters bool    `json:"pieces"`       // writes end in the middle of characters
	StderrBytes     int     `json:"stderr_bytes"` // bytes written to stderr before the result
	FalseResult     string  `json:"lie"`          // text of the result, which claims success
	ExitCode        *int    `json:"exit_code"`    // replaces the real exit code
	Failure         string  `json:"failure"`      // failure of every request, as in --failure
	ZeroUsage       bool    `json:"zero_usage"`   // the result has no output tokens
	StreamFault     string  `json:"stream"`       // effect on API streams (a stream_fault); if set, the effects above are ignored
}

//go:embed faults
var faultFiles embed.FS

// AllFaults returns the catalogue of faults, sorted by name.
func AllFaults() []Fault {
	var faults []Fault
	entries, _ := faultFiles.ReadDir("faults") // the directory is embedded
	for _, entry := range entries {
		faults = append(faults, *FaultByName(strings.TrimSuffix(entry.Name(), ".json")))
	}
	return faults
}

// FaultNone means that no fault is applied. FaultStayParentToRecordExit changes nothing in the output either: claudeless stays
// the parent of the real claude, so that it can record the exit code.
const (
	FaultNone                   = "none"
	FaultStayParentToRecordExit = "attended"
)

// FaultByName finds a fault; nil means unknown. Hyphens and underscores are equivalent.
func FaultByName(name string) *Fault {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	raw, err := faultFiles.ReadFile(path.Join("faults", name+".json"))
	var f Fault
	if err != nil || json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return &f
}

// errStalled ends a write that blocks under a stall fault.
var errStalled = errors.New("stdout has stalled")

// faultState is the active fault of a process. A signal that ends the process also ends the delays of the fault.
type faultState struct {
	system *process.System

	mu             sync.Mutex
	fault          *Fault        // nil means none
	closing        bool          // signalReceived will be closed soon
	signalReceived chan struct{} // closed when a signal ends the process
}

// waitAfterSignalBeforeEndingFaultDelays is how long a signal takes to reach all parts of the process.
const waitAfterSignalBeforeEndingFaultDelays = 20 * time.Millisecond

func (s *faultState) activeFaultEffects() (effectsOrNil *FaultEffects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return &s.fault.Effects
}

// endDelaysUnlessIgnored ends all delays shortly after a signal (waitAfterSignalBeforeEndingFaultDelays). If the fault
// suppresses the signal, it does nothing and returns false.
func (s *faultState) endDelaysUnlessIgnored(sig os.Signal) (isPassedOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig == syscall.SIGTERM && s.fault != nil && s.fault.Effects.IgnoreSIGTERM {
		return false
	}
	if !s.closing {
		s.closing = true
		time.AfterFunc(waitAfterSignalBeforeEndingFaultDelays, func() { close(s.signalReceived) })
	}
	return true
}

func (s *faultState) sleepUnlessSignalled(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.signalReceived:
	}
}

// hangUntilSignalOrOrphaned blocks until a signal ends this process, or until the parent of this process has exited.
func (s *faultState) hangUntilSignalOrOrphaned() {
	parent := os.Getppid()
	for os.Getppid() == parent {
		select {
		case <-s.signalReceived:
			return
		case <-time.After(time.Second):
		}
	}
}

// screenFaultArmer is the stdout of an interactive session, which draws a screen instead of writing lines.
type screenFaultArmer interface {
	// ArmFault applies a fault to the screen from now on.
	ArmFault(name string)
}

// ArmFault activates the fault with this name, if it exists and stdout belongs to a [StreamWrapper] or to an interactive
// screen. modelRequestFailure is how requests to the model fail, as a value of --failure; empty means none.
func ArmFault(stdout io.Writer, faultName string) (modelRequestFailure string) {
	f := FaultByName(faultName)
	if f == nil {
		return ""
	}
	if f.Interface == "screen" {
		if s, ok := stdout.(screenFaultArmer); ok {
			s.ArmFault(f.Name)
		}
		return ""
	}
	for w, ok := stdout.(interface{ Unwrap() io.Writer }); ok; w, ok = stdout.(interface{ Unwrap() io.Writer }) {
		stdout = w.Unwrap()
	}
	if s, ok := stdout.(*faultWriter); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fault = f
	}
	return f.Effects.Failure
}

// faultWriter is the stdout of a process under a fault. It writes to w, which records the output. Each Write must
// contain one JSON line or, if the output is not JSON, the whole output.
type faultWriter struct {
	*faultState
	w            io.Writer
	lines        int
	pendingArray [][]byte // lines of an array that is not written yet
}

func (s *faultWriter) Write(p []byte) (int, error) {
	do := s.activeFaultEffects()
	if do == nil {
		return s.w.Write(p)
	}
	if s.lines++; s.lines == 1 && do.DelayAll > 0 {
		s.sleepUnlessSignalled(secondsToDuration(do.DelayAll))
	}
	line := p
	result := isResultMessageLine(p) || !bytes.HasPrefix(p, []byte("{"))
	if do.StallAfter > 0 && (result || s.lines > do.StallAfter) { // the result itself never arrives, even if it is the first line
		s.hangUntilSignalOrOrphaned()
		return 0, errStalled
	}
	if result {
		if err := s.delayAndWriteBeforeResult(do); err != nil {
			return 0, err
		}
		line = resultLineWithFault(do, line)
	}
	if do.ReverseKeys {
		line = withReversedKeys(line)
	}
	if do.CRLF {
		line = append(bytes.TrimSuffix(slices.Clone(line), []byte("\n")), '\r', '\n')
	}
	if err := s.writeLineWithFault(do, line, result); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *faultWriter) delayAndWriteBeforeResult(effects *FaultEffects) error {
	if effects.StderrBytes > 0 {
		noise := strings.Repeat(strings.Repeat("noise ", 12)+"\n", effects.StderrBytes/73+1)
		if _, err := io.WriteString(s.system.Stderr, noise[:effects.StderrBytes]); err != nil {
			return err
		}
	}
	if effects.DelayResult > 0 {
		s.sleepUnlessSignalled(secondsToDuration(effects.DelayResult))
	}
	if effects.Insert == "" || s.lines == 1 { // plain text output cannot contain an event
		return nil
	}
	text := strings.Repeat(effects.Insert, max(effects.InsertTimes, 1))
	event := plainjson.Object{
		{Key: "type", Value: json.RawMessage(`"system"`)},
		{Key: "subtype", Value: json.RawMessage(`"informational"`)},
		{Key: "content", Value: jsonStringWithFewEscapes(text)},
		{Key: "level", Value: json.RawMessage(`"info"`)},
		{Key: "session_id", Value: json.RawMessage(`""`)},
		{Key: "uuid", Value: jsonStringWithFewEscapes(s.system.NewID())},
	}
	return s.writeLineInPieces(effects, append(event.Raw(), '\n'))
}

func jsonStringWithFewEscapes(text string) json.RawMessage {
	return json.RawMessage(strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(plainjson.MarshalString(text)))
}

func (s *faultWriter) writeLineWithFault(do *FaultEffects, line []byte, isResult bool) error {
	switch {
	case do.AsArray:
		s.pendingArray = append(s.pendingArray, bytes.TrimSpace(slices.Clone(line)))
		if !isResult {
			return nil
		}
		line = append(append([]byte("["), bytes.Join(s.pendingArray, []byte(","))...), ']', '\n')
		s.pendingArray = nil
	case isResult && do.DropResult:
		return nil
	case isResult && do.CutResult:
		line = line[:len(line)/2]
	case isResult && do.RepeatResult:
		if err := s.writeLineInPieces(do, line); err != nil {
			return err
		}
	}
	return s.writeLineInPieces(do, line)
}

// writeLineInPieces writes a line. If the fault requires it, the line is written in pieces that split characters.
func (s *faultWriter) writeLineInPieces(effects *FaultEffects, line []byte) error {
	const most = 20 // pauses per line
	for n := 0; effects.SplitCharacters && n < most; n++ {
		cut := slices.IndexFunc(line, func(b byte) bool { return b >= utf8.RuneSelf })
		if cut < 0 {
			break
		}
		if _, err := s.w.Write(line[:cut+1]); err != nil {
			return err
		}
		line = line[cut+1:]
		for len(line) > 0 && !utf8.RuneStart(line[0]) {
			s.sleepUnlessSignalled(5 * time.Millisecond)
			if _, err := s.w.Write(line[:1]); err != nil {
				return err
			}
			line = line[1:]
		}
	}
	_, err := s.w.Write(line)
	return err
}

// resultLineWithFault returns a result line with the changes that the fault requires: a text that claims success, or no
// output tokens. A line that is not JSON is replaced by the text that claims success.
func resultLineWithFault(effects *FaultEffects, line []byte) []byte {
	if effects.FalseResult == "" && !effects.ZeroUsage {
		return line
	}
	o, err := plainjson.Parse(bytes.TrimSpace(line))
	if err != nil {
		if effects.FalseResult == "" {
			return line
		}
		return []byte(effects.FalseResult + "\n")
	}
	if effects.FalseResult != "" {
		o = o.Set("subtype", jsonStringWithFewEscapes("success")).Set("is_error", json.RawMessage("false")).Set("result", jsonStringWithFewEscapes(effects.FalseResult))
	}
	if usage, err := plainjson.Parse(o.Get("usage")); effects.ZeroUsage && err == nil {
		o = o.Set("usage", usage.Set("output_tokens", json.RawMessage("0")).Raw())
	}
	return append(o.Raw(), '\n')
}

func withReversedKeys(line []byte) []byte {
	o, err := plainjson.Parse(bytes.TrimSpace(line))
	if err != nil {
		return line
	}
	slices.Reverse(o)
	return append(o.Raw(), '\n')
}

func secondsToDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// isResultMessageLine reports whether a line is a result. It decodes the line, because "type" is not the first key of a result.
func isResultMessageLine(line []byte) bool {
	return bytes.Contains(line, []byte(`"type":"result"`)) && plainjson.DecodeIgnoringErrors[struct{ Type string }](line).Type == "result"
}
