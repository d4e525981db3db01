package debugcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain makes the test binary a server if MCPTEST_MODE is set.
func TestMain(m *testing.M) {
	if os.Getenv("MCPTEST_MODE") == "schemas" {
		serveSchemas(os.Stdin, os.Stdout)
		return
	}
	if mode := os.Getenv("MCPTEST_MODE"); mode != "" {
		os.Exit(mcptest.Serve(mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// session is a client talking through a proxy to a server of mcptest.
type session struct {
	t      *testing.T
	hub    *debug.Hub
	events *debug.Subscription
	in     *io.PipeWriter
	lines  chan string
	done   chan error
}

func newSession(t *testing.T, mode string) *session {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	hub, err := debug.New(debug.Options{Now: time.Now, NewID: func() string { return fmt.Sprintf("id-%d", n.Add(1)) }})
	if err != nil {
		t.Fatal(err)
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &session{t: t, hub: hub, events: hub.Subscribe(1000), in: inW, lines: make(chan string, 1000), done: make(chan error, 1)}
	go func() {
		s.done <- runProxy(context.WithoutCancel(t.Context()), proxyOptions{
			Gate: hub, Name: "t", Stdin: inR, Stdout: outW, Stderr: io.Discard,
			Command: proc.Command{Path: self, Env: []string{"MCPTEST_MODE=" + mode}},
		})
		outW.Close()
	}()
	go func() {
		defer close(s.lines)
		for in := bufio.NewScanner(outR); in.Scan(); {
			s.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		inR.Close()
		for range s.lines { // until the proxy has ended
		}
		hub.Close()
	})
	s.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if got := s.next(); !strings.Contains(got, `"serverInfo"`) {
		t.Fatalf("initialize: %s", got)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Error(err)
	}
}

func (s *session) next() string {
	s.t.Helper()
	select {
	case line := <-s.lines:
		return line
	case <-time.After(10 * time.Second):
		s.t.Fatal("no message within 10 s")
		return ""
	}
}

func (s *session) call(id int, tool, arguments string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"claudecode/toolUseId":"tu%d"}}}`, id, tool, arguments, id))
}

func (s *session) paused() debug.Event {
	s.t.Helper()
	for {
		select {
		case e := <-s.events.C:
			if e.Kind == debug.EventPaused {
				return e
			}
		case <-time.After(10 * time.Second):
			s.t.Fatal("nothing paused within 10 s")
		}
	}
}

func (s *session) resume(id string, r debug.ResumeRequest) {
	s.t.Helper()
	if err := s.hub.Resume(s.t.Context(), id, r); err != nil {
		s.t.Error(err)
	}
}

func (s *session) breakOn(name string) {
	s.t.Helper()
	if err := s.hub.BreakpointSet.SetBreakpoint(debug.BreakpointSettings{Name: name}); err != nil {
		s.t.Fatal(err)
	}
}

func TestProxy(t *testing.T) {
	s := newSession(t, "ok")
	s.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	if got := s.next(); !strings.Contains(got, `"echo"`) || !strings.Contains(got, `"id":"l"`) {
		t.Errorf("list: %s", got)
	}
	if f := s.hub.DebuggedFunctionsSortedByName(); len(f) != 5 || f[2].Name != "mcp__t__echo" && f[1].Name != "mcp__t__echo" {
		t.Errorf("registered %v", f)
	}
	s.call(1, "echo", `{"text":"plain"}`)
	const echoed = `{"content":[{"text":"echo: %s","type":"text"}]}`
	result := func(want string) {
		t.Helper()
		line := s.next()
		var m struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(line), &m); err != nil || string(m.Result) != want {
			t.Errorf("answer %s, want %s", line, want)
		}
	}
	result(fmt.Sprintf(echoed, "plain"))
	s.breakOn("t/echo")
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name          string
		before, after debug.ResumeRequest
		want          string
	}{
		{"continue", debug.ResumeRequest{}, debug.ResumeRequest{}, fmt.Sprintf(echoed, "hi")},
		{"modify", debug.ResumeRequest{ModifiedArgs: &[]json.RawMessage{raw(`{"text":"other"}`)}}, debug.ResumeRequest{}, fmt.Sprintf(echoed, "other")},
		{"skip", debug.ResumeRequest{Action: "skip", FakeResult: raw(`{"a":1}`)}, debug.ResumeRequest{}, `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		{"raise", debug.ResumeRequest{Action: "raise", ExceptionMessage: "no"}, debug.ResumeRequest{}, `{"content":[{"type":"text","text":"no"}],"isError":true}`},
		{"replace", debug.ResumeRequest{ReplacementFunction: "t/fail"}, debug.ResumeRequest{}, `{"content":[{"text":"it failed","type":"text"}],"isError":true}`},
		{"replace by a tool of another server", debug.ResumeRequest{ReplacementFunction: "u/x"}, debug.ResumeRequest{}, `{"content":[{"type":"text","text":"debugger: server t has no tool mcp__u__x to run instead"}],"isError":true}`},
		{"result changed", debug.ResumeRequest{}, debug.ResumeRequest{ModifiedResult: raw(`"new"`)}, `{"content":[{"type":"text","text":"new"}]}`},
		{"failed afterwards", debug.ResumeRequest{}, debug.ResumeRequest{Action: "raise", ExceptionMessage: "bad"}, `{"content":[{"type":"text","text":"bad"}],"isError":true}`},
	}
	for i, tt := range tests {
		if _, err := s.hub.BreakpointSet.SetDefaultBreakpointBehavior("both"); err != nil { // stop on errors as well
			t.Fatal(err)
		}
		s.call(i+10, "echo", `{"text":"hi"}`)
		e := s.paused()
		p, err := s.hub.PauseByID(e.PauseID)
		if err != nil || p.CallData.MethodName != "mcp__t__echo" || p.CallData.ToolUseID != fmt.Sprintf("tu%d", i+10) || p.CallData.Client != debug.ClientProxy {
			t.Errorf("%s: %+v, %v", tt.name, p, err)
		}
		// Other messages pass while the call is stopped.
		s.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		if got := s.next(); !strings.Contains(got, `"id":"p"`) {
			t.Errorf("%s: ping: %s", tt.name, got)
		}
		s.resume(e.PauseID, tt.before)
		s.resume(s.paused().PauseID, tt.after)
		result(tt.want)
	}
}

// serveSchemas is a server whose tools declare the type of their results: an object, or a text that is wrapped in one.
func serveSchemas(in io.Reader, out io.Writer) {
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"object","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"},"m":{}}}},` +
			`{"name":"wrapped","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"result":{"type":"string"}},"required":["result"]}},` +
			`{"name":"free","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`,
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m proxiedMCPMessage
		if json.Unmarshal(lines.Bytes(), &m) == nil && len(m.ID) > 0 {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answers[m.Method])
		}
	}
}

// The result of a tool with a result schema matches the schema after every decision, because clients refuse a result
// without structuredContent.
func TestStructured(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	text := func(s string) string {
		quoted, _ := json.Marshal(s)
		return `"content":[{"type":"text","text":` + string(quoted) + `}]`
	}
	const refused = "debugger: the output schema of the tool requires a JSON object; got "
	for name, c := range map[string]struct {
		tool  string
		value string
		want  string
	}{
		"object":                  {"object", `{"n":12345678901234567890}`, `{` + text(`{"n":12345678901234567890}`) + `,"structuredContent":{"n":12345678901234567890}}`},
		"text of an object":       {"object", `"{\"n\":2}"`, `{` + text(`{"n":2}`) + `,"structuredContent":{"n":2}}`},
		"blocks of an object":     {"object", `[{"type":"text","text":"{\"n\":2}"}]`, `{` + text(`{"n":2}`) + `,"structuredContent":{"n":2}}`},
		"no object":               {"object", `"two"`, `{` + text(refused+"two") + `,"isError":true}`},
		"wrapped text":            {"wrapped", `"two"`, `{` + text("two") + `,"structuredContent":{"result":"two"}}`},
		"wrapped number":          {"wrapped", `2`, `{` + text("2") + `,"structuredContent":{"result":"2"}}`},
		"wrapped already":         {"wrapped", `{"result":"x"}`, `{` + text(`{"result":"x"}`) + `,"structuredContent":{"result":"x"}}`},
		"object in a text":        {"wrapped", `{"n":1}`, `{` + text(`{"n":1}`) + `,"structuredContent":{"result":"{\"n\":1}"}}`},
		"object without a schema": {"free", `{"n":3}`, `{` + text(`{"n":3}`) + `,"structuredContent":{"n":3}}`},
		"text without a schema":   {"free", `"two"`, `{` + text("two") + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, "schemas")
			s.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
			s.next()
			s.breakOn("*")
			if _, err := s.hub.BreakpointSet.SetDefaultBreakpointBehavior("both"); err != nil { // stop on errors as well
				t.Fatal(err)
			}
			check := func(phase string) {
				t.Helper()
				var m struct{ Result json.RawMessage }
				if line := s.next(); json.Unmarshal([]byte(line), &m) != nil || string(m.Result) != c.want {
					t.Errorf("%s: %s\nwant %s", phase, line, c.want)
				}
			}
			value := c.value
			s.call(1, c.tool, `{}`)
			s.resume(s.paused().PauseID, debug.ResumeRequest{Action: "skip", FakeResult: raw(value)})
			s.resume(s.paused().PauseID, debug.ResumeRequest{})
			if strings.HasPrefix(value, "[") { // a list that the debugger set as the result is shown as its JSON
				s.next()
			} else {
				check("skip")
			}
			s.call(2, c.tool, `{}`)
			s.resume(s.paused().PauseID, debug.ResumeRequest{})
			s.resume(s.paused().PauseID, debug.ResumeRequest{ModifiedResult: raw(value)})
			check("modify")
		})
	}
}

// A paused call that the client cancels is never run and never answered.
func TestCancelled(t *testing.T) {
	s := newSession(t, "ok")
	s.breakOn("*")
	s.call(1, "crash", `{}`)
	e := s.paused()
	s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	for ev := range s.events.C {
		if ev.Kind == debug.EventResumed {
			if ev.PauseID != e.PauseID || ev.Action != "abandoned" {
				t.Errorf("%+v", ev)
			}
			break
		}
	}
	s.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := s.next(); !strings.Contains(got, `"id":2`) {
		t.Errorf("after the cancelled call: %s", got)
	}
}

// The proxy ends with its input. Running calls are answered; it does not wait for paused ones.
func TestEndOfInput(t *testing.T) {
	s := newSession(t, "ok")
	s.call(1, "sleep", `{"ms":200}`)
	s.in.Close()
	if got := s.next(); !strings.Contains(got, "slept 200") {
		t.Errorf("call under way: %s", got)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	s = newSession(t, "ok")
	s.breakOn("*")
	s.call(1, "echo", `{}`)
	s.paused()
	began := time.Now()
	s.in.Close()
	if err := <-s.done; err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
	if n := len(s.hub.Pauses()); n != 0 {
		t.Errorf("%d calls are still paused", n)
	}
}

func TestServerEnds(t *testing.T) {
	s := newSession(t, "exit-mid-call")
	s.call(1, "echo", `{}`)
	if err := <-s.done; err == nil || !strings.Contains(err.Error(), "5") {
		t.Errorf("%v", err)
	}
}

func TestBadStart(t *testing.T) {
	for _, o := range []proxyOptions{{Name: "a/b"}, {Name: ""}, {Name: "t", Command: proc.Command{Path: "/nosuch/server"}}} {
		if err := runProxy(t.Context(), o); err == nil {
			t.Errorf("%+v started", o)
		}
	}
}

// Messages that are not tool calls are passed on byte for byte.
func TestUnchanged(t *testing.T) {
	s := newSession(t, "garbage")
	s.call(7, "echo", `{"text":"x"}`)
	var got []string
	for len(got) == 0 || !strings.Contains(got[len(got)-1], "echo: x") {
		got = append(got, s.next())
	}
	if want := "hello"; got[0] != want || got[2] != "[1,2]" || len(got) < 7 {
		t.Errorf("%q", got)
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(`{"id":1,"params":{"name":"x","_meta":{"a":1}}}`)
	f.Fuzz(func(t *testing.T, in string) {
		out, err := withReplacedParam([]byte(in), "arguments", json.RawMessage(`{"n":12345678901234567890}`))
		if err != nil {
			return
		}
		var m struct {
			Params struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(out, &m); err != nil {
			t.Errorf("%q becomes %q: %v", in, out, err)
		}
		outcomeOf([]byte(in))
	})
}
