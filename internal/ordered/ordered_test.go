package ordered

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
	o = o.With("a", json.RawMessage(`null`)).With("n", json.RawMessage(`true`))
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
