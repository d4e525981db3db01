package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
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
		in := newEventReader(r)
		all = nil
		for {
			data := boundedLine{limit: limit}
			ev, err := in.next(&data, math.MaxInt64)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%q: %v", stream, err)
				}
				break
			}
			text := ev.name + "[" + string(data.kept) + "]"
			if data.isTooLong() {
				text = fmt.Sprintf("%d too long", data.size)
			}
			all = append(all, text)
		}
	}
	return all
}

// TestEvents: all line endings, a byte order mark, several data lines. An event over the limit is read to its end.
func TestEvents(t *testing.T) {
	for stream, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                            "[a][b]",
		"data: a\r\n\r\ndata: b\r\n\r\n":                    "[a][b]",
		"data: a\r\rdata: b\r\r":                            "[a]", // the last carriage return may be half of a line end
		"data: a\r\rdata: b\r\r:":                           "[a][b]",
		"data: a\rdata: c\n\ndata: b\r\n\n":                 "[a\rc][b]",
		"\ufeffdata: a\n\n":                                 "[a]",
		"\ufeff\r\rdata: a\r\n\rdata: \ufeffb\r\r:":         "[a][\ufeffb]",
		": c\nevent: x\ndata:a\n\ndata\n\n":                 "x[a][]",
		"data: cut":                                         "",
		"data: 123456789\ndata: 12345678901\n\ndata: b\n\n": "21 too long[b]",
	} {
		if got := strings.Join(readEvents(t, stream, 20), ""); got != want {
			t.Errorf("%q: got %q, want %q", stream, got, want)
		}
	}
}

// TestReadLine checks that a message with several data lines becomes one line. A message over the limit becomes an
// error with its id, and later messages are still read.
func TestReadLine(t *testing.T) {
	const tooLong = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"the message of the server is %d bytes; the limit is 40 (maxLineBytes in the server's entry)"}}`
	const a, begin, rest = `{"jsonrpc":"2.0","method":"a"}`, `{"jsonrpc":"2.0",`, `"method":"a"}`
	for stream, want := range map[string]string{
		"data: " + begin + "\ndata: " + rest + "\n\nevent: x\ndata: " + a + "\n\nevent: message\ndata: " + a + "\n\n": begin + "\r" + rest + "\n" + a + "\n",
		"data: {\"id\":7,\"result\":{\"id\":8, \"a\":\"123456789012345\"}}\n\ndata: " + a + "\n\n":                    fmt.Sprintf(tooLong, "7", 49) + "\n" + a + "\n",
		"data: {\"result\":{\"id\":8,\"a\":\"1234567890123\"},\ndata: \"id\":\"x\"}\n\n":                              fmt.Sprintf(tooLong, `"x"`, 49) + "\n",
		"data: {\"id\":7,\"method\":\"ping\",\"a\":\"123456789012345678\"}\n\n":                                       "",
	} {
		lines := newEventReader(strings.NewReader(stream))
		got, err := io.ReadAll(newLineFilter(lines, 40, testBase()))
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, want %q (%v)", stream, got, want, err)
		}
	}
}

// TestResponseStream has a row for every event stream that the real CLI 2.1.330 was sent as the answer to a call. The
// expectation is the rest of the stream, as mcp-go reads it, or the failure.
func TestResponseStream(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":{}}`
	const data, read = "data: " + answer + "\n\n", answer + " "
	for name, test := range map[string]struct {
		stream, want string
		failure      error
	}{
		"plain":               {"event: message\n" + data, read, nil},
		"no name, no space":   {"data:" + answer + "\n\n", read, nil},
		"empty name":          {"event:\n" + data, read, nil},
		"last name":           {"event: x\nevent: message\n" + data, read, nil},
		"other name":          {"event: ping\n" + data, "", nil},
		"other case":          {"event: Message\n" + data, "", nil},
		"two spaces":          {"event:  message\n" + data, "", nil},
		"name of an earlier":  {"event: x\n\n" + data, read, nil},
		"field in capitals":   {"Data: " + answer + "\n\n", "", nil},
		"comments":            {": a\n\n:\n" + data, read, nil},
		"unknown fields":      {"foo: bar\nbaz\n" + data, read, nil},
		"id and retry":        {"id: 1\nretry: 50\n" + data, "id: 1 retry: 50 " + read, nil},
		"id without data":     {"id: 1\n\n" + data, "id: 1 " + read, nil},
		"id of another event": {"id: 1\nevent: ping\ndata: {}\n\n" + data, "id: 1 " + read, nil},
		"empty data":          {"data:\n\n" + data, read, nil},
		"two data lines":      {"data: {\ndata: " + answer[1:] + "\n\n", strings.Replace(read, "{", "{\r", 1), nil},
		"carriage returns":    {"data: " + answer + "\r\r:\r", read, nil},
		"at the very end":     {"data: " + answer + "\r\r", "", nil},
		"no last blank line":  {"data: " + answer + "\n", "", nil},
		"byte order mark":     {"\ufeff" + data, read, nil},
		"not JSON":            {"data: {no\n\n" + data, "", ErrUnreadable},
		"line end in a text":  {"data: {\"a\ndata: b\":1}\n\n", "", ErrUnreadable},
		"not UTF-8":           {"data: \xff\n\n" + data, "", ErrUnreadable},
		"not messages":        {"data: 5\n\ndata: null\n\ndata: {\"a\":1}\n\ndata: [" + answer + "]\n\n" + data, read, nil},
		"answer to another":   {"data: " + strings.Replace(answer, "7", "8", 1) + "\n\n" + data, read, nil},
		"id is a text":        {"data: " + strings.Replace(answer, "7", `"7"`, 1) + "\n\n", `{"id":7,"jsonrpc":"2.0","result":{}} `, nil},
		"notification":        {"data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n", `{"jsonrpc":"2.0","method":"a"} `, nil},
		"request":             {"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n\n" + data, read, nil}, // not in revision 2026-07-28
		"too long":            {"data: " + strings.Repeat("1", 124) + "\n\n", "", &tooLongError{Size: 124, Limit: 100}},
	} {
		base := testBase()
		base.interceptor.pending.Store("7", nil)
		s := &responseStream{
			events: newEventReader(strings.NewReader(test.stream)), data: boundedLine{limit: 100},
			request: openRequest{interceptor: base.interceptor, id: "7"}, isModern: true,
		}
		got, _ := io.ReadAll(&chunkReader{source: s})
		problem, _ := base.interceptor.pending.Load("7")
		failure, _ := problem.(error)
		text := strings.NewReplacer("\n", " ", "data: ", "").Replace(string(bytes.ReplaceAll(got, []byte("\n\n"), []byte("\n"))))
		if strings.TrimLeft(text, " ") != test.want || !reflect.DeepEqual(failure, test.failure) {
			t.Errorf("%s: got %q, %v, want %q, %v", name, text, failure, test.want, test.failure)
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
