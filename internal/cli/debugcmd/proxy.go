package debugcmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/debug"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// proxyOptions configure a proxy. Gate, Name, Command, Stdin and Stdout must be set.
type proxyOptions struct {
	Gate    debug.ToolCallGate
	Name    string // tools are named mcp__Name__tool in the debugger
	Command proc.Command
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // the server's standard error; nil means discarded
	PID     int       // process id of this process
	Started float64   // start time of this process, in Unix seconds
}

const proxyFinishCallsTimeout = time.Second

const maxMessageBytes = 96 << 20

// runProxy forwards messages between an MCP client and a stdio server, which it starts, and pauses tool calls at the
// debugger's breakpoints. All other messages are forwarded unchanged and in order, and a paused call does not delay
// them. It returns at EOF of the client's input, when the server exits or when ctx is cancelled. The server has
// exited when runProxy returns, but a read from Stdin may still be blocked.
func runProxy(ctx context.Context, o proxyOptions) error {
	if !mcp.IsValidServerName(o.Name) {
		return fmt.Errorf("invalid server name %q: use letters, digits, _ and -", o.Name)
	}
	child, err := proc.Start(ctx, proc.Options{Command: o.Command, Stderr: o.Stderr, StdinLimit: 2 * maxMessageBytes, Grace: proxyFinishCallsTimeout})
	if err != nil {
		return err
	}
	p := &mcpProxy{options: o, child: child, calls: map[string]*pendingCall{}, pendingLists: map[string]bool{}, tools: map[string]proxiedTool{}}
	calls, stopCalls := context.WithCancel(ctx)
	defer stopCalls()

	input := make(chan error, 1)
	go func() { input <- p.forwardClientMessages(calls) }() // returns at EOF of Stdin
	output := make(chan error, 1)
	go func() { output <- p.forwardServerMessages(calls) }() // returns when the server exits

	serverEnded := false
	select {
	case err = <-input:
		p.drainCalls(stopCalls)
	case err = <-output:
		serverEnded = true
		err = cmp.Or(err, errors.New("the MCP server exited while its stdin was still open"))
	case <-ctx.Done():
	}
	stopCalls()
	child.Stop(ctx)
	if !serverEnded {
		if e := <-output; e != nil && err == nil {
			err = e
		}
	}
	p.handlers.Wait()
	if serverEnded {
		if exit, ok := child.ExitStatus(); ok {
			err = fmt.Errorf("%w (%s)", err, exit)
		}
	}
	return err
}

type mcpProxy struct {
	options  proxyOptions
	child    *proc.Process
	handlers sync.WaitGroup // handlers of tool calls

	writeLock sync.Mutex // held while a message is written to the client

	mu           sync.Mutex
	closing      bool                    // no new handler may start
	calls        map[string]*pendingCall // by request id, as the client wrote it
	pendingLists map[string]bool         // ids of tools/list requests
	tools        map[string]proxiedTool  // tools by canonical name
}

type proxiedTool struct {
	name   string // name that the server uses for the tool
	output toolOutputSchema
}

type pendingCall struct {
	isSent bool
	answer chan json.RawMessage
	cancel context.CancelFunc
}

type proxiedMCPMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (p *mcpProxy) drainCalls(cancelCalls context.CancelFunc) {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { // returns when the calls have returned; cancel makes them return
		p.handlers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(proxyFinishCallsTimeout):
		cancelCalls()
		<-done
	}
}

// forEachLine calls each with every line of r. A line is valid only during the call, because it is not copied.
func forEachLine(r io.Reader, each func(line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxMessageBytes)
	for s.Scan() {
		if err := each(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}

func (p *mcpProxy) forwardClientMessages(ctx context.Context) error {
	return forEachLine(p.options.Stdin, func(line []byte) error {
		var m proxiedMCPMessage
		if json.Unmarshal(line, &m) != nil {
			return p.writeLineToServer(line)
		}
		switch {
		case m.Method == "tools/call" && len(m.ID) > 0:
			p.interceptCallInGoroutine(ctx, m, append([]byte(nil), line...))
			return nil
		case m.Method == "tools/list" && len(m.ID) > 0:
			p.mu.Lock()
			p.pendingLists[string(m.ID)] = true
			p.mu.Unlock()
		case m.Method == "notifications/cancelled" && p.cancelCall(m.Params):
			return nil
		}
		return p.writeLineToServer(line)
	})
}

func (p *mcpProxy) interceptCallInGoroutine(ctx context.Context, m proxiedMCPMessage, line []byte) {
	ctx, cancel := context.WithCancel(ctx)
	c := &pendingCall{answer: make(chan json.RawMessage, 1), cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		cancel()
		return
	}
	p.calls[string(m.ID)] = c
	p.handlers.Go(func() { // returns when the call does or ctx is cancelled
		defer cancel()
		p.interceptAndAnswerCall(ctx, c, m, line)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, string(m.ID))
	})
}

// cancelCall ends a call that the client cancelled. It returns true if the server never received the call.
func (p *mcpProxy) cancelCall(params json.RawMessage) (neverSent bool) {
	var in struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &in) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.calls[string(in.ID)]
	if !ok {
		return false
	}
	c.cancel()
	return !c.isSent
}

func (p *mcpProxy) interceptAndAnswerCall(ctx context.Context, call *pendingCall, request proxiedMCPMessage, requestLine []byte) {
	var in callParams
	if err := json.Unmarshal(request.Params, &in); err != nil { // the server reports invalid parameters itself
		if answer := p.callServer(ctx, call, request, requestLine); answer != nil {
			p.writeLineToClient(answer)
		}
		return
	}
	name := mcp.CanonicalToolName(p.options.Name, in.Name)
	id, d, err := p.options.Gate.BeforeCall(ctx, debug.Call{
		Tool: name, Input: in.Arguments, ToolUseID: in.Meta.ToolUseID,
		Client: debug.ClientProxy, PID: p.options.PID, Started: p.options.Started,
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.writeResultToClient(request.ID, errorResult("debugger: "+err.Error()))
		return
	}
	var answer json.RawMessage
	if d.Action == debug.ActionSkip {
		answer = encodeResponse(request.ID, p.buildResult(name, d.Result, protocol.Content{Text: debug.ReplacementResultText(d.Result)}))
	} else {
		answer = p.runCallAsDecided(ctx, call, request, requestLine, d)
	}
	o := outcomeOf(answer)
	if answer == nil {
		o = debug.CallOutcome{Failed: true, Error: "cancelled"}
	}
	d, err = p.options.Gate.AfterCall(ctx, id, o)
	switch {
	case answer == nil || ctx.Err() != nil:
	case err == nil && d.Action == debug.ActionRaise:
		p.writeResultToClient(request.ID, errorResult(d.Message))
	case err == nil && d.Action == debug.ActionModify:
		p.writeResultToClient(request.ID, p.buildResult(name, d.Result, debug.EditedContent(d.Result)))
	default:
		p.writeLineToClient(answer)
	}
}

type callParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		ToolUseID string `json:"claudecode/toolUseId"`
	} `json:"_meta"`
}

// runCallAsDecided applies a decision other than skip. It returns the response for the client; nil if ctx ended.
func (p *mcpProxy) runCallAsDecided(ctx context.Context, call *pendingCall, request proxiedMCPMessage, requestLine []byte, decision debug.Decision) (response json.RawMessage) {
	var err error
	switch decision.Action {
	case debug.ActionRaise:
		return encodeResponse(request.ID, errorResult(decision.Message))
	case debug.ActionModify:
		requestLine, err = withReplacedParam(requestLine, "arguments", decision.Input)
	case debug.ActionRunOtherTool:
		name, ok := p.serverToolName(decision.Tool)
		if !ok {
			return encodeResponse(request.ID, errorResult(fmt.Sprintf("debugger: server %s has no tool %s to run instead", p.options.Name, decision.Tool)))
		}
		var quoted []byte
		if quoted, err = json.Marshal(name); err == nil {
			requestLine, err = withReplacedParam(requestLine, "name", quoted)
		}
	default: // the call runs unchanged
	}
	if err != nil {
		return encodeResponse(request.ID, errorResult("debugger: "+err.Error()))
	}
	return p.callServer(ctx, call, request, requestLine)
}

func (p *mcpProxy) buildResult(canonicalName string, value json.RawMessage, content protocol.Content) toolResult {
	p.mu.Lock()
	schema := p.tools[canonicalName].output
	p.mu.Unlock()
	return schema.buildResult(value, content)
}

func (p *mcpProxy) serverToolName(canonicalName string) (name string, ofThisServer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.tools[canonicalName]; ok {
		return t.name, true
	}
	return strings.CutPrefix(canonicalName, mcp.CanonicalToolName(p.options.Name, ""))
}

// callServer sends a call to the server and returns the response; nil means that ctx ended first.
func (p *mcpProxy) callServer(ctx context.Context, call *pendingCall, request proxiedMCPMessage, requestLine []byte) json.RawMessage {
	p.mu.Lock()
	call.isSent = true
	p.mu.Unlock()
	if err := p.writeLineToServer(requestLine); err != nil {
		return encodeResponse(request.ID, errorResult("debugger: "+err.Error()))
	}
	select {
	case answer := <-call.answer:
		return answer
	case <-ctx.Done():
		return nil
	}
}

func (p *mcpProxy) forwardServerMessages(ctx context.Context) error {
	err := forEachLine(p.child.Stdout(), func(line []byte) error {
		var m proxiedMCPMessage
		if json.Unmarshal(line, &m) != nil || m.Method != "" || len(m.ID) == 0 {
			p.writeLineToClient(line)
			return nil
		}
		p.mu.Lock()
		c, isCall := p.calls[string(m.ID)]
		isCall = isCall && c.isSent
		isList := p.pendingLists[string(m.ID)]
		delete(p.pendingLists, string(m.ID))
		p.mu.Unlock()
		switch {
		case isCall:
			select {
			case c.answer <- append(json.RawMessage(nil), line...):
			default: // ignores a second response to the same call
			}
			return nil
		case isList:
			p.registerTools(ctx, m.Result)
		}
		p.writeLineToClient(line)
		return nil
	})
	if _, ended := p.child.ExitStatus(); ended || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// registerTools reports the server's tools to the debugger. If that fails, the client still gets the tools.
func (p *mcpProxy) registerTools(ctx context.Context, result json.RawMessage) {
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			Title       string          `json:"title"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`

			OutputSchema json.RawMessage `json:"outputSchema"`
		} `json:"tools"`
	}
	if json.Unmarshal(result, &list) != nil {
		return
	}
	var tools []protocol.Tool
	p.mu.Lock()
	for _, t := range list.Tools {
		name := mcp.CanonicalToolName(p.options.Name, t.Name)
		p.tools[name] = proxiedTool{name: t.Name, output: outputSchemaOf(t.OutputSchema)}
		tools = append(tools, protocol.Tool{
			Name: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Server: p.options.Name, RawName: t.Name,
		})
	}
	p.mu.Unlock()
	if err := p.options.Gate.Register(ctx, tools); err != nil && p.options.Stderr != nil {
		fmt.Fprintf(p.options.Stderr, "debugger: %v\n", err)
	}
}

func (p *mcpProxy) writeLineToServer(line []byte) error {
	_, err := p.child.Stdin().Write(append(append(make([]byte, 0, len(line)+1), line...), '\n'))
	return err
}

func (p *mcpProxy) writeLineToClient(line []byte) {
	p.writeLock.Lock()
	defer p.writeLock.Unlock()
	_, _ = p.options.Stdout.Write(append(append(make([]byte, 0, len(line)+1), line...), '\n')) // if the write fails, the client's input also ends
}

func (p *mcpProxy) writeResultToClient(id json.RawMessage, r toolResult) {
	p.writeLineToClient(encodeResponse(id, r))
}
