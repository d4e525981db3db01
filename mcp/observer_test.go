package mcp

import (
	"encoding/json"
	"testing"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// TestContentID: equal JSON values share a CID; bytes that are not JSON have one too (S27).
func TestContentID(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{`{"b": 1, "a": 2}`, cas.CID([]byte(`{"a":2,"b":1}`))},
		{`{broken`, cas.CID([]byte(`{broken`))},
		{"", ""},
	} {
		if got := canonicalJSONContentID(json.RawMessage(tt.value)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.value, got, tt.want)
		}
	}
}
