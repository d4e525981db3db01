package simulator

import (
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// contentWithUnsentSchema returns the content of a result with the schema of the tool at the end, if the model did not have it
// (observed with 2.1.330). Scenarios see the result without the schema.
func contentWithUnsentSchema(tool string, res protocol.ToolResult) protocol.Content {
	text, isRefusal := strings.CutSuffix(res.Content.Text, "</tool_use_error>")
	switch schema := string(res.UnsentSchema); {
	case schema == "":
		return res.Content
	case isRefusal:
		return protocol.Content{Text: text + "\n\nThis tool's schema was not sent to the API — it was not in the discovered-tool set derived from message history. " +
			"To load it, call ToolSearch with query \"select:" + tool + "\", then call the tool again. For reference, this tool's input schema is: " + schema + "</tool_use_error>"}
	default:
		return protocol.Content{Text: text + "\n\nThis tool's input schema was not in your prompt when you called it. The input schema is: " + schema +
			"\nCompare your input with it: if they differ, correct the input and call the tool again. If the error stays, call ToolSearch with query \"select:" + tool + "\" first."}
	}
}

// mcpCallNotReadOnlyReason returns why a successful call of an MCP tool may have changed something: "declared" if
// readOnlyHint is false, "no_hint" if readOnlyHint is missing. Otherwise it returns "".
func mcpCallNotReadOnlyReason(mcpTool protocol.Tool, result protocol.ToolResult) string {
	var hints struct {
		ReadOnly *bool `json:"readOnlyHint"`
	}
	_ = json.Unmarshal(mcpTool.Annotations, &hints) // invalid annotations are ignored
	switch {
	case result.IsError || hints.ReadOnly != nil && *hints.ReadOnly:
		return ""
	case hints.ReadOnly != nil:
		return "declared"
	}
	return "no_hint"
}
