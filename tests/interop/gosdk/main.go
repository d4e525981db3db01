// Command gosdk is an MCP server made with the official Go SDK, as a peer for tests of the client. It is a separate
// module so that the tested module does not depend on the SDK.
//
//	gosdk                   serves stdio
//	gosdk http ADDRESS      serves streamable HTTP at /mcp
//	gosdk sse ADDRESS       serves the older transport at /sse
//	gosdk client URL        logs in to a fixture that requires OAuth and calls its tools
//
// With STATELESS=1 it also serves revision 2026-07-28 over HTTP, which has no sessions.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

type message struct {
	Message string `json:"message" jsonschema:"what comes back"`
}

type sumInput struct {
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
	mcp.AddTool(s, &mcp.Tool{Name: "sum", Description: "adds"}, func(_ context.Context, _ *mcp.CallToolRequest, in sumInput) (*mcp.CallToolResult, total, error) {
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

// authorize follows the redirect of a fixture that approves immediately.
func authorize(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(args.URL)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return nil, err
	}
	q := back.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

func runClient(ctx context.Context, to string) error {
	const redirect = "http://127.0.0.1:1/callback"
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "interop", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RedirectURL: redirect, AuthorizationCodeFetcher: authorize,
	})
	if err != nil {
		return err
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, nil)
	s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: to, OAuthHandler: handler}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	base, err := url.Parse(to)
	if err != nil {
		return err
	}
	for _, tool := range []string{"list_rows", "expire", "list_rows", "delete_row"} {
		if tool == "expire" {
			resp, err := http.Post(base.ResolveReference(&url.URL{Path: "/_claudeless/oauth/expire"}).String(), "", nil)
			if err != nil {
				return err
			}
			resp.Body.Close()
			continue
		}
		result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", tool, result.Content[0].(*mcp.TextContent).Text)
	}
	return nil
}

func main() {
	one := func(*http.Request) *mcp.Server { return newServer() }
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "http":
		err = http.ListenAndServe(os.Args[2], mcp.NewStreamableHTTPHandler(one, &mcp.StreamableHTTPOptions{Stateless: os.Getenv("STATELESS") != ""}))
	case len(os.Args) == 3 && os.Args[1] == "sse":
		err = http.ListenAndServe(os.Args[2], mcp.NewSSEHandler(one, nil))
	case len(os.Args) == 3 && os.Args[1] == "client":
		err = runClient(context.Background(), os.Args[2])
	default:
		err = newServer().Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
