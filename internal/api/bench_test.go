package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
)

// discardResponse is a ResponseWriter that drops the response.
type discardResponse struct{ header http.Header }

func (d *discardResponse) Header() http.Header         { return d.header }
func (d *discardResponse) Write(p []byte) (int, error) { return len(p), nil }
func (d *discardResponse) WriteHeader(int)             {}

// serveBody benchmarks one POST /v1/messages with this body.
func serveBody(b *testing.B, server http.Handler, body []byte) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/messages", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.RemoteAddr = "127.0.0.1:1"
		server.ServeHTTP(&discardResponse{http.Header{}}, r)
	}
}

func bodyOf(b *testing.B, n, size int) []byte {
	b.Helper()
	var history []block
	for i := range n {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		history = append(history, block{"role": role, "content": fmt.Sprintf("message %d", i)})
	}
	if n%2 == 0 {
		history = append(history, block{"role": "user", "content": "last"})
	}
	request := block{"model": "claude-opus-5-5", "max_tokens": 32000, "stream": true, "messages": history}
	if size > 0 {
		tools := []block{}
		for i := range 30 {
			tools = append(tools, block{"name": fmt.Sprintf("Tool%d", i), "description": strings.Repeat("what it does and when to use it; ", size/31/34), "input_schema": block{"type": "object"}})
		}
		request["tools"] = tools
		request["system"] = []block{{"type": "text", "text": strings.Repeat("be good. ", 1000)}}
	}
	body, err := json.Marshal(request)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

const benchScenario = `
[[responses]]
pattern = { type = "regex", pattern = 'message (?P<n>\d+)' }
response = "answer {{ match.n }} in turn {{ turn }}"
[[responses]]
pattern = { type = "any" }
response = "the last word"
`

// BenchmarkRequest measures the time of one request: two messages, a body of Claude Code, message 200 of a
// conversation, and many rules.
func BenchmarkRequest(b *testing.B) {
	for name, body := range map[string][]byte{"2-messages": bodyOf(b, 1, 0), "140-KB": bodyOf(b, 3, 140<<10), "message-200": bodyOf(b, 200, 0)} {
		b.Run(name, func(b *testing.B) { serveBody(b, newServer(b, benchScenario), body) })
	}
	for _, n := range []int{10, 10_000} {
		var src strings.Builder
		for i := range n {
			fmt.Fprintf(&src, "[[responses]]\npattern = { type = \"contains\", text = \"prompt %d end\" }\nresponse = \"r\"\n", i)
		}
		src.WriteString("[[responses]]\npattern = { type = \"any\" }\nresponse = \"last\"\n")
		b.Run(fmt.Sprintf("rules-%d", n), func(b *testing.B) { serveBody(b, newServer(b, src.String()), bodyOf(b, 1, 0)) })
	}
}

// BenchmarkThroughput measures requests per second over loopback with persistent connections. The client shares the
// processors with the server, so it does little work: it writes constant bytes and reads to the end of the body.
func BenchmarkThroughput(b *testing.B) {
	for name, stream := range map[string]bool{"whole": false, "streamed": true} {
		b.Run(name, func(b *testing.B) {
			h := httptest.NewServer(newServer(b, benchScenario))
			defer h.Close()
			body := bytes.Replace(bodyOf(b, 1, 0), []byte(`"stream":true`), fmt.Appendf(nil, `"stream":%t`, stream), 1)
			request := fmt.Appendf(nil, "POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				h.Listener.Addr(), len(body), body)
			end := []byte("}}") // the end of a body; in a stream, the last chunk
			if stream {
				end = []byte("\r\n0\r\n\r\n")
			}
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", h.Listener.Addr().String())
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				answer := make([]byte, 16<<10)
				for pb.Next() {
					if _, err := conn.Write(request); err != nil {
						b.Error(err)
						return
					}
					for n := 0; !bytes.HasSuffix(answer[:n], end); {
						more, err := conn.Read(answer[n:])
						if n += more; err != nil {
							b.Error(err, string(answer[:n]))
							return
						}
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// BenchmarkOpenStreams measures the memory of 1,000 streams that are open at the same time.
func BenchmarkOpenStreams(b *testing.B) {
	const streams = 1000
	server := newServer(b, "[[responses]]\npattern = { type = \"any\" }\n[[responses.response.steps]]\ntext = \"one two three\"\nstream = { tokens_per_second = 0.01 }\n",
		func(o *api.Options) {
			o.Clock = clock.New(clock.Options{Now: time.Now, NewID: fixedClock{}.NewID})
		})
	body := bodyOf(b, 1, 0)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		for range streams {
			go func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", bytes.NewReader(body))
				if err == nil {
					r.RemoteAddr = "127.0.0.1:1"
					server.ServeHTTP(&discardResponse{http.Header{}}, r)
				}
				done <- struct{}{}
			}()
		}
		time.Sleep(300 * time.Millisecond)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/(1<<20), "MB")
		cancel()
		for range streams {
			<-done
		}
	}
}
