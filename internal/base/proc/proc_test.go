package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain makes the test binary a child process if PROC_CHILD is set.
func TestMain(m *testing.M) {
	mode := os.Getenv("PROC_CHILD")
	if mode == "" {
		goleak.VerifyTestMain(m)
		return
	}
	switch mode {
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
	case "exit3":
		fmt.Fprintln(os.Stderr, "fatal: boom")
		os.Exit(3)
	case "deaf": // ignores the end of its input
		time.Sleep(time.Hour)
	case "stubborn": // ignores the end of its input and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "grandchild":
		p, err := os.StartProcess("/bin/sleep", []string{"sleep", "301"}, &os.ProcAttr{})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Pid)
		io.Copy(io.Discard, os.Stdin)
	case "host":
		hostProgram(os.Getenv("AS"), Command{Path: "/bin/sh", Args: []string{"-c", os.Getenv("SCRIPT")}, Env: os.Environ()})
	case "flood":
		for range 2048 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 1023))
		}
		fmt.Fprintln(os.Stderr, "last")
	}
	os.Exit(0)
}

func childCommand(tb testing.TB, mode string) Command {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return Command{Path: self, Env: []string{"PROC_CHILD=" + mode, "GORACE=atexit_sleep_ms=0"}}
}

func startChild(tb testing.TB, mode string) *Process {
	tb.Helper()
	p, err := Start(tb.Context(), Options{Command: childCommand(tb, mode)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Stop(context.WithoutCancel(tb.Context())) })
	return p
}

// openFiles counts this process's file descriptors.
func openFiles(tb testing.TB) int {
	tb.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		tb.Skip("no /proc")
	}
	return len(entries)
}

// patience is a time limit that only a hanging test exceeds, even on a busy machine.
const patience = 30 * time.Second

// TestStop: each stage of stopping terminates the processes that survived the previous stage, and not earlier than
// specified. Afterwards the group has ended and all descriptors are closed (M45, M46).
func TestStop(t *testing.T) {
	tests := []struct {
		mode string
		min  time.Duration
		want string
	}{
		{"cat", 0, "exit status 0"},
		{"deaf", 400 * time.Millisecond, "signal: terminated"},
		{"stubborn", 900 * time.Millisecond, "signal: killed"},
		{"grandchild", 0, "exit status 0"},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			files := openFiles(t)
			p := startChild(t, test.mode)
			if test.mode == "stubborn" || test.mode == "grandchild" {
				p.Stdout().Read(make([]byte, 16)) // the process is ready
			}
			before := time.Now()
			p.Stop(t.Context())
			if took := time.Since(before); took < test.min || took > patience {
				t.Errorf("took %v", took)
			}
			if exit, ok := p.ExitStatus(); !ok || exit.String() != test.want {
				t.Errorf("got %v %v", exit, ok)
			}
			if groupHasMembers(p.PID()) && test.mode != "grandchild" { // a zombie may wait there until init reaps it
				t.Error("the group is still there")
			}
			p.Stop(t.Context())
			if now := openFiles(t); now > files {
				t.Errorf("%d descriptors, were %d", now, files)
			}
		})
	}
}

// TestExit: the status and stderr of a child that exits are known without Stop, and it does not become a zombie.
func TestExit(t *testing.T) {
	p := startChild(t, "exit3")
	<-p.Done()
	if exit, _ := p.ExitStatus(); exit.Code != 3 || exit.String() != "exit status 3" {
		t.Errorf("got %v", exit)
	}
	if got := p.StderrTail(); got != "fatal: boom\n" {
		t.Errorf("got %q", got)
	}
	if child, err := os.FindProcess(p.PID()); err == nil && child.Signal(syscall.Signal(0)) == nil {
		t.Error("a zombie is left")
	}
}

// TestStderr: a large output on stderr neither blocks the child nor exceeds the ring buffer, and is copied
// completely.
func TestStderr(t *testing.T) {
	var mirror bytes.Buffer
	p, err := Start(t.Context(), Options{Command: childCommand(t, "flood"), Stderr: &mirror})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	tail := p.StderrTail()
	p.Stop(t.Context())
	if len(tail) != stderrTailBytes || !strings.HasSuffix(tail, "\nlast\n") || mirror.Len() != 2048*1024+5 {
		t.Errorf("tail %d, mirror %d", len(tail), mirror.Len())
	}
}

// TestStdinNeverBlocks: a child that does not read delays the writer only up to the limit.
func TestStdinNeverBlocks(t *testing.T) {
	p, err := Start(t.Context(), Options{Command: childCommand(t, "deaf"), StdinLimit: 1 << 20, Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(t.Context())
	chunk := make([]byte, 300<<10)
	for {
		if _, err = p.Stdin().Write(chunk); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrQueueFull) {
		t.Error(err)
	}
}

func TestQueueOrder(t *testing.T) {
	p := startChild(t, "cat")
	var want strings.Builder
	for i := range 2000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		p.Stdin().Write([]byte(line))
	}
	p.Stdin().CloseWhenSent()
	got, err := io.ReadAll(p.Stdout())
	if err != nil || string(got) != want.String() {
		t.Errorf("%d bytes, want %d, %v", len(got), want.Len(), err)
	}
	if _, err := p.Stdin().Write([]byte("x")); !errors.Is(err, ErrQueueClosed) {
		t.Error(err)
	}
}

// TestNotFound: the program is looked up in the child's PATH (M10).
func TestNotFound(t *testing.T) {
	for _, path := range []string{"nosuch", "./nosuch", ""} {
		_, err := Start(t.Context(), Options{Command: Command{Path: path, Env: []string{"PATH=/bin:/usr/bin"}}})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := Start(t.Context(), Options{Command: Command{Path: "sh"}}); err == nil {
		t.Error("found sh without a PATH")
	}
}

func shellCommand(script string) Command {
	return Command{Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}}
}

func TestRun(t *testing.T) {
	tests := []struct {
		name string
		o    RunOptions
		want string
	}{
		{"streams", RunOptions{Command: shellCommand("echo out; echo err >&2; exit 3")}, `"out\n" "err\n" exit status 3`},
		{"combined", RunOptions{Command: shellCommand("echo a; echo b >&2; echo c"), Combined: true}, `"a\nb\nc\n" "" exit status 0`},
		{"stdin", RunOptions{Command: shellCommand("cat"), Stdin: []byte("hi")}, `"hi" "" exit status 0`},
		{"stdin not read", RunOptions{Command: shellCommand("true"), Stdin: make([]byte, 1<<20)}, `"" "" exit status 0`},
		{"limit", RunOptions{Command: shellCommand("head -c 100 /dev/zero | tr '\\0' x"), Limit: 4}, `"xxxx" "" exit status 0 truncated`},
		{"timeout", RunOptions{Command: shellCommand("trap 'exit 143' TERM; echo on; sleep 301 & wait"), Timeout: 200 * time.Millisecond}, `"on\n" "" exit status 143 timed out`},
		{"stubborn", RunOptions{Command: shellCommand("trap '' TERM; sleep 301; sleep 301"), Timeout: 100 * time.Millisecond, KillAfter: 100 * time.Millisecond}, `"" "" signal: killed timed out`},
		{"background", RunOptions{Command: shellCommand("sleep 301 & echo gone")}, `"gone\n" "" exit status 0`},
		{"aside", RunOptions{Command: shellCommand("echo out; echo note >/dev/fd/40; exit 3"), NoteFD: 40}, `"out\n" "" exit status 3 note`},
		{"nothing aside", RunOptions{Command: shellCommand("exec echo out"), NoteFD: 40}, `"out\n" "" exit status 0`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := openFiles(t)
			before := time.Now()
			res, err := Run(t.Context(), test.o)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%q %q %s", res.Stdout, res.Stderr, res.Exit)
			if res.Truncated {
				got += " truncated"
			}
			if res.TimedOut {
				got += " timed out"
			}
			if res.Note != nil {
				got += strings.TrimRight(" "+string(res.Note), " \n")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if took := time.Since(before); took > patience {
				t.Errorf("took %v", took)
			}
			if now := openFiles(t); now > files {
				t.Errorf("%d descriptors, were %d", now, files)
			}
		})
	}
}

// TestRunCancelled: cancelling ctx stops the command, and Run returns the error of ctx.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	before := time.Now()
	res, err := Run(ctx, RunOptions{Command: shellCommand("sleep 301")})
	if !errors.Is(err, context.Canceled) || res.Exit.Signal == "" {
		t.Errorf("got %+v, %v", res, err)
	}
	if took := time.Since(before); took > patience {
		t.Errorf("took %v", took)
	}
}
