package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const maxExcerptChars = 160

// Render writes the list for users: "FILE:LINE:COL: message", the source line with a caret below the column, and
// "hint: …" if there is a hint.
func Render(w io.Writer, l List) {
	for _, d := range l {
		fmt.Fprintln(w, d.String())
		if d.Source != "" && d.Pos.Col > 0 {
			line, pad := lineExcerpt(d.Source, d.Pos.Col)
			fmt.Fprintf(w, "  %s\n  %s^\n", line, pad)
		}
		if d.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", d.Hint)
		}
	}
}

// lineExcerpt shortens a line to the part around col and returns it with the white
// space that puts a caret below col. Both keep tabs.
func lineExcerpt(source string, col int) (line, pad string) {
	runes := []rune(source)
	at := min(col-1, len(runes))
	if from := at - maxExcerptChars/2; from > 0 && len(runes) > maxExcerptChars {
		runes, at = runes[from:], maxExcerptChars/2
	}
	if len(runes) > maxExcerptChars {
		runes = runes[:maxExcerptChars]
	}
	var b strings.Builder
	for _, r := range runes[:min(at, len(runes))] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return Printable(string(runes)), b.String()
}

// Printable replaces control characters and invalid UTF-8, which a terminal would interpret.
func Printable(text string) string { return strings.Map(toPrintable, text) }

func toPrintable(r rune) rune {
	if r == utf8.RuneError || (r < ' ' && r != '\t') || r == 0x7f {
		return '?'
	}
	return r
}
