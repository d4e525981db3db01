package scripts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// mcpServer is the MCP server behind the captured runs: server `srv`, one tool per kind of result. It implements
// JSON-RPC over lines without an MCP library, so that it cannot share a bug with the tested client. Scripts start it
// as `mcpsrv`; environment variables control it:
//
//	MODE    ok (default); crash: exit 1 at once; everything: the names of the public reference server
//	TOOLS   names of further tools, separated by blanks; they answer like echo
//	MCPLOG  file that every received line is appended to
type mcpServer struct {
	mode         string
	extra        []string
	log          io.Writer
	tools        []mcpTool
	calls        sync.WaitGroup
	mu           sync.Mutex
	out          *bufio.Writer
	requestCount int
	answer       map[string]chan json.RawMessage
}

type mcpTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema map[string]any `json:"inputSchema"`
	Annotations map[string]any `json:"annotations,omitempty"`
	call        func(s *mcpServer, args map[string]any, token any) (any, error)
}

type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func mcpServerMain() {
	s := &mcpServer{mode: os.Getenv("MODE"), extra: strings.Fields(os.Getenv("TOOLS")), log: io.Discard, out: bufio.NewWriter(os.Stdout), answer: map[string]chan json.RawMessage{}}
	if s.mode == "crash" {
		fmt.Fprintln(os.Stderr, "crashing as told")
		os.Exit(1)
	}
	if name := os.Getenv("MCPLOG"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		s.log = f
	}
	s.tools = s.catalogue()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		fmt.Fprintf(s.log, "%s\n", lines.Bytes())
		var m rpcMessage
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			s.receive(m)
		}
	}
}

func (s *mcpServer) receive(m rpcMessage) {
	switch {
	case m.Method == "" && m.ID != nil:
		s.mu.Lock()
		c := s.answer[string(m.ID)]
		s.mu.Unlock()
		if c != nil {
			c <- append(m.Result, m.Error...)
		}
	case m.ID == nil: // a notification
	case m.Method == "tools/call":
		s.calls.Go(func() { s.callTool(m) })
	default:
		result, known := s.reply(m.Method)
		if !known {
			s.fail(m.ID, -32601, "Method not found")
			return
		}
		s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

func (s *mcpServer) reply(method string) (any, bool) {
	name := "srv"
	if s.mode == "everything" {
		name = "mcp-servers/everything"
	}
	switch method {
	case "initialize":
		return map[string]any{
			"protocolVersion": "2025-11-25",
			"serverInfo":      map[string]any{"name": name, "version": "1.0.0"},
			"capabilities":    map[string]any{"tools": map[string]any{"listChanged": true}, "resources": map[string]any{}, "prompts": map[string]any{}, "logging": map[string]any{}},
		}, true
	case "tools/list":
		s.mu.Lock()
		defer s.mu.Unlock()
		return map[string]any{"tools": s.tools}, true
	case "resources/list":
		return map[string]any{"resources": []any{map[string]any{"uri": "file:///a.txt", "name": "a", "mimeType": "text/plain"}}}, true
	case "resources/templates/list":
		return map[string]any{"resourceTemplates": []any{}}, true
	case "prompts/list":
		return map[string]any{"prompts": []any{map[string]any{"name": "greet", "description": "Say hello"}}}, true
	case "ping", "logging/setLevel":
		return map[string]any{}, true
	}
	return nil, false
}

func (s *mcpServer) callTool(m rpcMessage) {
	var p struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Meta      struct {
			Token any `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		s.fail(m.ID, -32602, err.Error())
		return
	}
	if log := os.Getenv("CALLS"); log != "" { // the parameters of the last call
		if err := os.WriteFile(log, m.Params, 0o600); err != nil {
			s.fail(m.ID, -32603, err.Error())
			return
		}
	}
	s.mu.Lock()
	tools := s.tools
	s.mu.Unlock()
	for _, t := range tools {
		if t.Name != p.Name {
			continue
		}
		result, err := t.call(s, p.Arguments, p.Meta.Token)
		if err != nil {
			s.fail(m.ID, -32602, err.Error())
			return
		}
		s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		return
	}
	s.fail(m.ID, -32602, "Unknown tool: "+p.Name)
}

func (s *mcpServer) fail(id json.RawMessage, code int, message string) {
	s.send(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": message}})
}

func (s *mcpServer) notify(method string, params map[string]any) {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil { // the real CLI ignores a message whose params are null
		message["params"] = params
	}
	s.send(message)
}

func (s *mcpServer) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Write(append(b, '\n'))
	s.out.Flush()
}

// ask sends a request to the client and returns its result or error as JSON.
func (s *mcpServer) ask(method string, params map[string]any) string {
	s.mu.Lock()
	s.requestCount++
	id := fmt.Sprintf(`"ask-%d"`, s.requestCount)
	c := make(chan json.RawMessage, 1)
	s.answer[id] = c
	s.mu.Unlock()
	s.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	return string(<-c)
}

func (s *mcpServer) catalogue() []mcpTool {
	if s.mode == "everything" {
		s.extra = append(s.extra, strings.Fields("get-annotated-message get-env get-resource-links get-resource-reference get-roots-list get-structured-content get-sum get-tiny-image gzip-file-as-resource simulate-research-query toggle-simulated-logging toggle-subscriber-updates trigger-elicitation-request trigger-long-running-operation trigger-url-elicitation")...)
		return s.namedTools(append(s.extra, "echo"), "Echo: ", "message")
	}
	tool := func(name string, call func(s *mcpServer, args map[string]any, token any) (any, error)) mcpTool {
		return mcpTool{Name: name, Description: "The tool " + name + ".", InputSchema: map[string]any{"type": "object"}, call: call}
	}
	fixed := func(name string, result map[string]any) mcpTool {
		return tool(name, func(*mcpServer, map[string]any, any) (any, error) { return result, nil })
	}
	asking := func(name, method string, params map[string]any) mcpTool {
		return tool(name, func(s *mcpServer, _ map[string]any, _ any) (any, error) {
			return content(textBlock(s.ask(method, params))), nil
		})
	}
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	tools := []mcpTool{
		fixed("audio", content(map[string]any{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})),
		fixed("blobres", content(map[string]any{"type": "resource", "resource": map[string]any{"uri": "file:///b.bin", "mimeType": "application/octet-stream", "blob": "AAEC"}})),
		fixed("empty", content()),
		fixed("fail", map[string]any{"content": []any{textBlock("tool says no")}, "isError": true}),
		fixed("image", content(map[string]any{"type": "image", "data": pixel, "mimeType": "image/png"})),
		fixed("link", content(map[string]any{"type": "resource_link", "uri": "file:///l.txt", "name": "l", "description": "a link"})),
		fixed("multi", content(textBlock("one"), textBlock("two"))),
		fixed("odd.name/x y", content(textBlock("odd"))),
		fixed("resource", content(map[string]any{"type": "resource", "resource": map[string]any{"uri": "file:///a.txt", "mimeType": "text/plain", "text": "resource body"}})),
		fixed("structonly", map[string]any{"content": []any{}, "structuredContent": map[string]any{"b": 2}}),
		fixed("structured", map[string]any{"content": []any{textBlock("a is one")}, "structuredContent": map[string]any{"a": 1}}),
		asking("elicit", "elicitation/create", map[string]any{"message": "Name?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}),
		asking("roots", "roots/list", map[string]any{}),
		asking("sample", "sampling/createMessage", map[string]any{"messages": []any{}, "maxTokens": 1}),
		tool("addtool", (*mcpServer).addTool),
		tool("big", func(_ *mcpServer, args map[string]any, _ any) (any, error) {
			return content(textBlock(strings.Repeat("x", intOf(args["n"])))), nil
		}),
		tool("crash", func(*mcpServer, map[string]any, any) (any, error) { os.Exit(3); return nil, nil }),
		tool("log", func(s *mcpServer, _ map[string]any, _ any) (any, error) {
			s.notify("notifications/message", map[string]any{"level": "info", "data": "a line of log"})
			return content(textBlock("logged")), nil
		}),
		tool("progress", (*mcpServer).progress),
		tool("rpcerr", func(*mcpServer, map[string]any, any) (any, error) { return nil, fmt.Errorf("bad params from server") }),
		tool("sleep", func(_ *mcpServer, args map[string]any, _ any) (any, error) {
			<-time.After(time.Duration(intOf(args["ms"])) * time.Millisecond)
			return content(textBlock("slept")), nil
		}),
	}
	return append(tools, s.namedTools(append(s.extra, "echo"), "echo: ", "text")...)
}

// namedTools returns tools with these names that answer with the text of their argument key.
func (s *mcpServer) namedTools(names []string, prefix, key string) []mcpTool {
	var tools []mcpTool
	for _, name := range names {
		tools = append(tools, mcpTool{
			Name:        name,
			Description: "Gives the text back.",
			InputSchema: map[string]any{"type": "object", "properties": map[string]any{key: map[string]any{"type": "string"}}},
			call: func(_ *mcpServer, args map[string]any, _ any) (any, error) {
				return content(textBlock(fmt.Sprint(prefix, args[key]))), nil
			},
		})
	}
	return tools
}

func (s *mcpServer) addTool(map[string]any, any) (any, error) {
	s.mu.Lock()
	s.tools = append(s.tools, s.namedTools([]string{"added"}, "added: ", "text")...)
	s.mu.Unlock()
	s.notify("notifications/tools/list_changed", nil)
	return content(textBlock("added a tool")), nil
}

// progress reports n steps of ms milliseconds each.
func (s *mcpServer) progress(args map[string]any, token any) (any, error) {
	n, ms := intOf(args["n"]), intOf(args["ms"])
	for i := range n {
		<-time.After(time.Duration(ms) * time.Millisecond)
		s.notify("notifications/progress", map[string]any{"progressToken": token, "progress": i + 1, "total": n})
	}
	return content(textBlock("done")), nil
}

func content(blocks ...any) map[string]any {
	if blocks == nil {
		blocks = []any{}
	}
	return map[string]any{"content": blocks}
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

func intOf(v any) int {
	f, _ := v.(float64)
	return int(f)
}
