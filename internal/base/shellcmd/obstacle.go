package shellcmd

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (r *scriptReader) obstacleOf(node syntax.Node) Obstacle {
	switch n := node.(type) {
	case *syntax.Stmt:
		return r.statementObstacle(n)
	case *syntax.BinaryCmd:
		if r.hasCommentAfterOperator(n) {
			return Obstacle{Kind: ObstacleUnparsed}
		}
	case *syntax.Subshell:
		return Obstacle{Kind: ObstacleSubshell}
	case *syntax.Block, *syntax.ArithmCmd:
		return Obstacle{Kind: ObstacleBracesOrArithmetic}
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
		return Obstacle{Kind: ObstacleEval, Text: "let"}
	case *syntax.ProcSubst:
		return Obstacle{Kind: ObstacleProcessSubstitution}
	case *syntax.CmdSubst:
		return r.substitutionObstacle(n)
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
		if hiddenLinePattern().MatchString(r.sourceText(n)) {
			return Obstacle{Kind: ObstacleHiddenLine}
		}
	case *syntax.Lit:
		return r.literalObstacle(n)
	}
	return Obstacle{}
}

// hasCommentAfterOperator reports whether a comment follows the operator of a list. The real CLI then ignores the
// commands before the operator (observed with 2.1.330).
func (r *scriptReader) hasCommentAfterOperator(n *syntax.BinaryCmd) bool {
	at := n.OpPos.Offset()
	return n.Op != syntax.Pipe && n.Op != syntax.PipeAll && strings.Contains(r.source[at:max(at, n.Y.Pos().Offset())], "#")
}

func (r *scriptReader) statementObstacle(s *syntax.Stmt) Obstacle {
	open, followed := false, false
	for _, redir := range s.Redirs {
		if isCompound(s.Cmd) && slices.ContainsFunc(redir.Word.Parts, func(p syntax.WordPart) bool { return isDollarQuoted(p) }) {
			return Obstacle{Kind: ObstacleCodedText}
		}
		if redir.Op == syntax.Hdoc || redir.Op == syntax.DashHdoc {
			line, _, _ := strings.Cut(r.source[redir.Word.End().Offset():], "\n")
			open, followed = open || !isDelimiterQuoted(redir.Word), followed || strings.TrimSpace(line) != ""
		}
	}
	switch {
	case open:
		return Obstacle{Kind: ObstacleExpandedHeredoc}
	case followed, len(s.Redirs) > 0 && isCompound(s.Cmd):
		return Obstacle{Kind: ObstacleUnclearRedirect}
	case s.Background && r.isInList():
		return Obstacle{Kind: ObstacleBackground}
	case s.Background:
		return Obstacle{Kind: ObstacleBackground, Text: "nested"}
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

// substitutionObstacle returns the obstacle for the current command substitution. An unquoted substitution in an
// assignment, as in a=$(date), is not an obstacle, because its commands are judged instead. The output of a simple
// command inside other quoted text of an argument is not one either (observed with 2.1.330).
func (r *scriptReader) substitutionObstacle(sub *syntax.CmdSubst) Obstacle {
	for i, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.DblQuoted:
			if _, isArgument := r.parents[i-2].(*syntax.CallExpr); isArgument && i == len(r.parents)-1 && isSimpleOutput(sub) && isMixedText(n) {
				return Obstacle{}
			}
			return Obstacle{Kind: ObstacleQuotedSubstitution}
		case *syntax.Assign:
			if !n.Naked {
				return Obstacle{}
			}
		case *syntax.Stmt:
			return Obstacle{Kind: ObstacleCommandSubstitution}
		}
	}
	return Obstacle{Kind: ObstacleCommandSubstitution}
}

func (r *scriptReader) variableObstacle(n *syntax.ParamExp) Obstacle {
	word, isWord := r.parents[max(0, len(r.parents)-2)].(*syntax.Word)
	switch {
	case !n.Short:
		return Obstacle{Kind: ObstacleBracedVariable}
	case n.Param.Value == "HOME" && !r.setsHome, n.Param.Value == "PWD" && r.isQuoted() && !r.assigned["PWD"] && (!isWord || r.sourceText(word) != `"$PWD"`):
		return Obstacle{}
	case r.assigned[n.Param.Value]:
		return Obstacle{Kind: ObstacleAssignedVariable}
	}
	return Obstacle{Kind: ObstacleBareVariable}
}

var numberLiteralPattern = LazyPattern(`^([0-9]+|0x[0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+)$`)

func arithmeticObstacle(n *syntax.ArithmExp) (found Obstacle) {
	if n.Bracket {
		return Obstacle{Kind: ObstacleArithmetic, Text: "$["}
	}
	syntax.Walk(n.X, func(node syntax.Node) bool {
		if w, ok := node.(*syntax.Word); ok && found.Kind == NoObstacle {
			if lit := w.Lit(); !numberLiteralPattern().MatchString(lit) {
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
		return Obstacle{Kind: ObstacleUnparsed}
	}
	switch name {
	case "eval", "exec", "source", ".", "alias", "trap", "hash":
		return Obstacle{Kind: ObstacleEval, Text: name}
	case "test", "[":
		return testWordsObstacle(n.Args)
	}
	return Obstacle{}
}

// hiddenLinePattern finds a line that begins with # but is not a comment of the script.
var hiddenLinePattern = LazyPattern(`\n\s*['"]*#`)

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

// descriptorObstacle looks for a redirection such as {a[x]}<file, where the variable a[x] receives a descriptor and
// Bash evaluates the subscript x. The parser reads {a[x]} as a separate word.
func (r *scriptReader) descriptorObstacle(n *syntax.Redirect) Obstacle {
	at := min(int(n.OpPos.Offset()), len(r.source))
	if before := r.source[:at]; strings.HasSuffix(before, "]}") || n.N != nil && strings.Contains(n.N.Value, "[") {
		return Obstacle{Kind: ObstacleDescriptorVariable}
	}
	switch {
	case n.Op == syntax.RdrInOut, n.N != nil && strings.HasPrefix(n.N.Value, "{"):
		return Obstacle{Kind: ObstacleHiddenRedirect}
	case n.N != nil && len(n.N.Value) > 1:
		return Obstacle{Kind: ObstacleUnclearRedirect}
	}
	return Obstacle{}
}

// isHidden reports whether a statement, whose parents are the current ones, is part of a function, a case, a select or counting loop, or a group
// inside another construct, but not of a substitution in it. inFunction is true if the innermost of them, a condition or
// loop included, is a function, a case or a timed subshell (observed with 2.1.330).
func (r *scriptReader) isHidden(s *syntax.Stmt) (hidden, inFunction bool) {
	nested := false
	for i, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return hidden, false
		case *syntax.FuncDecl:
			if !followsList(append(slices.Clip(r.parents[i+1:]), s)) {
				return true, !nested && !strings.Contains(r.source[n.Pos().Offset():s.Pos().Offset()], "\n")
			}
		case *syntax.IfClause, *syntax.WhileClause:
			nested = true
		case *syntax.BinaryCmd:
			hidden = hidden || r.hasCommentAfterOperator(n) && append(slices.Clip(r.parents), s)[i+1] == syntax.Node(n.X)
		case *syntax.CaseItem:
			return true, !nested
		case *syntax.ForClause:
			_, counts := n.Loop.(*syntax.CStyleLoop)
			hidden, nested = hidden || counts || n.Select, true
		case *syntax.Block:
			if stmt, ok := r.parents[i-1].(*syntax.Stmt); ok && stmt.Negated {
				hidden = true
			}
		case *syntax.Subshell:
			if _, timed := r.parents[max(0, i-2)].(*syntax.TimeClause); timed {
				return true, true
			}
		}
	}
	return hidden, false
}

// followsList reports whether the last node of path belongs to a command after && or another operator; each node
// contains the next. The parser treats such a command after a function as part of the function.
func followsList(path []syntax.Node) bool {
	for ; len(path) > 2; path = path[2:] {
		list, ok := path[1].(*syntax.BinaryCmd)
		if !ok || path[2] == syntax.Node(list.Y) {
			return ok
		}
	}
	return false
}

// isPiped reports whether the output of a statement, whose parents are the current ones, is the input of another command.
func (r *scriptReader) isPiped(s *syntax.Stmt) bool {
	for _, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.Stmt:
			s = n
		case *syntax.BinaryCmd:
			if isPipe := n.Op == syntax.Pipe || n.Op == syntax.PipeAll; !isPipe || n.X == s {
				return isPipe
			}
		default:
			return false
		}
	}
	return false
}

// enclosingFunctionOrCase returns the function or case that contains the current node; nil means the top level.
func (r *scriptReader) enclosingFunctionOrCase() syntax.Node {
	for _, parent := range slices.Backward(r.parents) {
		switch parent.(type) {
		case *syntax.FuncDecl, *syntax.CaseClause:
			return parent
		}
	}
	return nil
}

// recordAssignment records the value of a variable if it is a constant text or begins with $HOME. The value is unknown if
// the variable is set twice, or after a command, as in the real CLI (observed with 2.1.330).
func (r *scriptReader) recordAssignment(a *syntax.Assign) {
	if a.Naked {
		return
	}
	_, again := r.values[a.Name.Value]
	text := ""
	if a.Value != nil {
		text = strings.Trim(r.sourceText(a.Value), `"'`)
	}
	switch variable, _ := strings.CutPrefix(text, "$"); {
	case again || a.Array != nil || a.Append || r.hasStarted:
		r.values[a.Name.Value] = ""
		return
	case text == "", r.values[variable] == emptyValue:
		r.values[a.Name.Value] = emptyValue
		return
	}
	value := cmp.Or(literalText(a.Value), r.resolvedText(a.Value))
	shape := wordShape(a.Value, r.values)
	if strings.HasPrefix(strings.Trim(r.sourceText(a.Value), `"`), "$HOME") || a.Value.Lit() != "" && !strings.Contains(shape, "{") {
		value = shape // a glob in a value is plain text
	}
	if strings.HasPrefix(value, "~") {
		value = ""
	}
	r.values[a.Name.Value] = value
}

// directoryValuePattern matches the working directory and directories found from it or a variable (observed with 2.1.330).
var directoryValuePattern = LazyPattern(`^"?(?:\$PWD|\$\{PWD\}|(?:\$\(|` + "`" + `)\s*(?:pwd\b|git\s+rev-parse\b|dirname\s.*\$|cd\b(?:.*\$.*&&|[^&]*;)\s*pwd\b).*[)` + "`" + `])"?/*"?$`)

// rootValuePattern matches a value that is the root or a system directory if the variable in it is empty.
var rootValuePattern = LazyPattern(`^"?\$\{?[A-Za-z_]\w*\}?"?/+(\**|\$.*|(bin|boot|dev|etc|home|lib\w*|mnt|media|nix|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)/?\**)"?$`)

// forgetDirectory removes the variable of a loop, which is not a select, from the directories.
func (r *scriptReader) forgetDirectory(n *syntax.WordIter) {
	if loop, ok := r.parents[len(r.parents)-1].(*syntax.ForClause); !ok || !loop.Select {
		delete(r.directories, n.Name.Value)
	}
}

func (r *scriptReader) recordDirectory(a *syntax.Assign) {
	if a.Name != nil && a.Index == nil && (a.Name.Value == "IFS" || a.Array != nil || a.Value != nil && unclearValuePattern().MatchString(r.sourceText(a.Value))) {
		r.script.Unclear = append(r.script.Unclear, a.Name.Value)
	}
	call, isCall := r.parents[len(r.parents)-1].(*syntax.CallExpr)
	if a.Name == nil || a.Append || a.Index != nil || a.Naked || isCall && len(call.Args) > 0 {
		return
	}
	found := false
	if a.Value != nil {
		source := r.sourceText(a.Value)
		found = rootValuePattern().MatchString(source) && r.resolvedText(a.Value) == "" || directoryValuePattern().MatchString(source) || r.isDirectory(strings.TrimRight(source, "/")) || r.isDirectory(`"`+source+`"`)
	}
	switch {
	case r.isAssignmentIgnored(found):
	case found:
		r.directories[a.Name.Value] = r.enclosingFunctionOrCase()
	default:
		delete(r.directories, a.Name.Value)
	}
}

// isAssignmentIgnored reports whether the real CLI ignores the current assignment. It ignores a constant that is
// assigned after || or in the background, and a directory that is assigned in a subshell (observed with 2.1.330).
func (r *scriptReader) isAssignmentIgnored(isOfDirectory bool) bool {
	for i, parent := range r.parents {
		skipped := false
		switch n := parent.(type) {
		case *syntax.Subshell:
			skipped = isOfDirectory
		case *syntax.Stmt:
			skipped = n.Background && !isOfDirectory
		case *syntax.BinaryCmd:
			skipped = n.Op == syntax.OrStmt && i+1 < len(r.parents) && r.parents[i+1] == syntax.Node(n.Y) && !isOfDirectory
		}
		if skipped {
			return true
		}
	}
	return false
}

// unclearValuePattern matches a value that the real CLI does not determine (observed with 2.1.330).
var unclearValuePattern = LazyPattern(`^[^(]*~|\$['"]|\\[ \t]|^[^'"]*\{[^{}'"]*(,|\.\.)[^{}'"]*\}|\$$`)

// heredocStart matches the part of a line from a here-document on, unless the line has arithmetic before it.
var heredocStart = LazyPattern(`^(?:[^<(]|\([^(]|<[^<])*<<-?\s*['"\\\w](.*)$`)

// followsHeredoc reports whether a here-document precedes the statement on its line. The real CLI (observed with 2.1.330)
// does not analyse such a command, and ignores it if a semicolon or ampersand separates the two.
func (r *scriptReader) followsHeredoc(s *syntax.Stmt) (followed, separate bool) {
	before := r.source[:s.Pos().Offset()]
	found := heredocStart().FindStringSubmatch(before[strings.LastIndexByte(before, '\n')+1:])
	if found == nil {
		return false, false
	}
	return true, strings.ContainsAny(strings.ReplaceAll(found[1], "&&", ""), ";&")
}
