// Package debugcmd implements the command claudeless debug: the breakpoint server, the hook and the proxy.
package debugcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	rtdebug "runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/localhttp"
	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/internal/debug/mcpserver"
	"github.com/claudeless/claudeless/internal/debug/rest"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Debug is the command claudeless debug with its subcommands.
type Debug struct {
	Serve Serve `cmd:"" default:"withargs" help:"Run the debugger, a server that pauses tool calls"`
	Hook  Hook  `cmd:"" help:"Run as a PreToolUse or PostToolUse hook of an agent CLI, and pause its tool calls"`
	Proxy Proxy `cmd:"" help:"Run between a stdio MCP server and its client, and pause tool calls"`
}

const defaultDebugPort = 5174

// ClaudelessVersion is the version of claudeless that the server reports.
type ClaudelessVersion string

// Serve runs the breakpoint server.
type Serve struct {
	Port             *int          `placeholder:"N" help:"Port to listen on (default 5174, or a free port if 5174 is in use)"`
	PortFile         string        `placeholder:"FILE" help:"Write the port to FILE"`
	PauseTimeout     time.Duration `placeholder:"DURATION" help:"How long a paused call waits for a decision, for example 30s (default: no limit)"`
	OnTimeout        string        `enum:"wait,continue,fail" default:"wait" placeholder:"ACTION" help:"What to do with a paused call when --pause-timeout expires: wait (default), continue or fail"`
	MCPClients       bool          `name:"mcp-clients" help:"Connect the external MCP servers of mcp_clients.json in ~/.claudeless (or in CLAUDELESS_CONFIG_DIR)"`
	MCPClientsConfig string        `name:"mcp-clients-config" placeholder:"FILE" help:"Connect the external MCP servers of this configuration file"`
	MCPClient        []string      `name:"mcp-client" sep:"none" placeholder:"NAME:VALUE" help:"Connect this external MCP server: a command, or the URL of an SSE endpoint"`
	TokenFile        string        `placeholder:"FILE" help:"Write a new access token to FILE and require it in every request"`
	AllowOrigin      []string      `name:"allow-origin" sep:"none" placeholder:"ORIGIN" help:"Allow pages of this origin to use the JavaScript client, for example http://localhost:3000 (the port may be *)"`
	MCP              bool          `name:"mcp" help:"Also run as an MCP server on stdin and stdout"`
	MCPSSE           bool          `name:"mcp-sse" help:"Also run as an MCP server at /mcp (streamable HTTP) and /mcp/sse"`
}

// debugServerGCPercent makes the garbage collector run when the heap has grown by half, so that the server needs less memory.
const debugServerGCPercent = 50

// startupConnectWait is how long the server waits for external servers before it announces its port.
const startupConnectWait = 3 * time.Second

// Run serves until a signal.
func (c *Serve) Run(ctx context.Context, s *process.System, v ClaudelessVersion) (err error) {
	rtdebug.SetGCPercent(debugServerGCPercent)
	hub, err := debug.New(debug.Options{Now: s.Now, NewID: s.NewID, PauseTimeout: c.PauseTimeout, OnTimeout: debug.NoDecisionPolicy(c.OnTimeout)})
	if err != nil {
		return err
	}
	defer hub.Close()
	servers, err := c.newExternalServersIfEnabled(s, hub, v)
	if err != nil {
		return err
	}
	token, err := localhttp.WriteNewTokenFile(s.NewID, c.TokenFile)
	if err != nil {
		return err
	}
	access := localhttp.Access{OwnOriginOnly: true, Origins: c.AllowOrigin, Token: token, CookieName: tokenCookieName}
	ctx, stop := s.ContextUntilSignal(ctx)
	defer stop()
	if servers != nil {
		settled := make(chan struct{})
		go func() { // returns when ctx is cancelled
			defer close(settled)
			_ = servers.Start(ctx) // Start returns early only if ctx ends
		}()
		defer func() {
			stop()
			<-settled
			err = errors.Join(err, servers.Close(context.WithoutCancel(ctx)))
		}()
		select {
		case <-settled:
		case <-time.After(startupConnectWait):
		}
	}
	front, err := mcpserver.New(mcpserver.Options{Hub: hub, External: servers, NewID: s.NewID, Version: string(v)})
	if err != nil {
		return err
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer stop()
	tasks.Go(func() { front.ForwardEventsThenCloseSessions(ctx) }) // returns when ctx is cancelled
	if c.MCP {
		tasks.Go(func() {
			if err := front.ServeStdio(ctx, s.Stdin, s.Stdout); err != nil && ctx.Err() == nil {
				fmt.Fprintf(s.Stderr, "claudeless debug: mcp on stdio: %v\n", err)
			}
		}) // returns when ctx is cancelled or at EOF of stdin
	}
	o := rest.Options{Hub: hub, External: servers, Fallback: c.pagesAndMCPHandler(front, servers)}
	return c.listenOnPortOrFreeAndServe(ctx, s, access, rest.Handler(o))
}

func (c *Serve) pagesAndMCPHandler(front *mcpserver.Server, external *debug.ExternalServers) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", debug.PageHandler(external))
	mcpHandler := http.NotFoundHandler()
	if c.MCPSSE {
		mcpHandler = front.Handler()
	}
	mux.Handle("/mcp", mcpHandler)
	mux.Handle("/mcp/", mcpHandler)
	return mux
}

const tokenCookieName = "claudeless_debug_token"

// listenOnPortOrFreeAndServe listens on the port of --port. Without --port, it uses the default port or, if that is in use, a free port.
func (c *Serve) listenOnPortOrFreeAndServe(ctx context.Context, s *process.System, a localhttp.Access, h http.Handler) error {
	o := localhttp.Options{PortFile: c.PortFile, Access: a, OnListen: func(a net.Addr) {
		fmt.Fprintf(s.Stderr, "claudeless debug: http://%s\n", a)
	}}
	port := defaultDebugPort
	if c.Port != nil {
		port = *c.Port
	}
	o.Addr = ":" + strconv.Itoa(port)
	ln, err := localhttp.ListenAndWritePortFile(ctx, o)
	if err != nil && c.Port == nil {
		o.Addr = ":0"
		ln, err = localhttp.ListenAndWritePortFile(ctx, o)
	}
	if err != nil {
		return err
	}
	return localhttp.Serve(ctx, ln, h, o)
}

func (c *Serve) newExternalServersIfEnabled(s *process.System, hub *debug.Hub, v ClaudelessVersion) (manager *debug.ExternalServers, err error) {
	if !c.MCPClients && c.MCPClientsConfig == "" && len(c.MCPClient) == 0 {
		return manager, nil
	}
	servers, err := c.readMCPClientsFile(s)
	if err != nil {
		return nil, err
	}
	for _, text := range c.MCPClient {
		server, err := debug.ParseInlineServer(text)
		if err != nil {
			return nil, fmt.Errorf("--mcp-client %w", err)
		}
		servers = debug.AddOrReplaceServer(servers, server)
	}
	dir, err := s.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	return debug.NewExternalServers(debug.ExternalServersOptions{Hub: hub, Now: s.Now, Servers: servers, Environ: s.Environ, CWD: dir, Version: string(v)})
}

// readMCPClientsFile reads the file of servers. Only a file that --mcp-clients-config names must exist.
func (c *Serve) readMCPClientsFile(s *process.System) ([]mcp.ServerConfig, error) {
	file, must := c.MCPClientsConfig, true
	if file == "" {
		if !c.MCPClients {
			return nil, nil
		}
		file, must = s.Getenv("CLAUDELESS_MCP_CLIENTS_CONFIG"), false
		for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR"} {
			if dir := s.Getenv(name); file == "" && dir != "" {
				file = filepath.Join(dir, "mcp_clients.json")
			}
		}
		file = cmp.Or(file, filepath.Join(s.Getenv("HOME"), ".claudeless", "mcp_clients.json"))
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the file of external MCP servers: %w", err)
	}
	return debug.ParseServerConfig(file, data)
}

type debuggerFlags struct {
	Debugger string `required:"" placeholder:"URL" help:"Address of the breakpoint server (claudeless debug)"`
	OnLost   string `enum:"fail,continue" default:"fail" placeholder:"ACTION" help:"What to do with a paused call when the debugger disconnects: fail (default) or continue"`
}

func (d debuggerFlags) newDebuggerClient(s *process.System, kind debug.CallerKind) (*rest.Client, error) {
	// The token is in the environment because other users could read a command line.
	return rest.NewClient(rest.ClientOptions{URL: d.Debugger, Token: s.Getenv("CLAUDELESS_DEBUGGER_TOKEN"), Client: kind, OnLost: debug.NoDecisionPolicy(d.OnLost)})
}

// Hook is the command claudeless debug hook. Agent CLIs run it as a command hook before and after each tool call.
type Hook struct {
	debuggerFlags
}

// Run handles the hook event on stdin.
func (c *Hook) Run(ctx context.Context, s *process.System) error {
	gate, err := c.newDebuggerClient(s, debug.ClientAgentHook)
	if err != nil {
		return err
	}
	defer gate.Close()
	ctx, stop := s.ContextUntilSignal(ctx)
	defer stop()
	return answerToolUseHook(ctx, gate, s.Stdin, s.Stdout)
}

// Proxy is the command claudeless debug proxy. An MCP client starts the proxy in place of a server. The proxy starts
// the server and pauses tool calls at the debugger's breakpoints.
type Proxy struct {
	debuggerFlags
	Server  string   `required:"" placeholder:"NAME" help:"Name of the server; its tools are called mcp__NAME__TOOL"`
	Command []string `arg:"" name:"command" help:"Command that starts the server, after --"`
}

// Run forwards messages until the end of stdin.
func (c *Proxy) Run(ctx context.Context, s *process.System) error {
	gate, err := c.newDebuggerClient(s, debug.ClientProxy)
	if err != nil {
		return err
	}
	defer gate.Close()
	ctx, stop := s.ContextUntilSignal(ctx)
	defer stop()
	return runProxy(ctx, proxyOptions{
		Gate: gate, Name: c.Server, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Command: proc.Command{Path: c.Command[0], Args: c.Command[1:], Env: s.Environ},
		PID:     os.Getpid(), Started: float64(s.Now().UnixMicro()) / 1e6,
	})
}

// hookGate connects a hook to the debugger. One hook process runs before a call and another one after it; both find the
// call by its ids. BeforeCall returns an error and a call id if the debugger stopped the call and then became unreachable.
type hookGate interface {
	BeforeCall(ctx context.Context, c debug.Call) (callID string, d debug.Decision, err error)
	AfterToolUse(ctx context.Context, session, toolUseID string, o debug.CallOutcome) (debug.Decision, error)
}

type hookInput struct {
	Event     string          `json:"hook_event_name"`
	SessionID string          `json:"session_id"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	ToolUseID string          `json:"tool_use_id"`
	Response  json.RawMessage `json:"tool_response"`
	Error     string          `json:"error"`
	CWD       string          `json:"cwd"`
	Path      string          `json:"transcript_path"`
}

const maxHookInputBytes = 64 << 20

// answerToolUseHook answers one event (PreToolUse, PostToolUse or PostToolUseFailure; others are ignored) with the debugger's
// decision. If the debugger changes nothing, it prints nothing: the CLI's own permission rules apply.
func answerToolUseHook(ctx context.Context, debugger hookGate, stdin io.Reader, stdout io.Writer) error {
	data, err := io.ReadAll(io.LimitReader(stdin, maxHookInputBytes+1))
	if err != nil {
		return fmt.Errorf("reading the hook's input: %w", err)
	}
	if len(data) > maxHookInputBytes {
		return fmt.Errorf("the hook's input is longer than %d bytes", maxHookInputBytes)
	}
	var in hookInput
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("the hook's input is not a JSON object: %w", err)
	}
	var out *protocol.HookOutput
	switch in.Event {
	case "PreToolUse":
		out, err = answerPreToolUseHook(ctx, debugger, in)
	case "PostToolUse", "PostToolUseFailure":
		out, err = answerPostToolUseHook(ctx, debugger, in)
	}
	if err != nil || out == nil {
		return err
	}
	line, err := protocol.Marshal(out)
	if err != nil {
		return fmt.Errorf("encoding the hook's output: %w", err)
	}
	_, err = fmt.Fprintf(stdout, "%s\n", line)
	return err
}

func answerPreToolUseHook(ctx context.Context, debugger hookGate, in hookInput) (output *protocol.HookOutput, err error) {
	site, err := protocol.Marshal(map[string]string{"cwd": in.CWD, "transcript_path": in.Path})
	if err != nil {
		return nil, err
	}
	callID, d, err := debugger.BeforeCall(ctx, debug.Call{
		Tool: in.ToolName, Input: in.ToolInput, Session: in.SessionID, ToolUseID: in.ToolUseID, Client: debug.ClientAgentHook, CallSite: site,
	})
	switch {
	case err != nil && (callID == "" || ctx.Err() != nil):
		return nil, err
	case err != nil: // the call was stopped, and the debugger is no longer reachable
		d = debug.Decision{Action: debug.ActionRaise, Message: "debugger: " + err.Error()}
	}
	specific := &protocol.HookSpecificOutput{HookEventName: in.Event}
	var o debug.CallOutcome
	switch d.Action {
	case debug.ActionModify:
		specific.UpdatedInput = d.Input
		return &protocol.HookOutput{Specific: specific}, nil
	case debug.ActionRaise:
		specific.PermissionDecisionReason = d.Message
		o = debug.CallOutcome{Failed: true, Error: d.Message, ErrorType: d.Type}
	case debug.ActionSkip:
		// A hook cannot return a result: the agent receives it as the reason why the tool did not run.
		specific.PermissionDecisionReason = debug.ReplacementResultText(d.Result)
		o = debug.CallOutcome{Result: d.Result}
	default:
		return output, nil
	}
	specific.PermissionDecision = "deny"
	// No other event follows a denial, so the call is completed here. An error does not change the decision.
	_, _ = debugger.AfterToolUse(ctx, in.SessionID, in.ToolUseID, o)
	return &protocol.HookOutput{Specific: specific}, nil
}

func answerPostToolUseHook(ctx context.Context, debugger hookGate, in hookInput) (output *protocol.HookOutput, err error) {
	o := debug.CallOutcome{Result: in.Response, Failed: in.Event == "PostToolUseFailure", Error: in.Error}
	d, err := debugger.AfterToolUse(ctx, in.SessionID, in.ToolUseID, o)
	if err != nil {
		return nil, err
	}
	switch {
	case d.Action == debug.ActionModify && strings.HasPrefix(in.ToolName, "mcp__"):
		return &protocol.HookOutput{Specific: &protocol.HookSpecificOutput{HookEventName: in.Event, UpdatedMCPToolOutput: d.Result}}, nil
	case d.Action == debug.ActionModify:
		return &protocol.HookOutput{Specific: &protocol.HookSpecificOutput{HookEventName: in.Event, UpdatedToolOutput: d.Result}}, nil
	case d.Action == debug.ActionRaise:
		return &protocol.HookOutput{Decision: "block", Reason: d.Message}, nil
	}
	return output, nil
}
