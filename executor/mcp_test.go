package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMCPServer is the child of TestMCP: an MCP server on stdin and stdout.
func TestMCPServer(*testing.T) {
	if os.Getenv("MCPTEST_MODE") != "" {
		os.Exit(mcptest.Serve(mcptest.Options{Mode: os.Getenv("MCPTEST_MODE"), In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
}

func TestMCP(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, err := mcp.New(mcp.Options{Servers: []mcp.ServerConfig{{
		Name: "s", Command: self, Args: []string{"-test.run=^TestMCPServer$"}, Env: map[string]string{"MCPTEST_MODE": "ok"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.StartAndWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.WithoutCancel(t.Context()))
	x := executor.MCP{Manager: m}
	if tools, err := x.Tools(t.Context()); err != nil || len(tools) != 5 || tools[0].Name != "mcp__s__echo" {
		t.Errorf("got %v, %v", tools, err)
	}
	for _, test := range []struct{ name, want string }{
		{"mcp__s__echo", "echo: hi"},
		{"echo", "echo: hi"},
		{"mcp__s__fail", "it failed"},
	} {
		r, err := x.Execute(t.Context(), protocol.ToolUse{ID: "toolu_1", Name: test.name, Input: json.RawMessage(`{"text":"hi"}`)})
		if err != nil || r.Content.Plain() != test.want || r.Server != "s" || r.IsError != (test.want == "it failed") {
			t.Errorf("%s: got %+v, %v", test.name, r, err)
		}
	}
	for _, name := range []string{"mcp__s__nosuch", "mcp__t__x", "Bash"} {
		if _, err := x.Execute(t.Context(), protocol.ToolUse{Name: name}); !errors.Is(err, executor.ErrUnknownTool) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
