package tool_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/executor/internal/tool"
)

func start(t *testing.T, s *tool.Shell, line string) *tool.ShellCommand {
	t.Helper()
	c, err := s.Start(t.Context(), line, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func runShell(t *testing.T, s *tool.Shell, line string) string {
	t.Helper()
	c := start(t, s, line)
	c.Wait()
	defer c.CloseAndRemoveOutput()
	return c.Output(1 << 20)
}

// Paths of tools are read without white space at their ends, and ~ is the home directory.
func TestPaths(t *testing.T) {
	s := tool.NewShell(tool.ShellOptions{CWD: "/w", Environ: []string{"HOME=/h"}})
	defer s.Close()
	for path, want := range map[string]string{" a ": "/w/a", "\ufeffa\u00a0\n": "/w/a", "a\u0085": "/w/a\u0085", "~": "/h", " ~/x": "/h/x", "~x": "/w/~x", "/x/": "/x", "": "/w"} {
		if got := s.Path(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}

// A process that a command leaves in the background runs while the shell is open, and its output goes to the same file.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s := tool.NewShell(tool.ShellOptions{CWD: dir, Environ: os.Environ()})
	defer s.Close()
	kept := filepath.Join(dir, "out")
	c, err := s.Start(t.Context(), "mkfifo go; { read x <go; echo late; } & echo $! now", kept)
	if err != nil {
		t.Fatal(err)
	}
	if code := c.Wait(); code != 0 {
		t.Errorf("code %d", code)
	}
	pid, _, ok := strings.Cut(c.Output(100), " now\n")
	if !ok {
		t.Fatalf("printed %q", c.Output(100))
	}
	if got := runShell(t, s, "kill -0 "+pid+" && echo runs; echo >go; while kill -0 "+pid+" 2>/dev/null; do :; done; tail -n 1 out"); got != "runs\nlate\n" {
		t.Errorf("the next command printed %q", got)
	}
	start(t, s, "{ exec 3>go; sleep 1000; } >/dev/null &").Wait()
	held, err := os.Open(filepath.Join(dir, "go"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s.Close()
	if _, err := io.ReadAll(held); err != nil { // ends when the last process that has the other end exits
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	s := tool.NewShell(tool.ShellOptions{CWD: tmp, Environ: os.Environ()})
	if got := runShell(t, s, "echo hi"); got != "hi\n" {
		t.Errorf("printed %q", got)
	}
	for range 2 {
		s.Close()
	}
	if left, err := os.ReadDir(tmp); len(left) > 0 || err != nil {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
	if _, err := s.Start(t.Context(), "true", ""); err == nil {
		t.Error("a command ran after Close")
	}
}

// Closing the shell does not end a running command; its caller does.
func TestStop(t *testing.T) {
	s := tool.NewShell(tool.ShellOptions{CWD: t.TempDir(), Environ: os.Environ()})
	c := start(t, s, "sleep 1000")
	s.Close()
	select {
	case <-c.Done():
		t.Error("ended by Close")
	default:
	}
	c.Stop()
	if code := c.Wait(); code != 144 {
		t.Errorf("code %d", code)
	}
}

func TestEditsInPlace(t *testing.T) {
	for command, want := range map[string]bool{
		"sed -i s/a/b/ x": true, "sed -E -i.bak s/a/b/ x": true, "sed -ni p x": true, "xargs sed -i": true, "sed s/a/b/ x": false, "echo -i": false,
		"prettier --write x": true, "eslint . --fix": true, "tool --in-place": true, "tool -w x": false, "prettier x": false,
		"black x": true, "cd . && isort x": true, "rustfmt x": true, "gofmt -w x": false, "blackbox": false,
		"cargo fmt": true, "cargo fix": true, "go fmt ./...": true, "terraform fmt": true, "dprint fmt": true, "ruff format": true, "ruff check": false, "zig fmt x": false,
		"npm run format": true, "npm run format:check": true, "pnpm lint:fix": true, "yarn fix": true, "npm run fmt": false, "npm run reformat": false, "npm test": false,
	} {
		if got := tool.EditsInPlace(command); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}
