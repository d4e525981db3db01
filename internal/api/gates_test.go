package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeless/claudeless/internal/api"
)

const gated = `
[[responses]]
pattern = { type = "exact", text = "first" }
[[responses.response.steps]]
text = "one"
gate = "asked"
[[responses]]
pattern = { type = "exact", text = "second" }
[[responses.response.steps]]
text = "two"
after = "gate:asked"
`

// begin sends a prompt in the background; the channel receives the text of the answer.
func begin(ctx context.Context, t *testing.T, s http.Handler, path, text string) <-chan string {
	t.Helper()
	done := make(chan string, 1)
	go func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, path+"/v1/messages", promptBody(text, true))
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		done <- w.Body.String()
	}()
	return done
}

// requestControl sends a request to a control route.
func requestControl(t *testing.T, s http.Handler, method, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestGates (exec 8, on the API): an answer waits until its gate, or the gate that it names, is released. A released
// gate stays open in its namespace.
func TestGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		journal := &safeBuffer{}
		s := newServer(t, gated, func(o *api.Options) { o.Capture = journal })
		first, second := begin(t.Context(), t, s, "/t/a", "first"), begin(t.Context(), t, s, "/t/a", "second")
		synctest.Wait()
		if len(first)+len(second) > 0 {
			t.Fatal("an answer did not wait")
		}
		if _, state := requestControl(t, s, "GET", "/t/a/_claudeless/state"); !strings.Contains(state, `"gates":[{"name":"asked","reached":true,"waiting":true}]`) {
			t.Errorf("state: %s", state)
		}
		if code, body := requestControl(t, s, "POST", "/t/a/_claudeless/gates/asked/release"); code != 200 {
			t.Errorf("release: %d %s", code, body)
		}
		synctest.Wait()
		if len(first)+len(second) != 2 || !strings.Contains(<-first, `"one"`) || !strings.Contains(<-second, `"two"`) {
			t.Fatal("a released gate holds")
		}
		late := begin(t.Context(), t, s, "/t/a", "first")
		synctest.Wait()
		if len(late) != 1 {
			t.Error("a released gate is not remembered")
		}
		began := time.Now()
		other := <-begin(t.Context(), t, s, "/t/b", "second") // the gate of this namespace stays closed
		if d := time.Since(began); d != 30*time.Second || !strings.Contains(other, `"two"`) {
			t.Errorf("after %v: %s", d, other)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := begin(ctx, t, s, "/t/c", "first")
		synctest.Wait()
		leave()
		if got := <-gone; got != "" {
			t.Errorf("a client that has gone got %s", got)
		}
		for _, want := range []string{
			`"type":"gate","name":"asked","event":"reached"`, `"event":"released"`, `"event":"timeout"`, `"id":"T01"`,
			`the gate asked was not released: the wait timed out`, "aborted: the client disconnected",
		} {
			if !strings.Contains(journal.String(), want) {
				t.Errorf("no %s in the journal:\n%s", want, journal.String())
			}
		}
	})
}

// TestGates_wrong: invalid gate names are refused.
func TestGates_wrong(t *testing.T) {
	s := newServer(t, gated)
	for path, want := range map[string]int{
		"/_claudeless/gates/..%2Fx/release": 400, "/_claudeless/gates/asked": 404, "/_claudeless/gates/asked/release": 200,
	} {
		if code, body := requestControl(t, s, "POST", path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
