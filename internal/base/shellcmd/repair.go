package shellcmd

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxSyntaxRepairs bounds the number of repairs in one script, and maxRepairedLength the length of
// a script that is repaired.
const (
	maxSyntaxRepairs  = 8
	maxRepairedLength = 16 << 10
)

// parseRepaired parses a script with syntax errors as the parser of the real CLI does, which continues after an
// error: an open quote, loop or condition is closed at the end of the text, a pipe may have no second command, and ;;
// is a semicolon everywhere (observed with 2.1.330). The added text follows the end of the source.
func parseRepaired(source string, mistake error) (text string, stmts []*syntax.Stmt, ok bool) {
	if len(source) > maxRepairedLength {
		return "", nil, false
	}
	text = source
	for range maxSyntaxRepairs {
		if text, ok = repairFirstError(text, mistake); !ok {
			return "", nil, false
		}
		if stmts, mistake = parseConfirmed(text); mistake == nil {
			return text, stmts, true
		}
	}
	return "", nil, false
}

func repairFirstError(text string, mistake error) (string, bool) {
	var wrong syntax.ParseError
	if !errors.As(mistake, &wrong) {
		return "", false
	}
	at := min(int(wrong.Pos.Offset()), len(text))
	if rest, found := strings.CutPrefix(text[at:], ";;"); found {
		return text[:at] + "; " + rest, true
	}
	switch wrong.Text {
	case "cannot negate a command multiple times":
		return text[:at] + " " + text[at+1:], true
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

// endsUnclosed reports whether a repaired script still cannot be judged, because an open double quote, for loop or case
// is also an error for the real CLI.
func endsUnclosed(source string, stmts []*syntax.Stmt) bool {
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
	return open
}
