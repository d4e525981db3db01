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
		if r.hasCommentAfterListOperator(n) {
			return Obstacle{Kind: ObstacleUnparsed}
		}
	case *syntax.Subshell:
		return Obstacle{Kind: ObstacleSubshell}
	case *syntax.Block, *syntax.ArithmCmd:
		return Obstacle{Kind: ObstacleBraceGroupOrArithmeticCommand}
	case *syntax.FuncDecl:
		return Obstacle{Kind: ObstacleFunction}
	case *syntax.CaseClause:
		return Obstacle{Kind: ObstacleCase}
	case *syntax.CStyleLoop:
		return Obstacle{Kind: ObstacleCStyleForLoop}
	case *syntax.TestClause:
		return testExpressionObstacle(n.X)
	case *syntax.Assign:
		return arrayAssignmentObstacle(n)
	case *syntax.Redirect:
		if n.Word != nil && (n.Op == syntax.DplIn || n.Op == syntax.DplOut) && strings.HasSuffix(n.Word.Lit(), "-") {
			return Obstacle{Kind: ObstacleRedirectClosesDescriptor}
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
		return r.recordAssignedNamesAndFindObstacle(n)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		if isDollarQuoted(n) {
			return Obstacle{Kind: ObstacleDollarQuotedText}
		}
	case *syntax.Word:
		if quotedHashLinePattern().MatchString(r.sourceText(n)) {
			return Obstacle{Kind: ObstacleQuotedHashLine}
		}
	case *syntax.Lit:
		return r.loneDollarOrBracesObstacle(n)
	}
	return Obstacle{}
}

// hasCommentAfterListOperator reports whether a comment follows the operator of a list. The real CLI then ignores the
// commands before the operator (observed with 2.1.330).
func (r *scriptReader) hasCommentAfterListOperator(list *syntax.BinaryCmd) bool {
	at := list.OpPos.Offset()
	return list.Op != syntax.Pipe && list.Op != syntax.PipeAll && strings.Contains(r.source[at:max(at, list.Y.Pos().Offset())], "#")
}

func (r *scriptReader) statementObstacle(s *syntax.Stmt) Obstacle {
	open, followed, next := false, false, ""
	for _, redir := range s.Redirs {
		if isIfWhileOrTest(s.Cmd) && slices.ContainsFunc(redir.Word.Parts, func(p syntax.WordPart) bool { return isDollarQuoted(p) }) {
			return Obstacle{Kind: ObstacleDollarQuotedText}
		}
		if redir.Op == syntax.Hdoc || redir.Op == syntax.DashHdoc {
			line, _, _ := strings.Cut(r.source[redir.Word.End().Offset():], "\n")
			line = strings.TrimSpace(line)
			open, followed = open || !isDelimiterQuoted(redir.Word), followed || line != ""
			switch {
			case strings.Contains(line, "&&"), strings.Contains(line, "||"):
				next = "list"
			case strings.HasPrefix(line, "|"):
				next = "pipe"
			}
		}
	}
	switch {
	case open:
		return Obstacle{ObstacleExpandedHeredoc, next}
	case followed, len(s.Redirs) > 0 && isIfWhileOrTest(s.Cmd):
		return Obstacle{ObstacleUnclearRedirect, next}
	case s.Background && r.isOutsideCompoundCommand():
		return Obstacle{Kind: ObstacleBackground}
	case s.Background:
		return Obstacle{Kind: ObstacleBackground, Text: "nested"}
	}
	return Obstacle{}
}

// isDelimiterQuoted reports whether the delimiter of a here-document is quoted as a whole, so that the text of the
// document is not expanded. A partly quoted delimiter does not count as quoted, as in the real CLI (observed with 2.1.330).
func isDelimiterQuoted(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	return len(w.Parts) == 1 && (!ok || strings.LastIndexByte(lit.Value, '\\') == 0)
}

func isIfWhileOrTest(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.IfClause, *syntax.WhileClause, *syntax.TestClause:
		return true
	}
	return false
}

// substitutionObstacle returns the obstacle for the current command substitution. An unquoted substitution in an assignment, as
// in a=$(date), is not an obstacle, because its commands are judged instead. Neither is a substitution that runs a simple command
// and is only part of a quoted argument (observed with 2.1.330).
func (r *scriptReader) substitutionObstacle(sub *syntax.CmdSubst) Obstacle {
	for i, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.DblQuoted:
			if _, isArgument := r.parents[i-2].(*syntax.CallExpr); isArgument && i == len(r.parents)-1 && isEmptyOrOneSimpleCommand(sub) && hasTextBesidesSubstitutions(n) {
				return Obstacle{}
			}
			return Obstacle{Kind: ObstacleCommandSubstitutionInDoubleQuotes}
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
	case n.Param.Value == "HOME" && !r.setsHome, n.Param.Value == "PWD" && r.isInsideDoubleQuotes() && !r.assigned["PWD"] && (!isWord || r.sourceText(word) != `"$PWD"`):
		return Obstacle{}
	case r.assigned[n.Param.Value]:
		return Obstacle{Kind: ObstacleVariableSetByScript}
	}
	return Obstacle{Kind: ObstacleBareVariable}
}

var numberLiteralPattern = LazyRegexp(`^([0-9]+|0x[0-9a-fA-F]+|[0-9]+#[0-9a-zA-Z]+)$`)

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

func (r *scriptReader) recordAssignedNamesAndFindObstacle(n *syntax.CallExpr) Obstacle {
	if len(n.Args) == 0 && len(n.Assigns) > 1 {
		return Obstacle{Kind: ObstacleSeveralAssignmentsWithoutCommand}
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
		return operandObstacleOfTestCommand(n.Args)
	}
	return Obstacle{}
}

// quotedHashLinePattern finds a line that begins with # but is not a comment of the script.
var quotedHashLinePattern = LazyRegexp(`\n\s*['"]*#`)

func (r *scriptReader) loneDollarOrBracesObstacle(literal *syntax.Lit) Obstacle {
	if redirect, ok := r.parents[max(0, len(r.parents)-2)].(*syntax.Redirect); strings.Contains(strings.ReplaceAll(literal.Value, `\$`, ""), "$") && !r.isInsideDoubleQuotes() && (!ok || redirect.Hdoc == nil) {
		return Obstacle{Kind: ObstacleLoneDollar}
	}
	for _, p := range r.parents {
		switch p.(type) {
		case *syntax.DblQuoted, *syntax.Redirect, *syntax.ArithmExp, *syntax.TestClause, *syntax.ParamExp:
			return Obstacle{}
		}
	}
	open := strings.IndexByte(literal.Value, '{')
	if open < 0 || open > 0 && literal.Value[open-1] == '\\' {
		return Obstacle{}
	}
	if inner, _, found := strings.Cut(literal.Value[open+1:], "}"); found && (strings.Contains(inner, ",") || strings.Contains(inner, "..")) {
		return Obstacle{Kind: ObstacleBraces}
	}
	return Obstacle{}
}

func (r *scriptReader) isInsideDoubleQuotes() bool {
	return slices.ContainsFunc(r.parents, func(p syntax.Node) bool { _, ok := p.(*syntax.DblQuoted); return ok })
}

// isCatOfQuotedHeredoc reports whether a substitution only produces a constant text, as $(cat <<'EOF' … EOF) does.
func isCatOfQuotedHeredoc(substitution *syntax.CmdSubst) bool {
	if len(substitution.Stmts) != 1 || len(substitution.Stmts[0].Redirs) != 1 || substitution.Stmts[0].Background {
		return false
	}
	redir := substitution.Stmts[0].Redirs[0]
	call, ok := substitution.Stmts[0].Cmd.(*syntax.CallExpr)
	return ok && len(call.Args) == 1 && len(call.Assigns) == 0 && call.Args[0].Lit() == "cat" &&
		(redir.Op == syntax.Hdoc || redir.Op == syntax.DashHdoc) && isDelimiterQuoted(redir.Word)
}

// descriptorObstacle looks for a redirection such as {a[x]}<file, where the variable a[x] receives a descriptor and
// Bash evaluates the subscript x. The parser reads {a[x]} as a separate word.
func (r *scriptReader) descriptorObstacle(n *syntax.Redirect) Obstacle {
	at := min(int(n.OpPos.Offset()), len(r.source))
	if before := r.source[:at]; strings.HasSuffix(before, "]}") || n.N != nil && strings.Contains(n.N.Value, "[") {
		return Obstacle{Kind: ObstacleDescriptorStoredInArrayElement}
	}
	switch {
	case n.Op == syntax.RdrInOut, n.N != nil && strings.HasPrefix(n.N.Value, "{"):
		return Obstacle{Kind: ObstacleReadWriteOrNamedDescriptorRedirect}
	case n.N != nil && len(n.N.Value) > 1:
		return Obstacle{Kind: ObstacleUnclearRedirect}
	}
	return Obstacle{}
}

// isInPartlyAnalysedConstruct reports whether a statement is inside a construct that the real CLI analyses only in part: a function,
// a case, a select or counting loop, a negated group, or the left side of an operator with a comment after it. r.parents must be the
// parents of the statement. Constructs around a command substitution do not count. isInnermostFunctionOrCase is true if the innermost
// construct (conditions and loops count too) is a function, a case or a timed subshell (observed with 2.1.330).
func (r *scriptReader) isInPartlyAnalysedConstruct(statement *syntax.Stmt) (isInside, isInnermostFunctionOrCase bool) {
	nested := false
	for i, parent := range slices.Backward(r.parents) {
		switch n := parent.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return isInside, false
		case *syntax.FuncDecl:
			if !isLastNodeAfterListOperator(append(slices.Clip(r.parents[i+1:]), statement)) {
				return true, !nested && !strings.Contains(r.source[n.Pos().Offset():statement.Pos().Offset()], "\n")
			}
		case *syntax.IfClause, *syntax.WhileClause:
			nested = true
		case *syntax.BinaryCmd:
			isInside = isInside || r.hasCommentAfterListOperator(n) && append(slices.Clip(r.parents), statement)[i+1] == syntax.Node(n.X)
		case *syntax.CaseItem:
			return true, !nested
		case *syntax.ForClause:
			_, counts := n.Loop.(*syntax.CStyleLoop)
			isInside, nested = isInside || counts || n.Select, true
		case *syntax.Block:
			if stmt, ok := r.parents[i-1].(*syntax.Stmt); ok && stmt.Negated {
				isInside = true
			}
		case *syntax.Subshell:
			if _, timed := r.parents[max(0, i-2)].(*syntax.TimeClause); timed {
				return true, true
			}
		}
	}
	return isInside, false
}

// isLastNodeAfterListOperator reports whether the last node of nodePath belongs to the right side of a list operator such as &&. In
// nodePath, each node contains the next. The parser reads f() { …; } && b as one function, but b is not part of the function.
func isLastNodeAfterListOperator(nodePath []syntax.Node) bool {
	for ; len(nodePath) > 2; nodePath = nodePath[2:] {
		if list, ok := nodePath[1].(*syntax.BinaryCmd); !ok || nodePath[2] == syntax.Node(list.Y) {
			return ok
		}
	}
	return false
}

// isOutputPiped reports whether a statement's output is the input of another command. r.parents must be the parents of the statement.
func (r *scriptReader) isOutputPiped(s *syntax.Stmt) bool {
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

// recordValueIfConstantOrHome records the value of a variable if it is a constant text or begins with $HOME. As in the real
// CLI, the value is unknown if the variable was set before, or if a command precedes the assignment (observed with 2.1.330).
func (r *scriptReader) recordValueIfConstantOrHome(assignment *syntax.Assign) {
	if assignment.Naked {
		return
	}
	_, again := r.values[assignment.Name.Value]
	text := ""
	if assignment.Value != nil {
		text = strings.Trim(r.sourceText(assignment.Value), `"'`)
	}
	switch variable, _ := strings.CutPrefix(text, "$"); {
	case again || assignment.Array != nil || assignment.Append || r.hasStarted:
		r.values[assignment.Name.Value] = ""
		return
	case text == "", r.values[variable] == emptyVariableValueMark:
		r.values[assignment.Name.Value] = emptyVariableValueMark
		return
	}
	value := cmp.Or(literalText(assignment.Value), r.knownTextOfWordWithVariables(assignment.Value))
	shape := unquotedWordWithPlaceholders(assignment.Value, r.values)
	if strings.HasPrefix(strings.Trim(r.sourceText(assignment.Value), `"`), "$HOME") || assignment.Value.Lit() != "" && !strings.Contains(shape, "{") {
		value = shape // a glob in a value is plain text
	}
	if strings.HasPrefix(value, "~") {
		value = ""
	}
	r.values[assignment.Name.Value] = value
}

// directoryExpressionPattern matches the working directory, and directories that are derived from it or from a variable (observed with
// 2.1.330).
var directoryExpressionPattern = LazyRegexp(`^"?(?:\$PWD|\$\{PWD\}|(?:\$\(|` + "`" + `)\s*(?:pwd\b|git\s+rev-parse\b|dirname\s.*\$|cd\b(?:.*\$.*&&|[^&]*;)\s*pwd\b).*[)` + "`" + `])"?/*"?$`)

// rootIfVariableEmptyPattern matches a value that is the root or a system directory if the variable in it is empty.
var rootIfVariableEmptyPattern = LazyRegexp(`^"?\$\{?[A-Za-z_]\w*\}?"?/+(\**|\$.*|(bin|boot|dev|etc|home|lib\w*|mnt|media|nix|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)/?\**)"?$`)

// forgetDirectoryVariableOfLoop removes the variable of a loop other than select from r.directoryVariables.
func (r *scriptReader) forgetDirectoryVariableOfLoop(n *syntax.WordIter) {
	if loop, ok := r.parents[len(r.parents)-1].(*syntax.ForClause); !ok || !loop.Select {
		delete(r.directoryVariables, n.Name.Value)
	}
}

func (r *scriptReader) trackUnclearOrDirectoryVariable(a *syntax.Assign) {
	if a.Name != nil && a.Index == nil && (a.Name.Value == "IFS" || a.Array != nil || a.Value != nil && assignedValueUnknownToRealCLIPattern().MatchString(r.sourceText(a.Value))) {
		r.script.Unclear = append(r.script.Unclear, a.Name.Value)
	}
	call, isCall := r.parents[len(r.parents)-1].(*syntax.CallExpr)
	if a.Name == nil || a.Append || a.Index != nil || a.Naked || isCall && len(call.Args) > 0 {
		return
	}
	found := false
	if a.Value != nil {
		source := r.sourceText(a.Value)
		found = rootIfVariableEmptyPattern().MatchString(source) && r.knownTextOfWordWithVariables(a.Value) == "" || directoryExpressionPattern().MatchString(source) || r.isVariableHoldingDirectory(strings.TrimRight(source, "/")) || r.isVariableHoldingDirectory(`"`+source+`"`)
	}
	switch {
	case r.isCurrentAssignmentIgnoredByRealCLI(found):
	case found:
		r.directoryVariables[a.Name.Value] = r.enclosingFunctionOrCase()
	default:
		delete(r.directoryVariables, a.Name.Value)
	}
}

// isCurrentAssignmentIgnoredByRealCLI reports whether the real CLI ignores the current assignment. It ignores a constant that is
// assigned after || or in the background, and a directory that is assigned in a subshell (observed with 2.1.330).
func (r *scriptReader) isCurrentAssignmentIgnoredByRealCLI(isValueDirectory bool) bool {
	for i, parent := range r.parents {
		skipped := false
		switch n := parent.(type) {
		case *syntax.Subshell:
			skipped = isValueDirectory
		case *syntax.Stmt:
			skipped = n.Background && !isValueDirectory
		case *syntax.BinaryCmd:
			skipped = n.Op == syntax.OrStmt && i+1 < len(r.parents) && r.parents[i+1] == syntax.Node(n.Y) && !isValueDirectory
		}
		if skipped {
			return true
		}
	}
	return false
}

// assignedValueUnknownToRealCLIPattern matches a value that the real CLI does not determine (observed with 2.1.330).
var assignedValueUnknownToRealCLIPattern = LazyRegexp(`^[^(]*~|\$['"]|\\[ \t]|^[^'"]*\{[^{}'"]*(,|\.\.)[^{}'"]*\}|\$$`)

// heredocStart matches the part of a line that begins with a here-document, unless arithmetic precedes it.
var heredocStart = LazyRegexp(`^(?:[^<(]|\([^(]|<[^<])*<<-?\s*['"\\\w](.*)$`)

// isAfterHeredocOnSameLine reports whether a here-document begins before the statement, on the same line. The real CLI does not
// analyse the statement then. After a semicolon or ampersand, it ignores the statement (observed with 2.1.330).
func (r *scriptReader) isAfterHeredocOnSameLine(statement *syntax.Stmt) (isAfter, isSeparatedBySemicolonOrAmpersand bool) {
	before := r.source[:statement.Pos().Offset()]
	found := heredocStart().FindStringSubmatch(before[strings.LastIndexByte(before, '\n')+1:])
	if found == nil {
		return false, false
	}
	return true, strings.ContainsAny(strings.ReplaceAll(found[1], "&&", ""), ";&")
}
