package shellcmd

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bash evaluates some operands of [[ and test as arithmetic, which runs commands in subscripts: [[ 'a[$(date)]' -eq 1 ]].

// hasOnlyConstantTestOperands reports whether a [[ clause has no expansion, no ~NAME and no operand that [testExpressionObstacle] finds.
func hasOnlyConstantTestOperands(n *syntax.TestClause) bool {
	if testExpressionObstacle(n.X).Kind != NoObstacle {
		return false
	}
	known := true
	syntax.Walk(n.X, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Word:
			known = known && !hasTildeUserPrefix(unquotedWordWithPlaceholders(n, nil))
		case *syntax.Lit:
			known = known && !unescapedGlob().MatchString(n.Value)
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp, *syntax.ProcSubst:
			known = false
		}
		return known
	})
	return known
}

var unescapedGlob = LazyRegexp(`(^|[^\\])[*?[]`)

// testExpressionObstacle looks for an operand of [[ that Bash may evaluate as arithmetic. This is an operand of -eq and similar operators
// that is not a number, or an operand of -v or -R that is not the name of a variable.
func testExpressionObstacle(x syntax.TestExpr) Obstacle {
	switch x := x.(type) {
	case *syntax.ParenTest:
		return testExpressionObstacle(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if w, ok := x.X.(*syntax.Word); !ok || !isVariableName(w) {
				return Obstacle{Kind: ObstacleVariableTestWithSubscript, Text: "[[ " + x.Op.String()}
			}
			return Obstacle{}
		}
		return testExpressionObstacle(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			if !isNumeral(x.X) || !isNumeral(x.Y) {
				return Obstacle{Kind: ObstacleArithmeticTest, Text: "[[ ... " + x.Op.String() + " ..."}
			}
			return Obstacle{}
		default:
			if o := testExpressionObstacle(x.X); o.Kind != NoObstacle {
				return o
			}
			return testExpressionObstacle(x.Y)
		}
	default:
		return Obstacle{}
	}
}

func isNumeral(x syntax.TestExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && isInteger(literalText(w))
}

// isInteger reports whether a text is an integer, so that its arithmetic value is constant.
func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// literalText returns a word of literal text without its quoting; empty means the word is not literal.
func literalText(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		if !appendLiteral(&b, part) {
			return ""
		}
	}
	return b.String()
}

func isVariableName(w *syntax.Word) bool { return syntax.ValidName(literalText(w)) }

// operandObstacleOfTestCommand looks for an obstacle in the words of test and [. It is like
// [testExpressionObstacle], but test and [ evaluate fewer operands than [[.
func operandObstacleOfTestCommand(commandWords []*syntax.Word) Obstacle {
	name := literalText(commandWords[0])
	shown := name
	if name == "[" {
		shown = "[["
	}
	for i, w := range commandWords {
		switch op := literalText(w); op {
		case "-v", "-R":
			if i+1 < len(commandWords) && literalText(commandWords[i+1]) != "]" && !isVariableName(commandWords[i+1]) {
				return Obstacle{Kind: ObstacleVariableTestWithSubscript, Text: shown + " " + op}
			}
		case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
			if i > 1 && i+1 < len(commandWords) && (!isInteger(literalText(commandWords[i-1])) || !isInteger(literalText(commandWords[i+1]))) {
				return Obstacle{Kind: ObstacleArithmeticTest, Text: shown + " ... " + op + " ..."}
			}
		}
	}
	return Obstacle{}
}

func arrayAssignmentObstacle(assignment *syntax.Assign) Obstacle {
	switch {
	case assignment.Array != nil:
		return Obstacle{Kind: ObstacleArrayAssignment}
	case assignment.Index != nil:
		return Obstacle{Kind: ObstacleArrayElementAssignment}
	}
	return Obstacle{}
}
