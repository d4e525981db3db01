package mcp

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// newPlainClient returns mcp-go's own client on its own stdio transport.
func newPlainClient(b *testing.B) *client.Client {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := client.NewClient(transport.NewStdio(self, []string{"MCPTEST_MODE=ok"}), client.WithProtocolVersion(ProtocolVersion))
	if err := c.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Initialize(b.Context(), wire.InitializeRequest{}); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkCall compares a call through the manager with the same call through mcp-go alone, within one run (at most
// twice the time).
func BenchmarkCall(b *testing.B) {
	b.Run("manager", func(b *testing.B) {
		m := startOne(b, "ok")
		req := CallRequest{Tool: "mcp__s__echo", ToolUseID: "toolu_1", Input: []byte(`{"text":"x"}`)}
		for b.Loop() {
			if r, err := m.Call(b.Context(), req); err != nil || r.IsError {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		c := newPlainClient(b)
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

// BenchmarkStart compares a manager with one server, from New to Close, with a plain process start and handshake, and
// with a process that only starts.
func BenchmarkStart(b *testing.B) {
	b.Run("manager", func(b *testing.B) {
		for b.Loop() {
			m, err := New(Options{Servers: []ServerConfig{testConfig(b, "s", "ok")}, Environ: os.Environ()})
			if err != nil {
				b.Fatal(err)
			}
			if err := m.StartAndWait(b.Context()); err != nil {
				b.Fatal(err)
			}
			m.Close(b.Context())
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			c := newPlainClient(b)
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

// BenchmarkParallelCalls keeps 16 calls of one server running: at least 10000 calls/s.
func BenchmarkParallelCalls(b *testing.B) {
	m := startOne(b, "ok")
	req := CallRequest{Tool: "mcp__s__echo", ToolUseID: "toolu_1", Input: []byte(`{"text":"x"}`)}
	b.SetParallelism(16 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r, err := m.Call(b.Context(), req); err != nil || r.IsError {
				b.Error(r, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// manyServers returns n working servers that restart by themselves.
func manyServers(b *testing.B, n int) []ServerConfig {
	b.Helper()
	on := true
	var servers []ServerConfig
	for i := range n {
		cfg := testConfig(b, "s"+itoa(i), "ok")
		cfg.AutoReconnect = &on
		servers = append(servers, cfg)
	}
	return servers
}

// BenchmarkHundredServers connects a hundred servers concurrently and ends them.
func BenchmarkHundredServers(b *testing.B) {
	for b.Loop() {
		m, err := New(Options{Servers: manyServers(b, 100), Batch: ParallelConnectionLimits{Local: 100}, Environ: os.Environ()})
		if err != nil {
			b.Fatal(err)
		}
		if err := m.StartAndWait(b.Context()); err != nil {
			b.Fatal(err)
		}
		if n := len(m.Tools()); n != 500 {
			b.Fatalf("%d tools", n)
		}
		m.Close(b.Context())
	}
}

// BenchmarkReconnectStorm repeatedly kills fifty servers together and waits for all of them; the heap must not grow
// by more than a few MB.
func BenchmarkReconnectStorm(b *testing.B) {
	m := start(b, Options{Servers: manyServers(b, 50), Batch: ParallelConnectionLimits{Local: 50}, Pauses: RetryPauses{Reconnect: time.Millisecond}})
	heap := func() float64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return float64(s.HeapInuse) / (1 << 20)
	}
	idle, high := heap(), 0.0
	for b.Loop() {
		old := map[int]bool{}
		for _, s := range m.Servers() {
			old[s.PID] = true
			if server, err := os.FindProcess(s.PID); err == nil {
				_ = server.Kill() // it may have exited
			}
		}
		eventually(b, time.Minute, func() bool {
			for _, s := range m.Servers() {
				if s.State != StateConnected || old[s.PID] {
					return false
				}
			}
			return true
		}, "not all came back")
		high = max(high, heap())
	}
	b.ReportMetric(high-idle, "MB-growth")
}
