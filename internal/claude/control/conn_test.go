package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Checklist row 53: decisions of hosts and of permission tools.
func TestReadAnswer(t *testing.T) {
	const invalid = "The canUseTool callback returned an invalid permission result."
	tests := []struct {
		raw  string
		want protocol.PermissionAnswer
	}{
		{`{"behavior":"allow"}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":null}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"allow","updatedInput":{"a":1}}`, protocol.PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"a":1}`)}},
		{`{"behavior":"allow","updatedInput":{}}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":[1]}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"plan"}]}`, protocol.PermissionAnswer{
			Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: "plan"}},
		}},
		{`{"behavior":"allow","updatedPermissions":7}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{"behavior":"deny","message":"no"}`, protocol.PermissionAnswer{Message: "no"}},
		{`{"behavior":"deny","message":"","interrupt":true}`, protocol.PermissionAnswer{Interrupt: true}},
		{`{"behavior":"deny"}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{`{}`, protocol.PermissionAnswer{AskFailure: invalid}},
		{``, protocol.PermissionAnswer{AskFailure: invalid}},
		{`nonsense`, protocol.PermissionAnswer{AskFailure: invalid}},
	}
	for _, tt := range tests {
		got := permission.ParseAnswerOrAskFailure(json.RawMessage(tt.raw))
		if strings.HasPrefix(got.AskFailure, invalid) {
			got.AskFailure = invalid
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.raw, diff)
		}
	}
}

// A request before Serve fails at once instead of waiting forever.
func TestAskBeforeServe(t *testing.T) {
	p := New(Options{In: strings.NewReader(""), Out: io.Discard, Metadata: &sequentialIDs{}})
	if _, err := p.CallHook(t.Context(), "hook_0", nil, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// sequentialIDs returns distinct ids and times.
type sequentialIDs struct{ ids atomic.Int64 }

func (c *sequentialIDs) NewID() string             { return fmt.Sprintf("id-%d", c.ids.Add(1)) }
func (*sequentialIDs) SessionID() string           { return "s-1" }
func (*sequentialIDs) CurrentUTCTimestamp() string { return "now" }

// silentSession is a session without output. The conversations of internal/claude/host show the effect of prompts and
// requests.
type silentSession struct{}

func (silentSession) PromptForDeferredCall() *protocol.UserMessage { return nil }
func (silentSession) WaitUntilTurnMayStart(context.Context) error  { return nil }

func (silentSession) BackgroundState() (busy, anotherTurnFollows bool) { return false, false }
func (silentSession) AsyncHookFrameAdded() <-chan struct{}             { return nil }

func (silentSession) StreamBackgroundEvents(context.Context, context.Context) error { return nil }
func (silentSession) TakePromptAboutBackgroundWork() (protocol.UserMessage, bool) {
	return protocol.UserMessage{}, false
}

func (silentSession) IsSlow(subtype string) bool { return subtype == "slow" }
func (silentSession) Serve(context.Context, HostRequest) (ResponseWithEvents, error) {
	return ResponseWithEvents{}, nil
}

func (silentSession) Initialize(context.Context, *InitializeRequest) (ResponseWithEvents, error) {
	return ResponseWithEvents{}, nil
}
func (silentSession) StopBackgroundAgents() {}

func (silentSession) Turn(context.Context, context.Context, protocol.UserMessage) (bool, error) {
	return true, nil
}

// floodingSession is a session whose turns write more than fits into the pipe to a host that does not read.
type floodingSession struct {
	silentSession
	peer *Conn
}

func (f floodingSession) Turn(ctx, _ context.Context, _ protocol.UserMessage) (bool, error) {
	for range 5000 {
		if _, err := io.WriteString(f.peer.EventWriter(), "{"+strings.Repeat("x", 1024)+"}\n"); err != nil {
			return false, err
		}
	}
	return true, context.Cause(ctx)
}

// blockedWriter is a writer whose Write blocks until release, like a pipe without a reader.
type blockedWriter struct{ release chan struct{} }

func (s blockedWriter) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// Checklist row 18: a run can be stopped from outside even if the host does not read stdout.
func TestEndWithDeafHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, host := io.Pipe()
		defer host.Close()
		out := blockedWriter{release: make(chan struct{})}
		defer close(out.release)
		peer := New(Options{In: in, Out: out, Metadata: &sequentialIDs{}})
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- peer.Serve(ctx, floodingSession{peer: peer}) }()
		go io.WriteString(host, `{"type":"user","message":{"role":"user","content":"go"}}`+"\n") // returns when it is read
		synctest.Wait()
		started := time.Now()
		gone := errors.New("gone")
		cancel(gone)
		if err := <-done; !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(started); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// failingWriter is a stdout whose writes fail.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A write error of stdout ends the run and is its error.
func TestBrokenStdout(t *testing.T) {
	broken := errors.New("broken pipe")
	peer := New(Options{
		In:  strings.NewReader(strings.Repeat(`{"type":"user","message":{"role":"user","content":"go"}}`+"\n", 3)),
		Out: failingWriter{broken}, Metadata: &sequentialIDs{},
	})
	if err := peer.Serve(t.Context(), floodingSession{peer: peer}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// FuzzReceive: only lines with a documented error text may end the process.
func FuzzReceive(f *testing.F) {
	for _, seed := range []string{
		`nope`, `{}`, `null`, `[]`, `"x"`, `{"type":"user"}`, `{"type":"user","message":{"role":"user","content":[{"type":"image"}]}}`,
		`{"type":"user","message":[]}`, `{"type":"control_request","request_id":[],"request":{"subtype":"read_file","path":7}}`,
		`{"type":"control_response","response":{"request_id":{}}}`, `{"type":"control_cancel_request","request_id":null}`,
		`{"type":"control_request","request":{"subtype":"interrupt","cancel_queued":1}}`, `{"type":7}`, "\x00", `{"type":"user","message":{"role":null}}`,
		`{"type":"control_request","request_id":"r","request":{"subtype":"set_permission_mode","mode":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		peer := New(Options{In: strings.NewReader(strings.ReplaceAll(string(line), "\n", " ")), Out: io.Discard, Metadata: &sequentialIDs{}})
		if err := peer.Serve(t.Context(), silentSession{}); err != nil {
			if _, documented := errors.AsType[*InvalidStdinLineError](err); !documented {
				t.Errorf("%v", err)
			}
		}
	})
}

// mcpSession is a session that connects a server of the host.
type mcpSession struct {
	silentSession
	connect func(ctx context.Context)
}

func (s mcpSession) Initialize(_ context.Context, g *InitializeRequest) (ResponseWithEvents, error) {
	g.ConnectUntilHostServerMessage(s.connect)
	return ResponseWithEvents{}, nil
}

// instantReplies answers every message to a server as soon as it is written.
type instantReplies struct {
	peer  *Conn
	lines []string
}

func (e *instantReplies) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		var frame struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
		}
		_ = json.Unmarshal([]byte(line), &frame)
		e.lines = append(e.lines, frame.Type)
		if frame.Type == "control_request" {
			_ = e.peer.dispatchLine(context.Background(), []byte(`{"type":"control_response","response":{"subtype":"success","request_id":"`+frame.RequestID+`","response":{"mcp_response":{}}}}`))
		}
	}
	return len(b), nil
}

// The response to initialize is sent when the host's first server is contacted, before all messages that depend on the
// answer of that server (golden ctl-sdkmcp).
func TestInitializeIsAnsweredFirst(t *testing.T) {
	for range 200 {
		in, host := io.Pipe()
		out := &instantReplies{}
		peer := New(Options{In: in, Out: out, Metadata: &sequentialIDs{}})
		out.peer = peer
		connected := make(chan struct{})
		s := mcpSession{silentSession{}, func(ctx context.Context) {
			defer close(connected)
			for range 2 {
				if _, err := peer.SendToServer(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","id":0,"method":"m"}`)); err != nil {
					t.Error(err)
				}
			}
		}}
		go func() { // returns when the peer has read the line
			_, _ = io.WriteString(host, `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`+"\n")
			<-connected
			host.Close()
		}()
		if err := peer.Serve(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"control_request", "control_response", "control_request"}, out.lines); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// Requests that a stored handshake covers are answered from it, once.
func TestStoredHandshakes(t *testing.T) {
	hello := `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}`
	var g hostMCPServers
	g.StoreHandshakesForOneUse(map[string]ServerHandshakeAnswers{
		"good": {InitializeResult: json.RawMessage(hello), ToolsResult: json.RawMessage(`{"tools":[]}`)},
		"bare": {InitializeResult: json.RawMessage(hello)},
	})
	for _, ask := range []struct{ server, method, answer string }{
		{"good", "initialize", `{"jsonrpc":"2.0","id":7,"result":` + hello + `}`},
		{"good", "notifications/initialized", ""},
		{"good", "tools/list", `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`},
		{"good", "tools/list", "asked"},
		{"bare", "tools/list", "asked"},
		{"bare", "initialize", "asked"},
		{"old", "initialize", "asked"},
	} {
		raw, ok := g.takeHandshakeAnswer(ask.server, json.RawMessage(`{"id":7,"method":"`+ask.method+`"}`))
		text := string(raw)
		if !ok {
			text = "asked"
		}
		if text != ask.answer {
			t.Errorf("%s of %s: %s, want %s", ask.method, ask.server, text, ask.answer)
		}
	}
}
