package executor_test

import (
	"testing"

	"github.com/claudeless/claudeless/executor"
)

// The hints about unknown tools are those of CLI 2.1.329.
func TestUnknown(t *testing.T) {
	const head = "Error: No such tool available: "
	for name, want := range map[string]string{
		"Nope":                 "Nope",
		"bash":                 "bash. Tool names are case-sensitive: call Bash instead.",
		"Brief":                "Brief. Brief is not enabled in this session — write your message as normal assistant text instead.",
		"LSP":                  "LSP. LSP is disabled for this session, in subagents as well as here.",
		"ListMcpResourcesTool": "ListMcpResourcesTool. ListMcpResourcesTool is not among the tools available here. Continue with the tools you have.",
	} {
		r := executor.UnknownToolResult(name, []string{"Agent", "Bash"})
		if got := r.Content.Text; got != "<tool_use_error>"+head+want+"</tool_use_error>" || !r.IsError {
			t.Errorf("%s: %s", name, got)
		}
	}
}
