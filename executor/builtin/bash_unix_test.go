//go:build unix

package builtin

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
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
		r := call(t, tools, "Bash", toolInput{"command": test.command})
		raw, err := protocol.Marshal(r.Output)
		if err = errors.Join(err, <-written); err != nil || strings.Contains(string(raw), "side.txt") != test.lists {
			t.Errorf("%s: %s (%v)", test.command, raw, err)
		}
	}
}
