package procio

import (
	"embed"
	"encoding/json"
	"path"
	"strings"
)

// Fault is a defect that the real CLI has shown to its callers.
type Fault struct {
	// Name selects the fault: in the key `fault` of a scenario, in CLAUDELESS_FAILURE and with --faults.
	Name string `json:"name"`
	// BugReport describes the problem in a few words, with its source if known.
	BugReport string `json:"bug"`
	// RealBehavior describes the behaviour of the real CLI.
	RealBehavior string `json:"real"`
	// CallerAdvice is advice for the caller.
	CallerAdvice string `json:"caller"`
	// Interface is "cli", "api" (which needs the Messages API) or "screen" (which needs an interactive terminal).
	Interface string `json:"face"`
	// AllowedEnd is how a caller may end: "success" (no data is lost), "failure" (the answer did not arrive) or "either".
	AllowedEnd string `json:"truth"`
	// RealAllowedEnd replaces AllowedEnd for a real claude, which may recover from this fault; empty means AllowedEnd.
	RealAllowedEnd string `json:"real_truth"`
	// Effects are the effects on the process.
	Effects FaultEffects `json:"do"`
}

// FaultEffects are the possible effects of a fault. In output without a result line, such as plain text, the whole
// output counts as the result.
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

// Faults returns the catalogue of faults, sorted by name.
func Faults() []Fault {
	var faults []Fault
	entries, _ := faultFiles.ReadDir("faults") // the directory is embedded
	for _, entry := range entries {
		faults = append(faults, *FaultByName(strings.TrimSuffix(entry.Name(), ".json")))
	}
	return faults
}

// FaultNone means that no fault is applied. FaultRecordExit changes nothing in the output either: claudeless stays the
// parent of the real claude, so that it can record the exit code.
const (
	FaultNone       = "none"
	FaultRecordExit = "attended"
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
