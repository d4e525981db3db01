package connection

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// TestGETStreamPauses: when a GET stream ends, it is requested again after 1 s, or after the pause
// that the server asked for. If that fails, it is requested once more after 1.5 times this pause
// (observed with 2.1.300 and 2.1.330). If the first request fails, no other follows.
func TestGETStreamPauses(t *testing.T) {
	const log = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"
	for name, test := range map[string]struct {
		answers []string // the bodies of the streams, or the statuses; then status 500
		want    []string // the time of each request, in ms, and its Last-Event-ID
	}{
		"ends":       {[]string{"", "", ""}, []string{"0", "1000", "2000", "3000", "4500"}},
		"event ids":  {[]string{"id: a\n" + log, "id: b\n\n", ""}, []string{"0", "1000 a", "2000 a", "3000 a", "4500 a"}},
		"retry":      {[]string{"retry: 300\n\n", "retry: x\n\n"}, []string{"0", "300", "600", "900"}},
		"once 500":   {[]string{"", "500", ""}, []string{"0", "1000", "2500", "3500", "5000"}},
		"then 405":   {[]string{"", "405"}, []string{"0", "1000"}},
		"refused":    {nil, []string{"0"}},
		"unreadable": {[]string{"data: {no\n\n"}, []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, answers := time.Now(), slices.Clone(test.answers)
				var requests []string
				base := testBase()
				base.reopenPause, base.notifications, base.goroutines = reopenPause, &notificationDispatcher{debug: noLog{}, handler: &loggingHandler{}}, &sync.WaitGroup{}
				transport := roundTrip(func(req *http.Request) (*http.Response, error) {
					requests = append(requests, strings.TrimSpace(fmt.Sprint(time.Since(begin).Milliseconds(), " ", req.Header.Get("Last-Event-ID"))))
					answer := "500"
					if len(answers) > 0 {
						answer, answers = answers[0], answers[1:]
					}
					resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(answer))}
					_, _ = fmt.Sscan(answer, &resp.StatusCode) // leaves the status unchanged if the answer is a body
					return resp, nil
				})
				s := &httpTransport{transportBase: base, httpClient: &http.Client{Transport: transport}, url: "http://server.test/mcp", maxMessageBytes: 1000, lifetime: t.Context(), getStreamAnswered: make(chan struct{})}
				s.keepGETStreamOpen()
				if !slices.Equal(requests, test.want) {
					t.Errorf("got %q, want %q", requests, test.want)
				}
			})
		})
	}
}

// A server counts as connected when its GET stream is open, is refused, or has not been answered for a second.
func TestWaitListening(t *testing.T) {
	for name, test := range map[string]struct {
		answer time.Duration // after which the GET request is answered with this status
		status int
		want   time.Duration
	}{
		"open": {300 * time.Millisecond, http.StatusOK, 300 * time.Millisecond}, "refused": {300 * time.Millisecond, http.StatusMethodNotAllowed, 300 * time.Millisecond},
		"silent": {time.Hour, http.StatusOK, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closed, stop := context.WithCancel(t.Context())
				answer := roundTrip(func(req *http.Request) (*http.Response, error) {
					stream, end := io.Pipe()
					context.AfterFunc(req.Context(), func() { end.CloseWithError(io.EOF) })
					SleepUnlessCancelled(req.Context(), test.answer)
					return &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: stream}, nil
				})
				c, base := &Conn{}, testBase()
				c.client = base.client
				c.remote = &httpTransport{transportBase: base, httpClient: &http.Client{Transport: answer}, url: "http://server.test/mcp", maxMessageBytes: 1000, lifetime: closed, getStreamAnswered: make(chan struct{})}
				var listening sync.WaitGroup
				listening.Go(c.remote.keepGETStreamOpen)
				begin := time.Now()
				c.WaitUpToOneSecondForGETStream(t.Context())
				if got := time.Since(begin); got != test.want {
					t.Errorf("connected after %v, want %v", got, test.want)
				}
				stop()
				listening.Wait()
			})
		})
	}
}

// TestResponseStream has a row for every event stream that the real CLI 2.1.330 was sent as the answer to a call. The
// expectation is where the stream would continue, the notifications and the response, or the failure.
func TestResponseStream(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":{}}`
	const data, read = "data: " + answer + "\n\n", "7"
	for name, test := range map[string]struct {
		stream, want string
		failure      error
	}{
		"plain":               {"event: message\n" + data, read, nil},
		"no name, no space":   {"data:" + answer + "\n\n", read, nil},
		"empty name":          {"event:\n" + data, read, nil},
		"last name":           {"event: x\nevent: message\n" + data, read, nil},
		"other name":          {"event: ping\n" + data, "", io.EOF},
		"other case":          {"event: Message\n" + data, "", io.EOF},
		"two spaces":          {"event:  message\n" + data, "", io.EOF},
		"name of an earlier":  {"event: x\n\n" + data, read, nil},
		"field in capitals":   {"Data: " + answer + "\n\n", "", io.EOF},
		"comments":            {": a\n\n:\n" + data, read, nil},
		"unknown fields":      {"foo: bar\nbaz\n" + data, read, nil},
		"id and retry":        {"id: 1\nretry: 50\n" + data, "after 1 in 50ms " + read, nil},
		"id without data":     {"id: 1\n\n" + data, read, nil},
		"id of another event": {"id: 1\nevent: ping\ndata: {}\n\n" + data, "after 1 in 0s " + read, nil},
		"empty data":          {"data:\n\n" + data, read, nil},
		"two data lines":      {"data: {\ndata: " + answer[1:] + "\n\n", read, nil},
		"carriage returns":    {"data: " + answer + "\r\r:\r", read, nil},
		"at the very end":     {"data: " + answer + "\r\r", "", io.EOF},
		"no last blank line":  {"data: " + answer + "\n", "", io.EOF},
		"byte order mark":     {"\ufeff" + data, read, nil},
		"not JSON":            {"data: {no\n\n" + data, "", ErrUnreadable},
		"line end in a text":  {"data: {\"a\ndata: b\":1}\n\n", "", ErrUnreadable},
		"not UTF-8":           {"data: \xff\n\n" + data, "", ErrUnreadable},
		"not messages":        {"data: 5\n\ndata: null\n\ndata: {\"a\":1}\n\ndata: [" + answer + "]\n\n" + data, read, nil},
		"answer to another":   {"data: " + strings.Replace(answer, "7", "8", 1) + "\n\n" + data, read, nil},
		"id is a text":        {"data: " + strings.Replace(answer, "7", `"7"`, 1) + "\n\n", read, nil},
		"notification":        {"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n", "notifications/message ", io.EOF},
		"request":             {"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n\n" + data, read, nil}, // not in revision 2026-07-28
		"too long":            {"data: " + strings.Repeat("1", 124) + "\n\n", "", &tooLongError{Size: 124, Limit: 100}},
	} {
		base := testBase()
		handler := &loggingHandler{}
		base.notifications = &notificationDispatcher{debug: noLog{}, handler: handler}
		s := &eventStream{httpTransport: &httpTransport{transportBase: base, maxMessageBytes: 100}, id: wire.NewRequestId(int64(7)).String()}
		base.client.isModern.Store(true)
		resp, failure := s.dispatchMessagesUntilResponse(newEventReader(strings.NewReader(test.stream)))
		got := handler.methods
		if resp != nil {
			got += idText(resp.ID)
		}
		if s.lastEventID != "" {
			got = fmt.Sprintf("after %s in %v %s", s.lastEventID, s.retry, got)
		}
		if got != test.want || !reflect.DeepEqual(failure, test.failure) {
			t.Errorf("%s: got %q, %v, want %q, %v", name, got, failure, test.want, test.failure)
		}
	}
}

// loggingHandler keeps the methods of notifications.
type loggingHandler struct{ methods string }

func (*loggingHandler) HandleRequest(context.Context, string, json.RawMessage) (any, error) {
	return struct{}{}, nil
}
func (*loggingHandler) HandleResourceUpdate(string) {}
func (h *loggingHandler) HandleLogOrProgressNotification(n ProgressOrLogNotification) {
	h.methods += n.Method + " "
}
