package api

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fail plays the failure of an answer.
func (x *exchange) fail(t *turn) {
	fail := t.reply.Failure
	x.headers(t.id)
	x.line.Error = string(fail.Type)
	switch fail.Type {
	case scenarios.FailHang:
		x.silence()
	case scenarios.FailConnectionTimeout:
		_ = x.s.Clock.Sleep(x.r.Context(), time.Duration(fail.AfterMS)*time.Millisecond) // a client that is gone is cut all the same
		x.cut(reset)
	case scenarios.FailNetworkUnreachable, scenarios.FailCrash:
		x.cut(reset)
	case scenarios.FailMalformedJSON:
		x.malformed(t.r.Stream, fail.Raw)
	case scenarios.FailPartialResponse:
		x.partial(t, fail)
	case scenarios.FailStreamError:
		if !t.r.Stream { // no stream to put an event into
			x.answerFailure(fail, t.id)
			return
		}
		broken := *fail
		broken.Cut = "error"
		x.partial(t, &broken)
	case scenarios.FailStreamFault:
		s := x.script(t, t.m)
		silent := s.Fault(fail.Fault)
		if t.r.Stream && x.stream(s) && silent {
			x.silence()
		} else if !t.r.Stream {
			x.send(t.r, s, t.m)
		}
	default:
		x.answerFailure(fail, t.id)
	}
}

// answerFailure sends a failure that has a status.
func (x *exchange) answerFailure(fail *scenarios.Failure, id string) {
	e, h, code := fail.APIError(), x.w.Header(), ""
	x.line.Error = e.Message
	switch fail.Type {
	case scenarios.FailRateLimit:
		h.Set("Retry-After", strconv.Itoa(fail.RetryAfter))
		reset := x.began.UTC().Add(time.Duration(fail.RetryAfter) * time.Second).Format(time.RFC3339)
		h.Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		h.Set("Anthropic-Ratelimit-Requests-Reset", reset)
	case scenarios.FailSpendLimit:
		code = "enforced_spend_limit_reached"
	case scenarios.FailAuthError, scenarios.FailOutOfCredits, scenarios.FailPromptTooLong:
		if !x.ClaudeCode() || fail.Type != scenarios.FailAuthError { // it asks again after a 401, as the CLI face does
			h.Set("X-Should-Retry", "false")
		}
	default:
	}
	x.json(e.Status, wire.ErrorOf(e, code, id))
}

// malformed sends a body, or an event, that is no JSON.
func (x *exchange) malformed(streamed bool, raw string) {
	if !streamed {
		x.bytes(http.StatusOK, []byte(raw))
		return
	}
	x.stream(&wire.EventList{Events: []wire.Event{{Name: "message_start", Data: []byte(raw)}}})
}

// partial sends the beginning of an answer and breaks off.
func (x *exchange) partial(t *turn, fail *scenarios.Failure) {
	m := *t.m
	m.Blocks = []protocol.Block{protocol.Text(fail.PartialText)}
	if !t.r.Stream {
		x.halfBody(&m, fail.Cut)
		return
	}
	s := x.script(t, &m)
	s.Events = s.Events[:len(s.Events)-3] // block, message and stream stay open
	if fail.Cut == "error" {
		x.lastEvent(s, fail)
	}
	if x.stream(s) {
		x.breakOff(fail.Cut)
	}
}

// lastEvent puts an error at the end of the events.
func (x *exchange) lastEvent(s *wire.EventList, fail *scenarios.Failure) {
	e := scenarios.APIError{Status: 529, Message: "Overloaded"}
	if fail.Type == scenarios.FailStreamError {
		e = fail.APIError()
	}
	s.Add("error", wire.ErrorOf(e, "", x.w.Header().Get("Request-Id")))
}

// halfBody sends half of an answer that is not streamed.
func (x *exchange) halfBody(m *wire.Message, how string) {
	body, err := protocol.Marshal(m.Body())
	if err != nil || how == "error" {
		e := scenarios.APIError{Status: http.StatusInternalServerError, Message: "Internal server error"}
		x.json(e.Status, wire.ErrorOf(e, "", x.w.Header().Get("Request-Id")))
		return
	}
	before, _, _ := bytes.Cut(body, []byte(`"stop_reason"`))
	if how == "end" {
		x.bytes(http.StatusOK, before)
		return
	}
	x.half(before, len(body))
	x.breakOff(how)
}
