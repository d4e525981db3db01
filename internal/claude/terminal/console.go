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
	sys               *process.System
	painter           painter
	screen            screen
	keys              keyReader
	typedAhead        []key       // keys that were typed after the answer to a dialog of [Console.ask]
	input             chan []byte // closed when the terminal has disconnected
	resized           chan os.Signal
	faults            *Faults
	escapeTimer       *time.Timer // fires when an Escape is not the start of a sequence
	restoreMode       func() error
	closed            bool
	stopResizeSignals func()
}

// escapeDelay is how long the rest of an escape sequence may take.
const escapeDelay = 30 * time.Millisecond

// ErrQuit reports that the user declined to start the session.
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
		sys: sys, restoreMode: restore, faults: faults, input: make(chan []byte), resized: make(chan os.Signal, 1),
		painter: painter{w: signals.Streams(&out).Stdout}, escapeTimer: time.NewTimer(time.Hour),
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
	c.escapeTimer.Stop()
	c.stopResizeSignals = sys.Notify(c.resized, process.ResizeSignals()...)
	faults.ArmFault(sys.Getenv("CLAUDELESS_SCREEN_FAULT"))
	go c.readInput() // returns when the terminal is closed
	return c, c.painter.open()
}

// readInput passes typed input to the goroutine of the screen.
func (c *Console) readInput() {
	defer close(c.input)
	for {
		buf := make([]byte, 4096)
		n, err := c.sys.Terminal.Read(buf)
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
	c.stopResizeSignals()
	c.escapeTimer.Stop()
	return errors.Join(c.painter.close(), c.restoreMode())
}

// measure reads the size of the terminal.
func (c *Console) measure() {
	c.screen.faults = c.faults.current()
	cols, rows := c.sys.Terminal.Size()
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
	if c.keys.hasLoneEscape() {
		c.escapeTimer.Reset(escapeDelay)
	} else {
		c.escapeTimer.Stop()
	}
	return keys
}

// show sets the displayed dialog; nil means none.
func (c *Console) show(d *dialog) {
	c.screen.dialog = d
	if d != nil && d.shownAt.IsZero() {
		d.shownAt = c.sys.Now()
	}
}

// ask shows dialogs, one after the other, below the existing content of the terminal. It returns when the last dialog
// was answered.
func (c *Console) ask(ctx context.Context, d *dialog) error {
	c.measure()
	c.screen.inline = true
	for d != nil {
		c.show(d)
		f := frame{liveRows: []string{""}, bottomIndex: -1}
		rows, at := d.rows(c.screen.cols)
		f.liveRows, f.cursorRow, f.cursorCol = append(f.liveRows, rows...), at+1, d.indent
		if err := c.painter.paint(f, c.screen.cols, c.screen.rows); err != nil {
			return err
		}
		keys, err := c.nextKeys(ctx)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if d.ignores(k, c.sys.Now()) {
				continue
			}
			if next, done := d.press(k); done {
				d, c.typedAhead = next, keys[i+1:]
				break
			}
		}
	}
	c.screen.dialog = nil
	return nil
}

// nextKeys waits for keys. It returns none after a change of size.
func (c *Console) nextKeys(ctx context.Context) ([]key, error) {
	if keys := c.typedAhead; len(keys) > 0 {
		c.typedAhead = nil
		return keys, nil
	}
	select {
	case data, ok := <-c.input:
		if !ok {
			return nil, hangUpError(ctx)
		}
		return c.decode(data), nil
	case <-c.escapeTimer.C:
		return c.keys.flush(), nil
	case <-c.resized:
		c.measure()
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hangUpError returns the error for a terminal that has disappeared. If a signal arrived at the same time, it returns
// the error of the signal.
func hangUpError(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &process.SignalError{Signal: syscall.SIGHUP}
}
