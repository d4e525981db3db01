package simtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// API is a script as the Messages API, in the process of the test.
type API struct {
	// URL is the base URL for an Anthropic SDK, or for the real claude; it never ends in /v1.
	URL string

	script *scenarioScript
	out    *os.File // the journal

	active sync.RWMutex // requests in progress hold it for reading

	mu     sync.Mutex
	server http.Handler // serves the current rules
}

// Server serves these steps (see [New]) as the Messages API. Without steps, the rules come from [API.On]. The server
// is closed at the end of the test, and problems in the verdict fail the test.
func Server(tb testing.TB, steps ...any) *API {
	tb.Helper()
	s := newScript(tb, callerPosition(), "")
	out, err := os.OpenFile(s.journal(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatalf("simtest: %v", err)
	}
	a := &API{script: s, out: out}
	tb.Cleanup(func() {
		_ = out.Close() // every line went out in one write
		s.judge()
	})
	if len(steps) > 0 {
		s.add(map[string]any{"type": "any"}, steps, onlyOnce, s.position)
	}
	a.reload()
	listener := httptest.NewServer(a)
	tb.Cleanup(listener.Close)
	a.URL = listener.URL
	return a
}

// On adds a rule, as [Claude.On] does. It also answers conversations that have already begun, because every request
// contains its whole conversation.
func (a *API) On(prompt any, steps ...any) *API {
	a.script.tb.Helper()
	a.script.addSteps(prompt, steps, callerPosition())
	a.reload()
	return a
}

// Prompts returns the prompts so far, in order; a repeated request counts once. It waits for running requests, so
// read a stream to its end first.
func (a *API) Prompts() []Prompt {
	a.waitRecorded()
	return a.script.prompts()
}

// Tools returns the calls whose results have arrived, in order. It waits for running requests.
func (a *API) Tools() []Tool {
	a.waitRecorded()
	return a.script.tools()
}

// waitRecorded waits until requests whose answer a client has received are in the journal.
func (a *API) waitRecorded() {
	a.active.Lock()
	defer a.active.Unlock()
}

// ServeHTTP implements http.Handler, for a listener of the test's own.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.active.RLock()
	defer a.active.RUnlock()
	a.mu.Lock()
	server := a.server
	a.mu.Unlock()
	server.ServeHTTP(w, r)
}

func (a *API) reload() {
	a.script.tb.Helper()
	a.script.write()
	loaded, err := verdict.LoadScenario(a.script.scenario())
	if err != nil {
		a.script.tb.Fatalf("simtest: the script is not a valid scenario\n%v", err)
	}
	server, err := api.New(api.Options{
		Scenario: loaded, Clock: clock.New(clock.Options{Now: time.Now, NewID: process.NewSystem().NewID}), Capture: a.out, Environ: os.Environ(), PID: os.Getpid(),
		CWD: filepath.Dir(a.script.scenario()), Gates: a.script.gates(),
	})
	if err != nil {
		a.script.tb.Fatalf("simtest: %v", err)
	}
	a.mu.Lock()
	a.server = server
	a.mu.Unlock()
}
