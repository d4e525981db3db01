// Package mcptest provides a stdio MCP server for tests that misbehaves on demand.
//
// A test binary runs [Serve] in a child process, for example from TestMain, and connects a client to it. Apart from the
// fault of its mode, the server follows the protocol and answers in order. It uses no MCP library, so it can break the
// protocol in ways that a library would prevent.
package mcptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Options configure a server.
type Options struct {
	Mode    string // one of FaultModeNames; "ok" has no fault
	In      io.Reader
	Out     io.WriteCloser
	Err     io.Writer
	Log     io.Writer // receives every line as it arrives; may be nil
	Environ []string  // result of the tool of mode "env"
	Count   int       // how many notifications, pages or megabytes a mode produces; 0 means the default of the mode
}

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params struct {
		Name      string          `json:"name"`
		Cursor    string          `json:"cursor"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		ProtocolVersion string          `json:"protocolVersion"`
		RequestState    string          `json:"requestState"`
		Responses       json.RawMessage `json:"inputResponses"`
	} `json:"params,omitzero"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}

type server struct {
	Options
	exit int // exit status of the process, or exitPending

	mu               sync.Mutex // serializes lines on Out
	hasExtraTool     bool       // the list of tools has changed
	calls            sync.WaitGroup
	responses        []string // responses to the server's own requests (mode s2c)
	pendingResponses int      // number of responses that are not sent yet
	pending          json.RawMessage
}

// exitPending is the exit status of a server that is still running.
const exitPending = -1

// Serve handles messages until EOF, or until the mode makes the server exit, and returns the exit status of the process.
func Serve(o Options) int {
	s, in := &server{Options: o, exit: exitPending}, bufio.NewReader(o.In)
	for s.applyModeBeforeFirstMessage(); s.exit == exitPending; {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if s.Log != nil {
				fmt.Fprintf(s.Log, "%s\n", line)
			}
			var m message
			if json.Unmarshal(line, &m) == nil {
				s.handle(m)
			}
		}
		if err != nil && s.exit == exitPending {
			s.calls.Wait()
			s.exitOrHangAtInputEOF()
		}
	}
	return s.exit
}

func (s *server) send(v any) {
	line, err := plainjson.Marshal(v)
	if err != nil {
		fmt.Fprintln(s.Err, "mcptest:", err)
		return
	}
	s.write(append(line, '\n'))
}

func (s *server) write(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.Out.Write(b) // if the client has exited, reading the input reports it
}

func (s *server) reply(id json.RawMessage, result any) {
	s.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func (s *server) fail(id json.RawMessage, code int, text string) {
	s.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

func (s *server) notify(method string, params any) {
	s.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func textResult(format string, args ...any) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf(format, args...)}}}
}

func toolDefinitionWithEmptySchema(toolName string) map[string]any {
	return map[string]any{"name": toolName, "description": "the tool " + toolName, "inputSchema": map[string]any{"type": "object"}}
}

func (s *server) handle(m message) {
	switch {
	case m.Method == "":
		s.handleResponse(m)
	case m.ID == nil:
	case m.Method == "initialize":
		s.initialize(m)
	case m.Method == "ping":
		s.reply(m.ID, struct{}{})
	case m.Method == "tools/list":
		s.list(m)
	case m.Method == "tools/call":
		s.call(m)
	default:
		s.answerUnknownMethod(m)
	}
}

func (s *server) call(m message) {
	if fault, ok := callFaults[s.Mode]; ok {
		fault(s, m)
		return
	}
	if answer, ok := callAnswers[s.Mode]; ok {
		s.write([]byte(strings.TrimSuffix(`{"jsonrpc":"2.0","id":`+string(m.ID)+","+answer, ",") + "}\n"))
		return
	}
	switch m.Params.Name {
	case "sleep":
		s.respondAfterRequestedSleep(m)
	case "fail":
		r := textResult("it failed")
		r["isError"] = true
		s.reply(m.ID, r)
	case "empty":
		s.reply(m.ID, map[string]any{"content": []any{}})
	case "crash":
		s.exit = 7
	default:
		s.echo(m)
	}
}

// echo returns its argument "text".
func (s *server) echo(m message) {
	var args struct{ Text string }
	_ = json.Unmarshal(m.Params.Arguments, &args) // a missing text is empty
	s.reply(m.ID, textResult("echo: %s", args.Text))
}

// respondAfterRequestedSleep responds after the argument "ms" without blocking other calls.
func (s *server) respondAfterRequestedSleep(toolCall message) {
	var args struct{ MS int }
	_ = json.Unmarshal(toolCall.Params.Arguments, &args) // a missing ms is 0
	s.calls.Go(func() {
		time.Sleep(time.Duration(args.MS) * time.Millisecond)
		s.reply(toolCall.ID, textResult("slept %d", args.MS))
	})
}
