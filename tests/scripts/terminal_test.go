//go:build unix

package scripts

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// terminalRun is the binary in a pseudo-terminal.
type terminalRun struct {
	process    *os.Process
	controller *os.File
	terminal   *os.File
	before     *term.State // of the terminal
	exited     chan *os.ProcessState

	mu      sync.Mutex
	output  bytes.Buffer
	written chan struct{} // cap 1
}

// startTerminal starts claude with a scenario in a pseudo-terminal. The test keeps the terminal open, so that it can
// read its modes at the end.
func startTerminal(t *testing.T, scenario string) *terminalRun {
	t.Helper()
	claude, err := exec.LookPath("claude")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "s.toml")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &terminalRun{exited: make(chan *os.ProcessState, 1), written: make(chan struct{}, 1)}
	pair, err := emulator.OpenTerminalPair(emulator.Size{Cols: 100, Rows: 30})
	if errors.Is(err, emulator.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pair.Close() })
	r.controller, r.terminal = pair.Controller, pair.Terminal
	if r.before, err = term.GetState(int(r.terminal.Fd())); err != nil {
		t.Fatal(err)
	}
	r.process, err = os.StartProcess(claude, []string{"claude", "--permission-mode", "default"}, &os.ProcAttr{
		Dir: dir, Files: []*os.File{r.terminal, r.terminal, r.terminal}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true},
		Env: append(os.Environ(), "HOME="+dir, "CLAUDELESS_CONFIG_DIR="+filepath.Join(dir, "config"), "CLAUDELESS_SCENARIO="+file, "CLAUDELESS_GATES="+filepath.Join(dir, "gates"), "TMUX="),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.process.Kill() })
	go func() { // returns with the process
		state, _ := r.process.Wait()
		r.exited <- state
	}()
	go func() { // returns with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := r.controller.Read(buf)
			r.mu.Lock()
			r.output.Write(buf[:n])
			r.mu.Unlock()
			select {
			case r.written <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

// send types keys.
func (r *terminalRun) send(t *testing.T, keys string) {
	t.Helper()
	if _, err := r.controller.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// wait waits until the process has written a text.
func (r *terminalRun) wait(t *testing.T, text string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		got := r.output.String()
		r.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		select {
		case <-r.written:
		case <-limit:
			t.Fatalf("%q was never written: %q", text, got)
		}
	}
}

// TestTerminalIsRestored: after an interactive run ends in any way, the modes of the terminal are restored, all
// processes of the run have exited, and a running tool has been stopped.
func TestTerminalIsRestored(t *testing.T) {
	t.Parallel()
	const scenario = `
[tool_execution.tools.Bash]
auto_approve = true
[[responses]]
pattern = { type = "contains", text = "sleep" }
[[responses.response.steps]]
tool_calls = [ { tool = "Bash", input = { command = "echo $$ > pid; exec sleep 600", description = "Wait" } } ]
[[responses]]
pattern = { type = "any" }
response = "Hello there."
`
	for name, tt := range map[string]struct {
		end  func(t *testing.T, r *terminalRun) error
		code int
	}{
		"exit": {func(t *testing.T, r *terminalRun) error {
			t.Helper()
			r.send(t, "\x03")
			r.wait(t, "Interrupted")
			r.send(t, "\x03")
			r.wait(t, "Press Ctrl-C again to exit")
			r.send(t, "\x03")
			return nil
		}, 0},
		"SIGTERM": {func(_ *testing.T, r *terminalRun) error { return r.process.Signal(syscall.SIGTERM) }, 143},
		"SIGHUP":  {func(_ *testing.T, r *terminalRun) error { return r.process.Signal(syscall.SIGHUP) }, 129},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startTerminal(t, scenario)
			r.wait(t, "for shortcuts")
			r.send(t, "sleep")
			r.wait(t, "sleep")
			r.send(t, "\r")
			r.wait(t, "exec sleep 600")
			if err := tt.end(t, r); err != nil {
				t.Fatal(err)
			}
			select {
			case state := <-r.exited:
				if state.ExitCode() != tt.code {
					t.Errorf("exit code %d, want %d", state.ExitCode(), tt.code)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the run did not end")
			}
			after, err := term.GetState(int(r.terminal.Fd()))
			if err != nil || *after != *r.before {
				t.Errorf("the modes of the terminal are %+v, were %+v (%v)", after, r.before, err)
			}
			r.wait(t, "\x1b[?1049l")
			r.wait(t, "\x1b[?2004l")
			if err := syscall.Kill(-r.process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("processes of the run are left: %v", err)
			}
		})
	}
}
