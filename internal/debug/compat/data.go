package compat

import (
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// CallData holds the values of an older client's call: items and their displayed forms. The hub stores the item bytes.
type CallData struct {
	Target       *Item             `json:"target,omitempty"`
	Args         []Item            `json:"args"`
	Kwargs       map[string]Item   `json:"kwargs"`
	PrettyTarget json.RawMessage   `json:"pretty_target,omitempty"`
	PrettyArgs   []json.RawMessage `json:"pretty_args"`
	PrettyKwargs json.RawMessage   `json:"pretty_kwargs"` // an object; nil means {}
	PageURL      string            `json:"page_url,omitempty"`
	Preferred    ItemFormat        `json:"preferred_format,omitempty"` // format of new values
}

func withDisplayForms(h *debug.Hub, d CallData) *CallData {
	if d.Target != nil {
		d.PrettyTarget = PrettyItem(h.Store(), *d.Target)
	}
	for _, a := range d.Args {
		d.PrettyArgs = append(d.PrettyArgs, PrettyItem(h.Store(), a))
	}
	pretty := map[string]json.RawMessage{}
	for name, v := range d.Kwargs {
		pretty[name] = PrettyItem(h.Store(), v)
	}
	if raw, err := protocol.Marshal(pretty); err == nil { // cannot fail, because it is JSON
		d.PrettyKwargs = raw
	}
	return &d
}

// Input returns the arguments in their displayed form.
func (d *CallData) Input() json.RawMessage {
	raw, err := protocol.Marshal(struct {
		Args   []json.RawMessage `json:"args"`
		Kwargs json.RawMessage   `json:"kwargs"`
	}{append([]json.RawMessage{}, d.PrettyArgs...), d.kwargs()})
	if err != nil {
		return nil // cannot happen: all values are JSON
	}
	return raw
}

// Size returns the size of the values of the call in bytes.
func (d *CallData) Size() int {
	n := len(d.PrettyTarget) + len(d.PrettyKwargs)
	if d.Target != nil {
		n += d.Target.Size()
	}
	for _, pretty := range d.PrettyArgs {
		n += len(pretty)
	}
	for _, it := range d.Args {
		n += it.Size()
	}
	for name, it := range d.Kwargs {
		n += len(name) + it.Size()
	}
	return n
}

func (d *CallData) kwargs() json.RawMessage {
	if d.PrettyKwargs == nil {
		return json.RawMessage("{}")
	}
	return d.PrettyKwargs
}

// Truncated returns a copy without the bytes of the items, which are in the store. Displayed forms that are too large
// are replaced.
func (d *CallData) Truncated() debug.CallValues {
	bare := func(it Item) Item {
		it.Data = nil
		return it
	}
	s := *d
	s.Args, s.PrettyArgs, s.Kwargs = make([]Item, len(d.Args)), slices.Clone(d.PrettyArgs), make(map[string]Item, len(d.Kwargs))
	s.PrettyKwargs = debug.TruncationMarker(d.PrettyKwargs, "")
	if d.Target != nil {
		it := bare(*d.Target)
		s.Target, s.PrettyTarget = &it, debug.TruncationMarker(d.PrettyTarget, it.CID)
	}
	for i, it := range d.Args {
		s.Args[i] = bare(it)
		if i < len(s.PrettyArgs) {
			s.PrettyArgs[i] = debug.TruncationMarker(s.PrettyArgs[i], it.CID)
		}
	}
	for name, it := range d.Kwargs {
		s.Kwargs[name] = bare(it)
	}
	return &s
}

// MarshalJSON also writes empty lists and objects.
func (d *CallData) MarshalJSON() ([]byte, error) {
	type bare CallData
	b := bare(*d)
	b.Args, b.PrettyArgs, b.PrettyKwargs = append([]Item{}, d.Args...), append([]json.RawMessage{}, d.PrettyArgs...), d.kwargs()
	if b.Kwargs == nil {
		b.Kwargs = map[string]Item{}
	}
	return protocol.Marshal(b)
}

// ClientOutcome is what only older clients report at the end of a call: items and a traceback.
type ClientOutcome struct {
	Result    *Item  `json:"result,omitempty"`
	ErrorItem *Item  `json:"exception_item,omitempty"`
	Traceback string `json:"exception_traceback,omitempty"`
}

// Size returns the size of e in bytes.
func (e ClientOutcome) Size() int { return len(e.Traceback) }

// itemMembers are the keys of a request that describe the result and the exception of a call.
type itemMembers struct {
	ResultCID    string          `json:"result_cid"`
	ResultRef    json.RawMessage `json:"result_client_ref"`
	ResultData   *string         `json:"result_data"`
	ResultFormat ItemFormat      `json:"result_serialization_format"`
	ErrorCID     string          `json:"exception_cid"`
	ErrorRef     json.RawMessage `json:"exception_client_ref"`
	ErrorData    *string         `json:"exception_data"`
	ErrorFormat  ItemFormat      `json:"exception_serialization_format"`
}
