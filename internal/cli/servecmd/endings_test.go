package servecmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/scenarios"
)

// pipeListener accepts connections inside the process. They have no buffers: a write waits for its reader. They need no
// file descriptor, and they work with the time of a synctest bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial opens a connection.
func (p *pipeListener) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// journalBuffer is a journal in memory. Several goroutines may write to it.
type journalBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *journalBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *journalBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serveInBubble serves a scenario in a synctest bubble. end stops the server and waits; afterwards the journal is
// complete.
func serveInBubble(t *testing.T, src string) (p *pipeListener, journal *journalBuffer, end func()) {
	t.Helper()
	journal = &journalBuffer{}
	scenario, err := scenarios.Parse("scenario.toml", []byte(src), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.New(api.Options{
		Scenario: scenario, Capture: journal, Clock: clock.New(clock.Options{Now: time.Now, NewID: func() string { return "id" }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p = &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- localhttp.Serve(ctx, p, s, localhttp.Options{}) }()
	return p, journal, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
}

// send sends a request without its last bytes: its Content-Length is larger than the body by missing.
func send(t *testing.T, c net.Conn, text string, missing int) {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","max_tokens":100000,"stream":true,"messages":[{"role":"user","content":%q}]}`, text)
	_, err := fmt.Fprintf(c, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body)+missing, body)
	if err != nil {
		t.Fatal(err)
	}
}

const slow = `
[[responses]]
pattern = { type = "exact", text = "slow" }
[[responses.response.steps]]
text = "one two three four five six seven eight"
stream = { tokens_per_second = 1 }
[[responses]]
pattern = { type = "exact", text = "later" }
[[responses.response.steps]]
text = "at last"
delay_ms = 600000
[[responses]]
pattern = { type = "exact", text = "held" }
[[responses.response.steps]]
text = "never"
gate = "closed"
[[responses]]
pattern = { type = "exact", text = "hang" }
failure = { type = "hang" }
[[responses]]
pattern = { type = "any" }
response = "fine"
`

// TestIdleConnections: other clients get answers despite ten thousand idle connections. Connections without a request
// are closed, and at the end all are closed.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10_000
		p, journal, end := serveInBubble(t, slow)
		idle := make([]net.Conn, many)
		for i := range idle {
			idle[i] = p.dial()
		}
		c := p.dial()
		send(t, c, "hi", 0)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || !strings.Contains(string(body), `"fine"`) {
			t.Errorf("%v: %s", err, body)
		}
		time.Sleep(11 * time.Second)
		for i, c := range idle {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatalf("connection %d was told something", i)
			}
			c.Close()
		}
		end() // the connection with a request is still open, and idle
		c.Close()
		if n := strings.Count(journal.String(), `"type":"request"`); n != 1 {
			t.Errorf("%d lines for one request", n)
		}
	})
}

// TestServerEnds: when the server stops, every waiting request ends within the grace period and has a line in the
// journal.
func TestServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, journal, end := serveInBubble(t, slow)
		var conns []net.Conn
		begin := func(text string, missing int) net.Conn {
			c := p.dial()
			conns = append(conns, c)
			send(t, c, text, missing)
			return c
		}
		reader := bufio.NewReader(begin("slow", 0)) // reads only the beginning, so the server's writes block
		if _, err := reader.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		begin("later", 0)
		begin("held", 0)
		begin("hang", 0)
		begin("half", 5)
		synctest.Wait()
		began := time.Now()
		end()
		if d := time.Since(began); d > time.Second {
			t.Errorf("the end takes %v", d)
		}
		for _, c := range conns {
			c.Close()
		}
		if n := strings.Count(journal.String(), `"type":"request"`); n != len(conns) {
			t.Errorf("%d lines for %d requests:\n%s", n, len(conns), journal)
		}
		if n := strings.Count(journal.String(), "aborted: the client disconnected"); n != len(conns) {
			t.Errorf("%d of %d are aborted:\n%s", n, len(conns), journal)
		}
	})
}

// TestReaderGone checks that a client that stops reading and then disconnects ends only its own stream.
func TestReaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, journal, end := serveInBubble(t, slow)
		gone, stays := p.dial(), p.dial()
		send(t, gone, "slow", 0)
		send(t, stays, "slow", 0)
		if _, err := bufio.NewReader(gone).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(stays), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		gone.Close()
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || !strings.Contains(string(body), "message_stop") {
			t.Errorf("the other stream: %v\n%s", err, body)
		}
		stays.Close()
		end()
		if n := strings.Count(journal.String(), "aborted: the client disconnected after"); n != 1 {
			t.Errorf("%d streams were aborted:\n%s", n, journal)
		}
	})
}
