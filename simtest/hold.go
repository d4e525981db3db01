package simtest

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/exec/gate"
)

// Hold delays an answer until it is released.
type Hold struct {
	tb   testing.TB
	dir  string // directory of the gates
	name string
}

// Hold delays the answer to a prompt until [Hold.Release]. The answer is the one given to [Claude.On] for the same
// prompt or, if prompt is nil, the script of [New]. The test fails if the answer is not released within 30 seconds.
func (c *Claude) Hold(prompt any) *Hold {
	c.script.tb.Helper()
	h := c.script.addHold(prompt)
	c.script.writeScenario()
	return h
}

// Hold delays the answer to a prompt, as [Claude.Hold] does.
func (a *API) Hold(prompt any) *Hold {
	a.script.tb.Helper()
	h := a.script.addHold(prompt)
	a.reload()
	return h
}

// Reached waits until the answer is requested. It fails the test if this does not happen within this time.
func (h *Hold) Reached(within time.Duration) {
	h.tb.Helper()
	switch err := gate.AwaitReached(h.tb.Context(), h.dir, h.name, within); {
	case errors.Is(err, gate.ErrTimeout):
		h.tb.Fatalf("simtest: no request for the answer within %v", within)
	case err != nil:
		h.tb.Fatalf("simtest: waiting for a request: %v", err)
	}
}

// Release releases the answer. It may be called before the answer is requested.
func (h *Hold) Release() {
	h.tb.Helper()
	if err := gate.Release(h.dir, h.name); err != nil {
		h.tb.Fatalf("simtest: releasing the answer: %v", err)
	}
}

// gateDir returns the directory in which processes that use the script look for gates.
func (s *scenarioScript) gateDir() string {
	return gate.Dir([]string{"CLAUDELESS_CAPTURE=" + s.journalPath()})
}

func (s *scenarioScript) addHold(prompt any) *Hold {
	s.tb.Helper()
	pattern := map[string]any{"type": "any"}
	if prompt != nil {
		pattern = s.pattern(prompt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if reflect.DeepEqual(r.pattern, pattern) {
			s.holdCount++
			h := &Hold{tb: s.tb, dir: s.gateDir(), name: fmt.Sprintf("hold-%d", s.holdCount)}
			r.steps[0]["gate"] = h.name
			return h
		}
	}
	s.tb.Fatalf("simtest: Hold: no rule for %v: call On for it first", prompt)
	return nil
}
