package harness

import (
	"testing"
	"time"
)

// What hangs is known within 20 s; on a machine that is slow, what is slow does not hang.
func TestLimit(t *testing.T) {
	for _, test := range []struct{ plain, want time.Duration }{
		{10 * time.Millisecond, 12*time.Second + 10*time.Millisecond},
		{2 * time.Second, 14 * time.Second},
		{6 * time.Second, 18 * time.Second},
		{11 * time.Second, 33 * time.Second},
	} {
		if got := limit(test.plain); got != test.want {
			t.Errorf("after %s without a fault: %s, want %s", test.plain, got, test.want)
		}
	}
}
