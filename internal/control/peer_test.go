package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Checklist rows 59, 60 and 69: every request of the specification has one of
// three fates, and those that are refused say why.
func TestEveryRequestHasAFate(t *testing.T) {
	spec := []string{
		"apply_flag_settings", "background_tasks", "cancel_async_message", "claim_session", "end_session", "file_suggestions",
		"generate_session_title", "get_binary_version", "get_context_usage", "get_hooks_listing", "get_session_cost", "get_settings",
		"get_task_output", "get_usage", "list_models", "list_permission_rules", "mcp_call", "mcp_message", "mcp_read_resource",
		"mcp_reconnect", "mcp_set_servers", "mcp_status", "mcp_toggle", "read_file", "register_repo_root", "reload_output_styles",
		"reload_plugins", "reload_skills", "rename_session", "rewind_files", "seed_read_state", "set_color", "set_has_subscribers",
		"set_max_thinking_tokens", "set_mcp_permission_mode_override", "set_model", "set_permission_mode", "side_question", "stop_task",
		"submit_feedback", "update_settings",
	}
	for _, subtype := range spec {
		_, served := inbound(subtype)
		why, refused := refused()[subtype]
		if served == refused {
			t.Errorf("%s: served %v, refused %v", subtype, served, refused)
		}
		if refused && why == "" {
			t.Errorf("%s is refused without a reason", subtype)
		}
	}
}

// Checklist row 53: verdicts of hosts and of permission tools.
func TestReadAnswer(t *testing.T) {
	const invalid = "The canUseTool callback returned an invalid permission result."
	tests := []struct {
		raw  string
		want protocol.PermissionAnswer
	}{
		{`{"behavior":"allow"}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":null}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":{"a":1}}`, protocol.PermissionAnswer{Allow: true, UpdatedInput: json.RawMessage(`{"a":1}`)}},
		{`{"behavior":"allow","updatedInput":{}}`, protocol.PermissionAnswer{Allow: true}},
		{`{"behavior":"allow","updatedInput":[1]}`, protocol.PermissionAnswer{Failure: invalid}},
		{`{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"plan"}]}`, protocol.PermissionAnswer{
			Allow: true, UpdatedPermissions: []protocol.PermissionUpdate{{Type: "setMode", Mode: "plan"}},
		}},
		{`{"behavior":"allow","updatedPermissions":7}`, protocol.PermissionAnswer{Failure: invalid}},
		{`{"behavior":"deny","message":"no"}`, protocol.PermissionAnswer{Message: "no"}},
		{`{"behavior":"deny","message":"","interrupt":true}`, protocol.PermissionAnswer{Interrupt: true}},
		{`{"behavior":"deny"}`, protocol.PermissionAnswer{Failure: invalid}},
		{`{}`, protocol.PermissionAnswer{Failure: invalid}},
		{``, protocol.PermissionAnswer{Failure: invalid}},
		{`nonsense`, protocol.PermissionAnswer{Failure: invalid}},
	}
	for _, tt := range tests {
		got := permission.ReadAnswer(json.RawMessage(tt.raw))
		if strings.HasPrefix(got.Failure, invalid) {
			got.Failure = invalid
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.raw, diff)
		}
	}
}

// Asking before Serve fails at once instead of waiting for ever.
func TestAskBeforeServe(t *testing.T) {
	p := New(Options{In: strings.NewReader(""), Out: io.Discard, NewID: func() string { return "id" }})
	if _, err := p.Callback(t.Context(), "hook_0", nil, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// stuck never returns from Write, like a pipe nobody reads.
type stuck struct{ release chan struct{} }

func (s stuck) Write(p []byte) (int, error) {
	<-s.release
	return len(p), nil
}

// Checklist row 18: a run that is ended from outside ends although the host
// does not read stdout.
func TestEndWithDeafHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, host := io.Pipe()
		defer host.Close()
		out := stuck{release: make(chan struct{})}
		defer close(out.release)
		f := &fakeSession{model: "m"}
		f.peer = New(Options{In: in, Out: out, NewID: func() string { return "id" }})
		var err error
		if f.policy, err = permission.New(permission.Options{CWD: "/w"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.peer.Serve(ctx, f) }()
		go io.WriteString(host, `{"type":"user","message":{"role":"user","content":"flood 5000"}}`+"\n") // ends when it is read
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

// failing is a stdout that breaks.
type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }

// A stdout that breaks ends the run with its error.
func TestBrokenStdout(t *testing.T) {
	broken := errors.New("broken pipe")
	f := &fakeSession{model: "m"}
	f.peer = New(Options{
		In:  strings.NewReader(strings.Repeat(`{"type":"user","message":{"role":"user","content":"flood 2000"}}`+"\n", 3)),
		Out: failing{broken}, NewID: func() string { return "id" },
	})
	if err := f.peer.Serve(t.Context(), f); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// FuzzReceive: no line may end the process but with the documented texts.
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
		s := &fakeSession{model: "m"}
		var err error
		if s.policy, err = permission.New(permission.Options{CWD: "/w"}); err != nil {
			t.Fatal(err)
		}
		s.peer = New(Options{In: strings.NewReader(strings.ReplaceAll(string(line), "\n", " ")), Out: io.Discard, NewID: func() string { return "id" }})
		if err := s.peer.Serve(t.Context(), quick{s}); err != nil {
			if _, documented := errors.AsType[*InputError](err); !documented {
				t.Errorf("%v", err)
			}
		}
	})
}

// quick is a session whose turns are over at once.
type quick struct{ *fakeSession }

func (quick) Turn(context.Context, context.Context, protocol.UserMessage) (bool, error) {
	return true, nil
}

// speaking is a session that connects a server of the host.
type speaking struct {
	*fakeSession
	connect func(ctx context.Context)
}

func (s speaking) Connect(ctx context.Context, _ Initialize) { s.connect(ctx) }

// eager answers every message to a server in the moment it is written.
type eager struct {
	peer  *Peer
	lines []string
}

func (e *eager) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		var frame struct {
			Type      string `json:"type"`
			RequestID string `json:"request_id"`
		}
		_ = json.Unmarshal([]byte(line), &frame)
		e.lines = append(e.lines, frame.Type)
		if frame.Type == "control_request" {
			_ = e.peer.receive([]byte(`{"type":"control_response","response":{"subtype":"success","request_id":"` + frame.RequestID + `","response":{"mcp_response":{}}}}`))
		}
	}
	return len(b), nil
}

// initialize is answered when the host's first server is spoken to, and before
// anything follows from what that server says (the golden ctl-sdkmcp).
func TestInitializeIsAnsweredFirst(t *testing.T) {
	for range 200 {
		ids := 0
		in, host := io.Pipe()
		out := &eager{}
		f := &fakeSession{model: "m"}
		f.peer = New(Options{In: in, Out: out, NewID: func() string { ids++; return strconv.Itoa(ids) }})
		out.peer = f.peer
		var err error
		if f.policy, err = permission.New(permission.Options{CWD: "/w"}); err != nil {
			t.Fatal(err)
		}
		connected := make(chan struct{})
		s := speaking{f, func(ctx context.Context) {
			defer close(connected)
			for range 2 {
				if _, err := f.peer.Message(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","id":0,"method":"m"}`)); err != nil {
					t.Error(err)
				}
			}
		}}
		go func() { // ends when the peer has read it
			_, _ = io.WriteString(host, `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`+"\n")
			<-connected
			host.Close()
		}()
		if err := f.peer.Serve(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"control_request", "control_response", "control_request"}, out.lines); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// What becomes of handshakes that a host says it has had, and what is answered
// from them (observed with 2.1.329).
func TestManifests(t *testing.T) {
	hello := `{"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"}}`
	in := readRequest(incoming{Request: json.RawMessage(`{"subtype":"initialize","sdkMcpServerManifests":{
		"good":{"initializeResult":` + hello + `,"toolsListResult":{"tools":[]}}, "bare":{"initializeResult":` + hello + `},
		"here":{"initializeResult":` + hello + `}, "old":{"initializeResult":{"protocolVersion":"2024-11-05"}}, "bad":5, "worse":{"initializeResult":{}}}}`)})
	var m manifests
	got := m.park(in, []string{"good", "bare", "here", "old", "bad", "worse", "none"}, func(name string) bool { return name == "here" })
	want := map[string]string{
		"good": "parked", "bare": "parked", "here": "already_connected", "old": "protocol_version_mismatch", "bad": "malformed", "worse": "malformed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, ask := range []struct{ server, method, answer string }{
		{"good", "initialize", `{"jsonrpc":"2.0","id":7,"result":` + hello + `}`},
		{"good", "notifications/initialized", ""},
		{"good", "tools/list", `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`},
		{"good", "tools/list", "asked"},
		{"bare", "tools/list", "asked"},
		{"bare", "initialize", "asked"},
		{"old", "initialize", "asked"},
	} {
		raw, ok := m.answer(ask.server, json.RawMessage(`{"id":7,"method":"`+ask.method+`"}`))
		text := string(raw)
		if !ok {
			text = "asked"
		}
		if text != ask.answer {
			t.Errorf("%s of %s: %s, want %s", ask.method, ask.server, text, ask.answer)
		}
	}
	if whole := m.park(readRequest(incoming{Request: json.RawMessage(`{"sdkMcpServerManifests":5}`)}), []string{"s"}, func(string) bool { return false }); whole["s"] != "malformed" {
		t.Errorf("no object: %v", whole)
	}
}
