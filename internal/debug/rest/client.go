package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ClientOptions configure a Client. URL must be set.
type ClientOptions struct {
	URL    string                 // URL of the debugger, such as http://127.0.0.1:5174
	Token  string                 // bearer token; empty means none
	Client debug.CallerKind       // the kind of caller for calls that set none; "" means the default of the debugger
	OnLost debug.NoDecisionPolicy // decides what happens to a paused call if the debugger becomes unreachable: PolicyFail (also "") or PolicyContinue
}

const (
	pollWait                         = 4 * time.Second // one long poll; the debugger responds within this time
	requestTimeout                   = 6 * time.Second
	unreachableRequestTimeout        = time.Second // timeout of requests while the debugger is known to be unreachable
	unreachableDebuggerRetryDuration = 3 * time.Second
	retryInterval                    = 200 * time.Millisecond
)

// Client reports the tool calls of one caller to a debugger over HTTP and waits for its decisions. No method waits
// longer than about 12 seconds for a server that has become unreachable. For a reachable server, a method waits as long
// as necessary. All methods may be called from many goroutines.
type Client struct {
	options           ClientOptions
	baseURL           string
	http              *http.Client
	lastRequestFailed atomic.Bool // the last request failed
}

// NewClient checks the address; it sends nothing.
func NewClient(o ClientOptions) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("invalid debugger address %q: expected http://HOST:PORT", o.URL)
	}
	switch o.OnLost {
	case "", debug.PolicyFail, debug.PolicyContinue:
	default:
		return nil, fmt.Errorf("unknown policy %q for a lost connection to the debugger: expected `fail` or `continue`", o.OnLost)
	}
	o.Client = cmp.Or(o.Client, debug.ClientClaudelessRun)
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	return &Client{options: o, baseURL: strings.TrimSuffix(u.String(), "/"), http: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
	}}, nil
}

// Close closes idle connections; do not use the client afterwards.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// DebuggerLostError reports a debugger that cannot be reached.
type DebuggerLostError struct {
	URL string
	Err error
}

func (e *DebuggerLostError) Error() string {
	return fmt.Sprintf("cannot reach the debugger at %s: %v", e.URL, e.Err)
}

func (e *DebuggerLostError) Unwrap() error { return e.Err }

// Register sends tools and their schemas to the debugger. Without tools it only checks that the debugger responds.
func (c *Client) Register(ctx context.Context, tools []protocol.Tool) error {
	if err := c.sendRequestOnce(ctx, http.MethodGet, "/api/status", nil, nil); err != nil {
		return err
	}
	for _, t := range tools {
		f, err := debug.FunctionFromTool(t)
		if err != nil {
			return err
		}
		in := jsonFieldMap{"function_name": f.Name, "signature": f.Signature, "function_metadata": f.Metadata, "alias": f.Alias}
		if err := c.sendRequestOnce(ctx, http.MethodPost, "/api/functions", in, nil); err != nil {
			return fmt.Errorf("registering %s: %w", t.Name, err)
		}
	}
	return nil
}

// callReportReply is the debugger's response to call/start and call/complete.
type callReportReply struct {
	CallID   string `json:"call_id"`
	Action   string `json:"action"`
	PollURL  string `json:"poll_url"`
	Function string `json:"function_name"`
}

// BeforeCall reports a call that is about to run and waits for the decision. If ctx is cancelled, the pause is abandoned.
func (c *Client) BeforeCall(ctx context.Context, call debug.Call) (string, debug.Decision, error) {
	call.Client = cmp.Or(call.Client, c.options.Client)
	if len(call.Input) == 0 {
		call.Input = json.RawMessage("{}")
	}
	var a callReportReply
	// The request is not cancelled with ctx, so that the id of its pause is known and the pause can be abandoned.
	err := c.sendRequestOnce(context.WithoutCancel(ctx), http.MethodPost, "/api/call/start", map[string]any{
		"method_name": call.Tool, "input": call.Input, "client": call.Client, "session_id": call.Session, "tool_use_id": call.ToolUseID,
		"call_site": call.CallSite, "process_pid": call.PID, "process_start_time": call.Started, "call_type": "proxy", "preferred_format": "json",
	}, &a)
	if err != nil {
		return "", debug.Decision{}, err
	}
	switch a.Action {
	case "poll":
		d, err := c.pollUntilDecision(ctx, a.PollURL)
		return a.CallID, d, err
	case "replace":
		return a.CallID, debug.Decision{Action: debug.ActionRunOtherTool, Tool: a.Function}, nil
	}
	return a.CallID, debug.Decision{Action: debug.ActionContinue}, nil
}

// AfterCall reports the outcome of a call and waits for the decision. The call is completed even if ctx is cancelled.
func (c *Client) AfterCall(ctx context.Context, callID string, o debug.CallOutcome) (debug.Decision, error) {
	return c.reportOutcomeAndAwaitDecision(ctx, map[string]any{"call_id": callID}, o)
}

// AfterToolUse is like AfterCall, for a caller that knows only the agent's session and tool use id.
func (c *Client) AfterToolUse(ctx context.Context, session, toolUseID string, o debug.CallOutcome) (debug.Decision, error) {
	return c.reportOutcomeAndAwaitDecision(ctx, map[string]any{"session_id": session, "tool_use_id": toolUseID}, o)
}

func (c *Client) reportOutcomeAndAwaitDecision(ctx context.Context, in map[string]any, o debug.CallOutcome) (debug.Decision, error) {
	in["status"] = "success"
	if o.Failed {
		in["status"], in["exception_message"], in["exception_type"] = "exception", o.Error, o.ErrorType
	}
	if len(o.Result) > 0 {
		in["result"] = o.Result
	}
	var a callReportReply
	if err := c.sendRequestOnce(context.WithoutCancel(ctx), http.MethodPost, "/api/call/complete", in, &a); err != nil {
		return debug.Decision{}, err
	}
	if a.Action != "poll" {
		return debug.Decision{Action: debug.ActionContinue}, nil
	}
	return c.pollUntilDecision(ctx, a.PollURL)
}

// pollPath, followed by a pause id, is the route that returns a decision.
const pollPath = "/api/poll/"

func (c *Client) pollUntilDecision(ctx context.Context, pollURL string) (debug.Decision, error) {
	var patience <-chan time.Time // limits the time for which requests fail; nil after a successful request
	for {
		d, err := c.pollDecisionOnce(ctx, pollURL)
		if ctx.Err() != nil {
			abandonCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unreachableRequestTimeout)
			defer cancel()
			_ = c.sendRequestOnce(abandonCtx, http.MethodDelete, pollURL, nil, nil) // if this fails, the lease ends the pause
			return debug.Decision{}, ctx.Err()
		}
		var refused *debug.Error
		switch {
		case err == nil && d == nil:
			patience = nil
			continue
		case err == nil && d.Action == debug.ActionEndedWithoutDecision:
			return c.decideWithoutDebugger(errors.New("the debugger ended the pause without a decision"))
		case err == nil:
			d.PauseID = strings.TrimPrefix(pollURL, pollPath)
			return *d, nil
		case errors.As(err, &refused): // the debugger was restarted
			return c.decideWithoutDebugger(err)
		}
		if patience == nil {
			patience = time.After(unreachableDebuggerRetryDuration)
		}
		select {
		case <-patience:
			return c.decideWithoutDebugger(err)
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}

// pollDecisionOnce makes one long poll; nil, nil means no decision yet.
func (c *Client) pollDecisionOnce(ctx context.Context, pollURL string) (decision *debug.Decision, err error) {
	var out struct {
		Status string              `json:"status"`
		Action *debug.WireDecision `json:"action"`
	}
	if err := c.sendRequestOnce(ctx, http.MethodGet, pollURL+"?wait="+pollWait.String(), nil, &out); err != nil {
		return nil, err
	}
	if out.Status != "ready" || out.Action == nil {
		return decision, nil
	}
	w := out.Action
	d := &debug.Decision{Action: w.Action, Input: w.Input, Result: w.Fake, Tool: w.Tool}
	if len(w.Result) > 0 {
		d.Result = w.Result
	}
	if w.Type != nil && w.Message != nil {
		d.Type, d.Message = *w.Type, *w.Message
	}
	return d, nil
}

func (c *Client) decideWithoutDebugger(err error) (debug.Decision, error) {
	if c.options.OnLost == debug.PolicyContinue {
		return debug.Decision{Action: debug.ActionContinue}, nil
	}
	if lost, ok := errors.AsType[*DebuggerLostError](err); ok {
		return debug.Decision{}, lost
	}
	return debug.Decision{}, &DebuggerLostError{URL: c.baseURL, Err: err}
}

// sendRequestOnce makes one request. The error is a *DebuggerLostError, a *debug.Error if the debugger refused, or the error of ctx.
func (c *Client) sendRequestOnce(ctx context.Context, method, path string, in, out any) error {
	limit := requestTimeout
	if c.lastRequestFailed.Load() {
		limit = unreachableRequestTimeout
	}
	bound, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	status, body, err := c.roundTrip(bound, method, path, in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.lastRequestFailed.Store(err != nil)
	if err != nil {
		return &DebuggerLostError{URL: c.baseURL, Err: err}
	}
	if status >= http.StatusBadRequest {
		return refusalError(status, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &DebuggerLostError{URL: c.baseURL, Err: fmt.Errorf("the answer is not JSON, so this is not the address of a debugger: %w", err)}
	}
	return nil
}

func (c *Client) roundTrip(ctx context.Context, method, path string, in any) (status int, body []byte, err error) {
	var payload io.Reader
	if in != nil {
		data, err := protocol.Marshal(in)
		if err != nil {
			return 0, nil, fmt.Errorf("encoding a request to the debugger: %w", err)
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.baseURL+path, payload)
	if err != nil {
		return 0, nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.options.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // drops the address from the text, because the caller adds it
		}
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

func refusalError(status int, body []byte) error {
	var e struct{ Error, Message string }
	if json.Unmarshal(body, &e) != nil || e.Error == "" {
		return &debug.Error{Code: "http_error", Message: fmt.Sprintf("status %d", status)}
	}
	return &debug.Error{Code: e.Error, Message: e.Message}
}
