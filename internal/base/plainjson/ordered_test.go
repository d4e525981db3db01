package plainjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObject(t *testing.T) {
	o, err := Parse(json.RawMessage(` {"z":1.50,"a":{"q":[ ]},"z":"<&>"} `))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(o.Get("z")); got != `"<&>"` {
		t.Errorf("z is %s, want the last one", got)
	}
	if got := o.Get("none"); got != nil {
		t.Errorf("a key that is not there is %s", got)
	}
	o = o.Set("a", json.RawMessage(`null`)).Set("n", json.RawMessage(`true`))
	got, err := o.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"z":1.50,"a":null,"z":"<&>","n":true}`, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDistinct(t *testing.T) {
	o, err := Parse(json.RawMessage(`{"a":1,"b":2,"a":3}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := o.Distinct().MarshalJSON(); string(got) != `{"a":3,"b":2}` {
		t.Errorf("got %s", got)
	}
}

func TestTypeOf(t *testing.T) {
	for raw, want := range map[string]string{
		"": "undefined", " null": "null", "true": "boolean", `"x"`: "string", "[1]": "array", "\n{}": "object", "-1": "number",
	} {
		if got := TypeOf(json.RawMessage(raw)); got != want {
			t.Errorf("%q is %s, want %s", raw, got, want)
		}
	}
}

func TestSyntaxError(t *testing.T) {
	for text, want := range map[string]string{
		"{": "Expected '}'", " ": "Unexpected EOF", `{"a"`: "Expected ':' before value in object property definition", `{"a":`: "Unexpected EOF",
		`{"a":1`: "Expected '}'", `{"a":1,`: "Property name must be a string literal", `{"a":1,}`: "Property name must be a string literal",
		`{"a":}`: "Unexpected token '}'", "[1": "Expected ']'", "[1,": "Unexpected EOF", "[1,]": "Unexpected comma at the end of array expression",
		"nope": `Unexpected identifier "nope"`, `"abc`: "Unterminated string", "\"a\tb\"": "Unterminated string",
		"'a'": "Single quotes (') are not allowed in JSON", `{"a":1} x`: "Unable to parse JSON string", "01": "Unable to parse JSON string",
		"-": "Invalid number", "1.": "Invalid digits after decimal point", "1e": "Unable to parse JSON string", ".5": "Unexpected token '.'",
		`"\x"`: "Invalid escape character x", "{a:1}": "Expected '}'", "{,}": "Expected '}'", `{"a":#}`: "Unrecognized token '#'",
		`{"a":01}`: "Expected '}'", "{'a':1}": "Single quotes (') are not allowed in JSON", `{"a":=}`: "Unexpected token '='", `{"a" @}`: "Unrecognized token '@'",
		`{"a":1 é}`: "Unrecognized token 'é'", `{"a":é1}`: "Unrecognized token 'é'", `{"a":1,@}`: "Unrecognized token '@'",
		`{"a":"\u12"}`: `"\u12"}" is not a valid unicode escape`, `[{"a":[true,1.5e3,"\u00e4\n"]},]`: "Unexpected comma at the end of array expression",
	} {
		if err := JavaScriptSyntaxErrorOf([]byte(text)); err == nil || err.Error() != "JSON Parse error: "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := JavaScriptSyntaxErrorOf([]byte(` {"a":[1,null]} `)); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `[]`, `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":1} x`, `{"a"`, `null`, `{"a":1}{}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := Parse(json.RawMessage(s))
		var m map[string]json.RawMessage
		plain := json.Unmarshal([]byte(s), &m)
		if valid := plain == nil && m != nil; (err == nil) != valid {
			t.Fatalf("%q: error %v, encoding/json says %v", s, err, plain)
		}
		if err != nil {
			return
		}
		for key, want := range m {
			if got := o.Get(key); string(got) != string(want) {
				t.Errorf("%q of %q is %s, want %s", key, s, got, want)
			}
		}
		if out, err := json.Marshal(o); err != nil || !json.Valid(out) {
			t.Errorf("%q was written as %s, %v", s, out, err)
		}
	})
}
