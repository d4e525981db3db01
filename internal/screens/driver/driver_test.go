package driver

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

type machineClock struct{}

func (machineClock) Now() time.Time                         { return time.Now() }
func (machineClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Serve answers each request with a line; the screen has the cells and the text of every row.
func TestServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no pseudo-terminals")
	}
	terminal, err := Start(t.Context(), Options{
		Path: "/bin/sh", Args: []string{"-c", `printf '\033]0;name\033\\\033[1mA\033[m中%s' "$TMUX$TERM"; read -r x`},
		Env: append(os.Environ(), "TMUX=server", "TERM=dumb"), Cols: 20, Rows: 5, Clock: machineClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Stop()
	var out strings.Builder
	if err := Serve(t.Context(), terminal, strings.NewReader("{\"wait\": \"256color\", \"timeout_ms\": 60000}\n\n{\"screen\": true}"), &out); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(out.String(), "\n")
	if first != "{}" {
		t.Fatal(first)
	}
	var got answer
	if err := json.Unmarshal([]byte(second), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Screen
	if want := "A中xterm-256color\n\n\n\n\n"; s.Text != want || s.Title != "name" || s.Cols != 20 || s.Rows != 5 {
		t.Errorf("screen %+v", s)
	}
	want := []emulator.Cell{{Text: "A", Width: 1, Style: "\x1b[1m"}, {Text: "中", Width: 2}, {Text: "x", Width: 1}}
	if diff := cmp.Diff(want, s.Cells[0][:3]); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
