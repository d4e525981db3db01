package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzRequest checks that any body gets an answer in the format of the API, and that accepted bodies are JSON.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"a\n"},{"type":"text","text":"b"}]},{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"r\n\n<system-reminder>\nx\n</system-reminder>"}]}]},{"role":"system","content":"s"}],"tools":[{"name":"n"}]}`,
		`{"a\"b":"\\","stream":true`, `[]`, `{}{}`, `{"messages":[[[`, `"`,
	} {
		f.Add(body)
	}
	server := newServer(f, "default_response = \"{{ prompt }} {{ turn }}\"\n[[responses]]\npattern = { type = \"contains\", text = \"a\" }\nmax_matches = 1\nresponse = { text = \"t\", tool_calls = [{ tool = \"n\" }] }")
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages", strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		switch {
		case w.Code == http.StatusOK && !json.Valid([]byte(body)):
			t.Errorf("taken: %q", body)
		case w.Code != http.StatusOK && !strings.HasPrefix(w.Body.String(), `{"type":"error","error":{"type":`):
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
