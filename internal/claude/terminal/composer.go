package terminal

import (
	"slices"
	"strings"
)

// composer is the input field: a draft and the position of the cursor in it, in
// characters.
type composer struct {
	draft  []rune
	cursor int
}

// maxDraft limits a draft, in characters. More text is dropped.
const maxDraft = 1 << 20

func (c *composer) text() string { return string(c.draft) }

func (c *composer) empty() bool { return len(c.draft) == 0 }

// set replaces the draft and moves the cursor to its end.
func (c *composer) set(text string) {
	c.draft = []rune(text)
	c.cursor = len(c.draft)
}

// insert puts a text at the cursor.
func (c *composer) insert(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	runes := []rune(printable(text))
	runes = runes[:min(len(runes), maxDraft-len(c.draft))]
	c.draft = slices.Insert(c.draft, c.cursor, runes...)
	c.cursor += len(runes)
}

// backspace removes the character before the cursor.
func (c *composer) backspace() {
	if c.cursor > 0 {
		c.cursor--
		c.draft = slices.Delete(c.draft, c.cursor, c.cursor+1)
	}
}

// clearLine removes what precedes the cursor on its line, and the line break if nothing
// does.
func (c *composer) clearLine() {
	start := c.cursor
	for start > 0 && c.draft[start-1] != '\n' {
		start--
	}
	if start == c.cursor && start > 0 {
		start--
	}
	c.draft = slices.Delete(c.draft, start, c.cursor)
	c.cursor = start
}

func (c *composer) move(by int) { c.cursor = min(max(c.cursor+by, 0), len(c.draft)) }

// rows returns the draft as rows and the position of the cursor in them.
func (c *composer) rows(cols int) (rows []string, row, col int) {
	before := wrap(string(c.draft[:c.cursor]), cols)
	row = len(before) - 1
	col = textWidth(before[row])
	return wrap(c.text(), cols), row, col
}
