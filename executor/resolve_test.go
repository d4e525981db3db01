package executor_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func exampleTools() []protocol.Tool {
	mcpTool := func(name, server, raw string) protocol.Tool {
		return protocol.Tool{Name: name, Server: server, RawName: raw, ServerTitle: "srv"}
	}
	titled := mcpTool("mcp__s__sum", "s", "get-sum")
	titled.Name, titled.Title = "mcp__s__get-sum", "Sum Tool"
	hinted := mcpTool("mcp__s__hinted", "s", "hinted")
	hinted.Annotations = json.RawMessage(`{"title":"From Hints"}`)
	return []protocol.Tool{
		mcpTool("mcp__s__echo", "s", "echo"),
		mcpTool("mcp__my_server_1_x__echo", "my server.1/x", "echo"),
		mcpTool("mcp__s__Read", "s", "Read"),
		mcpTool("mcp__s__long_running-op", "s", "long_running-op"),
		mcpTool("mcp__s__files_read", "s", "files/read"),
		titled, hinted,
		{Name: "Read"},
		{Name: "Bash"},
	}
}

// TestResolve checks which tools the names in a scenario select (design 6, "tool routing").
func TestResolve(t *testing.T) {
	const twice = `several servers offer the tool "echo" (s, my server.1/x); using that of s (to choose a server, write for example "s/echo")`
	tests := []struct{ in, want, warning string }{
		{"mcp__s__echo", "mcp__s__echo", ""},
		{"s/echo", "mcp__s__echo", ""},
		{"my server.1/x/echo", "mcp__my_server_1_x__echo", ""},
		{"echo", "mcp__s__echo", twice},
		{"Read", "mcp__s__Read", ""},
		{"Bash", "Bash", ""},
		{"s/files/read", "mcp__s__files_read", ""},
		{"files/read", "mcp__s__files_read", ""},
		{"s/no such", "mcp__s__no_such", ""},
		{"my server.1/x/nosuch", "mcp__my_server_1_x__nosuch", ""},
		{"other.1/t", "mcp__other_1__t", ""},
		{"ünï/t", "mcp___n___t", ""},
		{"nosuch", "nosuch", ""},
		{"mcp__x__y", "mcp__x__y", ""},
		{"/x", "/x", ""},
		{"x/", "x/", ""},
		{"", "", ""},
	}
	index := executor.NewToolNameIndex(exampleTools())
	for _, tt := range tests {
		got, warning := index.Resolve(tt.in)
		if got != tt.want || warning != tt.warning {
			t.Errorf("Resolve(%q) = %q, %q; want %q, %q", tt.in, got, warning, tt.want, tt.warning)
		}
		if again := index.Canonical(tt.in); again != got {
			t.Errorf("Canonical(%q) = %q, Resolve says %q", tt.in, again, got)
		}
	}
}

// If two tools have one canonical name, the first is used.
func TestIndexFirstWins(t *testing.T) {
	index := executor.NewToolNameIndex([]protocol.Tool{
		{Name: "mcp__s__a_b", Server: "s", RawName: "a.b"},
		{Name: "mcp__s__a_b", Server: "s", RawName: "a b"},
	})
	if tool, ok := index.Tool("mcp__s__a_b"); !ok || tool.RawName != "a.b" {
		t.Errorf("Tool = %+v, %v; want the first", tool, ok)
	}
}

// TestMeta compares the displayed names of calls with the goldens mcp-everything-call and
// mcp-unknown-tool.
func TestMeta(t *testing.T) {
	tests := []struct {
		name string
		want protocol.ToolUseDisplayNames
		ok   bool
	}{
		{"mcp__s__echo", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "Echo", ServerDisplayName: "srv", ToolName: "echo"}, true},
		{"mcp__s__get-sum", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "Get-Sum", ServerDisplayName: "srv", ToolName: "get-sum"}, true},
		{"mcp__s__hinted", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "From Hints", ServerDisplayName: "srv", ToolName: "hinted"}, true},
		{"mcp__s__long_running-op", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "Long Running-Op", ServerDisplayName: "srv", ToolName: "long_running-op"}, true},
		{"mcp__s__nosuch", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "Nosuch"}, true},
		{"mcp__gone__no_such", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "No Such"}, true},
		{"mcp__x", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "X"}, true},
		{"Bash", protocol.ToolUseDisplayNames{}, false},
		{"Nosuch", protocol.ToolUseDisplayNames{}, false},
		{"bash", protocol.ToolUseDisplayNames{ID: "1", DisplayName: "Bash"}, true},
	}
	index := executor.NewToolNameIndex(exampleTools())
	for _, tt := range tests {
		got, ok := index.DisplayNames(protocol.ToolUse{ID: "1", Name: tt.name})
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
			t.Errorf("Meta(%q) ok %v (-want +got):\n%s", tt.name, ok, diff)
		}
	}
}
