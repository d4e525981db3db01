//go:build unix

package builtin

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

// The result of a command that only reads does not list files that another program changes in the meantime.
func TestBashReadOnlyCommandListsNoChanges(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tools := newTools(t, Options{CWD: dir, Modes: &fakeModes{mode: protocol.ModeBypass}})
	fifo := filepath.Join(dir, ".git", "fifo") // makes the command wait until the file has changed
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		command string
		lists   bool
	}{{"cat .git/fifo", false}, {"cat .git/fifo; true > other.txt", true}} {
		written := make(chan error)
		go func() {
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the command has opened the file
			if err == nil {
				err = errors.Join(os.WriteFile(filepath.Join(dir, "side.txt"), []byte(test.command), 0o600), w.Close())
			}
			written <- err
		}()
		r := call(t, tools, "Bash", tooltest.Input{"command": test.command})
		raw, err := protocol.Marshal(r.Output)
		if err = errors.Join(err, <-written); err != nil || strings.Contains(string(raw), "side.txt") != test.lists {
			t.Errorf("%s: %s (%v)", test.command, raw, err)
		}
	}
}

// If another prompt comes first, a running command continues to its end, unless the process must end.
func TestBashSuperseded(t *testing.T) {
	for _, processEnds := range []bool{false, true} {
		dir := t.TempDir()
		fifo := filepath.Join(dir, "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Skip(err)
		}
		tools := newTools(t, Options{CWD: dir})
		ctx, cancel := context.WithCancelCause(t.Context())
		ends := make(chan struct{})
		closed := make(chan error, 1)
		go func() {
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the command has opened the file
			cancel(executor.SupersededError{ProcessEnds: ends})
			if processEnds {
				close(ends)
				<-t.Context().Done()
			}
			closed <- errors.Join(err, w.Close())
		}()
		r, _ := tools.Execute(ctx, protocol.ToolUse{Name: "Bash", Input: []byte(`{"command":"cat fifo; echo done"}`)})
		if text := r.Content.Plain(); (text == "done") == processEnds {
			t.Errorf("the process ends: %t; the result is %q", processEnds, text)
		}
		if !processEnds {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
	}
}
