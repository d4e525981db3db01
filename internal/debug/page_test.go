package debug_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/internal/debug"
)

func get(external *debug.ExternalServers, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	debug.PageHandler(external).ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// TestFiles checks the served files, and that none of them can send requests to another origin.
func TestFiles(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8",
	} {
		w := get(nil, http.MethodGet, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: no %s in %s", path, want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %s", path, csp)
		}
		if other := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]+\.[a-z]+[^ ]*|<script>| on[a-z]+="| style="|innerHTML|\beval\(`).FindString(w.Body.String()); other != "" {
			t.Errorf("%s holds %q", path, other)
		}
	}
	for method, paths := range map[string][]string{
		http.MethodGet: {"/favicon.ico", "/page.go", "/api/paused", "/mcp"}, http.MethodPost: {"/", "/page.js"},
	} {
		for _, path := range paths {
			if w := get(nil, method, path); w.Code < 400 {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}

// TestHooks checks the names that tests of the page use.
func TestHooks(t *testing.T) {
	html := get(nil, http.MethodGet, "/").Body.String()
	for _, hook := range []string{
		`data-field="input"`, `data-field="result"`, `data-field="message"`,
		`data-action="continue"`, `data-action="skip"`, `data-action="fail"`,
	} {
		if strings.Count(html, hook) != 1 {
			t.Errorf("%s is there %d times", hook, strings.Count(html, hook))
		}
	}
}

func TestServers(t *testing.T) {
	const hidden = `<section hidden id="servers"`
	if !strings.Contains(get(nil, http.MethodGet, "/").Body.String(), hidden) {
		t.Error("servers are shown without servers")
	}
	if strings.Contains(get(&debug.ExternalServers{}, http.MethodGet, "/").Body.String(), hidden) {
		t.Error("servers are hidden")
	}
}

// TestFirstSight checks that, until the first answer of the debugger, the page shows that it is connecting, not that
// the list is empty (C5).
func TestFirstSight(t *testing.T) {
	text := get(nil, http.MethodGet, "/").Body.String()
	if !strings.Contains(text, `<p id="state" role="status">connecting…</p>`) {
		t.Error("the page does not say that it connects")
	}
	empty := regexp.MustCompile(`<[a-z]+ class="empty"[^>]*>`).FindAllString(text, -1)
	for _, tag := range empty {
		if !strings.Contains(tag, " hidden") {
			t.Errorf("%s is shown before anything is known", tag)
		}
	}
	if len(empty) == 0 {
		t.Error("nothing says that a list is empty")
	}
}
