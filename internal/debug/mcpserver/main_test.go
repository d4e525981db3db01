package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/internal/debug"

	"github.com/claudeless/claudeless/internal/debug/mcpserver"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain is also the external server of some tests: MCP_MODE is a mode of mcptest, or "face" for a server of this
// package.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("MCP_MODE"); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "face":
		hub, err := debug.New(hubOptions())
		if err != nil {
			panic(err)
		}
		s, err := mcpserver.New(mcpserver.Options{Hub: hub, NewID: newIDs("x")})
		if err != nil {
			panic(err)
		}
		if s.ServeStdio(context.Background(), os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
	default:
		os.Exit(mcptest.Serve(mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
}

func newIDs(prefix string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s%d", prefix, n.Add(1)) }
}

func hubOptions() debug.Options { return debug.Options{Now: time.Now, NewID: newIDs("pause-")} }

// hubAccess is a hub with its server, and acts as the agent under test.
type hubAccess struct {
	*mcpserver.Server
	hub *debug.Hub
}

func newTestServer(t *testing.T, o mcpserver.Options) *hubAccess {
	t.Helper()
	if o.Hub == nil {
		hub, err := debug.New(hubOptions())
		if err != nil {
			t.Fatal(err)
		}
		o.Hub = hub
	}
	o.NewID = newIDs("session-")
	s, err := mcpserver.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.ForwardEventsThenCloseSessions(ctx) }()
	t.Cleanup(func() { cancel(); <-done; o.Hub.Close() })
	return &hubAccess{s, o.Hub}
}

// dialStdio returns a client over a pair of pipes.
func (f *hubAccess) dialStdio(t *testing.T) *client.Client {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- f.ServeStdio(context.Background(), inRead, outWrite)
		outWrite.Close()
	}()
	c := client.NewClient(transport.NewIO(outRead, inWrite, io.NopCloser(emptyReader{})))
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return initialize(t, c)
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

func (f *hubAccess) listen(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(f.Handler())
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

func (f *hubAccess) dialHTTP(t *testing.T) *client.Client {
	t.Helper()
	return dialHTTP(t, f.listen(t))
}

func dialHTTP(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.NewStreamableHttpClient(url+"/mcp", transport.WithContinuousListening()) //nolint:staticcheck // the test uses the open GET stream of 2025-11-25
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return initialize(t, c)
}

func (f *hubAccess) dialSSE(t *testing.T) *client.Client {
	t.Helper()
	return dialSSE(t, f.listen(t))
}

func dialSSE(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.NewSSEMCPClient(url + "/mcp/sse")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return initialize(t, c)
}

func initialize(t *testing.T, c *client.Client) *client.Client {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := mcp.InitializeRequest{}
	in.Params.ProtocolVersion = "2025-11-25"
	in.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "1"}
	r, err := c.Initialize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if r.ServerInfo.Name != "claudeless-debug" || r.Capabilities.Tools == nil || r.Capabilities.Resources == nil || r.Capabilities.Prompts == nil {
		t.Fatalf("initialize: %+v", r)
	}
	return c
}

type kindObject = map[string]any

// ask calls a tool. The answer must be one JSON text. It must be an error if and only if it has a code (S75, S76).
func ask(t *testing.T, c *client.Client, tool, args string) kindObject {
	t.Helper()
	req := mcp.CallToolRequest{}
	req.Params.Name = tool
	if args != "" {
		req.Params.Arguments = json.RawMessage(args)
	}
	r, err := c.CallTool(t.Context(), req)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	if len(r.Content) != 1 {
		t.Fatalf("%s: %d contents", tool, len(r.Content))
	}
	text, ok := r.Content[0].(mcp.TextContent)
	if !ok {
		t.Fatalf("%s: content is a %T", tool, r.Content[0])
	}
	out := decode(t, text.Text)
	if _, failed := out["error"]; failed != r.IsError && out["isError"] != true {
		t.Errorf("%s: isError %v for %s", tool, r.IsError, text.Text)
	}
	return out
}

func decode(t *testing.T, text string) kindObject {
	t.Helper()
	var out kindObject
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}

// expect checks that got has all members of want, unchanged.
func expect(t *testing.T, got kindObject, want string) {
	t.Helper()
	for key, v := range decode(t, want) {
		if !reflect.DeepEqual(got[key], v) {
			t.Errorf("%s is %v, want %v, in %v", key, got[key], v, got)
		}
	}
}

// agentRun is the run of an agent.
type agentRun struct{}

func (agentRun) ID() string { return "agent-1" }

func (agentRun) CallingAgentJSON(protocol.ToolUse) json.RawMessage {
	return json.RawMessage(`{"turn":3}`)
}

func (agentRun) ToolResultFromText(_ protocol.ToolUse, text string) protocol.ToolResult {
	return protocol.ToolResult{Content: protocol.Content{Text: text}}
}

// run starts a call like an agent and sends the outcome when it has finished.
func (f *hubAccess) run(t *testing.T, tool, input string) <-chan executor.Result {
	t.Helper()
	done := make(chan executor.Result, 1)
	agent := debug.Middleware(f.hub, debug.MiddlewareOptions{Run: agentRun{}})(echoTool{})
	go func() {
		r, err := agent.Execute(context.Background(), protocol.ToolUse{ID: "toolu_1", Name: tool, Input: json.RawMessage(input)})
		if err != nil {
			r = executor.ResultOf(protocol.ErrorResult(err.Error()))
		}
		done <- r
	}()
	return done
}

// stopped starts a call and returns the id of its pause.
func (f *hubAccess) stopped(t *testing.T, tool, input string) (string, <-chan executor.Result) {
	t.Helper()
	done := f.run(t, tool, input)
	return f.pause(t, 1)[0], done
}

// pause waits until n calls are paused.
func (f *hubAccess) pause(t *testing.T, n int) []string {
	t.Helper()
	deadline := time.After(10 * time.Second)
	sub := f.hub.Subscribe(0)
	defer sub.Close()
	for {
		if all := f.hub.Pauses(); len(all) == n {
			ids := make([]string, n)
			for i, p := range all {
				ids[i] = p.ID
			}
			return ids
		}
		select {
		case <-sub.C:
		case <-deadline:
			t.Fatalf("%d calls paused, want %d", len(f.hub.Pauses()), n)
		}
	}
}

func result(t *testing.T, done <-chan executor.Result) (text string, failed bool) {
	t.Helper()
	select {
	case r := <-done:
		return r.Content.Plain(), r.IsError
	case <-time.After(10 * time.Second):
		t.Fatal("the call did not end")
		return "", false
	}
}

// echoTool answers with the tool's name and its input; the tool "fails" fails.
type echoTool struct{}

func (echoTool) Tools(context.Context) ([]protocol.Tool, error) { return nil, nil }

func (echoTool) Execute(_ context.Context, use protocol.ToolUse) (executor.Result, error) {
	if use.Name == "fails" {
		return executor.ResultOf(protocol.ErrorResult("it broke")), nil
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: use.Name + " " + string(use.Input)}}), nil
}

func (f *hubAccess) register(t *testing.T, schemas map[string]string) {
	t.Helper()
	for name, schema := range schemas {
		err := f.hub.Register(t.Context(), []protocol.Tool{{Name: name, Description: "does " + name, InputSchema: json.RawMessage(schema), Server: "t", RawName: name}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newExternal(t *testing.T, hub *debug.Hub) *debug.ExternalServers {
	t.Helper()
	m, err := debug.NewExternalServers(debug.ExternalServersOptions{Hub: hub, Now: time.Now, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// connect adds servers that run this binary in one of its modes. Each has the name of its mode.
func connect(t *testing.T, m *debug.ExternalServers, modes ...string) {
	t.Helper()
	for _, mode := range modes {
		entry, err := json.Marshal(kindObject{
			"transport": "stdio", "command": os.Args[0], "args": []string{}, "env": kindObject{"MCP_MODE": mode}, "timeout_s": 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.AddAndConnect(t.Context(), mode, entry); err != nil {
			t.Fatal(err)
		}
	}
}
