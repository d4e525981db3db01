package terminal

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// searchList is a list of options that a typed text reduces.
type searchList struct {
	all         []option
	text        string    // empty means that all options are shown
	isTyping    bool      // keys change the text; the next Enter or Esc ends this. Always false if isBelow is true
	isBelow     bool      // the field with the text is below the options, and the last option is selected at first
	head        string    // row between the field and the options; not shown while the user types
	foot        [2]string // the last row, and that while the user types
	hint, empty string    // shown in the empty field, and instead of the options
	room        int       // rows of the screen
}

// press handles a key for the text. It returns false if the list does not use the key.
func (l *searchList) press(d *dialog, k key) bool {
	switch runes := []rune(l.text); {
	case k.name == keyText || k.name == keyPaste:
		l.text, l.isTyping = l.text+printable(k.text), !l.isBelow
	case k.name == keyBackspace && len(runes) > 0:
		l.text = string(runes[:len(runes)-1])
	case l.isTyping && k.name == keyEscape:
		l.text, l.isTyping = "", false
	case l.isTyping && k.name == keyEnter:
		l.isTyping = false
		return true
	default:
		return len(d.options) == 0 && !slices.Contains([]keyName{keyEscape, keyCtrlC, keyCtrlD}, k.name)
	}
	d.options, d.selected = nil, 0
	for _, o := range l.all {
		if strings.Contains(strings.ToLower(o.label), strings.ToLower(l.text)) {
			d.options = append(d.options, o)
		}
	}
	if l.isBelow {
		d.selected = max(0, len(d.options)-1)
	}
	return true
}

// window returns the range of the options around the selected one for which the screen has room.
func (l *searchList) window(d *dialog) (from, to int) {
	if l == nil || len(d.options) == 0 {
		return 0, len(d.options)
	}
	const otherRows, rowsOfSession = 12, 3
	most := max(1, l.room-otherRows)
	if !l.isBelow {
		most = max(1, most/rowsOfSession)
	}
	from = min(max(0, d.selected-most/2), max(0, len(d.options)-most))
	return from, min(from+most, len(d.options))
}

// rows returns the rows above the options, including the field with the text.
func (l *searchList) rows(cols int) []string {
	text := cmp.Or(l.text, l.hint)
	inner := max(1, cols-6)
	rows := []string{
		"  ╭" + strings.Repeat(ruleGlyph, inner) + "╮",
		"  │" + truncate(fmt.Sprintf(" ⌕ %s%*s", text, max(0, inner-3-textWidth(text)), ""), inner) + "│",
		"  ╰" + strings.Repeat(ruleGlyph, inner) + "╯",
	}
	if !l.isTyping && !l.isBelow {
		rows = append(rows, l.head)
	}
	return append(rows, "")
}

// sessionDialog returns the list of the saved sessions of a project other than the current one. choose is called with the
// id of a session, or with "" if the user selects none.
func sessionDialog(plan *launch.Plan, current string, rows int, choose func(id string)) *dialog {
	list := &searchList{room: rows, hint: "Search…", head: "    " + filepath.Base(plan.CWD), empty: "  No sessions in this project yet"}
	list.foot = [2]string{"  Type to search · Enter to resume · Esc to close", "  Type to search · Enter to select · Esc to clear"}
	for _, s := range transcript.Sessions(plan.Transcript) {
		if s.ID != current {
			about := fmt.Sprintf("%s · %s · %.1fKB", timeAgo(plan.Clock.Now().Sub(s.Changed)), s.Branch, float64(s.Size)/1024)
			list.all = append(list.all, option{label: s.Title, detail: about, note: " ", value: s.ID, truncate: true})
		}
	}
	if len(list.all) == 0 {
		list.foot[0] = "  Esc to close"
	}
	d := &dialog{state: StateMenu, kind: "resume", indent: 2, topRule: ruleGlyph, head: []string{"  Resume session"}, options: list.all, search: list}
	d.owner = chooserFunc(func(c choice) *dialog {
		id := ""
		if !c.cancelled && c.key == 0 {
			id = d.options[c.index].value
		}
		choose(id)
		return nil
	})
	return d
}

// timeAgo returns how long ago something happened, such as "5 minutes ago".
func timeAgo(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		noun   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.length {
			return countWithNoun(int(d/unit.length), unit.noun) + " ago"
		}
	}
	return "now"
}

// ChooseSession asks, on a screen of its own, which saved session to continue, for --resume without a value. The error is
// [ErrQuit] if the user selects none.
func ChooseSession(ctx context.Context, c *Console, plan *launch.Plan) (id string, err error) {
	if err := c.painter.enterFull(); err != nil {
		return "", err
	}
	if err := c.ask(ctx, sessionDialog(plan, "", c.screen.rows, func(chosen string) { id = chosen })); err != nil {
		return "", err
	}
	if id == "" {
		return "", ErrQuit
	}
	return id, c.painter.leaveFull()
}
