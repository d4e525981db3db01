package messages

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// organization is whose key it is.
const organization = "00000000-0000-4000-8000-000000000000"

// headers sets those of every answer. An empty id is made up.
func (x *exchange) headers(id string) string {
	if id == "" {
		x.ns.mu.Lock()
		x.ns.others++
		n := x.ns.others
		x.ns.mu.Unlock()
		id = x.s.id("req", digest{}, x.namespace, x.path, strconv.Itoa(n))
	}
	h := x.w.Header()
	h["Request-Id"] = []string{id}
	h["Anthropic-Organization-Id"] = []string{organization}
	reset := []string{x.began.UTC().Add(time.Minute).Format(time.RFC3339)}
	for _, l := range limits() {
		h[l.name+"-Limit"], h[l.name+"-Remaining"], h[l.name+"-Reset"] = l.limit, l.remaining, reset
	}
	for name, value := range x.s.o.Scenario.API.Headers {
		h.Set(name, value)
	}
	return id
}

// limit is one of the API's rate limits, under the name of its headers.
type limit struct {
	name             string
	limit, remaining []string
}

func limits() [4]limit {
	return [4]limit{
		{"Anthropic-Ratelimit-Requests", []string{"4000"}, []string{"3999"}},
		{"Anthropic-Ratelimit-Tokens", []string{"4800000"}, []string{"4799000"}},
		{"Anthropic-Ratelimit-Input-Tokens", []string{"4000000"}, []string{"3999000"}},
		{"Anthropic-Ratelimit-Output-Tokens", []string{"800000"}, []string{"799000"}},
	}
}

// json answers with a value.
func (x *exchange) json(status int, v any) {
	body, err := protocol.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"error","error":{"type":"api_error","message":"the answer cannot be written"}}`)
	}
	x.bytes(status, body)
}

func (x *exchange) bytes(status int, body []byte) {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	x.status = status
	x.w.WriteHeader(status)
	if _, err := x.w.Write(body); err != nil {
		x.findings = append(x.findings, "aborted: the client left before the answer")
	}
}

// wireError is the body of an error.
type wireError struct {
	Type      string    `json:"type"`
	Error     errorBody `json:"error"`
	RequestID string    `json:"request_id,omitempty"`
}

type errorBody struct {
	Type    string        `json:"type"`
	Message string        `json:"message"`
	Details *errorDetails `json:"details,omitempty"`
}

type errorDetails struct {
	Code string `json:"error_code"`
}

// errorOf is the body of an error; an empty kind is that of the status.
func errorOf(e scenarios.APIError, code, id string) wireError {
	body := errorBody{Type: e.Type, Message: e.Message}
	if body.Type == "" {
		body.Type = scenarios.APIErrorType(e.Status)
	}
	if e.Status > 400 && e.Status < 500 && body.Type == "api_error" {
		body.Type = "invalid_request_error"
	}
	if code != "" {
		body.Details = &errorDetails{code}
	}
	return wireError{Type: "error", Error: body, RequestID: id}
}

// refuse answers with an error that no scenario wished for, and records it.
func (x *exchange) refuse(no *refusal) {
	id := x.headers("")
	if no.final {
		x.w.Header().Set("X-Should-Retry", "false")
	}
	x.line.Error = no.message
	x.json(no.status, errorOf(scenarios.APIError{Status: no.status, Message: no.message}, no.code, id))
	x.end()
}

// send answers with a message, streamed when that was asked for.
func (x *exchange) send(r *request, s *script, m *message) {
	if r.stream {
		x.stream(s)
		return
	}
	var pause time.Duration
	for _, e := range s.events {
		pause += e.wait
	}
	if pause > 0 && x.s.o.Clock.Sleep(x.r.Context(), pause) != nil {
		x.findings = append(x.findings, "aborted: the client left before the answer")
		return
	}
	x.json(http.StatusOK, m.wire(m.blocks))
}

// stream sends events at their pace. What comes without a pause between goes out
// together; false = the client has gone.
func (x *exchange) stream(s *script) bool {
	h := x.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	x.status = http.StatusOK
	x.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(x.w)
	var out bytes.Buffer
	for i := range s.events {
		e := &s.events[i]
		if e.wait > 0 {
			if !x.flush(flush, &out) || x.s.o.Clock.Sleep(x.r.Context(), e.wait) != nil {
				return x.gone()
			}
		}
		e.appendTo(&out)
		x.sent++
	}
	if !x.flush(flush, &out) {
		return x.gone()
	}
	return true
}

// gone notes that the client left in the middle.
func (x *exchange) gone() bool {
	x.findings = append(x.findings, "aborted: the client left after "+strconv.Itoa(x.sent)+" events")
	return false
}

func (x *exchange) flush(to *http.ResponseController, out *bytes.Buffer) bool {
	if out.Len() > 0 {
		if _, err := x.w.Write(out.Bytes()); err != nil {
			return false
		}
		out.Reset()
	}
	err := to.Flush()
	return err == nil || errors.Is(err, http.ErrNotSupported)
}
