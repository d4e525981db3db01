// Package proxy runs between an MCP client and a stdio server and pauses tool
// calls at the debugger's breakpoints.
//
// All other messages pass through unchanged and in order, and a paused call
// does not delay them.
package proxy

import (
	"bufio"
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

// Options configure a proxy. Gate, Name, Command, Stdin and Stdout must be set.
type Options struct {
	Gate    debug.Gate
	Name    string // tools are mcp__Name__tool towards the debugger
	Command proc.Command
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // the server's standard error; nil = dropped
	PID     int       // of this process
	Started float64   // of this process, Unix seconds
}

// finishTime is how long calls under way may take after the end of input.
const finishTime = time.Second

// maxMessage bounds one message in either direction.
const maxMessage = 96 << 20

// Run starts the server and passes messages until the client's end of input,
// the server's end or ctx's. The server is gone when it returns, but a read
// from Stdin may go on.
func Run(ctx context.Context, o Options) error {
	if !mcp.ValidName(o.Name) {
		return fmt.Errorf("server name %q: use letters, digits, _ and -", o.Name)
	}
	child, err := proc.Start(ctx, proc.Options{Command: o.Command, Stderr: o.Stderr, StdinLimit: 2 * maxMessage, Grace: finishTime})
	if err != nil {
		return err
	}
	p := &proxy{o: o, child: child, calls: map[string]*call{}, lists: map[string]bool{}, tools: map[string]tool{}}
	calls, stopCalls := context.WithCancel(ctx)
	defer stopCalls()

	input := make(chan error, 1)
	go func() { input <- p.fromClient(calls) }() // ends with Stdin
	output := make(chan error, 1)
	go func() { output <- p.fromServer(calls) }() // ends with the server

	serverEnded := false
	select {
	case err = <-input:
		p.finish(stopCalls)
	case err = <-output:
		serverEnded = true
		if err == nil {
			err = errors.New("the server ended")
		}
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
		if exit, ok := child.Exit(); ok {
			err = fmt.Errorf("%w (%s)", err, exit)
		}
	}
	return err
}

// proxy is one running pair of client and server.
type proxy struct {
	o        Options
	child    *proc.Process
	handlers sync.WaitGroup // of tool calls

	out sync.Mutex // held while a message is written to the client

	mu    sync.Mutex
	ended bool             // no new handlers
	calls map[string]*call // by request id as written
	lists map[string]bool  // ids of tools/list requests
	tools map[string]tool  // by canonical name
}

// tool is what the server's list says of one.
type tool struct {
	name   string // the server's own
	output outputSchema
}

// call is a tool call under way.
type call struct {
	sent   bool // the server has it
	answer chan json.RawMessage
	cancel context.CancelFunc
}

// message is what of a JSON-RPC message counts here.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// finish lets calls under way end, for a while, and cancels the rest.
func (p *proxy) finish(cancel context.CancelFunc) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends when the calls do, which cancel sees to
		p.handlers.Wait()
		close(done)
	}()
	timer := time.NewTimer(finishTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		cancel()
		<-done
	}
}

// lines hands the lines of r to each, without copying them.
func lines(r io.Reader, each func(line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxMessage)
	for s.Scan() {
		if err := each(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}

func (p *proxy) fromClient(ctx context.Context) error {
	return lines(p.o.Stdin, func(line []byte) error {
		var m message
		if json.Unmarshal(line, &m) != nil {
			return p.toServer(line)
		}
		switch {
		case m.Method == "tools/call" && len(m.ID) > 0:
			p.begin(ctx, m, append([]byte(nil), line...))
			return nil
		case m.Method == "tools/list" && len(m.ID) > 0:
			p.mu.Lock()
			p.lists[string(m.ID)] = true
			p.mu.Unlock()
		case m.Method == "notifications/cancelled" && p.cancelled(m.Params):
			return nil
		}
		return p.toServer(line)
	})
}

// begin handles a tool call beside all other messages.
func (p *proxy) begin(ctx context.Context, m message, line []byte) {
	ctx, cancel := context.WithCancel(ctx)
	c := &call{answer: make(chan json.RawMessage, 1), cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		cancel()
		return
	}
	p.calls[string(m.ID)] = c
	p.handlers.Go(func() { // ends with the call or with ctx
		defer cancel()
		p.handle(ctx, c, m, line)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.calls, string(m.ID))
	})
}

// cancelled ends a call that the client gave up, and reports whether the
// server need not hear of it.
func (p *proxy) cancelled(params json.RawMessage) bool {
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
	return !c.sent
}

// handle runs one tool call through the gate.
func (p *proxy) handle(ctx context.Context, c *call, m message, line []byte) {
	var in params
	if err := json.Unmarshal(m.Params, &in); err != nil { // the server knows what to say
		p.forward(ctx, c, m, line)
		return
	}
	name := mcp.CanonicalName(p.o.Name, in.Name)
	id, d, err := p.o.Gate.Before(ctx, debug.Call{
		Tool: name, Input: in.Arguments, ToolUseID: in.Meta.ToolUseID,
		Client: debug.ClientProxy, PID: p.o.PID, Started: p.o.Started,
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.reply(m.ID, errorResult("debugger: "+err.Error()))
		return
	}
	var answer json.RawMessage
	if d.Action == debug.ActionSkip {
		answer = encode(m.ID, p.shape(name, d.Result, protocol.Content{Text: debug.ResultText(d.Result)}))
	} else {
		answer = p.carryOut(ctx, c, m, line, d)
	}
	o := outcomeOf(answer)
	if answer == nil {
		o = debug.Outcome{Failed: true, Error: "cancelled"}
	}
	d, err = p.o.Gate.After(ctx, id, o)
	switch {
	case answer == nil || ctx.Err() != nil:
	case err != nil || d.Action == debug.ActionContinue:
		p.toClient(answer)
	case d.Action == debug.ActionRaise:
		p.reply(m.ID, errorResult(d.Message))
	case d.Action == debug.ActionModify:
		p.reply(m.ID, p.shape(name, d.Result, debug.EditedContent(d.Result)))
	}
}

// params are those of tools/call.
type params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		ToolUseID string `json:"claudecode/toolUseId"`
	} `json:"_meta"`
}

// carryOut runs a call that is not skipped as it was decided and returns the answer for the
// client; nil = there is none.
func (p *proxy) carryOut(ctx context.Context, c *call, m message, line []byte, d debug.Decision) json.RawMessage {
	var err error
	switch d.Action {
	case debug.ActionRaise:
		return encode(m.ID, errorResult(d.Message))
	case debug.ActionModify:
		line, err = rewrite(line, "arguments", d.Input)
	case debug.ActionReplace:
		name, ok := p.rawName(d.Tool)
		if !ok {
			return encode(m.ID, errorResult(fmt.Sprintf("debugger: server %s has no tool %s to run instead", p.o.Name, d.Tool)))
		}
		var quoted []byte
		if quoted, err = json.Marshal(name); err == nil {
			line, err = rewrite(line, "name", quoted)
		}
	default: // it runs as it is
	}
	if err != nil {
		return encode(m.ID, errorResult("debugger: "+err.Error()))
	}
	return p.exchange(ctx, c, m, line)
}

// shape makes the result of a tool that a decision made up.
func (p *proxy) shape(canonical string, value json.RawMessage, c protocol.Content) toolResult {
	p.mu.Lock()
	schema := p.tools[canonical].output
	p.mu.Unlock()
	return schema.shape(value, c)
}

// rawName is the server's own name of a tool.
func (p *proxy) rawName(canonical string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.tools[canonical]; ok {
		return t.name, true
	}
	return strings.CutPrefix(canonical, mcp.CanonicalName(p.o.Name, ""))
}

// forward passes a call and its answer on as they are.
func (p *proxy) forward(ctx context.Context, c *call, m message, line []byte) {
	if answer := p.exchange(ctx, c, m, line); answer != nil {
		p.toClient(answer)
	}
}

// exchange sends a call to the server and waits for its answer; nil = there
// will be none.
func (p *proxy) exchange(ctx context.Context, c *call, m message, line []byte) json.RawMessage {
	p.mu.Lock()
	c.sent = true
	p.mu.Unlock()
	if err := p.toServer(line); err != nil {
		return encode(m.ID, errorResult("debugger: "+err.Error()))
	}
	select {
	case answer := <-c.answer:
		return answer
	case <-ctx.Done():
		return nil
	}
}

func (p *proxy) fromServer(ctx context.Context) error {
	err := lines(p.child.Stdout(), func(line []byte) error {
		var m message
		if json.Unmarshal(line, &m) != nil || m.Method != "" || len(m.ID) == 0 {
			p.toClient(line)
			return nil
		}
		p.mu.Lock()
		c, isCall := p.calls[string(m.ID)]
		isCall = isCall && c.sent
		isList := p.lists[string(m.ID)]
		delete(p.lists, string(m.ID))
		p.mu.Unlock()
		switch {
		case isCall:
			select {
			case c.answer <- append(json.RawMessage(nil), line...):
			default: // a second answer to one call
			}
			return nil
		case isList:
			p.register(ctx, m.Result)
		}
		p.toClient(line)
		return nil
	})
	if errors.Is(err, io.ErrClosedPipe) || p.stopped() {
		return nil
	}
	return err
}

func (p *proxy) stopped() bool {
	_, ended := p.child.Exit()
	return ended
}

// register tells the debugger of the server's tools. That it fails is no
// reason to keep them from the client: the calls will show it.
func (p *proxy) register(ctx context.Context, result json.RawMessage) {
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
		name := mcp.CanonicalName(p.o.Name, t.Name)
		p.tools[name] = tool{name: t.Name, output: outputSchemaOf(t.OutputSchema)}
		tools = append(tools, protocol.Tool{
			Name: name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Server: p.o.Name, RawName: t.Name,
		})
	}
	p.mu.Unlock()
	if err := p.o.Gate.Register(ctx, tools); err != nil && p.o.Stderr != nil {
		fmt.Fprintf(p.o.Stderr, "debugger: %v\n", err)
	}
}

func (p *proxy) toServer(line []byte) error {
	_, err := p.child.Stdin().Write(append(append(make([]byte, 0, len(line)+1), line...), '\n'))
	return err
}

func (p *proxy) toClient(line []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	_, _ = p.o.Stdout.Write(append(append(make([]byte, 0, len(line)+1), line...), '\n')) // when it fails, its input ends too
}

func (p *proxy) reply(id json.RawMessage, r toolResult) { p.toClient(encode(id, r)) }
