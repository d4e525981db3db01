package simtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simtest"
)

func TestTerminal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no pseudo-terminals")
	}
	dir := t.TempDir()
	t.Chdir(dir)
	claude := simtest.New(t, simtest.Call("Bash", map[string]any{"command": "mkdir seen"}), "Done.")
	terminal := claude.Terminal("--permission-mode", "default")
	terminal.WaitFor("? for shortcuts")
	if title := terminal.Screen().Title; title != "✳ Claude Code" {
		t.Errorf("title %q", title)
	}
	terminal.Type("make it")
	terminal.Press("Enter")
	terminal.WaitFor("Do you want to proceed?")
	screen := terminal.Screen()
	if screen.Cols != 110 || screen.Rows != 36 || len(screen.Cells) != 36 || !strings.Contains(screen.Text, "❯ 1. Yes") {
		t.Errorf("screen: %+v", screen)
	}
	terminal.Resize(80, 24)
	terminal.Press("Down", "Up", "Enter")
	terminal.WaitFor("Done.")
	if screen := terminal.Screen(); screen.Cols != 80 || strings.Count(screen.Text, "\n") != 24 {
		t.Errorf("screen after Resize: %+v", screen)
	}
	if tools := claude.Tools(); len(tools) != 1 || tools[0].Name != "Bash" {
		t.Errorf("it called %v", tools)
	}
	if _, err := os.Stat(filepath.Join(dir, "seen")); err != nil {
		t.Error(err)
	}
}

// fatalTB records the message of Fatalf, which ends the goroutine.
type fatalTB struct {
	testing.TB
	message string
}

func (f *fatalTB) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A terminal that cannot do what the test asks for fails the test with the screen.
func TestTerminalFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no pseudo-terminals")
	}
	tb := &fatalTB{TB: t}
	claude := simtest.New(tb).On("hello", "Hi.")
	terminal := claude.Terminal("--permission-mode", "default")
	terminal.WaitFor("? for shortcuts")
	terminal.Type("hello")
	terminal.Press("Enter")
	terminal.WaitFor("Hi.")
	for _, tt := range []struct {
		what string
		do   func()
		want []string
	}{
		{"a key that does not exist", func() { terminal.Press("Entr") }, []string{"unknown key name `Entr`; did you mean `Enter`?"}},
		{"a size out of bounds", func() { terminal.Resize(0, 1) }, []string{"invalid terminal size 0x1: write COLSxROWS, from 1x1 to "}},
		{"the end of claude", func() {
			terminal.Press("C-c")
			terminal.Press("C-c")
			terminal.WaitFor("nothing")
		}, []string{"waited for the text `nothing`, but the program exited: exit status 0", "the screen shows\n", "--resume"}},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			tt.do()
		}()
		<-done
		for _, want := range tt.want {
			if !strings.Contains(tb.message, want) {
				t.Errorf("%s: the message is\n%s\nand has no %q", tt.what, tb.message, want)
			}
		}
		tb.message = ""
	}
}
