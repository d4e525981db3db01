package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/item"
)

// What older clients are told about polling.
const (
	pollIntervalMS = 100
	pollTimeoutMS  = 60_000
	maxWait        = time.Minute // of one long poll
)

// callRoutes are what programs under debug call.
func (a *api) callRoutes() []route {
	return []route{
		{method: "POST", path: "/api/functions", client: true, summary: "Register a function", answer: a.registerFunction},
		{method: "POST", path: "/api/call/start", client: true, summary: "Tell of a call about to run", answer: a.startCall},
		{method: "GET", path: "/api/poll/{id}", client: true, summary: "Ask for the decision about a paused call; ?wait=25s waits for it", answer: a.poll},
		{method: "DELETE", path: "/api/poll/{id}", client: true, summary: "Give up a paused call", answer: a.abandon},
		{method: "POST", path: "/api/call/complete", client: true, summary: "Tell how a call went", answer: a.completeCall},
		{method: "POST", path: "/api/call/event", client: true, summary: "Record something that was no call", answer: a.event},
		{method: "POST", path: "/api/report-com-error", client: true, summary: "Report a failure of communication", answer: a.reportComError},
		{method: "GET", path: "/api/poll-repl/{id}", client: true, summary: "Ask for an expression to evaluate", answer: a.pollREPL},
		{method: "POST", path: "/api/call/repl-result", client: true, summary: "Answer an expression", answer: a.replResult},
		{method: "GET", path: "/api/debug-client.js", client: true, summary: "Get the client for JavaScript, as a module", stream: a.script},
	}
}

func (a *api) registerFunction(r *http.Request) (any, error) {
	var in struct {
		Name      string          `json:"function_name"`
		Signature signature       `json:"signature"`
		Ref       json.RawMessage `json:"function_client_ref"`
		CID       string          `json:"function_cid"`
		Data      *string         `json:"function_data"`
		Format    item.Format     `json:"function_serialization_format"`
		Metadata  json.RawMessage `json:"function_metadata"`
		Alias     string          `json:"alias"` // "server/tool" of an MCP tool
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	it := item.Item{CID: in.CID, ClientRef: in.Ref, Data: in.Data, Format: in.Format}
	if it.CID != "" {
		if err := keep(a.Hub, it); err != nil {
			return nil, err
		}
	}
	f := debug.Function{Name: in.Name, Signature: string(in.Signature), Alias: in.Alias}
	var err error
	if f.Metadata, err = a.metadata(it, in.Metadata); err != nil {
		return nil, err
	}
	if err := a.Hub.RegisterFunction(f); err != nil {
		return nil, err
	}
	return ok("function_name", in.Name, "signature", in.Signature), nil
}

type startRequest struct {
	MethodName string                `json:"method_name"`
	Target     *item.Item            `json:"target"`
	Args       []item.Item           `json:"args"`
	Kwargs     map[string]*item.Item `json:"kwargs"`
	CallSite   json.RawMessage       `json:"call_site"`
	Signature  signature             `json:"signature"`
	PID        *int                  `json:"process_pid"`
	Started    *float64              `json:"process_start_time"`
	Preferred  item.Format           `json:"preferred_format"`
	PageURL    string                `json:"page_url"`

	// Members of our own callers.
	Client    debug.Client    `json:"client"`
	Input     json.RawMessage `json:"input"`
	SessionID string          `json:"session_id"`
	ToolUseID string          `json:"tool_use_id"`
}

// processKey names the process that a request comes from.
func processKey(in startRequest) string { return fmt.Sprintf("%.6f+%d", *in.Started, *in.PID) }

func (a *api) startCall(r *http.Request) (any, error) {
	var in startRequest
	if err := read(r, &in); err != nil {
		return nil, err
	}
	c := debug.Call{
		Tool: in.MethodName, Input: in.Input, Session: in.SessionID, ToolUseID: in.ToolUseID, Client: in.Client, Site: in.CallSite,
	}
	if in.PID != nil && in.Started != nil {
		c.PID, c.Started = *in.PID, *in.Started
	}
	switch in.Client {
	case debug.ClientRun, debug.ClientHook, debug.ClientProxy:
	case debug.ClientForeign:
		if in.PID == nil || in.Started == nil {
			return nil, &debug.Error{Code: "missing_process_identity", Message: "process_pid and process_start_time required"}
		}
		f, err := a.foreign(in)
		if err != nil {
			return nil, err
		}
		c.Foreign = f
	default:
		return nil, &debug.Error{Code: "invalid_payload", Message: fmt.Sprintf("unknown client %q", in.Client)}
	}
	begun, err := a.Hub.Start(r.Context(), c)
	switch {
	case err != nil:
		return nil, err
	case begun.PauseID != "":
		out := pollAnswer(begun.PauseID)
		out["call_id"] = begun.CallID
		return out, nil
	case begun.Decision.Action == debug.ActionReplace:
		return fields{"call_id": begun.CallID, "action": "replace", "function_name": begun.Decision.Tool}, nil
	}
	return fields{"call_id": begun.CallID, "action": "continue"}, nil
}

func pollAnswer(pauseID string) fields {
	return fields{"action": "poll", "poll_url": "/api/poll/" + pauseID, "poll_interval_ms": pollIntervalMS, "timeout_ms": pollTimeoutMS}
}

// foreign keeps the values of an older client's call; those whose bytes it
// must send again are named all at once.
func (a *api) foreign(in startRequest) (*debug.Foreign, error) {
	if in.Preferred == "" {
		in.Preferred = item.Dill
	}
	if !in.Preferred.Valid() {
		return nil, &debug.Error{Code: "invalid_preferred_format", Message: fmt.Sprintf("unknown preferred_format %q", in.Preferred)}
	}
	var all []*item.Item
	for i := range in.Args {
		all = append(all, &in.Args[i])
	}
	if in.Target != nil {
		all = append(all, in.Target)
	}
	for name, it := range in.Kwargs {
		if it == nil { // null, which takeAll refuses
			it = &item.Item{}
			in.Kwargs[name] = it
		}
		all = append(all, it)
	}
	if err := a.takeAll(processKey(in), all); err != nil {
		return nil, err
	}
	kwargs := map[string]item.Item{}
	for name, it := range in.Kwargs {
		kwargs[name] = *it
	}
	return &debug.Foreign{
		Target: in.Target, Args: in.Args, Kwargs: kwargs, Signature: string(in.Signature), PageURL: in.PageURL, Preferred: in.Preferred,
	}, nil
}

// poll answers the caller of a paused call. Without wait it is the older
// protocol, where an unknown pause is one that goes on waiting.
func (a *api) poll(r *http.Request) (any, error) {
	wait, err := waitTime(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	d, decided, err := a.Hub.Wait(ctx, r.PathValue("id"))
	if err != nil && !r.URL.Query().Has("wait") {
		return fields{"status": "waiting"}, nil
	}
	if err != nil {
		return nil, err
	}
	if !decided {
		return fields{"status": "waiting"}, nil
	}
	return fields{"status": "ready", "action": wireDecision(d)}, nil
}

// waitTime reads ?wait=, a duration or a number of seconds.
func waitTime(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if s, serr := strconv.ParseFloat(text, 64); serr == nil {
		d, err = time.Duration(min(s, maxWait.Seconds())*float64(time.Second)), nil
	}
	if err != nil || d < 0 {
		return 0, &debug.Error{Code: "invalid_wait", Message: "wait must be a duration such as 25s"}
	}
	return min(d, maxWait), nil
}

// wireDecision writes a decision: as the older clients read it, with the
// members that our own callers need beside them.
func wireDecision(d debug.Decision) any {
	if d.Wire != nil {
		return d.Wire
	}
	out := fields{"action": d.Action}
	switch d.Action {
	case debug.ActionModify:
		if d.Input != nil {
			out["modified_input"] = d.Input
		} else {
			out["modified_result"] = orNull(d.Result)
		}
	case debug.ActionSkip:
		out["fake_result"] = orNull(d.Result)
	case debug.ActionRaise:
		out["exception_type"], out["exception_message"] = d.Type, d.Message
	case debug.ActionReplace:
		out["function_name"] = d.Tool
	default: // nothing beside the action
	}
	return out
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

func (a *api) abandon(r *http.Request) (any, error) {
	a.Hub.Abandon(r.PathValue("id"))
	return ok(), nil
}

type completeRequest struct {
	CallID       string          `json:"call_id"`
	Status       *string         `json:"status"`
	ResultCID    string          `json:"result_cid"`
	ResultRef    json.RawMessage `json:"result_client_ref"`
	ResultData   *string         `json:"result_data"`
	ResultFormat item.Format     `json:"result_serialization_format"`
	ErrorCID     string          `json:"exception_cid"`
	ErrorRef     json.RawMessage `json:"exception_client_ref"`
	ErrorData    *string         `json:"exception_data"`
	ErrorFormat  item.Format     `json:"exception_serialization_format"`
	ErrorType    string          `json:"exception_type"`
	ErrorMessage string          `json:"exception_message"`
	Traceback    string          `json:"exception_traceback"`

	// Members of our own callers.
	Result    json.RawMessage `json:"result"`
	SessionID string          `json:"session_id"`
	ToolUseID string          `json:"tool_use_id"`
}

func (a *api) completeCall(r *http.Request) (any, error) {
	var in completeRequest
	if err := read(r, &in); err != nil {
		return nil, err
	}
	c := debug.Completion{CallID: in.CallID, Session: in.SessionID, ToolUseID: in.ToolUseID, Outcome: debug.Outcome{
		Failed: in.ErrorCID != "" || in.Status != nil && *in.Status != "success",
		Result: in.Result, Error: in.ErrorMessage, ErrorType: in.ErrorType, Traceback: in.Traceback,
	}}
	if in.ResultCID != "" {
		c.ResultItem = &item.Item{CID: in.ResultCID, ClientRef: in.ResultRef, Data: in.ResultData, Format: in.ResultFormat}
	}
	if in.ErrorCID != "" {
		c.ErrorItem = &item.Item{CID: in.ErrorCID, ClientRef: in.ErrorRef, Data: in.ErrorData, Format: in.ErrorFormat}
	}
	for _, it := range []*item.Item{c.ResultItem, c.ErrorItem} {
		if it == nil {
			continue
		}
		if err := keep(a.Hub, *it); err != nil {
			return nil, err
		}
		it.Data = nil // the store has it
	}
	pauseID, err := a.Hub.Complete(r.Context(), c)
	if err != nil {
		return nil, err
	}
	if pauseID != "" {
		return pollAnswer(pauseID), nil
	}
	return ok(), nil
}

func (a *api) event(r *http.Request) (any, error) {
	var in struct {
		startRequest
		EventType    string            `json:"event_type"`
		Status       string            `json:"status"`
		PrettyArgs   []json.RawMessage `json:"pretty_args"`
		PrettyKwargs json.RawMessage   `json:"pretty_kwargs"`
		PrettyResult json.RawMessage   `json:"pretty_result"`
		Exception    json.RawMessage   `json:"exception"`
		ResultCID    string            `json:"result_cid"`
		ResultData   *string           `json:"result_data"`
		ResultFormat item.Format       `json:"result_serialization_format"`
		ErrorCID     string            `json:"exception_cid"`
		ErrorData    *string           `json:"exception_data"`
		ErrorFormat  item.Format       `json:"exception_serialization_format"`
		EventID      string            `json:"event_id"`
	}
	if err := read(r, &in); err != nil {
		return nil, err
	}
	name := in.MethodName
	if name == "" {
		name = in.EventType
	}
	if name == "" {
		return nil, &debug.Error{Code: debug.CodeMissingParameter, Message: "method_name required", Detail: fields{"parameter": "method_name"}}
	}
	rec := debug.Record{Status: cmp.Or(in.Status, "success"), ResultCID: in.ResultCID, ErrorCID: in.ErrorCID}
	rec.CallID, rec.MethodName, rec.Signature, rec.CallSite, rec.PageURL = in.EventID, name, string(in.Signature), in.CallSite, in.PageURL
	rec.PrettyArgs, rec.PrettyKwargs = in.PrettyArgs, in.PrettyKwargs
	var err error
	if rec.Result, rec.PrettyResult, err = a.kept(item.Item{CID: in.ResultCID, Data: in.ResultData, Format: in.ResultFormat}, in.PrettyResult); err != nil {
		return nil, err
	}
	if rec.ErrorItem, rec.Exception, err = a.kept(item.Item{CID: in.ErrorCID, Data: in.ErrorData, Format: in.ErrorFormat}, in.Exception); err != nil {
		return nil, err
	}
	if in.PID != nil && in.Started != nil {
		rec.PID, rec.ProcessStart, rec.ProcessKey = *in.PID, *in.Started, processKey(in.startRequest)
	}
	a.Hub.AddRecord(rec)
	return ok(), nil
}

func (a *api) reportComError(r *http.Request) (any, error) {
	var report json.RawMessage
	if err := read(r, &report); err != nil {
		return nil, err
	}
	if len(report) == 0 || report[0] != '{' {
		return nil, &debug.Error{Code: "invalid_payload", Message: "a report is an object"}
	}
	a.Hub.ReportComError(report)
	return ok(), nil
}

func (a *api) pollREPL(r *http.Request) (any, error) {
	if q := a.Hub.NextQuestion(r.PathValue("id")); q != nil {
		return q, nil
	}
	return fields{"eval_id": nil}, nil
}

func (a *api) replResult(r *http.Request) (any, error) {
	var in debug.RelayAnswer
	if err := read(r, &in); err != nil {
		return nil, err
	}
	return ok(), a.Hub.DeliverAnswer(in)
}
