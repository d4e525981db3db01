package builtin

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// longestURL is how many characters an address may have.
const longestURL = 2000

type fetchInput struct {
	URL string `json:"url"`
}

func webFetchTool() tool {
	return tool{
		name: "WebFetch", readOnly: true,
		description: "Fetches a page and answers a question about it. Needs a canned result: nothing here reaches the network.",
		input: object(
			req("url", schema{Type: "string", Desc: "Address of the page", URL: true}),
			req("prompt", str("What to find out about the page")),
			opt("offset", schema{Type: "integer", Desc: "Where in a long page to start", From0: true}),
		),
		check: typedCheck(func(_ *Tools, in fetchInput) *protocol.ToolResult {
			if len(in.URL) <= longestURL {
				return nil
			}
			return invalid("WebFetch", []issue{{Code: "custom", Path: []any{"url"}, Message: "URL is longer than 2000 characters"}})
		}),
		run: plain(func(_ context.Context, _ *Tools, call protocol.ToolUse) protocol.ToolResult {
			in, _ := decode[fetchInput](call.Input) // it is valid
			u, err := url.Parse(in.URL)
			switch {
			case err != nil || u.User != nil:
				return fail("Invalid URL")
			case !strings.Contains(u.Hostname(), "."):
				return fail("WebFetch cannot fetch localhost or other hostnames without a dot. To reach a local server, use Bash with curl instead.")
			}
			return needsResult(call.Name, "does not reach the network here")
		}),
	}
}

type searchInput struct {
	Allowed []json.RawMessage `json:"allowed_domains"`
	Blocked []json.RawMessage `json:"blocked_domains"`
}

func webSearchTool() tool {
	return tool{
		name: "WebSearch", readOnly: true,
		description: "Searches the web. Needs a canned result: nothing here reaches the network.",
		input: object(
			req("query", schema{Type: "string", Desc: "What to search for", Min: 2}),
			opt("allowed_domains", list("Only results from these domains", str(""))),
			opt("blocked_domains", list("No results from these domains", str(""))),
		),
		check: typedCheck(func(_ *Tools, in searchInput) *protocol.ToolResult {
			if len(in.Allowed) == 0 || len(in.Blocked) == 0 {
				return nil
			}
			r := refuse("Error: Cannot specify both allowed_domains and blocked_domains in the same request")
			return &r
		}),
		run: plain(func(_ context.Context, _ *Tools, call protocol.ToolUse) protocol.ToolResult {
			return needsResult(call.Name, "does not reach the network here")
		}),
	}
}
