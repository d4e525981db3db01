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

func webFetchTool() tool.Tool {
	return tool.Tool{
		Name: "WebFetch",
		Check: tool.TypedCheck(struct{}{}, func(_ context.Context, _ struct{}, in webFetchInput) *protocol.ToolResult {
			if len(in.URL) <= maxURLBytes {
				return nil
			}
			return tool.InvalidInputResult("WebFetch", []tool.Issue{tool.CustomIssue("URL is longer than 2000 characters", "url")})
		}),
		Run: tool.TypedRunWithCall(struct{}{}, func(_ context.Context, _ struct{}, _ protocol.ToolUse, in webFetchInput) protocol.ToolResult {
			u, err := url.Parse(in.URL)
			switch {
			case err != nil || u.User != nil || u.Hostname() == "":
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

func unsimulatedWebSearchTool() tool.Tool {
	return tool.Tool{
		Name: "WebSearch",
		Check: tool.TypedCheck(struct{}{}, func(_ context.Context, _ struct{}, in webSearchInput) *protocol.ToolResult {
			if len(in.Allowed) == 0 || len(in.Blocked) == 0 {
				return nil
			}
			return new(tool.Refuse("Error: Cannot specify both allowed_domains and blocked_domains in the same request"))
		}),
		Run: tool.TypedRunWithCall(struct{}{}, func(_ context.Context, _ struct{}, call protocol.ToolUse, _ webSearchInput) protocol.ToolResult {
			return tool.FailUnsimulated(call.Name, "is not simulated, because claudeless makes no requests to the web")
		}),
	}
}
