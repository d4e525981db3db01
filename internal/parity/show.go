package parity

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Show formats two recordings as they are compared, line by line.
func Show(name string, ours, theirs *Recording) string {
	var b strings.Builder
	for i, r := range []*Recording{ours, theirs} {
		fmt.Fprintf(&b, "-- %s, %s --\n", name, [2]string{"ours", "real"}[i])
		r.show(&b)
	}
	return b.String()
}

func (r *Recording) show(b *strings.Builder) {
	n := New(Options{Paths: r.Paths})
	stream := func(name string, events []event, rank map[string]int) {
		sortByCall(events, rank)
		for _, e := range events {
			fmt.Fprintf(b, "%s %s %s\n", name, e.kind, n.formatValue(e.value))
		}
	}
	rank, several := map[string]int{}, false
	for _, run := range r.Runs {
		events := eventsOf(run.Stdout)
		rank = callOrder(events)
		several = sortByAgent(events, rank) || several
		stream("stdout", events, rank)
		if run.Stderr != "" {
			fmt.Fprintf(b, "stderr %s\n", n.Text(strings.TrimSpace(run.Stderr)))
		}
		fmt.Fprintf(b, "exit %s\n", run.exitStatus())
	}
	stream("hooks", eventsFrom(r.Hooks), rank)
	for _, name := range keysOf(r.MCP) {
		stream("mcp "+name, parseMCPEvents(r.MCP[name]), rank)
	}
	files := map[string][]json.RawMessage{}
	for name, list := range r.Transcripts {
		files[n.Text(name)] = list
	}
	for _, name := range keysOf(files) {
		stream("transcript "+name, keepLastStates(eventsFrom(files[name])), rank)
	}
	stream("requests", modelRequests(r.Requests, several), rank)
	for _, name := range keysOf(r.Files) {
		fmt.Fprintf(b, "file %s %q\n", n.Text(name), n.Text(r.Files[name]))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(b, "problem %s %s\n", p.Kind, p.Text)
	}
}
