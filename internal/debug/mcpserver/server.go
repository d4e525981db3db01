// Package mcpserver offers the hub to AI agents as an MCP server: breakpoints, paused calls, evaluations and records as
// tools, resources and prompts, the hub's events as notifications, and the tools of the external servers.
//
// The package keeps no state, so its answers agree with those of the other front ends.
//
// # Mounting
//
// Make one [Server] with [New] for one hub and run [Server.ForwardEventsThenCloseSessions] for the lifetime of the program. [Server.ServeStdio]
// serves one client over a pair of streams and returns when the input ends. [Server.Handler] serves these paths only:
//
//	/mcp           streamable HTTP
//	/mcp/sse       the stream of the older HTTP transport
//	/mcp/messages  its messages
//
// The handler does not check Host and Origin; localhttp.Guard does.
//
// A session over streamable HTTP ends after half an hour without a request or an open stream; its next request gets an
// error with the reason. The total size of the messages that wait for clients is limited. If a session therefore misses
// notifications, the _meta of its next tool result holds their number as claudeless/missedNotifications.
//
// # Results
//
// The result of a tool is one text that holds a JSON object. An error has the member "error" with a code, and isError
// is set; invalid arguments and unknown tools are errors of this kind, too. Parameters that a tool does not know are
// ignored. A resource that does not exist and a prompt that cannot be created are errors of the protocol.
package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for tools.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/debug"
)

// Limits of the sessions over streamable HTTP. They are necessary because a client may disappear without closing its
// session. If the server has to drop messages to a client, the next response to this client says how many.
const (
	sessionIdleTime = 30 * time.Minute
	maxSessions     = 1000
	maxQueuedBytes  = 8 << 20 // bytes of events and answers, over all sessions
)

// Options configure a Server. Hub and NewID must be set.
type Options struct {
	Hub      *debug.Hub
	External *debug.ExternalServers // nil means that the tools named external_… answer with an error
	NewID    func() string          // returns a new id of visible ASCII characters
	Version  string                 // serverInfo.version; empty means "0"
}

// Server serves any number of clients. All methods may be called from many goroutines.
type Server struct {
	options      Options
	access       *hubAccess
	tools        []debuggerToolDefinition
	http         *wire.HTTP
	subscription *debug.Subscription

	mu    sync.Mutex
	conns map[string]*clientConnection // connections by session id
}

// New creates a server. The server queues the hub's events until ForwardEventsThenCloseSessions sends them. New starts no goroutine.
func New(o Options) (*Server, error) {
	if o.Hub == nil || o.NewID == nil {
		return nil, errors.New("mcpserver: Hub and NewID must be set")
	}
	o.Version = cmp.Or(o.Version, "0")
	s := &Server{options: o, access: &hubAccess{o.Hub, o.External}, conns: map[string]*clientConnection{}}
	if err := json.Unmarshal([]byte(toolsJSON), &s.tools); err != nil {
		return nil, fmt.Errorf("mcpserver: reading tools.json: %w", err)
	}
	s.http = wire.NewHTTP(wire.HTTPOptions{
		Server: s, NewID: o.NewID, Versions: protocolVersions(), IdleTimeout: sessionIdleTime, MaxSessions: maxSessions, MaxRetained: maxQueuedBytes,
	})
	s.subscription = o.Hub.Subscribe(eventQueueLength)
	return s, nil
}

// protocolVersions returns the supported protocol versions, newest first.
func protocolVersions() []string {
	return []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

const eventQueueLength = 4096

// ForwardEventsThenCloseSessions sends the hub's events since New to all clients until ctx ends or the hub closes, and then ends the
// sessions over HTTP. Call it once; without it no notifications are sent.
func (s *Server) ForwardEventsThenCloseSessions(ctx context.Context) {
	defer s.http.Close()
	defer s.subscription.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case e, open := <-s.subscription.C:
			if !open {
				return
			}
			if e.Kind != debug.EventConfigurationChanged {
				s.queueEventForReadyClients(e)
			}
		}
	}
}

// queueEventForReadyClients queues e for every client that is ready. It does not wait for clients.
func (s *Server) queueEventForReadyClients(e debug.Event) {
	params := e.Params()
	if e.Missed > 0 {
		params["missed"] = e.Missed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	message, err := wire.EncodeNotification("notifications/breakpoint/"+string(e.Kind), params)
	if err != nil {
		return // cannot happen: strings and numbers can always be encoded
	}
	for _, c := range s.conns {
		if c.mayGetNotifications {
			c.session.Send(message)
		}
	}
}

// ServeStdio serves one client until in or ctx ends; see [wire.ServeStdio].
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return wire.ServeStdio(ctx, wire.StdioOptions{Server: s, In: in, Out: out, SessionID: "stdio-" + s.options.NewID()})
}

// Open starts a connection; the transports call it.
func (s *Server) Open(session *wire.Session) wire.Handler {
	c := &clientConnection{server: s, session: session}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[session.ID] = c
	return c
}

// clientConnection is one client. Server.mu guards the fields after session.
type clientConnection struct {
	server  *Server
	session *wire.Session

	initialized         bool // initialize was answered, or its response is being written
	mayGetNotifications bool // the client has the response to initialize, so notifications may be sent
}

func (c *clientConnection) HandleClose() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	delete(c.server.conns, c.session.ID)
}

func (c *clientConnection) HandleNotification(method string, _ json.RawMessage) {
	if method == "notifications/initialized" {
		c.advanceHandshakeOnClientMessage(false)
	}
}

// advanceHandshakeOnClientMessage records that the client has sent a message. The client's first message after initialize
// shows that the client has read the response to initialize, so that notifications may be sent.
func (c *clientConnection) advanceHandshakeOnClientMessage(isInitializeRequest bool) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.mayGetNotifications = c.mayGetNotifications || c.initialized && !isInitializeRequest
	c.initialized = c.initialized || isInitializeRequest
}

func (c *clientConnection) Handle(ctx context.Context, call *wire.Call) (any, error) {
	c.advanceHandshakeOnClientMessage(call.Method == "initialize")
	s := c.server
	switch call.Method {
	case "initialize":
		return s.initialize(call.Params)
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		return map[string]any{"tools": s.tools}, nil
	case "tools/call":
		return c.callTool(ctx, call.Params)
	case "resources/list":
		return map[string]any{"resources": s.access.resources()}, nil
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": []any{}}, nil
	case "resources/read":
		return s.access.readResource(call.Params)
	case "prompts/list":
		return map[string]any{"prompts": prompts()}, nil
	case "prompts/get":
		return s.access.getPrompt(call.Params)
	default:
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", call.Method)}
	}
}

const serverInstructions = "Breakpoints on the tool calls of an agent. Set one with breakpoint_add; when a call stops, " +
	"breakpoint_list_paused shows it, breakpoint_repl_eval evaluates expressions at it and breakpoint_continue decides what happens to it."

func (s *Server) initialize(params json.RawMessage) (any, error) {
	var in struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParamsError("initialize: " + err.Error())
	}
	version := in.ProtocolVersion
	if !slices.Contains(protocolVersions(), version) {
		version = protocolVersions()[0]
	}
	return map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{"tools": struct{}{}, "resources": struct{}{}, "prompts": struct{}{}},
		"serverInfo":      map[string]any{"name": "claudeless-debug", "version": s.options.Version},
		"instructions":    serverInstructions,
	}, nil
}

func (c *clientConnection) callTool(ctx context.Context, params json.RawMessage) (any, error) {
	s := c.server
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, invalidParamsError("tools/call: " + err.Error())
	}
	i := slices.IndexFunc(s.tools, func(t debuggerToolDefinition) bool { return t.Name == in.Name })
	if i < 0 {
		return c.toolResult(nil, debug.NewError("unknown_tool", fmt.Sprintf("unknown tool %q", in.Name), "tool", in.Name))
	}
	args, err := s.tools[i].parseArgumentsIgnoringUnknown(in.Arguments)
	if err != nil {
		return c.toolResult(nil, err)
	}
	out, err := handlerOf(in.Name)(ctx, s.access, args)
	if later, ok := out.(wire.DeferredAnswer); ok && err == nil {
		return wire.DeferredAnswer(func(ctx context.Context) (any, error) { return c.toolResult(later(ctx)) }), nil
	}
	return c.toolResult(out, err)
}

func (c *clientConnection) toolResult(out any, err error) (any, error) {
	r := toolCallResult{Content: [1]block{{Type: "text"}}}
	if n := c.session.TakeDroppedCount(); n > 0 {
		r.Meta = map[string]int{"claudeless/missedNotifications": n} // notifications that the client did not fetch in time
	}
	if f, ok := out.(toolOutputMarkedAsError); ok {
		out, r.IsError = f.body, true
	}
	if err != nil {
		out, r.IsError = debug.ErrorResponseMembers(err), true
	}
	body, err := wire.Marshal(out)
	r.Content[0].Text = string(body)
	return r, err
}

// Handler serves the paths listed in the package documentation.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.http)
	older := http.StripPrefix("/mcp", s.http)
	mux.HandleFunc("/mcp/sse", func(w http.ResponseWriter, r *http.Request) {
		older.ServeHTTP(&sseEndpointPathRewriter{ResponseWriter: w}, r)
	})
	mux.Handle("/mcp/messages", older)
	return mux
}

// sseEndpointPathRewriter rewrites the path in the first event of a stream, so that it is below /mcp.
type sseEndpointPathRewriter struct {
	http.ResponseWriter
	hasRewrittenFirstEvent bool
}

func (b *sseEndpointPathRewriter) Write(sseBytes []byte) (int, error) {
	if b.hasRewrittenFirstEvent {
		return b.ResponseWriter.Write(sseBytes)
	}
	b.hasRewrittenFirstEvent = true
	_, err := b.ResponseWriter.Write(bytes.Replace(sseBytes, []byte("data: /messages?"), []byte("data: /mcp/messages?"), 1))
	return len(sseBytes), err
}

// Unwrap lets http.ResponseController flush the stream.
func (b *sseEndpointPathRewriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }

//go:embed tools.json
var toolsJSON string

// handlerOf returns the handler of the tool with this name; nil means that the tool is unknown.
func handlerOf(toolName string) handler {
	value := func(of func(*hubAccess) any) handler {
		return func(_ context.Context, f *hubAccess, _ checkedArguments) (any, error) { return of(f), nil }
	}
	return map[string]handler{
		"breakpoint_list_breakpoints":     value((*hubAccess).breakpoints),
		"breakpoint_add":                  addOrChangeBreakpoint,
		"breakpoint_remove":               removeBreakpoint,
		"breakpoint_set_behavior":         setBreakpointBehaviorBeforeCall,
		"breakpoint_set_after_behavior":   setBreakpointBehaviorAfterCall,
		"breakpoint_set_replacement":      setReplacementTool,
		"breakpoint_get_default_behavior": value(func(f *hubAccess) any { return fields{"behavior": f.hub.BreakpointSet.DefaultBehavior()} }),
		"breakpoint_set_default_behavior": setDefaultBehavior,
		"breakpoint_list_paused":          value((*hubAccess).pausedCalls),
		"breakpoint_continue":             resumePausedCall,
		"breakpoint_list_functions":       value((*hubAccess).namesSignaturesAndMetadataOfTools),
		"breakpoint_get_call_records":     listCalls,
		"breakpoint_repl_eval":            evaluate,
		"breakpoint_inspect_object":       inspectStoredValueByContentID,
		"external_list_servers":           handlerRequiringServers(listExternalServers),
		"external_list_tools":             handlerRequiringServers(listExternalTools),
		"external_call_tool":              handlerRequiringServers(callExternalTool),
		"external_list_resources":         handlerRequiringServers(listExternalResources),
		"external_read_resource": handlerRequiringServers(func(ctx context.Context, m *debug.ExternalServers, a checkedArguments) (any, error) {
			return m.ReadFirstContentOfResource(ctx, a.text("server"), a.text("uri"))
		}),
	}[toolName]
}

// handlerRequiringServers converts run to the handler of a tool. The handler fails if external servers are not enabled; otherwise
// it returns a deferred answer, which run computes.
func handlerRequiringServers(run func(ctx context.Context, m *debug.ExternalServers, a checkedArguments) (any, error)) handler {
	return func(_ context.Context, f *hubAccess, a checkedArguments) (any, error) {
		if f.external == nil {
			return nil, debug.NewError("mcp_clients_unavailable", "start the debugger with --mcp-clients to use external servers")
		}
		return wire.DeferredAnswer(func(ctx context.Context) (any, error) { return run(ctx, f.external, a) }), nil
	}
}

func listExternalServers(_ context.Context, m *debug.ExternalServers, _ checkedArguments) (any, error) {
	type server struct {
		Status string `json:"status"`
		Tools  *int   `json:"tool_count,omitempty"`
		Error  string `json:"error,omitempty"`
	}
	servers := map[string]server{}
	for _, c := range m.Servers() {
		v := server{Status: c.Status, Error: c.Error}
		if c.Status == debug.StatusConnected {
			v.Tools = new(len(c.Tools))
		}
		servers[c.Name] = v
	}
	return fields{"servers": servers}, nil
}

func listExternalTools(_ context.Context, m *debug.ExternalServers, a checkedArguments) (any, error) {
	tools, err := m.Tools(a.text("server"))
	return fields{"tools": tools}, err
}

func callExternalTool(ctx context.Context, m *debug.ExternalServers, a checkedArguments) (any, error) {
	result, err := m.CallAndRecord(ctx, a.text("tool"), a["arguments"])
	if err != nil {
		return nil, err
	}
	var meta struct{ IsError bool }
	if json.Unmarshal(result, &meta) == nil && meta.IsError {
		return toolOutputMarkedAsError{result}, nil
	}
	return result, nil
}

func listExternalResources(_ context.Context, m *debug.ExternalServers, a checkedArguments) (any, error) {
	resources, err := m.Resources(a.text("server"))
	return fields{"resources": resources}, err
}
