package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

// readEvents reads a whole stream, both byte by byte and in one piece.
func readEvents(t *testing.T, stream string, limit int) (all []string) {
	t.Helper()
	for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
		in := newEventReader(r)
		all = nil
		for {
			data := boundedLine{limit: limit}
			ev, err := in.nextEvent(&data, math.MaxInt64)
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

// TestOlderStream: a message over the limit fails its request, and later messages of the stream are still read.
func TestOlderStream(t *testing.T) {
	const tooLong = "%s: the message of the server is %d bytes; the limit is 55 (maxLineBytes in the server's entry)"
	const begin, rest = `{"jsonrpc":"2.0",`, `"method":"notifications/message"}`
	for stream, want := range map[string]string{
		"data: " + begin + "\ndata: " + rest + "\n\nevent: x\ndata: {}\n\nevent: message\ndata: " + begin + rest + "\n\n":    "notifications/message notifications/message ",
		"data: {\"id\":7,\"result\":{\"id\":8, \"a\":\"123456789012345678901234567890\"}}\n\ndata: " + begin + rest + "\n\n": "notifications/message " + fmt.Sprintf(tooLong, "7", 64),
		"data: {\"result\":{\"id\":8,\"a\":\"1234567890123456789012345\"},\ndata: \"id\":\"x\"}\n\n":                         fmt.Sprintf(tooLong, "x", 61),
		"data: {\"id\":7,\"method\":\"ping\",\"a\":\"1234567890123456789012345678901234567890\"}\n\n":                        "",
	} {
		base, handler := testBase(), &loggingHandler{}
		base.notifications = &notificationDispatcher{debug: noLog{}, handler: handler}
		waiting := waitingRequests(base)
		s := &eventStream{httpTransport: &httpTransport{transportBase: base, maxMessageBytes: 55, legacyEventStream: newEventReader(strings.NewReader(stream))}}
		_, err := s.dispatchMessagesUntilResponse(s.legacyEventStream)
		if got := handler.methods + failures(waiting); !errors.Is(err, io.EOF) || strings.TrimSpace(got) != strings.TrimSpace(want) {
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
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: stream}, nil
		}
		var m struct{ ID int }
		err := json.NewDecoder(req.Body).Decode(&m)
		fmt.Fprintf(server, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\n\n", m.ID)
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, err
	})}
	ctx, cancel := context.WithCancel(t.Context())
	base := testBase()
	base.goroutines = &sync.WaitGroup{}
	sse := &httpTransport{transportBase: base, httpClient: client, url: "http://127.0.0.1/sse", lifetime: ctx, endLifetime: cancel, maxMessageBytes: 1000}
	if err := sse.openLegacySSE(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer cancel()
	base.client.transport, base.client.debug = sse, noLog{}
	if err := sse.StartReading(t.Context()); err != nil {
		t.Fatal(err)
	}
	limit, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for id := range 5000 {
		if _, err := base.client.sendRequest(limit, "ping", nil); err != nil {
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
