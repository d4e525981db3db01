package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/claude/launch"
)

// idleTerminal returns a terminal without a session, as it is before the first prompt.
func idleTerminal(t *testing.T) *Terminal {
	t.Helper()
	inbox := newMailbox()
	c := &Console{faults: &Faults{}}
	c.screen = screen{cols: 60, rows: 20, effort: "medium", mode: "default"}
	c.screen.commandMenu.commands = []slashCommand{{"/clear", "Start again", true, 0}, {"/compact", "Summarize", true, 0}, {"/config", "", true, 0}, {"/fast-compact", "", true, 0}, {"/help", "", true, 0}}
	disarm := time.NewTimer(time.Hour)
	t.Cleanup(func() { disarm.Stop() })
	term := &Terminal{
		console: c, player: &turnPlayer{screenMailbox: inbox, prompts: &promptQueue{wake: make(chan struct{}, 1), screenMailbox: inbox}}, disarmTimer: disarm,
		plan: launch.Plan{Clock: clock.New(clock.Options{Now: func() time.Time { return time.Unix(1000, 0) }, NewID: func() string { return "id" }})},
	}
	term.plan.Transcript.NoPersist = true
	return term
}

// TestFieldKeys: each row is a key of the input field with its effect in claude 2.1.330.
func TestFieldKeys(t *testing.T) {
	const (
		esc, up, down, left, paste = "\x1b\x00", "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[200~"
		four                       = paste + "1\r2\r3\r4" + "\x1b[201~"
	)
	for name, tt := range map[string]struct {
		typed string
		want  string // the draft; | is the cursor
		says  string // footer or the row above the field
		quit  bool
	}{
		"Home, End":                    {typed: "b\x1b[Ha\x1b[Fc", want: "abc|"},
		"Ctrl-A, Ctrl-E":               {typed: "b\x01a\x05c", want: "abc|"},
		"Ctrl-B, Ctrl-F":               {typed: "abc\x02\x02\x06", want: "ab|c"},
		"Ctrl-W and Ctrl-Y":            {typed: "one two\x17\x19\x19", want: "one twotwo|"},
		"Ctrl-K":                       {typed: "abc" + left + left + "\x0b", want: "a|"},
		"Ctrl-U":                       {typed: "one two\x15", want: "|", says: "ctrl+y to paste deleted text"},
		"Ctrl-U joins lines":           {typed: "a\nb\x15\x15", want: "a|"},
		"Alt-B, Alt-F":                 {typed: "x y\x1bbZ\x1bfW", want: "x ZyW|"},
		"Alt-B stops at punctuation":   {typed: "x.y-z\x1bb\x1bbZ", want: "x.Z|y-z"},
		"Ctrl-W does not":              {typed: "w x.y\x17", want: "w |"},
		"Ctrl-S puts aside":            {typed: "abc\x13x", want: "x|", says: "draft stashed"},
		"Ctrl-S gives back":            {typed: "abc\x13\x13", want: "abc|", says: "manual mode on"},
		"a sent prompt gives back":     {typed: "abc\x13x\r", want: "abc|"},
		"Up twice":                     {typed: "a\rb\r\x00" + up + up, want: "a|", says: "ctrl+r to search history"},
		"Up shows a command":           {typed: "x\r/clear\r\x00" + up + up, want: "x|"},
		"Tab in an empty field":        {typed: "\t", want: "|", says: "Use alt+t to toggle thinking"},
		"? twice":                      {typed: "?\x00?", want: "|", says: "? for shortcuts"},
		"a paste and a letter":         {typed: four + "x", want: "[Pasted text #1 +3 lines]x|", says: "paste again to expand"},
		"Ctrl-D in a draft":            {typed: "abc\x01\x04", want: "|bc"},
		"Ctrl-D":                       {typed: "\x04", want: "|", says: "Press Ctrl-D again to exit"},
		"Ctrl-D twice":                 {typed: "\x04\x04", want: "|", quit: true},
		"Ctrl-C":                       {typed: "\x03", want: "|", says: "Press Ctrl-C again to exit"},
		"Ctrl-C clears and announces":  {typed: "abc\x03", want: "|", says: "Press Ctrl-C again to exit"},
		"Ctrl-C twice":                 {typed: "abc\x03\x03", want: "|", quit: true},
		"Ctrl-C, another key, Ctrl-C":  {typed: "\x03a\x15\x03", want: "|", says: "Press Ctrl-C again to exit"},
		"Esc with a draft":             {typed: "abc" + esc, want: "abc|", says: "esc again to clear"},
		"Esc Esc clears":               {typed: "abc" + esc + esc, want: "|", says: "? for shortcuts"},
		"what was cleared is kept":     {typed: "abc" + esc + esc + up, want: "abc|"},
		"Up moves in the draft":        {typed: "ab\nc" + up + "X", want: "aX|b\nc"},
		"backslash and Enter":          {typed: "a\\\rb", want: "a\nb|", says: "ctrl+g to edit in Vim"},
		"Enter sends, Up shows it":     {typed: "a\rb\r\x00" + up + up, want: "a|"},
		"Down shows the new draft":     {typed: "a\r\x00draft" + up + down, want: "|draft"},
		"a short paste":                {typed: paste + "1\r2\x1b[201~", want: "1\n2|"},
		"a long paste":                 {typed: four, want: "[Pasted text #1 +3 lines]|", says: "paste again to expand"},
		"a long paste again":           {typed: four + four, want: "1\n2\n3\n4|"},
		"the second paste":             {typed: four + " " + four, want: "[Pasted text #1 +3 lines] [Pasted text #2 +3 lines]|"},
		"?":                            {typed: "?", want: "|", says: "shift+tab to cycle modes"},
		"? and Backspace":              {typed: "?\x7f", want: "|", says: "? for shortcuts"},
		"? in a draft":                 {typed: "a?", want: "a?|"},
		"/ lists commands":             {typed: "/", want: "/|", says: promptGlyph + " /clear                  Start again"},
		"/ and a word":                 {typed: "/comp", want: "/comp|", says: promptGlyph + " /compact"},
		"a menu's Down and Tab":        {typed: "/co" + down + "\t", want: "/compact |"},
		"a menu's Esc":                 {typed: "/comp" + esc, want: "/comp|", says: "manual mode on"},
		"a menu without a match":       {typed: "/zzz", want: "/zzz|", says: `No commands match "/zzz"`},
		"a menu is closed by a space":  {typed: "/compact x", want: "/compact x|", says: "manual mode on"},
		"Enter sends what is selected": {typed: "/compac\r\x00" + up, want: "/compact|"},
		"a path is a prompt":           {typed: "/etc/hosts\r", want: "|", says: "Press up to edit queued messages"},
		"Esc in an empty field":        {typed: esc + esc, want: "|", says: "? for shortcuts"},
		"/exit":                        {typed: "/exit\r", want: "|", quit: true},
	} {
		t.Run(name, func(t *testing.T) {
			term := idleTerminal(t)
			s := &term.console.screen
			for i, part := range strings.Split(tt.typed, "\x00") {
				if i > 0 { // the lone Esc now counts as a key, and the prompts are played
					term.handleKeys(term.console.keys.dropPendingAndReturnLoneEscape())
					term.player.prompts.removeAll()
				}
				term.handleKeys(term.console.keys.decodeKeys([]byte(part)))
			}
			term.handleKeys(term.console.keys.dropPendingAndReturnLoneEscape())
			draft := string(s.composer.draft[:s.composer.cursor]) + "|" + string(s.composer.draft[s.composer.cursor:])
			if diff := cmp.Diff(tt.want, draft); diff != "" {
				t.Errorf("draft (-want +got):\n%s", diff)
			}
			f := s.renderFrame(time.Unix(1000, 0))
			if shown := strings.Join(f.rows, "\n"); !strings.Contains(shown, tt.says) {
				t.Errorf("%q is not shown:\n%s", tt.says, shown)
			}
			if term.quitRequested != tt.quit {
				t.Errorf("quit: %v", term.quitRequested)
			}
		})
	}
}

// TestPastedTextIsSent: the model receives the pasted text between tags, not its placeholder. The screen shows no tags.
func TestPastedTextIsSent(t *testing.T) {
	term := idleTerminal(t)
	term.pasteID = "85d2"
	term.handleKeys(term.console.keys.decodeKeys([]byte("see \x1b[200~1\r2\r3\r4\x1b[201~\r")))
	term.handleKeys(term.console.keys.decodeKeys([]byte("\x1b[200~1\r2\r3\r5\x1b[201~x\r")))
	sent := term.player.prompts.waitingTexts()
	want := []string{"see \n\n<pasted_content id=\"85d2\">\n1\n2\n3\n4\n</pasted_content id=\"85d2\">\n", "\n\n<pasted_content id=\"85d2\">\n1\n2\n3\n5\n</pasted_content id=\"85d2\">\n\nx"}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"see\n1\n2\n3\n4", "1\n2\n3\n5\nx"}, withoutPasteTags(sent)); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// TestInterrupt checks that the prompt returns to the field if there was no reply yet and no prompt waits.
func TestInterrupt(t *testing.T) {
	for name, tt := range map[string]struct {
		queued, draft string
		want, entry   string
	}{
		"alone":        {want: "first"},
		"with a queue": {queued: "next", entry: "Interrupted · What should Claude do instead?"},
		"with a draft": {draft: "abc", want: "abc", entry: "Interrupted · What should Claude do instead?"},
	} {
		t.Run(name, func(t *testing.T) {
			term := idleTerminal(t)
			s := &term.console.screen
			view := &eventView{screen: s, player: term.player, clock: term.plan.Clock}
			term.player.cancelTurn, term.player.turnNumber = func(error) {}, 1
			view.showMailboxMessage(turnStarted{[]string{"first"}, 1})
			if tt.queued != "" {
				term.addToHistoryAndRunOrSend(tt.queued, tt.queued)
			}
			s.composer.insert(tt.draft)
			term.handleKey(key{name: keyEscape})
			view.showMailboxMessage(turnEnded{})
			last := s.entries
			if tt.entry != "" && (len(last) == 0 || last[len(last)-1].text != tt.entry) {
				t.Errorf("entries %+v", last)
			}
			if s.composer.text() != tt.want {
				t.Errorf("draft %q, want %q", s.composer.text(), tt.want)
			}
		})
	}
}

// TestPlanDialog: the dialog fills a full screen down to the last row.
func TestPlanDialog(t *testing.T) {
	d := &dialog{
		state: StatePlanApproval, isOverlay: true, indent: 3, showNumbers: true, head: []string{" head"}, body: planRows("   ", "# The plan\n\n1. One"), question: []string{"   Proceed?"},
		options: []dialogOption{{label: "Yes"}, {label: "Change", isInput: true, secondLine: "below"}}, foot: []string{"", "   foot"},
	}
	s := &screen{cols: 40, rows: 24, dialog: d, entries: []transcriptEntry{{text: "x"}}}
	live := s.renderFrame(time.Time{}).rows[2:]
	if len(live) != s.rows-2 || live[0] != strings.Repeat("▔", 40) || strings.TrimSpace(live[len(live)-1]) != "foot" {
		t.Errorf("%d rows:\n%s", len(live), strings.Join(live, "\n"))
	}
	if text := strings.Join(live, "\n"); !strings.Contains(text, "   The plan\n\n   1. One\n  ╌") || !strings.Contains(text, "     2. Change\n        below") {
		t.Errorf("%s", text)
	}
	for _, rows := range []int{5, 11, 16} { // a plan that does not fit is cut
		s.rows = rows
		if live := s.renderFrame(time.Time{}).rows[2:]; rows == 16 && len(live) != rows-2 {
			t.Errorf("%d rows on %d", len(live), rows)
		}
	}
}

// TestAmendHint: the last row of a permission dialog offers to amend Yes and No only.
func TestAmendHint(t *testing.T) {
	d := &dialog{state: StatePermission, options: []dialogOption{{label: "Yes"}, {label: "Yes, always"}}, foot: []string{" Esc to cancel" + amendHintText}}
	for selected, want := range []string{" Esc to cancel" + amendHintText, " Esc to cancel"} {
		d.selected = selected
		if rows, _ := d.rows(60); rows[len(rows)-1] != want {
			t.Errorf("%d: %q", selected, rows)
		}
	}
}

// TestTopRow: the last row of a block is not shown alone at the top of a full screen.
func TestTopRow(t *testing.T) {
	s := &screen{cols: 20, rows: 4, entries: []transcriptEntry{
		{glyph: "● ", text: "one"},
		noteEntry("two"),
		{glyph: "      ", text: "three", hasNoGapBefore: true},
		{glyph: "  ", text: "Ran"},
		noteEntry("cat"),
		{glyph: "● ", text: "Answered", isOneBlock: true},
		noteEntry("yes"),
		{glyph: "● ", text: "alone"},
		noteEntry("short"),
		{glyph: "● ", text: "end\nof text"},
	}}
	f := s.renderFrame(time.Time{})
	f.rows, f.bottomIndex = f.rows[:f.bottomIndex], -1
	for top, want := range []string{"", "", "  ⎿  two", "", "", "  Ran", "", "", "● Answered", "", "", "", "", "", "● end", ""} {
		var out strings.Builder
		p := painter{w: &out, fullScreen: true}
		if err := p.paint(f, 20, len(f.rows)-top); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(p.lastRows[0], "\u00a0", " "); got != want {
			t.Errorf("row %d at the top: %q, want %q", top, got, want)
		}
	}
}

// TestTurnsOfTheQueue checks that waiting prompts share one turn and that a slash command gets a
// separate turn, and that the transcript records every waiting prompt.
func TestTurnsOfTheQueue(t *testing.T) {
	var records []string
	q := &promptQueue{wake: make(chan struct{}, 1), screenMailbox: newMailbox(), recordOperation: func(operation, text string) { records = append(records, strings.TrimSpace(operation+" "+text)) }}
	q.pushSentWhileIdle("first")
	var turns []string
	for i := 0; ; i++ {
		texts, waited := q.takePromptsOfNextTurn()
		if waited != (i > 0) {
			t.Errorf("turn %d: waited %t", i, waited)
		}
		if texts == nil {
			break
		}
		if turns = append(turns, strings.Join(texts, "+")); i == 0 {
			for _, text := range []string{"a", "b", "/compact", "/clear", "c"} {
				q.pushDuringTurn(text)
			}
		}
	}
	q.pushDuringTurn("d")
	q.removeAll()
	if diff := cmp.Diff([]string{"first", "a+b", "/compact", "/clear", "c"}, turns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := []string{"enqueue a", "enqueue b", "enqueue /compact", "enqueue /clear", "enqueue c", "dequeue", "dequeue", "dequeue", "dequeue", "dequeue", "enqueue d", "popAll d"}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestRunningCallBlinks: the screen also changes while a dialog is shown, because some programs treat a changing screen
// as busy.
func TestRunningCallBlinks(t *testing.T) {
	d := &dialog{state: StatePermission, options: []dialogOption{{label: "Yes"}}}
	s := &screen{cols: 40, rows: 20, dialog: d, progress: &turnProgress{hasReply: true}, entries: []transcriptEntry{{glyph: "● ", text: "Making it", callID: "1", blinks: true}}}
	for frame, want := range map[int]string{0: "● Making it", framesPerBlink: "  Making it", 2 * framesPerBlink: "● Making it"} {
		s.progress.spinnerFrame = frame
		if rows := s.renderFrame(time.Time{}).rows; rows[1] != want {
			t.Errorf("frame %d: %q, want %q", frame, rows[1], want)
		}
	}
}
