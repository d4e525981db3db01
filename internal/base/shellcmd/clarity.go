package shellcmd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// WordClarity is how well the real CLI understands a word (observed with 2.1.330). Higher values are worse.
type WordClarity int

// The values of [WordClarity].
const (
	ClarityFullyKnown      WordClarity = iota
	ClarityUnknownVariable             // the word has a variable that the script does not set
	ClarityBracesOrEscapes             // the word has a list in braces, $'…' or an escaped space
	ClarityNotAnalysed                 // the real CLI does not analyse the words of this command
)

var wordNotAnalysedByRealCLIPattern = LazyPattern(`^=([A-Za-z_]|$)|\\\n|['"].*\\[ \t].*['"]`)

// nextWordPattern matches a text that begins with the next word of a command.
var nextWordPattern = LazyPattern(`^[ \t]+[^\s&|;<>()#]`)

func (r *scriptReader) wordClarityForRealCLI(word *syntax.Word) WordClarity {
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

func (r *scriptReader) clarity(redirects []*syntax.Redirect, call *syntax.CallExpr) (c WordClarity) {
	for _, a := range call.Assigns {
		if c = max(c, r.clarityOfWordBeforeCommandName(a.Value)); a.Name != nil && a.Name.Value == "IFS" {
			c = max(c, ClarityUnknownVariable)
		}
	}
	for _, n := range redirects {
		isFirst := n.Pos().Offset() < call.Pos().Offset()
		if isFirst || n.Op == syntax.WordHdoc {
			c = max(c, r.clarityOfWordBeforeCommandName(n.Word))
		}
		if isFirst && (n.Op == syntax.RdrInOut || n.N != nil && n.N.Value[0] == '{') {
			c = max(c, ClarityUnknownVariable)
		}
	}
	for i, w := range call.Args {
		if c = max(c, r.wordClarityForRealCLI(w)); i == 0 && isDollarQuoted(w.Parts[0]) {
			return ClarityNotAnalysed
		}
	}
	return c
}

// clarityOfOutermostCompoundCommand returns the clarity of the outermost compound command that contains the current node. If a
// word in it is not clear, or it contains a function or another construct that it may not contain, the real CLI does not
// analyse any of its commands (observed with 2.1.330).
func (r *scriptReader) clarityOfOutermostCompoundCommand() WordClarity {
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
			c = max(c, min(r.wordClarityForRealCLI(n), ClarityUnknownVariable))
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

// isExtendedGlobOrLoneDollar reports whether a part is a pattern such as @(a), or has a dollar sign that begins nothing.
func isExtendedGlobOrLoneDollar(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return strings.Contains(strings.NewReplacer(`\\`, "", `\$`, "").Replace(p.Value), "$")
	case *syntax.ExtGlob:
		return true
	}
	return false
}

// clarityOfWordBeforeCommandName is the clarity of a word before the name of a command. Later words are always read.
func (r *scriptReader) clarityOfWordBeforeCommandName(word *syntax.Word) WordClarity {
	if word == nil {
		return ClarityFullyKnown
	}
	return min(r.wordClarityForRealCLI(word), ClarityBracesOrEscapes)
}
