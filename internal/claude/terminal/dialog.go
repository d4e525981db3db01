package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// ScreenState is the state of an interactive claude. The values are the names of screens in internal/screens/book.
type ScreenState string

// The states in which the screen asks a question.
const (
	StatePermission              ScreenState = "permission"
	StateQuestion                ScreenState = "question"
	StatePlanApproval            ScreenState = "plan"
	StateStartupOrAutoModeDialog ScreenState = "dialog" // a question before the session starts
	StateCommandPage             ScreenState = "menu"   // a page that a command has opened
)

type dialogOption struct {
	label           string
	detail          string // text under the label; empty means none
	checkbox        checkbox
	isInput         bool // the user can type text instead of the label
	isFeedbackInput bool // Tab was pressed on Yes or No: the user can type a text for the model
	isAction        bool // the option, such as Next or Submit, has no number
	lineAbove       bool
	truncate        bool   // a long label is cut instead of wrapped
	secondLine      string // second line under the label; empty means none
	rightText       string // text to the right of the label; empty means none
	ownerValue      string // value that the owner of the dialog receives for this option
}

const amendHintText = " · Tab to amend"

type checkbox int

const (
	noCheckbox checkbox = iota
	checkboxUnchecked
	checkboxChecked
)

func (t checkbox) String() string { return [...]string{"", "[ ] ", "[✔] "}[t] }

type dialogChoice struct {
	cancelled bool    // the user pressed Esc
	key       keyName // key that answered a dialog without options
	index     int
	text      string
}

type dialog struct {
	state        ScreenState
	kind         string   // such as "bash" or "trust"
	head         []string // rows before the options; they are wrapped
	body         []string // rows between thin lines; long rows are truncated unless wrapBody is true
	wrapBody     bool
	reason       []string // reason for the question, shown before it; may be empty
	hasOwnTexts  bool     // the texts of a captured page are not used
	question     []string
	options      []dialogOption
	acceptKey    string // key that accepts the selected option; the owner receives it as choice.text; empty means none
	showNumbers  bool   // options have numbers, and pressing a number selects its option
	selected     int
	foot         []string
	indent       int    // columns before the options
	topRuleGlyph string // glyph of the horizontal line above the dialog; empty means no line
	owner        dialogOwner
	dialogDisplayState
	shiftTabOption int               // number of the option that Shift+Tab accepts, from 1; 0 means none
	slotValues     map[string]string // replace the parts of a captured screen that depend on the run, by the names of these parts (slots)
	search         *searchList       // reduces the options to those that match typed text; nil means that all are shown
	// isOverlay makes the dialog fill the whole screen. Empty rows between body and question fill the rest.
	isOverlay  bool
	screenRows int // rows of the screen; 0 means as many as needed
}

type dialogDisplayState struct {
	shownAt      time.Time // when the dialog was first drawn
	commandLine  string    // command that has opened the dialog; the inline renderer shows it above the dialog. Empty means that it is not shown
	isAboveFirst bool      // Up was pressed on the first option of a list that does not wrap around upwards; Down then selects this option
}

type dialogOwner interface {
	// handleChoice is called once with the answer. It returns the dialog to show next; nil means none.
	handleChoice(d *dialog, c dialogChoice) *dialog
}

type multiPageDialogOwner interface {
	dialogOwner
	// onToggle is called after a check box has changed.
	onToggle(d *dialog)
	// changePage moves forward by this number of pages, or back if the number is negative, and returns the new page.
	changePage(by int) *dialog
}

type choiceHandlerFunc func(c dialogChoice) *dialog

func (f choiceHandlerFunc) handleChoice(_ *dialog, c dialogChoice) *dialog { return f(c) }

func (d *dialog) journalLine(option string, agreed bool) journal.Screen {
	return journal.Screen{State: string(d.state), Kind: d.kind, Answer: map[bool]string{true: "yes", false: "no"}[agreed], Option: option}
}

// ignoresKeyPressedTooSoon reports whether a key has no effect because the dialog has only just appeared.
func (d *dialog) ignoresKeyPressedTooSoon(k key, now time.Time) bool {
	name := string(d.state)
	if d.state == StateStartupOrAutoModeDialog {
		name += "/" + d.kind
	}
	period := claudecode.InputLockoutOfDialog(name)
	if !d.shownAt.IsZero() && now.Sub(d.shownAt) >= period.Length {
		return false
	}
	accepts := k.name == keyEnter || k.name == keyText && d.showNumbers && !d.options[d.selected].isInput
	return period.Length > 0 && (period.AnyKey || accepts)
}

// handleKey handles a key. done reports that the dialog was answered; next is the dialog that replaces it, or nil.
func (d *dialog) handleKey(k key) (next *dialog, done bool) {
	if d.search != nil && d.search.editSearchTextAndFilter(d, k) {
		return nil, false
	}
	if len(d.options) == 0 {
		if done = slices.Contains([]keyName{keyEnter, keyBackTab, keyEscape, keyCtrlC}, k.name); done {
			next = d.owner.handleChoice(d, dialogChoice{key: k.name})
		}
		return next, done
	}
	onInput := d.options[d.selected].isInput
	pages, _ := d.owner.(multiPageDialogOwner)
	switch {
	case k.name == keyEscape:
		return d.owner.handleChoice(d, dialogChoice{cancelled: true}), true
	case k.name == keyUp:
		d.moveSelection(-1)
	case k.name == keyDown:
		d.moveSelection(1)
	case (k.name == keyTab || k.name == keyRight) && pages != nil:
		return pages.changePage(1), true
	case (k.name == keyBackTab || k.name == keyLeft) && pages != nil:
		return pages.changePage(-1), true
	case k.name == keyBackTab && d.shiftTabOption > 0:
		return d.toggleOrChooseOption(d.shiftTabOption - 1)
	case (k.name == keyTab || k.name == keyBackTab) && d.state == StatePermission:
		if o := &d.options[d.selected]; d.canAddFeedbackToSelectedOption() {
			o.isFeedbackInput, o.isInput, o.detail = !o.isFeedbackInput, !o.isFeedbackInput, ""
		}
	case k.name == keyEnter || k.name == keyTab && d.search != nil:
		return d.toggleOrChooseOption(d.selected)
	case onInput && (k.name == keyText || k.name == keyPaste):
		d.setTextOfSelectedInputOption(d.options[d.selected].detail + withoutControlCharacters(k.text))
	case onInput && k.name == keyBackspace:
		if runes := []rune(d.options[d.selected].detail); len(runes) > 0 {
			d.setTextOfSelectedInputOption(string(runes[:len(runes)-1]))
		}
	case k.name == keyText && k.text == " " && d.options[d.selected].checkbox != noCheckbox:
		return d.toggleOrChooseOption(d.selected)
	case k.name == keyText && k.text == d.acceptKey:
		return d.owner.handleChoice(d, dialogChoice{index: d.selected, text: k.text}), true
	case k.name == keyText:
		return d.selectOptionsByTypedDigits(k.text)
	}
	return nil, false
}

// moveSelection selects the option before or after the selected one. Most lists wrap around. In permission, plan and question dialogs and
// check lists, Down stays on the last option, and Up on the first option selects the last option that scrolls.
func (d *dialog) moveSelection(by int) {
	at, n := d.selected+by, len(d.options)
	switch {
	case d.state == StatePermission && !d.showNumbers: // asks about a call that auto mode cannot check
		at -= map[bool]int{true: 1}[d.isAboveFirst && by > 0]
		d.isAboveFirst, at = at < 0, max(at, 0)
	case slices.Contains([]ScreenState{StatePermission, StatePlanApproval, StateQuestion}, d.state), d.options[0].checkbox != noCheckbox:
		if at = min(at, n-1); at < 0 {
			at = d.scrollableOptionCount() - 1
		}
	}
	d.selected = (at + n) % n
}

func (d *dialog) canAddFeedbackToSelectedOption() bool {
	return d.kind != "webfetch" && slices.Contains([]string{"Yes", "No"}, d.options[d.selected].label)
}

func (d *dialog) setTextOfSelectedInputOption(text string) {
	o := &d.options[d.selected]
	o.detail = text
	if o.checkbox != noCheckbox {
		o.checkbox = checkboxChecked
		if text == "" {
			o.checkbox = checkboxUnchecked
		}
		d.notifyOwnerOfToggledCheckbox()
	}
}

func (d *dialog) notifyOwnerOfToggledCheckbox() {
	if pages, ok := d.owner.(multiPageDialogOwner); ok {
		pages.onToggle(d)
	}
}

func (d *dialog) selectOptionsByTypedDigits(text string) (nextDialog *dialog, isAnswered bool) {
	for _, r := range text {
		i := len(d.options) - 1
		for i >= 0 && d.digitOfOption(i) != string(r) {
			i--
		}
		switch {
		case i < 0:
			d.selectLastOptionIfUnassigned(r)
			continue
		case d.options[i].checkbox != noCheckbox:
			d.options[i].checkbox = checkboxUnchecked + checkboxChecked - d.options[i].checkbox
			d.notifyOwnerOfToggledCheckbox()
			continue
		}
		d.selected = i
		if d.options[i].isInput {
			continue // the keys that follow are the text of this option
		}
		if next, done := d.toggleOrChooseOption(i); done {
			return next, true
		}
	}
	return nil, false
}

// selectLastOptionIfUnassigned handles a character that selects no option. As in the real CLI, a digit from 1 to 9 selects the last option of
// a permission or plan dialog. In the list of MCP servers, any character except a space clears all check boxes and selects the last option.
func (d *dialog) selectLastOptionIfUnassigned(r rune) {
	last := len(d.options) - 1
	switch servers := d.kind == "mcp" && d.options[0].checkbox != noCheckbox; {
	case servers && r != ' ':
		for i := range last {
			d.options[i].checkbox = checkboxUnchecked
		}
		d.selected = last
	case r < '1' || r > '9':
	case d.showNumbers && (d.state == StatePermission || d.state == StatePlanApproval):
		d.selected = last
	}
}

func (d *dialog) digitOfOption(i int) string {
	if !d.showNumbers || d.options[i].isAction {
		return ""
	}
	n := 0
	for _, o := range d.options[:i+1] {
		if !o.isAction {
			n++
		}
	}
	return strconv.Itoa(n)
}

func (d *dialog) toggleOrChooseOption(i int) (next *dialog, done bool) {
	o := &d.options[i]
	switch {
	case o.isInput && o.detail == "" && !o.isFeedbackInput && o.checkbox == noCheckbox:
		return d.owner.handleChoice(d, dialogChoice{cancelled: true}), true
	case o.checkbox != noCheckbox && (!o.isInput || o.detail == ""):
		o.checkbox = checkboxUnchecked + checkboxChecked - o.checkbox
		d.notifyOwnerOfToggledCheckbox()
		return nil, false
	}
	return d.owner.handleChoice(d, dialogChoice{index: i, text: o.detail}), true
}

func (d *dialog) rows(cols int) (rows []string, selectedRow int) {
	if d.isOverlay {
		return d.overlayRows(cols)
	}
	if d.topRuleGlyph != "" {
		rows = append(rows, strings.Repeat(d.topRuleGlyph, cols))
	}
	for _, text := range d.head {
		rows = append(rows, wrapText(text, cols)...)
	}
	if d.search != nil && !d.search.isFieldBelowOptions {
		rows = append(rows, d.search.searchBoxRows(cols)...)
	}
	if d.body != nil {
		body := d.body
		if d.wrapBody {
			body = wrapKeepingQuoteMarks(body, cols)
		}
		rows = append(rows, rowsCutToWidthBetweenRules(strings.Repeat(thinRuleGlyph, cols), body, cols)...)
	}
	if d.reason != nil {
		rows = append(append(rows, wrapKeepingQuoteMarks(d.reason, cols+1)...), "")
	}
	choices, selectedRow := d.choiceRows(cols)
	if selectedRow += len(rows); d.kind != "model" {
		return append(rows, choices...), selectedRow
	}
	if from, _ := d.visibleOptionRange(cols); from > 0 {
		rows[len(rows)-1] = fmt.Sprintf("    ↑ %d more", from)
	}
	const rowsAbove = 2 // of the transcript, which stay visible
	rows = append(rows, choices...)
	return rows[:min(len(rows), max(1, d.screenRows-rowsAbove))], selectedRow
}

const quotedRowMark = " │ "

func wrapKeepingQuoteMarks(texts []string, cols int) (rows []string) {
	for _, text := range texts {
		rest, quoted := strings.CutPrefix(text, quotedRowMark)
		mark := quotedRowMark
		if !quoted {
			mark, rest = " ", strings.TrimPrefix(text, " ")
		}
		for _, row := range wrapText(rest, cols-1-textWidth(mark)) {
			rows = append(rows, strings.TrimRight(mark+row, " "))
		}
	}
	return rows
}

// rowsOutsideOverlayChoices is the number of rows around text and choices: two rows of the transcript, and two rules.
const rowsOutsideOverlayChoices = 4

// overlayRows returns the rows of a dialog that fills the screen. A plan that is too long is cut off, with an arrow.
func (d *dialog) overlayRows(cols int) (rows []string, selectedRow int) {
	const margin, smallScreen = "  ", 26
	inner := max(1, cols-2*len(margin))
	rule := margin + strings.Repeat(ruleGlyph, inner)
	text, choices := append([]string{"", rule}, d.head...), *d
	if d.body == nil {
		rows, selectedRow = choices.choiceRows(cols)
		return slices.Concat([]string{strings.Repeat("▔", cols)}, text, rows), 1 + len(text) + selectedRow
	}
	if d.screenRows > 0 && d.screenRows <= smallScreen {
		text, choices.question = text[2:3], d.question[:1]
	}
	text = append(text, rowsCutToWidthBetweenRules(margin+strings.Repeat(thinRuleGlyph, inner), d.body, cols)...)
	rows, selectedRow = choices.choiceRows(cols)
	if room := max(1, d.screenRows-rowsOutsideOverlayChoices-len(rows)); d.screenRows > 0 && len(text) > room {
		text = text[:room]
		text[room-1] += strings.Repeat(" ", max(0, cols-1-textWidth(text[room-1]))) + "↓"
	} else if d.screenRows > 0 {
		text = append(text, make([]string, room-len(text))...)
	}
	return slices.Concat([]string{strings.Repeat("▔", cols)}, text, []string{rule}, rows), 2 + len(text) + selectedRow
}

func (d *dialog) choiceRows(cols int) (rows []string, selectedRow int) {
	for _, text := range d.question {
		rows = append(rows, wrapKeepingIndent(text, cols)...)
	}
	from, to := d.search.visibleRange(d)
	if d.search == nil {
		from, to = d.visibleOptionRange(cols)
	}
	for i, o := range d.options {
		switch {
		case (i < from || i >= to) && (d.search != nil || i < d.scrollableOptionCount()):
			continue
		case o.lineAbove:
			rows = append(rows, strings.Repeat(ruleGlyph, cols))
		}
		if i == d.selected {
			selectedRow = len(rows)
		}
		shown := d.optionRows(i, cols)
		if arrow := d.hiddenOptionsArrow(i, from, to); arrow != "" {
			shown[0] = shown[0][:d.indent] + arrow + shown[0][d.indent+1:]
		}
		rows = append(rows, shown...)
	}
	if hidden := len(d.options) - to; hidden > 0 && d.kind == "model" {
		rows = append(rows, fmt.Sprintf("    ↓ %d more", hidden))
	}
	if d.search != nil && d.search.isFieldBelowOptions {
		rows = append(rows, d.search.searchBoxRows(cols)...)
	}
	for _, text := range d.footRows() {
		if d.state == StatePermission && (!d.canAddFeedbackToSelectedOption() || d.options[d.selected].isFeedbackInput) {
			text = strings.TrimSuffix(text, amendHintText)
		}
		if d.state == StateQuestion && d.options[d.selected].isInput {
			text = strings.Replace(text, "Esc to cancel", "ctrl+g to edit in Vim · Esc to cancel", 1)
		}
		rows = append(rows, wrapKeepingIndent(text, cols)...)
	}
	return rows, selectedRow
}

func (d *dialog) footRows() []string {
	switch l := d.search; {
	case l == nil:
		return d.foot
	case len(d.options) == 0:
		return []string{l.emptyText, "", l.foot[0]}
	case l.isTyping:
		return l.foot[1:]
	default:
		return l.foot[:1]
	}
}

func (d *dialog) optionRows(i, cols int) (rows []string) {
	o := d.options[i]
	pointer, label := pointerGlyphs(i == d.selected), o.label
	if o.isFeedbackInput && i == d.selected {
		label += map[string]string{"Yes": ", and tell Claude what to do next", "No": ", and tell Claude what to do differently"}[label]
	}
	if o.isFeedbackInput && d.kind == "mcp" {
		label = strings.Replace(label, "and ", "", 1)
	}
	switch {
	case !o.isInput || o.detail == "":
	case o.isFeedbackInput:
		label = o.label + ", " + o.detail
	default:
		label = o.detail
	}
	prefix := ""
	if n := d.digitOfOption(i); n != "" {
		prefix = n + ". "
	} else if o.isAction {
		prefix = "   "
	}
	before := strings.Repeat(" ", d.indent) + pointer + prefix + o.checkbox.String()
	cols-- // the last column stays empty
	switch {
	case o.rightText != "":
		rows = wrapWithFirstPrefix(before+label, o.rightText, cols-1)
	case o.truncate:
		rows = append(rows, truncateRow(before+label, cols+1-emptyColumnsRightOfErrorOrLabel))
	default:
		rows = append(rows, wrapWithFirstPrefix(before, label, cols)...)
	}
	deeper := fmt.Sprintf("%*s", textWidth(before), "")
	if o.detail != "" && !o.isInput {
		rows = append(rows, wrapWithFirstPrefix(deeper, o.detail, cols)...)
	}
	if o.secondLine != "" {
		rows = append(rows, wrapWithFirstPrefix(deeper, o.secondLine, cols)...)
	}
	return rows
}
