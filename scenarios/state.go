package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// savedState is a session's state between processes. A rule is identified by its index and its pattern's fingerprint.
type savedState struct {
	Version int                            `json:"version"`
	Turns   int                            `json:"turns"`
	Counts  map[string]savedRuleMatchCount `json:"counts,omitempty"`
	Active  *savedTurnSequence             `json:"active,omitempty"`
	Running *savedResponse                 `json:"running,omitempty"`
}

type savedRuleMatchCount struct {
	Pattern string `json:"pattern"`
	Matches int    `json:"matches"`
}

type savedTurnSequence struct {
	Rule    int               `json:"rule"`
	Pattern string            `json:"pattern"`
	Next    int               `json:"next"`
	Groups  map[string]string `json:"groups,omitempty"`
}

// savedResponse is a response that waits for the results of its calls. The next process continues it when they arrive.
type savedResponse struct {
	Rule    int                   `json:"rule"` // -1 means default_response
	Turn    int                   `json:"turn"` // -1 means the rule's own response
	Pattern string                `json:"pattern,omitempty"`
	Step    int                   `json:"step"` // index of the next step
	Prompt  string                `json:"prompt"`
	Match   map[string]string     `json:"match,omitempty"` // by number and by name
	Results []fill.ToolCallResult `json:"results,omitempty"`
}

// State returns, as JSON, the state that the next process of the session restores: match counts, the active turn
// sequence, and a response that waits for results.
func (e *Engine) State() ([]byte, error) {
	st := savedState{Version: 1, Turns: e.promptCount, Counts: map[string]savedRuleMatchCount{}}
	for i, n := range e.matchCounts {
		st.Counts[strconv.Itoa(i)] = savedRuleMatchCount{Pattern: e.patternFingerprint(i), Matches: n}
	}
	if e.activeSequence != nil {
		st.Active = &savedTurnSequence{Rule: e.activeSequence.rule, Pattern: e.patternFingerprint(e.activeSequence.rule), Next: e.activeSequence.nextTurn, Groups: e.activeSequence.groups}
	}
	if e.activeResponse != nil && e.activeResponse.awaitsResults {
		st.Running = e.newSavedResponse(e.activeResponse)
	}
	return json.Marshal(st)
}

func (e *Engine) newSavedResponse(r *activeResponse) *savedResponse {
	h := r.rule
	out := &savedResponse{Rule: h.rule, Turn: h.turn, Step: r.nextStep, Match: map[string]string{}, Results: h.scope.Results}
	if h.rule >= 0 {
		out.Pattern = e.patternFingerprint(h.rule)
	}
	out.Prompt, _ = h.scope.Vars["prompt"].(string)
	for key, text := range h.scope.Match {
		out.Match[fmt.Sprint(key)], _ = text.(string)
	}
	return out
}

// restoreResponse continues with a saved response of a rule. It returns false if the scenario no longer has this response.
func (e *Engine) restoreResponse(r *savedResponse) bool {
	h := &matchedRule{rule: r.Rule, turn: r.Turn, response: e.scenario.DefaultResponse, ref: e.defaultRuleRef()}
	src, groups := e.scenario.source, ""
	if r.Rule >= 0 {
		if !e.isSameRule(r.Rule, r.Pattern) || r.Turn >= len(e.scenario.Responses[r.Rule].Turns) {
			return false
		}
		rule := &e.scenario.Responses[r.Rule]
		compiled := &rule.compiledRule
		h.response, h.ref = rule.Response, e.ruleRef(r.Rule, r.Turn)
		if r.Turn >= 0 {
			h.response, compiled = rule.Turns[r.Turn].Response, &rule.Turns[r.Turn].compiledRule
		}
		src, groups = compiled.source, compiled.groups
	}
	if h.response == nil || r.Step < 0 || r.Step > len(stepsWithTextAfterCalls(h.response)) {
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
		r.Results[i].Content, r.Results[i].Structured = plainjson.NormalizeNumbersInPlace(r.Results[i].Content), plainjson.NormalizeNumbersInPlace(r.Results[i].Structured)
	}
	h.scope = &fill.Scope{Library: e.scenario.library, Source: src, Groups: groups, Results: r.Results, Match: match, Vars: map[string]any{"prompt": r.Prompt}}
	e.activeResponse = newActiveResponse(h)
	e.activeResponse.nextStep, e.activeResponse.awaitsResults = r.Step, true
	return true
}

// RestoreReportingDroppedParts restores a state returned by [Engine.State]. Parts that do not fit the current scenario are dropped. Restore
// then restores the other parts and returns an error with the number of dropped parts.
func (e *Engine) RestoreReportingDroppedParts(data []byte) error {
	var st savedState
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // the results may contain large numbers
	if err := dec.Decode(&st); err != nil {
		return fmt.Errorf("restoring the saved state of the scenario: %w", err)
	}
	if st.Version != 1 {
		return fmt.Errorf("the state of the scenario was saved in format %d, which this claudeless cannot read: start a new session", st.Version)
	}
	stale := 0
	e.promptCount, e.matchCounts, e.activeSequence, e.activeResponse = max(0, st.Turns), map[int]int{}, nil, nil
	for key, c := range st.Counts {
		i, err := strconv.Atoi(key)
		if err != nil || !e.isSameRule(i, c.Pattern) || c.Matches < 0 {
			stale++
			continue
		}
		e.matchCounts[i] = c.Matches
	}
	if a := st.Active; a != nil {
		if e.isSameRule(a.Rule, a.Pattern) && a.Next >= 0 && a.Next < len(e.scenario.Responses[a.Rule].Turns) {
			e.activeSequence = &activeSequence{rule: a.Rule, nextTurn: a.Next, groups: a.Groups}
		} else {
			stale++
		}
	}
	if r := st.Running; r != nil && !e.restoreResponse(r) {
		stale++
	}
	if stale > 0 {
		return fmt.Errorf("the scenario has changed since the session was saved: %d saved rule positions no longer exist and are reset", stale)
	}
	return nil
}

func (e *Engine) isSameRule(i int, fingerprint string) bool {
	return i >= 0 && i < len(e.scenario.Responses) && e.patternFingerprint(i) == fingerprint
}

func (e *Engine) patternFingerprint(rule int) string {
	h := fnv.New64a()
	fmt.Fprint(h, e.scenario.Responses[rule].Pattern.String())
	return strconv.FormatUint(h.Sum64(), 16)
}

// Fork returns an independent copy of the engine without sub-agents. Several goroutines may call
// Fork at the same time, but not while another method of the engine runs.
func (e *Engine) Fork() (independentCopy *Engine) {
	n := &Engine{
		scenario: e.scenario, options: e.options, env: e.env, promptCount: e.promptCount, matchCounts: maps.Clone(e.matchCounts), activeSequence: e.activeSequence, subagentScript: e.subagentScript,
		unmetResults: &unmetToolResultExpectations{all: e.unmetResults.list()}, lastText: e.lastText, consecutiveNotices: e.consecutiveNotices,
	}
	if e.activeResponse != nil {
		run := *e.activeResponse
		h := *run.rule
		h.scope = h.scope.Fork()
		run.rule = &h
		n.activeResponse = &run
	}
	if e.subagentScript != nil {
		h := *e.subagentScript
		h.scope = h.scope.Fork()
		n.subagentScript = &h
	}
	return n
}

// NextUnplayedStep describes the next unplayed step of the last response, and returns the step's position. ok is false if no step remains,
// if no rule answered, or if a scripted failure ended the response.
func (e *Engine) NextUnplayedStep(ctx context.Context) (text string, at diag.Position, ok bool) {
	r := e.activeResponse
	if r == nil || r.hasFailed || r.rule.failure != nil || r.rule.ref.Name == "" {
		return "", diag.Position{}, false
	}
	if more, err := r.hasMoreReplies(ctx); err != nil || !more {
		return "", diag.Position{}, false
	}
	at = diag.Position{File: r.rule.ref.File, Line: r.rule.ref.Line}
	if r.nextStep >= len(r.steps) {
		return r.rule.ref.Name + ": the message after the last results", at, true
	}
	if r.rule.response != nil && len(r.rule.response.Steps) > 0 && r.rule.rule >= 0 {
		at = e.positionOfRuleOrTurn(r.rule.rule, r.rule.turn, "response", "steps", r.nextStep)
	}
	return fmt.Sprintf("%s: step %d of %d", r.rule.ref.Name, r.nextStep+1, len(r.steps)), at, true
}
