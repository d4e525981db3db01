package simtest

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// refusalAdvice is the advice to give if a request comes from a claude that the test did not create.
const refusalAdvice = "start claude.Path, or \"claude\" with the variables of claude.Env(), and name claude.Path in the host's option for the executable; " +
	"a client of the Messages API takes the URL of simtest.Server"

// newRefusalServer starts the server at the ANTHROPIC_BASE_URL of a Claude. The scripted claude sends no requests, so
// every client of this server is another program. The server refuses its requests immediately and adds finding G01 to
// the journal. The caller closes the server.
func newRefusalServer(s *scenarioScript) *httptest.Server {
	var mu sync.Mutex
	var seen []string // texts of the findings that are already in the journal
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := runner.RefuseBypassingRequest(w, r, refusalAdvice)
		mu.Lock()
		defer mu.Unlock()
		// The real CLI first sends HEAD, and other requests follow.
		if r.Method != http.MethodHead && !slices.Contains(seen, found.Text) {
			seen = append(seen, found.Text)
			s.record(journal.Finding{ID: found.ID, Level: "error", Text: found.Text, Advice: found.Advice})
		}
	}))
}

func (s *scenarioScript) record(f journal.Finding) {
	out, err := os.OpenFile(s.journalPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.tb.Errorf("simtest: %v", err)
		return
	}
	lines := journal.New(journal.Options{W: out, Now: time.Now, Environ: os.Environ()})
	lines.Write(f)
	if err := cmp.Or(lines.Err(), out.Close()); err != nil {
		s.tb.Errorf("simtest: %v", err)
	}
}
