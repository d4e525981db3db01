// Package console passes keys and output unchanged between this terminal and another program's pseudo-terminal.
package console

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// Settings are the options that a user chooses.
type Settings struct {
	// Size is the size of the pseudo-terminal. Zero means the size of the terminal that this program runs in, and the
	// pseudo-terminal then follows its changes. Without such a terminal, zero means 110x36.
	Size    emulator.Size
	Screens string // the directory that receives the screens; empty means that none are written
}

// ParseSize reads a terminal size, COLSxROWS.
func ParseSize(text string) (emulator.Size, error) { return emulator.ParseSize(text) }

// Options configure a console. Clock and Display are required.
type Options struct {
	Settings
	Keys    io.Reader // the typed input; nil means no input
	Display io.Writer // receives the output
	Clock   Clock
	// Environ and Secrets contain the secrets to mask on screens. Texts maps names to the parts of screens that depend on the run.
	Environ, Secrets []string
	Texts            map[string]string
}

const maxWaitForLastOutputInStop = 200 * time.Millisecond

// Console is a pseudo-terminal of a program. Keys and output pass through it unchanged. The caller must call Stop.
type Console struct {
	o           Options
	pair        emulator.TerminalPair
	recorder    *recorder
	followsSize bool          // the terminal of the console always has the size of this program's terminal
	keys        *os.File      // the terminal in raw mode; nil means none
	savedState  *term.State   // terminal state before raw mode
	output      chan struct{} // closed after the last output; nil before Connect
	mu          sync.Mutex
	stopped     bool
}

// OpenPseudoTerminal creates the pseudo-terminal.
func OpenPseudoTerminal(o Options) (*Console, error) {
	c := &Console{o: o}
	size := o.Size
	if size == (emulator.Size{}) {
		size = emulator.Size{Cols: 110, Rows: 36}
		if own, ok := c.ownTerminalSize(); ok {
			size, c.followsSize = own, true
		}
	}
	var err error
	if c.recorder, err = newRecorder(o, size); err != nil {
		return nil, err
	}
	if c.pair, err = emulator.OpenTerminalPair(size); err != nil {
		_, closed := c.recorder.Close()
		return nil, errors.Join(err, closed)
	}
	return c, nil
}

func (c *Console) ownTerminalSize() (emulator.Size, bool) {
	file, ok := c.o.Keys.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return emulator.Size{}, false
	}
	size, ok := emulator.SizeOf(file)
	return emulator.Size{Cols: min(size.Cols, emulator.MaxCols), Rows: min(size.Rows, emulator.MaxRows)}, ok
}

// Terminal returns the terminal that the program uses.
func (c *Console) Terminal() *os.File { return c.pair.Terminal }

// FollowsOwnTerminalSize reports whether Resize must be called when the size of this program's terminal changes.
func (c *Console) FollowsOwnTerminalSize() bool { return c.followsSize }

// StartForwarding starts to forward keys and output. It must be called after the program has started. If the keys come
// from a terminal, it is in raw mode until Stop.
func (c *Console) StartForwarding() error {
	if file, ok := c.o.Keys.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		var err error
		if c.savedState, err = term.MakeRaw(int(file.Fd())); err != nil {
			return fmt.Errorf("switching the terminal to raw mode: %w", err)
		}
		c.keys = file
	}
	_ = c.pair.Terminal.Close() // the program has opened the terminal itself
	c.output = make(chan struct{})
	go c.recordAndForwardOutput() // returns when the pseudo-terminal is closed
	if c.o.Keys != nil {
		go c.recordAndForwardKeys() // returns after the next key after Stop, or when this program exits
	}
	return nil
}

func (c *Console) recordAndForwardOutput() {
	defer close(c.output)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.pair.Controller.Read(buf)
		if n > 0 {
			c.recorder.RecordOutput(buf[:n])
			_, _ = c.o.Display.Write(buf[:n]) // the program continues if the display is closed
		}
		if err != nil {
			return
		}
	}
}

func (c *Console) recordAndForwardKeys() {
	buf := make([]byte, 4<<10)
	for {
		n, err := c.o.Keys.Read(buf)
		c.mu.Lock()
		stopped := c.stopped
		if n > 0 && !stopped {
			c.recorder.RecordInput(buf[:n])
		}
		c.mu.Unlock()
		if n > 0 && !stopped {
			_, failed := c.pair.Controller.Write(buf[:n])
			err = cmp.Or(err, failed)
		}
		if stopped || err != nil {
			return
		}
	}
}

// Resize gives the pseudo-terminal the size of this program's terminal.
func (c *Console) Resize() {
	if size, ok := c.ownTerminalSize(); ok && c.pair.Resize(size) == nil {
		c.recorder.Resize(size.Cols, size.Rows)
	}
}

// Stop closes the pseudo-terminal after the last output, restores this program's terminal, and returns the summary.
func (c *Console) Stop() (Summary, error) {
	if c.output == nil {
		summary, err := c.recorder.Close()
		return summary, errors.Join(err, c.pair.Close())
	}
	select {
	case <-c.output:
	case <-time.After(maxWaitForLastOutputInStop): // a detached process may still have the terminal open
	}
	err := c.pair.Controller.Close()
	<-c.output
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if c.keys != nil {
		_, _ = io.WriteString(c.o.Display, modeResetSequences(c.recorder.screen)) // the display may be closed
		err = errors.Join(err, term.Restore(int(c.keys.Fd()), c.savedState))
	}
	summary, closed := c.recorder.Close()
	return summary, errors.Join(err, closed)
}

func modeResetSequences(last *emulator.Emulator) string {
	var b strings.Builder
	s, modes := last.Screen(), last.Modes()
	for _, m := range []struct {
		isSet bool
		reset string
	}{
		{s.Alternate, "\x1b[?1049l"},
		{!s.Cursor.Visible, "\x1b[?25h"},
		{modes.BracketedPaste, "\x1b[?2004l"},
		{modes.CursorKeys, "\x1b[?1l"},
		{modes.Mouse, "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"},
		{modes.Focus, "\x1b[?1004l"},
	} {
		if m.isSet {
			b.WriteString(m.reset)
		}
	}
	return b.String()
}
