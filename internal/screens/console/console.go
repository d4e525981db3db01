// Package console connects the terminal of this program to a pseudo-terminal, in
// which another program runs: keys and output pass through unchanged.
package console

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/claudeless/claudeless/internal/screens/emulator"
	"github.com/claudeless/claudeless/internal/screens/pty"
)

// Watcher sees what passes through.
type Watcher interface {
	Output(p []byte)
	Input(p []byte)
	Resize(cols, rows int)
}

// Options configure a console. All but Keys are required.
type Options struct {
	Pair pty.Pair
	// Keys is what is typed; nil = nothing.
	Keys io.Reader
	// Display receives the output.
	Display io.Writer
	Watcher Watcher
}

// lastOutput is how long Stop waits for the end of the output.
const lastOutput = 200 * time.Millisecond

// Console passes keys and output through.
type Console struct {
	o       Options
	keys    *os.File      // the terminal in raw mode; nil = none
	before  *term.State   // of keys
	output  chan struct{} // closed after the last output
	mu      sync.Mutex
	stopped bool
}

// Start starts to pass through. Keys that are a terminal are set to raw mode until
// Stop.
func Start(o Options) (*Console, error) {
	c := &Console{o: o, output: make(chan struct{})}
	if file, ok := o.Keys.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		var err error
		if c.before, err = term.MakeRaw(int(file.Fd())); err != nil {
			return nil, err
		}
		c.keys = file
	}
	go c.copyOutput() // ends when the pseudo-terminal is closed
	if o.Keys != nil {
		go c.copyKeys() // ends with the next key after Stop, or with this program
	}
	return c, nil
}

func (c *Console) copyOutput() {
	defer close(c.output)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.o.Pair.Controller.Read(buf)
		if n > 0 {
			c.o.Watcher.Output(buf[:n])
			_, _ = c.o.Display.Write(buf[:n]) // a display that is gone does not end the program
		}
		if err != nil {
			return
		}
	}
}

func (c *Console) copyKeys() {
	buf := make([]byte, 4<<10)
	for {
		n, err := c.o.Keys.Read(buf)
		c.mu.Lock()
		stopped := c.stopped
		if n > 0 && !stopped {
			c.o.Watcher.Input(buf[:n])
		}
		c.mu.Unlock()
		if stopped {
			return
		}
		if n > 0 {
			if _, err := c.o.Pair.Controller.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Resize passes the size of this program's terminal on.
func (c *Console) Resize() {
	if c.keys == nil {
		return
	}
	if size, ok := pty.SizeOf(c.keys); ok {
		size.Cols, size.Rows = min(max(size.Cols, 1), pty.MaxCols), min(max(size.Rows, 1), pty.MaxRows)
		if c.o.Pair.Resize(size) == nil {
			c.o.Watcher.Resize(size.Cols, size.Rows)
		}
	}
}

// Stop closes the pseudo-terminal after the last output, and gives this program's
// terminal back as it was. last is the terminal as the program left it.
func (c *Console) Stop(last *emulator.Emulator) error {
	err := c.o.Pair.Terminal.Close() // output ends when the last process has closed it, too
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	select {
	case <-c.output:
	case <-time.After(lastOutput): // a process that left the run has the terminal open
	}
	err = errors.Join(err, c.o.Pair.Controller.Close())
	<-c.output
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	if c.keys == nil {
		return err
	}
	_, _ = io.WriteString(c.o.Display, restore(last)) // the display may be gone
	return errors.Join(err, term.Restore(int(c.keys.Fd()), c.before))
}

// restore returns what undoes the modes that a program has left behind.
func restore(last *emulator.Emulator) string {
	var b strings.Builder
	s, modes := last.Screen(), last.Modes()
	if s.Alternate {
		b.WriteString("\x1b[?1049l")
	}
	if !s.Cursor.Visible {
		b.WriteString("\x1b[?25h")
	}
	if modes.BracketedPaste {
		b.WriteString("\x1b[?2004l")
	}
	if modes.CursorKeys {
		b.WriteString("\x1b[?1l")
	}
	if modes.Mouse {
		b.WriteString("\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l")
	}
	if modes.Focus {
		b.WriteString("\x1b[?1004l")
	}
	return b.String()
}
