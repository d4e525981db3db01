package mcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// runClient is a program with a manager: it prints its server's process id and
// waits to be killed.
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
	if err := m.Start(ctx); err != nil {
		return 1
	}
	fmt.Println(m.Servers()[0].PID)
	_, _ = m.Call(ctx, CallRequest{Tool: "mcp__s__echo"})
	return 0
}

// TestKilled: when this program is killed its servers see the end of their
// input and go, also in the middle of a call (C48: that, and no death signal,
// which would follow the thread and not the process).
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

// TestQuiet: nothing is written to the program's log, whatever servers do:
// mcp-go would.
func TestQuiet(t *testing.T) {
	var log logBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	for _, mode := range []string{"garbage", "exit-mid-call", "close-stdout", "bad-error", "string-id", "crash-at-start", "s2c"} {
		cfg := config(t, "s", mode)
		cfg.Timeout, cfg.ShutdownGrace = 100*time.Millisecond, 50*time.Millisecond
		m := start(t, Options{Servers: []ServerConfig{cfg}})
		call(t, m, "echo", `{}`)
		m.Close(context.WithoutCancel(t.Context()))
	}
	f := newFakeHTTP(t, nil)
	m := start(t, Options{Servers: []ServerConfig{remote(f)}})
	f.get <- "data: {broken\n\n"
	call(t, m, "wrong", `{}`)
	f.CloseClientConnections()
	call(t, m, "echo", `{}`)
	m.Close(context.WithoutCancel(t.Context()))
	if text := log.String(); len(bytes.TrimSpace([]byte(text))) > 0 {
		t.Errorf("logged\n%s", text)
	}
}
