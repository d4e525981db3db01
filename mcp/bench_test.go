package mcp

import (
	"os"
	"os/exec"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// bare is mcp-go's own client on its own stdio transport.
func bare(b *testing.B) *client.Client {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := client.NewClient(transport.NewStdio(self, []string{"MCPTEST_MODE=ok"}), client.WithProtocolVersion(protocolVersion))
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Initialize(b.Context(), wire.InitializeRequest{}); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkCall compares a call through the manager with the same call on
// mcp-go alone; compare them within one run (at most twice).
func BenchmarkCall(b *testing.B) {
	b.Run("manager", func(b *testing.B) {
		m := one(b, "ok")
		req := CallRequest{Tool: "mcp__s__echo", ToolUseID: "toolu_1", Input: []byte(`{"text":"x"}`)}
		for b.Loop() {
			if r, err := m.Call(b.Context(), req); err != nil || r.IsError {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		c := bare(b)
		defer c.Close()
		var req wire.CallToolRequest
		req.Params.Name, req.Params.Arguments = "echo", map[string]any{"text": "x"}
		for b.Loop() {
			if _, err := c.CallTool(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStart compares a manager with one server, from New to Close, with a
// bare spawn and handshake and with a process that only starts.
func BenchmarkStart(b *testing.B) {
	b.Run("manager", func(b *testing.B) {
		for b.Loop() {
			m, err := New(Options{Servers: []ServerConfig{config(b, "s", "ok")}, Environ: os.Environ()})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			m.Close(b.Context())
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			c := bare(b)
			if _, err := c.ListTools(b.Context(), wire.ListToolsRequest{}); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
	b.Run("spawn", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			cmd := exec.Command(self)
			cmd.Env = []string{"MCPTEST_MODE=crash-at-start"}
			_ = cmd.Run()
		}
	})
}
