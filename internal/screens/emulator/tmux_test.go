package emulator

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var books = flag.String("books", "", "directory of captured screens whose pages are replayed in tmux")

// TestBooksLikeTmux replays the output of the real CLI up to each captured page, and compares cells and cursor.
func TestBooksLikeTmux(t *testing.T) {
	t.Parallel()
	if *books == "" {
		t.Skip("-books=DIR names no captured screens, see docs/testing.md")
	}
	files, err := filepath.Glob(filepath.Join(*books, "*", "*", "*x*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in %s: %v", *books, err)
	}
	servers, different := map[string]*tmuxServer{}, 0
	for _, file := range files {
		var page struct {
			Tape               string
			Cols, Rows, Offset int
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		raw, rawErr := os.ReadFile(filepath.Join(filepath.Dir(file), page.Tape+".raw"))
		if err != nil || rawErr != nil {
			t.Fatal(file, err, rawErr)
		}
		size := fmt.Sprintf("%dx%d", page.Cols, page.Rows)
		if servers[size] == nil {
			servers[size] = startTmux(t, page.Cols, page.Rows)
		}
		if !servers[size].compare(t, file, string(raw[:page.Offset])) {
			different++
		}
	}
	t.Logf("%d pages replayed, %d differ", len(files), different)
}

// TestLikeTmux replays output in tmux and compares cells and cursor.
func TestLikeTmux(t *testing.T) {
	t.Parallel()
	server := startTmux(t, 40, 10)
	for _, c := range []struct{ name, output string }{
		{"text", "one\r\ntwo\x1b[5;6Hx"},
		{"styles", "\x1b[1;31mred\x1b[0m \x1b[48;5;237;38;2;1;2;3mtrue\x1b[0m \x1b[2;3;4;7;9mall\x1b[0m"},
		{"wrapped", strings.Repeat("abc ", 60)},
		{"wide", "日本語 ✳ ❯\u00a0● ⎿ ◐ e\u0301"},
		{"titles and links", "\x1b]0;✳ Claude Code\x07a\x1b]8;;http://x\x07link\x1b]8;;\x1b\\b"},
		{"scroll region", "1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\n\nx\x1b[r\x1b[8;8Hy"},
		{"erase", "aaaa\r\nbbbb\r\ncccc\x1b[2;3H\x1b[K\x1b[1J\x1b[3;2H\x1b[P\x1b[2@"},
		{"insert and delete lines", "1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[L\x1b[4;1H\x1b[2M"},
		{"alternate screen", "main\x1b[?1049h\x1b[Hother\x1b[2;2H"},
		{"broken UTF-8", "a\xffb\xe2\x9cc\r\n"},
		{"scrolled", strings.Repeat("line\r\n", 30) + "end"},
		{"synchronized", "\x1b[?2026h\x1b[2J\x1b[Hdrawn\x1b[?2026l\x1b[?25l"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server.compare(t, c.name, c.output)
		})
	}
}

// tmuxServer is a separate tmux server.
type tmuxServer struct {
	dir        string
	cols, rows int
	runs       int
}

func startTmux(t *testing.T, cols, rows int) *tmuxServer {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	s := &tmuxServer{dir: t.TempDir(), cols: cols, rows: rows}
	s.run(t, "-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(s.cols), "-y", strconv.Itoa(s.rows), "cat")
	t.Cleanup(func() { s.run(t, "kill-server") })
	s.run(t, "set-option", "-g", "status", "off")
	return s
}

func (s *tmuxServer) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", filepath.Join(s.dir, "socket")}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// replay shows output in a new window and returns the screen and the cursor.
func (s *tmuxServer) replay(t *testing.T, output string) (screen Screen, cursor string) {
	t.Helper()
	s.runs++
	file, name := filepath.Join(s.dir, "output"), fmt.Sprintf("shown-%d", s.runs)
	if err := os.WriteFile(file, []byte(output), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(s.dir, "socket")
	s.run(t, "new-window", "-n", name, fmt.Sprintf("stty raw -echo; cat '%s'; tmux -S '%s' wait-for -S %s; exec sleep 60", file, socket, name))
	s.run(t, "wait-for", name)
	cursor = strings.TrimSpace(s.run(t, "display-message", "-p", "#{cursor_x} #{cursor_y}"))
	e := New(s.cols, s.rows)
	lines := strings.TrimSuffix(s.run(t, "capture-pane", "-p", "-e", "-N"), "\n")
	_, _ = e.Write([]byte(strings.ReplaceAll(lines, "\n", "\r\n")))
	s.run(t, "kill-window")
	return e.Screen(), cursor
}

// compare reports whether tmux and the emulator show the same after the output.
func (s *tmuxServer) compare(t *testing.T, name, output string) bool {
	t.Helper()
	e := New(s.cols, s.rows)
	_, _ = e.Write([]byte(output))
	want, cursor := s.replay(t, output)
	got := e.Screen()
	diff := cmp.Diff(want.Cells, got.Cells)
	if diff != "" {
		t.Errorf("%s: cells (-tmux +emulator):\n%s", name, diff)
	}
	var col, row int
	if _, err := fmt.Sscan(cursor, &col, &row); err != nil {
		t.Fatal(err)
	}
	col = min(col, s.cols-1) // tmux reports a cursor that is about to wrap after the last column
	moved := got.Cursor.Col != col || got.Cursor.Row != row
	if moved {
		t.Errorf("%s: cursor %+v, in tmux %s", name, got.Cursor, cursor)
	}
	return diff == "" && !moved
}
