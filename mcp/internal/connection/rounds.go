package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// A server of revision 2026-07-28 that needs input answers a request with questions; the client repeats the request
// with the answers. mcp-go also supports this, but it parses the questions into types that drop unknown members, and it
// gives up on a server that only asks the client to retry later.

// maxInputRounds is the maximum number of times that a request is repeated because its result asks for input or a retry.
// pauseBeforeRetryWithoutQuestions is the pause before a retry (observed with 2.1.330).
const (
	maxInputRounds                   = 10
	pauseBeforeRetryWithoutQuestions = 250 * time.Millisecond
)

// inputRequiredResult is the server's result for a call that needs answers of the user before it can finish.
type inputRequiredResult struct {
	ResultType json.RawMessage `json:"resultType"`
	Requests   json.RawMessage `json:"inputRequests"`
	State      json.RawMessage `json:"requestState"`
}

type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type inputRequestRepetition struct {
	handler         Handler
	handlesSampling bool // the handler handles sampling requests
	debug           DebugLog
	method          string
	firstParams     plainjson.Object // parameters of the first request
	repetitionCount int
}

// askAndBuildNextParams returns the parameters for repeating the request, given its last result; nil means the result is complete.
func (r *inputRequestRepetition) askAndBuildNextParams(ctx context.Context, result json.RawMessage) (plainjson.Object, error) {
	var q inputRequiredResult
	if json.Unmarshal(result, &q) != nil {
		return nil, nil
	}
	if complete, err := q.isComplete(r.method); complete || err != nil {
		return nil, err
	}
	if r.repetitionCount == maxInputRounds {
		return nil, CLIError(fmt.Sprintf("Multi-round-trip request '%s' still required input after %d rounds (inputRequired.maxRounds)", r.method, maxInputRounds))
	}
	r.repetitionCount++
	answers, err := r.askQuestions(ctx, q.Requests)
	if err != nil {
		return nil, err
	}
	params := slices.Clone(r.firstParams)
	if answers != nil {
		params = params.Set("inputResponses", answers)
	} else if !SleepUnlessCancelled(ctx, pauseBeforeRetryWithoutQuestions) {
		return nil, context.Cause(ctx)
	}
	if q.State != nil {
		params = params.Set("requestState", q.State)
	}
	return params, nil
}

// isComplete reports whether the result requests no input. An invalid result is an error (observed with 2.1.330).
func (q inputRequiredResult) isComplete(method string) (bool, error) {
	kind, isText := plainjson.StringValue(q.ResultType)
	switch {
	case q.ResultType != nil && !isText:
		return false, NewMalformedResultError(method, "non-string resultType")
	case kind == string(wire.ResultTypeInputRequired):
		if asked, _ := plainjson.Parse(q.Requests); len(asked) == 0 && q.State == nil {
			return false, NewMalformedResultError(method, "input_required carries neither inputRequests nor requestState (every input_required result must include at least one of the two)")
		}
		return false, nil
	case kind != "" && kind != string(wire.ResultTypeComplete):
		return false, &RPCError{Code: CodeInternalError, Message: fmt.Sprintf("Unsupported result type '%s' for %s", kind, method)}
	}
	return true, nil
}

// askQuestions returns the answers of the handler in the order of the questions; nil means no questions. If the client
// does not support one of the questions, none is asked.
func (r *inputRequestRepetition) askQuestions(ctx context.Context, requests json.RawMessage) (json.RawMessage, error) {
	all, _ := plainjson.Parse(requests) // anything but an object has no questions
	if len(all) == 0 {
		return nil, nil
	}
	asked := make([]inputRequest, len(all))
	for i, m := range all {
		if err := json.Unmarshal(m.Value, &asked[i]); err != nil {
			return nil, fmt.Errorf("reading the input request %q: %w", m.Key, err)
		}
		switch method := asked[i].Method; {
		case method != MethodElicit && method != MethodRoots && method != MethodSample:
			return nil, &UnusableResultError{"returned a malformed result that failed schema validation: its answer asked for input of a kind this client does not serve, so the call was not made again"}
		case method == MethodSample && !r.handlesSampling:
			return nil, &UnusableResultError{"asked for input this client could not serve (" + method + "), so the call was not made again"}
		case method == MethodElicit:
			if err := checkElicitation(asked[i].Params, true); err != nil {
				return nil, err
			}
		}
	}
	for i, q := range asked {
		r.debug.LogMessage("<-", q.Method, all[i].Key)
		answer, err := r.handler.HandleRequest(ctx, q.Method, q.Params)
		if err != nil {
			return nil, fmt.Errorf("answering the input request %q: %w", all[i].Key, err)
		}
		if all[i].Value, err = json.Marshal(answer); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// SleepUnlessCancelled waits for d and reports whether ctx is still live.
func SleepUnlessCancelled(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
