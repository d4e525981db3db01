package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runClient is a program with a manager: it prints the process id of its server and waits to be killed.
func runClient() int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	ctx := context.Background()
	m, err := New(Options{Environ: os.Environ(), Servers: []ServerConfig{{Name: "s", Command: self, Env: map[string]string{"MCPTEST_MODE": "hang-call"}}}})
	if err != nil {
		return 1
	}
	if err := m.StartAndWait(ctx); err != nil {
		return 1
	}
	fmt.Println(m.Servers()[0].PID)
	_, _ = m.Call(ctx, CallRequest{Tool: "mcp__s__echo"})
	return 0
}

// TestKilled: when this program is killed, its servers read the end of their input and exit, even during a call (C48: a
// parent-death signal is not used, because it is bound to a thread and not to the process).
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "MCPTEST_CLIENT=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid == 0 {
		t.Errorf("no server: %q", line)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, 1500*time.Millisecond, func() bool { return onlyZombies(pid) }, "server %d lives on", pid)
}

// TestQuiet checks that misbehaving servers cause no output in the program's log. mcp-go would write there.
func TestQuiet(t *testing.T) {
	var log logBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	for _, mode := range []string{"garbage", "exit-mid-call", "close-stdout", "bad-error", "string-id", "crash-at-start", "s2c"} {
		cfg := testConfig(t, "s", mode)
		cfg.Timeout, cfg.ShutdownGrace = 100*time.Millisecond, 50*time.Millisecond
		m := start(t, Options{Servers: []ServerConfig{cfg}})
		call(t, m, "echo", `{}`)
		m.Close(context.WithoutCancel(t.Context()))
	}
	f := newFakeHTTP(t, nil)
	m := start(t, Options{Servers: []ServerConfig{remoteConfig(f)}})
	f.get <- "data: {broken\n\n"
	call(t, m, "wrong", `{}`)
	f.CloseClientConnections()
	call(t, m, "echo", `{}`)
	m.Close(context.WithoutCancel(t.Context()))
	if text := log.String(); len(bytes.TrimSpace([]byte(text))) > 0 {
		t.Errorf("logged\n%s", text)
	}
}

// TestEndIsNoFailure: a server that exits during our shutdown, with a status or a signal, is not reported as failed
// (M47).
func TestEndIsNoFailure(t *testing.T) {
	t.Parallel()
	var debug logBuffer
	servers := []ServerConfig{testConfig(t, "s", "ok"), testConfig(t, "i", "ignore-eof"), testConfig(t, "k", "ignore-sigterm")}
	for i := range servers {
		servers[i].ShutdownGrace = 50 * time.Millisecond
	}
	m := start(t, Options{Servers: servers, Debug: &debug})
	m.Close(context.WithoutCancel(t.Context()))
	for _, s := range m.Servers() {
		if s.State != StateDisconnected || s.Error != "" || s.WireError != "" {
			t.Errorf("%s: %s, %q", s.Name, s.State, s.Error)
		}
	}
	if strings.Contains(debug.String(), "fail") {
		t.Errorf("got\n%s", debug.String())
	}
}

// TestErrorKinds: an error answer keeps code, message and data; timeout, lost connection and cancellation are
// distinguished (M21; C37, C137, C138).
func TestErrorKinds(t *testing.T) {
	t.Parallel()
	rpc := start(t, Options{Servers: []ServerConfig{testConfig(t, "s", "rpc-error")}})
	_, err := rpc.CallRaw(t.Context(), CallRequest{Tool: "echo"})
	if diff := cmp.Diff(&RPCError{Code: -32050, Message: "quota used up", Data: map[string]any{"left": 0.0}}, err); diff != "" {
		t.Error(diff)
	}
	hang := startOne(t, "hang-call")
	_, err = hang.CallRaw(t.Context(), CallRequest{Tool: "echo", Timeout: 50 * time.Millisecond})
	if e := new(CallTimeoutError); !errors.As(err, &e) || *e != (CallTimeoutError{Server: "s", Tool: "echo", Limit: 50 * time.Millisecond}) {
		t.Errorf("timeout: %v", err)
	}
	ctx, cancel := contextWithTimer(t, 50*time.Millisecond)
	defer cancel()
	if _, err = hang.CallRaw(ctx, CallRequest{Tool: "echo"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err = startOne(t, "exit-mid-call").CallRaw(t.Context(), CallRequest{Tool: "echo"}); !errors.Is(err, ErrConnectionClosed) {
		t.Errorf("loss: %v", err)
	}
	if _, err = hang.CallRaw(t.Context(), CallRequest{Tool: "nope"}); !errors.Is(err, ErrUnknownTool) {
		t.Errorf("rejected: %v", err)
	}
}

// TestServerKilled: a server that is killed while it connects, lists, runs a call or reconnects is detected at once
// and reported with its signal. Its descendants, descriptors and goroutines (goleak) end with it, before the manager
// closes (M37, M46).
func TestServerKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	on := true
	for _, test := range []struct {
		name, mode string
		heard      string // the server is killed when it has received this message
		want       ServerState
		connected  bool // the server is connected before it is killed
		reconnect  bool
	}{
		{name: "connecting", mode: "hang-init", heard: `"initialize"`, want: StateFailed},
		{name: "listing", mode: "tools-hang", heard: `"tools/list"`, want: StateConnected}, // it has no tools, as in the real CLI
		{name: "calling", mode: "hang-call", heard: `"tools/call"`, connected: true, want: StateLost},
		{name: "idle, with a descendant", mode: "grandchild", heard: `"tools/call"`, connected: true, want: StateLost},
		{name: "coming back", mode: "hang-call", heard: `"tools/call"`, connected: true, want: StateConnected, reconnect: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			log := filepath.Join(t.TempDir(), "log")
			cfg := testConfig(t, "s", test.mode, "MCPTEST_LOG="+log)
			cfg.Command, cfg.Args = "sh", []string{"-c", `echo $$ >>"$0"; exec "$1"`, pids, self}
			if test.reconnect {
				cfg.AutoReconnect = &on
			}
			m, err := New(Options{Servers: []ServerConfig{cfg}, Environ: os.Environ(), Pauses: RetryPauses{Reconnect: 10 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			started := make(chan error, 1)
			go func() { started <- m.StartAndWait(t.Context()) }()
			pid := func(n int) int {
				var p int
				eventually(t, 10*time.Second, func() bool {
					all := strings.Fields(readFileText(pids))
					if len(all) <= n {
						return false
					}
					p, _ = strconv.Atoi(all[n])
					return p != 0
				}, "process %d was not started", n)
				return p
			}
			first := pid(0)
			called := make(chan string, 1)
			if test.connected {
				if err := <-started; err != nil {
					t.Fatal(err)
				}
				go func() { called <- call(t, m, "echo", `{}`) }()
			}
			kill := func(p int) {
				server, err := os.FindProcess(p)
				if err == nil {
					err = server.Kill()
				}
				if err != nil {
					t.Error(err)
				}
			}
			eventually(t, 10*time.Second, func() bool { return strings.Contains(readFileText(log), test.heard) }, "never heard %s", test.heard)
			kill(first)
			if test.reconnect { // the new process is also killed
				kill(pid(1))
			}
			if !test.connected {
				if err := <-started; err != nil {
					t.Error(err)
				}
			}
			eventually(t, 10*time.Second, func() bool { return m.Servers()[0].State == test.want }, "not %s", test.want)
			if st := m.Servers()[0]; test.want != StateConnected && !strings.Contains(st.Error, "killed") {
				t.Errorf("%s: %q", st.State, st.Error)
			}
			if test.mode == "hang-call" {
				if got := <-called; got != `isError: "Connection closed"` {
					t.Errorf("the call: %s", got)
				}
			} else if test.connected {
				<-called
			}
			assertGone(t, first)
			if err := m.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
			for i := range strings.Fields(readFileText(pids)) {
				assertGone(t, pid(i))
			}
		})
	}
}
