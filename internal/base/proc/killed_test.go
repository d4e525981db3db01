package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostProgram is a program that the test kills. It performs an action and prints the result.
func hostProgram(as string, hold Command) {
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
			_, _, _ = j.WaitExit()
		}
		fmt.Println("under way") // the output of the job may come before its guard runs
	case "unguarded": // a command whose guard has not started yet
		var cmd *exec.Cmd
		if cmd, err = hold.build(); err == nil {
			cmd.Stdout = os.Stdout
			_, err = startWithDeathSignal(cmd)
		}
	case "run": // a process that is watched only by the guard of its run
		var dir *TempDir
		if dir, err = MakeTempDirKillingMarked("proc-test-", "PROC_TEST_RUN"); err == nil {
			cmd := exec.Command(hold.Path, hold.Args...)
			cmd.Env, cmd.Stdout = append(hold.Env, "PROC_TEST_RUN="+filepath.Base(dir.Path)), os.Stdout
			err = cmd.Start()
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

// killHost starts a host, waits for the line that says that it is ready, and kills it.
func killHost(t *testing.T, env ...string) (line string) {
	t.Helper()
	c := childCommand(t, "host")
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

// TestTempDir: a temporary directory is deleted when it is removed, and when this program is killed.
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
