package servecmd_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/cli/servecmd"
	"github.com/claudeless/claudeless/internal/record/journal"
)

func event(data string) string { return "event: x\ndata: " + data + "\n\n" }

// Forwarded responses are unchanged. The journal has the complete response without secrets, even if the stream splits
// a secret.
func TestForward(t *testing.T) {
	const secret = "ghp" + "_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
	stream := event(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null}}`) +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmF0dXJl"}}`) +
		event(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`) +
		event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"take `+secret[:9]+`"}}`) +
		event(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"`+secret[9:]+`"}}`) +
		event(`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"T","input":{}}}`) +
		event(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}`) +
		event(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}`) +
		event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`)
	for _, c := range []struct {
		name, path, kind, answer, want string
		status                         int
	}{
		{
			"a stream", "/v1/messages?beta=true", "text/event-stream", stream, `"type":"exchange","session":"S","client":"c/1","path":"/v1/messages",` +
				`"request":{"n":1},"status":200,"response":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` +
				`{"thinking":"hm","type":"thinking"},{"text":"take [redacted]","type":"text"},{"id":"toolu_1","input":{"a":1},"name":"T","type":"tool_use"}],` +
				`"stop_reason":"tool_use","stop_sequence":null,"usage":{"output_tokens":5}},"ms":0}`, http.StatusOK,
		},
		{
			"a refusal", "/v1/messages", "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`,
			`"status":529,"response":{"type":"error","error":{"type":"overloaded_error","message":"busy"}},"ms":0}`, 529,
		},
		{
			"a stream that breaks off", "/v1/messages", "text/event-stream", event(`{"type":"error","error":{"type":"api_error","message":"x"}}`),
			`"status":200,"response":{"type":"error","error":{"type":"api_error","message":"x"}},"ms":0}`, http.StatusOK,
		},
		{
			"something else", "/v1/messages/count_tokens", "application/json", `{"input_tokens":1}`,
			`"type":"side_request","namespace":"","session":"S","kind":"count_tokens","path":"/v1/messages/count_tokens","status":200,"ms":0}`, http.StatusOK,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("X-Api-Key") + " " + r.URL.RequestURI(); got != "the key "+c.path {
					t.Errorf("the API was asked %q", got)
				}
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer api.Close()
			var out bytes.Buffer
			now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
			h, err := servecmd.NewRecordingProxy(servecmd.RecordingProxyOptions{Upstream: api.URL, Now: now, Journal: journal.New(journal.Options{W: &out, Now: now, PID: 1})})
			if err != nil {
				t.Fatal(err)
			}
			req := httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(`{"n":1}`))
			req.Header.Set("X-Api-Key", "the key")
			req.Header.Set("X-Claude-Code-Session-Id", "S")
			req.Header.Set("User-Agent", "c/1")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if diff := cmp.Diff(c.answer, w.Body.String()); diff != "" || w.Code != c.status {
				t.Errorf("status %d; the client's answer (-want +got):\n%s", w.Code, diff)
			}
			if !strings.HasSuffix(out.String(), c.want+"\n") || strings.Contains(out.String(), "the key") {
				t.Errorf("journal:\n%swant the end\n%s", out.String(), c.want)
			}
		})
	}
}

// If the API cannot be reached, the client gets an error in the format of the API, and the journal records it.
func TestForwardNowhere(t *testing.T) {
	var out bytes.Buffer
	h, err := servecmd.NewRecordingProxy(servecmd.RecordingProxyOptions{Upstream: "http://127.0.0.1:1", Now: time.Now, Journal: journal.New(journal.Options{W: &out, Now: time.Now})})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(`{}`)))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), `"api_error"`) || !strings.Contains(out.String(), `"status":502`) {
		t.Errorf("%d %s\n%s", w.Code, w.Body, out.String())
	}
	for _, bad := range []string{"", "localhost:80", "ftp://h", "http://"} {
		if _, err := servecmd.NewRecordingProxy(servecmd.RecordingProxyOptions{Upstream: bad}); err == nil || !regexp.MustCompile("invalid API address").MatchString(err.Error()) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
