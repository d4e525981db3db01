package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/record/journal"
)

// State is the state of an interactive claude, with the names that package state uses for screens.
type State string

// The states of a screen that asks something.
const (
	Permission State = "permission"
	Question   State = "question"
	Plan       State = "plan"
	Before     State = "dialog" // a question that precedes the session
)

// option is one line that can be selected.
type option struct {
	label  string
	detail string // under the label; empty = none
	tick   tick
	input  bool   // typed text replaces its label
	action bool   // it has no number: Next, Submit
	apart  bool   // a rule precedes it
	oneRow bool   // its label is cut, not wrapped
	under  string // text that is always shown under the label; empty = none
}

// amendHint is a part of the last row while Yes or No is selected.
const amendHint = " · Tab to amend"

// tick is the state of a check box.
type tick int

const (
	noTick tick = iota
	unticked
	ticked
)

func (t tick) String() string {
	switch t {
	case unticked:
		return "[ ] "
	case ticked:
		return "[✔] "
	case noTick:
	}
	return ""
}

// choice is how a dialog was answered.
type choice struct {
	cancelled bool // Esc
	index     int  // of the option
	text      string
}

// dialog asks the user to select an option. Its owner sets the fields before it is shown.
type dialog struct {
	state    State
	kind     string   // "bash", "trust"
	head     []string // rows before the options, wrapped when they are drawn
	body     []string // between thin rules; rows are cut, not wrapped
	question []string
	options  []option
	numbers  bool // options have numbers, which select
	selected int
	foot     []string
	indent   int    // columns before the options
	rule     string // glyph of the line above; empty = none
	owner    dialogOwner
	// values replace the parts of a captured page that depend on the run, by the names of
	// their slots.
	values map[string]string
	about  []string // rows with the description of the tool
	// overlay makes the dialog fill a full screen: the rows between body and question are empty.
	overlay bool
	height  int // height of an overlay; 0 = as many rows as needed
}

// dialogOwner decides what an answer means.
type dialogOwner interface {
	// choose is called once with the answer. It returns the next dialog, nil = none.
	choose(d *dialog, c choice) *dialog
}

// formOwner is the owner of a dialog that is one page of several.
type formOwner interface {
	dialogOwner
	// toggled is called when a check box has changed.
	toggled(d *dialog)
	// turn moves to another page, which it returns.
	turn(by int) *dialog
}

// chooser is a [dialogOwner] made of a function.
type chooser func(c choice) *dialog

func (f chooser) choose(_ *dialog, c choice) *dialog { return f(c) }

// record returns the journal line for the answer of the dialog.
func (d *dialog) record(option string, agreed bool) journal.Screen {
	answer := "no"
	if agreed {
		answer = "yes"
	}
	return journal.Screen{State: string(d.state), Kind: d.kind, Answer: answer, Option: option}
}

// press handles a key. The result done reports that the dialog was answered, and next is
// the dialog that replaces it.
func (d *dialog) press(k key) (next *dialog, done bool) {
	onInput := d.options[d.selected].input
	pages, _ := d.owner.(formOwner)
	switch {
	case k.name == keyEscape || k.name == keyCtrlC || k.name == keyCtrlD:
		return d.owner.choose(d, choice{cancelled: true}), true
	case k.name == keyUp:
		d.selected = (d.selected + len(d.options) - 1) % len(d.options)
	case k.name == keyDown:
		d.selected = (d.selected + 1) % len(d.options)
	case (k.name == keyTab || k.name == keyRight) && pages != nil:
		return pages.turn(1), true
	case (k.name == keyBackTab || k.name == keyLeft) && pages != nil:
		return pages.turn(-1), true
	case k.name == keyEnter:
		return d.pick(d.selected)
	case onInput && (k.name == keyText || k.name == keyPaste):
		d.typed(d.options[d.selected].detail + printable(k.text))
	case onInput && k.name == keyBackspace:
		if runes := []rune(d.options[d.selected].detail); len(runes) > 0 {
			d.typed(string(runes[:len(runes)-1]))
		}
	case k.name == keyText && k.text == " " && d.options[d.selected].tick != noTick:
		return d.pick(d.selected)
	case k.name == keyText:
		return d.pressDigits(k.text)
	}
	return nil, false
}

// typed sets the text of the selected input.
func (d *dialog) typed(text string) {
	o := &d.options[d.selected]
	o.detail = text
	if o.tick != noTick {
		o.tick = ticked
		if text == "" {
			o.tick = unticked
		}
		d.toggled()
	}
}

// toggled notifies the owner of a changed check box.
func (d *dialog) toggled() {
	if pages, ok := d.owner.(formOwner); ok {
		pages.toggled(d)
	}
}

// pressDigits selects the options with these numbers.
func (d *dialog) pressDigits(text string) (*dialog, bool) {
	if !d.numbers {
		return nil, false
	}
	for _, r := range text {
		i := d.numbered(string(r))
		if i < 0 {
			continue
		}
		d.selected = i
		if d.options[i].input {
			continue // the following keys are its text
		}
		if next, done := d.pick(i); done {
			return next, true
		}
	}
	return nil, false
}

// number returns the digit that selects an option; empty = none does.
func (d *dialog) number(i int) string {
	if !d.numbers || d.options[i].action {
		return ""
	}
	n := 0
	for _, o := range d.options[:i+1] {
		if !o.action {
			n++
		}
	}
	return strconv.Itoa(n)
}

// numbered returns the index of the option with a number, or -1.
func (d *dialog) numbered(digit string) int {
	for i := range d.options {
		if d.number(i) == digit {
			return i
		}
	}
	return -1
}

// pick answers with an option, or changes its check box.
func (d *dialog) pick(i int) (next *dialog, done bool) {
	o := &d.options[i]
	switch {
	case o.input && o.detail == "":
		return nil, false
	case o.tick != noTick && !o.input:
		o.tick = unticked + ticked - o.tick
		d.toggled()
		return nil, false
	}
	return d.owner.choose(d, choice{index: i, text: o.detail}), true
}

// rows draws the dialog and also returns the row of the selected option.
func (d *dialog) rows(cols int) (rows []string, at int) {
	if d.overlay {
		return d.overlayRows(cols)
	}
	if d.rule != "" {
		rows = append(rows, strings.Repeat(d.rule, cols))
	}
	for _, text := range d.head {
		rows = append(rows, wrap(text, cols)...)
	}
	if d.body != nil {
		rows = append(rows, framed(strings.Repeat(thinRuleGlyph, cols), d.body, cols)...)
	}
	choices, at := d.choices(cols)
	return append(rows, choices...), len(rows) + at
}

// framed returns rows between two rules. Rows are cut, not wrapped.
func framed(rule string, body []string, cols int) []string {
	rows := []string{rule}
	for _, text := range body {
		rows = append(rows, cut(printable(text), cols))
	}
	return append(rows, rule)
}

// overlayRows draws a dialog that fills the screen.
func (d *dialog) overlayRows(cols int) (rows []string, at int) {
	const margin = "  "
	inner := max(1, cols-2*len(margin))
	rule := margin + strings.Repeat(ruleGlyph, inner)
	rows = append([]string{strings.Repeat("▔", cols), "", rule}, d.head...)
	choices, at := d.choices(cols)
	choices, at = append([]string{rule}, choices...), at+1
	body := framed(margin+strings.Repeat(thinRuleGlyph, inner), d.body, cols)
	if room := d.height - len(rows) - len(choices); d.height > 0 && len(body) > room { // keep the last rule
		body = append(body[:max(1, min(room-1, len(body)-1))], body[len(body)-1])
	} else if d.height > 0 {
		body = append(body, make([]string, room-len(body))...)
	}
	rows = append(rows, body...)
	return append(rows, choices...), len(rows) + at
}

// choices draws the question, the options and the foot, and also returns the row of the selected option.
func (d *dialog) choices(cols int) (rows []string, at int) {
	for _, text := range d.question {
		rows = append(rows, wrap(text, cols)...)
	}
	for i := range d.options {
		if d.options[i].apart {
			rows = append(rows, strings.Repeat(ruleGlyph, cols))
		}
		if i == d.selected {
			at = len(rows)
		}
		rows = append(rows, d.optionRows(i, cols)...)
	}
	for _, text := range d.foot {
		if label := d.options[d.selected].label; d.state == Permission && label != "Yes" && label != "No" {
			text = strings.TrimSuffix(text, amendHint)
		}
		if d.overlay {
			rows = append(rows, cut(text, cols))
			continue
		}
		rows = append(rows, wrap(text, cols)...)
	}
	return rows, at
}

// optionRows draws option i with its detail, without the rule that may precede it.
func (d *dialog) optionRows(i, cols int) (rows []string) {
	o := d.options[i]
	pointer := "  "
	if i == d.selected {
		pointer = promptGlyph + " "
	}
	label := o.label
	if o.input && o.detail != "" {
		label = o.detail
	}
	prefix := ""
	if n := d.number(i); n != "" {
		prefix = n + ". "
	} else if o.action {
		prefix = "   "
	}
	before := strings.Repeat(" ", d.indent) + pointer + prefix + o.tick.String()
	if o.oneRow {
		rows = append(rows, cut(before+label, cols-answerMargin))
	} else {
		rows = append(rows, indent(before, label, cols)...)
	}
	deeper := fmt.Sprintf("%*s", textWidth(before), "")
	if o.detail != "" && !o.input {
		rows = append(rows, indent(deeper, o.detail, cols)...)
	}
	if o.under != "" {
		rows = append(rows, indent(deeper, o.under, cols)...)
	}
	return rows
}
