package tape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// ProgramInTerminal is a running program and its screen. It is used by one goroutine at a time; the caller must call Stop.
type ProgramInTerminal struct {
	program  *emulator.Program
	screen   *emulator.Emulator
	playback *Playback
}

// StartTerminal starts a program. ctx bounds only the start.
func StartTerminal(ctx context.Context, o TerminalOptions) (*ProgramInTerminal, error) {
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
	t := &ProgramInTerminal{program: program, screen: emulator.New(o.Cols, o.Rows)}
	player := Player{Program: program, Screen: t.screen, Clock: o.Clock}
	t.playback = player.Start()
	return t, nil
}

// keySettleMS is how many milliseconds must have passed since the last output before keys are sent. Without this pause,
// keys might arrive immediately after a dialog appears, and the real CLI ignores such keys.
const keySettleMS = 150

// DoStep does a step: it waits, types, or presses keys. The error shows the screen.
func (t *ProgramInTerminal) DoStep(ctx context.Context, s Step) error {
	if s.Type+s.Paste+s.Key != "" {
		s.SettleMS = keySettleMS
	}
	step, err := CompileStepOutsideTape(s)
	if err != nil {
		return err
	}
	err = t.playback.DoStep(ctx, step)
	if failed, ok := errors.AsType[*StepError](err); ok {
		return errors.New(failed.Reason + "; the screen shows\n" + strings.TrimRight(failed.Screen.Frame(), "\n"))
	}
	return err
}

// Screen returns the current screen.
func (t *ProgramInTerminal) Screen() emulator.Screen { return t.screen.Screen() }

// Resize changes the size of the terminal and notifies the program.
func (t *ProgramInTerminal) Resize(cols, rows int) error {
	size := emulator.Size{Cols: cols, Rows: rows}
	if err := t.program.Resize(size); err != nil {
		return err
	}
	t.screen.Resize(cols, rows)
	return nil
}

// StopProgram ends the program.
func (t *ProgramInTerminal) StopProgram() {
	const grace = 3 * time.Second
	t.program.Stop(grace)
}

// KeySequence returns the bytes that a key sends to a program. Names are as in tmux: "Enter", "Up", "C-c", "M-x"; a
// single character is the key of that character.
func KeySequence(name string) (sends string, ok bool) {
	if sends, ok = namedKeys()[name]; ok {
		return sends, true
	}
	prefix, rest, _ := strings.Cut(name, "-")
	switch {
	case utf8.RuneCountInString(name) == 1:
		return name, true
	case prefix == "M" && rest != "":
		sends, ok = KeySequence(rest)
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

// terminalRequest is one request of a test, a line of JSON. Its optional parts are executed in the order of the fields.
type terminalRequest struct {
	Wait      string `json:"wait"`       // wait until the screen contains this text
	Gone      string `json:"gone"`       // wait until the screen does not contain this text
	Type      string `json:"type"`       // type this text, and wait for its echo
	Paste     string `json:"paste"`      // paste this text
	Press     string `json:"press"`      // press these keys: "Down Enter"
	Resize    string `json:"resize"`     // change the size: COLSxROWS
	Exit      *int   `json:"exit"`       // wait until the program ends, with this exit code
	TimeoutMS int    `json:"timeout_ms"` // bounds each wait; 0 means 15000
	Screen    bool   `json:"screen"`     // answer with the screen
}

type terminalAnswer struct {
	Error  string         `json:"error,omitempty"`
	Screen *screenContent `json:"screen,omitempty"`
}

type screenContent struct {
	emulator.Screen
	Text string `json:"text"`
}

// AnswerTerminalRequests reads requests from in, one line of JSON each, and executes them. It writes each answer as a line to
// out. It returns when in ends.
func AnswerTerminalRequests(ctx context.Context, terminal *ProgramInTerminal, requestLines io.Reader, answerLines io.Writer) error {
	lines := bufio.NewReader(requestLines)
	enc := json.NewEncoder(answerLines)
	enc.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := enc.Encode(terminal.handleRequest(ctx, line)); err != nil {
				return fmt.Errorf("writing a response to stdout: %w", err)
			}
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("reading requests from stdin: %w", err)
		}
	}
}

func (t *ProgramInTerminal) handleRequest(ctx context.Context, line []byte) terminalAnswer {
	var r terminalRequest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	if err == nil {
		err = t.DoStep(ctx, Step{Wait: r.Wait, Gone: r.Gone, Type: r.Type, Paste: r.Paste, Key: r.Press, Exit: r.Exit, TimeoutMS: r.TimeoutMS})
	}
	if err == nil && r.Resize != "" {
		var size emulator.Size
		if size, err = emulator.ParseSize(r.Resize); err == nil {
			err = t.Resize(size.Cols, size.Rows)
		}
	}
	var a terminalAnswer
	if err != nil {
		a.Error = err.Error()
	}
	if r.Screen {
		s := t.Screen()
		a.Screen = &screenContent{s, s.Text()}
	}
	return a
}
