package debug

import (
	"fmt"
	"sync"
	"testing"
)

// Breakpoints that many set and remove at once are all there and all gone: what
// is lost without the lock shows without the race detector too.
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
			if err := h.SetBreakpoint(BreakpointChange{Name: name}); err != nil {
				t.Error(err)
			}
		})
		if n := len(h.Breakpoints()); n != users*each {
			t.Fatalf("%d breakpoints, want %d", n, users*each)
		}
		all(h.RemoveBreakpoint)
		if n := len(h.Breakpoints()); n != 0 {
			t.Fatalf("%d breakpoints are left", n)
		}
	}
}
