package compat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/debug"
)

// records returns all records, oldest first.
func (b *browser) records() []debug.Record {
	calls, err := b.hub.Records.Calls("", new(math.MaxInt))
	if err != nil {
		return nil // the limit is valid
	}
	return calls.Calls
}

// processOf returns the process of a call for use in a path. Calls without a known
// process belong to the agent's session.
func processOf(d debug.CallData) string {
	switch {
	case d.ProcessKey != "":
		return d.ProcessKey
	case d.SessionID != "":
		return "session:" + d.SessionID
	default:
		return "unknown"
	}
}

// processName returns the displayed name of a call's process.
func processName(d debug.CallData) string {
	switch {
	case d.PID == 0 && callDataOf(d.Values).PageURL != "":
		return "JS " + callDataOf(d.Values).PageURL
	case d.PID != 0 && d.SessionID != "":
		return fmt.Sprintf("%d, session %s", d.PID, d.SessionID)
	case d.PID != 0:
		return strconv.Itoa(d.PID)
	case d.SessionID != "":
		return "session " + d.SessionID
	default:
		return "unknown"
	}
}

// process is a process that made calls.
type process struct {
	Key, Name          string
	Start, First, Last float64
	Calls              int
}

func (b *browser) processes(*http.Request) (pageData, error) {
	byKey := map[string]*process{}
	for _, rec := range b.records() {
		key := processOf(rec.CallData)
		p := byKey[key]
		if p == nil {
			p = &process{Key: key, Name: processName(rec.CallData), Start: rec.ProcessStart, First: rec.StartedAt}
			byKey[key] = p
		}
		p.Calls++
		p.First, p.Last = min(p.First, rec.StartedAt), max(p.Last, rec.CompletedAt)
	}
	all := slices.Collect(maps.Values(byKey))
	slices.SortFunc(all, func(a, b *process) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), strings.Compare(a.Key, b.Key))
	})
	return pageData{name: "call-trees", Title: "Call trees", Data: all}, nil
}

// node is a call in the tree of its process.
type node struct {
	debug.Record
	Depth int
}

// Indent has one element for each level above the node.
func (n node) Indent() []struct{} { return make([]struct{}, n.Depth) }

func (b *browser) callTree(r *http.Request) (pageData, error) {
	key := r.PathValue("process")
	var mine []debug.Record
	for _, rec := range b.records() {
		if processOf(rec.CallData) == key {
			mine = append(mine, rec)
		}
	}
	if len(mine) == 0 {
		return pageData{}, missingError("No call of the process " + key + " is kept.")
	}
	var nodes []node
	for _, n := range buildTree(mine) {
		if matchesStatus(r, n.Status) && matchesSearch(r, n.Record) {
			nodes = append(nodes, n)
		}
	}
	return pageData{
		name: "call-tree", Title: "Call tree", Choices: []string{anyStatus, "success", "exception"},
		Data: struct {
			Name  string
			Nodes []node
		}{processName(mine[0].CallData), nodes},
	}, nil
}

// buildTree sorts calls by start time and puts each below the call that was running then, unless their stacks
// contradict that.
func buildTree(records []debug.Record) []node {
	slices.SortStableFunc(records, func(a, b debug.Record) int { return cmp.Compare(a.StartedAt, b.StartedAt) })
	nodes := make([]node, 0, len(records))
	type level struct {
		end    float64
		frames int
	}
	var running []level
	for _, rec := range records {
		frames := len(framesOf(rec.CallSite))
		for len(running) > 0 {
			above := running[len(running)-1]
			if rec.CompletedAt <= above.end && rec.StartedAt < above.end && (frames == 0 || above.frames == 0 || frames > above.frames) {
				break
			}
			running = running[:len(running)-1]
		}
		nodes = append(nodes, node{rec, len(running)})
		running = append(running, level{rec.CompletedAt, frames})
	}
	return nodes
}

func (b *browser) call(r *http.Request) (pageData, error) {
	id := r.PathValue("id")
	for _, rec := range b.records() {
		if rec.CallID == id {
			return b.record(rec), nil
		}
	}
	for _, p := range b.hub.Paused() {
		if p.CallData.CallID == id {
			return b.stack(p), nil
		}
	}
	for _, d := range b.hub.Running() {
		if d.CallID == id {
			return b.record(debug.Record{CallData: d, Ending: debug.Ending{Status: "running"}}), nil
		}
	}
	return pageData{}, missingError("No call " + id + " is kept.")
}

// record returns the page of a completed call.
func (b *browser) record(rec debug.Record) pageData {
	return pageData{name: "call", Title: rec.MethodName, Data: struct {
		debug.Record
		Process, ProcessName string
		Traceback            string
		Snapshots            []snapshot
		Site                 site
	}{rec, processOf(rec.CallData), processName(rec.CallData), endingOf(rec).Traceback, snapshotsOf(rec), siteOf(rec.CallID, rec.CallSite)}}
}

// frame is one entry of a call site's stack, as the client sent it.
type frame struct {
	File     string `json:"filename"`
	Line     any    `json:"lineno"`
	Function string `json:"function"`
	Code     string `json:"code_context"`
}

func framesOf(callSite json.RawMessage) []frame {
	var s struct {
		Frames []frame `json:"stack_trace"`
	}
	if json.Unmarshal(callSite, &s) != nil {
		return nil
	}
	return s.Frames
}

// site is the location of a call or a pause, with its id.
type site struct {
	ID     string
	Frames []frame
	Raw    json.RawMessage
}

func siteOf(id string, callSite json.RawMessage) site {
	return site{ID: id, Frames: framesOf(callSite), Raw: callSite}
}

func (b *browser) callStack(r *http.Request) (pageData, error) {
	p, err := b.hub.Pause(r.PathValue("id"))
	if err != nil {
		return pageData{}, missingError("No call is paused as " + r.PathValue("id") + ".")
	}
	return b.stack(p), nil
}

func (b *browser) stack(p debug.Pause) pageData {
	return pageData{name: "callstack", Title: "Call Stack of " + p.CallData.MethodName, Data: struct {
		Method, Phase string
		Site          site
	}{p.CallData.MethodName, string(p.CallData.Phase), siteOf(p.ID, p.CallData.CallSite)}}
}

// frame shows one stack frame of a pause or a call.
func (b *browser) frame(r *http.Request) (pageData, error) {
	id, text := r.PathValue("id"), r.PathValue("index")
	var frames []frame
	if p, err := b.hub.Pause(id); err == nil {
		frames = framesOf(p.CallData.CallSite)
	}
	for _, rec := range b.records() {
		if rec.CallID == id {
			frames = framesOf(rec.CallSite)
		}
	}
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(frames) {
		return pageData{}, missingError("There is no frame " + text + " of " + id + ".")
	}
	to := func(i int) string {
		if i < 0 || i >= len(frames) {
			return ""
		}
		return "/frame/" + url.PathEscape(id) + "/" + strconv.Itoa(i)
	}
	return pageData{name: "frame", Title: fmt.Sprintf("Frame %d", i), Data: struct {
		Frame          frame
		Previous, Next string
	}{frames[i], to(i - 1), to(i + 1)}}, nil
}
