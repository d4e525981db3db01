package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Recording is the recorded behaviour of one lane in one case.
type Recording struct {
	Runs []Run `json:"runs"`
	// Hooks are the payloads that the recording hook received, in order.
	Hooks []json.RawMessage `json:"hooks,omitempty"`
	// MCP is the traffic of the fixture servers, by server name.
	MCP map[string][]json.RawMessage `json:"mcp,omitempty"`
	// Files are the files of the working directory after the run, by path.
	Files map[string]string `json:"files,omitempty"`
	// Transcripts are the session files, by path below the projects directory.
	Transcripts map[string][]json.RawMessage `json:"transcripts,omitempty"`
	// Requests are the requests to the model, as decoded from the journal.
	Requests []json.RawMessage `json:"requests,omitempty"`
	// Problems are reasons why the lane did not complete: "timeout", "network",
	// "start", "dialogue", with a description.
	Problems []LaneProblem `json:"problems,omitempty"`
	// Paths maps directories to placeholders.
	Paths    map[string]string `json:"paths,omitempty"`
	Duration time.Duration     `json:"took"`
}

// Run is one execution of the program.
type Run struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// LaneProblem is a reason why a lane did not complete.
type LaneProblem struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Difference is one difference between the lanes.
type Difference struct {
	// Path names the position: "stdout.system/init.tools", "exit", "files.a.txt". It omits indexes of events and lists.
	Path string `json:"path"`
	// Ours and Real are the two values, normalised; empty means absent.
	Ours string `json:"ours,omitempty"`
	Real string `json:"real,omitempty"`
	// Event is the number of the first event with the difference, from 1; 0 means the difference is not in an event.
	Event int `json:"event,omitempty"`
	// Count is the number of occurrences.
	Count int `json:"count,omitempty"`
	// Known is the reason of the known difference that accepts this one.
	Known string `json:"known,omitempty"`
}

// TimeoutReasons describes the recordings that reached a time limit; nil means none.
func TimeoutReasons(ours, theirs *Recording) (reasons []string) {
	for _, side := range []*Recording{ours, theirs} {
		for _, p := range side.Problems {
			if p.Kind == "timeout" {
				reasons = append(reasons, p.Text)
			}
		}
	}
	return reasons
}

// CommonRefusal returns the error with which both programs refuse to start; "" means at least one of them starts.
func CommonRefusal(ours, theirs *Recording) string {
	if !ours.wasRefused() || !theirs.wasRefused() {
		return ""
	}
	last := theirs.Runs[len(theirs.Runs)-1]
	first, _, _ := strings.Cut(strings.TrimSpace(last.Stderr+last.Stdout), "\n")
	return fmt.Sprintf("both programs refuse to start, with exit code %d: %s", last.Code, first)
}

// wasRefused reports whether every run failed before the session began.
func (r *Recording) wasRefused() bool {
	if len(r.Requests) > 0 || len(r.Hooks) > 0 || len(r.MCP) > 0 || len(r.Transcripts) > 0 || len(r.Runs) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Code == 0 || run.Signal != "" || strings.Contains(run.Stdout, `"type":`)
	})
}
