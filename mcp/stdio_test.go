package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/tests/mcptest"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestCallMisbehaving has a row for every fault that can occur in a call (M20, M21, M42, M43).
func TestCallMisbehaving(t *testing.T) {
	tests := []struct {
		mode, want string
		env        []string
	}{
		{mode: "ok", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "lax", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "string-id", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "ignore-unknown", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "exit-unknown", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "old-version", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "garbage", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "stderr-flood", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "no-newline-flood", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "early-notify", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "flood-call", env: []string{"MCPTEST_COUNT=20000"}, want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "slow", want: `[{"type":"text","text":"echo: x"}]`},
		{mode: "exit-mid-call", want: `isError: "Connection closed"`},
		{mode: "close-stdout", want: `isError: "Connection closed"`},
		{mode: "partial-line", want: `[{"type":"text","text":"last words"}]`},
		{mode: "content-missing", want: `"{\"b\":1,\"a\":[2]}"`},
		{mode: "content-empty-image", want: `[{"type":"text","text":"{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"\"}"}]`},
		{mode: "bigint", want: `"{\"n\":9007199254740993,\"args\":{\"text\":\"x\"}}"`},
		{mode: "dup", want: `[{"type":"text","text":"first"}]`},
		{mode: "rpc-error", want: `isError: "quota used up"`},
		{mode: "bad-error", want: `isError: "just text"`},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			m := startOne(t, test.mode, test.env...)
			if got := call(t, m, "echo", `{"text":"x"}`); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestTimeout: hang-call and stop-reading end at the deadline with the real CLI's text, in whole seconds. The
// connection remains usable and other calls are not delayed (M22, M23, M24, M43, C36). A slow machine does not fail the
// test; only a hanging call exceeds patience.
func TestTimeout(t *testing.T) {
	const patience = 20 * time.Second
	for mode, limit := range map[string]time.Duration{
		"hang-call": 1100 * time.Millisecond, "stop-reading": 200 * time.Millisecond,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			cfg := testConfig(t, "s", mode, "MCPTEST_LOG="+log)
			cfg.Timeout = limit
			cfg.ShutdownGrace = 50 * time.Millisecond
			m := start(t, Options{Servers: []ServerConfig{cfg, testConfig(t, "other", "ok")}})
			input, _ := json.Marshal(map[string]string{"text": strings.Repeat("x", 300<<10)})
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			beside := make(chan error, 1)
			go func() { // another server answers meanwhile
				var err error
				for range 100 {
					if err == nil {
						_, err = m.CallRaw(ctx, CallRequest{Tool: "mcp__other__echo", Timeout: patience})
					}
				}
				beside <- err
			}()
			defer func() {
				if err := <-beside; err != nil {
					t.Errorf("another server: %v", err)
				}
			}()
			_, err := m.CallRaw(ctx, CallRequest{Tool: "mcp__s__echo", Input: input})
			want := fmt.Sprintf(`MCP server "s" tool "echo" timed out after %ds`, int(limit.Seconds()))
			if err == nil || err.Error() != want {
				t.Errorf("got %v", err)
			}
			if mode == "stop-reading" {
				return
			}
			eventually(t, patience, func() bool { return strings.Contains(readFileText(log), "notifications/cancelled") }, "no cancellation on the wire")
			if mode != "hang-call" {
				return
			}
			_, err = m.CallRaw(ctx, CallRequest{Tool: "mcp__s__sleep", Input: []byte(`{"ms":1}`), Timeout: patience})
			if err != nil {
				t.Errorf("after the timeout: %v", err)
			}
		})
	}
}

func readFileText(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

// TestCancel: a cancelled call returns at once, and the server gets a cancellation with its id (M23).
func TestCancel(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	m := startOne(t, "hang-call", "MCPTEST_LOG="+log)
	ctx, cancel := contextWithTimer(t, 50*time.Millisecond)
	defer cancel()
	before := time.Now()
	res, err := m.Call(ctx, CallRequest{Tool: "mcp__s__echo"})
	if err != nil || !res.IsError {
		t.Errorf("got %+v, %v", res, err)
	}
	if took := time.Since(before); took > patience {
		t.Errorf("took %v", took)
	}
	eventually(t, time.Second, func() bool {
		return strings.Contains(readFileText(log), `"requestId":2`)
	}, "no cancellation of request 2:\n%s", readFileText(log))
}

// The real CLI does not show the command that cannot be started (observed with 2.1.330).
func TestCommandsThatCannotStart(t *testing.T) {
	for command, want := range map[string]string{
		"no-such-command":  `Executable not found in $PATH: "stdio"`,
		"/nonexistent/mcp": "ENOENT: no such file or directory, posix_spawn 'stdio'",
		"./testdata":       "EACCES: permission denied, posix_spawn 'stdio'",
	} {
		st := start(t, Options{Servers: []ServerConfig{{Name: "s", Type: "stdio", Command: command}}}).Servers()[0]
		if st.State != StateFailed || st.WireError != want {
			t.Errorf("%s: %s, error %q, want %q", command, st.State, st.WireError, want)
		}
	}
}

// TestConnectFailures: each reason is reported, with exit status and last line of stderr (M8, M10), within the limit,
// and all processes have exited.
func TestConnectFailures(t *testing.T) {
	tests := []struct{ mode, wantError, wantWire string }{
		{"crash-at-start", "exit status 3: fatal: boom", "Connection closed"},
		{"exit-on-init", "exit status 4: dying of initialize", "Connection closed"},
		{"hang-init", "connection timed out after 300ms (connectTimeout of its entry)", `MCP server "s" connection timed out after 300ms`},
		{"init-error", "not today (JSON-RPC error -32001)", "not today"},
		{"bad-version", "Server's protocol version is not supported: 1999-01-01", "Server's protocol version is not supported: 1999-01-01"},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "s", test.mode)
			if strings.Contains(test.wantError, "timed out") {
				cfg.ConnectTimeout = 300 * time.Millisecond
			}
			before := time.Now()
			m := start(t, Options{Servers: []ServerConfig{cfg}})
			st := m.Servers()[0]
			if st.State != StateFailed || st.Status != "failed" || st.Error != test.wantError || st.WireError != test.wantWire {
				t.Errorf("got %s: %q, %q", st.State, st.Error, st.WireError)
			}
			if took := time.Since(before); took > patience {
				t.Errorf("took %v", took)
			}
			if _, err := m.Call(t.Context(), CallRequest{Tool: "mcp__s__echo"}); !errors.Is(err, ErrNotConnected) {
				t.Errorf("call: %v", err)
			}
		})
	}
	t.Run("tools-hang", func(t *testing.T) { // it counts as connected and has no tools (observed with 2.1.330)
		cfg := testConfig(t, "s", "tools-hang")
		cfg.ConnectTimeout = 2 * time.Second
		if st := start(t, Options{Servers: []ServerConfig{cfg}}).Servers()[0]; st.State != StateConnected || len(st.Tools) > 0 {
			t.Errorf("got %s: %q, %d tools", st.State, st.Error, len(st.Tools))
		}
	})
	t.Run("no such command", func(t *testing.T) {
		m := start(t, Options{Servers: []ServerConfig{{Name: "s", Command: "nosuch-mcp-server"}}})
		if st := m.Servers()[0]; !strings.Contains(st.Error, "command not found: nosuch-mcp-server") {
			t.Errorf("got %q", st.Error)
		}
	})
}

// TestWire: a server that declares only tools gets no other list request, in this order (M7, M11), and arguments are
// always an object (M25).
func TestWire(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	m := startOne(t, "ok", "MCPTEST_LOG="+log)
	call(t, m, "echo", ``)
	want := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"claude-code","version":"","title":"Claude Code","description":"Anthropic's agentic coding tool","websiteUrl":"https://claude.com/claude-code"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"claudecode/toolUseId":"toolu_1","progressToken":2}}}
`
	if got := readFileText(log); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestCrashRespawn: after a crash in a call, the next call starts a new process (M37).
func TestCrashRespawn(t *testing.T) {
	t.Parallel()
	m := startOne(t, "ok")
	pid := m.Servers()[0].PID
	if got := call(t, m, "crash", `{}`); got != `isError: "Connection closed"` {
		t.Errorf("crash: %s", got)
	}
	eventually(t, 200*time.Millisecond, func() bool { return m.Servers()[0].State == StateLost }, "the loss was not noticed")
	if st := m.Servers()[0]; st.Error != "exit status 7" || st.WireError != "Connection closed" {
		t.Errorf("got %q, %q", st.Error, st.WireError)
	}
	if got := call(t, m, "echo", `{"text":"y"}`); got != `[{"type":"text","text":"echo: y"}]` {
		t.Errorf("after the crash: %s", got)
	}
	if st := m.Servers()[0]; st.State != StateConnected || st.PID == pid {
		t.Errorf("state %s, pid %d was %d", st.State, st.PID, pid)
	}
	assertGone(t, pid)
}

// TestAutoReconnect: with autoReconnect, a lost stdio server reconnects at once, and calls wait for
// it (M38, M39, C57, C58, C59).
func TestAutoReconnect(t *testing.T) {
	t.Parallel()
	on := true
	cfg := testConfig(t, "s", "ok")
	cfg.AutoReconnect = &on
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	pid := m.Servers()[0].PID
	call(t, m, "crash", `{}`)
	eventually(t, 10*time.Second, func() bool { st := m.Servers()[0]; return st.State == StateConnected && st.PID != pid }, "did not come back")
	if got := call(t, m, "echo", `{"text":"y"}`); got != `[{"type":"text","text":"echo: y"}]` {
		t.Errorf("after reconnecting: %s", got)
	}
}

// TestLists: paging, loops, endless pages, broken tools and missing
// capabilities (M11, M12); schemas keep their bytes.
func TestLists(t *testing.T) {
	tests := []struct{ mode, want, warning string }{
		{"pages", "mcp__s__t0 mcp__s__t1 mcp__s__t2", ""},
		{"page-loop", "mcp__s__t0 mcp__s__t1 mcp__s__t2", `listing tools: the server repeated the cursor "1"; only 3 entries were read`},
		{"page-endless", "20 tools", "more than 20 pages"},
		{"weird-tools", "", `Invalid result for tools/list`},
		{"tools-null", "", "expected array, received null"},
		{"tools-error", "", "no list today"},
		{"nocaps", "", ""},
		{"names", "mcp__s__a_b mcp__s__x__y", "longer than 128"},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			m := startOne(t, test.mode)
			st := m.Servers()[0]
			got := toolNames(m)
			if n := len(m.Tools()); n == 20 {
				got = "20 tools"
			}
			if got != test.want || st.State != StateConnected {
				t.Errorf("%s: got %q, want %q", st.State, got, test.want)
			}
			if all := strings.Join(st.Warnings, "\n"); !strings.Contains(all, test.warning) || test.warning == "" && all != "" {
				t.Errorf("warnings %q", all)
			}
		})
	}
	t.Run("schema bytes", func(t *testing.T) {
		m := startOne(t, "schema-bytes")
		tool := m.Tools()[0]
		want := `{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","oneOf":[{}],"patternProperties":{"^x-":{"type":"string"}},"x-vendor":9007199254740993}`
		if string(tool.InputSchema) != want || !tool.ReadOnly || string(tool.Annotations) != `{"readOnlyHint":true,"x-other":[1]}` {
			t.Errorf("got %s, %s", tool.InputSchema, tool.Annotations)
		}
	})
}

// TestServerRequests: requests of a server are answered while our own call is running; undeclared ones get -32601
// (M28, M29, S30).
func TestServerRequests(t *testing.T) {
	t.Parallel()
	cwd := t.TempDir()
	run := func(elicit ElicitAnswer) string {
		m := start(t, Options{
			Servers: []ServerConfig{testConfig(t, "s", "s2c")}, CWD: cwd,
			Elicit: func(context.Context, ElicitRequest) ElicitAnswer { return elicit },
		})
		return call(t, m, "echo", `{}`)
	}
	sampling := `{\"code\":-32601,\"message\":\"Method not found\"}`
	for _, test := range []struct {
		answer ElicitAnswer
		want   string
	}{
		{ElicitAnswer{}, `{\"action\":\"cancel\"}`},
		{ElicitAnswer{Action: "decline"}, `{\"action\":\"decline\"}`},
		{ElicitAnswer{Action: "accept", Content: json.RawMessage(`{"size":9}`)}, `{\"action\":\"accept\",\"content\":{\"size\":9}}`},
		{ElicitAnswer{Action: "accept", Content: json.RawMessage(`{"size":9}`), AddDefaults: true}, `{\"action\":\"accept\",\"content\":{\"colour\":\"red\",\"size\":9}}`},
	} {
		got := run(test.answer)
		for _, want := range []string{
			`0 ping -\u003e {}`, `1 roots/list -\u003e {\"roots\":[{\"uri\":\"file://` + cwd + `\"}]}`,
			`2 sampling/createMessage -\u003e ` + sampling, `3 elicitation/create -\u003e ` + test.want, `4 no/such -\u003e ` + sampling,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
	}
}

// TestListChanged: a tool that is announced during a call can be called right after it, and a burst causes few list
// requests (M32).
func TestListChanged(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	m := startOne(t, "list-changed", "MCPTEST_COUNT=1000", "MCPTEST_LOG="+log)
	call(t, m, "echo", `{}`)
	if tools := m.ToolsAfterPendingListUpdates(t.Context()); !slices.ContainsFunc(tools, func(tool protocol.Tool) bool { return tool.RawName == "extra" }) {
		t.Errorf("extra is not listed: %v", tools)
	}
	if got := call(t, m, "extra", `{"text":"new"}`); got != `[{"type":"text","text":"echo: new"}]` {
		t.Errorf("got %s", got)
	}
	if n := strings.Count(readFileText(log), "tools/list"); n > 20 {
		t.Errorf("%d lists", n)
	}
}

// TestProgress: progress keeps a call alive and reaches its listener in order
// (M22, M25).
func TestProgress(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "s", "progress", "MCPTEST_COUNT=8")
	cfg.Timeout, cfg.MaxTotal = 200*time.Millisecond, time.Minute
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	var seen []float64
	res, err := m.Call(t.Context(), CallRequest{Tool: "mcp__s__echo", OnProgress: func(p Progress) { seen = append(seen, p.Progress) }})
	if err != nil || res.IsError {
		t.Fatalf("%+v %v", res, err)
	}
	for i, p := range seen {
		if p != float64(i+1) {
			t.Fatalf("out of order: %v", seen)
		}
	}
	if len(seen) != 8 {
		t.Errorf("seen %v", seen)
	}
}

// TestParallel: sixteen calls answered out of order each get their own answer, and a slow one does not delay fast
// ones (M24).
func TestParallel(t *testing.T) {
	t.Parallel()
	m := startOne(t, "ok")
	done := make(chan string, 16)
	before := time.Now()
	for i := range 16 {
		go func() {
			ms := (16 - i) * 10
			want := `[{"type":"text","text":"slept ` + itoa(ms) + `"}]`
			if got := call(t, m, "sleep", `{"ms":`+itoa(ms)+`}`); got != want {
				done <- got
				return
			}
			done <- ""
		}()
	}
	for range 16 {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
	if took := time.Since(before); took > patience {
		t.Errorf("took %v", took)
	}
}

// TestStubborn: ten servers that ignore end of input and SIGTERM, and servers with descendants, are stopped in time
// (M45, M46). Close may be called during a connect, and twice.
func TestStubborn(t *testing.T) {
	t.Parallel()
	var servers []ServerConfig
	for i, mode := range []string{"ignore-sigterm", "ignore-sigterm", "ignore-sigterm", "ignore-eof", "grandchild", "ignore-sigterm", "ignore-eof", "grandchild", "ok", "ignore-sigterm"} {
		servers = append(servers, testConfig(t, "s"+itoa(i), mode))
	}
	m := start(t, Options{Servers: servers})
	var pids []int
	for _, s := range m.Servers() {
		pids = append(pids, s.PID)
	}
	before := time.Now()
	m.Close(t.Context())
	if took := time.Since(before); took > patience {
		t.Errorf("took %v", took)
	}
	for _, pid := range pids {
		if pid == 0 || !onlyZombies(pid) {
			t.Errorf("group %d is still there", pid)
		}
	}
	m.Close(t.Context())

	m, err := New(Options{Servers: []ServerConfig{testConfig(t, "s", "hang-init")}, Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	go m.StartAndWait(t.Context())
	eventually(t, time.Second, func() bool { return m.Servers()[0].State == StateConnecting }, "not connecting")
	before = time.Now()
	m.Close(t.Context())
	if took := time.Since(before); took > patience {
		t.Errorf("closing while connecting took %v", took)
	}
}

// TestCloseStdout: a server that closes its output is detected without a call, and its process is stopped (M37).
func TestCloseStdout(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "s", "close-stdout")
	cfg.ShutdownGrace = 50 * time.Millisecond
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	pid := m.Servers()[0].PID
	call(t, m, "echo", `{}`)
	eventually(t, 500*time.Millisecond, func() bool { return m.Servers()[0].State == StateLost }, "the loss was not noticed")
	eventually(t, 2*time.Second, func() bool { return onlyZombies(pid) }, "the process lives on")
}

// floodLimit is the limit of memory for a server that sends too much.
const floodLimit = 64 << 20

// heapAbove returns the largest growth of the heap while f runs.
func heapAbove(f func()) int {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak, stop := make(chan uint64, 1), make(chan struct{})
	go func() { // returns with f
		var high uint64
		for {
			select {
			case <-stop:
				peak <- high
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&now)
				high = max(high, now.HeapInuse)
			}
		}
	}()
	func() {
		defer close(stop)
		f()
	}()
	return int(<-peak) - int(before.HeapInuse) //nolint:gosec // a few MB
}

// TestFloodMemory: 200 MB without a newline, 100000 notifications, 2 MB on standard error before the first message, and
// a burst of changed lists need less than 64 MB more memory than an idle client (M42).
func TestFloodMemory(t *testing.T) {
	for mode, warning := range map[string]string{"no-newline-flood": "the message of the server is 209715200 bytes", "flood-call": "", "stderr-flood": "", "list-changed": "", "bigline": ""} {
		t.Run(mode, func(t *testing.T) {
			var m *Manager
			var got string
			highest := heapAbove(func() {
				m = startOne(t, mode)
				got = call(t, m, "echo", `{}`)
			})
			if highest > floodLimit {
				t.Errorf("peak is %d MB above idle", highest>>20)
			}
			if mode == "bigline" && len(got) < 5<<20 {
				t.Errorf("%d bytes", len(got))
			}
			if st := m.Servers()[0]; !strings.Contains(strings.Join(st.Warnings, ""), warning) {
				t.Errorf("warnings %q", st.Warnings)
			}
		})
	}
}

// TestBatches: three servers connect at a time, and results are in the order of the configuration (M9).
func TestBatches(t *testing.T) {
	t.Parallel()
	var servers []ServerConfig
	for i := range 7 {
		servers = append(servers, testConfig(t, "z"+itoa(9-i), "slow", "MCPTEST_COUNT=200"))
	}
	before := time.Now()
	m := start(t, Options{Servers: servers})
	if took := time.Since(before); took < 600*time.Millisecond || took > patience {
		t.Errorf("took %v", took)
	}
	for i, s := range m.Servers() {
		if s.Name != servers[i].Name || s.State != StateConnected {
			t.Errorf("%d: %s %s", i, s.Name, s.State)
		}
	}
}

// TestEnvironment checks the environment of a server (surfaces, M2).
func TestEnvironment(t *testing.T) {
	cfg := testConfig(t, "s", "env", "TOKEN=${SECRET}", "PLAIN=${NOPE}", "DEF=${NOPE:-d}")
	var debug logBuffer
	m := start(t, Options{
		Servers: []ServerConfig{cfg}, CWD: t.TempDir(), SessionID: "sess", Debug: &debug,
		Environ: append(os.Environ(), "SECRET=hunter2hunter2", "OTEL_X=1"),
	})
	got := call(t, m, "echo", `{}`)
	for _, want := range []string{"CLAUDECODE=1", "CLAUDE_PROJECT_DIR=" + m.options.CWD, "CLAUDE_CODE_SESSION_ID=sess", "CLAUDE_CODE_ENTRYPOINT=", "TOKEN=hunter2hunter2", "PLAIN=${NOPE}", "DEF=d"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(got, "OTEL_X") {
		t.Error("OTEL_X was passed on")
	}
	m.Close(t.Context())
	log := debug.String()
	for _, want := range []string{"s: -> initialize id=0", "s: -> tools/call id=2", "variable NOPE is not set"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in the debug log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hunter2") {
		t.Error("a secret is in the debug log")
	}
}

// TestRefreshFails: if listing again fails, the old list is kept (M32).
func TestRefreshFails(t *testing.T) {
	t.Parallel()
	m := startOne(t, "list-breaks")
	before := toolNames(m)
	call(t, m, "echo", `{}`)
	eventually(t, 4*time.Second, func() bool {
		return strings.Contains(strings.Join(m.Servers()[0].Warnings, ""), "this list is not available")
	}, "no warning")
	if got := toolNames(m); got != before {
		t.Errorf("got %s", got)
	}
}

// TestAllModes: connecting, calling and closing finish in time for every kind of server, and no process remains (M44,
// M46).
func TestAllModes(t *testing.T) {
	for _, mode := range mcptest.FaultModeNames() {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, "s", mode, "MCPTEST_COUNT=3")
			cfg.Timeout, cfg.ShutdownGrace = 150*time.Millisecond, 50*time.Millisecond
			before := time.Now()
			m := start(t, Options{Servers: []ServerConfig{cfg}, ConnectTimeout: 500 * time.Millisecond})
			for range 2 {
				call(t, m, "echo", `{"text":"x"}`)
			}
			m.Close(context.WithoutCancel(t.Context()))
			if took := time.Since(before); took > patience {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestDescriptors: after Close all file descriptors are closed, for every kind of server, over pipes and sockets
// (M46); goleak checks the goroutines of all tests.
func TestDescriptors(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		return len(entries)
	}
	hanging, remote := serveFaults(t, "hanging stream"), serveFaults(t, "")
	remote.Name = "remote"
	use := func() {
		servers := []ServerConfig{hanging, remote}
		for _, mode := range []string{"ok", "crash-at-start", "hang-init", "tools-hang", "exit-mid-call", "close-stdout", "grandchild", "ignore-sigterm"} {
			servers = append(servers, testConfig(t, mode, mode))
		}
		for i := range servers {
			servers[i].ShutdownGrace = 50 * time.Millisecond
		}
		m := start(t, Options{Servers: servers, ConnectTimeout: 500 * time.Millisecond, Batch: ParallelConnectionLimits{Local: 10}})
		for _, tool := range []string{"exit-mid-call/echo", "close-stdout/echo", "remote/cut", "remote/half a body", "ok/echo"} {
			_, _ = m.Call(t.Context(), CallRequest{Tool: tool})
		}
		m.Close(context.WithoutCancel(t.Context()))
	}
	use() // the runtime opens some descriptors only once, and keeps them
	before := count()
	for range 3 {
		use()
	}
	eventually(t, 5*time.Second, func() bool { return count() <= before }, "%d descriptors, were %d", count(), before)
}

// TestProgressExtendsNothing checks that, if only the timeout of the server is set and none for the whole call, a call
// fails after this timeout even if it reports progress (M22).
func TestProgressExtendsNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "s", "progress", "MCPTEST_COUNT=100")
	cfg.Timeout = 200 * time.Millisecond
	m := start(t, Options{Servers: []ServerConfig{cfg}})
	res, err := m.Call(t.Context(), CallRequest{Tool: "mcp__s__echo", OnProgress: func(Progress) {}})
	if err != nil || !res.IsError || !strings.Contains(res.Content.Text, "timed out") {
		t.Errorf("%+v %v", res, err)
	}
}
