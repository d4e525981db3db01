package debug

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// DecisionEncoder encodes decisions for one kind of caller and lists the actions that this kind supports.
type DecisionEncoder interface {
	// Actions lists the actions that the caller can carry out in one phase of a call.
	Actions(CallPhase) []PauseDecisionAction
	// Encode returns a decision in the caller's format. An *[Error] refuses the decision; the pause stays open.
	Encode(Decision) (json.RawMessage, error)
}

// Evaluator is a caller that evaluates expressions itself, in its own language.
type Evaluator interface {
	// Evaluate returns the value of an expression, or an error if ctx is cancelled or a.Closed is closed first.
	Evaluate(ctx context.Context, a EvaluationRequest) (EvaluationResult, error)
}

// EvaluationRequest is an expression for an [Evaluator].
type EvaluationRequest struct {
	PauseID, SessionID, Expr string
	Closed                   <-chan struct{} // closed when the session ends
}

// claudelessCallerAdapter is the DecisionEncoder for one kind of caller that belongs to claudeless.
type claudelessCallerAdapter CallerKind

// Actions excludes replace for hooks, because they cannot run another tool.
func (n claudelessCallerAdapter) Actions(phase CallPhase) (supportedActions []PauseDecisionAction) {
	switch {
	case phase == PhaseAfterCall:
		return []PauseDecisionAction{ActionContinue, ActionModify, ActionRaise}
	case CallerKind(n) == ClientAgentHook:
		return []PauseDecisionAction{ActionContinue, ActionModify, ActionSkip, ActionRaise}
	default:
		return []PauseDecisionAction{ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionRunOtherTool}
	}
}

// WireDecision is a decision for claudeless's own callers. Type and Message are set only if Action is raise.
type WireDecision struct {
	Action  PauseDecisionAction `json:"action"`
	Input   json.RawMessage     `json:"modified_input,omitempty"`
	Result  json.RawMessage     `json:"modified_result,omitempty"`
	Fake    json.RawMessage     `json:"fake_result,omitempty"`
	Type    *string             `json:"exception_type,omitempty"`
	Message *string             `json:"exception_message,omitempty"`
	Tool    string              `json:"function_name,omitempty"`
}

// Encode returns the decision as a [WireDecision], which rest.Client reads.
func (n claudelessCallerAdapter) Encode(d Decision) (wireDecision json.RawMessage, encodingError error) {
	w := WireDecision{Action: d.Action, Tool: d.Tool}
	switch d.Action {
	case ActionModify:
		if w.Input = d.Input; d.Input == nil {
			w.Result = nullIfEmpty(d.Result)
		}
	case ActionSkip:
		w.Fake = nullIfEmpty(d.Result)
	case ActionRaise:
		w.Type, w.Message = &d.Type, &d.Message
	default: // only the action and the tool are set
	}
	return protocol.Marshal(w)
}

func nullIfEmpty(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("null")
	}
	return v
}

// Call is a tool call that is about to run.
type Call struct {
	Tool      string          // canonical name
	Input     json.RawMessage // a JSON object
	Session   string          // agent session; empty means unknown
	ToolUseID string          // empty means unknown
	Client    CallerKind
	CallSite  json.RawMessage // location of the call in the program; nil means unknown
	PID       int             // process id of the caller; 0 means unknown
	Started   float64         // start time of the caller's process, in Unix seconds
	Signature string          // signature of the tool; empty means that of the registered function
	Foreign   *ForeignCaller  // nil means one of claudeless's own callers
}

// ForeignCaller describes a caller that is not part of claudeless.
type ForeignCaller struct {
	Caller DecisionEncoder // must be set; it may also be an Evaluator
	Values CallArguments   // replace the call's Input
	// Lease is how long a pause stays open while its caller does not poll; 0 means Options.Lease. For a pause before a
	// call, this time begins only with the first poll.
	Lease time.Duration
}

// CallStartResponse is the hub's response to the start of a call.
type CallStartResponse struct {
	CallID  string
	PauseID string // the call is stopped; Wait returns the decision
	// Decision applies if the call is not stopped. It is ActionRunOtherTool if a breakpoint specifies a replacement tool,
	// otherwise ActionContinue.
	Decision Decision
}

// CallOutcome is the result or the error of a call.
type CallOutcome struct {
	Failed    bool
	Result    json.RawMessage // the tool's result: a string for plain text, otherwise the content as JSON; nil means null
	ResultCID string          // the id of the result in the store; if it is empty, the hub stores Result
	// Error and ErrorType describe the failure of a call. Exception is the form in which the failure is displayed; if it is
	// nil, the hub makes it from Error and ErrorType. ErrorCID is the id of the failure in the store; empty means not stored.
	Error, ErrorType string
	Exception        json.RawMessage
	ErrorCID         string
	ExtraFields      any // additional members of the record; nil means none
}

// CompletionReport is the outcome of a call. The call is identified by its id, or by the agent's session and tool use.
type CompletionReport struct {
	CallID, Session, ToolUseID string
	CallOutcome
}

// Decision tells a caller how to continue with its call. The fields that are set depend on Action.
type Decision struct {
	Action        PauseDecisionAction
	Input         json.RawMessage // for modify before the call: the complete new input
	Result        json.RawMessage // result for skip, and for modify after the call: a string is the result's text, anything else its JSON
	Type, Message string          // for raise: type and message of the exception
	Tool          string          // for replace: canonical name of the tool that runs
	// PauseID is the id of the pause that this decision ends. BreakpointName is the breakpoint that stopped the call;
	// only a [ScriptedGate] sets it. Both are empty if the call was not stopped.
	PauseID, BreakpointName string
	Encoded                 json.RawMessage // the decision in the caller's format
	// Request is the request of the front end. It is set only for [DecisionEncoder.Encode]; nil means the hub itself decided.
	Request  *ResumeRequest
	InputCID string // the id of Input in the store; empty means unknown
}

// ResumeRequest is a decision as a front end sends it. The zero value continues the call.
type ResumeRequest struct {
	// Action is continue, modify, skip, raise or replace. Empty means continue, or modify if there are new arguments.
	Action string `json:"action"`
	// ModifiedArgs and ModifiedKwargs are the new positional and named arguments. A call that claudeless itself makes has one input
	// instead of arguments: its new value is either the only element of ModifiedArgs, or ModifiedKwargs as a whole.
	ModifiedArgs   *[]json.RawMessage          `json:"modified_args"`
	ModifiedKwargs *map[string]json.RawMessage `json:"modified_kwargs"`
	ModifiedResult json.RawMessage             `json:"modified_result"`
	// ModifiedInputExpr and ModifiedResultExpr are expressions for the new input or result.
	ModifiedInputExpr  string          `json:"modified_input_expr"`
	ModifiedResultExpr string          `json:"modified_result_expr"`
	FakeResult         json.RawMessage `json:"fake_result"`
	Exception          json.RawMessage `json:"exception"`
	ExceptionType      string          `json:"exception_type"`
	ExceptionMessage   string          `json:"exception_message"`
	// ReplacementFunction is the function that runs instead of the tool; if it is set, Action is ignored.
	ReplacementFunction string `json:"replacement_function"`
	// Raw is the whole request, for callers that support further members; nil means none.
	Raw json.RawMessage `json:"-"`
}

// EvaluationResult is the result of evaluating an expression.
type EvaluationResult struct {
	SessionID string `json:"session_id"`
	Output    string `json:"output"` // JSON; for an older client, the text that it returned
	Stdout    string `json:"stdout"`
	IsError   bool   `json:"is_error"`
	ResultCID string `json:"result_cid"` // empty means not stored
}
