package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Action is what is decided about a stopped call.
type Action string

// The actions. ActionAbandon is what the hub decides when the caller is gone.
const (
	ActionContinue Action = "continue"
	ActionModify   Action = "modify"  // other input, or after the call another result
	ActionSkip     Action = "skip"    // the tool does not run; the result is made up
	ActionRaise    Action = "raise"   // the call fails
	ActionReplace  Action = "replace" // another tool runs
	ActionAbandon  Action = "abandoned"
)

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

// Resume decides about a paused call. The first decision counts; a later one
// is refused, as is one that the caller cannot carry out, and changes nothing.
func (h *Hub) Resume(ctx context.Context, pauseID string, r Resume) error {
	h.mu.Lock()
	p, err := h.find(pauseID)
	h.mu.Unlock()
	if err != nil {
		return err
	}
	d, err := h.decide(ctx, p, r)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settle(p, d) {
		return refuse(CodePauseResumed, "the call was resumed already", "pause_id", pauseID)
	}
	return nil
}

// decide turns a front's wish into a decision for p's caller.
func (h *Hub) decide(ctx context.Context, p *pause, r Resume) (Decision, error) {
	action, err := p.action(r)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Action: action, Wish: &r}
	if _, ok := p.call.caller.(Evaluator); ok && action == ActionModify && r.ModifiedInputExpr != "" {
		return d, refuse(CodeUnsupportedAction, "expressions of this call are evaluated by its client")
	}
	switch action {
	case ActionModify:
		if p.call.own {
			err = h.modification(ctx, p, &d, r)
		}
	case ActionSkip:
		d.Result = r.FakeResult
		if r.ModifiedResultExpr != "" && p.call.own {
			d.Result, err = h.value(ctx, p, r.ModifiedResultExpr)
		}
	case ActionRaise:
		d.Type, d.Message = r.ExceptionType, r.failure()
	case ActionReplace:
		if d.Tool = r.ReplacementFunction; p.call.own {
			h.mu.Lock()
			d.Tool = h.canonical(d.Tool)
			h.mu.Unlock()
		}
	default: // nothing beside the action
	}
	if err == nil {
		d.Wire, err = p.call.caller.Encode(d)
	}
	d.Wish = nil
	return d, err
}

// action checks the action a front wants.
func (p *pause) action(r Resume) (Action, error) {
	action := Action(r.Action)
	if action == "" {
		action = ActionContinue
	}
	edited := r.ModifiedArgs != nil || r.ModifiedKwargs != nil || r.ModifiedInputExpr != ""
	if p.phase == After {
		edited = present(r.ModifiedResult) || r.ModifiedResultExpr != ""
	}
	switch {
	case r.ReplacementFunction != "":
		action = ActionReplace
	case action == ActionContinue && edited:
		action = ActionModify
	case action == ActionReplace:
		return "", refuse(CodeMissingParameter, "replacement_function required", "parameter", "replacement_function")
	case action == ActionModify && !edited:
		return "", refuse(CodeInvalidArguments, "modify needs new values")
	}
	switch action {
	case ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionReplace:
	default:
		return "", refuse(CodeInvalidAction, "action must be one of continue, modify, skip, raise, replace", "action", r.Action)
	}
	if !slices.Contains(p.data.Capabilities, action) {
		return "", refuse(CodeUnsupportedAction, "this call cannot do that here", "action", string(action), "supported", p.data.Capabilities)
	}
	return action, nil
}

func present(v json.RawMessage) bool { return len(bytes.TrimSpace(v)) > 0 }

// modification is the new input or result of a modify.
func (h *Hub) modification(ctx context.Context, p *pause, d *Decision, r Resume) (err error) {
	if p.phase == After {
		d.Result = r.ModifiedResult
		if r.ModifiedResultExpr != "" {
			d.Result, err = h.value(ctx, p, r.ModifiedResultExpr)
		}
		return err
	}
	switch {
	case r.ModifiedInputExpr != "":
		d.Input, err = h.value(ctx, p, r.ModifiedInputExpr)
	case r.ModifiedKwargs != nil:
		if r.ModifiedArgs != nil && len(*r.ModifiedArgs) > 0 {
			return refuse(CodeInvalidArguments, "give modified_kwargs or modified_args, not both")
		}
		d.Input, err = protocol.Marshal(*r.ModifiedKwargs)
	case len(*r.ModifiedArgs) == 1:
		d.Input = (*r.ModifiedArgs)[0]
	default:
		return refuse(CodeInvalidArguments, "modified_args of a tool has one element, the whole input")
	}
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimSpace(d.Input), []byte("{")) {
		return refuse(CodeInvalidArguments, "the input of a tool is a JSON object")
	}
	cid, canonical, err := h.store.PutJSON(d.Input)
	if canonical == nil {
		return refuse(CodeInvalidArguments, err.Error())
	}
	d.InputCID = cid // an input too large to keep has one all the same
	return nil
}

// failure is the text of a raise.
func (r Resume) failure() string {
	if r.ExceptionMessage != "" {
		return r.ExceptionMessage
	}
	var text string
	if json.Unmarshal(r.Exception, &text) == nil && text != "" {
		return text
	}
	if present(r.Exception) && !bytes.Equal(bytes.TrimSpace(r.Exception), []byte("null")) {
		return string(r.Exception)
	}
	if r.ExceptionType != "" {
		return r.ExceptionType
	}
	return "the call was failed by the debugger"
}
