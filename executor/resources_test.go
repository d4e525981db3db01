package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// connect starts servers of the given modes, named after them.
func connect(t *testing.T, modes ...string) *mcp.Manager {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var servers []mcp.ServerConfig
	for _, mode := range modes {
		servers = append(servers, mcp.ServerConfig{
			Name: mode, Command: self, Args: []string{"-test.run=^TestMCPServer$"}, Env: map[string]string{"MCPTEST_MODE": mode},
		})
	}
	m, err := mcp.New(mcp.Options{Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.StartAndWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(context.WithoutCancel(t.Context())) })
	return m
}

// M34, C46–C52, cli-shapes tool_use_result_by_tool: list and read resources, filtered by server, with errors for
// unknown and disconnected servers.
func TestResources(t *testing.T) {
	const a = `{"name":"a","uri":"file:///a.txt","mimeType":"text/plain","server":"resources"}`
	r := executor.MCPResources{Manager: connect(t, "resources", "ok", "crash-at-start")}
	tests := []struct {
		name, tool, input string
		want              string
		output            string // tool_use_result as JSON; empty means the error's
		isError           bool
	}{
		{name: "all", tool: "ListMcpResourcesTool", input: `{}`, want: `[` + a + `]`, output: `[` + a + `]`},
		{name: "no input", tool: "ListMcpResourcesTool", want: `[` + a + `]`, output: `[` + a + `]`},
		{name: "one server", tool: "ListMcpResourcesTool", input: `{"server":"resources"}`, want: `[` + a + `]`, output: `[` + a + `]`},
		{
			name: "server without", tool: "ListMcpResourcesTool", input: `{"server":"ok"}`, output: `[]`,
			want: "No resources found. MCP servers may still provide tools even if they have no resources.",
		},
		{
			name: "unknown server", tool: "ListMcpResourcesTool", input: `{"server":"nope"}`, isError: true,
			want: `Server "nope" not found. Available servers: resources, ok, crash-at-start`,
		},
		{
			name: "read", tool: "ReadMcpResourceTool", input: `{"server":"resources","uri":"file:///a.txt"}`,
			want:   `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}]}`,
			output: `{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}]}`,
		},
		{
			name: "read of a dead server", tool: "ReadMcpResourceTool", input: `{"server":"crash-at-start","uri":"x:/"}`, isError: true,
			want: `Server "crash-at-start" is not connected`,
		},
		{
			name: "no uri", tool: "ReadMcpResourceTool", input: `{"server":5}`, isError: true,
			want: "<tool_use_error>InputValidationError: ReadMcpResourceTool failed due to the following issues:\nThe required parameter `uri` is missing\nThe parameter `server` type is expected as `string` but provided as `number`</tool_use_error>",
		},
		{
			name: "dir", tool: "ReadMcpResourceDirTool", input: `{"server":"resources","uri":"file://"}`,
			want:   "Directory listing is not enabled in this build.",
			output: `{"resources":[],"error":"Directory listing is not enabled in this build."}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.Execute(t.Context(), protocol.ToolUse{Name: tt.tool, Input: json.RawMessage(tt.input)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Content.Plain()); diff != "" || got.IsError != tt.isError {
				t.Errorf("is_error %v, content (-want +got):\n%s", got.IsError, diff)
			}
			if tt.output == "" {
				return
			}
			output, err := protocol.Marshal(got.Output)
			if diff := cmp.Diff(tt.output, string(output)); diff != "" || err != nil {
				t.Errorf("%v, tool_use_result (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := r.Execute(t.Context(), protocol.ToolUse{Name: "Read"}); !errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("Read: %v, want ErrUnknownTool", err)
	}
}

// The resource tools exist only while a server offers resources (spec: cli-observed 3).
func TestResourcesListed(t *testing.T) {
	for mode, want := range map[string][]string{"ok": nil, "resources": {"ListMcpResourcesTool", "ReadMcpResourceDirTool", "ReadMcpResourceTool"}} {
		r := executor.MCPResources{Manager: connect(t, mode)}
		tools, err := r.Tools(t.Context())
		var names []string
		for _, tool := range tools {
			names = append(names, tool.Name)
			if !json.Valid(tool.InputSchema) {
				t.Errorf("%s: schema %s", tool.Name, tool.InputSchema)
			}
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("%s: %v, tools (-want +got):\n%s", mode, err, diff)
		}
		_, err = r.Execute(t.Context(), protocol.ToolUse{Name: "ListMcpResourcesTool"})
		if errors.Is(err, executor.ErrUnknownTool) != (want == nil) {
			t.Errorf("%s: Execute = %v", mode, err)
		}
	}
}
