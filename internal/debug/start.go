package debug

import (
	"cmp"
	"context"
	_ "embed" // for the files of the page
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// ReportCallStart reports a call that is about to run. If a breakpoint stops the call, Start opens a pause and returns its id
// without waiting for the decision.
func (h *Hub) ReportCallStart(ctx context.Context, c Call) (CallStartResponse, error) {
	if c.Tool == "" {
		return CallStartResponse{}, NewError(CodeMissingParameter, "method_name required", "parameter", "method_name")
	}
	k, err := h.newCallWithStoredInput(c)
	if err != nil {
		return CallStartResponse{}, err
	}
	if err := h.assignIDAndStoreRunningCall(k); err != nil {
		return CallStartResponse{}, err
	}
	begun := CallStartResponse{CallID: k.data.CallID, Decision: Decision{Action: ActionContinue}}
	hit, stopped := h.BreakpointSet.matchBreakpointOrTakeRulePause(ctx, k, PhaseBefore, nil)
	if hit == nil {
		return begun, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case stopped && (h.closed || len(h.pauses.openPauses) >= maxOpenPauses):
		h.calls.remove(k)
		return CallStartResponse{}, NewError(CodeLimit, "too many paused calls")
	case stopped:
		begun.PauseID = h.openPauseLocked(k, PhaseBefore, hit.Name, nil).id
	case hit.Replacement != "" && slices.Contains(k.caller.Actions(PhaseBefore), ActionRunOtherTool):
		begun.Decision = Decision{Action: ActionRunOtherTool, Tool: h.canonicalNameOfToolSpelling(hit.Replacement)}
		k.action = ActionRunOtherTool
	}
	return begun, nil
}

func (h *Hub) assignIDAndStoreRunningCall(k *runningCall) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return NewError(CodeHubClosed, "the debugger is closing")
	}
	k.data.Signature = cmp.Or(k.data.Signature, h.functions[k.data.MethodName].Signature)
	k.data.StartedAt = unixSeconds(h.options.Now())
	k.data.CallID = h.newCallID(k.data.StartedAt)
	h.calls.addAndDropOldest(k)
	return nil
}

func (h *Hub) newCallWithStoredInput(reported Call) (*runningCall, error) {
	k := &runningCall{caller: claudelessCallerAdapter(reported.Client), vars: map[string]any{}, data: CallData{
		MethodName: reported.Tool, Client: reported.Client, SessionID: reported.Session, ToolUseID: reported.ToolUseID, CallSite: reported.CallSite,
		Signature: reported.Signature, CallerProcess: NewCallerProcess(reported.PID, reported.Started), Evaluator: "local",
	}}
	if o := reported.Foreign; o != nil {
		k.caller, k.lease, k.data.Values = o.Caller, o.Lease, o.Values
		_, k.isNativeInput = o.Values.(ClaudelessCallInput)
		if _, ok := o.Caller.(Evaluator); ok {
			k.data.Evaluator = "client"
		}
		return k, nil
	}
	input := reported.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	canonical, err := cas.CanonicalJSON(input)
	if err != nil {
		return nil, NewError(CodeInvalidPayload, "input: "+err.Error())
	}
	if canonical[0] != '{' {
		return nil, NewError(CodeInvalidPayload, "input must be a JSON object")
	}
	// Put returns an id even for an input that is too large to store.
	cid, _ := h.store.Put(canonical)
	k.data.Values, k.isNativeInput = ClaudelessCallInput{input, cid}, true
	return k, nil
}

// RecordCallOutcomeAndPauseIfStopped records the outcome of a call. If a breakpoint stops the call after it has run, the
// result is the id of the new pause; otherwise it is empty. An unknown call is not an error: older clients complete calls
// that started before the server was restarted.
func (h *Hub) RecordCallOutcomeAndPauseIfStopped(ctx context.Context, completion CompletionReport) (pauseIDOrEmpty string, err error) {
	r, err := storeResultAndFillException(h.store, completion.CallOutcome)
	if err != nil {
		return "", err
	}
	k := h.recordOutcomeAndRemoveCall(completion, r)
	if k == nil || k.data.Client == ClientAgentHook && (k.action == ActionSkip || k.action == ActionRaise) {
		return "", nil
	}
	hit, stopped := h.BreakpointSet.matchBreakpointOrTakeRulePause(ctx, k, PhaseAfterCall, &r)
	if !stopped {
		return "", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.pauses.openPauses) >= maxOpenPauses {
		return "", nil
	}
	return h.openPauseLocked(k, PhaseAfterCall, hit.Name, &r).id, nil
}

// recordOutcomeAndRemoveCall records the outcome of a call; nil means the call is unknown.
func (h *Hub) recordOutcomeAndRemoveCall(c CompletionReport, r CallOutcome) *runningCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.CallID = cmp.Or(c.CallID, h.calls.byToolUse[toolUseKey{c.Session, c.ToolUseID}])
	k, ok := h.calls.byID[c.CallID]
	if !ok {
		return nil
	}
	if k.pause != nil { // the caller did not wait for a decision
		h.endPauseWithDecision(k.pause, Decision{Action: ActionEndedWithoutDecision})
	}
	h.calls.remove(k)
	h.Records.recordCall(k, r)
	return k
}

// BeforeCall calls [Hub.ReportCallStart] and waits for the decision. When ctx ends, the pause is abandoned.
func (h *Hub) BeforeCall(ctx context.Context, c Call) (string, Decision, error) {
	begun, err := h.ReportCallStart(ctx, c)
	if err != nil || begun.PauseID == "" {
		return begun.CallID, begun.Decision, err
	}
	d, err := h.awaitDecisionOrAbandonPause(ctx, begun.PauseID)
	return begun.CallID, d, err
}

// AfterCall calls [Hub.RecordCallOutcomeAndPauseIfStopped] and waits for the decision.
func (h *Hub) AfterCall(ctx context.Context, callID string, o CallOutcome) (Decision, error) {
	pauseID, err := h.RecordCallOutcomeAndPauseIfStopped(ctx, CompletionReport{CallID: callID, CallOutcome: o})
	if err != nil || pauseID == "" {
		return Decision{Action: ActionContinue}, err
	}
	return h.awaitDecisionOrAbandonPause(ctx, pauseID)
}

func (h *Hub) awaitDecisionOrAbandonPause(ctx context.Context, pauseID string) (Decision, error) {
	d, _, err := h.Wait(ctx, pauseID)
	d.PauseID = pauseID
	if ctx.Err() != nil {
		h.AbandonPause(pauseID)
		return Decision{}, ctx.Err()
	}
	if err == nil && d.Action == ActionEndedWithoutDecision {
		err = NewError(CodeHubClosed, "the debugger is closing")
	}
	return d, err
}

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageScript string
)

// pageSecurityPolicy lets the page load only from its own origin.
const pageSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageHandler serves the web page of the debugger at /, with its style sheet and script. If external is nil, the routes of
// external servers are not served, and the page hides its list of servers.
func PageHandler(external *ExternalServers) http.Handler {
	mux := http.NewServeMux()
	page := pageHTML
	if external == nil {
		page = strings.Replace(page, `<section id="servers"`, `<section hidden id="servers"`, 1)
	}
	serve := func(path, contentType, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", contentType)
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Security-Policy", pageSecurityPolicy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			_, _ = io.WriteString(w, body) // the client may have closed the connection
		})
	}
	serve("/{$}", "text/html; charset=utf-8", page)
	serve("/page.css", "text/css; charset=utf-8", pageCSS)
	serve("/page.js", "text/javascript; charset=utf-8", pageScript)
	return mux
}
