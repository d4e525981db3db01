package tape

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

func TestServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no pseudo-terminals")
	}
	terminal, err := StartProgramInTerminal(t.Context(), ProgramInTerminalOptions{
		Path: "/bin/sh", Args: []string{"-c", `printf '\033]0;name\033\\\033[1mA\033[m中%s' "$TMUX$TERM"; read -r x`},
		Env: append(os.Environ(), "TMUX=server", "TERM=dumb"), Cols: 20, Rows: 5, Clock: machineClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.StopProgram()
	var out strings.Builder
	if err := AnswerTerminalRequests(t.Context(), terminal, strings.NewReader("{\"wait\": \"256color\", \"timeout_ms\": 60000}\n\n{\"screen\": true}"), &out); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(out.String(), "\n")
	if first != "{}" {
		t.Fatal(first)
	}
	var got responseToDriver
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
