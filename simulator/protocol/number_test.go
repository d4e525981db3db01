package protocol_test

import (
	"math"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
)

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{0.5: "0.5", 1e-7: "1e-7", 0.0000012: "0.0000012", 5: "5", 1e21: "1e+21", math.Inf(1): "null"} {
		if got := protocol.FormatNumber(f); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
