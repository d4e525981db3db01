package plainjson

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Values of every type are converted as JavaScript converts them.
func TestValues(t *testing.T) {
	type taken struct {
		Given, Falsy, Objects, IsText bool
		Word                          string
	}
	tests := map[string]taken{
		``:            {Word: "undefined", Falsy: true},
		`null`:        {Word: "null", Falsy: true},
		`false`:       {Given: true, Word: "false", Falsy: true},
		`0`:           {Given: true, Word: "0", Falsy: true},
		`-0.0`:        {Given: true, Word: "-0.0", Falsy: true},
		`7`:           {Given: true, Word: "7"},
		`""`:          {Given: true, IsText: true, Falsy: true},
		`"a\nb"`:      {Given: true, IsText: true, Word: "a\nb"},
		`[]`:          {Given: true, Word: "[]"},
		`{}`:          {Given: true, Word: "[object Object]", Objects: true},
		`{"a":{}}`:    {Given: true, Word: "[object Object]", Objects: true},
		`{"a":[]}`:    {Given: true, Word: "[object Object]"},
		`{"a":"{}" }`: {Given: true, Word: "[object Object]"},
	}
	for raw, want := range tests {
		v := json.RawMessage(raw)
		_, text := StringValue(v)
		got := taken{Given: IsSet(v), Falsy: IsFalsy(v), Objects: IsObjectOfObjects(v), IsText: text, Word: JSString(v)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

// A key with a value of the wrong type is skipped; the others are read.
func TestRead(t *testing.T) {
	type keys struct{ A, B string }
	if got := DecodeIgnoringErrors[keys](json.RawMessage(`{"a":7,"b":"x"}`)); got != (keys{B: "x"}) {
		t.Errorf("got %+v", got)
	}
	if got := DecodeIgnoringErrors[keys](json.RawMessage(`[1]`)); got != (keys{}) {
		t.Errorf("got %+v", got)
	}
}
