// Package toolserver serves the built-in tools to an MCP client, as `claude mcp serve` does. Calls
// run without permission checks. The result of a call is one text: the JSON of the tool's output.
package toolserver

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/builtin"
	"github.com/claudeless/claudeless/fixtures/wire"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configure Serve.
type Options struct {
	CWD     string   // absolute
	Environ []string // environment of commands ("K=V")
	Clock   builtin.ClockWithIDs
	Profile claudecode.Profile // version of the CLI, and the tools that this version lists
	In      io.Reader
	Out     io.Writer
}

// Serve serves one client until In or ctx ends. It offers the tools that init events list, except ToolSearch.
func Serve(ctx context.Context, o Options) error {
	tools, err := builtin.New(builtin.Options{CWD: o.CWD, Environ: o.Environ, Clock: o.Clock, Allowed: func(name string) bool { return o.listsTool(name) }})
	if err != nil {
		return err
	}
	defer tools.Close()
	return wire.ServeStdio(ctx, wire.StdioOptions{Server: builtinToolsServer{tools, o}, In: o.In, Out: o.Out})
}

func (o Options) listsTool(name string) bool {
	t := claudecode.ToolNamed(name)
	return t.Name == name && t.Listing == claudecode.InitListsToolAlways && name != "ToolSearch" && o.Profile.HasTool(name)
}

type builtinToolsServer struct {
	tools   *builtin.Tools
	options Options
}

func (s builtinToolsServer) Open(*wire.Session) (serverAsHandler wire.Handler) { return s }

// HandleNotification ignores notifications; package wire handles cancellations of calls.
func (builtinToolsServer) HandleNotification(string, json.RawMessage) {}

// HandleClose does nothing, because Serve closes the tools.
func (builtinToolsServer) HandleClose() {}

type listedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

type callResult struct {
	Content [1]protocol.TextBlock `json:"content"`
	IsError bool                  `json:"isError,omitempty"`
}

func (s builtinToolsServer) Handle(ctx context.Context, call *wire.Call) (any, error) {
	var params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
	}
	if len(call.Params) > 0 && json.Unmarshal(call.Params, &params) != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "Invalid params"}
	}
	switch call.Method {
	case "initialize":
		if !slices.Contains([]string{"2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18"}, params.ProtocolVersion) {
			params.ProtocolVersion = "2025-11-25"
		}
		return map[string]any{
			"protocolVersion": params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]bool{"listChanged": true}},
			"serverInfo": map[string]string{"name": "claude/tengu", "version": s.options.Profile.Version()},
		}, nil
	case "ping":
		return struct{}{}, nil
	case "tools/list":
		tools, err := s.tools.Tools(ctx)
		list := []listedTool{}
		for _, t := range tools {
			if s.options.listsTool(t.Name) {
				list = append(list, listedTool{t.Name, t.Description, t.InputSchema})
			}
		}
		return map[string]any{"tools": list}, err
	case "tools/call":
		if _, ok := s.tools.Tool(params.Name); !ok {
			return nil, &wire.Error{Code: wire.CodeInternal, Message: "Tool " + params.Name + " not found"}
		}
		use := protocol.ToolUse{ID: "toolu_" + string(call.ID), Name: params.Name, Input: params.Arguments}
		return wire.DeferredAnswer(func(ctx context.Context) (any, error) { return s.runToolCall(ctx, use) }), nil
	}
	return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "Method not found"}
}

func (s builtinToolsServer) runToolCall(ctx context.Context, use protocol.ToolUse) (any, error) {
	r := s.tools.Precheck(ctx, use)
	if r == nil {
		use.Input = s.tools.PrepareInput(use)
		done, err := s.tools.Execute(ctx, use)
		if err != nil {
			return nil, err
		}
		r = &done.ToolResult
	}
	text := r.Content.Plain()
	if output, ok := r.Output.(string); r.IsError && ok {
		text = strings.TrimPrefix(output, "Error: ")
		text = strings.Replace(text, "InputValidationError: ", "Tool "+use.Name+" arguments failed schema validation: ", 1)
	} else if !r.IsError && r.Output != nil {
		data, err := wire.Marshal(r.Output)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	return callResult{Content: [1]protocol.TextBlock{protocol.Text(text)}, IsError: r.IsError}, nil
}
