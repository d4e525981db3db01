package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
)

// serveOnPort serves a scenario on a real port; the buffer has its journal after the server is closed.
func serveOnPort(t *testing.T, src string) (url string, journal *safeBuffer) {
	t.Helper()
	journal = &safeBuffer{}
	server := newServer(t, src, func(o *api.Options) {
		o.Clock, o.Capture = clock.New(clock.Options{Now: time.Now, NewID: fixedClock{}.NewID}), journal
	})
	h := httptest.NewServer(server)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		if err := server.Err(); err != nil {
			t.Error(err)
		}
	})
	return h.URL, journal
}

// safeBuffer is a buffer that several goroutines may write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until waits for a journal line that contains text.
func (b *safeBuffer) until(t *testing.T, text string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !strings.Contains(b.String(), text) {
		if time.Now().After(deadline) {
			t.Fatalf("no line with %q in the journal:\n%s", text, b.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func post(ctx context.Context, t *testing.T, url string, body io.Reader, header ...string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(r)
}

func promptBody(text string, stream bool) io.Reader {
	return strings.NewReader(fmt.Sprintf(`{"model":"m","max_tokens":100,"stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, text))
}

// TestCuts (messages-api 6, partial_response): RST, FIN, an error event, a silent connection and a truncated body are
// five different failures, streamed or not.
func TestCuts(t *testing.T) {
	var src strings.Builder
	for _, cut := range []string{"reset", "close", "error", "silence", "end"} {
		fmt.Fprintf(&src, "[[responses]]\npattern = { type = \"exact\", text = %q }\nfailure = { type = \"partial_response\", partial_text = \"I was going\", cut = %q }\n", cut, cut)
	}
	url, journal := serveOnPort(t, src.String())
	for _, tt := range []struct {
		cut    string
		stream bool
		status int
		err    func(error) bool
		holds  string
	}{
		{"reset", true, 200, isReset, `"I "`},
		{"close", true, 200, isEarlyEnd, `"going"`},
		{"error", true, 200, isNil, `event: error`},
		{"silence", true, 200, isTimeout, `"going"`},
		{"end", true, 200, isNil, `"going"`},
		{"reset", false, 200, isReset, ""},
		{"close", false, 200, isEarlyEnd, `I was going`},
		{"error", false, 500, isNil, `"api_error"`},
		{"silence", false, 200, isTimeout, `I was going`},
		{"end", false, 200, isNil, `I was going`},
	} {
		t.Run(fmt.Sprintf("%s/%t", tt.cut, tt.stream), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			resp, err := post(ctx, t, url, promptBody(tt.cut, tt.stream))
			if err != nil {
				if !tt.err(err) || tt.cut != "reset" { // the reset may arrive before the headers
					t.Fatal(err)
				}
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if !tt.err(err) {
				t.Errorf("error %v", err)
			}
			if resp.StatusCode != tt.status || tt.cut != "reset" && !strings.Contains(string(body), tt.holds) {
				t.Errorf("status %d, body %s", resp.StatusCode, body)
			}
			if strings.Contains(string(body), "message_stop") || strings.Contains(string(body), `"usage":{"input_tokens":1,"output`) {
				t.Errorf("it is whole: %s", body)
			}
		})
	}
	journal.until(t, "aborted: the client disconnected")
}

func isNil(err error) bool      { return err == nil }
func isReset(err error) bool    { return errors.Is(err, syscall.ECONNRESET) }
func isEarlyEnd(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
func isTimeout(err error) bool  { return errors.Is(err, context.DeadlineExceeded) }

// TestNoAnswer (messages-api 6, last row): connections that end, or send nothing, before any answer.
func TestNoAnswer(t *testing.T) {
	url, journal := serveOnPort(t, `
[[responses]]
pattern = { type = "exact", text = "hang" }
failure = { type = "hang" }
[[responses]]
pattern = { type = "exact", text = "unreachable" }
failure = { type = "network_unreachable" }
[[responses]]
pattern = { type = "exact", text = "crash" }
failure = { type = "crash" }
[[responses]]
pattern = { type = "exact", text = "late" }
failure = { type = "connection_timeout", after_ms = 30 }
`)
	for text, want := range map[string]func(error) bool{
		"hang": isTimeout, "unreachable": isGone, "crash": isGone, "late": isGone,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		resp, err := post(ctx, t, url, promptBody(text, true))
		if err == nil {
			resp.Body.Close()
		}
		if !want(err) {
			t.Errorf("%s: %v", text, err)
		}
		cancel()
	}
	journal.until(t, `"error":"hang"`)
}

func isGone(err error) bool { return isReset(err) || errors.Is(err, io.EOF) }

// TestPacked checks M5: bodies compressed with gzip, br and zstd are accepted; bodies over 32 MB are refused,
// compressed or not.
func TestPacked(t *testing.T) {
	url, _ := serveOnPort(t, `default_response = "fine"`)
	pack := map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			enc, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return enc
		},
		"": func(w io.Writer) io.WriteCloser {
			return struct {
				io.Writer
				io.Closer
			}{w, io.NopCloser(nil)}
		},
	}
	large := strings.Repeat("x", 33<<20)
	for name, writer := range pack {
		for want, text := range map[int]string{200: "hi", 413: large} {
			var b bytes.Buffer
			w := writer(&b)
			if _, err := io.Copy(w, promptBody(text, false)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			header := []string{"Content-Encoding", name}
			if name == "" {
				header = nil
			}
			resp, err := post(t.Context(), t, url, &b, header...)
			if err != nil {
				t.Errorf("%s, %d: %v", name, want, err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want || err != nil || want == 413 && !strings.Contains(string(body), "request_too_large") {
				t.Errorf("%q: status %d, want %d: %.200s %v", name, resp.StatusCode, want, body, err)
			}
		}
		resp, err := post(t.Context(), t, url, strings.NewReader("not packed"), "Content-Encoding", name)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: a body that is not packed: status %d", name, resp.StatusCode)
		}
	}
}

// TestClientLeaves checks M13: a client that disconnects during a stream stops it, and the journal records this.
func TestClientLeaves(t *testing.T) {
	url, journal := serveOnPort(t, `
[stream]
tokens_per_second = 20
[[responses]]
pattern = { type = "any" }
response = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
`)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, url, promptBody("go", true))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, first); err != nil { // each event is sent at once
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	journal.until(t, "aborted: the client disconnected after ")
}

// TestNothingStays checks that a server leaves no goroutine after use.
func TestNothingStays(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := newServer(t, `default_response = "fine"`)
	h := httptest.NewServer(server)
	for range 20 {
		resp, err := post(t.Context(), t, h.URL, promptBody("hi", true))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
		resp.Body.Close()
	}
	h.Close()
}
