package compat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/cas"
	"github.com/claudeless/claudeless/internal/debug"
)

const (
	cidPickle3 = "62a1db2cf8f9088d94c33e521e48918a392b53514f35a4ef6e4d4d6a13eb2c42f75357c3f460ce5af631ccc118d8fedb808a64d8951f9ab8cd9b59786316ab69"
	cidJSON3   = "3bafbf08882a2d10133093a1b8433f50563b93c14acd05b79028eb1d12799027241450980651994501423a66c276ae26c43b739bc65c4e16b10c3af6c202aebb"
)

func TestKeep(t *testing.T) {
	tests := []struct {
		name string
		it   Item
		code string
	}{
		{"pickle", Item{CID: cidPickle3, Data: new("gARLAy4=")}, ""},
		{"JSON", Item{CID: cidJSON3, Data: new("3"), Format: FormatJSON}, ""},
		{"known already", Item{CID: cidPickle3}, ""},
		{"unknown", Item{CID: strings.Repeat("0", 128)}, "cid_not_found"},
		{"no cid", Item{Data: new("3")}, "invalid_payload"},
		{"wrong cid", Item{CID: cidJSON3, Data: new("gARLAy4=")}, "cid_mismatch"},
		{"wrong format", Item{CID: cidJSON3, Data: new("3"), Format: "yaml"}, "invalid_serialization_format"},
		{"no JSON", Item{CID: cidJSON3, Data: new("{"), Format: FormatJSON}, "invalid_json"},
		{"no base64", Item{CID: cidPickle3, Data: new("***")}, "invalid_dill"},
		{"too large to keep", Item{CID: cas.CID([]byte(`"` + strings.Repeat("x", 100) + `"`)), Data: new(`"` + strings.Repeat("x", 100) + `"`), Format: FormatJSON}, ""},
	}
	store := cas.New(cas.Options{MaxValue: 90})
	for _, tt := range tests {
		err := StoreItemUnlessTooLarge(store, tt.it)
		got := ""
		if e, ok := errors.AsType[*debug.Error](err); ok {
			got = e.Code
		}
		if got != tt.code || (err == nil) != (tt.code == "") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.code)
		}
	}
	if data, ok := store.Get(cidPickle3); !ok || string(data) != "\x80\x04K\x03." { // the bytes are unchanged
		t.Errorf("%q, %v", data, ok)
	}
}

func TestPretty(t *testing.T) {
	store := cas.New(cas.Options{})
	tests := []struct {
		name, data string
		format     ItemSerializationFormat
		want       string
	}{
		{"JSON", `{"a": [1]}`, FormatJSON, `{"a": [1]}`},
		{"pickle", "\x80\x04K\x03.", FormatDill, `"3"`},
		{"JSON without a format", `{"a":1}`, "", `{"a":1}`},
		{"an object is a call, not run", "cos\nsystem\n(\x8c\x02rmtR.", FormatDill, `"os.system('rm')"`},
		{
			"exception", "cbuiltins\nValueError\n(\x8c\x03badtR.", FormatDill,
			`{"__cideldill_exception__":true,"args":["bad"],"attributes":{},"message":"bad","module":"builtins","qualname":"ValueError","repr_text":"ValueError('bad')","summary":"ValueError: bad","type_name":"ValueError"}`,
		},
		{
			"exception as dill writes it", "cdill._dill\n_load_type\n(\x8c\x08KeyErrortR(\x8c\x01ktR.", FormatDill,
			`{"__cideldill_exception__":true,"args":["k"],"attributes":{},"message":"k","module":"builtins","qualname":"KeyError","repr_text":"KeyError('k')","summary":"KeyError: k","type_name":"KeyError"}`,
		},
		{
			"placeholder", "ccideldill_client.custom_picklers\n_reconstruct_placeholder\n(}\x8c\x09type_name\x8c\x04Locks\x8c\x09repr_text\x8c\x06<lock>s\x8c\x0aattributes}\x8c\x01aK\x01sstR.", FormatDill,
			`{"__cideldill_placeholder__":true,"attributes":{"a":1},"repr_text":"<lock>","summary":"<lock>","type_name":"Lock"}`,
		},
		{"broken", "\x80\x04K", FormatDill, `"<3 bytes that are not a pickle: opcode 'K' at byte 2: the pickle is incomplete>"`},
		{"not a number", "G\x7f\xf8\x00\x00\x00\x00\x00\x01.", FormatDill, `"nan"`},
	}
	for _, tt := range tests {
		cid, err := store.Put([]byte(tt.data))
		if err != nil {
			t.Fatal(err)
		}
		got := ItemDisplayJSON(store, Item{CID: cid, Format: tt.format})
		var want, have any
		if err := errors.Join(json.Unmarshal([]byte(tt.want), &want), json.Unmarshal(got, &have)); err != nil {
			t.Errorf("%s: %s: %v", tt.name, got, err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	if got := string(ItemDisplayJSON(store, Item{CID: strings.Repeat("0", 128)})); got != `"<cid:`+strings.Repeat("0", 128)+` missing>"` {
		t.Errorf("missing: %s", got)
	}
}

func TestEncode(t *testing.T) {
	tests := []struct {
		value string
		f     ItemSerializationFormat
		want  Item
	}{
		{`3`, FormatDill, Item{CID: cidPickle3, Data: new("gARLAy4="), Format: FormatDill}},
		{` 3 `, FormatJSON, Item{CID: cidJSON3, Data: new("3"), Format: FormatJSON}},
		{`{"cid":"` + cidJSON3 + `"}`, FormatDill, Item{CID: cidJSON3}}, // the client already has this item
		{`{"b":1,"a":2}`, FormatJSON, Item{CID: cas.CID([]byte(`{"a":2,"b":1}`)), Data: new(`{"a":2,"b":1}`), Format: FormatJSON}},
	}
	for _, tt := range tests {
		got, err := EncodeItem(json.RawMessage(tt.value), tt.f)
		if err != nil {
			t.Errorf("%s: %v", tt.value, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.value, diff)
		}
	}
	if _, err := EncodeItem(json.RawMessage(`{`), FormatJSON); err == nil {
		t.Error("broken JSON was encoded")
	}
}

func FuzzInspect(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":null}]}`, "\x80\x04K\x03.", "cbuiltins\nValueError\n(\x8c\x01xtR.", "c\n\n(tR.", "\x00\xff"} {
		f.Add([]byte(seed))
	}
	store := cas.New(cas.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		cid, err := store.Put(data)
		if err != nil {
			t.Skip("too large for the store")
		}
		in := Inspect(cid, data)
		if in.Type == "" || len(in.Repr) > 4*maxReprBytes {
			t.Errorf("%+v", in)
		}
		for _, format := range []ItemSerializationFormat{FormatDill, ""} {
			if !json.Valid(ItemDisplayJSON(store, Item{CID: cid, Format: format})) {
				t.Errorf("%q: not JSON", data)
			}
		}
	})
}
