package compat

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat/pickle"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// CallData holds the values of an older client's call: items and their displayed forms. The hub stores the item bytes.
type CallData struct {
	Target       *Item                   `json:"target,omitempty"`
	Args         []Item                  `json:"args"`
	Kwargs       map[string]Item         `json:"kwargs"`
	PrettyTarget json.RawMessage         `json:"pretty_target,omitempty"`
	PrettyArgs   []json.RawMessage       `json:"pretty_args"`
	PrettyKwargs json.RawMessage         `json:"pretty_kwargs"` // an object; nil means {}
	PageURL      string                  `json:"page_url,omitempty"`
	Preferred    ItemSerializationFormat `json:"preferred_format,omitempty"` // format of new values
}

func withDisplayForms(h *debug.Hub, d CallData) *CallData {
	if d.Target != nil {
		d.PrettyTarget = ItemDisplayJSON(h.Store(), *d.Target)
	}
	for _, a := range d.Args {
		d.PrettyArgs = append(d.PrettyArgs, ItemDisplayJSON(h.Store(), a))
	}
	pretty := map[string]json.RawMessage{}
	for name, v := range d.Kwargs {
		pretty[name] = ItemDisplayJSON(h.Store(), v)
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
func (d *CallData) Size() (itemAndDisplayBytes int) {
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

// Truncated returns a copy without the bytes of the items. A marker replaces each displayed form that is too large.
func (d *CallData) Truncated() (copyWithoutLargeValues debug.CallArguments) {
	bare := func(it Item) Item {
		it.Data = nil
		return it
	}
	s := *d
	s.Args, s.PrettyArgs, s.Kwargs = make([]Item, len(d.Args)), slices.Clone(d.PrettyArgs), make(map[string]Item, len(d.Kwargs))
	s.PrettyKwargs = debug.ValueOrTruncationMarker(d.PrettyKwargs, "")
	if d.Target != nil {
		it := bare(*d.Target)
		s.Target, s.PrettyTarget = &it, debug.ValueOrTruncationMarker(d.PrettyTarget, it.CID)
	}
	for i, it := range d.Args {
		s.Args[i] = bare(it)
		if i < len(s.PrettyArgs) {
			s.PrettyArgs[i] = debug.ValueOrTruncationMarker(s.PrettyArgs[i], it.CID)
		}
	}
	for name, it := range d.Kwargs {
		s.Kwargs[name] = bare(it)
	}
	return &s
}

// MarshalJSON does not omit empty lists and objects.
func (d *CallData) MarshalJSON() ([]byte, error) {
	type bare CallData
	b := bare(*d)
	b.Args, b.PrettyArgs, b.PrettyKwargs = append([]Item{}, d.Args...), append([]json.RawMessage{}, d.PrettyArgs...), d.kwargs()
	if b.Kwargs == nil {
		b.Kwargs = map[string]Item{}
	}
	return protocol.Marshal(b)
}

// OutcomeFromOlderClient is the part of the report about the end of a call that only older clients send: values and a traceback.
type OutcomeFromOlderClient struct {
	Result    *Item  `json:"result,omitempty"`
	ErrorItem *Item  `json:"exception_item,omitempty"`
	Traceback string `json:"exception_traceback,omitempty"`
}

// Size returns the size of the traceback. The items have no bytes here, because the store holds them.
func (e OutcomeFromOlderClient) Size() (tracebackBytes int) { return len(e.Traceback) }

// outcomeItemMembers are the keys of a request that describe the result and the exception of a call.
type outcomeItemMembers struct {
	ResultCID    string                  `json:"result_cid"`
	ResultRef    json.RawMessage         `json:"result_client_ref"`
	ResultData   *string                 `json:"result_data"`
	ResultFormat ItemSerializationFormat `json:"result_serialization_format"`
	ErrorCID     string                  `json:"exception_cid"`
	ErrorRef     json.RawMessage         `json:"exception_client_ref"`
	ErrorData    *string                 `json:"exception_data"`
	ErrorFormat  ItemSerializationFormat `json:"exception_serialization_format"`
}

// ItemSerializationFormat is the encoding of an item's bytes.
type ItemSerializationFormat string

// The formats; an item without a format is Dill.
const (
	FormatDill ItemSerializationFormat = "dill" // a Python pickle; data is its base64
	FormatJSON ItemSerializationFormat = "json" // data is the JSON text itself
)

// IsKnown reports whether f is a known format.
func (f ItemSerializationFormat) IsKnown() bool { return f == FormatDill || f == FormatJSON }

// Item is one value in a request or response. CID is the hash of its bytes, which are a pickle or JSON; they are stored
// unchanged and never executed. Data is missing if the receiver already has the bytes.
type Item struct {
	CID       string                  `json:"cid"`
	ClientRef json.RawMessage         `json:"client_ref,omitempty"`
	Data      *string                 `json:"data,omitempty"`
	Format    ItemSerializationFormat `json:"serialization_format,omitempty"`
}

// Size returns the size of the item in bytes.
func (it Item) Size() int {
	n := len(it.CID) + len(it.ClientRef)
	if it.Data != nil {
		n += len(*it.Data)
	}
	return n
}

// StoreItemUnlessTooLarge checks the bytes of an item against its CID and stores them. An item without bytes must already be in the store;
// otherwise the error is cid_not_found. A wrong CID is the error cid_mismatch; its detail expected_cid is the CID of the bytes.
// A value too large for the store is not an error: only its CID is kept, because some clients exit when a value is refused.
func StoreItemUnlessTooLarge(store *cas.Store, it Item) error {
	if it.CID == "" {
		return debug.NewError(debug.CodeInvalidPayload, "an item has no `cid`")
	}
	if it.Format != "" && !it.Format.IsKnown() {
		return debug.NewError("invalid_serialization_format", fmt.Sprintf("unknown serialization_format %q", it.Format))
	}
	if it.Data == nil {
		if _, ok := store.Get(it.CID); !ok {
			return debug.NewError(debug.CodeContentIDNotFound, "no data for "+it.CID)
		}
		return nil
	}
	data, err := it.decodeJSONOrBase64()
	if err != nil {
		return err
	}
	if cid := cas.CID(data); cid != it.CID {
		return debug.NewError("cid_mismatch", "the cid is not the SHA-512 of the data", "expected_cid", cid, "provided_cid", it.CID)
	}
	_, err = store.Put(data)
	if _, ok := errors.AsType[*cas.TooLargeError](err); ok {
		return nil
	}
	return err
}

// decodeJSONOrBase64 returns the bytes of an item, from which its CID is computed. In the JSON format, Data is these bytes as text;
// otherwise Data is their base64. If Format is empty and the hash of Data is the CID, the format is JSON.
func (it Item) decodeJSONOrBase64() ([]byte, error) {
	if it.Format == "" && cas.CID([]byte(*it.Data)) == it.CID {
		it.Format = FormatJSON
	}
	if it.Format == FormatJSON {
		if !json.Valid([]byte(*it.Data)) {
			return nil, debug.NewError("invalid_json", "data is not JSON")
		}
		return []byte(*it.Data), nil
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(*it.Data))
	if err != nil {
		return nil, debug.NewError("invalid_dill", "data is not base64: "+err.Error())
	}
	return data, nil
}

// EncodeItem converts a JSON value to an item in a client's format. An object with a cid is already an item.
func EncodeItem(value json.RawMessage, f ItemSerializationFormat) (Item, error) {
	var ready Item
	if json.Unmarshal(value, &ready) == nil && cas.IsCID(ready.CID) {
		return ready, nil
	}
	if f == FormatJSON {
		text, err := cas.CanonicalJSON(value)
		if err != nil {
			return Item{}, err
		}
		return Item{CID: cas.CID(text), Data: new(string(text)), Format: FormatJSON}, nil
	}
	raw, err := pickle.FromJSON(value)
	if err != nil {
		return Item{}, err
	}
	return Item{CID: cas.CID(raw), Data: new(base64.StdEncoding.EncodeToString(raw)), Format: FormatDill}, nil
}

const maxReprBytes = 500

// ItemDisplayJSON returns the form in which an item is displayed. JSON is returned unchanged. A pickle becomes a text, like
// Python's repr. Exceptions, and placeholders of objects that cannot be pickled, become JSON objects that describe them.
func ItemDisplayJSON(store *cas.Store, item Item) json.RawMessage {
	data, ok := store.Get(item.CID)
	if !ok {
		return encodeJSONOrFormatAsString("<cid:" + item.CID + " missing>")
	}
	if item.Format == FormatJSON {
		return data
	}
	v, err := pickle.Read(data)
	if err != nil {
		if item.Format == "" && json.Valid(data) {
			return data
		}
		return encodeJSONOrFormatAsString(fmt.Sprintf("<%d bytes that are not a pickle: %v>", len(data), err))
	}
	return PickleDisplayJSON(v)
}

// ItemDisplayText returns [ItemDisplayJSON] as text: JSON stays unchanged; any other representation loses its quotes.
func ItemDisplayText(store *cas.Store, item Item) string {
	pretty := ItemDisplayJSON(store, item)
	var s string
	if item.Format != FormatJSON && json.Unmarshal(pretty, &s) == nil {
		return s
	}
	return string(pretty)
}

// PickleDisplayJSON returns a parsed Python pickle as JSON for display; see [ItemDisplayJSON].
func PickleDisplayJSON(v any) json.RawMessage {
	if o, ok := v.(*pickle.Object); ok {
		g, ok := o.Callee.(*pickle.Global)
		switch args, _ := o.Args.(*pickle.Tuple); {
		case !ok:
		case g.Name == "_reconstruct_placeholder" && args != nil && len(args.Items) > 0:
			if d, ok := args.Items[0].(*pickle.Dict); ok {
				return describeUnpicklableObject(d)
			}
		case regexp.MustCompile(`(Error|Exception|Warning|Interrupt|Exit|StopIteration)$`).MatchString(g.Name):
			return exceptionJSON(g, o)
		}
	}
	return encodeJSONOrFormatAsString(pickle.Repr(v, maxReprBytes))
}

func describeUnpicklableObject(placeholder *pickle.Dict) json.RawMessage {
	out := map[string]any{"__cideldill_placeholder__": true}
	for _, key := range []string{
		"type_name", "module", "qualname", "object_name", "object_path", "object_id", "repr_text", "str_text", "pickle_error", "pickle_attempts", "depth",
	} {
		if v, ok := placeholder.Get(key); ok {
			out[key] = jsonScalarOrPythonRepr(v)
		}
	}
	if attrs, ok := placeholder.Get("attributes"); ok {
		out["attributes"] = DescribePickleMembers(attrs, 1)
	}
	summary, _ := out["repr_text"].(string)
	if summary == "" {
		summary, _ = out["type_name"].(string)
	}
	out["summary"] = summary
	return encodeJSONOrFormatAsString(out)
}

func exceptionJSON(g *pickle.Global, o *pickle.Object) json.RawMessage {
	args := []any{}
	if t, ok := o.Args.(*pickle.Tuple); ok {
		for _, a := range t.Items {
			args = append(args, jsonScalarOrPythonRepr(a))
		}
	}
	message := ""
	if len(args) == 1 {
		message = fmt.Sprint(args[0])
	} else if len(args) > 1 {
		message = pickle.Repr(o.Args, maxReprBytes)
	}
	return encodeJSONOrFormatAsString(map[string]any{
		"__cideldill_exception__": true, "summary": strings.TrimSuffix(g.Name+": "+message, ": "),
		"type_name": g.Name, "module": g.Module, "qualname": g.Name, "message": message,
		"repr_text": pickle.Repr(o, maxReprBytes), "args": args, "attributes": DescribePickleMembers(o.State, 1),
	})
}

func jsonScalarOrPythonRepr(pickledValue any) any {
	switch x := pickledValue.(type) {
	case nil, bool, float64:
		return x
	case string:
		return x[:min(len(x), maxReprBytes)]
	case *big.Int:
		if x.IsInt64() {
			return x.Int64()
		}
	}
	return pickle.Repr(pickledValue, maxReprBytes)
}

// encodeJSONOrFormatAsString encodes a value; what JSON cannot represent becomes text.
func encodeJSONOrFormatAsString(anyValue any) json.RawMessage {
	raw, err := plainjson.Marshal(anyValue)
	if err != nil {
		return encodeJSONOrFormatAsString(fmt.Sprint(anyValue))
	}
	return raw
}
