// Package compat serves clients of an older debugger, in Python and JavaScript: the format of their values, the actions
// they support, the expressions they evaluate themselves, their routes and the JavaScript client.
//
// Values from clients are stored unchanged; they are never executed and never become part of a page. Package compat
// calls the hub (package debug) like any other front end, and package rest serves its routes.
package compat

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// pauseLease is how long a pause stays open after the last poll of its client: some clients poll rarely.
const pauseLease = 5 * time.Minute

// OlderClients serves all older clients of a hub. Its methods may be called from many goroutines.
type OlderClients struct {
	hub    *debug.Hub
	resent valueResendRequests
	relay  pendingEvaluations

	mu        sync.Mutex
	comErrors []json.RawMessage // failed communications as the clients reported them, oldest first
}

// New creates the Clients of a hub; it starts nothing.
func New(hub *debug.Hub) *OlderClients {
	return &OlderClients{hub: hub, relay: pendingEvaluations{pendingByID: map[string]*pendingEval{}, unfetchedByPause: map[string][]*pendingEval{}}}
}

// callRequest is a client's description of a call.
type callRequest struct {
	MethodName string                  `json:"method_name"`
	Target     *Item                   `json:"target"`
	Args       []Item                  `json:"args"`
	Kwargs     map[string]*Item        `json:"kwargs"`
	CallSite   json.RawMessage         `json:"call_site"`
	Signature  FunctionSignature       `json:"signature"`
	PID        *int                    `json:"process_pid"`
	Started    *float64                `json:"process_start_time"`
	Preferred  ItemSerializationFormat `json:"preferred_format"`
	PageURL    string                  `json:"page_url"`
}

// process returns the process of a request; zero if the client does not send it.
func (in callRequest) process() debug.CallerProcess {
	if in.PID == nil || in.Started == nil {
		return debug.CallerProcess{}
	}
	return debug.NewCallerProcess(*in.PID, *in.Started)
}

func (in callRequest) targetAndArgumentItems() []*Item {
	var all []*Item
	for i := range in.Args {
		all = append(all, &in.Args[i])
	}
	if in.Target != nil {
		all = append(all, in.Target)
	}
	for name, it := range in.Kwargs {
		if it == nil { // a null argument becomes an empty item, which is refused later
			it = &Item{}
			in.Kwargs[name] = it
		}
		all = append(all, it)
	}
	return all
}

// ReportCallStart handles /api/call/start: it reports the call in the body to the hub.
func (c *OlderClients) ReportCallStart(ctx context.Context, callStartBody json.RawMessage) (debug.CallStartResponse, error) {
	var in callRequest
	if err := decodeBody(callStartBody, &in); err != nil {
		return debug.CallStartResponse{}, err
	}
	if in.PID == nil || in.Started == nil {
		return debug.CallStartResponse{}, &debug.Error{Code: "missing_process_identity", Message: "process_pid and process_start_time required"}
	}
	in.Preferred = cmp.Or(in.Preferred, FormatDill)
	if !in.Preferred.IsKnown() {
		return debug.CallStartResponse{}, &debug.Error{Code: "invalid_preferred_format", Message: fmt.Sprintf("unknown preferred_format %q", in.Preferred)}
	}
	if err := c.storeCallItemsOrRequestResend(in.process().ProcessKey, in.targetAndArgumentItems()); err != nil {
		return debug.CallStartResponse{}, err
	}
	data := CallData{Target: in.Target, Args: in.Args, PageURL: in.PageURL, Preferred: in.Preferred, Kwargs: map[string]Item{}}
	for name, it := range in.Kwargs {
		data.Kwargs[name] = *it
	}
	return c.hub.ReportCallStart(ctx, c.WithOlderClientAsCaller(debug.Call{
		Tool: in.MethodName, CallSite: in.CallSite, PID: *in.PID, Started: *in.Started, Signature: string(in.Signature),
	}, data))
}

// WithOlderClientAsCaller makes call one of an older client, with its values from callValues, whose bytes must be in the hub's store.
func (c *OlderClients) WithOlderClientAsCaller(call debug.Call, callValues CallData) (olderClientCall debug.Call) {
	call.Foreign = &debug.ForeignCaller{Caller: olderClientAdapter{c, callValues.Preferred}, Values: withDisplayForms(c.hub, callValues), Lease: pauseLease}
	return call
}

// olderClientAdapter encodes decisions about paused calls in the form that an older client reads. It also lets the client
// evaluate expressions.
type olderClientAdapter struct {
	*OlderClients
	newValueFormat ItemSerializationFormat // format of new values
}

// Actions allows only continue after a call, because older clients ignore other decisions at that point.
func (olderClientAdapter) Actions(phase debug.CallPhase) (supportedActions []debug.PauseDecisionAction) {
	if phase == debug.PhaseAfterCall {
		return []debug.PauseDecisionAction{debug.ActionContinue}
	}
	return []debug.PauseDecisionAction{debug.ActionContinue, debug.ActionModify, debug.ActionSkip, debug.ActionRaise, debug.ActionRunOtherTool}
}

// AddBodyValuesToOutcome adds the values in the body of /api/call/complete to an outcome.
func (c *OlderClients) AddBodyValuesToOutcome(body json.RawMessage, o *debug.CallOutcome) error {
	var in struct {
		outcomeItemMembers
		Traceback string `json:"exception_traceback"`
	}
	if err := decodeBody(body, &in); err != nil {
		return err
	}
	e, err := c.storeOutcomeItemsAndSetDisplayForms(in.outcomeItemMembers, &o.Result, &o.Exception)
	if err != nil {
		return err
	}
	o.ResultCID, o.ErrorCID, o.Failed = in.ResultCID, in.ErrorCID, o.Failed || in.ErrorCID != ""
	if e.Traceback = in.Traceback; e != (OutcomeFromOlderClient{}) {
		o.ExtraFields = e
	}
	return nil
}

func (c *OlderClients) addRecordOfReportedEvent(_ context.Context, eventRequest Request) (any, error) {
	var in struct {
		callRequest
		outcomeItemMembers
		EventType    string            `json:"event_type"`
		Status       string            `json:"status"`
		PrettyArgs   []json.RawMessage `json:"pretty_args"`
		PrettyKwargs json.RawMessage   `json:"pretty_kwargs"`
		PrettyResult json.RawMessage   `json:"pretty_result"`
		Exception    json.RawMessage   `json:"exception"`
		EventID      string            `json:"event_id"`
	}
	if err := decodeBody(eventRequest.Body, &in); err != nil {
		return nil, err
	}
	name := cmp.Or(in.MethodName, in.EventType)
	if name == "" {
		return nil, debug.NewMissingParameterError("method_name")
	}
	more, err := c.storeOutcomeItemsAndSetDisplayForms(in.outcomeItemMembers, &in.PrettyResult, &in.Exception)
	if err != nil {
		return nil, err
	}
	rec := debug.CallRecord{CallData: debug.CallData{
		CallID: in.EventID, MethodName: name, Signature: string(in.Signature), CallSite: in.CallSite, CallerProcess: in.process(),
		PrettyResult: in.PrettyResult, Exception: in.Exception,
		Values: &CallData{PageURL: in.PageURL, PrettyArgs: in.PrettyArgs, PrettyKwargs: in.PrettyKwargs},
	}, CallEnding: debug.CallEnding{Status: cmp.Or(in.Status, "success"), ResultCID: in.ResultCID, ErrorCID: in.ErrorCID}}
	if more != (OutcomeFromOlderClient{}) {
		rec.ExtraFields = more
	}
	c.hub.Records.AddExternalRecord(rec)
	return StatusOKFields(), nil
}

func (c *OlderClients) registerDebuggedFunction(_ context.Context, r Request) (any, error) {
	var in struct {
		Name      string                  `json:"function_name"`
		Signature FunctionSignature       `json:"signature"`
		Ref       json.RawMessage         `json:"function_client_ref"`
		CID       string                  `json:"function_cid"`
		Data      *string                 `json:"function_data"`
		Format    ItemSerializationFormat `json:"function_serialization_format"`
		Metadata  json.RawMessage         `json:"function_metadata"`
		Alias     string                  `json:"alias"` // "server/tool" of an MCP tool
	}
	if err := decodeBody(r.Body, &in); err != nil {
		return nil, err
	}
	it := Item{CID: in.CID, ClientRef: in.Ref, Data: in.Data, Format: in.Format}
	if it.CID != "" {
		if err := c.storeItemOrIgnoreMissingData(it); err != nil {
			return nil, err
		}
	}
	f := debug.RegisteredFunction{Name: in.Name, Signature: string(in.Signature), Alias: in.Alias}
	var err error
	if f.Metadata, err = c.describeRegisteredFunction(it, in.Metadata); err != nil {
		return nil, err
	}
	if err := c.hub.AddOrReplaceFunction(f); err != nil {
		return nil, err
	}
	return StatusOKFields("function_name", in.Name, "signature", in.Signature), nil
}

// OlderClientRoute is one of the older clients' routes.
type OlderClientRoute struct {
	Method, Path, Summary string
	Client                bool // true for a route that a client calls, even from a web page; the other routes are for people
	Answer                func(c *OlderClients, ctx context.Context, r Request) (any, error)
}

// Request holds the parts of a request that routes use: the body, JSON or empty, and the {id} of the path.
type Request struct {
	Body json.RawMessage
	ID   string
}

// Routes returns the routes that only older clients use, or that have a special form for older clients.
func Routes() []OlderClientRoute {
	return []OlderClientRoute{
		{Method: "POST", Path: "/api/functions", Client: true, Summary: "Register a function", Answer: (*OlderClients).registerDebuggedFunction},
		{Method: "POST", Path: "/api/call/event", Client: true, Summary: "Record an event that is not a call", Answer: (*OlderClients).addRecordOfReportedEvent},
		{Method: "POST", Path: "/api/report-com-error", Client: true, Summary: "Report a communication error", Answer: (*OlderClients).recordCommunicationError},
		{Method: "GET", Path: "/api/com-errors", Summary: "List communication errors", Answer: func(c *OlderClients, _ context.Context, _ Request) (any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return ResponseFields{"errors": append([]json.RawMessage{}, c.comErrors...)}, nil
		}},
		{Method: "GET", Path: "/api/poll-repl/{id}", Client: true, Summary: "Ask for an expression to evaluate", Answer: func(c *OlderClients, _ context.Context, r Request) (any, error) {
			if q := c.TakeEvalRequest(r.ID); q != nil {
				return q, nil
			}
			return ResponseFields{"eval_id": nil}, nil
		}},
		{Method: "POST", Path: "/api/call/repl-result", Client: true, Summary: "Return the value of an expression to the debugger", Answer: (*OlderClients).decodeAndDeliverEvalResponse},
	}
}

const maxComErrors = 500

// recordCommunicationError stores a client's report of a failed communication; the newest 500 are kept.
func (c *OlderClients) recordCommunicationError(_ context.Context, r Request) (any, error) {
	if len(r.Body) == 0 || r.Body[0] != '{' {
		return nil, &debug.Error{Code: "invalid_payload", Message: "a report must be an object"}
	}
	c.mu.Lock()
	c.comErrors = append(c.comErrors, debug.ValueOrTruncationMarker(r.Body, ""))
	if n := len(c.comErrors) - maxComErrors; n > 0 {
		c.comErrors = slices.Clone(c.comErrors[n:])
	}
	c.mu.Unlock()
	c.hub.PublishChange(debug.TopicClientCommunicationErrors)
	return StatusOKFields(), nil
}

func (c *OlderClients) decodeAndDeliverEvalResponse(_ context.Context, r Request) (any, error) {
	var in EvalResponse
	if err := decodeBody(r.Body, &in); err != nil {
		return nil, err
	}
	return StatusOKFields(), c.DeliverEvalResponse(in)
}

// decodeBody decodes a body; an empty body leaves v unchanged.
func decodeBody(body json.RawMessage, v any) error {
	if len(body) == 0 {
		return nil
	}
	return json.Unmarshal(body, v)
}

// ResponseFields is the body of most responses.
type ResponseFields map[string]any

// StatusOKFields returns the body of a successful response, with additional fields.
func StatusOKFields(keysAndValues ...any) (successResponse ResponseFields) {
	f := ResponseFields{"status": "ok"}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		f[fmt.Sprint(keysAndValues[i])] = keysAndValues[i+1]
	}
	return f
}

type wireDecision struct {
	Action         debug.PauseDecisionAction `json:"action"`
	ModifiedArgs   *[]Item                   `json:"modified_args,omitempty"`
	ModifiedKwargs *map[string]Item          `json:"modified_kwargs,omitempty"`
	replacementResult
	Type     string  `json:"exception_type,omitempty"`
	Message  *string `json:"exception_message,omitempty"`
	Function string  `json:"function_name,omitempty"`
}

// replacementResult is the result that a client uses instead of running the function. Value holds a result in JSON. The
// other fields hold a result that the front end sent as an item.
type replacementResult struct {
	Value  json.RawMessage         `json:"fake_result,omitempty"`
	Data   *string                 `json:"fake_result_data,omitempty"`
	CID    string                  `json:"fake_result_cid,omitempty"`
	Format ItemSerializationFormat `json:"fake_result_serialization_format,omitempty"`
}

// Encode writes new arguments in the client's own format. A replaced result stays in the form in which the front end sent it.
func (c olderClientAdapter) Encode(decision debug.Decision) (decisionForClient json.RawMessage, encodeError error) {
	w := wireDecision{Action: decision.Action, Function: decision.Tool}
	switch decision.Action {
	case debug.ActionModify:
		if decision.Request != nil {
			if err := w.setModifiedArguments(*decision.Request, c.newValueFormat); err != nil {
				return nil, err
			}
		}
	case debug.ActionSkip:
		if decision.Request != nil && decision.Request.Raw != nil {
			if err := json.Unmarshal(decision.Request.Raw, &w.replacementResult); err != nil {
				return nil, err
			}
		}
		w.Value = decision.Result
		if len(bytes.TrimSpace(w.Value)) == 0 && w.Data == nil && w.CID == "" {
			w.Value = json.RawMessage("null")
		}
	case debug.ActionRaise:
		w.Type, w.Message = cmp.Or(decision.Type, "Exception"), &decision.Message
	default: // only the action
	}
	return protocol.Marshal(w)
}

func (w *wireDecision) setModifiedArguments(resumeRequest debug.ResumeRequest, valueFormat ItemSerializationFormat) error {
	one := func(name string, v json.RawMessage) (Item, error) {
		it, err := EncodeItem(v, valueFormat)
		if err != nil {
			return it, &debug.Error{Code: debug.CodeInvalidArguments, Message: strings.TrimSpace(name + " " + err.Error())}
		}
		return it, nil
	}
	if resumeRequest.ModifiedArgs != nil {
		args := []Item{}
		for _, v := range *resumeRequest.ModifiedArgs {
			it, err := one("", v)
			if err != nil {
				return err
			}
			args = append(args, it)
		}
		w.ModifiedArgs = &args
	}
	if resumeRequest.ModifiedKwargs != nil {
		kwargs := map[string]Item{}
		for name, v := range *resumeRequest.ModifiedKwargs {
			it, err := one(name, v)
			if err != nil {
				return err
			}
			kwargs[name] = it
		}
		w.ModifiedKwargs = &kwargs
	}
	return nil
}

//go:embed debug-client.js
var olderJavaScriptClientSource string

// ServeJavaScriptClientSource serves the older JavaScript client, which connects to the address that it was loaded from.
func ServeJavaScriptClientSource(w http.ResponseWriter, r *http.Request) {
	address := fmt.Sprintf("const SERVER_URL = %q;", "http://"+r.Host) // localhttp.Guard has checked the host
	body := []byte(strings.Replace(olderJavaScriptClientSource, `const SERVER_URL = "";`, address, 1))
	h := w.Header()
	h.Set("Content-Type", "application/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
