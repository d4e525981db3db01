package builtin

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const maxURLBytes = 2000

type webFetchInput struct {
	URL string `json:"url"`
}

func webTools() []tool.Tool { return []tool.Tool{webFetchTool(), webSearchTool()} }

func webFetchTool() tool.Tool {
	return tool.Tool{
		Name: "WebFetch", ReadOnly: true,
		Description: "Fetches a page and answers a question about it. Needs a canned result: nothing here reaches the network.",
		Input: tool.Object(
			tool.Required("url", tool.Schema{Type: "string", Description: "Address of the page", URL: true}),
			tool.Required("prompt", tool.String("What to find out about the page")),
			tool.Optional("offset", tool.Schema{Type: "integer", Description: "Where in a long page to start", NonNegative: true}),
		),
		Check: tool.TypedCheck(struct{}{}, func(_ context.Context, _ struct{}, in webFetchInput) *protocol.ToolResult {
			if len(in.URL) <= maxURLBytes {
				return nil
			}
			return tool.InvalidInput("WebFetch", []tool.Issue{tool.CustomIssue("URL is longer than 2000 characters", "url")})
		}),
		Run: tool.TypedRunWithCall(struct{}{}, func(_ context.Context, _ struct{}, _ protocol.ToolUse, in webFetchInput) protocol.ToolResult {
			u, err := url.Parse(in.URL)
			switch {
			case err != nil || u.User != nil:
				return tool.Fail("Invalid URL")
			case !strings.Contains(u.Hostname(), "."):
				return tool.Fail("WebFetch cannot fetch localhost or other hostnames without a dot. To reach a local server, use Bash with curl instead.")
			}
			// The real CLI fails with this text if it has no network.
			return tool.Fail("Unable to verify if domain %s is safe to fetch. This may be due to network restrictions or enterprise security policies blocking claude.ai.", u.Hostname())
		}),
	}
}

type webSearchInput struct {
	Allowed []json.RawMessage `json:"allowed_domains"`
	Blocked []json.RawMessage `json:"blocked_domains"`
}

func webSearchTool() tool.Tool {
	return tool.Tool{
		Name: "WebSearch", ReadOnly: true,
		Description: "Searches the web. Needs a canned result: nothing here reaches the network.",
		Input: tool.Object(
			tool.Required("query", tool.Schema{Type: "string", Description: "What to search for", Min: 2}),
			tool.Optional("allowed_domains", tool.List("Only results from these domains", tool.String(""))),
			tool.Optional("blocked_domains", tool.List("Domains to exclude from the results", tool.String(""))),
		),
		Check: tool.TypedCheck(struct{}{}, func(_ context.Context, _ struct{}, in webSearchInput) *protocol.ToolResult {
			if len(in.Allowed) == 0 || len(in.Blocked) == 0 {
				return nil
			}
			return new(tool.Refuse("Error: Cannot specify both allowed_domains and blocked_domains in the same request"))
		}),
		Run: tool.TypedRunWithCall(struct{}{}, func(_ context.Context, _ struct{}, call protocol.ToolUse, _ webSearchInput) protocol.ToolResult {
			return tool.FailWithoutResult(call.Name, "is not simulated, because claudeless makes no requests to the web")
		}),
	}
}
