// Command gosdk is an MCP server made with the official Go SDK, as a peer for
// tests of the client. It is a separate module so that the SDK is no
// dependency of the one under test.
//
//	gosdk                   serves stdio
//	gosdk http ADDRESS      serves streamable HTTP at /mcp
//	gosdk sse ADDRESS       serves the older transport at /sse
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type message struct {
	Message string `json:"message" jsonschema:"what comes back"`
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Total int `json:"total"`
}

type steps struct {
	Steps int `json:"steps"`
}

type none struct{}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "says it again"}, func(_ context.Context, _ *mcp.CallToolRequest, in message) (*mcp.CallToolResult, any, error) {
		return text("echo: " + in.Message), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "sum", Description: "adds"}, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, total, error) {
		return nil, total{in.A + in.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "fails"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("it failed")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress", Description: "takes its time"}, func(ctx context.Context, req *mcp.CallToolRequest, in steps) (*mcp.CallToolResult, any, error) {
		for i := range in.Steps {
			p := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: float64(in.Steps)}
			if err := req.Session.NotifyProgress(ctx, p); err != nil {
				return nil, nil, err
			}
		}
		return text("done"), nil, nil
	})
	s.AddResource(&mcp.Resource{URI: "test://static", Name: "static", MIMEType: "text/plain"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://static", MIMEType: "text/plain", Text: "static body"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Please greet " + req.Params.Arguments["name"]}}}}, nil
	})
	return s
}

func main() {
	one := func(*http.Request) *mcp.Server { return newServer() }
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "http":
		err = http.ListenAndServe(os.Args[2], mcp.NewStreamableHTTPHandler(one, nil))
	case len(os.Args) == 3 && os.Args[1] == "sse":
		err = http.ListenAndServe(os.Args[2], mcp.NewSSEHandler(one, nil))
	default:
		err = newServer().Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
