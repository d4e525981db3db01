package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat"
)

// Polling parameters sent to older clients.
const (
	pollIntervalMS           = 100
	olderClientPollTimeoutMS = 60_000
	maxPollWait              = time.Minute
)

func callRoutes() []apiRoute {
	return []apiRoute{
		{method: "POST", path: "/api/call/start", isForOlderClients: true, summary: "Report a call that is about to run", answer: (*restAPI).answerCallStart},
		{method: "GET", path: "/api/poll/{id}", isForOlderClients: true, summary: "Get the decision about a paused call; ?wait=25s waits for it", answer: (*restAPI).waitAndAnswerDecision},
		{method: "DELETE", path: "/api/poll/{id}", isForOlderClients: true, summary: "Abandon a paused call", answer: func(a *restAPI, r *http.Request) (any, error) {
			a.Hub.AbandonPause(r.PathValue("id"))
			return compat.StatusOKFields(), nil
		}},
		{method: "POST", path: "/api/call/complete", isForOlderClients: true, summary: "Report the outcome of a call", answer: (*restAPI).recordOutcomeAndAnswer},
		{
			method: "GET", path: "/api/debug-client.js", isForOlderClients: true, summary: "Get the client for JavaScript, as a module",
			stream: func(_ *restAPI, w http.ResponseWriter, r *http.Request) { compat.ServeJavaScriptClientSource(w, r) },
		},
	}
}

func olderClientRoutes() []apiRoute {
	var table []apiRoute
	for _, r := range compat.Routes() {
		table = append(table, apiRoute{method: r.Method, path: r.Path, summary: r.Summary, isForOlderClients: r.Client, answer: func(a *restAPI, req *http.Request) (any, error) {
			var body json.RawMessage
			if err := decodeBody(req, &body); err != nil {
				return nil, err
			}
			out, err := r.Answer(a.olderClients, req.Context(), compat.Request{Body: body, ID: req.PathValue("id")})
			return out, clientErrorFromJSONError(err)
		}})
	}
	return table
}

func (a *restAPI) answerCallStart(r *http.Request) (any, error) {
	begun, err := a.decodeAndReportCallStart(r)
	switch {
	case err != nil:
		return nil, clientErrorFromJSONError(err)
	case begun.PauseID != "":
		out := pollAnswer(begun.PauseID)
		out["call_id"] = begun.CallID
		return out, nil
	case begun.Decision.Action == debug.ActionRunOtherTool:
		return jsonFieldMap{"call_id": begun.CallID, "action": "replace", "function_name": begun.Decision.Tool}, nil
	}
	return jsonFieldMap{"call_id": begun.CallID, "action": "continue"}, nil
}

func (a *restAPI) decodeAndReportCallStart(r *http.Request) (debug.CallStartResponse, error) {
	var in struct {
		MethodName string           `json:"method_name"`
		Client     debug.CallerKind `json:"client"`
		Input      json.RawMessage  `json:"input"`
		SessionID  string           `json:"session_id"`
		ToolUseID  string           `json:"tool_use_id"`
		CallSite   json.RawMessage  `json:"call_site"`
		PID        *int             `json:"process_pid"`
		Started    *float64         `json:"process_start_time"`
	}
	body, err := decodeAndReturnBody(r, &in)
	if err != nil {
		return debug.CallStartResponse{}, err
	}
	c := debug.Call{
		Tool: in.MethodName, Input: in.Input, Session: in.SessionID, ToolUseID: in.ToolUseID, Client: in.Client, CallSite: in.CallSite,
	}
	switch in.Client {
	case "":
		return a.olderClients.ReportCallStart(r.Context(), body)
	case debug.ClientClaudelessRun, debug.ClientAgentHook, debug.ClientProxy:
	default:
		return debug.CallStartResponse{}, &debug.Error{Code: "invalid_payload", Message: fmt.Sprintf("unknown client %q", in.Client)}
	}
	if in.PID != nil && in.Started != nil {
		c.PID, c.Started = *in.PID, *in.Started
	}
	return a.Hub.ReportCallStart(r.Context(), c)
}

func pollAnswer(pauseID string) jsonFieldMap {
	return jsonFieldMap{"action": "poll", "poll_url": "/api/poll/" + pauseID, "poll_interval_ms": pollIntervalMS, "timeout_ms": olderClientPollTimeoutMS}
}

// waitAndAnswerDecision responds to the caller of a paused call. A request without the parameter wait comes from an older
// client: for an unknown pause, the response says that the pause is still waiting, and is not an error.
func (a *restAPI) waitAndAnswerDecision(r *http.Request) (any, error) {
	wait, err := waitTimeOfQuery(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	d, decided, err := a.Hub.Wait(ctx, r.PathValue("id"))
	switch {
	case err != nil && r.URL.Query().Has("wait"):
		return nil, err
	case err != nil || !decided:
		return jsonFieldMap{"status": "waiting"}, nil
	}
	return jsonFieldMap{"status": "ready", "action": d.Encoded}, nil
}

// waitTimeOfQuery parses ?wait=, a duration or a number of seconds.
func waitTimeOfQuery(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if s, serr := strconv.ParseFloat(text, 64); serr == nil {
		d, err = time.Duration(min(s, maxPollWait.Seconds())*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, &debug.Error{Code: "invalid_wait", Message: "wait must be a duration such as 25s"}
	}
	return min(d, maxPollWait), nil
}

func (a *restAPI) recordOutcomeAndAnswer(r *http.Request) (any, error) {
	var in struct {
		CallID       string          `json:"call_id"`
		Status       *string         `json:"status"`
		Result       json.RawMessage `json:"result"`
		ErrorType    string          `json:"exception_type"`
		ErrorMessage string          `json:"exception_message"`
		SessionID    string          `json:"session_id"`
		ToolUseID    string          `json:"tool_use_id"`
	}
	body, err := decodeAndReturnBody(r, &in)
	if err != nil {
		return nil, err
	}
	c := debug.CompletionReport{CallID: in.CallID, Session: in.SessionID, ToolUseID: in.ToolUseID, CallOutcome: debug.CallOutcome{
		Failed: in.Status != nil && *in.Status != "success", Result: in.Result, Error: in.ErrorMessage, ErrorType: in.ErrorType,
	}}
	if err := a.olderClients.AddBodyValuesToOutcome(body, &c.CallOutcome); err != nil {
		return nil, clientErrorFromJSONError(err)
	}
	pauseID, err := a.Hub.RecordCallOutcomeAndPauseIfStopped(r.Context(), c)
	if pauseID != "" {
		return pollAnswer(pauseID), nil
	}
	return compat.StatusOKFields(), err
}
