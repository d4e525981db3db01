package verdict

import (
	"fmt"
	"strings"
)

// sourceLine is a line of a scenario.
type sourceLine struct {
	Number int
	Text   string
	Marked bool
}

// sourceFiles reads scenario files once.
type sourceFiles struct {
	read  func(string) ([]byte, error)
	lines map[string][]string // nil means the file cannot be read
}

// around returns a line with up to this many lines before and after it; nil means the file cannot be read.
func (f *sourceFiles) around(file string, line, before, after int) (shown []sourceLine) {
	if f.read == nil || file == "" || line < 1 {
		return nil
	}
	lines, known := f.lines[file]
	if !known {
		if data, err := f.read(file); err == nil {
			lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		}
		f.lines[file] = lines
	}
	for n := max(1, line-before); n <= min(len(lines), line+after); n++ {
		shown = append(shown, sourceLine{Number: n, Text: lines[n-1], Marked: n == line})
	}
	return shown
}

// text returns the lines of the rule or step that begins at a line, with their numbers: up to the next table of the same
// level, at most 30.
func (f *sourceFiles) text(file string, line int) string {
	var b strings.Builder
	for i, l := range f.around(file, line, 0, 29) {
		if table, isTable := strings.CutPrefix(l.Text, "[["); i > 0 && isTable && !strings.Contains(table, ".") {
			break
		}
		fmt.Fprintf(&b, "%4d  %s\n", l.Number, l.Text)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
