// Command mcpgo is an MCP server and an OAuth client made with mcp-go, as peers for tests. It is a separate module,
// like the programs of mcp-go's users.
//
//	mcpgo                   serves stdio
//	mcpgo http ADDRESS      serves streamable HTTP at /mcp
//	mcpgo client URL        logs in to a fixture that requires OAuth and calls its tools
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcpgo", "1.0.0", server.WithToolCapabilities(true), server.WithResourceCapabilities(false, true), server.WithPromptCapabilities(true))
	s.AddTool(mcp.NewTool("echo", mcp.WithDescription("says it again"), mcp.WithString("message", mcp.Required())), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		message, err := req.RequireString("message")
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText("echo: " + message), nil
	})
	s.AddResource(mcp.NewResource("test://static", "static"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://static", MIMEType: "text/plain", Text: "static body"}}, nil
	})
	s.AddPrompt(mcp.NewPrompt("greet"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Please greet"))}), nil
	})
	return s
}

// session is a client that logs in whenever the server wants it to.
type session struct {
	*client.Client

	clientID string // after the first authorization
}

// attempt runs a function that may need an authorization. If it does, attempt logs in and runs it again.
func (s *session) attempt(ctx context.Context, run func() error) error {
	err := run()
	if !client.IsOAuthAuthorizationRequiredError(err) {
		return err
	}
	h := client.GetOAuthHandler(err)
	verifier, err := client.GenerateCodeVerifier()
	if err != nil {
		return err
	}
	if h.GetClientID() == "" {
		if err := h.RegisterClient(ctx, "interop"); err != nil {
			return err
		}
	}
	s.clientID = h.GetClientID()
	to, err := h.GetAuthorizationURL(ctx, "state-1", client.GenerateCodeChallenge(verifier))
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(to)
	if err != nil {
		return err
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return err
	}
	if err := h.ProcessAuthorizationResponse(ctx, back.Query().Get("code"), back.Query().Get("state"), verifier); err != nil {
		return err
	}
	return run()
}

func (s *session) call(ctx context.Context, tool string) error {
	return s.attempt(ctx, func() error {
		req := mcp.CallToolRequest{}
		req.Params.Name = tool
		result, err := s.CallTool(ctx, req)
		if err == nil {
			fmt.Printf("%s: %s\n", tool, mcp.GetTextFromContent(result.Content[0]))
		}
		return err
	})
}

// connect logs in with scopes; without a client id it registers.
func connect(ctx context.Context, to, clientID string, scopes ...string) (*session, error) {
	c, err := client.NewOAuthStreamableHttpClient(to, client.OAuthConfig{
		ClientID: clientID, RedirectURI: "http://127.0.0.1:1/callback", Scopes: scopes, TokenStore: client.NewMemoryTokenStore(), PKCEEnabled: true,
	})
	if err != nil {
		return nil, err
	}
	s := &session{Client: c}
	if err := s.attempt(ctx, func() error { return c.Start(ctx) }); err != nil {
		return s, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ClientInfo = mcp.Implementation{Name: "interop", Version: "1.0.0"}
	return s, s.attempt(ctx, func() error { _, err := c.Initialize(ctx, hello); return err })
}

// runClient calls, calls again after the token expired, and steps up: mcp-go only reports that the scope is
// insufficient. Sessions are not closed explicitly, because mcp-go closes them without their token.
func runClient(ctx context.Context, to string) error {
	s, err := connect(ctx, to, "", "mcp:read")
	if err != nil {
		return err
	}
	if err := s.call(ctx, "list_rows"); err != nil {
		return err
	}
	base, err := url.Parse(to)
	if err != nil {
		return err
	}
	resp, err := http.Post(base.ResolveReference(&url.URL{Path: "/_claudeless/oauth/expire"}).String(), "", nil)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if err := s.call(ctx, "list_rows"); err != nil {
		return err
	}
	if err := s.call(ctx, "delete_row"); err == nil || !strings.Contains(err.Error(), "insufficient_scope") {
		return fmt.Errorf("delete_row without its scope: %w", err)
	}
	wider, err := connect(ctx, to, s.clientID, "mcp:read", "mcp:write")
	if err != nil {
		return err
	}
	return wider.call(ctx, "delete_row")
}

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "http":
		err = server.NewStreamableHTTPServer(newServer()).Start(os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "client":
		err = runClient(context.Background(), os.Args[2])
	default:
		err = server.ServeStdio(newServer())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
