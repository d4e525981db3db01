package compat

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/compat/pickle"
)

// ItemFormat is the encoding of an item's bytes.
type ItemFormat string

// The formats; an item without a format is Dill.
const (
	FormatDill ItemFormat = "dill" // a Python pickle; data is its base64
	FormatJSON ItemFormat = "json" // data is the JSON text itself
)

// IsValid reports whether f is a known format.
func (f ItemFormat) IsValid() bool { return f == FormatDill || f == FormatJSON }

// Item is one value in a request or response. CID is the hash of its bytes, which are a pickle or JSON; they are stored
// unchanged and never executed. Data is missing if the receiver already has the bytes.
type Item struct {
	CID       string          `json:"cid"`
	ClientRef json.RawMessage `json:"client_ref,omitempty"`
	Data      *string         `json:"data,omitempty"`
	Format    ItemFormat      `json:"serialization_format,omitempty"`
}

// Size returns the size of the item in bytes.
func (it Item) Size() int {
	n := len(it.CID) + len(it.ClientRef)
	if it.Data != nil {
		n += len(*it.Data)
	}
	return n
}

// StoreItem checks the bytes of an item against its CID and stores them. An item without bytes must already be in the
// store; otherwise the error is cid_not_found. A wrong CID is the error cid_mismatch; its detail expected_cid is the CID
// of the bytes. A value too large for the store is not an error: only its CID is kept, because some clients exit when a
// value is refused.
func StoreItem(store *cas.Store, it Item) error {
	if it.CID == "" {
		return debug.NewError(debug.CodeInvalidPayload, "an item has no cid")
	}
	if it.Format != "" && !it.Format.IsValid() {
		return debug.NewError("invalid_serialization_format", fmt.Sprintf("unknown serialization_format %q", it.Format))
	}
	if it.Data == nil {
		if _, ok := store.Get(it.CID); !ok {
			return debug.NewError(debug.CodeCIDNotFound, "no data for "+it.CID)
		}
		return nil
	}
	data, err := it.bytes()
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

// bytes returns the bytes of an item, from which its CID is computed. Data contains them as text if the format is JSON,
// otherwise as base64. Without a format, Data is text if its hash is the CID.
func (it Item) bytes() ([]byte, error) {
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

// EncodeItem converts a JSON value to an item in a client's format. An object with a
// cid is already an item and is passed on unchanged.
func EncodeItem(value json.RawMessage, f ItemFormat) (Item, error) {
	var ready Item
	if json.Unmarshal(value, &ready) == nil && cas.IsCID(ready.CID) {
		return ready, nil
	}
	if f == FormatJSON {
		text, err := cas.Canonical(value)
		if err != nil {
			return Item{}, err
		}
		data := string(text)
		return Item{CID: cas.CID(text), Data: &data, Format: FormatJSON}, nil
	}
	raw, err := pickle.FromJSON(value)
	if err != nil {
		return Item{}, err
	}
	data := base64.StdEncoding.EncodeToString(raw)
	return Item{CID: cas.CID(raw), Data: &data, Format: FormatDill}, nil
}

const maxReprBytes = 500

// PrettyItem returns the form in which an item is displayed. JSON is returned unchanged. A pickle becomes a text, like
// Python's repr. Two kinds of pickles become a JSON object that describes them: exceptions, and placeholders of objects
// that cannot be pickled.
func PrettyItem(store *cas.Store, it Item) json.RawMessage {
	data, ok := store.Get(it.CID)
	if !ok {
		return encodeJSON("<cid:" + it.CID + " missing>")
	}
	if it.Format == FormatJSON {
		return data
	}
	v, err := pickle.Read(data)
	if err != nil {
		if it.Format == "" && json.Valid(data) {
			return data
		}
		return encodeJSON(fmt.Sprintf("<%d bytes that are not a pickle: %v>", len(data), err))
	}
	return PrettyPickle(v)
}

// ItemText returns [PrettyItem] as text: JSON unchanged, a representation without the quotes.
func ItemText(store *cas.Store, it Item) string {
	pretty := PrettyItem(store, it)
	var s string
	if it.Format != FormatJSON && json.Unmarshal(pretty, &s) == nil {
		return s
	}
	return string(pretty)
}

// PrettyPickle returns [PrettyItem] of a parsed pickle.
func PrettyPickle(v any) json.RawMessage {
	if o, ok := v.(*pickle.Object); ok {
		g, ok := o.Callee.(*pickle.Global)
		switch args, _ := o.Args.(*pickle.Tuple); {
		case !ok:
		case g.Name == "_reconstruct_placeholder" && args != nil && len(args.Items) > 0:
			if d, ok := args.Items[0].(*pickle.Dict); ok {
				return placeholderJSON(d)
			}
		case isException(g):
			return exceptionJSON(g, o)
		}
	}
	return encodeJSON(pickle.Repr(v, maxReprBytes))
}

func placeholderJSON(d *pickle.Dict) json.RawMessage {
	out := map[string]any{"__cideldill_placeholder__": true}
	for _, key := range []string{
		"type_name", "module", "qualname", "object_name", "object_path", "object_id", "repr_text", "str_text", "pickle_error", "pickle_attempts", "depth",
	} {
		if v, ok := d.Get(key); ok {
			out[key] = scalarOrRepr(v)
		}
	}
	if attrs, ok := d.Get("attributes"); ok {
		out["attributes"] = PickleMembers(attrs, 1)
	}
	summary, _ := out["repr_text"].(string)
	if summary == "" {
		summary, _ = out["type_name"].(string)
	}
	out["summary"] = summary
	return encodeJSON(out)
}

func isException(g *pickle.Global) bool {
	return slices.ContainsFunc([]string{"Error", "Exception", "Warning", "Interrupt", "Exit", "StopIteration"}, func(end string) bool {
		return strings.HasSuffix(g.Name, end)
	})
}

func exceptionJSON(g *pickle.Global, o *pickle.Object) json.RawMessage {
	args := []any{}
	if t, ok := o.Args.(*pickle.Tuple); ok {
		for _, a := range t.Items {
			args = append(args, scalarOrRepr(a))
		}
	}
	message := ""
	if len(args) == 1 {
		message = fmt.Sprint(args[0])
	} else if len(args) > 1 {
		message = pickle.Repr(o.Args, maxReprBytes)
	}
	return encodeJSON(map[string]any{
		"__cideldill_exception__": true, "summary": strings.TrimSuffix(g.Name+": "+message, ": "),
		"type_name": g.Name, "module": g.Module, "qualname": g.Name, "message": message,
		"repr_text": pickle.Repr(o, maxReprBytes), "args": args, "attributes": PickleMembers(o.State, 1),
	})
}

func scalarOrRepr(v any) any {
	switch x := v.(type) {
	case nil, bool, float64:
		return x
	case string:
		return x[:min(len(x), maxReprBytes)]
	case *big.Int:
		if x.IsInt64() {
			return x.Int64()
		}
	}
	return pickle.Repr(v, maxReprBytes)
}

// encodeJSON encodes a value; what JSON cannot represent becomes text.
func encodeJSON(v any) json.RawMessage {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return encodeJSON(fmt.Sprint(v))
	}
	return raw
}
