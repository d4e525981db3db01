package book

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Option is one choice of a dialog.
type Option struct {
	Number   string `json:"number,omitempty"` // the digit that selects it; empty means none
	Label    string `json:"label"`
	Selected bool   `json:"selected,omitempty"`
	Row      int    `json:"row"`
}

const selectionPointer = "❯"

// FindOptions returns the options of the dialog on a screen; nil means that there are fewer than two. A pointer marks
// the selected option. If the pointer is at the beginning of a row, a number must follow: a pointer without a number
// belongs to the composer or to an earlier prompt.
func FindOptions(lines []string) []Option {
	marked, numbered := -1, regexp.MustCompile(`^(\d+)\. (.*)$`)
	for row, line := range lines {
		before, after, ok := strings.Cut(line, selectionPointer+" ")
		if ok && (before != "" || numbered.MatchString(after)) && strings.Trim(before, " │") == "" && strings.TrimSpace(after) != "" {
			marked = row
		}
	}
	if marked < 0 {
		return nil
	}
	before, _, _ := strings.Cut(lines[marked], selectionPointer)
	column := utf8.RuneCountInString(before) + 2
	first, _ := labelAt(lines[marked], column)
	withNumbers := numbered.MatchString(first)
	read := func(row int) (o Option, ok bool) {
		label, ok := labelAt(lines[row], column)
		if !ok {
			return o, false
		}
		o = Option{Label: label, Selected: row == marked, Row: row}
		if m := numbered.FindStringSubmatch(label); m != nil {
			o.Number, o.Label = m[1], m[2]
		}
		return o, (o.Number != "") == withNumbers
	}
	from, to := marked, marked
	for row := marked - 1; row >= 0 && (withNumbers || isInOptionList(lines[row], column)); row-- {
		if _, ok := read(row); ok {
			from = row
		}
	}
	for row := marked + 1; row < len(lines) && (withNumbers || isInOptionList(lines[row], column)); row++ {
		if _, ok := read(row); ok {
			to = row
		}
	}
	var options []Option
	for row := from; row <= to; row++ {
		if o, ok := read(row); ok {
			options = append(options, o)
		}
	}
	if len(options) < 2 {
		return nil
	}
	return options
}

// isInOptionList reports whether a row belongs to a list of options: it is an option, or the explanation of an option.
func isInOptionList(line string, column int) bool {
	runes := []rune(line)
	return len(runes) > column && strings.Trim(string(runes[:column]), " │"+selectionPointer) == ""
}

func labelAt(line string, column int) (string, bool) {
	if !isInOptionList(line, column) {
		return "", false
	}
	label := string([]rune(line)[column:])
	if strings.HasPrefix(label, " ") {
		return "", false
	}
	return strings.TrimRight(strings.TrimSpace(label), " │"), true
}
