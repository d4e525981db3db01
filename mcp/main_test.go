package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/tests/mcptest"
)

// TestMain runs the test binary as a server if MCPTEST_MODE is set.
func TestMain(m *testing.M) {
	mode := os.Getenv("MCPTEST_MODE")
	if os.Getenv("MCPTEST_CLIENT") != "" && mode == "" {
		os.Exit(runClient())
	}
	if mode == "" {
		flag.Parse()
		if err := flag.Set("test.parallel", "4"); err != nil { // the tests mostly wait
			panic(err)
		}
		goleak.VerifyTestMain(m)
		return
	}
	if mode == "script" {
		os.Exit(serveScript())
	}
	o := mcptest.Options{Mode: mode, In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}
	o.Count, _ = strconv.Atoi(os.Getenv("MCPTEST_COUNT"))
	if path := os.Getenv("MCPTEST_LOG"); path != "" {
		log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		o.Log = log
	}
	os.Exit(mcptest.Serve(o))
}

// testConfig returns the configuration of a server that is this test binary in a mode.
func testConfig(tb testing.TB, name, mode string, env ...string) ServerConfig {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cfg := ServerConfig{Name: name, Source: "dynamic", Type: "stdio", Command: self, Env: map[string]string{"MCPTEST_MODE": mode}}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		cfg.Env[k] = v
	}
	return cfg
}

// start runs a manager until the end of the test, and then checks that all its processes have exited.
func start(tb testing.TB, o Options) *Manager {
	tb.Helper()
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 20*time.Second)
	o.Pauses.Retry = cmp.Or(o.Pauses.Retry, 10*time.Millisecond)
	o.Pauses.Reconnect = cmp.Or(o.Pauses.Reconnect, 100*time.Millisecond)
	m, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := m.StartAndWait(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	var pids []int
	for _, s := range m.Servers() {
		if s.PID != 0 {
			pids = append(pids, s.PID)
		}
	}
	tb.Cleanup(func() {
		if err := m.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
		for _, pid := range pids {
			assertGone(tb, pid)
		}
	})
	return m
}

// startOne starts a manager with one server "s" in a mode.
func startOne(tb testing.TB, mode string, env ...string) *Manager {
	tb.Helper()
	return start(tb, Options{Servers: []ServerConfig{testConfig(tb, "s", mode, env...)}})
}

// assertGone checks that all processes of a group have exited; zombies are allowed.
func assertGone(tb testing.TB, pgid int) {
	tb.Helper()
	eventually(tb, 400*time.Millisecond, func() bool {
		return groupGone(pgid) || onlyZombies(pgid)
	}, "process group %d is still there", pgid)
}

func onlyZombies(pgid int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" {
			return false
		}
	}
	return true
}

// patience is a time limit that only a hanging test exceeds, even on a busy machine. It is shorter than the timeouts
// after which a hanging server is stopped.
const patience = 30 * time.Second

// eventually waits until ok returns nil. It fails after limit, but not before patience.
func eventually(tb testing.TB, limit time.Duration, ok func() bool, format string, args ...any) {
	tb.Helper()
	deadline := time.Now().Add(max(limit, patience))
	for !ok() {
		if time.Now().After(deadline) {
			tb.Errorf(format, args...)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// call runs a tool of server s and renders its result in one line.
func call(tb testing.TB, m *Manager, tool, input string) string {
	tb.Helper()
	res, err := m.Call(tb.Context(), CallRequest{Tool: "mcp__s__" + tool, ToolUseID: "toolu_1", Input: json.RawMessage(input)})
	if err != nil {
		return "error: " + err.Error()
	}
	content, err := json.Marshal(res.Content)
	if err != nil {
		tb.Fatal(err)
	}
	if res.IsError {
		return fmt.Sprintf("isError: %s", content)
	}
	return string(content)
}

func toolNames(m *Manager) string {
	var names []string
	for _, t := range m.Tools() {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func itoa(n int) string { return strconv.Itoa(n) }

// contextWithTimer returns a context that is cancelled (not expired) after d.
func contextWithTimer(tb testing.TB, d time.Duration) (context.Context, context.CancelFunc) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	timer := time.AfterFunc(d, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// logBuffer is a debug log that can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
