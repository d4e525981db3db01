package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// entry is a paragraph of the transcript: glyph precedes its first row.
type entry struct {
	glyph, text string
	close       bool   // no empty row precedes it
	call        string // id of the running call that it announces; empty = none
}

// screen is the content of the screen, independent of the renderer. It belongs to the goroutine of [Terminal.Run].
type screen struct {
	cols, rows int
	inline     bool // the renderer that has the composer after the text
	inTmux     bool
	header     []string
	entries    []entry
	settled    int // entries that the inline renderer will not redraw; -1 = the header is not drawn yet
	composer   composer
	queued     []string
	dialog     *dialog
	busy       *progress // nil = no turn is running
	mode       string
	hints
	background backgroundView
	menu       menu
	cut        int    // number of the turn that the user has interrupted
	hint       string // in the empty composer; empty = none
	effort     string
	faults     faultSet
	labels     labels
}

// hints are the texts about keys in the rows around the input field.
type hints struct {
	notice    string    // replaces the footer
	aside     string    // replaces the text above the input field
	deleted   time.Time // when Ctrl-U has removed something
	shortcuts bool      // the list of keys is shown
	pasted    string    // a placeholder was shown for this text by the last key; empty = none
}

// progress is the running turn as the screen shows it.
type progress struct {
	began   time.Time
	verb    [2]string // while it runs, and after it
	frame   int       // of the spinner
	retry   string    // replaces the verb; empty = no retry
	replied bool      // the model has answered something
	prompt  string
	turn    int  // number of the turn
	queued  bool // prompts waited when it was interrupted
	refused bool // an answer of the user ends it
}

// interrupted reports whether the user has ended the running turn.
func (s *screen) interrupted() bool { return s.busy != nil && (s.busy.refused || s.busy.turn == s.cut) }

// title returns the title of the window. Inside tmux it does not show the state.
func (s *screen) title() string {
	if s.busy == nil && len(s.background.agents()) == 0 || s.dialog != nil || s.inTmux {
		return waitingTitle
	}
	if s.busy == nil {
		return "◑ Claude Code"
	}
	return []string{"◐", "◑"}[s.busy.frame/4%2] + " Claude Code"
}

// frame is a drawn screen.
type frame struct {
	done     []string // rows that no longer change; the inline renderer lets them scroll off
	live     []string
	bottom   int  // index in live of the rows at the bottom of a full screen; -1 = none
	row, col int  // of the cursor in live
	blankTop bool // the first row of a full screen is empty if rows do not fit
}

// draw lays out the screen. Settled entries are omitted, and other entries may settle.
func (s *screen) draw(now time.Time) frame {
	f := frame{bottom: -1}
	last := len(s.entries)
	if at := slices.IndexFunc(s.entries, func(e entry) bool { return e.call != "" }); at >= 0 {
		last = at // the result changes it
	}
	if s.busy != nil && !s.busy.replied && last == len(s.entries) && last > 0 {
		last-- // an interrupt may return the prompt to the input field
	}
	if s.settled < 0 {
		f.done = append(f.done, s.header...)
	}
	for i, e := range s.entries {
		var rows []string
		if !e.close {
			rows = append(rows, "")
		}
		cols := s.cols
		if e.glyph == answerGlyph+" " {
			cols -= answerMargin
		}
		rows = append(rows, indent(e.glyph, e.text, cols)...)
		switch {
		case i < s.settled:
		case i < last:
			f.done = append(f.done, rows...)
		default:
			f.live = append(f.live, rows...)
		}
	}
	s.settled = max(s.settled, last)
	if s.dialog != nil {
		if s.dialog.height = 0; !s.inline {
			s.dialog.height = s.rows - 2
		}
		rows, at := s.dialog.rows(s.cols)
		if s.dialog.state != Question && !s.dialog.overlay {
			f.live = append(f.live, "")
		}
		f.blankTop = s.dialog.state != Question
		f.row, f.col = len(f.live)+at, s.dialog.indent
		f.live = append(f.live, rows...)
		return f
	}
	f.live = append(f.live, s.queue()...)
	if !s.inline {
		f.bottom = len(f.live)
	}
	f.live = append(f.live, s.activity(now)...)
	if s.inline {
		f.live = append(f.live, "")
	}
	s.drawComposer(&f, now)
	return f
}

// queue returns the rows of the prompts that wait.
func (s *screen) queue() []string {
	var rows []string
	for _, text := range s.queued {
		rows = append(rows, "")
		rows = append(rows, indent(promptGlyph+" ", text, s.cols)...)
	}
	if rows != nil {
		rows = append(rows, "  "+resultGlyph+"  Queued · ctrl+x ctrl+s to send now")
	}
	return rows
}

// deletedShown is how long the screen offers to insert a deleted text again.
const deletedShown = 6 * time.Second

// secondsShown is how long a turn runs until the screen shows its seconds.
const secondsShown = 30 * time.Second

// activity returns the rows about the running turn.
func (s *screen) activity(now time.Time) []string {
	if s.busy == nil {
		return nil
	}
	rows := []string{""}
	glyphs := spinnerGlyphs()
	switch elapsed := now.Sub(s.busy.began).Truncate(time.Second); {
	case s.faults.titleOnly:
		return rows[:len(rows)-1]
	case s.busy.retry != "":
		if s.faults.retryLong {
			const long = 4
			rows = append(rows, indent("✻ ", strings.Repeat(s.busy.retry+" · ", long)+"the request is sent again", s.cols)...)
			break
		}
		rows = append(rows, cut("✻ "+s.busy.retry, s.cols))
	case elapsed >= secondsShown:
		rows = append(rows, fmt.Sprintf("%s %s… (%s)", glyphs[s.busy.frame%len(glyphs)], s.busy.verb[0], elapsed))
	default:
		rows = append(rows, fmt.Sprintf("%s %s…", glyphs[s.busy.frame%len(glyphs)], s.busy.verb[0]))
	}
	calls := slices.ContainsFunc(s.entries, func(e entry) bool { return e.call != "" })
	if tip := s.labels.pages.tip(); tip != "" && s.busy.retry == "" && !calls {
		rows = append(rows, cut(tip, s.cols))
	}
	return rows
}

// drawComposer appends the input field and the footer.
func (s *screen) drawComposer(f *frame, now time.Time) {
	rule := strings.Repeat(ruleGlyph, s.cols)
	menu := s.menu.open()
	switch {
	case s.inline:
	case menu:
		f.live = append(f.live, s.menu.rows(&s.labels, s.cols)...)
	default:
		aside := s.asideText(now)
		f.live = append(f.live, strings.TrimRight(strings.Repeat(" ", max(0, s.cols-textWidth(aside)-2))+aside, " "))
	}
	f.live = append(f.live, rule)
	const margin = 2
	rows, row, col := s.composer.rows(s.cols - margin - 1)
	if most := max(1, s.rows/2-2); len(rows) > most { // the rows around the cursor
		from := min(max(0, row-most+1), len(rows)-most)
		rows, row = rows[from:from+most], row-from
	}
	f.row, f.col = len(f.live)+row, margin+col
	for i, text := range rows {
		glyph := "  "
		if i == 0 {
			glyph = promptGlyph + noBreakSpace
		}
		if i == 0 && s.composer.empty() {
			text = s.placeholder()
		}
		f.live = append(f.live, glyph+text)
	}
	f.live = append(f.live, rule)
	switch {
	case menu && s.inline:
		f.live = append(f.live, s.menu.rows(&s.labels, s.cols)...)
	case s.shortcuts:
		f.live = append(f.live, s.labels.shortcuts(s.cols)...)
	default:
		f.live = append(f.live, cut("  "+s.footer(), s.cols))
		f.live = append(f.live, s.background.rows(s.cols, now)...)
	}
}

// asideText returns the row above the input field of a full screen.
func (s *screen) asideText(now time.Time) string {
	switch {
	case s.aside != "":
		return s.aside
	case slices.Contains(s.composer.draft, '\n'):
		return "ctrl+g to edit in Vim"
	case now.Sub(s.deleted) < deletedShown:
		return "ctrl+y to paste deleted text"
	case s.effort == "":
		return ""
	}
	return "◐ " + s.effort + " · /effort"
}

// placeholder returns the text of an empty composer.
func (s *screen) placeholder() string {
	if len(s.queued) > 0 {
		return "Press up to edit queued messages"
	}
	return s.hint
}

// footer returns the last row.
func (s *screen) footer() string {
	if s.notice != "" {
		return s.notice
	}
	if s.faults.footerGone {
		return ""
	}
	text := s.labels.mode(s.mode)
	shells, tasks, manage := s.background.footer()
	if shells != "" {
		text = strings.TrimSuffix(text, cycleHint) + shells
	}
	text += tasks
	switch {
	case s.pasted != "":
		return "paste again to expand"
	case !s.composer.empty():
		return text
	case s.busy != nil && !s.faults.titleOnly:
		text += " · " + s.labels.text("busy", "esc to interrupt")
	case s.mode == "default" || s.mode == "":
		text += " · ? for shortcuts"
	}
	return text + " · ← for agents" + manage
}
