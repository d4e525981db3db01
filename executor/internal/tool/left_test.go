package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
)

// On Windows the Bash tool is refused, and the error lists the tools that work there.
func TestCheckSystem(t *testing.T) {
	if err := checkSystemSupportsBash("windows"); err == nil || !strings.Contains(err.Error(), "canned result") {
		t.Errorf("on Windows: %v", err)
	}
	for _, goos := range []string{"linux", "darwin"} {
		if err := checkSystemSupportsBash(goos); err != nil {
			t.Errorf("on %s: %v", goos, err)
		}
	}
}

// A command starts only after its cleanup is set up: if claudeless is killed before, no process remains.
func TestNothingUnguarded(t *testing.T) {
	dir := t.TempDir()
	for name, input := range map[string]string{"alone": "", "guarded": "\n"} {
		c := proc.Command{Path: "/bin/sh", Args: []string{"-c", shellWrapper, "sh", "touch " + name, "/dev/null", ""}, Dir: dir, Env: os.Environ()}
		if _, err := proc.Run(t.Context(), proc.RunOptions{Command: c, Stdin: []byte(input)}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != (input != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Background processes that have exited are forgotten. Otherwise a long session would keep a guard process for each.
func TestLeftIsForgotten(t *testing.T) {
	s := NewShell(ShellOptions{CWD: t.TempDir(), Environ: os.Environ()})
	defer s.Close()
	behind := func(line string) {
		c, err := s.Start(t.Context(), line, "")
		if err != nil {
			t.Fatal(err)
		}
		c.Wait()
		c.CloseAndRemoveOutput()
	}
	behind("mkfifo go; sleep 1000 &")
	for range 5 {
		behind("{ read -r x <go; } &")
		behind("echo >go")
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.backgroundJobs) > 2; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are kept", len(s.backgroundJobs))
		}
		behind("sleep 1000 & kill $!")
	}
	if len(s.backgroundJobs) == 0 || s.backgroundJobs[0].ReleaseIfAllEnded() {
		t.Error("what runs was forgotten")
	}
}
