package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// savedState is what a session keeps between processes. Rules are known by
// their place and a fingerprint of their pattern.
type savedState struct {
	Version int                   `json:"version"`
	Turns   int                   `json:"turns"`
	Counts  map[string]savedCount `json:"counts,omitempty"`
	Active  *savedSequence        `json:"active,omitempty"`
	Running *savedResponse        `json:"running,omitempty"`
}

type savedCount struct {
	Pattern string `json:"pattern"`
	Matches int    `json:"matches"`
}

type savedSequence struct {
	Rule    int               `json:"rule"`
	Pattern string            `json:"pattern"`
	Next    int               `json:"next"`
	Groups  map[string]string `json:"groups,omitempty"`
}

// savedResponse is an answer whose calls have no results yet: the next process
// goes on with it when it is given them.
type savedResponse struct {
	Rule    int               `json:"rule"` // -1 = default_response
	Turn    int               `json:"turn"` // -1 = the rule's own response
	Pattern string            `json:"pattern,omitempty"`
	Step    int               `json:"step"` // the next one
	Prompt  string            `json:"prompt"`
	Match   map[string]string `json:"match,omitempty"` // numbers and names
	Results []fill.Result     `json:"results,omitempty"`
}

// State returns what belongs to the session and goes on in the next process:
// match counts, the active turn sequence, and the response whose calls wait for
// their results, as JSON.
func (e *Engine) State() ([]byte, error) {
	st := savedState{Version: 1, Turns: e.turns, Counts: map[string]savedCount{}}
	for i, n := range e.counts {
		st.Counts[strconv.Itoa(i)] = savedCount{Pattern: e.fingerprint(i), Matches: n}
	}
	if e.active != nil {
		st.Active = &savedSequence{Rule: e.active.rule, Pattern: e.fingerprint(e.active.rule), Next: e.active.next, Groups: e.active.groups}
	}
	if e.running != nil && e.running.waits {
		st.Running = e.saved(e.running)
	}
	return json.Marshal(st)
}

func (e *Engine) saved(r *response) *savedResponse {
	h := r.hit
	out := &savedResponse{Rule: h.rule, Turn: h.turn, Step: r.at, Match: map[string]string{}, Results: h.scope.Results}
	if h.rule >= 0 {
		out.Pattern = e.fingerprint(h.rule)
	}
	out.Prompt, _ = h.scope.Vars["prompt"].(string)
	for key, text := range h.scope.Match {
		out.Match[fmt.Sprint(key)], _ = text.(string)
	}
	return out
}

// reopen makes a saved response the running one; false = the scenario has none
// that fits.
func (e *Engine) reopen(r *savedResponse) bool {
	h := &matchedRule{rule: r.Rule, turn: r.Turn, response: e.s.DefaultResponse, ref: e.defaultRef()}
	src, groups := e.s.source, ""
	if r.Rule >= 0 {
		if !e.isRule(r.Rule, r.Pattern) || r.Turn >= len(e.s.Responses[r.Rule].Turns) {
			return false
		}
		rule := &e.s.Responses[r.Rule]
		compiled := &rule.compiledRule
		h.response, h.ref = rule.Response, e.ref(r.Rule, r.Turn)
		if r.Turn >= 0 {
			h.response, compiled = rule.Turns[r.Turn].Response, &rule.Turns[r.Turn].compiledRule
		}
		src, groups = compiled.source, compiled.groups
	}
	if h.response == nil || r.Step < 0 || r.Step > len(stepsOf(h.response)) {
		return false
	}
	match := map[any]any{}
	for key, text := range r.Match {
		if n, err := strconv.Atoi(key); err == nil {
			match[n] = text
		} else {
			match[key] = text
		}
	}
	for i := range r.Results {
		r.Results[i].Content, r.Results[i].Structured = plainjson.Plain(r.Results[i].Content), plainjson.Plain(r.Results[i].Structured)
	}
	h.scope = &fill.Scope{
		Library: e.s.library, Source: src, Groups: groups, Results: r.Results, Match: match,
		Vars: map[string]any{"prompt": r.Prompt},
	}
	e.running = newResponse(h)
	e.running.at, e.running.waits = r.Step, true
	return true
}

// Restore goes on with a state of [Engine.State]. What no longer fits the
// scenario is left out and named in the error; the rest is taken all the same.
func (e *Engine) Restore(data []byte) error {
	var st savedState
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // in results
	if err := dec.Decode(&st); err != nil {
		return fmt.Errorf("reading the scenario's state: %w", err)
	}
	if st.Version != 1 {
		return fmt.Errorf("reading the scenario's state: unknown version %d", st.Version)
	}
	stale := 0
	e.turns, e.counts, e.active, e.running = max(0, st.Turns), map[int]int{}, nil, nil
	for key, c := range st.Counts {
		i, err := strconv.Atoi(key)
		if err != nil || !e.isRule(i, c.Pattern) || c.Matches < 0 {
			stale++
			continue
		}
		e.counts[i] = c.Matches
	}
	if a := st.Active; a != nil {
		if e.isRule(a.Rule, a.Pattern) && a.Next >= 0 && a.Next < len(e.s.Responses[a.Rule].Turns) {
			e.active = &sequence{rule: a.Rule, next: a.Next, groups: a.Groups}
		} else {
			stale++
		}
	}
	if r := st.Running; r != nil && !e.reopen(r) {
		stale++
	}
	if stale > 0 {
		return fmt.Errorf("the scenario changed since the session was saved: %d of its records no longer fit", stale)
	}
	return nil
}

func (e *Engine) isRule(i int, fingerprint string) bool {
	return i >= 0 && i < len(e.s.Responses) && e.fingerprint(i) == fingerprint
}

func (e *Engine) fingerprint(rule int) string {
	h := fnv.New64a()
	fmt.Fprint(h, e.s.Responses[rule].Pattern.String())
	return strconv.FormatUint(h.Sum64(), 16)
}

// Fork copies the engine: both go on from here, and neither sees what the other
// is asked afterwards. What was observed so far, and the sub-agents made, stay
// with the original. An engine that is only forked, and asked nothing, may be forked by many goroutines.
func (e *Engine) Fork() *Engine {
	n := &Engine{
		s: e.s, o: e.o, env: e.env, turns: e.turns, counts: maps.Clone(e.counts), active: e.active, script: e.script,
		missed: slices.Clip(e.missed),
	}
	if e.running != nil {
		run := *e.running
		h := *run.hit
		h.scope = h.scope.Fork()
		run.hit = &h
		n.running = &run
	}
	if e.script != nil {
		h := *e.script
		h.scope = h.scope.Fork()
		n.script = &h
	}
	return n
}

// Unplayed says which step of the response to the last prompt is still to come,
// and where it stands; ok is false when there is none, or when the script itself
// ended it by a failure.
func (e *Engine) Unplayed(ctx context.Context) (text string, at diag.Position, ok bool) {
	r := e.running
	if r == nil || r.failed || r.hit.failure != nil || r.hit.ref.Name == "" {
		return "", diag.Position{}, false
	}
	if more, err := r.more(ctx); err != nil || !more {
		return "", diag.Position{}, false
	}
	at = diag.Position{File: r.hit.ref.File, Line: r.hit.ref.Line}
	if r.at >= len(r.steps) {
		return r.hit.ref.Name + ": the message after the last results", at, true
	}
	if r.hit.response != nil && len(r.hit.response.Steps) > 0 && r.hit.rule >= 0 {
		rule := &e.s.Responses[r.hit.rule]
		path := diag.Path{"responses", rule.index}
		if r.hit.turn >= 0 {
			path = append(path, "turns", r.hit.turn)
		}
		at = rule.source.Index.Pos(append(path, "response", "steps", r.at))
	}
	return fmt.Sprintf("%s: step %d of %d", r.hit.ref.Name, r.at+1, len(r.steps)), at, true
}
