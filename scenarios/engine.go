package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/eval"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// EngineOptions configure an engine in addition to the scenario. The zero value is valid.
type EngineOptions struct {
	Env     []string    // `env` in expressions, as "K=V". If a key occurs several times, the last value is used.
	Args    []string    // `args` in expressions: the arguments of the program
	CWD     string      // `cwd` in expressions
	Counter RuleCounter // shared by all engines of the run; nil means that the run has only this engine
	Failure *Failure    // failure of every answer without its own failure; nil means that these answers succeed
}

// Engine answers the requests of one session to the model. It is not safe for concurrent use.
type Engine struct {
	scenario *Scenario
	options  EngineOptions
	env      map[string]string

	promptCount    int             // number of user prompts so far
	matchCounts    map[int]int     // number of matches of each rule
	activeSequence *activeSequence // nil means no turn is expected
	endedSequence  *activeSequence // the sequence that the last prompt ended because it did not match the next turn; nil means none
	activeResponse *activeResponse // nil means no response to continue
	unmetResults   *unmetToolResultExpectations
	subagentScript *matchedRule // the script of a sub-agent, which answers its first prompt; nil means that only rules answer

	lastText           string      // text of the last reply with text
	consecutiveNotices map[int]int // index of a rule → number of prompts of the CLI that the rule answered with calls since the user's last prompt
}

type activeSequence struct {
	rule, nextTurn int
	groups         map[string]string // named captures of the prompts so far
}

// NewEngine creates an engine for a new session. If s was built in Go, NewEngine compiles it, and panics if s is invalid.
func NewEngine(s *Scenario, o EngineOptions) *Engine {
	if s.library == nil {
		if err := s.Compile(); err != nil {
			panic("scenarios: " + err.Error())
		}
	}
	e := &Engine{scenario: s, options: o, matchCounts: map[int]int{}, env: make(map[string]string, len(o.Env)), unmetResults: new(unmetToolResultExpectations)}
	for _, kv := range o.Env {
		if key, value, ok := strings.Cut(kv, "="); ok {
			e.env[key] = value
		}
	}
	return e
}

// SetPromptCount sets the number of prompts so far, which changes after /clear or if the history is shortened. Rules keep their counts.
func (e *Engine) SetPromptCount(n int) { e.promptCount = n }

// RuleEvaluationError reports that an expression or a template of a rule failed at run time.
type RuleEvaluationError struct {
	Rule RuleLocation
	Err  error
}

func (e *RuleEvaluationError) Error() string { return e.Rule.String() + ": " + e.Err.Error() }

func (e *RuleEvaluationError) Unwrap() error { return e.Err }

// Next returns the reply to one request. The error is a [*RuleEvaluationError] if an expression fails; otherwise
// it comes from ctx or from the counter of rules. A scripted failure is part of the reply, not an error.
func (e *Engine) Next(ctx context.Context, r Request) (Reply, error) {
	ctx = eval.WithOutputLimitAndMissingPaths(ctx)
	reply, err := e.nextReply(ctx, r)
	if err == nil && reply.Failure == nil {
		reply.Failure = e.options.Failure
	}
	e.recordLastReplyText(r, reply)
	reply.Missing = eval.MissingPathsOfEvaluatedExpressions(ctx)
	return reply, err
}

func (e *Engine) nextReply(ctx context.Context, r Request) (Reply, error) {
	if err := ctx.Err(); err != nil {
		return Reply{}, err
	}
	if r.SideKind != "" {
		return Reply{Blocks: []protocol.Block{protocol.Text(e.answerSideRequest(r.SideKind))}}, nil
	}
	if r.Results != nil {
		return e.nextReplyAfterToolResults(ctx, r)
	}
	if !r.IsInjected {
		e.promptCount++
		e.consecutiveNotices = nil
	}
	e.activeResponse = nil
	h, err := e.takeSubagentScript(r), error(nil)
	if h == nil {
		h, err = e.takeTurnRuleOrDefault(ctx, r)
	}
	if err != nil {
		return Reply{}, err
	}
	if endless := e.countAndDetectNotificationLoop(r, h); endless || r.IsNotification && h.ref.Name == "" {
		return Reply{Blocks: []protocol.Block{protocol.Text(e.lastText)}, Rule: h.ref, IsUnmatched: !endless, IsEndless: endless}, nil
	}
	e.activeResponse = newActiveResponse(h)
	reply, err := e.activeResponse.nextReply(ctx)
	if err != nil {
		return Reply{}, e.newScriptErrorAtLatestStep(e.activeResponse, err)
	}
	if h.rule >= 0 && h.turn < 0 && reply.Fault == "" {
		reply.Fault = e.scenario.Responses[h.rule].Fault
	}
	reply.IsUnmatched = h.ref.Name == "" || h.ref.Name == defaultRuleName
	if h.ref.Name == "" && e.scenario.Unmatched == "error" {
		reply.NearMisses = e.ExplainNearMisses(r)
	}
	if h.failure != nil {
		f, err := renderFailure(ctx, h.scope, h.failure)
		if err != nil {
			return reply, &RuleEvaluationError{h.ref, err}
		}
		reply.Failure = f
	}
	return reply, nil
}

// recordLastReplyText stores the text of a reply in e.lastText. If the CLI later writes a prompt
// that no rule answers, the engine repeats this text.
func (e *Engine) recordLastReplyText(r Request, reply Reply) {
	if r.SideKind != "" || reply.Failure != nil {
		return
	}
	for _, b := range reply.Blocks {
		if text, ok := b.(protocol.TextBlock); ok && text.Text != "" {
			e.lastText = text.Text
		}
	}
}

// countAndDetectNotificationLoop counts an answer to a prompt of the CLI if the answer has tool calls. It reports whether the rule has now
// given more than maxNotificationsInRowAnsweredWithToolCalls such answers in a row. The calls can cause more prompts of the CLI, without
// an end. It counts nothing and returns false for a rule with once or max_matches.
func (e *Engine) countAndDetectNotificationLoop(promptRequest Request, answeringRule *matchedRule) bool {
	if !promptRequest.IsNotification || answeringRule.ref.Name == "" || answeringRule.rule >= 0 && (e.scenario.Responses[answeringRule.rule].Once || e.scenario.Responses[answeringRule.rule].MaxMatches != nil) {
		return false
	}
	if !slices.ContainsFunc(stepsWithTextAfterCalls(answeringRule.response), func(s Step) bool { return len(s.ToolCalls) > 0 || len(s.Blocks) > 0 }) {
		return false
	}
	rounds := map[int]int{} // a copy, because forks share the old map
	maps.Copy(rounds, e.consecutiveNotices)
	rounds[answeringRule.rule]++
	e.consecutiveNotices = rounds
	return rounds[answeringRule.rule] > maxNotificationsInRowAnsweredWithToolCalls
}

// answerSideRequest returns the scripted answer to a request outside the conversation, or a default summary.
func (e *Engine) answerSideRequest(kind string) string {
	if text, ok := e.scenario.API.SideRequestAnswer(kind); ok {
		return text
	}
	answered := strconv.Itoa(e.promptCount) + " prompts and each was"
	if e.promptCount == 1 {
		answered = "one prompt and it was"
	}
	return "<summary>\nThe user sent " + answered + " answered.\n</summary>"
}

// nextReplyAfterToolResults returns the next message of the active response, after the results of its tool calls.
func (e *Engine) nextReplyAfterToolResults(ctx context.Context, requestWithResults Request) (Reply, error) {
	run := e.activeResponse
	if run == nil {
		return Reply{Blocks: singleEmptyTextBlock()}, nil
	}
	for i, want := range run.callsAwaitingResults {
		if want.Expect != nil && i < len(requestWithResults.Results) {
			e.recordResultIfUnmet(want, requestWithResults.Results[i])
		}
	}
	vars := e.requestVariables(requestWithResults)
	sc := run.rule.scope
	vars["prompt"] = sc.Vars["prompt"]
	sc.Vars, sc.Results = vars, append(sc.Results, e.convertResults(requestWithResults.Results)...)
	reply, err := run.nextReply(ctx)
	if err != nil {
		return Reply{}, e.newScriptErrorAtLatestStep(run, err)
	}
	return reply, nil
}

// takeTurnRuleOrDefault returns what answers a prompt: a turn, a rule or the default. An answer of a rule counts as a match of the rule.
func (e *Engine) takeTurnRuleOrDefault(ctx context.Context, r Request) (*matchedRule, error) {
	vars := e.requestVariables(r)
	if !r.IsInjected {
		e.endedSequence = nil
	}
	if e.activeSequence != nil && (!r.IsInjected || r.IsNotification) {
		if h, err := e.takeExpectedTurn(ctx, r, vars); h != nil || err != nil {
			return h, err
		}
		if !r.IsInjected {
			e.endedSequence, e.activeSequence = e.activeSequence, nil
		}
	}
	for i := range e.scenario.candidateRules(r.Prompt) {
		rule := &e.scenario.Responses[i]
		if limit := rule.maxAnsweredPrompts(); limit >= 0 && e.matchCounts[i] >= limit || !rule.canAnswerPrompt(r.IsNotification) {
			continue
		}
		c, ok := rule.match.Match(r.Prompt)
		if !ok {
			continue
		}
		sc := e.newScope(&rule.compiledRule, c, vars)
		if ok, err := sc.EvaluateCondition(ctx, rule.When); err != nil {
			return nil, &RuleEvaluationError{e.ruleRef(i, -1), err}
		} else if !ok {
			continue
		}
		if mine, err := e.reserveMatchInRun(r, i); err != nil {
			return nil, fmt.Errorf("%s: %w", e.ruleRef(i, -1), err)
		} else if !mine {
			continue
		}
		e.matchCounts[i]++
		if len(rule.Turns) > 0 && !r.IsInjected {
			e.activeSequence = &activeSequence{rule: i, groups: sc.NamedGroups()}
		}
		return &matchedRule{ref: e.ruleRef(i, -1), rule: i, turn: -1, response: rule.Response, failure: rule.Failure, scope: sc}, nil
	}
	return e.defaultAnswer(vars), nil
}

// defaultAnswer returns the answer to a prompt that no rule matches. It has no response if the scenario has no default.
func (e *Engine) defaultAnswer(vars map[string]any) *matchedRule {
	sc := &fill.Scope{Library: e.scenario.library, Source: e.scenario.source, Match: map[any]any{}, Vars: vars}
	if e.scenario.DefaultResponse == nil {
		return &matchedRule{rule: -1, turn: -1, scope: sc}
	}
	return &matchedRule{ref: e.defaultRuleRef(), rule: -1, turn: -1, response: e.scenario.DefaultResponse, scope: sc}
}

// reserveMatchInRun reserves a match of a rule that has a limit for the whole run. It returns false if the limit is reached.
func (e *Engine) reserveMatchInRun(r Request, rule int) (bool, error) {
	claims := e.options.Counter
	if r.Counter != nil {
		claims = r.Counter
	}
	limit := e.scenario.Responses[rule].maxAnsweredPrompts()
	if limit < 0 || claims == nil {
		return true, nil
	}
	n, err := claims.Next(e.ruleRef(rule, -1).String(), e.matchCounts[rule])
	return n <= limit, err
}

// takeExpectedTurn returns the expected turn of the active sequence if the prompt matches it, and advances the sequence;
// otherwise it returns nil.
func (e *Engine) takeExpectedTurn(ctx context.Context, r Request, vars map[string]any) (matched *matchedRule, err error) {
	at := *e.activeSequence
	turns := e.scenario.Responses[at.rule].Turns
	turn := &turns[at.nextTurn]
	c, ok := turn.match.Match(r.Prompt)
	if !ok || !turn.canAnswerPrompt(r.IsNotification) {
		return nil, nil
	}
	sc := e.newScope(&turn.compiledRule, c, vars)
	sc.InheritGroups(at.groups)
	if ok, err := sc.EvaluateCondition(ctx, turn.When); err != nil {
		return nil, &RuleEvaluationError{e.ruleRef(at.rule, at.nextTurn), err}
	} else if !ok {
		return nil, nil
	}
	e.activeSequence = &activeSequence{rule: at.rule, nextTurn: at.nextTurn + 1, groups: sc.NamedGroups()}
	if e.activeSequence.nextTurn == len(turns) {
		e.activeSequence = nil
	}
	return &matchedRule{ref: e.ruleRef(at.rule, at.nextTurn), rule: at.rule, turn: at.nextTurn, response: turn.Response, failure: turn.Failure, scope: sc}, nil
}

func (e *Engine) newScope(r *compiledRule, c match.Captures, vars map[string]any) *fill.Scope {
	groups := map[any]any{}
	for i, text := range c.Groups {
		groups[i] = text
		if i < len(c.Names) && c.Names[i] != "" {
			if _, twice := groups[c.Names[i]]; !twice || text != "" {
				groups[c.Names[i]] = text
			}
		}
	}
	return &fill.Scope{Library: e.scenario.library, Source: r.source, Groups: r.groups, Match: groups, Vars: vars}
}

// requestVariables returns the variables of expressions that depend on the request: all except match and results.
func (e *Engine) requestVariables(r Request) map[string]any {
	v := r.Vars
	session := v.Session
	session.Turn = cmp.Or(session.Turn, e.promptCount)
	schemas := map[string]any{}
	if e.scenario.library.UsesPerRequestVariable("schemas") {
		for name, raw := range v.Schemas {
			schemas[name] = plainjson.DecodeForExpressions(raw)
		}
	}
	vars := map[string]any{
		"prompt": r.Prompt, "turn": session.Turn, "context": v.Context, "tools": v.Tools, "model": v.Model,
		"permission_mode": v.PermissionMode, "system_prompt": v.SystemPrompt, "cwd": cmp.Or(v.CWD, e.options.CWD), "env": e.env,
		"args": e.options.Args, "session": map[string]any{"id": session.ID, "resumed": session.IsResumed, "turn": session.Turn}, "schemas": schemas,
	}
	if slices.ContainsFunc(fill.RequestPropertyVariables(), e.scenario.library.UsesPerRequestVariable) {
		v.Call.addVariables(vars)
	}
	vars["system"] = v.SystemPrompt
	return vars
}

func (e *Engine) defaultRuleRef() RuleLocation {
	pos := e.scenario.source.Index.Pos(diag.Path{defaultRuleName})
	return RuleLocation{Name: defaultRuleName, File: pos.File, Line: pos.Line}
}

// ruleRef returns the name of a rule, or of one of its turns if turn is not negative.
func (e *Engine) ruleRef(rule, turn int) RuleLocation {
	ref := RuleLocation{Name: zeroBasedRuleName(rule)}
	if turn >= 0 {
		ref.Name += ".turns[" + strconv.Itoa(turn) + "]"
	}
	pos := e.positionOfRuleOrTurn(rule, turn)
	ref.File, ref.Line = pos.File, pos.Line
	return ref
}

// positionOfRuleOrTurn returns the position of a rule or, if turn is not negative, of its turn. part is the path of a key in it.
func (e *Engine) positionOfRuleOrTurn(rule, turn int, part ...any) diag.Position {
	r := &e.scenario.Responses[rule]
	path := diag.Path{"responses", r.index}
	if turn >= 0 {
		path = append(path, "turns", turn)
	}
	return r.source.Index.Pos(append(path, part...))
}

// newScriptErrorAtLatestStep wraps an error that occurred in the latest step of a response, with the position of the step.
func (e *Engine) newScriptErrorAtLatestStep(failedResponse *activeResponse, err error) error {
	ref := failedResponse.rule.ref
	if failedResponse.rule.rule >= 0 {
		ref.Line = e.positionOfRuleOrTurn(failedResponse.rule.rule, failedResponse.rule.turn, "response", "steps", failedResponse.nextStep-1).Line
	}
	return &RuleEvaluationError{ref, err}
}

// convertResults converts results for expressions. Their content is decoded only if an expression uses it.
func (e *Engine) convertResults(results []ToolCallResult) []fill.ToolCallResult {
	vars := make([]fill.ToolCallResult, len(results))
	for i, r := range results {
		vars[i] = fill.ToolCallResult{Text: r.Text, IsError: r.IsError, Tool: r.Tool, ID: r.ToolUseID}
		if !e.scenario.library.UsesPerRequestVariable("results") {
			continue
		}
		vars[i].Content = plainjson.DecodeForExpressions(r.Content)
		if raw, err := json.Marshal(r.Structured); err == nil && r.Structured != nil {
			vars[i].Structured = plainjson.DecodeForExpressions(raw)
		}
	}
	return vars
}

func (e *Engine) recordResultIfUnmet(scriptedCall *ToolCall, actualResult ToolCallResult) {
	t, _, err := compilePattern(scriptedCall.Expect, nil)
	if err != nil {
		return
	}
	if _, ok := t.Match(actualResult.Text); !ok {
		e.unmetResults.add(ExpectationResult{
			At:   scriptedCall.at,
			Text: fmt.Sprintf("expected the result of %s to match %s: %s; the result is %s", scriptedCall.Tool, scriptedCall.Expect, t.Explain(actualResult.Text, e.scenario.excerpts), e.scenario.excerpts.redactAndQuoteShortened(actualResult.Text)),
		})
	}
}

// unmetToolResultExpectations are the results that did not match the `expect` of their call, in the order in which they
// arrived. The engines of a session and of its sub-agents share the list and may use it at the same time.
type unmetToolResultExpectations struct {
	mu  sync.Mutex
	all []ExpectationResult
}

func (u *unmetToolResultExpectations) add(unmetExpectation ExpectationResult) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, unmetExpectation)
}

func (u *unmetToolResultExpectations) list() []ExpectationResult {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.all)
}

// NewSubagentEngine creates the engine of a sub-agent, which is a separate session. The script answers only the first prompt; the rules answer all
// later ones. If s is nil or has no steps, the rules also answer the first prompt. Several goroutines may call Subagent at the same time.
func (e *Engine) NewSubagentEngine(s *protocol.SubagentScript) *Engine {
	sub := &Engine{scenario: e.scenario, options: e.options, env: e.env, matchCounts: map[int]int{}, unmetResults: e.unmetResults}
	if s != nil {
		if script, ok := s.Steps.(*matchedRule); ok && len(script.response.Steps) > 0 {
			sub.subagentScript = script
		}
	}
	return sub
}

// UnmetResultExpectations returns the unmet expectations about results of tool calls, including those of sub-agents. Later calls only
// append to the list.
func (e *Engine) UnmetResultExpectations() []ExpectationResult { return e.unmetResults.list() }

// takeSubagentScript returns the answer to the first prompt of a scripted sub-agent; nil for other prompts.
func (e *Engine) takeSubagentScript(r Request) *matchedRule {
	h := e.subagentScript
	if h == nil {
		return nil
	}
	e.subagentScript = nil
	h.scope.Vars = e.requestVariables(r)
	return h
}

// AnswerSamplingRequest answers a sampling request of an MCP server. It uses the first answer that matches the server's
// raw name and the text of the last message, and evaluates its templates. It returns nil if no answer
// matches, and an error if an expression fails. Several goroutines may call Sample at the same time.
func (e *Engine) AnswerSamplingRequest(ctx context.Context, server, prompt string) (answer *Sampling, err error) {
	all := e.scenario.MCP.Sampling
	for i := 0; i < len(all) && answer == nil; i++ {
		a := all[i]
		c, ok := a.match.Match(prompt)
		if !ok || a.Server != "" && a.Server != server {
			continue
		}
		sc := e.newScope(&a.compiledRule, c, e.requestVariables(Request{Prompt: prompt}))
		if a.Text, err = sc.RenderText(ctx, a.Text); err == nil {
			a.Error, err = sc.RenderText(ctx, a.Error)
		}
		if err != nil {
			return nil, fmt.Errorf("mcp.sampling[%d]: %w", i, err)
		}
		answer = &a
	}
	return answer, nil
}
