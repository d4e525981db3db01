package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
		return Printable(at) + ": " + msg
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

// Count returns a number and its noun, such as "1 call" and "2 calls". The plural of noun must end in s.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
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
