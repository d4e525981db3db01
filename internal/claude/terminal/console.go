package terminal

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// Console is the terminal in raw mode: its keys and its screen.
type Console struct {
	terminal process.Terminal
	paint    painter
	screen   screen
	keys     keyReader
	input    chan []byte // closed when the terminal is gone
	resized  chan os.Signal
	faults   *Faults
	escape   *time.Timer // fires when a lone escape is the key
	restore  func() error
	closed   bool
	stop     func()
}

// escapeDelay is how long the rest of an escape sequence may take.
const escapeDelay = 30 * time.Millisecond

// ErrQuit ends a run because the user refused to start it.
var ErrQuit = errors.New("the user has quit")

// OpenConsole switches the terminal of sys to raw mode. The caller closes the console. Keys are read until the
// terminal closes. A read that blocks at Close is abandoned.
func OpenConsole(sys *process.System, signals *process.Signals, faults *Faults, plan *launch.Plan) (*Console, error) {
	texts, err := loadLabels(plan.Version)
	if err != nil {
		return nil, err
	}
	restore, err := sys.Terminal.Raw()
	if err != nil {
		return nil, err
	}
	out := *sys
	out.Stdout = sys.Terminal
	c := &Console{
		terminal: sys.Terminal, restore: restore, faults: faults, input: make(chan []byte), resized: make(chan os.Signal, 1),
		paint: painter{w: signals.Streams(&out).Stdout}, escape: time.NewTimer(time.Hour),
	}
	c.screen.labels, c.screen.inTmux = texts, sys.Getenv("TMUX") != ""
	c.measure()
	key := book.Key{Renderer: book.Fullscreen, Tmux: c.screen.inTmux, Cols: c.screen.cols, Rows: c.screen.rows}
	if plan.Settings.Merged()["tui"] == "default" {
		key.Renderer = book.Inline
	}
	if c.screen.labels.pages, err = loadPages(sys, plan.Version, key); err != nil {
		return nil, errors.Join(err, restore())
	}
	c.escape.Stop()
	c.stop = sys.Notify(c.resized, process.ResizeSignals()...)
	faults.ArmFault(sys.Getenv("CLAUDELESS_SCREEN_FAULT"))
	go c.readInput() // ends with the terminal
	return c, c.paint.open()
}

// readInput passes typed input to the goroutine of the screen.
func (c *Console) readInput() {
	defer close(c.input)
	for {
		buf := make([]byte, 4096)
		n, err := c.terminal.Read(buf)
		if n > 0 {
			c.input <- buf[:n]
		}
		if err != nil {
			return
		}
	}
}

// Close restores the terminal. Further calls do nothing.
func (c *Console) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	c.stop()
	c.escape.Stop()
	return errors.Join(c.paint.close(), c.restore())
}

// measure reads the size of the terminal.
func (c *Console) measure() {
	c.screen.faults = c.faults.armed()
	cols, rows := c.terminal.Size()
	if cols <= 0 || rows <= 0 {
		cols, rows = 80, 24
	}
	if c.screen.faults.smallPane {
		cols, rows = min(cols, 80), min(rows, 11)
	}
	c.screen.cols, c.screen.rows = cols, rows
}

// decode returns the keys of what was typed, and arms the timer for a lone escape.
func (c *Console) decode(data []byte) []key {
	keys := c.keys.read(data)
	if c.keys.waits() {
		c.escape.Reset(escapeDelay)
	} else {
		c.escape.Stop()
	}
	return keys
}

// ask shows dialogs, one after the other, below what the terminal shows already. It
// returns when the last one was answered.
func (c *Console) ask(ctx context.Context, d *dialog) error {
	c.measure()
	c.screen.inline = true
	for d != nil {
		c.screen.dialog = d
		f := frame{live: []string{""}, bottom: -1}
		rows, at := d.rows(c.screen.cols)
		f.live, f.row, f.col = append(f.live, rows...), at+1, d.indent
		if err := c.paint.paint(f, c.screen.cols, c.screen.rows); err != nil {
			return err
		}
		keys, err := c.nextKeys(ctx)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if next, done := d.press(k); done {
				d = next
				break
			}
		}
	}
	c.screen.dialog = nil
	return nil
}

// nextKeys waits for keys. It returns none after a change of size.
func (c *Console) nextKeys(ctx context.Context) ([]key, error) {
	select {
	case data, ok := <-c.input:
		if !ok {
			return nil, hungUp(ctx)
		}
		return c.decode(data), nil
	case <-c.escape.C:
		return c.keys.flush(), nil
	case <-c.resized:
		c.measure()
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hungUp returns the error for a terminal that has disappeared; a signal that arrived at that moment takes
// precedence.
func hungUp(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &process.SignalError{Signal: syscall.SIGHUP}
}
