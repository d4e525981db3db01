package parity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Recording is what one lane did with one case.
type Recording struct {
	Runs []Run `json:"runs"`
	// Hooks are the payloads that the recording hook was given, in their order.
	Hooks []json.RawMessage `json:"hooks,omitempty"`
	// MCP is the traffic of the fixture servers, by their names.
	MCP map[string][]json.RawMessage `json:"mcp,omitempty"`
	// Files are those of the working directory afterwards, by path.
	Files map[string]string `json:"files,omitempty"`
	// Transcripts are the session files, by path below the directory of projects.
	Transcripts map[string][]json.RawMessage `json:"transcripts,omitempty"`
	// Requests are what the model was asked, as folded.
	Requests []json.RawMessage `json:"requests,omitempty"`
	// Problems are what kept the lane from its end: "timeout", "network", "start",
	// "dialogue", with words for people.
	Problems []Problem `json:"problems,omitempty"`
	// Paths are directories and the words that stand for them.
	Paths map[string]string `json:"paths,omitempty"`
	Took  time.Duration     `json:"took"`
}

// Run is one call of the program.
type Run struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// Problem is something that no lane should do.
type Problem struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Difference is one thing that the lanes did not do alike.
type Difference struct {
	// Path names the place: "stdout.system/init.tools", "exit", "files.a.txt". Indexes
	// of events and lists are left out.
	Path string `json:"path"`
	// Ours and Real are the two sides, normalised; empty = there is nothing.
	Ours string `json:"ours,omitempty"`
	Real string `json:"real,omitempty"`
	// Event is the number of the first event, from 1; 0 = it is none.
	Event int `json:"event,omitempty"`
	// Count is how often it occurs.
	Count int `json:"count,omitempty"`
	// Known is the reason of the entry that excuses it.
	Known string `json:"known,omitempty"`
}

// TimedOut says which of two recordings end at a time limit; nil = neither.
func TimedOut(ours, theirs *Recording) (why []string) {
	for _, side := range []*Recording{ours, theirs} {
		for _, p := range side.Problems {
			if p.Kind == "timeout" {
				why = append(why, p.Text)
			}
		}
	}
	return why
}

// Refused says with which words both programs refuse to start; "" = at least one of them starts.
func Refused(ours, theirs *Recording) string {
	if !ours.refused() || !theirs.refused() {
		return ""
	}
	last := theirs.Runs[len(theirs.Runs)-1]
	first, _, _ := strings.Cut(strings.TrimSpace(last.Stderr+last.Stdout), "\n")
	return fmt.Sprintf("both programs refuse to start, with exit code %d: %s", last.Code, first)
}

// refused reports whether every run failed before the session began.
func (r *Recording) refused() bool {
	if len(r.Requests) > 0 || len(r.Hooks) > 0 || len(r.MCP) > 0 || len(r.Transcripts) > 0 || len(r.Runs) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Code == 0 || run.Signal != "" || strings.Contains(run.Stdout, `"type":`)
	})
}
