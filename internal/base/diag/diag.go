// Package diag reads configuration files strictly. It indexes a TOML or JSON file, binds it to Go
// structs and reports all problems with file, line, column, source line and nearest known name.
//
// Positions come from the source text, so they are also exact inside arrays of tables and for keys the decoder skipped.
//
// TOML is scanned here, because the syntax tree of github.com/pelletier/go-toml/v2/unstable (tried with 2.4.3) ends at
// the first error, has no positions of arrays, accepts more than TOML 1.0, and has errors without our hints.
package diag

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Position is a position in a file. Line and Col are 1-based; Col counts characters; Line 0 means unknown.
type Position struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"column,omitempty"`
}

// String returns "FILE:LINE:COL", without the unknown parts.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Diagnostic is one problem in a file.
type Diagnostic struct {
	Pos     Position `json:"position"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`   // how to fix the problem; "" means no hint
	Source  string   `json:"source,omitempty"` // the text of the line, without its end
	Warning bool     `json:"warning,omitempty"`
}

// String returns "FILE:LINE:COL: message", on one line.
func (d Diagnostic) String() string {
	msg := d.Message
	if d.Warning {
		msg = "warning: " + msg
	}
	if at := d.Pos.String(); at != "" {
		return ReplaceControlCharacters(at) + ": " + msg
	}
	return msg
}

// List holds the diagnostics of some files. As an error, its message has one line per diagnostic; [Render] shows more.
type List []Diagnostic //nolint:errname // it is a list first; diag.List reads better than diag.ListError

// Error joins the diagnostics, one per line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// FormatCount returns a number and its noun, such as "1 call" and "2 calls". The plural of noun must end in s.
func FormatCount(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Shorten returns s or, if s is longer than maxChars characters, its first maxChars characters and "…".
func Shorten(s string, maxChars int) string {
	if r := []rune(s); len(r) > maxChars {
		return string(r[:maxChars]) + "…"
	}
	return s
}

// Err returns the list as an error; nil if it holds only warnings.
func (l List) Err() error {
	for _, d := range l {
		if !d.Warning {
			return l
		}
	}
	return nil
}

// Sort sorts the diagnostics of each file by position; files stay in the order of their first diagnostic.
func (l List) Sort() {
	files := map[string]int{}
	for _, d := range l {
		if _, ok := files[d.Pos.File]; !ok {
			files[d.Pos.File] = len(files)
		}
	}
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(files[a.Pos.File], files[b.Pos.File]), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
}

const maxCharactersOfShownSourceLine = 160

// Render writes the list for users: "FILE:LINE:COL: message", the source line with a caret, and "hint: …" if any.
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

// lineExcerpt shortens a line to the part around col. pad is the white space, with tabs, that puts a caret below col.
func lineExcerpt(source string, col int) (line, pad string) {
	runes := []rune(source)
	at := min(col-1, len(runes))
	if from := at - maxCharactersOfShownSourceLine/2; from > 0 && len(runes) > maxCharactersOfShownSourceLine {
		runes, at = runes[from:], maxCharactersOfShownSourceLine/2
	}
	if len(runes) > maxCharactersOfShownSourceLine {
		runes = runes[:maxCharactersOfShownSourceLine]
	}
	var b strings.Builder
	for _, r := range runes[:min(at, len(runes))] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return ReplaceControlCharacters(string(runes)), b.String()
}

// ReplaceControlCharacters replaces control characters and invalid UTF-8, which a terminal would interpret.
func ReplaceControlCharacters(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || (r < ' ' && r != '\t') || r == 0x7f {
			return '?'
		}
		return r
	}, text)
}
