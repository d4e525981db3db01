package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// exchange is one request with its response.
type exchange struct {
	history.Client
	responseSender

	service   *service
	namespace *namespace
	began     time.Time

	findings []string
	line     journal.Request
}

func (x *exchange) elapsedMS() float64 {
	return float64(x.service.Clock.Now().Sub(x.began)) / float64(time.Millisecond)
}

// organization is the organization id in responses.
const organization = "00000000-0000-4000-8000-000000000000"

// setHeaders sets the headers of every response. An empty id is generated.
func (x *exchange) setHeaders(id string) string {
	if id == "" {
		x.namespace.mu.Lock()
		x.namespace.sideAnswers++
		n := x.namespace.sideAnswers
		x.namespace.mu.Unlock()
		id = x.service.replayer.ID("req", history.Digest{}, x.Namespace, x.Path, strconv.Itoa(n))
	}
	h := x.w.Header()
	h["Request-Id"] = []string{id}
	h["Anthropic-Organization-Id"] = []string{organization}
	reset := []string{x.began.UTC().Add(time.Minute).Format(time.RFC3339)}
	for _, l := range rateLimits() {
		h[l.name+"-Limit"], h[l.name+"-Remaining"], h[l.name+"-Reset"] = l.limit, l.remaining, reset
	}
	for name, value := range x.service.Scenario.API.Headers {
		h.Set(name, value)
	}
	return id
}

// rateLimit is one of the API's rate limits, with the name used in its headers.
type rateLimit struct {
	name             string
	limit, remaining []string
}

func rateLimits() [4]rateLimit {
	return [4]rateLimit{
		{"Anthropic-Ratelimit-Requests", []string{"4000"}, []string{"3999"}},
		{"Anthropic-Ratelimit-Tokens", []string{"4800000"}, []string{"4799000"}},
		{"Anthropic-Ratelimit-Input-Tokens", []string{"4000000"}, []string{"3999000"}},
		{"Anthropic-Ratelimit-Output-Tokens", []string{"800000"}, []string{"799000"}},
	}
}

// refuse responds with an error that is not scripted, and records it.
func (x *exchange) refuse(no *history.RefusalError) {
	id := x.setHeaders("")
	if no.NoRetry {
		x.w.Header().Set("X-Should-Retry", "false")
	}
	x.line.Error = no.Message
	x.sendJSON(no.Status, wire.NewError(scenarios.APIError{Status: no.Status, Message: no.Message}, no.Code, id))
	x.writeJournal()
}

// answerError responds with an error.
func (x *exchange) answerError(err error) {
	no, ok := errors.AsType[*history.RefusalError](err)
	switch {
	case ok:
	case x.r.Context().Err() != nil:
		x.recordAbort()
		return
	default: // an expression of the scenario failed
		no = &history.RefusalError{Status: http.StatusInternalServerError, Message: "the scenario: " + err.Error(), NoRetry: true}
	}
	x.refuse(no)
}

// writeJournal writes the journal line of the request.
func (x *exchange) writeJournal() {
	l := &x.line
	l.Namespace, l.Path, l.Session, l.Agent, l.Betas = x.Namespace, x.Path, x.Session, x.Agent, x.Betas
	l.Attempt, l.Status, l.MS, l.Findings = max(1, l.Attempt), x.status, x.elapsedMS(), append(x.findings, x.disconnects...)
	x.service.record(x.namespace, *l)
}

// recordAbort ends an exchange whose client has disconnected, or whose server
// stops.
func (x *exchange) recordAbort() {
	x.recordDisconnect()
	x.writeJournal()
}
