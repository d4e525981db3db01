package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/cas"
	"github.com/claudeless/claudeless/internal/debug/item"
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
	// Wire is the decision in the form of the older clients; nil for ours.
	Wire json.RawMessage
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
	// FakeResultData, FakeResultCID and FakeResultFormat are passed on to
	// older clients as they are.
	FakeResultData   *string         `json:"fake_result_data"`
	FakeResultCID    string          `json:"fake_result_cid"`
	FakeResultFormat item.Format     `json:"fake_result_serialization_format"`
	Exception        json.RawMessage `json:"exception"`
	ExceptionType    string          `json:"exception_type"`
	ExceptionMessage string          `json:"exception_message"`
	// ReplacementFunction wins over Action.
	ReplacementFunction string `json:"replacement_function"`
}

// capabilities are the actions a kind of caller can carry out.
func capabilities(c Client, phase Phase) []Action {
	switch {
	case c == ClientForeign && phase == After:
		return []Action{ActionContinue}
	case phase == After:
		return []Action{ActionContinue, ActionModify, ActionRaise}
	case c == ClientHook:
		return []Action{ActionContinue, ActionModify, ActionSkip, ActionRaise}
	default:
		return []Action{ActionContinue, ActionModify, ActionSkip, ActionRaise, ActionReplace}
	}
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
	cid := ""
	if d.Action == ActionModify && d.Input != nil {
		var canonical []byte
		if cid, canonical, err = h.store.PutJSON(d.Input); canonical == nil {
			return refuse(CodeInvalidArguments, err.Error())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.settle(p, d) {
		return refuse(CodePauseResumed, "the call was resumed already", "pause_id", pauseID)
	}
	if cid != "" {
		p.call.data.InputCID = cid
	}
	return nil
}

// decide turns a front's wish into a decision for p's caller.
func (h *Hub) decide(ctx context.Context, p *pause, r Resume) (Decision, error) {
	action, err := p.action(r)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Action: action}
	if p.call.client == ClientForeign {
		return h.decideForeign(p, d, r)
	}
	switch action {
	case ActionModify:
		err = h.modification(ctx, p, &d, r)
	case ActionSkip:
		d.Result = r.FakeResult
		if r.ModifiedResultExpr != "" {
			d.Result, err = h.value(ctx, p, r.ModifiedResultExpr)
		}
	case ActionRaise:
		d.Type, d.Message = r.ExceptionType, r.failure()
	case ActionReplace:
		h.mu.Lock()
		d.Tool = h.canonical(r.ReplacementFunction)
		h.mu.Unlock()
	default: // nothing beside the action
	}
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

// wireAction is an action as older clients read it.
type wireAction struct {
	Action         Action                `json:"action"`
	ModifiedArgs   *[]item.Item          `json:"modified_args,omitempty"`
	ModifiedKwargs *map[string]item.Item `json:"modified_kwargs,omitempty"`
	FakeResult     json.RawMessage       `json:"fake_result,omitempty"`
	FakeData       *string               `json:"fake_result_data,omitempty"`
	FakeCID        string                `json:"fake_result_cid,omitempty"`
	FakeFormat     item.Format           `json:"fake_result_serialization_format,omitempty"`
	Type           string                `json:"exception_type,omitempty"`
	Message        string                `json:"exception_message,omitempty"`
	Function       string                `json:"function_name,omitempty"`
}

// decideForeign writes new values in the client's own format. A made-up result
// goes as plain JSON, which every client takes as it is.
func (h *Hub) decideForeign(p *pause, d Decision, r Resume) (Decision, error) {
	w := wireAction{Action: d.Action}
	switch d.Action {
	case ActionModify:
		if r.ModifiedInputExpr != "" {
			return d, refuse(CodeUnsupportedAction, "expressions of this call are evaluated by its client")
		}
		if err := w.arguments(r, p.call.foreign.Preferred); err != nil {
			return d, err
		}
	case ActionSkip:
		w.FakeResult, w.FakeData, w.FakeCID, w.FakeFormat = r.FakeResult, r.FakeResultData, r.FakeResultCID, r.FakeResultFormat
		if !present(w.FakeResult) && w.FakeData == nil && w.FakeCID == "" {
			w.FakeResult = json.RawMessage("null")
		}
	case ActionRaise:
		w.Type, w.Message = r.ExceptionType, r.failure()
		if w.Type == "" {
			w.Type = "Exception"
		}
		d.Type, d.Message = w.Type, w.Message
	case ActionReplace:
		w.Function = r.ReplacementFunction
		d.Tool = w.Function
	default: // nothing beside the action
	}
	var err error
	d.Wire, err = protocol.Marshal(w)
	return d, err
}

func (w *wireAction) arguments(r Resume, f item.Format) error {
	one := func(name string, v json.RawMessage) (item.Item, error) {
		it, err := item.Encode(v, f)
		if err != nil {
			return it, refuse(CodeInvalidArguments, strings.TrimSpace(name+" "+err.Error()))
		}
		return it, nil
	}
	if r.ModifiedArgs != nil {
		args := []item.Item{}
		for _, v := range *r.ModifiedArgs {
			it, err := one("", v)
			if err != nil {
				return err
			}
			args = append(args, it)
		}
		w.ModifiedArgs = &args
	}
	if r.ModifiedKwargs != nil {
		kwargs := map[string]item.Item{}
		for name, v := range *r.ModifiedKwargs {
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

// Inspect describes a stored value.
func (h *Hub) Inspect(cid string) (item.Inspection, error) {
	data, err := h.Value(cid)
	if err != nil {
		return item.Inspection{}, err
	}
	return item.Inspect(cid, data), nil
}

// Value returns the bytes of a stored value, which must not be changed.
func (h *Hub) Value(cid string) ([]byte, error) {
	if !cas.IsCID(cid) {
		return nil, refuse(CodeCIDNotFound, "this is no cid", "cid", cid)
	}
	data, ok := h.store.Get(cid)
	if !ok {
		return nil, refuse(CodeCIDNotFound, "", "cid", cid)
	}
	return data, nil
}
