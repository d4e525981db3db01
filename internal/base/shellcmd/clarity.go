package shellcmd

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Clarity is how well the real CLI understands a word (observed with 2.1.330). Higher values are worse.
type Clarity int

// The values of [Clarity].
const (
	Clear      Clarity = iota
	Unresolved         // the word has a variable that the script does not set
	Obscure            // the word has a list in braces, $'…' or an escaped space
	Unread             // the real CLI does not analyse the words of this command
)

var unreadWordPattern = LazyPattern(`^=([A-Za-z_]|$)|\\\n|\\\\$|['"].*\\[ \t].*['"]`)

func (r *scriptReader) clarityOf(w *syntax.Word) Clarity {
	values := r.values
	if r.isUnresolved {
		values = nil
	}
	source := strings.TrimSuffix(r.sourceText(w), "\\\n")
	switch {
	case unreadWordPattern().MatchString(source) || slices.ContainsFunc(w.Parts, isUnreadPart):
		return Unread
	case isObscureWord(w, source):
		return Obscure
	case strings.ContainsAny(wordShape(w, values), unknownValue):
		return Unresolved
	}
	return Clear
}

// clarity returns the clarity of a command with its redirections.
func (r *scriptReader) clarity(redirects []*syntax.Redirect, call *syntax.CallExpr) (c Clarity) {
	for _, a := range call.Assigns {
		c = max(c, r.prefixClarity(a.Value))
	}
	for _, n := range redirects {
		isFirst := n.Pos().Offset() < call.Pos().Offset()
		if isFirst || n.Op == syntax.WordHdoc {
			c = max(c, r.prefixClarity(n.Word))
		}
		if isFirst && (n.Op == syntax.RdrInOut || n.N != nil && n.N.Value[0] == '{') {
			c = max(c, Unresolved)
		}
	}
	for i, w := range call.Args {
		if c = max(c, r.clarityOf(w)); i == 0 && isDollarQuoted(w.Parts[0]) {
			return Unread
		}
	}
	return c
}

// isUnreadPart reports whether a part is a pattern such as @(a), or has a dollar sign that begins nothing.
func isUnreadPart(part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return strings.Contains(strings.NewReplacer(`\\`, "", `\$`, "").Replace(p.Value), "$")
	case *syntax.ExtGlob:
		return true
	}
	return false
}

// prefixClarity is the clarity of a word before the name of a command; the words after it are read in any case.
func (r *scriptReader) prefixClarity(w *syntax.Word) Clarity {
	if w == nil {
		return Clear
	}
	return min(r.clarityOf(w), Obscure)
}
