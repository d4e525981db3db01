package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// host is a program that is to be killed. It has something done and shows what
// comes of it.
func host(as string, hold Command) {
	var err error
	switch as {
	case "server":
		var p *Process
		if p, err = Start(context.Background(), Options{Command: hold}); err == nil {
			io.Copy(os.Stdout, p.Stdout())
		}
	case "command":
		_, err = Run(context.Background(), RunOptions{Command: hold, Tee: os.Stdout})
	case "job", "left job":
		var j *Job
		if j, err = StartJob(context.Background(), JobOptions{Command: hold, Output: os.Stdout}); err == nil && as == "left job" {
			_, _, _ = j.Leave()
		}
		fmt.Println("under way") // the job's own line may come before its guard
	case "unguarded": // a command whose guard is not up yet
		var cmd *exec.Cmd
		if cmd, err = hold.build(); err == nil {
			cmd.Stdout = os.Stdout
			_, err = follow(cmd)
		}
	case "dir":
		var dir *TempDir
		if dir, err = MakeTempDir("proc-test-"); err == nil {
			fmt.Println(dir.Path)
		}
	}
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Hour)
}

// killHost starts a host, waits for its first line, or the one that says that all is
// under way, and kills it.
func killHost(t *testing.T, env ...string) (line string) {
	t.Helper()
	c := child(t, "host")
	host := exec.Command(c.Path)
	host.Env = append(append(c.Env, "PATH="+os.Getenv("PATH")), env...)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(out); ; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Error(err)
		}
		if err != nil || line != "ready\n" || !slices.Contains(env, "AS=job") {
			break
		}
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed
	return strings.TrimSuffix(line, "\n")
}

// TestKilled: when this program is killed, what it had started ends soon after, also what does not care for the end of
// its input or for SIGTERM, and what was started by it in the background.
func TestKilled(t *testing.T) {
	const hold, ready = `exec 9>"$FIFO"; `, `echo ready; `
	const background, stubborn = hold + `sleep 301 & ` + ready + `sleep 301; echo`, hold + `trap "" TERM; ` + ready + `sleep 301; sleep 301`
	tests := []struct{ name, as, script string }{
		{"command with background", "command", background},
		{"server with background", "server", background},
		{"stubborn command", "command", stubborn},
		{"stubborn server", "server", stubborn},
		{"job with background", "job", background},
		{"stubborn job", "job", stubborn},
		{"job that left something", "left job", hold + `sleep 301 & (trap "" TERM; sleep 301; sleep 301) & `},
		{"command without a guard", "unguarded", hold + ready + `exec sleep 301`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.as == "unguarded" && runtime.GOOS != "linux" {
				t.Skip("only Linux has death signals")
			}
			t.Parallel()
			fifo := filepath.Join(t.TempDir(), "held")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			held, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			killHost(t, "FIFO="+fifo, "SCRIPT="+test.script, "AS="+test.as)
			if err := held.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := held.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("somebody still holds the file: %v", err)
			}
		})
	}
}

// TestTempDir: a temporary directory goes when it is removed, and when this
// program is killed.
func TestTempDir(t *testing.T) {
	dir, err := MakeTempDir("proc-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Path, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := dir.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir.Path); !os.IsNotExist(err) {
		t.Errorf("%s is still there after Remove", dir.Path)
	}

	orphan := killHost(t, "AS=dir", "TMPDIR="+t.TempDir())
	deadline := time.After(10 * time.Second)
	for {
		if _, err := os.Stat(orphan); os.IsNotExist(err) {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s is still there after SIGKILL", orphan)
		}
	}
}
