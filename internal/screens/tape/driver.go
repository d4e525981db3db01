package tape

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// TerminalOptions describe a program and its terminal. TMUX and TMUX_PANE are removed from the environment, because the
// program does not run inside tmux.
type TerminalOptions struct {
	Path       string   // path of the program, or its name on PATH
	Args       []string // without the program's name
	Env        []string // the complete environment
	Cols, Rows int      // the size of the terminal
	Clock      Clock
}

// Terminal is a running program and its screen. It is used by one goroutine at a time; the caller must call Stop.
type Terminal struct {
	program  *emulator.Program
	screen   *emulator.Emulator
	playback *Playback
}

// StartTerminal starts a program. ctx bounds only the start.
func StartTerminal(ctx context.Context, o TerminalOptions) (*Terminal, error) {
	size := emulator.Size{Cols: o.Cols, Rows: o.Rows}
	command := proc.Command{Path: o.Path, Args: o.Args}
	command.Env = slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return name == "TMUX" || name == "TMUX_PANE" || name == "TERM"
	})
	command.Env = append(command.Env, "TERM=xterm-256color")
	program, err := emulator.StartProgram(ctx, emulator.ProgramOptions{Command: command, Size: size})
	if err != nil {
		return nil, err
	}
	t := &Terminal{program: program, screen: emulator.New(o.Cols, o.Rows)}
	player := Player{Program: program, Screen: t.screen, Clock: o.Clock}
	t.playback = player.Start()
	return t, nil
}

// keySettleMS is how many milliseconds must have passed since the last output before keys are sent. Without this pause,
// keys might arrive immediately after a dialog appears, and the real CLI ignores such keys.
const keySettleMS = 150

// DoStep does a step: it waits, types, or presses keys. The error shows the screen.
func (t *Terminal) DoStep(ctx context.Context, s Step) error {
	if s.Type+s.Paste+s.Key != "" {
		s.SettleMS = keySettleMS
	}
	step, err := NewStep(s)
	if err != nil {
		return err
	}
	err = t.playback.Do(ctx, step)
	if failed, ok := errors.AsType[*StepError](err); ok {
		return errors.New(failed.Reason + "; the screen shows\n" + strings.TrimRight(failed.Screen.Frame(), "\n"))
	}
	return err
}

// Screen returns the current screen.
func (t *Terminal) Screen() emulator.Screen { return t.screen.Screen() }

// Resize changes the size of the terminal and notifies the program.
func (t *Terminal) Resize(cols, rows int) error {
	size := emulator.Size{Cols: cols, Rows: rows}
	if err := t.program.Resize(size); err != nil {
		return err
	}
	t.screen.Resize(cols, rows)
	return nil
}

// Stop ends the program.
func (t *Terminal) Stop() {
	const grace = 3 * time.Second
	t.program.Stop(grace)
}

// Key returns the bytes that a key sends to a program. Names are as in tmux: "Enter", "Up", "C-c", "M-x"; a single
// character is the key of that character.
func Key(name string) (sends string, ok bool) {
	if sends, ok = namedKeys()[name]; ok {
		return sends, true
	}
	prefix, rest, _ := strings.Cut(name, "-")
	switch {
	case utf8.RuneCountInString(name) == 1:
		return name, true
	case prefix == "M" && rest != "":
		sends, ok = Key(rest)
		return "\x1b" + sends, ok
	case prefix == "C" && len(rest) == 1 && rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z':
		return string(rest[0] & 0x1f), true
	}
	return "", false
}

// KeyNames returns the names of the special keys, such as Enter, sorted.
func KeyNames() []string {
	var names []string
	for name := range namedKeys() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func namedKeys() map[string]string {
	return map[string]string{
		"Enter": "\r", "Esc": "\x1b", "Escape": "\x1b", "Tab": "\t", "BTab": "\x1b[Z", "Space": " ", "BSpace": "\x7f",
		"Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D", "Home": "\x1b[H", "End": "\x1b[F",
		"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "Insert": "\x1b[2~", "Delete": "\x1b[3~",
	}
}
