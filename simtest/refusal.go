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

// refusalAdvice is the advice about a claude that does not belong to the test.
const refusalAdvice = "start claude.Path, or \"claude\" with the variables of claude.Env(), and name claude.Path in the host's option for the executable; " +
	"a client of the Messages API takes the URL of simtest.Server"

// newRefusalServer starts the server at the base URL of a Claude. The caller closes it. The scripted claude sends no
// requests, so a client of this server is not the scripted claude: it is refused immediately, and the journal gets
// finding G01.
func newRefusalServer(s *scenarioScript) *httptest.Server {
	var mu sync.Mutex
	var seen []string // messages that are in the journal
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := runner.Refuse(w, r, refusalAdvice)
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodHead && !slices.Contains(seen, found.Text) { // the real CLI starts with HEAD and then sends further requests
			seen = append(seen, found.Text)
			s.record(journal.Finding{ID: found.ID, Level: "error", Text: found.Text, Advice: found.Advice})
		}
	}))
}

// record appends a finding to the journal.
func (s *scenarioScript) record(f journal.Finding) {
	out, err := os.OpenFile(s.journal(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
