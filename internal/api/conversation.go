package api

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type replayedRequest struct {
	request         *history.Request
	replay          *historyReplay
	scenarioRequest scenarios.Request
	reply           scenarios.Reply
	pace            scenarios.Stream
	message         *wire.Message
	id              string // id of the response
}

// serveConversationOrSideRequest handles a conversation or side request. It returns an error only if the response has not begun.
func (x *exchange) serveConversationOrSideRequest() error {
	r, err := x.checkHeadersAndParseRequest()
	if err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if kind := r.SideRequestKind(); kind != "" {
		x.answerRequestOutsideConversation(kind, r)
		return nil
	}
	t, err := x.replayAndJournalRequest(r)
	if err != nil {
		return err
	}
	fails := t.replay.ShouldFail()
	t.replay.recordAttemptOutcome(fails && t.reply.Failure.Type != scenarios.FailStreamFault)
	if err := x.waitAtGates(t.replay.finalState.answer.pendingGates); err != nil {
		return err
	}
	if err := x.waitScriptedDelay(t); err != nil {
		return err
	}
	defer x.writeJournalLine() // deferred, because closing the connection may panic
	if fails {
		x.sendScriptedFailure(t)
	} else {
		x.setCommonResponseHeaders(t.id)
		x.sendMessage(r, x.newStreamEvents(t, t.message), t.message)
	}
	x.countAndRecordRequest(t)
	return nil
}

// answerRequestOutsideConversation answers a request outside the conversation. It uses no rule and does not change any counts.
func (x *exchange) answerRequestOutsideConversation(sideRequestKind string, r *history.Request) {
	last := r.Messages[len(r.Messages)-1]
	text := x.server.answerTextForSideRequest(sideRequestKind, last)
	if sideRequestKind == "compact" {
		if summary, ok := x.namespace.memory.CountCompactionAndGetSummary(x.r.Context(), &x.RequestSender); ok {
			text = summary
		}
	}
	key := history.Digest{}.Chain("side", sideRequestKind, last.FirstText(), r.Model)
	m := &wire.Message{ID: x.server.replayer.ID("msg", key), Model: r.Model, StopReason: "end_turn", Blocks: []protocol.Block{protocol.Text(text)}}
	m.Usage = scenarios.EstimateUsage(scenarios.Request{Prompt: last.FirstText()}, m.Blocks)
	x.setCommonResponseHeaders(x.server.replayer.ID("req", key))
	x.sendMessage(r, m.Events(wire.StreamOptions{Pad: x.server.Scenario.API.Pad, Seed: key}), m)
	x.server.recordJournalLine(x.namespace, journal.SideRequest{
		Namespace: x.Namespace, Session: x.Session, Kind: sideRequestKind, Path: x.Path, Model: r.Model, Unclassified: sideRequestKind == "other", Status: x.sentStatus, MS: x.elapsedMS(),
	})
}

func (x *exchange) replayAndJournalRequest(r *history.Request) (*replayedRequest, error) {
	t := &replayedRequest{request: r, replay: x.server.replayer.NewHistoryReplay(x.namespace.memory, r), pace: x.server.Scenario.Stream}
	err := t.replay.Run(x.r.Context())
	x.findings = append(x.findings, t.replay.TakeFindings()...)
	x.recordScenarioErrorFindings(t.replay, err)
	var answered bool
	t.scenarioRequest, t.reply, answered = t.replay.FirstReplyOfAnswer()
	x.journalLine.Messages, x.journalLine.Attempt, x.journalLine.Prompt, x.journalLine.WrittenByCLI = t.replay.HistoryPartKinds(), t.replay.attempt, t.scenarioRequest.Prompt, t.scenarioRequest.IsInjected
	x.journalLine.Rule, x.journalLine.File, x.journalLine.Line = t.reply.Rule.Name, t.reply.Rule.File, t.reply.Rule.Line
	if err != nil || !answered {
		return nil, err
	}
	if nearest := x.nearMissesIfPromptIsRefused(t); nearest != nil {
		return nil, &history.RejectedRequestError{Status: http.StatusBadRequest, Message: strings.Join(nearest, "\n"), NoRetry: true}
	}
	if t.reply.Stream != nil {
		t.pace = *t.reply.Stream
	}
	t.message = t.replay.BuildAnswerAndUpdateMemory(x.startedAt)
	x.journalLine.NotOffered = t.replay.unofferedTools
	if text, at, _ := t.replay.finalState.engine.Fork().NextUnplayedStep(x.r.Context()); text != "" {
		x.journalLine.NextStep = &journal.Unplayed{Text: text, File: at.File, Line: at.Line}
	}
	x.findings = append(x.findings, t.replay.TakeFindings()...)
	t.id = t.replay.deriveAnswerID("req", strconv.Itoa(t.replay.attempt))
	return t, nil
}

// nearMissesIfPromptIsRefused returns why a prompt that no rule matches must not be answered. Nil means that the request can be
// answered. A text that the client itself added needs no rule.
func (x *exchange) nearMissesIfPromptIsRefused(t *replayedRequest) []string {
	switch {
	case !x.refusesUnmatchedPrompts || !t.reply.IsUnmatched || t.reply.Rule.Name != "":
		return nil
	case len(t.reply.NearMisses) > 0:
		return t.reply.NearMisses
	case t.scenarioRequest.Results != nil || t.scenarioRequest.IsInjected:
		return nil
	}
	return scenarios.NewEngine(x.server.Scenario, scenarios.EngineOptions{}).ExplainNearMisses(scenarios.Request{Prompt: t.scenarioRequest.Prompt})
}

func (x *exchange) recordScenarioErrorFindings(f *historyReplay, replayErr error) {
	note := func(found journal.Finding) {
		x.findings = append(x.findings, found.Text)
		x.server.recordJournalLine(x.namespace, found)
	}
	if broken, ok := errors.AsType[*scenarios.RuleEvaluationError](replayErr); ok && x.r.Context().Err() == nil {
		note(journal.NewFailedExpressionFinding(broken.Rule.File, broken.Rule.Line, broken.Err.Error()))
	}
	if _, reply, _ := f.FirstReplyOfAnswer(); reply.IsEndless {
		note(journal.NewEndlessRuleFinding(reply.Rule.Name, reply.Rule.File, reply.Rule.Line))
	}
	for _, m := range f.missingValues {
		note(journal.NewMissingTemplateValueFinding(m.Rule.File, m.Rule.Line, m.Path))
	}
}

func (x *exchange) newStreamEvents(t *replayedRequest, m *wire.Message) *wire.EventList {
	return m.Events(wire.StreamOptions{Pace: t.pace, Pad: x.server.Scenario.API.Pad, Seed: t.replay.HistoryDigest()})
}

func (x *exchange) waitScriptedDelay(t *replayedRequest) error {
	d := time.Duration(t.reply.DelayMS) * time.Millisecond
	if ms := x.server.Scenario.Timeouts.ResponseDelayMS; ms != nil && t.scenarioRequest.Results == nil {
		d += time.Duration(*ms) * time.Millisecond
	}
	if d <= 0 {
		return x.r.Context().Err()
	}
	return x.server.Clock.Sleep(x.r.Context(), d)
}

// waitAtGates waits at the gates of an answer. If the answer has the key `gate`, it first records that this gate was reached. It
// returns the error of the request's context. If a gate is not released in time, it records a finding and continues.
func (x *exchange) waitAtGates(pending []pendingGate) error {
	for _, h := range pending {
		at := h.After
		var err error
		if h.Gate != "" {
			at = h.Gate
			err = x.namespace.stepGates.markReached(at)
			x.recordGateInJournal(at, "reached")
		}
		if err == nil {
			err = x.namespace.stepGates.waitUntilReleasedOrTimeout(x.r.Context(), at)
		}
		if ctx := x.r.Context(); ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			x.recordGateInJournal(at, "released")
			continue
		}
		if errors.Is(err, gate.ErrGateWaitTimedOut) {
			x.recordGateInJournal(at, "timeout")
		}
		found := journal.NewUnreleasedGateFinding(at, err.Error(), "POST /_claudeless/gates/"+at+"/release", h.Rule.File, h.Rule.Line)
		x.findings = append(x.findings, found.Text)
		x.server.recordJournalLine(x.namespace, found)
	}
	return nil
}

func (x *exchange) recordGateInJournal(name, event string) {
	x.server.recordJournalLine(x.namespace, journal.Gate{Name: name, Event: event})
}

// countAndRecordRequest counts a request. If the request is not a repeated one, it also records what its last
// message reports: results that do not meet expectations, prompts that were typed while the model worked, and executed calls.
func (x *exchange) countAndRecordRequest(t *replayedRequest) {
	x.namespace.mu.Lock()
	defer x.namespace.mu.Unlock()
	x.namespace.requests++
	if t.replay.attempt > 1 {
		return
	}
	for _, m := range t.replay.UnmetResultExpectationsOfLastGroup() {
		x.namespace.unmetExpectations = append(x.namespace.unmetExpectations, m)
		x.journalLine.Unmet = append(x.journalLine.Unmet, journal.Expectation{File: m.At.File, Line: m.At.Line, Text: m.Text, Got: m.Actual})
	}
	last := &t.replay.groups[len(t.replay.groups)-1]
	for _, step := range last.Steps {
		if step.Kind == history.KindAddedPrompt {
			x.journalLine.Added = append(x.journalLine.Added, step.Text)
		}
		for _, r := range step.Results {
			for _, u := range last.Uses {
				if u.ID == r.ID {
					x.journalLine.Calls = append(x.journalLine.Calls, journal.ExecutedCall{Tool: u.Name, ToolUseID: u.ID, Input: u.Input, Result: r.Text, IsError: r.IsError, EndedTurn: step.Kind == history.KindResultsOfEndedTurn})
				}
			}
		}
	}
}

func (x *exchange) sendScriptedFailure(t *replayedRequest) {
	fail := t.reply.Failure
	x.setCommonResponseHeaders(t.id)
	x.journalLine.Error = string(fail.Type)
	switch fail.Type {
	case scenarios.FailHang:
		x.waitForClientDisconnect()
	case scenarios.FailConnectionTimeout:
		_ = x.server.Clock.Sleep(x.r.Context(), time.Duration(fail.AfterMS)*time.Millisecond) // also close if ctx ends early
		x.closeTCPConnection(closeWithTCPReset)
	case scenarios.FailNetworkUnreachable, scenarios.FailCrash:
		x.closeTCPConnection(closeWithTCPReset)
	case scenarios.FailMalformedJSON:
		if t.request.Stream {
			x.sendEvents(&wire.EventList{Events: []wire.Event{{Name: "message_start", Data: []byte(fail.Raw)}}})
			return
		}
		x.sendJSONBytes(http.StatusOK, []byte(fail.Raw))
	case scenarios.FailPartialResponse:
		x.sendPartialAnswer(t, fail)
	case scenarios.FailStreamError:
		if !t.request.Stream { // an event needs a stream
			x.sendFailureWithStatus(fail, t.id)
			return
		}
		broken := *fail
		broken.Cut = "error"
		x.sendPartialAnswer(t, &broken)
	case scenarios.FailStreamFault:
		s := x.newStreamEvents(t, t.message)
		if silent := s.InjectFault(fail.Fault); t.request.Stream && x.sendEvents(s) && silent {
			x.waitForClientDisconnect()
		} else if !t.request.Stream {
			x.sendMessage(t.request, s, t.message)
		}
	default:
		x.sendFailureWithStatus(fail, t.id)
	}
}

// sendFailureWithStatus sends a failure that has an HTTP status.
func (x *exchange) sendFailureWithStatus(fail *scenarios.Failure, id string) {
	e, h := fail.APIError(), x.w.Header()
	x.journalLine.Error = e.Message
	switch fail.Type {
	case scenarios.FailRateLimit:
		h.Set("Retry-After", strconv.Itoa(fail.RetryAfter))
		reset := x.startedAt.UTC().Add(time.Duration(fail.RetryAfter) * time.Second).Format(time.RFC3339)
		h.Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		h.Set("Anthropic-Ratelimit-Requests-Reset", reset)
	case scenarios.FailAuthError, scenarios.FailOutOfCredits, scenarios.FailPromptTooLong:
		if !x.IsClaudeCode() || fail.Type != scenarios.FailAuthError { // Claude Code retries after status 401
			h.Set("X-Should-Retry", "false")
		}
	default:
	}
	x.sendJSON(e.Status, wire.NewErrorResponse(e, fail.APIErrorDetailCode(), id))
}

func (x *exchange) sendPartialAnswer(t *replayedRequest, fail *scenarios.Failure) {
	m := *t.message
	m.Blocks = []protocol.Block{protocol.Text(fail.PartialText)}
	if !t.request.Stream {
		x.sendPartialBody(&m, fail.Cut)
		return
	}
	s := x.newStreamEvents(t, &m)
	s.Events = s.Events[:len(s.Events)-3] // block, message and stream stay open
	if fail.Cut == "error" {
		e := scenarios.APIError{Status: 529, Message: "Overloaded"}
		if fail.Type == scenarios.FailStreamError {
			e = fail.APIError()
		}
		s.Add("error", wire.NewErrorResponse(e, "", x.w.Header().Get("Request-Id")))
	}
	if x.sendEvents(s) {
		x.breakOffStartedResponse(fail.Cut)
	}
}

func (x *exchange) sendPartialBody(m *wire.Message, cut string) {
	body, err := protocol.Marshal(m.Body())
	if err != nil || cut == "error" {
		e := scenarios.APIError{Status: http.StatusInternalServerError, Message: "Internal server error"}
		x.sendJSON(e.Status, wire.NewErrorResponse(e, "", x.w.Header().Get("Request-Id")))
		return
	}
	before, _, _ := bytes.Cut(body, []byte(`"stop_reason"`))
	if cut == "end" {
		x.sendJSONBytes(http.StatusOK, before)
		return
	}
	x.sendTruncatedBody(before, len(body))
	x.breakOffStartedResponse(cut)
}
