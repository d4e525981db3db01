package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

type composer struct {
	draft        []rune
	cursor       int
	killBuffer   []rune   // text that Ctrl-Y inserts
	stashedDraft string   // draft that Ctrl-S has put aside; empty means none
	pastes       []string // long pasted texts; the draft has a placeholder for each

	history      []string // drafts that were sent or cleared, the oldest first
	historyIndex int      // index in history of the shown draft; len(history) means that the draft is new
	newDraft     string   // the new draft while an earlier one is shown
}

const (
	maxDraftCharacters              = 1 << 20
	maxSentOrClearedDraftsInHistory = 100
)

func (c *composer) text() string { return string(c.draft) }

const shellCommandPrefix = "!"

func (c *composer) isShellCommand() bool { return strings.HasPrefix(c.text(), shellCommandPrefix) }
func (c *composer) isEmpty() bool        { return len(c.draft) == 0 }

// textWithPastesExpanded returns the draft with pasted texts instead of their placeholders. If pasteID is not empty, it puts each
// pasted text between tags with this id, for the model. As in the real CLI, text after a pasted text begins on a new line.
func (c *composer) textWithPastesExpanded(pasteID string) string {
	text := c.text()
	for i, paste := range c.pastes {
		before, after, found := strings.Cut(text, pastePlaceholder(i+1, paste))
		switch {
		case !found:
			continue
		case pasteID != "":
			paste = fmt.Sprintf("\n\n<pasted_content id=%q>\n%s\n</pasted_content id=%[1]q>\n", pasteID, strings.TrimRight(paste, "\n"))
		}
		if after != "" && (pasteID != "" || !unicode.IsSpace([]rune(after)[0])) {
			after = "\n" + after
		}
		text = before + paste + after
	}
	return text
}

func (c *composer) isShowingUnchangedHistoryDraft() bool {
	return c.historyIndex < len(c.history) && c.text() == c.history[c.historyIndex]
}

func (c *composer) setText(text string) {
	c.draft = []rune(text)
	c.cursor = len(c.draft)
}

func (c *composer) insert(text string) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	c.insertRunes([]rune(withoutControlCharacters(text)))
}

func (c *composer) insertRunes(runes []rune) {
	runes = runes[:min(len(runes), maxDraftCharacters-len(c.draft))]
	c.draft = slices.Insert(c.draft, c.cursor, runes...)
	c.cursor += len(runes)
}

// paste inserts a pasted text at the cursor. For a text of more than three lines or 800 bytes, it inserts a placeholder
// and returns the text; otherwise it returns "". lastPaste is the result of the previous paste, or "" if another key
// was pressed since. A long text equal to lastPaste replaces its placeholder: pasting twice shows the text.
func (c *composer) paste(text, lastPaste string) (replacedText string) {
	const maxLines, maxLength = 3, 800
	text = withoutControlCharacters(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text))
	if len(text) <= maxLength && strings.Count(text, "\n") < maxLines {
		c.insert(text)
		return ""
	}
	if text == lastPaste {
		c.removeRunes(c.cursor-len([]rune(pastePlaceholder(len(c.pastes), text))), c.cursor)
		c.insert(text)
		return ""
	}
	c.pastes = append(c.pastes, text)
	c.insert(pastePlaceholder(len(c.pastes), text))
	return text
}

func pastePlaceholder(n int, text string) string {
	if lines := strings.Count(text, "\n"); lines > 0 {
		return fmt.Sprintf("[Pasted text #%d +%d lines]", n, lines)
	}
	return fmt.Sprintf("[Pasted text #%d]", n)
}

func (c *composer) removeRunes(from, to int) []rune {
	removed := slices.Clone(c.draft[from:to])
	c.draft = slices.Delete(c.draft, from, to)
	c.cursor = from
	return removed
}

func (c *composer) cutToKillBuffer(from, to int) bool {
	if from == to {
		return false
	}
	c.killBuffer = c.removeRunes(from, to)
	return true
}

func (c *composer) deleteRuneBeforeCursor() { c.removeRunes(max(c.cursor-1, 0), c.cursor) }
func (c *composer) deleteForward()          { c.removeRunes(c.cursor, min(c.cursor+1, len(c.draft))) }

func (c *composer) lineStart() int {
	at := c.cursor
	for at > 0 && c.draft[at-1] != '\n' {
		at--
	}
	return at
}

func (c *composer) lineEnd() int {
	if at := slices.Index(c.draft[c.cursor:], '\n'); at >= 0 {
		return c.cursor + at
	}
	return len(c.draft)
}

// wordBoundary returns the start of the word before the cursor (direction -1) or the end of the word after it (direction 1).
func (c *composer) wordBoundary(direction int, isGap func(rune) bool) int {
	at := c.cursor
	for inWord := false; ; at += direction {
		i := at + min(direction, 0)
		if i < 0 || i >= len(c.draft) || inWord && isGap(c.draft[i]) {
			return at
		}
		inWord = !isGap(c.draft[i])
	}
}

func isPunctuationOrSpace(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
}

func (c *composer) cutToLineStartOrJoinLines() (hasDeleted bool) {
	start := c.lineStart()
	if start == c.cursor && start > 0 {
		c.deleteRuneBeforeCursor()
		return true
	}
	return c.cutToKillBuffer(start, c.cursor)
}

func (c *composer) moveCursorByLine(by int) bool {
	column := c.cursor - c.lineStart()
	switch {
	case by < 0 && c.lineStart() > 0:
		c.cursor = c.lineStart() - 1
		c.cursor = c.lineStart()
	case by > 0 && c.lineEnd() < len(c.draft):
		c.cursor = c.lineEnd() + 1
	default:
		return false
	}
	c.cursor = min(c.cursor+column, c.lineEnd())
	return true
}

func (c *composer) editDraftWithKey(k keyName) {
	switch k {
	case keyNewline:
		c.insert("\n")
	case keyBackspace:
		c.deleteRuneBeforeCursor()
	case keyDelete:
		c.deleteForward()
	case keyLeft:
		c.cursor = max(c.cursor-1, 0)
	case keyRight:
		c.cursor = min(c.cursor+1, len(c.draft))
	case keyWordLeft:
		c.cursor = c.wordBoundary(-1, isPunctuationOrSpace)
	case keyWordRight:
		c.cursor = c.wordBoundary(1, isPunctuationOrSpace)
	case keyHome:
		c.cursor = c.lineStart()
	case keyEnd:
		c.cursor = c.lineEnd()
	case keyCtrlK:
		c.cutToKillBuffer(c.cursor, c.lineEnd())
	case keyCtrlW:
		c.cutToKillBuffer(c.wordBoundary(-1, unicode.IsSpace), c.cursor)
	case keyCtrlY:
		c.insertRunes(c.killBuffer)
	case keyCtrlS:
		stashed := c.text()
		c.setText(c.stashedDraft)
		c.stashedDraft = stashed
	default: // the screen handles the other keys
	}
}

func (c *composer) moveDraftToHistory() {
	c.appendToHistory(c.textWithPastesExpanded(""))
	c.setText("")
}

func (c *composer) appendToHistory(text string) {
	if strings.TrimSpace(strings.TrimPrefix(text, shellCommandPrefix)) != "" && (len(c.history) == 0 || c.history[len(c.history)-1] != text) {
		c.history = append(c.history, text)
		c.history = c.history[max(0, len(c.history)-maxSentOrClearedDraftsInHistory):]
	}
	c.historyIndex, c.newDraft = len(c.history), ""
}

func (c *composer) showDraftFromHistory(by int) {
	at := c.historyIndex + by
	if at < 0 || at > len(c.history) {
		return
	}
	if c.historyIndex == len(c.history) {
		c.newDraft = c.text()
	}
	c.historyIndex = at
	if c.setText(""); at == len(c.history) {
		c.insertRunes([]rune(c.newDraft)) // the draft already contains its placeholders
	} else {
		c.paste(c.history[at], "")
	}
	if by > 0 {
		c.cursor = 0
	}
}

func (c *composer) rows(cols int) (rows []string, cursorRow, cursorCol int) {
	before := wrapText(string(c.draft[:c.cursor]), cols)
	cursorRow = len(before) - 1
	cursorCol = textWidth(before[cursorRow])
	return wrapText(c.text(), cols), cursorRow, cursorCol
}
