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

// exchange is one request and its answer.
type exchange struct {
	history.Client
	responseSender

	s     *service
	ns    *namespace
	began time.Time

	findings []string
	line     journal.Request
}

func (x *exchange) ms() float64 {
	return float64(x.s.Clock.Now().Sub(x.began)) / float64(time.Millisecond)
}

// organization is whose key it is.
const organization = "00000000-0000-4000-8000-000000000000"

// headers sets those of every answer. An empty id is made up.
func (x *exchange) headers(id string) string {
	if id == "" {
		x.ns.mu.Lock()
		x.ns.others++
		n := x.ns.others
		x.ns.mu.Unlock()
		id = x.s.folder.ID("req", history.Digest{}, x.Namespace, x.Path, strconv.Itoa(n))
	}
	h := x.w.Header()
	h["Request-Id"] = []string{id}
	h["Anthropic-Organization-Id"] = []string{organization}
	reset := []string{x.began.UTC().Add(time.Minute).Format(time.RFC3339)}
	for _, l := range limits() {
		h[l.name+"-Limit"], h[l.name+"-Remaining"], h[l.name+"-Reset"] = l.limit, l.remaining, reset
	}
	for name, value := range x.s.Scenario.API.Headers {
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

// refuse answers with an error that no scenario wished for, and records it.
func (x *exchange) refuse(no *history.RefusalError) {
	id := x.headers("")
	if no.Final {
		x.w.Header().Set("X-Should-Retry", "false")
	}
	x.line.Error = no.Message
	x.json(no.Status, wire.ErrorOf(scenarios.APIError{Status: no.Status, Message: no.Message}, no.Code, id))
	x.end()
}

// failed answers with what went wrong.
func (x *exchange) failed(err error) {
	no, ok := errors.AsType[*history.RefusalError](err)
	switch {
	case ok:
	case x.r.Context().Err() != nil:
		x.aborted()
		return
	default: // an expression of the scenario
		no = &history.RefusalError{Status: http.StatusInternalServerError, Message: "the scenario: " + err.Error(), Final: true}
	}
	x.refuse(no)
}

// end writes the journal line.
func (x *exchange) end() {
	l := &x.line
	l.Namespace, l.Path, l.Session, l.Agent, l.Betas = x.Namespace, x.Path, x.Session, x.Agent, x.Betas
	l.Attempt, l.Status, l.MS, l.Findings = max(1, l.Attempt), x.status, x.ms(), append(x.findings, x.left...)
	x.s.write(x.ns, *l)
}

// aborted ends an exchange whose client has gone, or whose server ends.
func (x *exchange) aborted() {
	x.gone()
	x.end()
}
