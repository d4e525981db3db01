//go:build unix

package proc

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestKilled: when this program is killed, its processes exit soon, including those that ignore the end of input or
// SIGTERM and those in the background.
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
		{"process of a run", "run", stubborn},
		{"command without a guard", "unguarded", hold + ready + `exec sleep 301`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if (test.as == "unguarded" || test.as == "run") && runtime.GOOS != "linux" {
				t.Skip("only Linux has death signals, and shows the environment of a process")
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
			if err := held.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := held.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("somebody still holds the file: %v", err)
			}
		})
	}
}
