package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the conversations")

// TestConversations plays testdata/*.txtar. Each file checks one behaviour of the protocol, which its comment describes.
//
// The file "options" contains words: await-initialize, replay, one-by-one, states, host-states,
// background (background work that ends after 3 minutes and needs a turn). The file "conversation" is played line by
// line in a synctest bubble:
//
//	> LINE     the host sends a line
//	>> N LINE  the same, but XXX is replaced by N times "x", and NEXT by a newline
//	wait D     the clock advances by a duration
//	eof        the host closes stdin
//	deaf, hear the host stops reading stdout, and continues
//	< LINE     stdout contains a line when all goroutines are blocked
//	= TEXT     Serve returns; TEXT is its error, "nil" for none
//
// Ids are counted from id-1. Lines longer than 400 bytes are cut. The session is a fake whose prompts are commands:
// "say X" answers X; "hang" waits for an interrupt; "ask TOOL" and "ask-user TOOL" ask for permission; "hook D" calls
// hook_0 with a timeout; "message S" sends a message to a server; "sleep D" waits; "round D" waits and then absorbs
// waiting prompts; "flood N" writes N KiB; "fail" ends with a Go error, "give-up" with an error result. With the flag
// -update the "<" and "=" lines are rewritten.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var options, script string
			at := -1
			for i, f := range archive.Files {
				switch f.Name {
				case "options":
					options = string(f.Data)
				case "conversation":
					script, at = string(f.Data), i
				default:
					t.Fatalf("unknown file %q", f.Name)
				}
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = converse(t, strings.Fields(options), script) })
			if *update {
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(script, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// converse plays a script and returns it with the actual output lines.
func converse(t *testing.T, options []string, script string) string {
	t.Helper()
	c := start(t, options)
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "<", "=":
			continue
		case ">":
			c.send(rest)
		case ">>":
			var n int
			count, text, _ := strings.Cut(rest, " ")
			if _, err := fmt.Sscan(count, &n); err != nil {
				t.Fatal(err)
			}
			c.send(strings.NewReplacer("XXX", strings.Repeat("x", n), "NEXT", "\n").Replace(text))
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(d)
		case "eof":
			c.in.Close()
		case "deaf":
			<-c.out.turn
			c.deaf = true
		case "hear":
			c.deaf = false
			c.out.turn <- struct{}{}
		case "", "#":
		default:
			t.Fatalf("unknown line %q", line)
		}
		out.WriteString(line + "\n")
		synctest.Wait()
		out.WriteString(c.newOutput())
	}
	c.in.Close()
	c.cancel()
	synctest.Wait()
	return out.String()
}

// conversation is a host and a Conn that are connected by pipes.
type conversation struct {
	in     *io.PipeWriter
	out    *stdout
	deaf   bool
	done   chan error
	cancel context.CancelFunc
}

// stdout stores the output. A goroutine that locks turn blocks the writer.
type stdout struct {
	turn chan struct{} // cap 1
	text bytes.Buffer
}

func (o *stdout) Write(p []byte) (int, error) {
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	return o.text.Write(p)
}

func (c *conversation) send(line string) {
	go c.in.Write([]byte(line + "\n")) // ends when the line is read or the pipe is closed
	synctest.Wait()
}

// newOutput returns the frames since the last call, as lines of the script. Equal consecutive lines are counted.
func (c *conversation) newOutput() string {
	var b strings.Builder
	if !c.deaf {
		<-c.out.turn
		defer func() { c.out.turn <- struct{}{} }()
		last, n := "", 0
		flush := func() {
			switch {
			case n == 1:
				b.WriteString("< " + last + "\n")
			case n > 1:
				fmt.Fprintf(&b, "< %s (%d times)\n", last, n)
			}
		}
		for line := range strings.Lines(c.out.text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if len(line) > 400 {
				line = line[:400] + "…"
			}
			if line != last {
				flush()
				last, n = line, 0
			}
			n++
		}
		flush()
		c.out.text.Reset()
	}
	select {
	case err := <-c.done:
		text := "nil"
		if err != nil {
			text = err.Error()
		}
		b.WriteString("= " + text + "\n")
	default:
	}
	return b.String()
}

func start(t *testing.T, options []string) *conversation {
	t.Helper()
	r, w := io.Pipe()
	c := &conversation{in: w, out: &stdout{turn: make(chan struct{}, 1)}, done: make(chan error, 1)}
	c.out.turn <- struct{}{}
	o := Options{In: r, Out: c.out, Metadata: &sequentialIDs{}, BackgroundLimit: time.Minute}
	s := &fakeSession{}
	for _, option := range options {
		switch option {
		case "await-initialize":
			o.AwaitInitialize = true
		case "replay":
			o.Replay = true
		case "one-by-one":
			o.SeparateTurns = true
		case "states":
			o.StateEvents = SessionStateEventsUnmarked
		case "host-states":
			o.StateEvents = SessionStateEventsMarkedHostOnly
		case "background":
			ended := make(chan struct{})
			s.background = ended
			time.AfterFunc(3*time.Minute, func() { close(ended) })
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	s.peer = New(o)
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	go func() { c.done <- s.peer.Serve(ctx, s) }()
	t.Cleanup(cancel)
	synctest.Wait()
	return c
}

// fakeSession plays the turns described at TestConversations.
type fakeSession struct {
	peer       *Conn
	background <-chan struct{} // nil means no background work; closed when it has ended
	noticed    bool
}

func (f *fakeSession) PromptForDeferredCall() *protocol.UserMessage { return nil }
func (f *fakeSession) WaitUntilTurnMayStart(context.Context) error  { return nil }

func (f *fakeSession) BackgroundState() (busy, anotherTurnFollows bool) {
	busy = f.background != nil && !f.noticed
	return busy, busy
}

func (f *fakeSession) AsyncHookFrameAdded() <-chan struct{} { return nil }

func (f *fakeSession) StreamBackgroundEvents(_, until context.Context) error {
	select {
	case <-f.background:
	case <-until.Done():
	}
	return nil
}

func (f *fakeSession) TakePromptAboutBackgroundWork() (protocol.UserMessage, bool) {
	select {
	case <-f.background:
		f.noticed = true
		return protocol.UserMessage{Content: protocol.Content{Text: "say the work is done"}}, true
	default:
		return protocol.UserMessage{}, false
	}
}

func (f *fakeSession) StopBackgroundAgents() {}

// Initialize answers with what it knows of the request.
func (f *fakeSession) Initialize(_ context.Context, g *InitializeRequest) (ResponseWithEvents, error) {
	g.ConnectUntilHostServerMessage(func(context.Context) {})
	return ResponseWithEvents{Payload: map[string]any{"initialized": true, "repeated_or_late": g.RepeatedOrLate, "bytes": len(g.Body)}}, nil
}

// Serve answers requests about the connection: end_session, cancel_async_message, "slow", which takes a second, and "behind", which
// tells whether a prompt waits. All others fail.
func (f *fakeSession) Serve(_ context.Context, r HostRequest) (ResponseWithEvents, error) {
	switch r.Subtype {
	case "end_session":
		f.peer.StopAcceptingNewPrompts()
		return ResponseWithEvents{Payload: map[string]string{"state": f.peer.CurrentSessionState()}}, nil
	case "cancel_async_message":
		var in struct {
			UUID string `json:"message_uuid"`
		}
		if err := json.Unmarshal(r.Body, &in); err != nil {
			return ResponseWithEvents{}, err
		}
		events, cancelled := f.peer.CancelQueuedPrompt(in.UUID)
		answer := map[string]any{"cancelled": cancelled}
		if cancelled {
			answer["message_uuid"] = in.UUID
		}
		return ResponseWithEvents{Payload: answer, EventsBefore: events}, nil
	case "slow":
		<-time.After(time.Second)
		return ResponseWithEvents{Payload: map[string]string{"after": "a second"}}, nil
	case "behind":
		return ResponseWithEvents{Payload: map[string]bool{"behind": r.IsBehindPrompt}}, nil
	}
	return ResponseWithEvents{}, errors.New("no such request: " + r.Subtype)
}

func (f *fakeSession) IsSlow(subtype string) bool { return subtype == "slow" }

// parseElicitation returns an elicitation of a server: its frame, or only its message.
func parseElicitation(text string) mcp.ElicitRequest {
	q := struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requested_schema"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitation_id"`
	}{Message: text}
	_ = json.Unmarshal([]byte(text), &q) // plain text is the message
	mode := map[bool]string{true: "form", false: "url"}[q.URL == ""]
	return mcp.ElicitRequest{Server: "s", Message: q.Message, Mode: mode, Schema: q.Schema, URL: q.URL, ID: q.ID}
}

func (f *fakeSession) Turn(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error) {
	show := func(format string, args ...any) { fmt.Fprintf(f.peer.EventWriter(), format+"\n", args...) }
	show(`{"type":"system","subtype":"init"}`)
	verb, rest, _ := strings.Cut(in.Content.Plain(), " ")
	result := rest
	switch verb {
	case "hang":
		<-interrupt.Done()
	case "sleep":
		d, _ := time.ParseDuration(rest)
		select {
		case <-time.After(d):
		case <-interrupt.Done():
		}
	case "round":
		d, _ := time.ParseDuration(rest)
		<-time.After(d)
		for _, more := range f.peer.TakeJoiningPrompts() {
			result += " + " + more.Content.Plain()
		}
		result += fmt.Sprintf(", %d wait", f.peer.CountWaitingUserPrompts())
	case "ask", "ask-user":
		answer, err := f.peer.Ask(interrupt, protocol.PermissionRequest{
			Use: protocol.ToolUse{ID: "toolu-1", Name: rest, Input: json.RawMessage(`{"a":1}`)}, RequiresUser: verb == "ask-user",
		})
		result = fmt.Sprintf("%+v", answer)
		if err != nil {
			result = err.Error()
		}
	case "hook":
		d, _ := time.ParseDuration(rest)
		limited, cancel := context.WithTimeout(interrupt, d)
		defer cancel()
		raw, err := f.peer.CallHook(limited, "hook_0", json.RawMessage(`{"hook_event_name":"Stop"}`), "toolu-1")
		result = fmt.Sprintf("%s %v", raw, err)
	case "message":
		raw, err := f.peer.SendToServer(interrupt, rest, json.RawMessage(`{"jsonrpc":"2.0","id":7,"method":"m"}`))
		result = fmt.Sprintf("%s %v", raw, err)
	case "elicit":
		a := f.peer.Elicit(interrupt, parseElicitation(rest))
		if a.Action == "" {
			a.Action = "cancel"
		}
		result = a.Action + " " + string(a.Content)
	case "flood":
		var n int
		fmt.Sscan(rest, &n)
		for range n {
			if _, err := fmt.Fprintf(f.peer.EventWriter(), "{%s}\n", strings.Repeat("x", 1024)); err != nil {
				return false, err
			}
		}
	case "fail":
		return false, errors.New(rest)
	case "give-up":
		show(`{"type":"result","is_error":true}`)
		return false, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if interrupt.Err() != nil {
		show(`{"type":"user","text":"[Request interrupted by user]"}`)
		show(`{"type":"result","is_error":true}`)
		return true, nil
	}
	raw, err := protocol.Marshal(result)
	show(`{"type":"result","result":%s}`, raw)
	return true, err
}
