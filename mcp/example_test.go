package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// A manager keeps a set of servers connected and calls their tools by any unambiguous name. This server runs in the
// process; one with a Command or a URL is used in the same way.
func ExampleManager_Call() {
	ctx := context.Background()
	m, err := mcp.New(mcp.Options{
		Servers: []mcp.ServerConfig{{Name: "greeter", Type: "sdk"}},
		SDK:     answerGreeting,
	})
	if err != nil {
		panic(err)
	}
	defer m.Close(ctx)
	if err := m.StartAndWait(ctx); err != nil {
		panic(err)
	}
	for _, tool := range m.Tools() {
		fmt.Println(tool.Name)
	}
	result, err := m.Call(ctx, mcp.CallRequest{Tool: "greeter/greet", Input: json.RawMessage(`{"name":"Ada"}`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Content.Blocks[0].(protocol.TextBlock).Text, result.IsError)
	// Output:
	// mcp__greeter__greet
	// hello Ada false
}

// answerGreeting answers as an MCP server with one tool.
func answerGreeting(_ context.Context, _ string, message json.RawMessage) (json.RawMessage, error) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments struct{ Name string } }
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"greet","inputSchema":{"type":"object","properties":{"name":{"type":"string"}}}}]}`
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"hello %s"}]}`, m.Params.Arguments.Name)
	default: // a notification has no answer
		return nil, nil //nolint:nilnil // which is what the protocol wants
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result), nil
}
