package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

// replRoutes are the routes that evaluate expressions at paused calls.
func replRoutes() []route {
	return []route{
		{method: "POST", path: "/api/repl/start", summary: "Open an evaluation session at a paused call", answer: (*api).startSession},
		{method: "GET", path: "/api/repl/sessions", summary: "List evaluation sessions", answer: (*api).sessions},
		{method: "GET", path: "/api/repl/{id}", summary: "Get an evaluation session with its transcript", answer: (*api).session},
		{method: "POST", path: "/api/repl/{id}/eval", summary: "Evaluate an expression", answer: (*api).evaluate},
		{method: "POST", path: "/api/repl/{id}/close", summary: "Close an evaluation session", answer: (*api).closeSession},
	}
}

func (a *api) startSession(r *http.Request) (any, error) {
	var in struct {
		PauseID string `json:"pause_id"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	id, err := a.Hub.StartSession(in.PauseID)
	if e, ok := errors.AsType[*debug.Error](err); ok && e.Code == debug.CodePauseResumed {
		return nil, &statusError{http.StatusConflict, &debug.Error{Code: "pause_resumed", Message: e.Message, Detail: e.Detail}}
	}
	return fields{"session_id": id}, err
}

func (a *api) sessions(r *http.Request) (any, error) {
	q := r.URL.Query()
	status := q.Get("status")
	if status != "" && status != "active" && status != "closed" {
		return nil, &debug.Error{Code: "invalid_status", Message: "status must be active or closed"}
	}
	from, err := timestamp(q.Get("from"), 0)
	if err != nil {
		return nil, err
	}
	to, err := timestamp(q.Get("to"), 1e18)
	if err != nil {
		return nil, err
	}
	out := []debug.Session{}
	for _, s := range a.Hub.Sessions() {
		closed := s.ClosedAt != nil
		if status == "active" && closed || status == "closed" && !closed || s.StartedAt < from || s.StartedAt > to {
			continue
		}
		if text := strings.ToLower(q.Get("search")); text == "" || containsText(s, text) {
			out = append(out, s)
		}
	}
	return fields{"sessions": out}, nil
}

// containsText reports whether a session contains a text, ignoring case.
func containsText(s debug.Session, text string) bool {
	all, err := json.Marshal(s)
	return err == nil && strings.Contains(strings.ToLower(string(all)), text)
}

// timestamp parses Unix seconds or RFC 3339.
func timestamp(text string, fallback float64) (float64, error) {
	if text == "" {
		return fallback, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return s, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, &debug.Error{Code: "invalid_timestamp", Message: "from and to are Unix seconds or RFC 3339"}
	}
	return float64(t.UnixMicro()) / 1e6, nil
}

func (a *api) session(r *http.Request) (any, error) {
	s, err := a.Hub.Session(r.PathValue("id"))
	return fields{"session": s}, err
}

func (a *api) evaluate(r *http.Request) (any, error) {
	var in struct {
		Expr    string  `json:"expr"`
		PauseID string  `json:"pause_id"`
		Timeout float64 `json:"timeout_s"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	const longest = 3600
	out, err := a.Hub.Evaluate(r.Context(), debug.EvaluateParams{
		Session: r.PathValue("id"), PauseID: in.PauseID, Expr: in.Expr,
		Timeout: time.Duration(min(in.Timeout, longest) * float64(time.Second)),
	})
	if e, ok := errors.AsType[*debug.Error](err); ok && e.Code == debug.CodeMissingExpression {
		return nil, &debug.Error{Code: "missing_expr", Message: "expr required"}
	}
	return out, err
}

func (a *api) closeSession(r *http.Request) (any, error) {
	return compat.OK(), a.Hub.CloseSession(r.PathValue("id"))
}
