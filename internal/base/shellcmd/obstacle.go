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
			return Obstacle{Kind: HiddenLine}
		}
	case *syntax.Subshell:
		return Obstacle{Kind: Subshell}
	case *syntax.Block, *syntax.ArithmCmd:
		return Obstacle{Kind: Group}
	case *syntax.FuncDecl:
		return Obstacle{Kind: Function}
	case *syntax.CaseClause:
		return Obstacle{Kind: Case}
	case *syntax.CStyleLoop:
		return Obstacle{Kind: CountingLoop}
	case *syntax.TestClause:
		return testObstacle(n.X)
	case *syntax.Assign:
		return assignObstacle(n)
	case *syntax.Redirect:
		if n.Word != nil && (n.Op == syntax.DplIn || n.Op == syntax.DplOut) && strings.HasSuffix(n.Word.Lit(), "-") {
			return Obstacle{Kind: ClosedDescriptor}
		}
		return r.descriptorObstacle(n)
	case *syntax.LetClause:
		return Obstacle{Kind: Evaluates, Text: "let"}
	case *syntax.ProcSubst:
		return Obstacle{Kind: ProcessSubstitution}
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
			return Obstacle{Kind: CodedText}
		}
	case *syntax.Word:
		if hiddenLine().MatchString(r.text(n)) && !r.inHeredoc(n) {
			return Obstacle{Kind: HiddenLine}
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
			return Obstacle{Kind: CodedText}
		}
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			heredoc = true
			open = open || !quotedDelimiter(redir.Word)
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrAll, syntax.AppAll:
			writesAfter = writesAfter || heredoc
		default:
		}
	}
	switch {
	case open:
		return Obstacle{Kind: OpenHeredoc}
	case writesAfter, len(s.Redirs) > 0 && isCompound(s.Cmd):
		return Obstacle{Kind: UnclearRedirect}
	case s.Background:
		return Obstacle{Kind: Background}
	}
	return Obstacle{}
}

// quotedDelimiter reports whether the whole word that ends a here-document is quoted, so that its text is not expanded.
// For the real CLI, a partly quoted word is not quoted (observed with 2.1.330).
func quotedDelimiter(w *syntax.Word) bool {
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

// substitutionObstacle depends on the context: a substitution in the value of an assignment is judged by its commands.
func (r *scriptReader) substitutionObstacle() Obstacle {
	for _, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.DblQuoted:
			return Obstacle{Kind: NestedInQuotes}
		case *syntax.Assign:
			if !n.Naked {
				return Obstacle{}
			}
		case *syntax.Stmt:
			return Obstacle{Kind: Nested}
		}
	}
	return Obstacle{Kind: Nested}
}

func (r *scriptReader) variableObstacle(n *syntax.ParamExp) Obstacle {
	switch {
	case !n.Short:
		return Obstacle{Kind: BracedVariable}
	case n.Param.Value == "HOME" && !r.setsHome, n.Param.Value == "PWD" && r.isQuoted() && !r.assigned["PWD"] && !r.onlyVariable():
		return Obstacle{}
	case r.assigned[n.Param.Value]:
		return Obstacle{Kind: AssignedVariable}
	}
	return Obstacle{Kind: BareVariable}
}

// onlyVariable reports whether the current variable is the whole argument "$PWD".
func (r *scriptReader) onlyVariable() bool {
	word, ok := r.parents[max(0, len(r.parents)-2)].(*syntax.Word)
	return ok && r.text(word) == `"$PWD"`
}

// numberLiteral matches arithmetic numbers in any base.
var numberLiteral = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]+|0x[0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+)$`) })

func arithmeticObstacle(n *syntax.ArithmExp) (found Obstacle) {
	if n.Bracket {
		return Obstacle{Kind: Arithmetic, Text: "$["}
	}
	syntax.Walk(n.X, func(node syntax.Node) bool {
		if w, ok := node.(*syntax.Word); ok && found.Kind == NoObstacle {
			if lit := w.Lit(); !numberLiteral().MatchString(lit) {
				found = Obstacle{Kind: Arithmetic, Text: lit}
			}
		}
		return true
	})
	return found
}

func (r *scriptReader) callObstacle(n *syntax.CallExpr) Obstacle {
	if len(n.Args) == 0 && len(n.Assigns) > 1 {
		return Obstacle{Kind: Assignments}
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
		return Obstacle{Kind: LoneEquals}
	}
	switch name {
	case "eval", "exec", "source", ".", "alias", "trap", "hash", "unalias":
		return Obstacle{Kind: Evaluates, Text: name}
	case "test", "[":
		return testWordsObstacle(n.Args)
	}
	return Obstacle{}
}

// hiddenLine finds a line that begins with # but is not a comment of the script.
var hiddenLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n\s*['"]*#`) })

// inHeredoc reports whether the word is the text of a here-document, or contains a substitution, whose lines are
// checked separately.
func (r *scriptReader) inHeredoc(n *syntax.Word) bool {
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
		return Obstacle{Kind: LoneDollar}
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
		return Obstacle{Kind: Braces}
	}
	return Obstacle{}
}

// isQuoted reports whether the current node is inside double quotes.
func (r *scriptReader) isQuoted() bool {
	return slices.ContainsFunc(r.parents, func(p syntax.Node) bool { _, ok := p.(*syntax.DblQuoted); return ok })
}

// quotesText reports whether a substitution only produces a constant text, which is
// the usual way to pass a long message: $(cat <<'EOF' … EOF).
func quotesText(n *syntax.CmdSubst) bool {
	if len(n.Stmts) != 1 || len(n.Stmts[0].Redirs) != 1 || n.Stmts[0].Background {
		return false
	}
	redir := n.Stmts[0].Redirs[0]
	call, ok := n.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && len(call.Assigns) == 0 && call.Args[0].Lit() == "cat" &&
		(redir.Op == syntax.Hdoc || redir.Op == syntax.DashHdoc) && quotedDelimiter(redir.Word)
}
