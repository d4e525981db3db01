package executor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CLI 2.1.329 was observed to convert text arguments of MCP tools in this way.
func TestCoerce(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"number"},"i":{"type":"integer"},"b":{"type":"boolean"},` +
		`"a":{"type":"array","items":{"type":"number"}},"o":{"type":"object"},"u":{"type":["number","null"]},"any":{},"e":{"enum":[1,2]},` +
		`"an":{"anyOf":[{"type":"number"},{"type":"null"}]},"s":{"type":"string"},"us":{"anyOf":[{"type":"string"},{"type":"number"}]}}}`
	tests := []struct{ name, input, want string }{
		{
			"all", `{"n":"5","i":"5","b":"true","a":"[1,\"2\"]","o":"{\"k\":\"1\"}","u":"5","any":"5","e":"1","an":"5"}`,
			`{"n":5,"i":5,"b":true,"a":[1,"2"],"o":{"k":"1"},"u":5,"any":5,"e":"1","an":5}`,
		},
		{"no fit", `{"i":"5.5","b":"yes","a":"x","o":"[1]","n":"abc"}`, ``},
		{"inner values", `{"a":["1","2"],"o":{"k":"1"},"n":null}`, ``},
		{"other types", `{"a":"1","o":5}`, ``},
		{"exponent", `{"n":"1e3"}`, ``},
		{"space", `{"n":" 5"}`, `{"n":5}`},
		{"negative", `{"i":"-5"}`, `{"i":-5}`},
		{"texts", `{"s":"5","us":"5","other":"5"}`, ``},
		{"any text", `{"any":"hello"}`, ``},
		{"no object", `["5"]`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.input
			}
			if diff := cmp.Diff(tt.want, string(Coerce(json.RawMessage(tt.input), json.RawMessage(schema)))); diff != "" {
				t.Error(diff)
			}
			for _, none := range []string{``, `null`, `[]`, `{"properties":5}`} {
				if got := string(Coerce(json.RawMessage(tt.input), json.RawMessage(none))); got != tt.input {
					t.Errorf("schema %q changes the input to %s", none, got)
				}
			}
		})
	}
}

func FuzzCoerce(f *testing.F) {
	f.Add(`{"a":"5"}`, `{"properties":{"a":{"type":"number"}}}`)
	f.Add(`{"a":"[1]"}`, `{"properties":{"a":{"anyOf":[{"type":["array","null"]}]}}}`)
	f.Fuzz(func(t *testing.T, input, schema string) {
		out := Coerce(json.RawMessage(input), json.RawMessage(schema))
		if json.Valid([]byte(input)) && !json.Valid(out) {
			t.Errorf("%q became %q", input, out)
		}
	})
}
