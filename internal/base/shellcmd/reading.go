package shellcmd

import (
	"errors"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxReparsesForBackslashAfterComment limits how often a script is parsed again because a comment ends in a backslash.
const maxReparsesForBackslashAfterComment = 64

// ErrUncertain means that an independent check of the script does not confirm the
// parser's result: the shell may run other commands than Parse returns.
var ErrUncertain = errors.New("the shell may run other commands than those that were checked")

var errFinalBackslash = errors.New("no line follows the backslash at the end of the last line")

// parseOrRepair returns the statements of a script, and the text that was parsed, which [repairSyntaxAndParse] may have changed.
func parseOrRepair(source string) (text string, stmts []*syntax.Stmt, err error) {
	stmts, err = parseWithIndependentCheck(source)
	if wrong, ok := errors.AsType[syntax.ParseError](err); ok { // the end of the text also ends an open here-document
		if end, found := strings.CutPrefix(wrong.Text, "unclosed here-document `"); found {
			closed := source + "\n" + strings.TrimSuffix(end, "`")
			if stmts, err := parseWithIndependentCheck(closed); err == nil {
				return closed, stmts, nil
			}
		}
	}
	if text, stmts, unclear, ok := repairSyntaxAndParse(source, err); ok {
		if !unclear && !isQuoteForOrCaseClosedByRepair(source, stmts) {
			err = nil
		}
		return text, stmts, err
	} else if unclear {
		return source, stmts, ErrUncertain
	}
	return source, stmts, err
}

// parseWithIndependentCheck returns the statements of a script up to its first syntax error. If a comment ends in a backslash,
// the parser, unlike the shell, reads the next line as part of the comment. parseWithIndependentCheck therefore removes the
// backslash and parses the script again. The error is ErrUncertain if an independent check does not confirm the result.
func parseWithIndependentCheck(source string) ([]*syntax.Stmt, error) {
	text := source
	for range maxReparsesForBackslashAfterComment {
		stmts, err := parseStatements(text)
		seen := newParseResultChecker(text)
		for _, s := range stmts {
			syntax.Walk(s, seen.recordWordBytesOfNode)
		}
		if at := seen.offsetOfBackslashEndingComment(); at > 0 {
			text = text[:at] + " " + text[at+1:]
			continue
		}
		switch {
		case err == nil && !seen.isParseResultConfirmed(), isSyntaxErrorInsideExpansion(text, err):
			err = ErrUncertain
		case err == nil && seen.misplaced != nil:
			err = syntax.ParseError{Pos: seen.misplaced.Pos(), Text: "the word can only be used to continue or end a command"}
		case err == nil && (len(seen.text)-len(strings.TrimRight(seen.text, `\`)))%2 == 1 && seen.words[len(seen.text)-1]: // a backslash that escapes nothing
			err = errFinalBackslash
		}
		return stmts, err
	}
	return nil, ErrUncertain
}

// coprocOrTimeBeforeCompoundPattern matches words of erroneous statements for [hideNextAndRestoreReservedWords].
var coprocOrTimeBeforeCompoundPattern = LazyRegexp(`(?m)(?:^|[;&|({]|\b(?:then|do|else|time)\b)[\s!]*(?:(coproc)\s|(time)\s+(?:-p\s+)?(?:[{!]|if|while|until|for|case)\s)`)

// parseStatements returns the first syntax error and the statements before it, which are those that the shell runs.
func parseStatements(text string) (stmts []*syntax.Stmt, firstSyntaxError error) {
	for replaced := true; replaced; {
		stmts, firstSyntaxError = nil, nil
		// The parser continues to yield after an error, so the loop does not stop.
		for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(strings.NewReader(text)) {
			switch {
			case firstSyntaxError != nil:
			case err != nil:
				firstSyntaxError = err
			default:
				stmts = append(stmts, stmt)
			}
		}
		text, replaced = hideNextAndRestoreReservedWords(text, stmts, firstSyntaxError)
	}
	return stmts, firstSyntaxError
}

// hideNextAndRestoreReservedWords hides a reserved word from the parser by replacing its second letter. The words are "coproc", and "time" before a
// compound command other than a subshell. The parser of the real CLI treats these words as names of commands (observed with 2.1.330). In
// stmts, hideNextAndRestoreReservedWords restores the words that an earlier call has hidden.
func hideNextAndRestoreReservedWords(text string, stmts []*syntax.Stmt, mistake error) (replaced string, found bool) {
	at := -1
	visit := func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CoprocClause:
			at = int(n.Coproc.Offset())
		case *syntax.TimeClause:
			if n.Stmt != nil && (n.Stmt.Negated || makesPrecedingTimePlainWord(n.Stmt.Cmd)) {
				at = int(n.Time.Offset())
			}
		case *syntax.Lit:
			if n.Value == "c\x02proc" || n.Value == "t\x02me" {
				n.Value = strings.NewReplacer("c\x02", "co", "t\x02", "ti").Replace(n.Value)
			}
		}
		return true
	}
	for _, stmt := range stmts {
		syntax.Walk(stmt, visit)
	}
	if word := coprocOrTimeBeforeCompoundPattern().FindStringSubmatchIndex(text); mistake != nil && word != nil {
		at = max(word[2], word[4])
	}
	if at < 0 {
		return text, false
	}
	return text[:at+1] + "\x02" + text[at+2:], true
}

func makesPrecedingTimePlainWord(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.FuncDecl:
		return true
	}
	return false
}

// isSyntaxErrorInsideExpansion reports whether the syntax error seems to be inside an expansion, such as ${x without a closing
// brace, or at an arithmetic command in an unexpected place. Shells disagree about where an expansion or such an arithmetic
// command ends, so the meaning of the script is uncertain.
func isSyntaxErrorInsideExpansion(scriptText string, syntaxError error) bool {
	var at syntax.Pos
	var wrong syntax.ParseError
	var foreign syntax.LangError
	switch {
	case errors.As(syntaxError, &wrong):
		at = wrong.Pos
	case errors.As(syntaxError, &foreign):
		at = foreign.Pos
	default:
		return false
	}
	offset := min(int(at.Offset()), len(scriptText))
	before, rest := scriptText[:offset], scriptText[offset:]
	if i := strings.LastIndex(scriptText[:min(offset+2, len(scriptText))], "(("); i >= 0 && !strings.Contains(scriptText[i:max(i, offset)], ")") || strings.HasPrefix(rest, "$[") {
		return true
	}
	opened := strings.Count(before, "${") + strings.Count(before, "$(")
	closed := strings.Count(before, "}") + strings.Count(before, ")")
	return opened > closed || strings.HasPrefix(rest, "${") || strings.HasPrefix(rest, "$(")
}

// parseResultChecker checks a parsed script without trusting the parser. It records the bytes that the parser assigned to
// words. All other bytes must be spaces, operators, reserved words or comments. Only spaces may separate the words of a command.
type parseResultChecker struct {
	text       string
	words      []bool           // for each byte, whether it belongs to a word, a quoted text or an expansion
	delimiters []string         // delimiters of here-documents
	misplaced  *syntax.CallExpr // a command that begins with else or another word of a compound command
	ambiguous  bool             // shells read the script differently, for example an expansion that continues on another line
}

func newParseResultChecker(scriptText string) *parseResultChecker {
	return &parseResultChecker{text: scriptText, words: make([]bool, len(scriptText))}
}

func (c *parseResultChecker) recordWordBytesOfNode(node syntax.Node) (visitsChildren bool) {
	switch n := node.(type) {
	case *syntax.ParamExp:
		c.setNodeCovered(node, true)
		c.ambiguous = c.ambiguous || c.doesNodeSourceContain(n, "\\\n") || (n.Index != nil || n.Slice != nil || n.Repl != nil) && c.doesNodeSourceContain(n, "`")
	case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.CStyleLoop:
		c.setNodeCovered(node, true)
		c.ambiguous = c.ambiguous || c.doesNodeSourceContain(n, "`")
	case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.ExtGlob, *syntax.TestClause:
		c.setNodeCovered(node, true)
	case *syntax.CmdSubst, *syntax.ProcSubst: // the content is checked separately; parentheses are operators
		c.setNodeCovered(node, false)
		c.words[node.Pos().Offset()] = true
		c.words[node.End().Offset()-1] = true
	case *syntax.DeclClause:
		c.setNodeCovered(n.Variant, true)
	case *syntax.TimeClause:
		if n.Stmt != nil {
			_, calculates := n.Stmt.Cmd.(*syntax.ArithmCmd) // for the real CLI, this may be a subshell (observed with 2.1.330)
			c.ambiguous = c.ambiguous || calculates
		}
		if n.PosixFormat {
			c.words[int(n.Time.Offset())+strings.Index(c.text[n.Time.Offset():], "-p")+1] = true
		}
	case *syntax.Redirect:
		if n.Op == syntax.Hdoc || n.Op == syntax.DashHdoc {
			unquoted := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(c.text[n.Word.Pos().Offset():n.Word.End().Offset()])
			c.delimiters = append(c.delimiters, unquoted)
		}
	case *syntax.Stmt:
		if call, ok := n.Cmd.(*syntax.CallExpr); ok {
			c.ambiguous = c.ambiguous || !c.hasOnlyBlanksBetweenWords(call, n.Redirs)
			if c.misplaced == nil && len(call.Args) > 0 && misplacedReservedWordPattern().MatchString(c.text[call.Args[0].Pos().Offset():call.Args[0].End().Offset()]) {
				c.ambiguous = c.ambiguous || len(call.Assigns) > 0
				c.misplaced = call
			}
		}
	}
	return true
}

func (c *parseResultChecker) doesNodeSourceContain(n syntax.Node, text string) bool {
	return strings.Contains(c.text[n.Pos().Offset():n.End().Offset()], text)
}

func (c *parseResultChecker) setNodeCovered(n syntax.Node, value bool) {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	for i := from; i < min(to, len(c.words)); i++ {
		c.words[i] = value
	}
}

// hasOnlyBlanksBetweenWords reports whether the words of a simple command are separated only by spaces and continued lines.
func (c *parseResultChecker) hasOnlyBlanksBetweenWords(call *syntax.CallExpr, redirects []*syntax.Redirect) bool {
	var spans [][2]int
	add := func(from, to syntax.Pos) { spans = append(spans, [2]int{int(from.Offset()), int(to.Offset())}) }
	for _, a := range call.Assigns {
		add(a.Pos(), a.End())
	}
	for _, w := range call.Args {
		add(w.Pos(), w.End())
	}
	for _, r := range redirects {
		if r.Word != nil {
			add(r.Pos(), r.Word.End())
		}
	}
	slices.SortFunc(spans, func(a, b [2]int) int { return a[0] - b[0] })
	for i := 1; i < len(spans); i++ {
		from, to := spans[i-1][1], spans[i][0]
		if from > to || to > len(c.text) {
			return false
		}
		gap := c.text[from:to]
		if c.text[to] == '`' { // backquotes in backquotes
			gap = strings.TrimSuffix(gap, `\`)
		}
		if strings.Trim(strings.ReplaceAll(gap, "\\\n", ""), " \t") != "" {
			return false
		}
	}
	return true
}

func (c *parseResultChecker) offsetOfBackslashEndingComment() (offsetOrZero int) {
	inComment := false
	for i, b := range []byte(c.text) {
		switch {
		case b == '#' && !c.words[i]:
			inComment = true
		case b == '\n' && inComment && c.text[i-1] == '\\':
			return i - 1
		case b == '\n':
			inComment = false
		}
	}
	return 0
}

func (c *parseResultChecker) isParseResultConfirmed() bool {
	if c.ambiguous {
		return false
	}
	for i := 0; i < len(c.text); {
		switch b := c.text[i]; {
		case c.words[i] || strings.IndexByte(" \t\r\n;&|<>(){}!=+-*/%^~?:,[]", b) >= 0:
			i++
		case strings.HasPrefix(c.text[i:], "\\\n"), strings.HasPrefix(c.text[i:], "\\`"): // a line continuation or, in backquotes, an escaped backquote
			i += 2
		case b == '#':
			for i < len(c.text) && c.text[i] != '\n' {
				i++
			}
		default:
			end := i
			for end < len(c.text) && !c.words[end] && strings.IndexByte(" \t\r\n;&|<>()", c.text[end]) < 0 {
				end++
			}
			if word := c.text[i:end]; !strings.Contains(" if then elif else fi while until for in do done case esac select function time coproc let ", " "+word+" ") && !c.isHeredocDelimiterLine(i, end) {
				return false
			}
			i = end
		}
	}
	return true
}

func (c *parseResultChecker) isHeredocDelimiterLine(startOffset, endOffset int) bool {
	line := strings.LastIndexByte(c.text[:startOffset], '\n') + 1
	rest, _, _ := strings.Cut(c.text[endOffset:], "\n")
	return slices.Contains(c.delimiters, strings.TrimLeft(c.text[line:endOffset]+rest, "\t"))
}

// misplacedReservedWordPattern matches a word that is parsed as a command's name but continues or ends another command.
var misplacedReservedWordPattern = LazyRegexp(`^(\}.*|then|elif|else|fi|do|done|esac|if|while|until|for|case|function|select)$`)

// maxSyntaxRepairsPerScript limits the repairs in one script, and maxRepairableScriptBytes its length.
const (
	maxSyntaxRepairsPerScript = 8
	maxRepairableScriptBytes  = 16 << 10
)

// repairSyntaxAndParse parses a script with syntax errors as the parser of the real CLI does, which continues after an
// error. It adds text at the end to close an open quote, loop or condition. It accepts a pipe without a second command,
// and ;; as a semicolon everywhere (observed with 2.1.330). It skips a word or operator that the shell refuses at its
// place, and then isMeaningUnclear is true. ok is false if the script cannot be repaired.
func repairSyntaxAndParse(source string, syntaxError error) (repairedText string, stmts []*syntax.Stmt, isMeaningUnclear, ok bool) {
	if len(source) > maxRepairableScriptBytes {
		return "", nil, false, false
	}
	repairedText = source
	for range maxSyntaxRepairsPerScript {
		next, ok := repairAtFirstSyntaxError(repairedText, syntaxError)
		if !ok {
			isMeaningUnclear = true
			next, ok = blankOutMisplacedWordAtError(repairedText, syntaxError)
		}
		if !ok {
			return "", nil, false, false
		}
		repairedText = next
		stmts, syntaxError = parseWithIndependentCheck(repairedText)
		if syntaxError == nil {
			return repairedText, stmts, isMeaningUnclear, true
		} else if errors.Is(syntaxError, errFinalBackslash) {
			return repairedText, stmts, true, true
		} else if errors.Is(syntaxError, ErrUncertain) {
			return "", nil, true, false
		}
	}
	return "", nil, false, false
}

var (
	misplacedWordErrorPattern    = LazyRegexp("can only (be used (to|in an? [^f])|immediately)|not a valid (start|word)|must be followed by (a word|a statement list|`do`)|cannot form a statement|encountered `\\)`")
	blankOrCommentRestPattern    = LazyRegexp(`^[\s;]*(#|$)`)
	statementPattern             = LazyRegexp(`^[^;&|)\n]+`)
	leadingWordOrOperatorPattern = LazyRegexp(`^(\w+|&&|\|\||[<>&|]+|.)`)
)

// blankOutMisplacedWordAtError replaces the word or operator at the position of the syntax error by spaces. Between two
// statements on one line, it adds a semicolon.
func blankOutMisplacedWordAtError(text string, syntaxError error) (repairedText string, isRepaired bool) {
	var wrong syntax.ParseError
	if foreign, ok := errors.AsType[syntax.LangError](syntaxError); ok && strings.Contains(foreign.Feature, "functions") { // a function without a body
		at := int(foreign.Pos.Offset())
		size := len(statementPattern().FindString(text[at:]))
		return text[:at] + ":" + strings.Repeat(" ", size-1) + text[at+size:], true
	}
	if !errors.As(syntaxError, &wrong) {
		return "", false
	}
	at := min(int(wrong.Pos.Offset()), len(text))
	switch {
	case strings.HasPrefix(wrong.Text, "statements must be separated"):
		return text[:at] + ";" + text[at:], true
	case strings.Contains(wrong.Text, "without closing quote \"`"):
		return text + "`", at+1 < len(text)
	case strings.HasPrefix(wrong.Text, "reached EOF without matching `<("):
		return text + ")", true
	}
	size := len(leadingWordOrOperatorPattern().FindString(text[at:]))
	if strings.HasSuffix(wrong.Text, "followed by a statement") && !blankOrCommentRestPattern().MatchString(text[at+size:]) {
		return text[:at] + strings.Repeat(" ", size) + text[at+size:], true
	}
	blank := strings.Repeat(" ", size)
	if strings.HasSuffix(wrong.Text, "`)`") {
		blank = ";"
	}
	return text[:at] + blank + text[at+size:], size > 0 && misplacedWordErrorPattern().MatchString(wrong.Text)
}

func repairAtFirstSyntaxError(text string, syntaxError error) (repairedText string, isRepaired bool) {
	var wrong syntax.ParseError
	if !errors.As(syntaxError, &wrong) {
		return "", false
	}
	at := min(int(wrong.Pos.Offset()), len(text))
	if rest, found := strings.CutPrefix(text[at:], ";;"); found {
		return text[:at] + "; " + rest, true
	}
	switch wrong.Text {
	case "arrays cannot be nested": // a[0]=(x), which the parser accepts with +=
		return text[:at] + "+" + text[at:], strings.Count(text[:at], "(") == strings.Count(text[:at], ")")
	case "cannot negate a command multiple times":
		return text[:at] + " " + text[at+1:], true
	case "`if` must be followed by a statement list":
		return text + " true\nthen true\nfi", at+len("if") == len(text)
	case "`|` must be followed by a statement", "`|&` must be followed by a statement":
		return text + " true", strings.Trim(text[at:], "|& \n\t") == ""
	}
	end, found := map[string]string{
		"reached EOF without closing quote `'`": "'", "reached EOF without closing quote `\"`": `"`,
		"`if <cond>` must be followed by `then`": "\nthen true\nfi", "`elif <cond>` must be followed by `then`": "\nthen true\nfi",
		"`then` must be followed by a statement list": "\ntrue\nfi", "`else` must be followed by a statement list": "\ntrue\nfi", "`if` statement must end with `fi`": "\nfi",
		"`while <cond>` must be followed by `do`": "\ndo true\ndone", "`until <cond>` must be followed by `do`": "\ndo true\ndone",
		"`do` must be followed by a statement list": "\ntrue\ndone", "`while` statement must end with `done`": "\ndone",
		"`until` statement must end with `done`": "\ndone", "`for` statement must end with `done`": "\ndone",
	}[wrong.Text]
	return text + end, found
}

// isQuoteForOrCaseClosedByRepair reports whether a double quote, for loop or case is closed only by the text that a repair has
// added to originalSource. The real CLI does not repair these constructs, so the script still has an error.
func isQuoteForOrCaseClosedByRepair(originalSource string, stmts []*syntax.Stmt) bool {
	open := false
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(node syntax.Node) bool {
			switch node.(type) {
			case *syntax.DblQuoted, *syntax.ForClause, *syntax.CaseClause:
				open = open || int(node.End().Offset()) > len(originalSource)
			}
			return true
		})
	}
	return open
}
