package procio

import (
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Fault is a defect that the real CLI has shown to its callers.
type Fault struct {
	// Name is the name in `fault`, CLAUDELESS_FAILURE and --faults.
	Name string `json:"name"`
	// Bug is the source of the report.
	Bug string `json:"bug"`
	// Real describes what the real CLI did.
	Real string `json:"real"`
	// Caller describes what a caller should do.
	Caller string `json:"caller"`
	// Face is "cli", "api" or "screen"; the second kind needs the Messages API, the third an interactive terminal.
	Face string `json:"face"`
	// Truth is how a caller may end: "success" (nothing is lost), "failure" (the answer did not arrive) or
	// "either".
	Truth string `json:"truth"`
	// RealTruth is Truth for a real claude under this fault, which may recover from it; empty = the same.
	RealTruth string `json:"real_truth"`
	// Do is the effect on the process.
	Do FaultEffects `json:"do"`
}

// FaultEffects are the possible effects of a fault. For a run without a result line, the only line of output counts
// as the result.
type FaultEffects struct {
	HangAfterResult bool    `json:"hang_after_result"` // the process does not end
	IgnoreSIGTERM   bool    `json:"ignore_sigterm"`
	StallAfter      int     `json:"stall_after"` // lines; after them no output and no end of output
	DropResult      bool    `json:"drop_result"`
	CutResult       bool    `json:"cut_result"` // half of it, without a newline
	RepeatResult    bool    `json:"repeat_result"`
	DelayResult     float64 `json:"delay_result"` // seconds
	HoldAll         float64 `json:"hold_all"`     // seconds by which all output is delayed
	Array           bool    `json:"array"`        // one JSON array instead of lines
	CRLF            bool    `json:"crlf"`
	ReverseKeys     bool    `json:"reverse_keys"`
	Insert          string  `json:"insert"`       // text of a line before the result
	InsertTimes     int     `json:"insert_times"` // how often; 0 = once
	Pieces          bool    `json:"pieces"`       // writes end in the middle of characters
	StderrBytes     int     `json:"stderr_bytes"` // resultCount before the result
	Lie             string  `json:"lie"`          // text of the result, which claims success
	ExitCode        *int    `json:"exit_code"`    // instead of the real one
	Failure         string  `json:"failure"`      // of every request, as in --failure
	ZeroUsage       bool    `json:"zero_usage"`   // the result has no output tokens
	Stream          string  `json:"stream"`       // effect on API streams (a stream_fault), which replaces the effects above if set
}

//go:embed faults
var faultFiles embed.FS

// Faults returns the catalogue, sorted by name.
func Faults() ([]Fault, error) {
	entries, err := faultFiles.ReadDir("faults")
	if err != nil {
		return nil, err
	}
	faults := make([]Fault, 0, len(entries))
	for _, entry := range entries {
		raw, err := faultFiles.ReadFile(path.Join("faults", entry.Name()))
		if err != nil {
			return nil, err
		}
		var f Fault
		if err := json.Unmarshal(raw, &f); err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Name, b.Name) })
	return faults, nil
}

// NoFault is the name for no fault; Attended also means no fault, for a process whose end is recorded.
const (
	NoFault  = "none"
	Attended = "attended"
)

// FaultByName finds a fault; nil = unknown. Hyphens and underscores are equivalent.
func FaultByName(name string) *Fault {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	raw, err := faultFiles.ReadFile(path.Join("faults", name+".json"))
	var f Fault
	if err != nil || json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return &f
}
