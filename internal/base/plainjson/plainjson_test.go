package plainjson

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	if got, want := MarshalString(map[string]any{"a": "<&>"}), `{"a":"<&>"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := MarshalString(math.Inf(1)); got != "null" {
		t.Errorf("infinity is %s", got)
	}
}

func TestPlain(t *testing.T) {
	v, err := DecodeFirstValue([]byte(`{"a":[1,1.5,12345678901234567890,1e999,"x"],"b":{"c":-2}} more`))
	want := map[string]any{"a": []any{1, 1.5, 12345678901234567890.0, "1e999", "x"}, "b": map[string]any{"c": -2}}
	if diff := cmp.Diff(want, NormalizeNumbersInPlace(v)); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if _, err := DecodeFirstValue([]byte(`{`)); err == nil {
		t.Error("half an object is a value")
	}
}
