package debug

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Caller is what may be done to the calls of a caller, and how it is told.
type Caller interface {
	// Can lists the actions that the caller carries out on one side of a call.
	Can(Phase) []Action
	// Encode writes a decision as the caller reads it. A refusal is an *[Error]:
	// then the decision is not made.
	Encode(Decision) (json.RawMessage, error)
}

// Evaluator is a caller that evaluates expressions itself, in its own language.
type Evaluator interface {
	// Evaluate returns what an expression gave, or an error when ctx ends or
	// Gone is closed first.
	Evaluate(ctx context.Context, a EvaluationRequest) (Answer, error)
}

// EvaluationRequest is an expression that an [Evaluator] is to evaluate.
type EvaluationRequest struct {
	PauseID, SessionID, Expr string
	Gone                     <-chan struct{} // closed when the session ends
}

// nativeCaller is a caller of ours.
type nativeCaller Client

// Can tells hooks, which cannot run another tool, from the others.
func (n nativeCaller) Can(phase Phase) []Action {
	switch {
	case phase == After:
		return []Action{ActionContinue, ActionModify, ActionRaise}
	case Client(n) == ClientHook:
		return []Action{ActionContinue, ActionModify, ActionSkip, ActionRaise}
	default:
		return []Action{ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionReplace}
	}
}

// Encode writes what package client reads.
func (n nativeCaller) Encode(d Decision) (json.RawMessage, error) {
	w := struct {
		Action  Action          `json:"action"`
		Input   json.RawMessage `json:"modified_input,omitempty"`
		Result  json.RawMessage `json:"modified_result,omitempty"`
		Fake    json.RawMessage `json:"fake_result,omitempty"`
		Type    *string         `json:"exception_type,omitempty"`
		Message *string         `json:"exception_message,omitempty"`
		Tool    string          `json:"function_name,omitempty"`
	}{Action: d.Action, Tool: d.Tool}
	switch d.Action {
	case ActionModify:
		if w.Input = d.Input; d.Input == nil {
			w.Result = orNull(d.Result)
		}
	case ActionSkip:
		w.Fake = orNull(d.Result)
	case ActionRaise:
		w.Type, w.Message = &d.Type, &d.Message
	default: // nothing beside the action and the tool
	}
	return protocol.Marshal(w)
}

func orNull(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// Call is a tool call that is about to run.
type Call struct {
	Tool      string          // canonical name
	Input     json.RawMessage // a JSON object
	Session   string          // of the agent; empty = unknown
	ToolUseID string          // empty = unknown
	Client    Client
	Site      json.RawMessage // where the call comes from; nil = unknown
	PID       int             // of the caller's process; 0 = unknown
	Started   float64         // of the caller's process, Unix seconds
	Signature string          // empty = that of the registered function
	Other     *ForeignCaller  // nil = a caller of ours
}

// ForeignCaller is what a caller that is none of ours brings along.
type ForeignCaller struct {
	// Caller must be set; it may be an Evaluator too.
	Caller Caller
	// Values take the place of the call's Input.
	Values Values
	// Lease is that of its pauses; 0 = Options.Lease. One before a call begins
	// with the caller's first question.
	Lease time.Duration
}

// StartedCall is the hub's answer to a call about to run.
type StartedCall struct {
	CallID string
	// PauseID is set when the call is stopped: the decision is got from Wait.
	PauseID string
	// Decision is ActionContinue or ActionReplace when the call is not stopped.
	Decision Decision
}

// Outcome is how a call went.
type Outcome struct {
	Failed bool
	// Result is what the tool gave: a string for a plain text, else the
	// content as JSON. nil = null.
	Result json.RawMessage
	// ResultCID names a result whose bytes are in the store already, in another
	// form; empty = the hub keeps Result.
	ResultCID string
	// Error and ErrorType tell why a failed call failed, and Exception how that is
	// shown; nil = by those two. ErrorCID names it in the store; empty = it is not
	// there.
	Error, ErrorType string
	Exception        json.RawMessage
	ErrorCID         string
	// More are further members of the record; nil = none.
	More json.Marshaler
}

// Completion is an outcome and the call it is of, by its id or by the agent's
// session and tool use.
type Completion struct {
	CallID, Session, ToolUseID string
	Outcome
}

// Decision is what a caller does with its call. Which fields are set depends
// on Action.
type Decision struct {
	Action Action
	Input  json.RawMessage // modify before the call: the whole new input
	// Result is that of skip, and of modify after the call: a string is the
	// text, anything else its JSON.
	Result        json.RawMessage
	Type, Message string // raise
	Tool          string // replace: canonical name
	// Pause is the id of the pause that this ended, and Breakpoint what had
	// stopped the call, as far as the gate tells. Both empty = it was not stopped.
	Pause, Breakpoint string
	// Wire is the decision as its caller reads it.
	Wire json.RawMessage
	// Wish is what a front asked for, while the decision is encoded; nil = the hub
	// decided by itself.
	Wish *Resume
	// InputCID names Input in the store; empty = not known.
	InputCID string
}

// Resume is a decision as a front gives it. The zero value lets the call go on.
type Resume struct {
	// Action is continue, modify, skip, raise or replace; empty = continue,
	// which with new arguments is modify.
	Action string `json:"action"`
	// ModifiedArgs are the new positional arguments; for our callers one, the
	// whole input. ModifiedKwargs are the new named ones, or the whole input.
	ModifiedArgs   *[]json.RawMessage          `json:"modified_args"`
	ModifiedKwargs *map[string]json.RawMessage `json:"modified_kwargs"`
	ModifiedResult json.RawMessage             `json:"modified_result"`
	// ModifiedInputExpr and ModifiedResultExpr are expressions whose values
	// are used for the above.
	ModifiedInputExpr  string          `json:"modified_input_expr"`
	ModifiedResultExpr string          `json:"modified_result_expr"`
	FakeResult         json.RawMessage `json:"fake_result"`
	Exception          json.RawMessage `json:"exception"`
	ExceptionType      string          `json:"exception_type"`
	ExceptionMessage   string          `json:"exception_message"`
	// ReplacementFunction wins over Action.
	ReplacementFunction string `json:"replacement_function"`
	// More is the whole request as it came, for callers that know more members;
	// nil = there are none.
	More json.RawMessage `json:"-"`
}

// Answer is what an expression gave.
type Answer struct {
	SessionID string `json:"session_id"`
	Output    string `json:"output"` // JSON; the client's own text for older clients
	Stdout    string `json:"stdout"`
	IsError   bool   `json:"is_error"`
	ResultCID string `json:"result_cid"` // empty = not kept
}
