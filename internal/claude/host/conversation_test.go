package host

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/internal/claude/checkpoint"
	"github.com/claudeless/claudeless/internal/claude/control"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the conversations")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestConversations plays testdata/*.txtar. Each file checks one behaviour of the protocol, which its comment describes.
//
// The file "options" contains words: await-initialize, replay, one-by-one, states, host-states, checkpoints,
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
	turn  chan struct{} // cap 1
	text  bytes.Buffer
	whole bool // long lines are not cut
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
			if len(line) > 400 && !c.out.whole {
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
	marks := &sequentialIDs{}
	o := control.Options{In: r, Out: c.out, Metadata: marks}
	s := &fakeSession{model: "model-1"}
	for _, option := range options {
		switch option {
		case "await-initialize":
			o.AwaitInitialize = true
		case "replay":
			o.Replay = true
		case "one-by-one":
			o.SeparateTurns = true
		case "states":
			o.StateEvents = control.SessionStateEventsUnmarked
		case "host-states":
			o.StateEvents = control.SessionStateEventsMarkedHostOnly
		case "checkpoints":
			s.rewind = true
		case "background":
			ended := make(chan struct{})
			s.background = ended
			time.AfterFunc(3*time.Minute, func() { close(ended) })
		default:
			t.Fatalf("unknown option %q", option)
		}
	}
	o.BackgroundLimit = time.Minute
	s.peer = control.New(o)
	var err error
	if s.policy, err = permission.New(permission.Options{CWD: "/w"}); err != nil {
		t.Fatal(err)
	}
	if s.servers, err = mcp.New(mcp.Options{SDK: s.peer.SendToServer, ConnectTimeout: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := s.servers.StartAndWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	go func() { // returns with Serve
		err := s.peer.Serve(ctx, s.driver(marks))
		if closed := s.servers.Close(context.WithoutCancel(ctx)); closed != nil {
			t.Error(closed)
		}
		c.done <- err
	}()
	t.Cleanup(cancel)
	synctest.Wait()
	return c
}

// sequentialIDs returns distinct ids and times.
type sequentialIDs struct{ ids atomic.Int64 }

func (c *sequentialIDs) NewID() string             { return fmt.Sprintf("id-%d", c.ids.Add(1)) }
func (*sequentialIDs) SessionID() string           { return "s-1" }
func (*sequentialIDs) CurrentUTCTimestamp() string { return "now" }

// fakeSession plays the turns described at TestConversations.
type fakeSession struct {
	peer       *control.Conn
	policy     *permission.Policy
	servers    *mcp.Manager
	model      string
	rewind     bool
	background <-chan struct{} // nil means no background work; closed when it has ended
	noticed    bool
}

// driver returns a control session in which the fake plays every part.
func (f *fakeSession) driver(marks control.FrameMetadata) combinedControlSession {
	return combinedControlSession{TurnRunner: f, BackgroundWork: f, requestServer: &requestServer{
		conn: f.peer, metadata: marks, initializer: f, session: f, identity: f, settings: f, files: f, tasks: f, describer: f,
	}}
}

// The methods that answer requests.

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

func (f *fakeSession) StopBackgroundTask(context.Context, string) func() { return nil }

func (f *fakeSession) Plan() *launch.Plan {
	var plan launch.Plan
	plan.Profile = claudecode.ProfileForExactVersion(claudecode.DefaultVersion)
	return &plan
}

func (f *fakeSession) Policy() *permission.Policy { return f.policy }
func (f *fakeSession) Servers() *mcp.Manager      { return f.servers }
func (f *fakeSession) Model() string              { return f.model }
func (f *fakeSession) Rename(string)              {}

func (f *fakeSession) RecordModelChange(string, protocol.UserEvent) {}

func (f *fakeSession) SetThinkingBudget(*int) {}

func (f *fakeSession) SetModel(name string) {
	if f.model = name; name == "" {
		f.model = "model-1"
	}
}

func (f *fakeSession) State() *simulator.SessionState { return &simulator.SessionState{} }

func (f *fakeSession) ReadFileIfPermitted(path string) (string, []byte, error) {
	return "/w/" + path, []byte("text of " + path), nil
}

func (f *fakeSession) AnswerQueryOrReload(subtype string) (any, bool) {
	reply, ok := map[string]any{
		"get_context_usage":     map[string]int{"totalTokens": 1},
		"get_settings":          map[string]any{"effective": map[string]any{}},
		"list_permission_rules": map[string]any{"state": map[string]any{}},
		"list_models":           map[string]any{"models": []any{}},
		"get_session_cost":      map[string]any{"text": "Total cost: $0.0000"},
		"reload_skills":         map[string]any{"skills": []any{}},
	}[subtype]
	return reply, ok
}

func (f *fakeSession) Directory() string { return "/w" }

func (f *fakeSession) CLIVersion() (version, built string) { return "2.1.329", "" }

func (f *fakeSession) ShellTaskOutput(id string) ([]byte, bool) { return []byte("so far"), id == "t-1" }

func (f *fakeSession) AnswerSideQuestion(_ context.Context, question string) (sideQuestionAnswer, error) {
	return sideQuestionAnswer{Text: "about " + question}, nil
}

func (f *fakeSession) AddWorkingDirectory(dir string) (string, error) {
	if dir == "no" {
		return "", errors.New("register_repo_root: no is not a directory")
	}
	return "/w/" + dir, nil
}

func (f *fakeSession) WriteOutputStyleAndEffort(string, map[string]string) error { return nil }

func (f *fakeSession) ApplySettings(in map[string]json.RawMessage) []string {
	var name *string
	if json.Unmarshal(in["model"], &name) != nil {
		return []string{"model"}
	}
	f.model = "model-1"
	if name != nil {
		f.model = *name
	}
	return nil
}

func (f *fakeSession) rewindFiles(uuid string, _ bool) (checkpoint.RewindEffect, error) {
	switch {
	case !f.rewind:
		return checkpoint.RewindEffect{}, errRewindDisabled
	case uuid != "u-1":
		return checkpoint.RewindEffect{}, errors.New("No file checkpoint found for this message.")
	}
	return checkpoint.RewindEffect{Files: []string{"/w/a"}, Insertions: 1}, nil
}

func (f *fakeSession) Initialize(_ context.Context, in InitializeOptions) (InitializeAnswer, error) {
	if in.RepeatedOrLate {
		return InitializeAnswer{OutputStyle: "again"}, nil
	}
	var agents []Agent
	if in.Agents != nil {
		agents = append(agents, Agent{Name: fmt.Sprintf("%d bytes of agents", len(in.Agents))})
	}
	return InitializeAnswer{OutputStyle: "default", HooksApplied: in.Hooks != nil, Agents: agents}, nil
}

func (f *fakeSession) ConnectMCPServers(ctx context.Context, in InitializeOptions) {
	if f.servers == nil {
		return
	}
	var desired []mcp.ServerConfig
	for _, name := range in.SDKMCPServers {
		desired = append(desired, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	_, _ = f.servers.ReplaceServersOfSource(ctx, "sdk", desired) // an error of a server is visible in its status
}

func (f *fakeSession) ReplaceHostServers(ctx context.Context, raw json.RawMessage) (mcp.ReplaceServersResult, error) {
	if f.servers == nil {
		return mcp.ReplaceServersResult{}, errors.New("no servers")
	}
	var names map[string]json.RawMessage
	if err := json.Unmarshal(raw, &names); err != nil {
		return mcp.ReplaceServersResult{}, err
	}
	var desired []mcp.ServerConfig
	for name := range names {
		desired = append(desired, mcp.ServerConfig{Name: name, Type: "sdk"})
	}
	if names["slow"] != nil {
		<-time.After(time.Second)
	}
	begun, cancel := context.WithCancel(ctx)
	cancel()
	change, _ := f.servers.ReplaceServersOfSource(begun, "sdk", desired) // the servers connect after the answer
	change.Errors = nil                                                  // without errors, the host still gets an object
	return change, nil
}

func (f *fakeSession) StopBackgroundAgents() {}

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
