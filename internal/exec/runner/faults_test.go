package runner

import (
	"runtime"
	"testing"
	"time"
)

// A hang is detected within 20 s; on a slow machine the limit grows, so that a slow command does not count as a hang.
func TestLimit(t *testing.T) {
	for _, test := range []struct{ plain, want time.Duration }{
		{10 * time.Millisecond, 12*time.Second + 10*time.Millisecond},
		{2 * time.Second, 14 * time.Second},
		{6 * time.Second, 18 * time.Second},
		{11 * time.Second, 33 * time.Second},
	} {
		if got := timeLimitOfRunWithFault(test.plain); got != test.want {
			t.Errorf("after %s without a fault: %s, want %s", test.plain, got, test.want)
		}
	}
}

// A run that needs a whole processor gets one, because it would otherwise look like a hang.
func TestAtOnce(t *testing.T) {
	var double, lane Options
	lane.Setup.Real.Path = "/claude"
	for _, test := range []struct {
		name string
		o    Options
		cpu  time.Duration
		want int
	}{
		{"a command that waits", double, 100 * time.Millisecond, maxFaultRunsAtSameTime},
		{"one that is busy", double, 1800 * time.Millisecond, min(maxFaultRunsAtSameTime, runtime.NumCPU())},
		{"a real claude", lane, 0, min(maxFaultRunsAtSameTime, runtime.NumCPU())},
	} {
		if got := test.o.faultRunsAtSameTime(2*time.Second, test.cpu); got != test.want {
			t.Errorf("%s: %d at once, want %d", test.name, got, test.want)
		}
	}
}
