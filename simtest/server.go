package simtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// API serves a script as the Messages API, in the process of the test.
type API struct {
	URL string // the base URL for an Anthropic SDK or the real claude; it does not end in /v1

	script *testRun
	out    *os.File // the journal

	active sync.RWMutex // Requests hold the read lock. waitForRequestsInProgress takes the write lock to wait for them.

	mu     sync.Mutex
	server http.Handler // handles requests with the current rules
}

// Server serves these steps (see [New]) as the Messages API. Without steps, the rules come from [API.On]. At the end of
// the test, the server is closed, and each problem of the run fails the test.
func Server(tb testing.TB, steps ...any) *API {
	tb.Helper()
	s := newTestRun(tb, callerPosition(), "")
	out, err := os.OpenFile(s.journalPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	a := &API{script: s, out: out}
	tb.Cleanup(func() {
		_ = out.Close() // every line has been written
		s.killLeftoversAndReportProblems()
	})
	if len(steps) > 0 {
		s.addRuleWithSteps(rule{pattern: map[string]any{"type": "any"}, once: true, position: s.position}, steps)
	}
	a.reloadScenario()
	listener := httptest.NewServer(a)
	tb.Cleanup(listener.Close)
	a.URL = listener.URL
	return a
}

// On adds a rule, as [Claude.On] does. The rule also answers conversations that have already begun, because every
// request contains its whole conversation.
func (a *API) On(prompt any, steps ...any) *API {
	a.script.tb.Helper()
	a.script.addRuleForPrompt(prompt, steps, callerPosition())
	a.reloadScenario()
	return a
}

// Prompts returns the prompts so far, in order. A repeated request counts once. Prompts waits until the requests in
// progress are answered, so read a streamed response to its end before you call it.
func (a *API) Prompts() []Prompt {
	a.waitForRequestsInProgress()
	return a.script.prompts()
}

// Tools returns the calls with a result, in order. It waits for requests in progress.
func (a *API) Tools() (executedCalls []Tool) {
	a.waitForRequestsInProgress()
	return a.script.executedCalls()
}

// waitForRequestsInProgress waits until all answered requests are in the journal.
func (a *API) waitForRequestsInProgress() {
	a.active.Lock()
	defer a.active.Unlock()
}

// ServeHTTP handles a request, for tests that use their own listener.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.active.RLock()
	defer a.active.RUnlock()
	a.mu.Lock()
	server := a.server
	a.mu.Unlock()
	server.ServeHTTP(w, r)
}

func (a *API) reloadScenario() {
	a.script.tb.Helper()
	a.script.writeScenario()
	loaded, err := verdict.LoadScenario(a.script.scenarioPath())
	if err != nil {
		a.script.tb.Fatalf("simtest: the script is not a valid scenario\n%v", err)
	}
	server, err := api.New(api.Options{
		Scenario: loaded, Clock: clock.New(clock.Options{Now: time.Now, NewID: process.InitSystemSIGPIPEAndLog().NewID}), Capture: a.out, Environ: os.Environ(), PID: os.Getpid(),
		CWD: filepath.Dir(a.script.scenarioPath()), Gates: a.script.gateDir(),
	})
	if err != nil {
		a.script.tb.Fatalf("simtest: %v", err)
	}
	a.mu.Lock()
	a.server = server
	a.mu.Unlock()
}

// Hold delays an answer until it is released.
type Hold struct {
	tb            testing.TB
	gateDirectory string // directory of the gates
	gateName      string
}

// Hold delays the answer to a prompt until [Hold.Release]. prompt must be the prompt of a call of [Claude.On];
// nil means the answer of the steps of [New]. The test fails if the answer is not released within 30 seconds.
func (c *Claude) Hold(prompt any) *Hold {
	c.script.tb.Helper()
	h := c.script.addHoldToExistingRule(prompt)
	c.script.writeScenario()
	return h
}

// Hold delays the answer to a prompt, as [Claude.Hold] does.
func (a *API) Hold(prompt any) (heldAnswer *Hold) {
	a.script.tb.Helper()
	h := a.script.addHoldToExistingRule(prompt)
	a.reloadScenario()
	return h
}

// Reached waits until the delayed answer is requested. If no request comes within this time, it fails the test.
func (h *Hold) Reached(within time.Duration) {
	h.tb.Helper()
	switch err := gate.AwaitReached(h.tb.Context(), h.gateDirectory, h.gateName, within); {
	case errors.Is(err, gate.ErrGateWaitTimedOut):
		h.tb.Fatalf("simtest: no request asked for the answer within %v", within)
	case err != nil:
		h.tb.Fatalf("simtest: waiting for a request: %v", err)
	}
}

// Release releases the answer. It may be called before the answer is requested.
func (h *Hold) Release() {
	h.tb.Helper()
	if err := gate.Release(h.gateDirectory, h.gateName); err != nil {
		h.tb.Fatalf("simtest: releasing the answer: %v", err)
	}
}

func (s *testRun) gateDir() string {
	return gate.Dir([]string{"CLAUDELESS_CAPTURE=" + s.journalPath()})
}

func (s *testRun) addHoldToExistingRule(prompt any) *Hold {
	s.tb.Helper()
	pattern := map[string]any{"type": "any"}
	if prompt != nil {
		pattern = s.stringOrRegexpPattern(prompt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rules {
		if reflect.DeepEqual(r.pattern, pattern) {
			s.holdCount++
			h := &Hold{tb: s.tb, gateDirectory: s.gateDir(), gateName: fmt.Sprintf("hold-%d", s.holdCount)}
			r.steps[0]["gate"] = h.gateName
			return h
		}
	}
	s.tb.Fatalf("simtest: Hold: no rule for %v: call On for it first", prompt)
	return nil
}
