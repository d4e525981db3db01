package connection

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// readEvents reads a whole stream, both byte by byte and in one piece.
func readEvents(t *testing.T, stream string, limit int) (all []string) {
	t.Helper()
	for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
		in := eventReader{in: bufio.NewReader(newNormalizedEvents(r)), limit: limit}
		all = nil
		for {
			ev, err := in.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%q: %v", stream, err)
				}
				break
			}
			text := ev.name + "[" + string(ev.data)
			if !ev.continues {
				text += "]"
			}
			all = append(all, text)
		}
	}
	return all
}

// TestEvents: all line endings, a byte order mark, several data lines. An event over the limit comes in pieces.
func TestEvents(t *testing.T) {
	for stream, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                            "[a][b]",
		"data: a\r\n\r\ndata: b\r\n\r\n":                    "[a][b]",
		"data: a\r\rdata: b\r\r":                            "[a][b]",
		"data: a\rdata: c\n\ndata: b\r\n\n":                 "[a\rc][b]",
		"\ufeffdata: a\n\n":                                 "[a]",
		"\ufeff\r\rdata: a\r\n\rdata: \ufeffb\r\r":          "[a][\ufeffb]",
		": c\nevent: x\ndata:a\n\ndata\n\n":                 "x[a][]",
		"data: cut":                                         "",
		"data: 123456789\ndata: 12345678901\n\ndata: b\n\n": "[123456789\r12345678901[][b]",
	} {
		if got := strings.Join(readEvents(t, stream, 20), ""); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}

// TestMessageLines checks that a message with several data lines becomes one line. A message over the limit becomes an
// error with its id, and later messages are still read.
func TestMessageLines(t *testing.T) {
	const tooLong = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the message of the server is %d bytes; the limit is 40 (maxLineBytes in the server's entry)"}}`
	const a, begin, rest = `{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0",`, `"method":"a"}`
	for stream, want := range map[string]string{
		"data: " + begin + "\ndata: " + rest + "\n\nevent: x\ndata: " + a + "\n\nevent: message\ndata: " + a + "\n\n": begin + "\r" + rest + "\n" + a + "\n",
		"data: {\"id\":7,\"result\":{\"id\":8, \"a\":\"123456789012345\"}}\n\ndata: " + a + "\n\n":                    fmt.Sprintf(tooLong, "7", 49) + "\n" + a + "\n",
		"data: {\"result\":{\"id\":8,\"a\":\"1234567890123\"},\ndata: \"id\":\"x\"}\n\n":                              fmt.Sprintf(tooLong, `"x"`, 49) + "\n",
		"data: {\"id\":7,\"method\":\"ping\",\"a\":\"123456789012345678\"}\n\n":                                       "",
	} {
		lines := &messageLines{events: &eventReader{in: bufio.NewReader(newNormalizedEvents(strings.NewReader(stream))), limit: 40}}
		got, err := io.ReadAll(newLineFilter(filterOptions{Source: lines, Limit: 40, Owner: testBase()}))
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, want %q (%v)", stream, got, want, err)
		}
	}
}

// TestResponseComesAtOnce: a response that is on the stream before the POST has returned is received.
func TestResponseComesAtOnce(t *testing.T) {
	stream, server := io.Pipe()
	client := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet {
			go fmt.Fprint(server, "event: endpoint\ndata: /messages\n\n")
			return &http.Response{StatusCode: http.StatusOK, Body: stream}, nil
		}
		var m struct{ ID int }
		err := json.NewDecoder(req.Body).Decode(&m)
		fmt.Fprintf(server, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n\n", m.ID)
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, err
	})}
	ctx, cancel := context.WithCancel(t.Context())
	sse := &sseClient{client: client, stop: cancel}
	if err := sse.open(ctx, RemoteServer{URL: "http://127.0.0.1/sse", MaxMessage: 1000}, testBase()); err != nil {
		t.Fatal(err)
	}
	defer sse.Close()
	if err := sse.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	limit, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for id := range 5000 {
		if _, err := sse.SendRequest(limit, transport.JSONRPCRequest{JSONRPC: "2.0", ID: wire.NewRequestId(int64(id)), Method: "ping"}); err != nil {
			t.Fatalf("request %d: %v", id, err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func FuzzNextEvent(f *testing.F) {
	f.Add("event: x\r\ndata: a\ndata:b\n\n")
	f.Add(": c\n\n\ndata\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		if n := len(readEvents(t, stream, 1000)); n > len(stream) {
			t.Errorf("%d events", n)
		}
	})
}
