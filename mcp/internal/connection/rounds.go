package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/ordered"
)

// A server of the newer era that needs input answers a request with questions;
// the request is then made again, with the answers. mcp-go can do that too, but it
// reads the questions into types that drop what it does not know, and it gives up
// on a server that only asks for patience.

// maxRounds is how often a request is made again with input; retryPause comes
// before it is made again without any (observed with 2.1.330).
const (
	maxRounds  = 10
	retryPause = 250 * time.Millisecond
)

// inputRequests are a result that asks for input.
type inputRequests struct {
	ResultType string          `json:"resultType"`
	Requests   json.RawMessage `json:"inputRequests"`
	State      json.RawMessage `json:"requestState"`
}

// inputRequest is one of the questions of a result.
type inputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// TooManyRoundsError says that a request still wanted input after the last round.
type TooManyRoundsError struct{ Method string }

func (e *TooManyRoundsError) Error() string {
	return fmt.Sprintf("Multi-round-trip request '%s' still required input after %d rounds (inputRequired.maxRounds)", e.Method, maxRounds)
}

// UnservedError says that a request wanted input that the handler does not have.
type UnservedError struct{ Method string }

func (e *UnservedError) Error() string {
	return "asked for input this client could not serve (" + e.Method + "), so the call was not made again"
}

// inputRounds answers what the results of one request ask for.
type inputRounds struct {
	handler  Handler
	sampling bool // the handler answers it
	debug    Log
	method   string
	params   map[string]json.RawMessage // of the first request
	made     int
}

// next returns the parameters to make the request again with, because of its result;
// nil = the result is complete.
func (r *inputRounds) next(ctx context.Context, result json.RawMessage) (map[string]json.RawMessage, error) {
	var q inputRequests
	if json.Unmarshal(result, &q) != nil || q.ResultType != string(wire.ResultTypeInputRequired) {
		return nil, nil
	}
	if r.made == maxRounds {
		return nil, &TooManyRoundsError{Method: r.method}
	}
	r.made++
	answers, err := r.answers(ctx, q.Requests)
	if err != nil {
		return nil, err
	}
	params := map[string]json.RawMessage{}
	maps.Copy(params, r.params)
	if answers != nil {
		params["inputResponses"] = answers
	} else if !sleep(ctx, retryPause) {
		return nil, context.Cause(ctx)
	}
	if q.State != nil {
		params["requestState"] = q.State
	}
	return params, nil
}

// answers are those of the handler, in the order of the questions; nil = there are
// no questions. Nothing is asked unless all of it can be answered.
func (r *inputRounds) answers(ctx context.Context, requests json.RawMessage) (json.RawMessage, error) {
	all, _ := ordered.Parse(requests) // what is no object asks nothing
	if len(all) == 0 {
		return nil, nil
	}
	asked := make([]inputRequest, len(all))
	for i, m := range all {
		if err := json.Unmarshal(m.Value, &asked[i]); err != nil {
			return nil, fmt.Errorf("reading the input request %q: %w", m.Key, err)
		}
		if !r.serves(asked[i].Method) {
			return nil, &UnservedError{Method: asked[i].Method}
		}
	}
	for i, q := range asked {
		r.debug.Message("<-", q.Method, all[i].Key)
		answer, err := r.handler.Answer(ctx, q.Method, q.Params)
		if err != nil {
			return nil, fmt.Errorf("answering the input request %q: %w", all[i].Key, err)
		}
		if all[i].Value, err = json.Marshal(answer); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// serves reports whether the client declared that it answers a method.
func (r *inputRounds) serves(method string) bool {
	switch method {
	case MethodElicit, MethodRoots:
		return true
	case MethodSample:
		return r.sampling
	}
	return false
}

// sleep waits and reports whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
