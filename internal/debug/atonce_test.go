package debug

import (
	"fmt"
	"sync"
	"testing"
)

// Many goroutines set and remove breakpoints; in the end, all are set and then all are removed. The test detects a
// missing lock even without the race detector.
func TestBreakpointsAtOnce(t *testing.T) {
	const users, each, rounds = 4, 250, 40
	for range rounds {
		h := newHub(t)
		var wg sync.WaitGroup
		all := func(do func(name string)) {
			for u := range users {
				wg.Go(func() {
					for i := range each {
						do(fmt.Sprintf("%d.%d", u, i))
					}
				})
			}
			wg.Wait()
		}
		all(func(name string) {
			if err := h.BreakpointSet.SetBreakpoint(BreakpointSettings{Name: name}); err != nil {
				t.Error(err)
			}
		})
		if n := len(h.BreakpointSet.Breakpoints()); n != users*each {
			t.Fatalf("%d breakpoints, want %d", n, users*each)
		}
		all(h.BreakpointSet.RemoveBreakpoint)
		if n := len(h.BreakpointSet.Breakpoints()); n != 0 {
			t.Fatalf("%d breakpoints are left", n)
		}
	}
}
