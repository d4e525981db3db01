package shellcmd

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

func (r *scriptReader) obstacleOf(node syntax.Node) Obstacle {
	switch n := node.(type) {
	case *syntax.Stmt:
		return statementObstacle(n)
	case *syntax.BinaryCmd:
		if n.Op != syntax.Pipe && n.Op != syntax.PipeAll && strings.Contains(r.source[n.OpPos.Offset():max(n.OpPos.Offset(), n.Y.Pos().Offset())], "#") {
			return Obstacle{Kind: ObstacleHiddenLine}
		}
	case *syntax.Subshell:
		return Obstacle{Kind: ObstacleSubshell}
	case *syntax.Block, *syntax.ArithmCmd:
		return Obstacle{Kind: ObstacleGroup}
	case *syntax.FuncDecl:
		return Obstacle{Kind: ObstacleFunction}
	case *syntax.CaseClause:
		return Obstacle{Kind: ObstacleCase}
	case *syntax.CStyleLoop:
		return Obstacle{Kind: ObstacleCountingLoop}
	case *syntax.TestClause:
		return testObstacle(n.X)
	case *syntax.Assign:
		return assignObstacle(n)
	case *syntax.Redirect:
		if n.Word != nil && (n.Op == syntax.DplIn || n.Op == syntax.DplOut) && strings.HasSuffix(n.Word.Lit(), "-") {
			return Obstacle{Kind: ObstacleClosedDescriptor}
		}
		return r.descriptorObstacle(n)
	case *syntax.LetClause:
		return Obstacle{Kind: ObstacleEvaluates, Text: "let"}
	case *syntax.ProcSubst:
		return Obstacle{Kind: ObstacleProcessSubstitution}
	case *syntax.CmdSubst:
		return r.substitutionObstacle()
	case *syntax.ParamExp:
		return r.variableObstacle(n)
	case *syntax.ArithmExp:
		return arithmeticObstacle(n)
	case *syntax.CallExpr:
		return r.callObstacle(n)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		if isDollarQuoted(n) {
			return Obstacle{Kind: ObstacleCodedText}
		}
	case *syntax.Word:
		if hiddenLine().MatchString(r.sourceText(n)) && !r.mayHaveHashLines(n) {
			return Obstacle{Kind: ObstacleHiddenLine}
		}
	case *syntax.Lit:
		return r.literalObstacle(n)
	}
	return Obstacle{}
}

func statementObstacle(s *syntax.Stmt) Obstacle {
	heredoc, open, writesAfter := false, false, false
	for _, redir := range s.Redirs {
		if isCompound(s.Cmd) && slices.ContainsFunc(redir.Word.Parts, func(p syntax.WordPart) bool { return isDollarQuoted(p) }) {
			return Obstacle{Kind: ObstacleCodedText}
		}
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			heredoc = true
			open = open || !isDelimiterQuoted(redir.Word)
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll:
			writesAfter = writesAfter || heredoc
		default:
		}
	}
	switch {
	case open:
		return Obstacle{Kind: ObstacleOpenHeredoc}
	case writesAfter, len(s.Redirs) > 0 && isCompound(s.Cmd):
		return Obstacle{Kind: ObstacleUnclearRedirect}
	case s.Background:
		return Obstacle{Kind: ObstacleBackground}
	}
	return Obstacle{}
}

// isDelimiterQuoted reports whether the delimiter of a here-document is quoted as a whole, so that the text of the
// document is not expanded. A partly quoted delimiter does not count as quoted, as in the real CLI (observed with
// 2.1.330).
func isDelimiterQuoted(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	return len(w.Parts) == 1 && (!ok || strings.LastIndexByte(lit.Value, '\\') == 0)
}

func isCompound(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.IfClause, *syntax.WhileClause, *syntax.TestClause:
		return true
	}
	return false
}

// substitutionObstacle returns the obstacle that the current command substitution is. An unquoted substitution in an
// assignment, as in a=$(date), is not an obstacle, because its commands are judged instead.
func (r *scriptReader) substitutionObstacle() Obstacle {
	for _, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.DblQuoted:
			return Obstacle{Kind: ObstacleNestedInQuotes}
		case *syntax.Assign:
			if !n.Naked {
				return Obstacle{}
			}
		case *syntax.Stmt:
			return Obstacle{Kind: ObstacleNested}
		}
	}
	return Obstacle{Kind: ObstacleNested}
}

func (r *scriptReader) variableObstacle(n *syntax.ParamExp) Obstacle {
	switch {
	case !n.Short:
		return Obstacle{Kind: ObstacleBracedVariable}
	case n.Param.Value == "HOME" && !r.setsHome, n.Param.Value == "PWD" && r.isQuoted() && !r.assigned["PWD"] && !r.isQuotedPWDWord():
		return Obstacle{}
	case r.assigned[n.Param.Value]:
		return Obstacle{Kind: ObstacleAssignedVariable}
	}
	return Obstacle{Kind: ObstacleBareVariable}
}

// isQuotedPWDWord reports whether the current word is exactly "$PWD", with its quotes.
func (r *scriptReader) isQuotedPWDWord() bool {
	word, ok := r.parents[max(0, len(r.parents)-2)].(*syntax.Word)
	return ok && r.sourceText(word) == `"$PWD"`
}

var numberLiteral = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+|0x[0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+)$`) })

func arithmeticObstacle(n *syntax.ArithmExp) (found Obstacle) {
	if n.Bracket {
		return Obstacle{Kind: ObstacleArithmetic, Text: "$["}
	}
	syntax.Walk(n.X, func(node syntax.Node) bool {
		if w, ok := node.(*syntax.Word); ok && found.Kind == NoObstacle {
			if lit := w.Lit(); !numberLiteral().MatchString(lit) {
				found = Obstacle{Kind: ObstacleArithmetic, Text: lit}
			}
		}
		return true
	})
	return found
}

func (r *scriptReader) callObstacle(n *syntax.CallExpr) Obstacle {
	if len(n.Args) == 0 && len(n.Assigns) > 1 {
		return Obstacle{Kind: ObstacleAssignments}
	}
	for _, a := range n.Assigns {
		if a.Name != nil {
			r.assigned[a.Name.Value] = true
		}
	}
	if len(n.Args) == 0 {
		return Obstacle{}
	}
	name := n.Args[0].Lit()
	if name != "[" && slices.ContainsFunc(n.Args, func(w *syntax.Word) bool { return w.Lit() == "=" }) {
		return Obstacle{Kind: ObstacleLoneEquals}
	}
	switch name {
	case "eval", "exec", "source", ".", "alias", "trap", "hash", "unalias":
		return Obstacle{Kind: ObstacleEvaluates, Text: name}
	case "test", "[":
		return testWordsObstacle(n.Args)
	}
	return Obstacle{}
}

// hiddenLine finds a line that begins with # but is not a comment of the script.
var hiddenLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n\s*['"]*#`) })

// mayHaveHashLines reports whether lines that begin with # are allowed in a word. They are allowed in the text of a
// here-document, and in a word with a command substitution, whose own words are checked separately.
func (r *scriptReader) mayHaveHashLines(n *syntax.Word) bool {
	found := false
	syntax.Walk(n, func(node syntax.Node) bool {
		_, ok := node.(*syntax.CmdSubst)
		found = found || ok
		return true
	})
	redirect, ok := r.parents[len(r.parents)-1].(*syntax.Redirect)
	return found || ok && redirect.Hdoc == n
}

func (r *scriptReader) literalObstacle(n *syntax.Lit) Obstacle {
	if redirect, ok := r.parents[max(0, len(r.parents)-2)].(*syntax.Redirect); strings.Contains(strings.ReplaceAll(n.Value, `\$`, ""), "$") && !r.isQuoted() && (!ok || redirect.Hdoc == nil) {
		return Obstacle{Kind: ObstacleLoneDollar}
	}
	for _, p := range r.parents {
		switch p.(type) {
		case *syntax.DblQuoted, *syntax.Redirect, *syntax.ArithmExp, *syntax.TestClause, *syntax.ParamExp:
			return Obstacle{}
		}
	}
	open := strings.IndexByte(n.Value, '{')
	if open < 0 || open > 0 && n.Value[open-1] == '\\' {
		return Obstacle{}
	}
	if inner, _, found := strings.Cut(n.Value[open+1:], "}"); found && (strings.Contains(inner, ",") || strings.Contains(inner, "..")) {
		return Obstacle{Kind: ObstacleBraces}
	}
	return Obstacle{}
}

func (r *scriptReader) isQuoted() bool {
	return slices.ContainsFunc(r.parents, func(p syntax.Node) bool { _, ok := p.(*syntax.DblQuoted); return ok })
}

// isConstantSubstitution reports whether a substitution only produces a constant text, as $(cat <<'EOF' … EOF) does.
func isConstantSubstitution(n *syntax.CmdSubst) bool {
	if len(n.Stmts) != 1 || len(n.Stmts[0].Redirs) != 1 || n.Stmts[0].Background {
		return false
	}
	redir := n.Stmts[0].Redirs[0]
	call, ok := n.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && len(call.Assigns) == 0 && call.Args[0].Lit() == "cat" &&
		(redir.Op == syntax.Hdoc || redir.Op == syntax.DashHdoc) && isDelimiterQuoted(redir.Word)
}
