package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/record/redact"
	"github.com/claudeless/claudeless/internal/screens/book"
	"github.com/claudeless/claudeless/internal/screens/emulator"
)

const (
	stableScreenTime = 200 * time.Millisecond // how long a screen is unchanged before it is recorded
	minFrameInterval = 50 * time.Millisecond  // minimum time between two frames of the recording
)

// Clock returns the time for the events of a recording.
type Clock interface{ Now() time.Time }

// Summary summarizes a recording.
type Summary struct {
	Screens  int      // number of screens that were stable for a moment and differ from the previous one
	States   []string // states in the order of their first appearance
	Dialogs  []ShownDialog
	LostKeys int // counts the keys that were pressed before the screen could accept input
}

// ShownDialog is a dialog that was shown.
type ShownDialog struct {
	State  string
	Answer string // the label of the chosen option, or the key; empty means that the dialog is still open at the end
}

// recorder records one program's terminal. Its methods may be called from many goroutines. The caller must call Close.
type recorder struct {
	o         Options
	mu        sync.Mutex
	screen    *emulator.Emulator
	mask      *secretMask
	cast      *os.File // nil means none
	startedAt time.Time
	err       error
	summary   Summary

	lastOutput, lastFrame time.Time
	rows                  []string // rows of the last frame, with styles
	candidate             string   // masked screen that is recorded if it stays unchanged
	candidateSince        time.Time
	lastKept              string // masked screen that was recorded last
	state                 string // state of the screen; empty means unknown
	dialog                *openDialog
	pendingInput          []byte // input that is not written yet
}

type openDialog struct {
	state   string
	options []book.DialogOption
	key     string // last key that was pressed in the dialog
}

// newRecorder starts a recording of a terminal of this size.
func newRecorder(o Options, size emulator.Size) (*recorder, error) {
	r := &recorder{
		o: o, screen: emulator.New(size.Cols, size.Rows), startedAt: o.Clock.Now(),
		mask: newSecretMask(redact.Options{Environ: o.Environ, Values: o.Secrets}, o.Secrets),
	}
	if o.Screens == "" {
		return r, nil
	}
	err := os.MkdirAll(o.Screens, 0o700)
	if err == nil {
		r.cast, err = os.OpenFile(filepath.Join(o.Screens, "session.cast"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("recording screens: %w", err)
	}
	r.writeLine(castHeader{2, size.Cols, size.Rows, r.startedAt.Unix()})
	return r, nil
}

func (r *recorder) RecordOutput(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Clock.Now()
	r.recordFrameAndScreenIfDue(now)
	_, _ = r.screen.Write(p) // never fails
	r.lastOutput = now
}

// RecordInput adds typed bytes to the recording, without secrets.
func (r *recorder) RecordInput(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordFrameAndScreenIfDue(r.o.Clock.Now())
	if r.state == "" && !isTerminalReplyNotKey(p) {
		r.summary.LostKeys++
	}
	if r.dialog != nil {
		r.dialog.rememberKeyAndMoveSelection(string(p))
	}
	r.pendingInput = append(r.pendingInput, p...)
	if bytes.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(r.pendingInput) > 4<<10 {
		r.flushInput()
	}
}

func isTerminalReplyNotKey(input []byte) bool {
	last := input[len(input)-1]
	return bytes.HasPrefix(input, []byte("\x1b]")) || bytes.HasPrefix(input, []byte("\x1bP")) || bytes.HasPrefix(input, []byte("\x1b[")) && bytes.IndexByte([]byte("cnRytuIO"), last) >= 0
}

// flushInput writes the collected input as one event, because a secret can be recognized only in its complete text.
func (r *recorder) flushInput() {
	if len(r.pendingInput) > 0 {
		r.writeAsciicastEvent("i", r.mask.maskText(string(r.pendingInput)))
		r.pendingInput = nil
	}
}

// Resize records a change of the size.
func (r *recorder) Resize(cols, rows int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordFrameAndScreenIfDue(r.o.Clock.Now())
	r.screen.Resize(cols, rows)
	r.rows = nil
	r.writeAsciicastEvent("r", fmt.Sprintf("%dx%d", cols, rows))
}

// Close records the last screen and returns the summary. The error is the first write error.
func (r *recorder) Close() (Summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastFrame, r.candidateSince = time.Time{}, time.Time{}
	r.recordFrameAndScreenIfDue(r.o.Clock.Now().Add(stableScreenTime))
	r.flushInput()
	if r.dialog != nil {
		r.moveOpenDialogToSummary()
	}
	if r.cast != nil {
		if err := r.cast.Close(); err != nil && r.err == nil {
			r.err = err
		}
		r.cast = nil
	}
	return r.summary, r.err
}

// recordFrameAndScreenIfDue records a frame and a stable screen if enough time has passed. Call it before new output.
func (r *recorder) recordFrameAndScreenIfDue(now time.Time) {
	if r.lastOutput.IsZero() || now.Sub(r.lastFrame) < minFrameInterval && now.Sub(r.lastOutput) < stableScreenTime {
		return
	}
	r.lastFrame = now
	screen := r.mask.maskScreen(r.screen.Screen())
	r.writeFrame(screen)
	var p book.Page
	p.SetContentAndSlotsFromScreen(screen, r.o.Texts)
	masked := strings.Join(p.MaskedWithoutLogoAndTips(), "\n") + book.StateOf(screen)
	if masked != r.candidate {
		r.candidate, r.candidateSince = masked, r.lastOutput
	}
	if now.Sub(r.candidateSince) < stableScreenTime || masked == r.lastKept || strings.TrimSpace(p.Text) == "" {
		return
	}
	r.lastKept = masked
	r.recordStableScreen(&p, screen)
}

func (r *recorder) recordStableScreen(page *book.Page, screen emulator.Screen) {
	r.summary.Screens++
	r.state = book.StateOf(screen)
	page.State, page.Tape, page.Name = r.state, "session", fmt.Sprintf("%03d", r.summary.Screens)
	if r.state != "" && !slices.Contains(r.summary.States, r.state) {
		r.summary.States = append(r.summary.States, r.state)
	}
	r.openOrCloseTrackedDialog(page)
	if r.o.Screens == "" {
		return
	}
	r.writeAsciicastEvent("m", strings.TrimSpace(page.Name+" "+page.State))
	r.keepFirstWriteError(book.Book{Dir: r.o.Screens}.WriteAs(page, page.Name, ""))
}

func (r *recorder) openOrCloseTrackedDialog(page *book.Page) {
	dialog := slices.Contains([]string{"permission", "question", "plan", "dialog"}, page.StateBeforeSlash())
	if r.dialog != nil && (!dialog || page.State != r.dialog.state || len(page.Options) != len(r.dialog.options)) {
		r.moveOpenDialogToSummary()
	}
	switch {
	case dialog && r.dialog == nil:
		r.dialog = &openDialog{state: page.State, options: page.Options}
	case dialog:
		r.dialog.options = page.Options
	}
}

func (r *recorder) moveOpenDialogToSummary() {
	r.summary.Dialogs = append(r.summary.Dialogs, ShownDialog{State: r.dialog.state, Answer: r.dialog.chosenLabelOrKeyName()})
	r.dialog = nil
}

// rememberKeyAndMoveSelection moves the recorded selection for an arrow key, because Enter may follow before the screen shows the move.
func (d *openDialog) rememberKeyAndMoveSelection(keys string) {
	d.key = keys
	at := slices.IndexFunc(d.options, func(o book.DialogOption) bool { return o.Selected })
	if at < 0 {
		return
	}
	to := at
	switch keys {
	case "\x1b[A", "\x1bOA":
		to = max(0, at-1)
	case "\x1b[B", "\x1bOB":
		to = min(len(d.options)-1, at+1)
	}
	d.options = slices.Clone(d.options)
	d.options[at].Selected = false
	d.options[to].Selected = true
}

func (d *openDialog) chosenLabelOrKeyName() string {
	for _, o := range d.options {
		if d.key == "\r" && o.Selected || o.Number != "" && d.key == o.Number {
			return o.Label
		}
	}
	return map[string]string{"\x1b": "Esc", "\x03": "Ctrl-C"}[d.key]
}

func (r *recorder) writeFrame(screen emulator.Screen) {
	if r.cast == nil {
		return
	}
	rows := strings.Split(strings.TrimSuffix(screen.ANSI(), "\n"), "\n")
	var b strings.Builder
	for i, row := range rows {
		if i >= len(r.rows) || r.rows[i] != row {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, row)
		}
	}
	r.rows = rows
	if b.Len() > 0 {
		fmt.Fprintf(&b, "\x1b[%d;%dH", screen.Cursor.Row+1, screen.Cursor.Col+1)
		r.writeAsciicastEvent("o", b.String())
	}
}

func (r *recorder) writeAsciicastEvent(eventCode, text string) {
	if r.cast != nil {
		at := float64(r.o.Clock.Now().Sub(r.startedAt).Microseconds()) / 1e6
		r.writeLine([]any{at, eventCode, text})
	}
}

func (r *recorder) writeLine(line any) {
	enc := json.NewEncoder(r.cast)
	enc.SetEscapeHTML(false)
	r.keepFirstWriteError(enc.Encode(line))
}

func (r *recorder) keepFirstWriteError(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("recording screens: %w", err)
	}
}

type castHeader struct {
	Version   int   `json:"version"`
	Width     int   `json:"width"`
	Height    int   `json:"height"`
	Timestamp int64 `json:"timestamp"`
}
