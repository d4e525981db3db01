package procio

import (
	"embed"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Fault is something that the real CLI has done to its callers.
type Fault struct {
	// Name is what `fault`, CLAUDELESS_FAILURE and --faults call it.
	Name string `json:"name"`
	// Bug is where it was met.
	Bug string `json:"bug"`
	// Real is what the real CLI did.
	Real string `json:"real"`
	// Caller is what a caller should do.
	Caller string `json:"caller"`
	// Face is "cli" or "api": the second kind needs the Messages API.
	Face string `json:"face"`
	// Truth is how a caller may end: "success" (nothing is lost), "failure" (what
	// it was after did not come) or "either".
	Truth string `json:"truth"`
	// RealTruth is Truth where a real claude meets the fault, which it may cope with;
	// empty = the same.
	RealTruth string `json:"real_truth"`
	// Do says what happens at the edge of the process.
	Do FaultEffects `json:"do"`
}

// FaultEffects is the vocabulary of faults at the edge. A run without a result line is
// spoiled in the same way: its only line counts as the result.
type FaultEffects struct {
	HangAfterResult bool    `json:"hang_after_result"` // the process does not end
	IgnoreSIGTERM   bool    `json:"ignore_sigterm"`
	StallAfter      int     `json:"stall_after"` // lines; then nothing comes any more, and no end
	DropResult      bool    `json:"drop_result"`
	CutResult       bool    `json:"cut_result"` // half of it, without a newline
	RepeatResult    bool    `json:"repeat_result"`
	DelayResult     float64 `json:"delay_result"` // seconds
	HoldAll         float64 `json:"hold_all"`     // seconds; everything comes after them
	Array           bool    `json:"array"`        // one JSON array in place of lines
	CRLF            bool    `json:"crlf"`
	ReverseKeys     bool    `json:"reverse_keys"`
	Insert          string  `json:"insert"`       // text of a line before the result
	InsertTimes     int     `json:"insert_times"` // that often; 0 = once
	Pieces          bool    `json:"pieces"`       // writes are cut inside of characters
	StderrBytes     int     `json:"stderr_bytes"` // written before the result
	Lie             string  `json:"lie"`          // text of the result, which calls itself a success
	ExitCode        *int    `json:"exit_code"`    // in place of the real one
	Failure         string  `json:"failure"`      // of every request, as --failure names it
	ZeroUsage       bool    `json:"zero_usage"`   // the result has no output tokens
	Stream          string  `json:"stream"`       // what the API does to its streams, in place of the above, where there is one: the fault of a stream_fault
}

//go:embed faults
var faultFiles embed.FS

// Faults is the catalogue, by name.
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

// NoFault is the name of none; Attended is that of none, too, of a process that
// somebody waits for.
const (
	NoFault  = "none"
	Attended = "attended"
)

// FaultByName finds a fault; nil = there is none. Hyphens and underscores are
// alike.
func FaultByName(name string) *Fault {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	raw, err := faultFiles.ReadFile(path.Join("faults", name+".json"))
	var f Fault
	if err != nil || json.Unmarshal(raw, &f) != nil {
		return nil
	}
	return &f
}
