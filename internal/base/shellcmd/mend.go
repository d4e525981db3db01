package shellcmd

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxMends bounds how many mistakes of one script are mended, and maxMended how
// long it may be.
const (
	maxMends  = 8
	maxMended = 16 << 10
)

// mended reads a script that does not parse as the real CLI does, whose parser
// goes on after a mistake: an open quote, loop or condition ends with the text, a
// pipe may lead nowhere, and ;; is a semicolon wherever it is (observed with
// 2.1.330). What is added is behind the end of the source.
func mended(source string, mistake error) (text string, stmts []*syntax.Stmt, ok bool) {
	if len(source) > maxMended {
		return "", nil, false
	}
	text = source
	for range maxMends {
		if text, ok = mend(text, mistake); !ok {
			return "", nil, false
		}
		if stmts, mistake = confirmed(text); mistake == nil {
			return text, stmts, true
		}
	}
	return "", nil, false
}

// mend is the text without its first mistake; false = nothing mends it.
func mend(text string, mistake error) (string, bool) {
	var wrong syntax.ParseError
	if !errors.As(mistake, &wrong) {
		return "", false
	}
	at := min(int(wrong.Pos.Offset()), len(text))
	if rest, found := strings.CutPrefix(text[at:], ";;"); found {
		return text[:at] + "; " + rest, true
	}
	switch wrong.Text {
	case "reached EOF without closing quote `'`":
		return text + "'", true
	case "reached EOF without closing quote `\"`":
		return text + `"`, true
	case "`|` must be followed by a statement", "`|&` must be followed by a statement":
		return text + " true", true
	case "`if <cond>` must be followed by `then`", "`elif <cond>` must be followed by `then`":
		return text + "\nthen true\nfi", true
	case "`then` must be followed by a statement list", "`else` must be followed by a statement list":
		return text + "\ntrue\nfi", true
	case "`if` statement must end with `fi`":
		return text + "\nfi", true
	case "`while <cond>` must be followed by `do`", "`until <cond>` must be followed by `do`":
		return text + "\ndo true\ndone", true
	case "`do` must be followed by a statement list":
		return text + "\ntrue\ndone", true
	case "`while` statement must end with `done`", "`until` statement must end with `done`", "`for` statement must end with `done`":
		return text + "\ndone", true
	}
	return "", false
}

// endsOpen tells whether a mended script still cannot be judged: an open double
// quote and an open for loop are mistakes to the real CLI, too.
func endsOpen(source, text string, stmts []*syntax.Stmt) bool {
	open := false
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			switch node.(type) {
			case *syntax.DblQuoted, *syntax.ForClause, *syntax.CaseClause:
				open = open || int(node.End().Offset()) > len(source)
			}
			return true
		})
	}
	return open && len(text) > len(source)
}
