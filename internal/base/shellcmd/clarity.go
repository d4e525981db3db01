package shellcmd

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// WordObscurity is how well the real CLI understands a word (observed with 2.1.330). Higher values are worse.
type WordObscurity int

// The values of [WordObscurity].
const (
	ClarityFullyKnown      WordObscurity = iota
	ClarityUnknownVariable               // the word has a variable that the script does not set
	ClarityBracesOrEscapes               // the word has a list in braces, $'…' or an escaped space
	ClarityNotAnalysed                   // the real CLI does not analyse the words of this command
)

var wordNotAnalysedByRealCLIPattern = LazyRegexp(`^=([A-Za-z_]|$)|\\\n|['"].*\\[ \t].*['"]`)

// nextWordPattern matches a text that begins with the next word of a command.
var nextWordPattern = LazyRegexp(`^[ \t]+[^\s&|;<>()#]`)

func (r *scriptReader) wordObscurityForRealCLI(word *syntax.Word) WordObscurity {
	values := r.values
	if r.isUnresolved {
		values = nil
	}
	source, isLast := r.sourceText(word), !nextWordPattern().MatchString(r.source[word.End().Offset():])
	for trimmed := isLast; trimmed; { // the real CLI skips line continuations at the end of a command
		source, trimmed = strings.CutSuffix(source, "\\\n")
	}
	switch {
	case wordNotAnalysedByRealCLIPattern().MatchString(source) || !isLast && strings.HasSuffix(source, `\\`) || slices.ContainsFunc(word.Parts, isExtendedGlobOrLoneDollar):
		return ClarityNotAnalysed
	case hasBraceListDollarQuoteOrEscapedSpace(word, source):
		return ClarityBracesOrEscapes
	case strings.ContainsAny(unquotedWordWithPlaceholders(word, values), unknownValue):
		return ClarityUnknownVariable
	}
	return ClarityFullyKnown
}

func (r *scriptReader) obscurityOfCall(redirects []*syntax.Redirect, call *syntax.CallExpr) (c WordObscurity) {
	for _, a := range call.Assigns {
		if c = max(c, r.obscurityOfWordBeforeCommandName(a.Value)); a.Name != nil && a.Name.Value == "IFS" {
			c = max(c, ClarityUnknownVariable)
		}
	}
	for _, n := range redirects {
		isFirst := n.Pos().Offset() < call.Pos().Offset()
		if isFirst || n.Op == syntax.WordHdoc {
			c = max(c, r.obscurityOfWordBeforeCommandName(n.Word))
		}
		if isFirst && (n.Op == syntax.RdrInOut || n.N != nil && n.N.Value[0] == '{') {
			c = max(c, ClarityUnknownVariable)
		}
	}
	for i, w := range call.Args {
		if c = max(c, r.wordObscurityForRealCLI(w)); i == 0 && isDollarQuoted(w.Parts[0]) {
			return ClarityNotAnalysed
		}
	}
	return c
}

// obscurityOfOutermostCompound says how well the real CLI understands the outermost compound command that contains the
// current node. The real CLI analyses none of its commands if one of its words is not clear, or if it contains a function or
// another construct that is not allowed there (observed with 2.1.330).
func (r *scriptReader) obscurityOfOutermostCompound() WordObscurity {
	i := slices.IndexFunc(r.parents, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Stmt, *syntax.BinaryCmd, *syntax.TimeClause:
			return false
		}
		return true
	})
	if i < 0 || slices.ContainsFunc(r.parents, isSubstitutionNode) {
		return ClarityFullyKnown
	}
	root := r.parents[i]
	switch root.(type) {
	case *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause:
	default:
		return ClarityFullyKnown
	}
	c, known := r.compounds[root]
	if known {
		return c
	}
	syntax.Walk(root, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.FuncDecl, *syntax.CaseClause, *syntax.Block:
			if node != root {
				c = ClarityUnknownVariable
			}
		case *syntax.Word:
			c = max(c, min(r.wordObscurityForRealCLI(n), ClarityUnknownVariable))
		}
		return c == ClarityFullyKnown && !isSubstitutionNode(node)
	})
	r.compounds[root] = c
	return c
}

func isSubstitutionNode(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return true
	}
	return false
}

// isExtendedGlobOrLoneDollar reports whether a part is a pattern such as @(a), or has a dollar sign that begins no expansion.
func isExtendedGlobOrLoneDollar(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return strings.Contains(strings.NewReplacer(`\\`, "", `\$`, "").Replace(p.Value), "$")
	case *syntax.ExtGlob:
		return true
	}
	return false
}

// obscurityOfWordBeforeCommandName says how well the real CLI understands a word before the name of a command. The worst result is
// ClarityBracesOrEscapes. A nil word is fully known.
func (r *scriptReader) obscurityOfWordBeforeCommandName(word *syntax.Word) WordObscurity {
	if word == nil {
		return ClarityFullyKnown
	}
	return min(r.wordObscurityForRealCLI(word), ClarityBracesOrEscapes)
}

// recordTextSearchedCompound records the outermost condition, loop, case or function around a node, if the node makes the
// real CLI search the text of this construct instead of parsing it (observed with 2.1.330).
func (r *scriptReader) recordTextSearchedCompound(node syntax.Node, obstacle ObstacleKind) {
	var root syntax.Node
	for _, parent := range append(slices.Clip(r.parents), node) {
		switch n := parent.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			root = nil
		case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl:
			root = cmp.Or[syntax.Node](root, n)
		}
	}
	if root == nil || !slices.Contains(obstaclesToReadingCompounds(), obstacle) && !r.makesCompoundUnreadByRealCLI(node) {
		return
	}
	if text := r.sourceText(root); !slices.Contains(r.script.UnreadCompounds, text) {
		r.script.UnreadCompounds = append(r.script.UnreadCompounds, text)
	}
}

var obstaclesToReadingCompounds = sync.OnceValue(func() []ObstacleKind {
	return []ObstacleKind{
		ObstacleBackground, ObstacleBraceGroupOrArithmeticCommand, ObstacleFunction, ObstacleCase, ObstacleSeveralAssignmentsWithoutCommand, ObstacleExpandedHeredoc, ObstacleUnclearRedirect,
		ObstacleReadWriteOrNamedDescriptorRedirect, ObstacleArrayAssignment, ObstacleArrayElementAssignment, ObstacleCStyleForLoop, ObstacleUnparsed, ObstacleRedirectClosesDescriptor,
	}
})

var (
	riskyVariablePattern    = LazyRegexp(`^(IFS|F?PATH|BASH_ENV|ENV|HOME|CDPATH|(LD|DYLD|LC)_\w+|GLOBIGNORE|LANG|HISTFILE|MAILPATH|SHELL|RANDOM|OPTIND|SECONDS|E?UID|f?path|(READ)?NULLCMD)$`)
	typedDeclarationPattern = LazyRegexp(`^(export (.* )?-\w*n|[^e]\w+ (.* )?-\w*[aAfFgiIlnup])`)
)

func (r *scriptReader) makesCompoundUnreadByRealCLI(node syntax.Node) bool {
	switch n := node.(type) {
	case *syntax.Word:
		return r.wordObscurityForRealCLI(n) > ClarityUnknownVariable
	case *syntax.Lit:
		_, isUnquoted := r.parents[len(r.parents)-1].(*syntax.Word)
		return isUnquoted && strings.LastIndexByte(n.Value, '{') > strings.LastIndexByte(n.Value, '}')
	case *syntax.WordIter:
		return riskyVariablePattern().MatchString(n.Name.Value)
	case *syntax.Assign:
		return n.Name != nil && riskyVariablePattern().MatchString(n.Name.Value) || n.Value != nil && assignedValueUnknownToRealCLIPattern().MatchString(r.sourceText(n.Value))
	case *syntax.DeclClause:
		return typedDeclarationPattern().MatchString(r.sourceText(n))
	case *syntax.TimeClause:
		return n.Stmt != nil && r.source[n.Stmt.Pos().Offset()] == '('
	case *syntax.ForClause:
		return n.Select
	case *syntax.Stmt:
		return slices.ContainsFunc(n.Redirs, func(redirect *syntax.Redirect) bool { return redirectMakesCompoundUnread(n.Cmd, redirect) })
	}
	return false
}

func redirectMakesCompoundUnread(redirected syntax.Command, redirect *syntax.Redirect) bool {
	switch n := redirected.(type) {
	case *syntax.Subshell, *syntax.ForClause:
		return true
	case *syntax.CallExpr:
		at, last := redirect.Pos().Offset(), len(n.Args)-1
		return last >= 0 && (n.Args[0].Lit() == "[" || redirect.Op != syntax.WordHdoc && at > n.Args[0].Pos().Offset() && at < n.Args[last].Pos().Offset())
	}
	return false
}
