package shellcmd

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraceExpansions bounds the number of words that the braces of one word expand to; a word with more is unknown.
const maxBraceExpansions = 256

// Word describes a word before it runs.
type Word struct {
	IsDynamic bool // the word contains an expansion or an unquoted glob
	// Paths are the names to which the word expands. With braces, such as {a,b}, each alternative has one. Nil means unknown.
	Paths           []Path
	StartsWithTilde bool   // the word begins with ~user, ~+ or ~-
	IsDollarQuoted  bool   // the word contains $'…' or $"…", or continues on another line after a backslash
	Source          string // the word as written
	HasExtraSpace   bool   // more than one space, or a tab, precedes the word
	Value           string // text of a word with variables; empty unless the script has assigned known texts to them
	Shape           string // the word without its quoting; in place of each expansion it has a placeholder such as [PlaceholderOutput]
	resolved        string // Shape, but variables that the script has set are replaced by their values
}

func (w Word) withVariableValuesAppliedOrDropped(appliesValues bool) Word {
	if !appliesValues {
		w.Value = ""
	} else if w.Shape != string(PlaceholderWorkingDirectoryVariable) {
		w.Shape = w.resolved
	}
	return w
}

var variableOrItsDirectoryContentsPattern = LazyRegexp(`^(?:""|'')*("?)\s*\$(?:(\w+)|\{(\w+)(?::?[-?][^}]*)?\})\s*"?(?:/[./*]*)?"?$`)

// isVariableHoldingDirectory reports whether a word is a variable in r.directoryVariables, or the contents of its directory, as
// in "$x"/*. The real CLI does not recognise ${NAME} without quotes (observed with 2.1.330).
func (r *scriptReader) isVariableHoldingDirectory(wordSource string) bool {
	found := variableOrItsDirectoryContentsPattern().FindStringSubmatch(wordSource)
	if found == nil || found[2] == "" && found[1] == "" {
		return false
	}
	scope, ok := r.directoryVariables[found[2]+found[3]]
	return ok && (r.enclosingFunctionOrCase() == nil || r.enclosingFunctionOrCase() == scope)
}

// Path is a word whose value is known except for its globs and a home directory at its beginning.
type Path struct {
	Home bool   // Name is below the home directory
	Name string // path without quoting; empty means the home directory itself
	// Glob is Name as a pattern, if it has unquoted stars, question marks or brackets; otherwise it is empty. All other
	// special characters are escaped.
	Glob string
}

// unknownValue are the placeholders of expansions with an unknown value.
const unknownValue = string(PlaceholderPossiblyEmptyVariable) + string(PlaceholderNonEmptyVariableExpansion) + string(PlaceholderOtherExpansion)

func (r *scriptReader) sourceText(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from > to || to > len(r.source) {
		return ""
	}
	return r.source[from:to]
}

var braceListOrEscapedSpacePattern = LazyRegexp(`^[^'"]*\{[^{}'"]*(,|\.\.)|\\[ \t]`)

func hasBraceListDollarQuoteOrEscapedSpace(w *syntax.Word, source string) bool {
	return braceListOrEscapedSpacePattern().MatchString(source) || slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool { return isDollarQuoted(p) })
}

// readWord returns a word without its quoting (for a dynamic word its source), and a description of the word.
func (r *scriptReader) readWord(w *syntax.Word) (text string, known Word) {
	known = Word{Paths: r.pathsOfWord(w), StartsWithTilde: userDirectoryPattern().MatchString(r.sourceText(w)), Shape: unquotedWordWithPlaceholders(w, nil), Source: r.sourceText(w)}
	if known.resolved = unquotedWordWithPlaceholders(w, r.values); r.isVariableHoldingDirectory(known.Source) {
		known.Shape = string(PlaceholderWorkingDirectoryVariable)
	}
	if hasBraceListDollarQuoteOrEscapedSpace(w, known.Source) { // its parts do not form a path
		known.Shape, known.resolved = known.Shape+string(PlaceholderOtherExpansion), known.resolved+string(PlaceholderOtherExpansion)
	}
	known.IsDollarQuoted = strings.Contains(strings.TrimSuffix(known.Source, "\\\n"), "\\\n")
	var b strings.Builder
	for _, part := range w.Parts {
		known.IsDollarQuoted = known.IsDollarQuoted || isDollarQuoted(part)
	}
	known.Value = r.knownTextOfWordWithVariables(w)
	if name, ok := strings.CutPrefix(strings.Trim(known.Source, `"`), "$"); ok && (syntax.ValidName(name) || strings.HasPrefix(known.Source, "${")) {
		// The real CLI resolves neither ${NAME} nor an unquoted variable with several words (observed with 2.1.330).
		if known.Value = r.values[name]; known.Value == emptyVariableValueMark || known.Source[0] != '"' && strings.ContainsAny(known.Value, " \t\n*?[") {
			known.Value = ""
		}
	}
	for _, part := range w.Parts {
		if !appendLiteral(&b, part) {
			known.IsDynamic = true
			return r.sourceText(w), known
		}
	}
	return b.String(), known
}

// knownTextOfWordWithVariables returns the text of a word with variables. It returns "" if the word has no variable, a variable
// with an unknown value, or a glob.
func (r *scriptReader) knownTextOfWordWithVariables(word *syntax.Word) string {
	s := wordExpander{values: r.values}
	for _, part := range word.Parts {
		if !s.appendExpandedWordPart(part, false) {
			return ""
		}
	}
	if !s.usesValues || s.hasGlob {
		return ""
	}
	return s.name.String()
}

func isDollarQuoted(part syntax.Node) bool {
	switch p := part.(type) {
	case *syntax.SglQuoted:
		return p.Dollar
	case *syntax.DblQuoted:
		return p.Dollar
	default:
		return false
	}
}

var userDirectoryPattern = LazyRegexp(`^~[^/$"'\x60]`)

// pathsOfWord expands the braces of a word; nil means unknown.
func (r *scriptReader) pathsOfWord(w *syntax.Word) []Path {
	words := []*syntax.Word{w}
	if split := (&syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}); syntax.SplitBraces(split) {
		words = nil
		for one, err := range expand.BracesSeq(nil, split) {
			if err != nil || len(words) == maxBraceExpansions {
				return nil
			}
			words = append(words, one)
		}
	}
	var out []Path
	for _, one := range words {
		s := wordExpander{startsAtHome: !r.setsHome, values: r.values}
		for i, part := range one.Parts {
			if !s.appendExpandedWordPart(part, i == 0) {
				return nil
			}
		}
		out = append(out, s.path())
	}
	return out
}

type wordExpander struct {
	startsAtHome  bool // the script does not set HOME, so $HOME is the home directory
	values        map[string]string
	usesValues    bool // the word contains a variable with a known value
	inHome        bool // the word begins with the home directory
	inWorkDir     bool // the word begins with the working directory
	hasGlob       bool
	name, pattern strings.Builder
}

func (s *wordExpander) path() Path {
	p := Path{Home: s.inHome, Name: s.name.String()}
	if s.hasGlob {
		p.Glob = s.pattern.String()
	}
	if s.inHome {
		p.Name, p.Glob = strings.TrimPrefix(p.Name, "/"), strings.TrimPrefix(p.Glob, "/")
	}
	if s.inWorkDir {
		p.Name, p.Glob = "."+p.Name, "."+p.Glob
		if !s.hasGlob {
			p.Glob = ""
		}
	}
	return p
}

func (s *wordExpander) appendExpandedWordPart(part syntax.WordPart, isFirstPart bool) (isValueKnown bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return s.appendExpandedLiteral(p.Value, isFirstPart)
	case *syntax.SglQuoted:
		s.appendToNameAndEscapedPattern(singleQuotedText(p))
		return true
	case *syntax.DblQuoted:
		for i, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if sub, isOutput := inner.(*syntax.CmdSubst); isOutput && isEmptyOrOneSimpleCommand(sub) && hasTextBesidesSubstitutions(p) {
				s.appendToNameAndEscapedPattern(string(PlaceholderOutput)) // the real CLI takes it for the name of a file
				continue
			}
			if !ok {
				if !s.appendExpandedVariable(inner, isFirstPart && i == 0, true) {
					return false
				}
				continue
			}
			var b strings.Builder
			appendUnescapedDoubleQuoted(&b, lit.Value)
			s.appendToNameAndEscapedPattern(b.String())
		}
		return true
	default:
		return s.appendExpandedVariable(part, isFirstPart, false)
	}
}

// appendExpandedVariable expands a variable that the script has set. At the beginning of a word it also expands $HOME, and a
// quoted $PWD. For all other expansions it returns false.
func (s *wordExpander) appendExpandedVariable(part syntax.WordPart, first, quoted bool) bool {
	p, ok := part.(*syntax.ParamExp)
	if ok && p.Short && isPlainExpansion(p) {
		if value := s.values[p.Param.Value]; value == emptyVariableValueMark && quoted {
			s.usesValues = true
			return true
		} else if value != "" && value != emptyVariableValueMark && (quoted || !strings.ContainsAny(value, " \t\n*?[")) {
			if value[0] == PlaceholderHomeVariable {
				if value = value[1:]; !first || !s.startsAtHome {
					return false
				}
				s.inHome = true
			}
			s.usesValues = true
			s.appendToNameAndEscapedPattern(value)
			return true
		}
	}
	if ok && first && quoted && s.values != nil && p.Param.Value == "PWD" && isPlainExpansion(p) {
		s.inWorkDir = true
		return true
	}
	if !ok || !first || !s.startsAtHome || p.Param == nil || p.Param.Value != "HOME" || !isPlainExpansion(p) {
		return false
	}
	s.inHome = true
	return true
}

func isPlainExpansion(p *syntax.ParamExp) bool {
	return p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil && !p.Length && !p.Excl && !p.Width && p.Names == 0
}

func (s *wordExpander) appendToNameAndEscapedPattern(text string) {
	s.name.WriteString(text)
	for i := range len(text) {
		if strings.IndexByte(`*?[]\`, text[i]) >= 0 {
			s.pattern.WriteByte('\\')
		}
		s.pattern.WriteByte(text[i])
	}
}

func (s *wordExpander) appendExpandedLiteral(unquotedLiteral string, isFirstPart bool) (isValueKnown bool) {
	if isFirstPart && strings.HasPrefix(unquotedLiteral, "~") {
		if unquotedLiteral = unquotedLiteral[1:]; unquotedLiteral != "" && unquotedLiteral[0] != '/' {
			return false
		}
		s.inHome = true
	}
	for i := 0; i < len(unquotedLiteral); i++ {
		switch c := unquotedLiteral[i]; c {
		case '\\':
			if i++; i < len(unquotedLiteral) && unquotedLiteral[i] != '\n' {
				s.appendToNameAndEscapedPattern(unquotedLiteral[i : i+1])
			}
		case '*', '?', '[':
			s.hasGlob = s.hasGlob || unquotedLiteral != "["
			s.name.WriteByte(c)
			s.pattern.WriteByte(c)
		case ']':
			if !s.hasGlob {
				s.appendToNameAndEscapedPattern("]")
				continue
			}
			s.name.WriteByte(c)
			s.pattern.WriteByte(c)
		default:
			s.appendToNameAndEscapedPattern(unquotedLiteral[i : i+1])
		}
	}
	return true
}

func singleQuotedText(p *syntax.SglQuoted) string {
	if !p.Dollar {
		return p.Value
	}
	text, _, _ := expand.Format(&expand.Config{}, p.Value, nil) // fails only with arguments; a nil Config would be shared by all callers
	return text
}

func appendLiteral(b *strings.Builder, part syntax.WordPart) bool {
	switch p := part.(type) {
	case *syntax.Lit:
		return appendLiteralWithoutBackslashes(b, p.Value)
	case *syntax.SglQuoted:
		b.WriteString(singleQuotedText(p))
		return true
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				return false
			}
			appendUnescapedDoubleQuoted(b, lit.Value)
		}
		return true
	default:
		return false
	}
}

// appendLiteralWithoutBackslashes writes an unquoted literal without its backslashes. It returns false if the literal contains
// a glob, a brace expansion or a tilde, because the literal may then become other words.
func appendLiteralWithoutBackslashes(b *strings.Builder, unquotedLiteral string) (hasNoGlobBraceOrTilde bool) {
	for i := 0; i < len(unquotedLiteral); i++ {
		switch unquotedLiteral[i] {
		case '\\':
			if i++; i < len(unquotedLiteral) && unquotedLiteral[i] != '\n' {
				b.WriteByte(unquotedLiteral[i])
			}
		case '*', '?', '[', '{', '~':
			// A single bracket is the test command; a tilde inside a word is literal.
			if unquotedLiteral != "[" && unquotedLiteral != "{" && unquotedLiteral != "{}" && (unquotedLiteral[i] != '~' || i == 0) {
				return false
			}
			b.WriteByte(unquotedLiteral[i])
		default:
			b.WriteByte(unquotedLiteral[i])
		}
	}
	return true
}

// appendUnescapedDoubleQuoted writes a text that was inside double quotes, where a backslash escapes only a few characters.
func appendUnescapedDoubleQuoted(b *strings.Builder, s string) {
	_, _ = doubleQuoteEscapeReplacer().WriteString(b, s)
}

var doubleQuoteEscapeReplacer = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer(`\$`, "$", "\\`", "`", `\"`, `"`, `\\`, `\`, "\\\n", "")
})

// mayExpansionBeEmpty reports whether an expansion may be empty as far as the real CLI can tell (observed with 2.1.330).
func mayExpansionBeEmpty(expansion *syntax.ParamExp) bool {
	switch {
	case expansion.Length || expansion.Excl || expansion.Index != nil || expansion.Width || expansion.Names != 0 || expansion.Param == nil || strings.Contains("?$#-", expansion.Param.Value):
		return false
	case expansion.Exp == nil:
		return true
	case slices.Contains([]syntax.ParExpOperator{syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull}, expansion.Exp.Op):
		return expansion.Exp.Word == nil || strings.Trim(unquotedWordWithPlaceholders(expansion.Exp.Word, nil), unknownValue) == ""
	}
	return expansion.Exp.Op != syntax.ErrorUnsetOrNull && expansion.Exp.Op != syntax.OtherParamOps
}

// Placeholders for expansions in a Shape. Command lines cannot contain these characters: the tools refuse them.
const (
	PlaceholderOutput                    = '\x01' // $( … ), backquotes
	PlaceholderPossiblyEmptyVariable     = '\x02' // $NAME, ${NAME} and other expansions that may be empty
	PlaceholderOtherExpansion            = '\x03' // any other expansion
	PlaceholderHomeVariable              = '\x04' // $HOME, ${HOME} and forms such as ${HOME:-x}
	PlaceholderNonEmptyVariableExpansion = '\x05' // ${NAME:-x}, ${NAME:?} and other expansions of variables
	emptyVariableValueMark               = "\x07" // the value of a variable that the script sets to an empty text
	PlaceholderWorkingDirectoryVariable  = '\x06' // the whole word is a variable with the working directory, or with a directory derived from it
)

// hasTildeUserPrefix reports whether a word begins with ~user. The real CLI asks for permission even if the tilde is quoted.
func hasTildeUserPrefix(unquotedWord string) bool {
	return len(unquotedWord) > 1 && unquotedWord[0] == '~' && unquotedWord[1] != '/'
}

func isEmptyOrOneSimpleCommand(sub *syntax.CmdSubst) bool {
	if len(sub.Stmts) != 1 {
		return len(sub.Stmts) == 0
	}
	call, isSimple := sub.Stmts[0].Cmd.(*syntax.CallExpr)
	return isSimple && len(call.Args) > 0 && !sub.Stmts[0].Semicolon.IsValid()
}

// hasTextBesidesSubstitutions reports whether a text has no leading hyphen and at least two characters outside $( … ).
func hasTextBesidesSubstitutions(quotedText *syntax.DblQuoted) bool {
	text := unquotedWordWithPlaceholders(&syntax.Word{Parts: []syntax.WordPart{quotedText}}, nil)
	return text[0] != '-' && utf8.RuneCountInString(strings.ReplaceAll(text, string(PlaceholderOutput), "")) > 1
}

// unquotedWordWithPlaceholders returns a word without its quoting. An expansion whose value is not in variableValues is
// replaced by a placeholder. Globs, braces and tildes are unchanged, even if they are quoted.
func unquotedWordWithPlaceholders(word *syntax.Word, variableValues map[string]string) string {
	var b strings.Builder
	for _, part := range word.Parts {
		appendUnquotedPartWithPlaceholders(&b, part, variableValues, false)
	}
	return b.String()
}

func appendUnquotedPartWithPlaceholders(b *strings.Builder, part syntax.WordPart, variableValues map[string]string, isInsideDoubleQuotes bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		for i := 0; i < len(p.Value); i++ {
			if p.Value[i] == '\\' {
				if i++; i < len(p.Value) && p.Value[i] == '\n' {
					continue
				}
			}
			if i < len(p.Value) {
				b.WriteByte(p.Value[i])
			}
		}
	case *syntax.SglQuoted:
		b.WriteString(singleQuotedText(p))
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				appendUnescapedDoubleQuoted(b, lit.Value)
				continue
			}
			appendUnquotedPartWithPlaceholders(b, inner, variableValues, true)
		}
	case *syntax.CmdSubst:
		b.WriteByte(PlaceholderOutput)
	case *syntax.ParamExp:
		appendVariableValueOrPlaceholder(b, p, variableValues, isInsideDoubleQuotes)
	case *syntax.ExtGlob:
		b.WriteString(p.Op.String() + p.Pattern.Value + ")")
	default:
		if sum, ok := part.(*syntax.ArithmExp); ok && !isInsideDoubleQuotes && arithmeticObstacle(sum).Kind == NoObstacle {
			b.WriteString("*n") // any name
			return
		}
		b.WriteByte(PlaceholderOtherExpansion)
	}
}

func appendVariableValueOrPlaceholder(b *strings.Builder, expansion *syntax.ParamExp, variableValues map[string]string, isInsideDoubleQuotes bool) {
	switch {
	case expansion.Short && isPlainExpansion(expansion) && variableValues[expansion.Param.Value] != "" && (isInsideDoubleQuotes || !strings.ContainsAny(variableValues[expansion.Param.Value], " \t\n*?["+emptyVariableValueMark)):
		b.WriteString(strings.TrimSuffix(variableValues[expansion.Param.Value], emptyVariableValueMark))
	case expansion.Param != nil && expansion.Param.Value == "HOME" && !expansion.Length && !expansion.Excl:
		b.WriteByte(PlaceholderHomeVariable)
	case mayExpansionBeEmpty(expansion):
		b.WriteByte(PlaceholderPossiblyEmptyVariable)
	default:
		b.WriteByte(PlaceholderNonEmptyVariableExpansion)
	}
}
