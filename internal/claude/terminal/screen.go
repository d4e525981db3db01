package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// answerMargin is how many columns an answer leaves empty.
const answerMargin = 8

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
	notice     string // replaces the footer
	hint       string // in the empty composer; empty = none
	effort     string
	faults     faultSet
	labels     labels
}

// progress is the running turn as the screen shows it.
type progress struct {
	began   time.Time
	verb    [2]string // while it runs, and after it
	frame   int       // of the spinner
	retry   string    // replaces the verb; empty = no retry
	replied bool      // the model has answered something
	prompt  string
}

// title returns the title of the window. Inside tmux it does not show the state.
func (s *screen) title() string {
	if s.busy == nil || s.dialog != nil || s.inTmux {
		return waitingTitle
	}
	return []string{"◐", "◑"}[s.busy.frame/4%2] + " Claude Code"
}

// frame is a drawn screen.
type frame struct {
	done     []string // rows that no longer change; the inline renderer lets them scroll off
	live     []string
	bottom   int // index in live of the rows at the bottom of a full screen; -1 = none
	row, col int // of the cursor in live
}

// draw lays the screen out. Settled entries are left out, and others may settle.
func (s *screen) draw(now time.Time) frame {
	f := frame{bottom: -1}
	last := len(s.entries)
	if at := slices.IndexFunc(s.entries, func(e entry) bool { return e.call != "" }); at >= 0 {
		last = at // the result changes it
	}
	if s.busy != nil && !s.busy.replied && last == len(s.entries) && last > 0 {
		last-- // an interrupt may take the prompt back
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
		rows, at := s.dialog.rows(s.cols)
		if s.dialog.state != Question {
			f.live = append(f.live, "")
		}
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
	s.drawComposer(&f)
	return f
}

// queue returns the rows of the prompts that wait.
func (s *screen) queue() []string {
	var rows []string
	for _, text := range s.queued {
		rows = append(rows, "")
		rows = append(rows, indent(promptGlyph+" ", text, s.cols)...)
		rows = append(rows, "  "+resultGlyph+"  Queued · ctrl+x ctrl+s to send now")
	}
	return rows
}

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
	case elapsed >= 2*time.Second:
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
func (s *screen) drawComposer(f *frame) {
	rule := strings.Repeat(ruleGlyph, s.cols)
	if !s.inline {
		effort := "◐ " + s.effort + " · /effort"
		f.live = append(f.live, strings.Repeat(" ", max(0, s.cols-textWidth(effort)-2))+effort)
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
	f.live = append(f.live, rule, cut("  "+s.footer(), s.cols))
}

// placeholder returns what an empty composer shows.
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
	switch {
	case s.busy != nil && !s.faults.titleOnly:
		text += " · " + s.labels.text("busy", "esc to interrupt")
	case !s.composer.empty():
		return text
	case s.mode == "default" || s.mode == "":
		text += " · ? for shortcuts"
	}
	return text + " · ← for agents"
}
