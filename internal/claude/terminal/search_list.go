package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

type searchList struct {
	allOptions          []dialogOption
	typedText           string    // empty means that all options are shown
	isTyping            bool      // typed keys edit the text until Enter or Esc; always false if isFieldBelowOptions is true
	isFieldBelowOptions bool      // the field with the text is below the options, and the last option is selected at first
	head                string    // row between the field and the options; not shown while the user types
	foot                [2]string // the last row, and the last row while the user types
	hintText, emptyText string    // hintText is shown in the empty field, emptyText instead of the options if there are none
	screenRows          int       // rows of the screen
}

// handleEditingKey handles a key that edits text or ends the editing. It returns false if the list does not use the key.
func (l *searchList) handleEditingKey(d *dialog, k key) bool {
	switch runes := []rune(l.typedText); {
	case k.name == keyText || k.name == keyPaste:
		l.typedText, l.isTyping = l.typedText+withoutControlCharacters(k.text), !l.isFieldBelowOptions
	case k.name == keyBackspace && len(runes) > 0:
		l.typedText = string(runes[:len(runes)-1])
	case l.isTyping && k.name == keyEscape:
		l.typedText, l.isTyping = "", false
	case l.isTyping && k.name == keyEnter:
		l.isTyping = false
		return true
	default:
		return len(d.options) == 0 && !slices.Contains([]keyName{keyEscape, keyCtrlC, keyCtrlD}, k.name)
	}
	d.options, d.selected = nil, 0
	for _, o := range l.allOptions {
		if strings.Contains(strings.ToLower(o.label), strings.ToLower(l.typedText)) {
			d.options = append(d.options, o)
		}
	}
	if l.isFieldBelowOptions {
		d.selected = max(0, len(d.options)-1)
	}
	return true
}

func (l *searchList) visibleRange(d *dialog) (from, to int) {
	if l == nil {
		return 0, len(d.options)
	}
	most := max(1, l.screenRows-12)
	if !l.isFieldBelowOptions {
		most = max(1, most/3) // each session takes three rows
	}
	from = min(max(0, d.selected-most/2), max(0, len(d.options)-most))
	return from, min(from+most, len(d.options))
}

func (l *searchList) rows(cols int) []string {
	text := cmp.Or(l.typedText, l.hintText)
	inner := max(1, cols-6)
	rows := []string{
		"  ╭" + strings.Repeat(ruleGlyph, inner) + "╮",
		"  │" + truncateRow(fmt.Sprintf(" ⌕ %s%*s", text, max(0, inner-3-textWidth(text)), ""), inner) + "│",
		"  ╰" + strings.Repeat(ruleGlyph, inner) + "╯",
	}
	if !l.isTyping && !l.isFieldBelowOptions {
		rows = append(rows, l.head)
	}
	return append(rows, "")
}
