package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/claudeless/claudeless/internal/debug"
)

// Route is one of the older clients' routes.
type Route struct {
	Method, Path, Summary string
	// Client routes are called from the clients' pages; others are for people.
	Client bool
	Answer func(c *Clients, ctx context.Context, r Request) (any, error)
	// Stream handles the request instead of Answer, if set.
	Stream http.HandlerFunc
}

// Request holds the parts of a request that routes use: its body, JSON or empty,
// and the {id} of its path.
type Request struct {
	Body json.RawMessage
	ID   string
}

// Routes returns the routes that only older clients use, or that have a special
// form for them.
func Routes() []Route {
	return []Route{
		{Method: "POST", Path: "/api/functions", Client: true, Summary: "Register a function", Answer: (*Clients).register},
		{Method: "POST", Path: "/api/call/event", Client: true, Summary: "Record something that was no call", Answer: (*Clients).event},
		{Method: "POST", Path: "/api/report-com-error", Client: true, Summary: "Report a failure of communication", Answer: (*Clients).report},
		{Method: "GET", Path: "/api/com-errors", Summary: "List failures of communication", Answer: func(c *Clients, _ context.Context, _ Request) (any, error) {
			return Fields{"errors": c.ComErrors()}, nil
		}},
		{Method: "GET", Path: "/api/poll-repl/{id}", Client: true, Summary: "Ask for an expression to evaluate", Answer: func(c *Clients, _ context.Context, r Request) (any, error) {
			if q := c.NextEvalRequest(r.ID); q != nil {
				return q, nil
			}
			return Fields{"eval_id": nil}, nil
		}},
		{Method: "POST", Path: "/api/call/repl-result", Client: true, Summary: "Answer an expression", Answer: (*Clients).answer},
		{Method: "GET", Path: "/api/debug-client.js", Client: true, Summary: "Get the client for JavaScript, as a module", Stream: script},
	}
}

func (c *Clients) report(_ context.Context, r Request) (any, error) {
	if len(r.Body) == 0 || r.Body[0] != '{' {
		return nil, &debug.Error{Code: "invalid_payload", Message: "a report must be an object"}
	}
	c.connected.Store(true)
	c.ReportComError(r.Body)
	return OK(), nil
}

func (c *Clients) answer(_ context.Context, r Request) (any, error) {
	var in EvalResponse
	if err := decode(r.Body, &in); err != nil {
		return nil, err
	}
	return OK(), c.DeliverEvalResponse(in)
}

// decode decodes a body; an empty body leaves v unchanged.
func decode(body json.RawMessage, v any) error {
	if len(body) == 0 {
		return nil
	}
	return json.Unmarshal(body, v)
}

// Fields is the body of most responses.
type Fields map[string]any

// OK returns the body of a successful response, with additional fields.
func OK(more ...any) Fields {
	f := Fields{"status": "ok"}
	for i := 0; i+1 < len(more); i += 2 {
		f[fmt.Sprint(more[i])] = more[i+1]
	}
	return f
}
