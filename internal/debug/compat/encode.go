package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/internal/debug"

	"github.com/claudeless/claudeless/simulator/protocol"
)

type wireDecision struct {
	Action         debug.Action     `json:"action"`
	ModifiedArgs   *[]Item          `json:"modified_args,omitempty"`
	ModifiedKwargs *map[string]Item `json:"modified_kwargs,omitempty"`
	replacedResult
	Type     string  `json:"exception_type,omitempty"`
	Message  *string `json:"exception_message,omitempty"`
	Function string  `json:"function_name,omitempty"`
}

// replacedResult is a replaced result: a JSON value, or an item that is sent unchanged.
type replacedResult struct {
	Value  json.RawMessage `json:"fake_result,omitempty"`
	Data   *string         `json:"fake_result_data,omitempty"`
	CID    string          `json:"fake_result_cid,omitempty"`
	Format Format          `json:"fake_result_serialization_format,omitempty"`
}

// Encode writes new values in the client's own format. A replaced result is sent as
// plain JSON, which every client accepts.
func (c olderCaller) Encode(d debug.Decision) (json.RawMessage, error) {
	w := wireDecision{Action: d.Action, Function: d.Tool}
	switch d.Action {
	case debug.ActionModify:
		if d.Request != nil {
			if err := w.setArguments(*d.Request, c.format); err != nil {
				return nil, err
			}
		}
	case debug.ActionSkip:
		if d.Request != nil && d.Request.Raw != nil {
			if err := json.Unmarshal(d.Request.Raw, &w.replacedResult); err != nil {
				return nil, err
			}
		}
		w.Value = d.Result
		if len(bytes.TrimSpace(w.Value)) == 0 && w.Data == nil && w.CID == "" {
			w.Value = json.RawMessage("null")
		}
	case debug.ActionRaise:
		w.Type, w.Message = cmp.Or(d.Type, "Exception"), &d.Message
	default: // only the action
	}
	return protocol.Marshal(w)
}

func (w *wireDecision) setArguments(r debug.ResumeRequest, f Format) error {
	one := func(name string, v json.RawMessage) (Item, error) {
		it, err := EncodeItem(v, f)
		if err != nil {
			return it, &debug.Error{Code: debug.CodeInvalidArguments, Message: strings.TrimSpace(name + " " + err.Error())}
		}
		return it, nil
	}
	if r.ModifiedArgs != nil {
		args := []Item{}
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
		kwargs := map[string]Item{}
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
