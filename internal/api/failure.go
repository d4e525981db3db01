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

func (x *exchange) playFailure(t *conversationTurn) {
	fail := t.reply.Failure
	x.setHeaders(t.id)
	x.journalLine.Error = string(fail.Type)
	switch fail.Type {
	case scenarios.FailHang:
		x.waitForClient()
	case scenarios.FailConnectionTimeout:
		_ = x.service.Clock.Sleep(x.r.Context(), time.Duration(fail.AfterMS)*time.Millisecond) // the connection is closed even if the client has disconnected
		x.closeConnection(closeReset)
	case scenarios.FailNetworkUnreachable, scenarios.FailCrash:
		x.closeConnection(closeReset)
	case scenarios.FailMalformedJSON:
		x.sendMalformed(t.request.Stream, fail.Raw)
	case scenarios.FailPartialResponse:
		x.sendPartial(t, fail)
	case scenarios.FailStreamError:
		if !t.request.Stream { // an event needs a stream
			x.answerFailure(fail, t.id)
			return
		}
		broken := *fail
		broken.Cut = "error"
		x.sendPartial(t, &broken)
	case scenarios.FailStreamFault:
		s := x.streamEvents(t, t.message)
		silent := s.ApplyFault(fail.Fault)
		if t.request.Stream && x.sendEvents(s) && silent {
			x.waitForClient()
		} else if !t.request.Stream {
			x.send(t.request, s, t.message)
		}
	default:
		x.answerFailure(fail, t.id)
	}
}

// answerFailure sends a failure that has an HTTP status.
func (x *exchange) answerFailure(fail *scenarios.Failure, id string) {
	e, h, code := fail.APIError(), x.w.Header(), ""
	x.journalLine.Error = e.Message
	switch fail.Type {
	case scenarios.FailRateLimit:
		h.Set("Retry-After", strconv.Itoa(fail.RetryAfter))
		reset := x.startedAt.UTC().Add(time.Duration(fail.RetryAfter) * time.Second).Format(time.RFC3339)
		h.Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		h.Set("Anthropic-Ratelimit-Requests-Reset", reset)
	case scenarios.FailSpendLimit:
		code = "enforced_spend_limit_reached"
	case scenarios.FailAuthError, scenarios.FailOutOfCredits, scenarios.FailPromptTooLong:
		if !x.IsClaudeCode() || fail.Type != scenarios.FailAuthError { // Claude Code retries after a 401, like the simulated claude
			h.Set("X-Should-Retry", "false")
		}
	default:
	}
	x.sendJSON(e.Status, wire.NewError(e, code, id))
}

// sendMalformed sends a body, or an event, that is not JSON.
func (x *exchange) sendMalformed(streamed bool, raw string) {
	if !streamed {
		x.sendBytes(http.StatusOK, []byte(raw))
		return
	}
	x.sendEvents(&wire.EventList{Events: []wire.Event{{Name: "message_start", Data: []byte(raw)}}})
}

// sendPartial sends the beginning of an answer and aborts.
func (x *exchange) sendPartial(t *conversationTurn, fail *scenarios.Failure) {
	m := *t.message
	m.Blocks = []protocol.Block{protocol.Text(fail.PartialText)}
	if !t.request.Stream {
		x.sendHalfBody(&m, fail.Cut)
		return
	}
	s := x.streamEvents(t, &m)
	s.Events = s.Events[:len(s.Events)-3] // block, message and stream stay open
	if fail.Cut == "error" {
		x.addErrorEvent(s, fail)
	}
	if x.sendEvents(s) {
		x.abort(fail.Cut)
	}
}

func (x *exchange) addErrorEvent(s *wire.EventList, fail *scenarios.Failure) {
	e := scenarios.APIError{Status: 529, Message: "Overloaded"}
	if fail.Type == scenarios.FailStreamError {
		e = fail.APIError()
	}
	s.Add("error", wire.NewError(e, "", x.w.Header().Get("Request-Id")))
}

// sendHalfBody sends half of an answer that is not streamed.
func (x *exchange) sendHalfBody(m *wire.Message, how string) {
	body, err := protocol.Marshal(m.Body())
	if err != nil || how == "error" {
		e := scenarios.APIError{Status: http.StatusInternalServerError, Message: "Internal server error"}
		x.sendJSON(e.Status, wire.NewError(e, "", x.w.Header().Get("Request-Id")))
		return
	}
	before, _, _ := bytes.Cut(body, []byte(`"stop_reason"`))
	if how == "end" {
		x.sendBytes(http.StatusOK, before)
		return
	}
	x.sendTruncated(before, len(body))
	x.abort(how)
}
