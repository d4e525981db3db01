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
	lines map[string][]string // nil = the file cannot be read
}

// around returns the lines next to a line; nil = the file cannot be read.
func (f *sourceFiles) around(file string, line int) []sourceLine {
	const distance = 3
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
	var shown []sourceLine
	for n := max(1, line-distance); n <= min(len(lines), line+distance); n++ {
		shown = append(shown, sourceLine{Number: n, Text: lines[n-1], Marked: n == line})
	}
	return shown
}

// text returns the lines with their numbers.
func (f *sourceFiles) text(file string, line int) string {
	var b strings.Builder
	for _, l := range f.around(file, line) {
		mark := " "
		if l.Marked {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s %4d  %s\n", mark, l.Number, l.Text)
	}
	return b.String()
}
