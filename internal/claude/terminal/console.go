package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// Console is the terminal in raw mode: its keys and its screen.
type Console struct {
	sys               *process.System
	painter           painter
	screen            screen
	keys              keyReader
	noticeRows        []string  // rows below the header; nil means none
	earlyText         string    // text that was typed while no screen was shown; it becomes the first draft
	openedAt          time.Time // when the run started
	answeredDialogs   []journal.Screen
	lastAnswerAt      time.Time   // when the last start-up dialog was answered; zero means that none was
	input             chan []byte // closed when the terminal has disconnected
	resized           chan os.Signal
	faults            *Faults
	escapeTimer       *time.Timer // fires when an Escape is not the start of a sequence
	exitPress         exitPress
	restoreMode       func() error
	closed            bool
	stopResizeSignals func()
}

const escapeDelay = 30 * time.Millisecond

// ErrStartDeclined means that the user declined a dialog at the start, or selected no session to resume.
var ErrStartDeclined = errors.New("the user declined to start the session")

// ErrDialogCancelled is an [ErrStartDeclined]: the user pressed Esc in a dialog that can be refused. The exit code is then 0.
var ErrDialogCancelled = fmt.Errorf("the dialog was cancelled: %w", ErrStartDeclined)

// ErrUntrustedFolder is an [ErrStartDeclined]: the user does not trust the folder. The CLI prints [UntrustedFolderExitText].
var ErrUntrustedFolder = fmt.Errorf("the folder is not trusted: %w", ErrStartDeclined)

// UntrustedFolderExitText explains why the session was not started.
const UntrustedFolderExitText = "\nClaude Code didn't start because this folder isn't trusted.\nRun claude again and choose Yes, or run it in another folder."

// OpenConsoleInRawMode switches the terminal of sys to raw mode. The caller closes the console. Keys
// are read until the terminal closes. A read that is blocked when Close is called is abandoned.
func OpenConsoleInRawMode(sys *process.System, signals *process.SignalHandler, faults *Faults, plan *launch.Plan) (*Console, error) {
	texts, err := loadLabels(plan.Version)
	if err != nil {
		return nil, err
	}
	restore, err := sys.Terminal.MakeRaw()
	if err != nil {
		return nil, err
	}
	out := *sys
	out.Stdout = sys.Terminal
	c := &Console{
		sys: sys, restoreMode: restore, faults: faults, input: make(chan []byte, 1), resized: make(chan os.Signal, 1),
		openedAt: sys.Now(), painter: painter{w: signals.WithWriteTimeoutAfterSignal(&out).Stdout}, escapeTimer: time.NewTimer(time.Hour),
	}
	c.screen.labels, c.screen.inTmux = texts, sys.Getenv("TMUX") != ""
	c.updateSizeAndFaults()
	key := book.BookID{Renderer: book.RendererFullscreen, Tmux: c.screen.inTmux, Cols: c.screen.cols, Rows: c.screen.rows}
	if plan.Settings.Merged()["tui"] == "default" {
		key.Renderer = book.RendererInline
	}
	if c.screen.labels.pages, err = loadPages(sys, plan.Version, key); err != nil {
		return nil, errors.Join(err, restore())
	}
	c.escapeTimer.Stop()
	c.stopResizeSignals = sys.Notify(c.resized, process.ResizeSignals()...)
	faults.ArmFault(sys.Getenv("CLAUDELESS_SCREEN_FAULT"))
	go c.readInput() // readInput returns when the terminal is closed
	return c, c.painter.enableBracketedPaste()
}

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
	return errors.Join(c.painter.restoreTerminalState(), c.restoreMode())
}

// suspend stops the program until the shell continues it. If no shell started the program, it continues at once.
func (c *Console) suspend() error {
	full := c.painter.fullScreen
	err := errors.Join(c.painter.restoreTerminalState(), c.restoreMode())
	c.painter.fullScreen = full
	fmt.Fprint(c.painter.w, "\nClaude Code is suspended. Run `fg` to bring it back.\n")
	err = errors.Join(err, process.Suspend())
	select {
	case <-c.resized:
	case <-time.After(time.Second / 10): // enough time for the signal to stop the program
	}
	return errors.Join(err, c.continueAfterSuspend())
}

func (c *Console) continueAfterSuspend() error {
	_, err := c.sys.Terminal.MakeRaw()
	if err = errors.Join(err, c.painter.enableBracketedPaste()); c.painter.fullScreen {
		err = errors.Join(err, c.painter.enterFullScreen())
	}
	return err
}

func (c *Console) updateSizeAndFaults() {
	c.screen.faults = c.faults.armedFaultNames()
	cols, rows := c.sys.Terminal.Size()
	if cols <= 0 || rows <= 0 {
		cols, rows = 80, 24
	}
	if c.screen.faults[faultSmallPane] {
		cols, rows = min(cols, 80), min(rows, 11)
	}
	c.screen.cols, c.screen.rows = cols, rows
}

// decodeKeysAndSetEscapeTimer returns the keys of the typed bytes. After an incomplete escape sequence, c.escapeTimer runs.
func (c *Console) decodeKeysAndSetEscapeTimer(data []byte) []key {
	keys := c.keys.decodeKeys(data)
	if c.keys.hasPendingEscapeSequence() {
		c.escapeTimer.Reset(escapeDelay)
	} else {
		c.escapeTimer.Stop()
	}
	return keys
}

func (c *Console) setDialog(d *dialog) {
	c.screen.dialog = d
	if d != nil && d.shownAt.IsZero() {
		d.shownAt = c.sys.Now()
	}
}

// showDialogsUntilAnswered shows dialogs one by one below the terminal's existing content. It returns after the last answer.
func (c *Console) showDialogsUntilAnswered(ctx context.Context, firstDialog *dialog) error {
	c.updateSizeAndFaults()
	c.screen.isInline = true
	due := c.openedAt.Add(claudecode.DelayFromStartToFirstDialog)
	if !c.lastAnswerAt.IsZero() {
		due = c.lastAnswerAt.Add(claudecode.DelayFromDialogAnswerToNextDialog)
	}
	if err := c.bufferKeysUntil(ctx, due); err != nil {
		return err
	}
	for firstDialog != nil {
		c.setDialog(firstDialog)
		f := screenFrame{rows: []string{""}, bottomIndex: -1}
		rows, at := firstDialog.rows(c.screen.cols)
		f.rows, f.cursorRow, f.cursorCol = append(f.rows, rows...), at+1, firstDialog.indent
		if err := c.painter.paint(f, c.screen.cols, c.screen.rows); err != nil {
			return err
		}
		keys, err := c.nextKeys(ctx, firstDialog)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if firstDialog.ignoresKeyPressedTooSoon(k, c.sys.Now()) {
				continue
			}
			next, done := firstDialog.handleKey(k)
			if k.name == keyCtrlC || k.name == keyCtrlD {
				next, done = c.cancelDialogOnSecondExitKey(firstDialog, k.name)
			}
			if done {
				firstDialog, keys, c.exitPress = next, keys[i+1:], exitPress{}
				break
			}
		}
		if firstDialog == nil {
			c.lastAnswerAt = c.sys.Now()
			err = c.bufferEarlyKeys(keys)
		}
		if err != nil {
			return err
		}
	}
	c.screen.dialog = nil
	return nil
}

// exitPress is the first press of Ctrl-C or Ctrl-D in a dialog of [Console.showDialogsUntilAnswered].
type exitPress struct {
	name         keyName          // 0 means none
	expired      <-chan time.Time // receives a value when it is too late for a second press
	replacedFoot []string         // last rows of the dialog before a hint replaced them
}

// cancelDialogOnSecondExitKey handles Ctrl-C and Ctrl-D in a start-up dialog. The second press of the same key ends the run.
func (c *Console) cancelDialogOnSecondExitKey(d *dialog, exitKey keyName) (next *dialog, done bool) {
	p := &c.exitPress
	if p.name == exitKey {
		return d.owner.handleChoice(d, dialogChoice{cancelled: true, key: exitKey}), true
	}
	if p.name == 0 {
		p.replacedFoot = d.foot
	}
	p.name, p.expired = exitKey, time.After(claudecode.DialogExitConfirmWindow)
	if len(d.options) > 0 && d.options[0].checkbox == noCheckbox {
		hint := "Press " + map[keyName]string{keyCtrlC: "Ctrl-C", keyCtrlD: "Ctrl-D"}[exitKey] + " again to " + map[bool]string{true: "cancel", false: "exit"}[d.kind == "bypass"]
		d.foot = []string{"", strings.Repeat(" ", d.indent) + hint}
	}
	return nil, false
}

func (c *Console) bufferKeysUntil(ctx context.Context, due time.Time) error {
	wait := due.Sub(c.sys.Now())
	over := time.After(wait)
	for waiting := wait > 0; waiting || len(c.input) > 0; {
		select {
		case data, ok := <-c.input:
			if !ok {
				return causeOrHangUpError(ctx)
			}
			if err := c.bufferEarlyKeys(c.keys.decodeKeys(data)); err != nil {
				return err
			}
		case <-over:
			waiting = false
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.keys.dropPendingAndReturnLoneEscape()
	return nil
}

// bufferEarlyKeys adds keys to the text that was typed while no screen was shown. As in the real CLI, Enter, Ctrl-J and
// Tab add white space, Backspace deletes, Ctrl-C ends the run, and other keys have no effect.
func (c *Console) bufferEarlyKeys(keys []key) error {
	for _, k := range keys {
		switch k.name {
		case keyCtrlC:
			return &process.ExitError{Code: process.ExitInterrupted}
		case keyBackspace:
			_, n := utf8.DecodeLastRuneInString(c.earlyText)
			c.earlyText = c.earlyText[:len(c.earlyText)-n]
		default:
			c.earlyText += map[keyName]string{keyText: k.text, keyPaste: k.text, keyEnter: "\n", keyNewline: "\n", keyTab: "\t"}[k.name]
		}
	}
	return nil
}

// nextKeys waits for keys in a dialog. When the size of the terminal changes, it returns without keys.
func (c *Console) nextKeys(ctx context.Context, d *dialog) ([]key, error) {
	select {
	case data, ok := <-c.input:
		if !ok {
			return nil, causeOrHangUpError(ctx)
		}
		return c.decodeKeysAndSetEscapeTimer(data), nil
	case <-c.escapeTimer.C:
		return c.keys.dropPendingAndReturnLoneEscape(), nil
	case <-c.exitPress.expired:
		d.foot, c.exitPress = c.exitPress.replacedFoot, exitPress{}
		return nil, nil
	case <-c.resized:
		c.updateSizeAndFaults()
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func causeOrHangUpError(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &process.SignalError{Signal: syscall.SIGHUP}
}
