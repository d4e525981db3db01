package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

func controlRoutes() []apiRoute {
	return []apiRoute{
		{method: "GET", path: "/api/breakpoints", isForOlderClients: true, summary: "List breakpoints", answer: (*restAPI).listBreakpoints},
		{method: "POST", path: "/api/breakpoints", isForOlderClients: true, summary: "Set a breakpoint", answer: handlerWithDecodedBody((*restAPI).setBreakpointAndSignature)},
		{method: "DELETE", path: "/api/breakpoints/{name}", summary: "Remove a breakpoint", answer: func(a *restAPI, r *http.Request) (any, error) {
			a.Hub.BreakpointSet.RemoveBreakpoint(r.PathValue("name"))
			return compat.StatusOKFields("function_name", r.PathValue("name")), nil
		}},
		{method: "POST", path: "/api/breakpoints/{name}/behavior", summary: "Set when a breakpoint stops before a call", answer: handlerWithDecodedBody((*restAPI).setBreakpointBehaviorBeforeCall)},
		{method: "POST", path: "/api/breakpoints/{name}/after_behavior", summary: "Set after which calls a breakpoint stops", answer: handlerWithDecodedBody((*restAPI).setBreakpointBehaviorAfterCall)},
		{method: "POST", path: "/api/breakpoints/{name}/replacement", summary: "Set the tool that runs instead of the calls that match a breakpoint but are not paused", answer: handlerWithDecodedBody((*restAPI).setReplacementTool)},
		{method: "GET", path: "/api/breakpoints/{name}/history", summary: "List the calls that a breakpoint recorded", answer: (*restAPI).breakpointHistory},
		{method: "GET", path: "/api/functions", summary: "List the functions that can be called", answer: (*restAPI).listFunctions},
		{method: "GET", path: "/api/behavior", summary: "Get the default behavior", answer: func(a *restAPI, _ *http.Request) (any, error) {
			return jsonFieldMap{"behavior": a.Hub.BreakpointSet.DefaultBehavior()}, nil
		}},
		{method: "POST", path: "/api/behavior", summary: "Set the default behavior", answer: handlerWithDecodedBody((*restAPI).setDefaultBehavior)},
		{method: "GET", path: "/api/paused", isForOlderClients: true, summary: "List paused calls", answer: func(a *restAPI, _ *http.Request) (any, error) {
			return jsonFieldMap{"paused": a.Hub.Pauses()}, nil
		}},
		{method: "POST", path: "/api/paused/{id}/continue", summary: "Decide about a paused call", answer: (*restAPI).resumePausedCall},
		{method: "GET", path: "/api/calls", summary: "List the newest calls", answer: (*restAPI).listCallRecords},
		{method: "GET", path: "/api/cid/{cid}", isForOlderClients: true, summary: "Get the bytes of a value", stream: (*restAPI).serveStoredValue},
		{method: "GET", path: "/api/status", summary: "Count everything", answer: func(a *restAPI, _ *http.Request) (any, error) { return a.Hub.Status(), nil }},
		{method: "GET", path: "/api/events", summary: "Follow all changes as server-sent events", stream: (*restAPI).streamEvents},
	}
}

func (a *restAPI) listBreakpoints(*http.Request) (any, error) {
	return struct {
		Names        []string                            `json:"breakpoints"`
		Before       map[string]debug.BreakpointBehavior `json:"breakpoint_behaviors"`
		After        map[string]debug.BreakpointBehavior `json:"breakpoint_after_behaviors"`
		Replacements map[string]string                   `json:"breakpoint_replacements"`
		Conditions   map[string]string                   `json:"breakpoint_conditions"`
		Errors       map[string]string                   `json:"breakpoint_condition_errors"`
	}(a.Hub.BreakpointSet.SettingsByBreakpointName()), nil
}

type breakpointChange struct {
	Name      string                   `json:"function_name"`
	Before    *string                  `json:"behavior"`
	After     *string                  `json:"after_behavior"`
	When      *string                  `json:"when"`
	Signature compat.FunctionSignature `json:"signature"`
}

func (a *restAPI) setBreakpointAndSignature(_ *http.Request, in breakpointChange) (any, error) {
	if err := a.Hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: in.Name, Before: in.Before, After: in.After, When: in.When}); err != nil {
		return nil, err
	}
	var err error
	if in.Signature != "" {
		err = a.Hub.RegisterSignature(in.Name, string(in.Signature))
	}
	return compat.StatusOKFields("function_name", in.Name), err
}

type behaviorRequest struct {
	Word string `json:"behavior"`
}

func (a *restAPI) setBreakpointBehaviorBeforeCall(r *http.Request, in behaviorRequest) (any, error) {
	b, err := a.Hub.BreakpointSet.UpdateBreakpoint(debug.BreakpointSettings{Name: r.PathValue("name"), Before: &in.Word})
	return compat.StatusOKFields("function_name", b.Name, "behavior", b.Before), err
}

func (a *restAPI) setBreakpointBehaviorAfterCall(r *http.Request, in behaviorRequest) (any, error) {
	b, err := a.Hub.BreakpointSet.UpdateBreakpoint(debug.BreakpointSettings{Name: r.PathValue("name"), After: &in.Word})
	return compat.StatusOKFields("function_name", b.Name, "behavior", b.After), err
}

type replacementToolRequest struct {
	Tool *string `json:"replacement_function"`
}

func (a *restAPI) setReplacementTool(r *http.Request, in replacementToolRequest) (any, error) {
	tool, name := "", r.PathValue("name")
	if in.Tool != nil && *in.Tool != name {
		tool = *in.Tool
	}
	out := compat.StatusOKFields("function_name", name, "replacement_function", nil)
	if tool != "" {
		out["replacement_function"] = tool
	}
	return out, a.Hub.BreakpointSet.SetReplacementToolOfBreakpoint(name, tool)
}

// intOfQuery parses an integer of the query; nil means missing.
func intOfQuery(r *http.Request, key string) (n *int, err error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return n, nil
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		return nil, &debug.Error{Code: debug.CodeInvalidLimit, Message: key + " must be a whole number", Detail: jsonFieldMap{key: text}}
	}
	return &value, nil
}

func (a *restAPI) breakpointHistory(r *http.Request) (any, error) {
	limit, err := intOfQuery(r, "limit")
	if err != nil {
		return nil, err
	}
	n := 0
	if limit != nil {
		if n = *limit; n < 1 {
			return nil, &debug.Error{Code: debug.CodeInvalidLimit, Message: "limit must be at least 1"}
		}
	}
	name := r.PathValue("name")
	return jsonFieldMap{"function_name": name, "history": a.Hub.Records.BreakpointHistory(name, n)}, nil
}

func (a *restAPI) listFunctions(*http.Request) (any, error) {
	names, signatures, metadata := a.Hub.FunctionNamesSignaturesAndMetadata()
	return jsonFieldMap{"functions": names, "function_signatures": signatures, "function_metadata": metadata}, nil
}

func (a *restAPI) setDefaultBehavior(_ *http.Request, in behaviorRequest) (any, error) {
	b, err := a.Hub.BreakpointSet.SetDefaultBreakpointBehavior(in.Word)
	return compat.StatusOKFields("behavior", b), err
}

func (a *restAPI) resumePausedCall(r *http.Request) (any, error) {
	var in debug.ResumeRequest
	body, err := decodeAndReturnBody(r, &in)
	if err != nil {
		return nil, err
	}
	in.Raw = body
	id := r.PathValue("id")
	return compat.StatusOKFields("pause_id", id), clientErrorFromJSONError(a.Hub.Resume(r.Context(), id, in))
}

func (a *restAPI) listCallRecords(r *http.Request) (any, error) {
	limit, err := intOfQuery(r, "limit")
	if err != nil {
		return nil, err
	}
	return a.Hub.Records.Calls(r.URL.Query().Get("function_name"), limit)
}

func (a *restAPI) serveStoredValue(w http.ResponseWriter, r *http.Request) {
	data, err := a.Hub.StoredValueByContentID(r.PathValue("cid"))
	if err != nil {
		writeError(w, err)
		return
	}
	kind := "application/octet-stream"
	if json.Valid(data) {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // the client may have closed the connection
}

const pingInterval = 15 * time.Second

func (a *restAPI) streamEvents(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	sub := a.Hub.Subscribe(0)
	defer sub.Close()
	fmt.Fprint(w, ": connected\n\n")
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		if err := out.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ping.C:
			fmt.Fprint(w, ": ping\n\n")
		case e, open := <-sub.C:
			if !open {
				return
			}
			if e.Missed > 0 {
				fmt.Fprintf(w, "event: missed\ndata: {\"count\":%d}\n\n", e.Missed)
			}
			data, err := json.Marshal(e.Params())
			if err != nil {
				return
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.Kind, data)
		}
	}
}

func replSessionRoutes() []apiRoute {
	return []apiRoute{
		{method: "POST", path: "/api/repl/start", summary: "Open an evaluation session at a paused call", answer: handlerWithDecodedBody((*restAPI).startREPLSession)},
		{method: "GET", path: "/api/repl/sessions", summary: "List evaluation sessions", answer: (*restAPI).listREPLSessions},
		{method: "GET", path: "/api/repl/{id}", summary: "Get an evaluation session with its transcript", answer: (*restAPI).getREPLSession},
		{method: "POST", path: "/api/repl/{id}/eval", summary: "Evaluate an expression", answer: handlerWithDecodedBody((*restAPI).evaluateExpression)},
		{method: "POST", path: "/api/repl/{id}/close", summary: "Close an evaluation session", answer: func(a *restAPI, r *http.Request) (any, error) {
			return compat.StatusOKFields(), a.Hub.CloseREPLSession(r.PathValue("id"))
		}},
	}
}

type replSessionStartRequest struct {
	PauseID string `json:"pause_id"`
}

func (a *restAPI) startREPLSession(_ *http.Request, in replSessionStartRequest) (any, error) {
	id, err := a.Hub.StartREPLSession(in.PauseID)
	if e, ok := errors.AsType[*debug.Error](err); ok && e.Code == debug.CodePauseResumed {
		return nil, &debug.Error{Code: codePauseResumed, Message: e.Message, Detail: e.Detail}
	}
	return jsonFieldMap{"session_id": id}, err
}

func (a *restAPI) listREPLSessions(r *http.Request) (any, error) {
	q := r.URL.Query()
	status := q.Get("status")
	if status != "" && status != "active" && status != "closed" {
		return nil, &debug.Error{Code: "invalid_status", Message: "status must be active or closed"}
	}
	from, err := parseTimestamp(q.Get("from"), 0)
	if err != nil {
		return nil, err
	}
	to, err := parseTimestamp(q.Get("to"), 1e18)
	if err != nil {
		return nil, err
	}
	out := []debug.REPLSession{}
	for _, s := range a.Hub.REPLSessions() {
		if closed := s.ClosedAt != nil; status == "active" && closed || status == "closed" && !closed || s.StartedAt < from || s.StartedAt > to {
			continue
		}
		all, err := json.Marshal(s)
		if text := strings.ToLower(q.Get("search")); text == "" || err == nil && strings.Contains(strings.ToLower(string(all)), text) {
			out = append(out, s)
		}
	}
	return jsonFieldMap{"sessions": out}, nil
}

func parseTimestamp(text string, fallback float64) (float64, error) {
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

func (a *restAPI) getREPLSession(r *http.Request) (any, error) {
	s, err := a.Hub.REPLSessionByID(r.PathValue("id"))
	return jsonFieldMap{"session": s}, err
}

type evaluationRequest struct {
	Expr    string  `json:"expr"`
	PauseID string  `json:"pause_id"`
	Timeout float64 `json:"timeout_s"`
}

func (a *restAPI) evaluateExpression(r *http.Request, in evaluationRequest) (any, error) {
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
