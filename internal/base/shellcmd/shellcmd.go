// Package shellcmd parses a shell command line without running it. It reports the simple commands, their redirections,
// and whether the whole command line is read-only. If that is uncertain, it reports false.
package shellcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// maxScriptBytes bounds the input of Parse; longer scripts are an error.
const maxScriptBytes = 256 << 10

// Script is a parsed command line.
type Script struct {
	Commands  []Command  // all simple commands in source order, including those in loops, subshells and substitutions
	Redirects []Redirect // redirections of compound commands, such as `{ a; b; } > file`
	// IsOpaque is true if the script has parts whose effect the list of commands does not show: function
	// definitions, background jobs, coprocesses, declarations, arithmetic commands.
	IsOpaque     bool
	Obstacle     Obstacle // first construct that prevents judging the script by its commands alone
	IsPipeline   bool     // the output of a command is the input of another
	SubshellList bool     // a statement in a subshell ends in a semicolon or an ampersand, as in ( a; b )
	// Groups are the texts inside groups that begin with an assignment, such as `A=1; b` in `(A=1;
	// b)`, and inside arithmetic commands with several words.
	Groups []string
	// IsBroken is true if the script has a syntax error. HasOpenQuote is true if a single quote is not closed.
	IsBroken, HasOpenQuote bool
	Unclear                []string // lists the variables to which the script assigns values that the real CLI does not determine, such as ~
	UnreadCompounds        []string // texts of compound commands that the real CLI does not analyse
}

// Command is one simple command.
type Command struct {
	// Args are the words without their quoting. A word whose value is unknown before the script runs is kept as
	// written. Args[0] is the program. Args is empty if the command has only assignments or redirections.
	Args        []string
	Text        string   // source of assignments and words, without redirections
	Stage       string   // source between two pipes that contains the command, without > and >> redirections; empty without a pipe
	Assignments []string // sources of the assignments before the command (NAME=value)
	Redirects   []Redirect
	Words       []Word // one description for each element of Args
	// IsTimed is true if the command follows the word time. Interleaved is true if time has an option. It is also true if a
	// redirection precedes an assignment or is between words, as in `a >f b`. Text then contains the option or the redirection.
	IsTimed, Interleaved bool
	Redirected           bool // the command begins with a redirection
	// IsOutputPiped is true if another command reads the command's output. IsHidden is true if the real CLI analyses only part of a
	// construct that contains the command. IsInFunction is true if the innermost construct that contains the command is a
	// function, a case or a timed subshell.
	IsOutputPiped, IsHidden, IsInFunction bool
	IsInSubstitution                      bool // the command is inside $(…), `…`, <(…) or >(…)
	// IsContinued is true if a line continuation separates the command from its pipe. Text then contains the backslash.
	IsContinued bool
	// Clarity says how well the real CLI understands the command: it is the worst value of the words, of the assignments
	// before the command, and of the redirections before its name.
	Clarity WordObscurity
}

// Redirect is one redirection of a command.
type Redirect struct {
	Op         string // operator as written, such as ">" or ">>"; for "2>&1" it is ">&"
	Target     string // file name, descriptor or here-string
	WritesFile bool   // a file other than /dev/null may be written
	ReadsFile  bool   // a file may be read
	Word       Word   // description of Target
}

// Name returns the program's name as written; empty means none.
func (c Command) Name() string {
	if len(c.Args) == 0 {
		return ""
	}
	return c.Args[0]
}

// Parse parses cmd as Bash. It fails if cmd is too long, has a syntax error, or may be read differently by the shell
// ([ErrUncertain]). After a syntax error, the script holds the commands before the error, because Bash runs them.
func Parse(cmd string) (Script, error) {
	if len(cmd) > maxScriptBytes {
		return Script{}, fmt.Errorf("command is longer than %d bytes", maxScriptBytes)
	}
	r := scriptReader{source: cmd, assigned: map[string]bool{}, setsHome: homeChangePattern().MatchString(cmd), values: map[string]string{}, directoryVariables: map[string]syntax.Node{}, compounds: map[syntax.Node]WordObscurity{}}
	r.script.Obstacle = textObstacle(cmd)
	r.isUnresolved = r.script.Obstacle.Kind != NoObstacle
	text, stmts, err := parseOrRepair(cmd)
	if words := arithmeticCommandWithSeveralWordsPattern().FindStringSubmatchIndex(cmd); words != nil && !strings.HasSuffix(cmd[:words[0]], "$") && errors.Is(err, ErrUncertain) {
		r.script.Groups = append(r.script.Groups, cmd[words[2]:words[3]])
		text, stmts, err = parseOrRepair(cmd[:words[0]] + "{ :;" + strings.Repeat(" ", words[1]-words[0]-len("{ :;}")) + "}" + cmd[words[1]:])
	}
	r.source, r.end = text, len(cmd)
	for _, stmt := range stmts {
		syntax.Walk(stmt, r.analyseNodeDuringWalk)
	}
	r.setStages()
	for _, c := range r.script.Commands {
		for i := range c.Words {
			c.Words[i] = c.Words[i].withVariableValuesAppliedOrDropped(!r.isUnresolved)
		}
	}
	r.script.IsBroken, r.script.HasOpenQuote = err != nil, len(text) > len(cmd) && text[len(cmd)] == '\''
	return r.script, err
}

// arithmeticCommandWithSeveralWordsPattern matches an arithmetic command with several words. For
// the real CLI it is a group without effect (observed with 2.1.330).
var arithmeticCommandWithSeveralWordsPattern = LazyRegexp(`\(\(([^;()]*\w[ \t]+[^;() \t][^;()]*)\)\)`)

// homeChangePattern matches a script that may change HOME: it contains the name in other places than $HOME and ${HOME}.
var homeChangePattern = LazyRegexp(`(^|[^${]|(^|[^$])\{)HOME|HOME[+[]`)

var sideEffectExpansionOperators = [...]syntax.ParExpOperator{syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps}

type scriptReader struct {
	source   string
	end      int // end of the script in source; the text after it was added by a repair
	script   Script
	parents  []syntax.Node
	assigned map[string]bool
	setsHome bool              // the script may change HOME
	values   map[string]string // values of variables that the script sets to a constant before its first command
	// directoryVariables are the variables that the script sets to the working directory, or to a directory derived from it.
	// Each is mapped to the function or case that contains the assignment.
	directoryVariables map[string]syntax.Node
	hasStarted         bool // a command precedes the current node
	// isUnresolved is true if the script has a construct whose effect is unknown. The real CLI then ignores the values
	// of variables when it looks for the programs and for the files that are removed (observed with 2.1.330).
	isUnresolved bool
	compounds    map[syntax.Node]WordObscurity // results of obscurityOfOutermostCompound
	starts       []int                         // offset of each command of the script
	// pipes and outputRedirects have, for each, the offsets of its first byte and of the byte after it.
	pipes, outputRedirects [][2]int
}

// analyseNodeDuringWalk is called with every node before its children, and with nil after them.
func (r *scriptReader) analyseNodeDuringWalk(node syntax.Node) (visitsChildren bool) {
	if node == nil {
		r.parents = r.parents[:len(r.parents)-1]
		return true
	}
	if sub, ok := node.(*syntax.CmdSubst); ok && isCatOfQuotedHeredoc(sub) {
		return false
	}
	obstacle := r.obstacleOf(node)
	r.recordTextSearchedCompound(node, obstacle.Kind)
	variable, _ := node.(*syntax.ParamExp)
	r.isUnresolved = r.isUnresolved || obstacle.Kind != NoObstacle && obstacle.Kind != ObstacleBackground && (obstacle.Kind != ObstacleVariableSetByScript || r.values[variable.Param.Value] == "")
	if r.script.Obstacle.isCheckedLast() && !obstacle.isCheckedLast() || r.script.Obstacle.Kind == NoObstacle {
		r.script.Obstacle = obstacle
	}
	switch n := node.(type) {
	case *syntax.WordIter:
		r.forgetDirectoryVariableOfLoop(n)
	case *syntax.Block:
		r.recordGroupStartingWithAssignment(n.Lbrace, n.Rbrace)
	case *syntax.Subshell:
		r.recordGroupStartingWithAssignment(n.Lparen, n.Rparen)
		r.script.SubshellList = r.script.SubshellList || slices.ContainsFunc(n.Stmts, func(s *syntax.Stmt) bool { return s.Background || r.source[s.Semicolon.Offset()] == ';' })
	case *syntax.BinaryCmd:
		r.hasStarted = r.hasStarted || n.Op != syntax.AndStmt
		if slices.Contains([]syntax.BinCmdOperator{syntax.Pipe, syntax.PipeAll}, n.Op) {
			r.script.IsPipeline = true
			r.pipes = append(r.pipes, [2]int{int(n.OpPos.Offset()), int(n.OpPos.Offset()) + len(n.Op.String())})
			r.script.IsOpaque = r.script.IsOpaque || slices.ContainsFunc(r.parents, func(n syntax.Node) bool { // the real CLI does not analyse this pipe
				_, timed := n.(*syntax.TimeClause)
				cmd, ok := n.(syntax.Command)
				return timed || ok && isIfWhileOrTest(cmd)
			})
		}
	case *syntax.Stmt:
		r.readStatement(n)
	case *syntax.TimeClause:
		_, again := r.parents[max(0, len(r.parents)-2)].(*syntax.TimeClause)
		r.script.IsOpaque = r.script.IsOpaque || n.Stmt == nil || again
	case *syntax.FuncDecl, *syntax.ArithmCmd, *syntax.TestDecl, *syntax.ForClause:
		r.script.IsOpaque = true
	case *syntax.TestClause:
		r.script.IsOpaque = r.script.IsOpaque || !hasOnlyConstantTestOperands(n)
	case *syntax.Assign:
		r.script.IsOpaque = r.script.IsOpaque || n.Index != nil || n.Array != nil
		r.trackUnclearOrDirectoryVariable(n)
	case *syntax.ParamExp:
		// ${x:=v} sets a variable, and ${x@P} runs what the variable contains.
		// Subscripts and slices are arithmetic, which evaluates the values of names.
		if n.Exp != nil && slices.Contains(sideEffectExpansionOperators[:], n.Exp.Op) || n.Index != nil || n.Slice != nil || n.Excl {
			r.script.IsOpaque = true
		}
	}
	r.parents = append(r.parents, node)
	return true
}

// recordGroupStartingWithAssignment records a group that begins with an assignment and is part of a
// list. The real CLI also reads the text of the group as a separate script (observed with 2.1.330).
func (r *scriptReader) recordGroupStartingWithAssignment(openBracket, closeBracket syntax.Pos) {
	if text := r.source[openBracket.Offset()+1 : closeBracket.Offset()]; r.isOutsideCompoundCommand() && assignmentStartPattern().MatchString(text) {
		r.script.Groups = append(r.script.Groups, text)
	}
}

func (r *scriptReader) isOutsideCompoundCommand() bool {
	return !slices.ContainsFunc(r.parents, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Stmt, *syntax.BinaryCmd:
			return false
		}
		return true
	})
}

var assignmentStartPattern = LazyRegexp(`^\s*\w+=`)

// addDeclaration adds a declaration or a let command, whose words the real CLI does not analyse.
func (r *scriptReader) addDeclaration(n syntax.Command, redirects []Redirect) {
	c := Command{Text: r.sourceText(n), Clarity: ClarityNotAnalysed, Redirects: redirects}
	r.script.IsOpaque = r.script.IsOpaque || !declarationAllowableByRulePattern().MatchString(c.Text)
	if declaration, ok := n.(*syntax.DeclClause); ok {
		for _, a := range declaration.Args {
			if a.Name != nil {
				r.recordValueIfConstantOrHome(a)
				r.assigned[a.Name.Value] = true
			}
		}
	}
	r.hasStarted = true
	for word := range strings.FieldsSeq(c.Text) {
		c.Args, c.Words = append(c.Args, word), append(c.Words, Word{Source: word})
	}
	r.addCommand(c, n)
}

// declarationAllowableByRulePattern matches a declaration that a rule can allow.
var declarationAllowableByRulePattern = LazyRegexp(`^(export( [\w=./:@%+,-]+)*|\w+( \w+)*)$`)

func (r *scriptReader) isTimed() (timed, hasOption bool) {
	if len(r.parents) == 0 {
		return false, false
	}
	clause, ok := r.parents[len(r.parents)-1].(*syntax.TimeClause)
	return ok, ok && clause.PosixFormat
}

func (r *scriptReader) readStatement(s *syntax.Stmt) {
	followed, separate := r.isAfterHeredocOnSameLine(s)
	if int(s.Pos().Offset()) >= r.end || separate {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		r.script.IsOpaque = true
	}
	redirects := make([]Redirect, 0, len(s.Redirs))
	for _, redir := range s.Redirs {
		redirects = append(redirects, r.readRedirect(redir))
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	r.hasStarted = r.hasStarted || s.Background || runsCommandOtherThanDeclaration(s.Cmd)
	if !ok {
		switch s.Cmd.(type) {
		case nil:
			r.addCommand(Command{Redirects: redirects}, s)
		case *syntax.DeclClause, *syntax.LetClause:
			r.addDeclaration(s.Cmd, redirects)
		default:
			r.script.Redirects = append(r.script.Redirects, redirects...)
		}
		return
	}
	c := Command{Redirects: redirects, IsOutputPiped: r.isOutputPiped(s)}
	c.IsTimed, c.Interleaved = r.isTimed()
	c.IsHidden, c.IsInFunction = r.isInPartlyAnalysedConstruct(s)
	c.IsInSubstitution = slices.ContainsFunc(r.parents, isSubstitutionNode)
	var parts []string
	if c.Interleaved {
		parts = append(parts, "-p")
	}
	for _, a := range call.Assigns {
		if a.Name != nil {
			c.Assignments = append(c.Assignments, r.sourceText(a))
			if len(call.Args) == 0 && len(call.Assigns) == 1 {
				r.recordValueIfConstantOrHome(a)
			}
		}
		parts = append(parts, r.sourceText(a))
	}
	c.Clarity = max(r.obscurityOfCall(s.Redirs, call), r.obscurityOfOutermostCompound())
	if followed {
		c.Clarity = max(c.Clarity, ClarityBracesOrEscapes)
	}
	parts = append(parts, r.appendWordsReturningSources(&c, call)...)
	if c.Name() == "unset" {
		for _, name := range c.Args {
			delete(r.directoryVariables, name)
		}
	}
	c.Text = strings.Join(parts, " ")
	r.addRedirectsToText(&c, call, s.Redirs)
	r.addCommand(c, s)
}

func (r *scriptReader) addCommand(c Command, node syntax.Node) {
	r.script.Commands = append(r.script.Commands, c)
	r.starts = append(r.starts, int(node.Pos().Offset()))
}

// setStages sets the Stage of each command of a pipeline, and adds to its Text the line continuations next to a pipe.
func (r *scriptReader) setStages() {
	source := []byte(r.source[:r.end])
	for _, cut := range r.outputRedirects {
		copy(source[cut[0]:min(cut[1], r.end)], make([]byte, cut[1]-cut[0]))
	}
	for i, start := range r.starts {
		from, to := 0, r.end
		for _, pipe := range r.pipes {
			if pipe[0] < start {
				from = max(from, pipe[1])
			} else {
				to = min(to, pipe[0])
			}
		}
		if !r.script.IsPipeline || from >= to {
			continue
		}
		c := &r.script.Commands[i]
		c.Stage = strings.TrimSpace(zeroBytesPattern().ReplaceAllString(string(source[from:to]), " "))
		if gap := strings.TrimLeft(r.source[from:max(start, from)], " \t"); strings.HasPrefix(gap, "\\\n") && (i == 0 || r.starts[i-1] < from) {
			c.Text, c.IsContinued = gap+c.Text, true
		}
		if strings.HasSuffix(c.Stage, "\\") && (i+1 == len(r.starts) || r.starts[i+1] > to) {
			c.Text, c.IsContinued = c.Text+" \\", true
		}
	}
}

// zeroBytesPattern matches redirections that are overwritten with zeros, and the blanks around them.
var zeroBytesPattern = LazyRegexp(`([ \t]*\x00+)+[ \t]*`)

// appendWordsReturningSources adds the words of a simple command, and returns their sources.
func (r *scriptReader) appendWordsReturningSources(c *Command, call *syntax.CallExpr) (sources []string) {
	for i, w := range call.Args {
		text, known := r.readWord(w)
		if i > 0 {
			gap := r.source[call.Args[i-1].End().Offset():w.Pos().Offset()]
			known.HasExtraSpace = gap != " " && strings.Trim(gap, " \t") == ""
		}
		c.Args, c.Words = append(c.Args, text), append(c.Words, known)
		sources = append(sources, known.Source)
	}
	if last := len(c.Words) - 1; last >= 0 && strings.HasSuffix(c.Words[last].Source, `\\`) && strings.HasPrefix(r.source[call.End().Offset():], ";") {
		c.Words[last].Shape, c.Words[last].resolved = c.Words[last].Shape+";", c.Words[last].resolved+";" // the second backslash escapes the semicolon for the real CLI (observed with 2.1.330)
	}
	return sources
}

// runsCommandOtherThanDeclaration reports whether a statement runs a command, which an assignment does not. It returns false for a
// condition, for a declaration and for a list with &&, because their parts are examined separately.
func runsCommandOtherThanDeclaration(cmd syntax.Command) bool {
	switch n := cmd.(type) {
	case *syntax.CallExpr:
		return len(n.Args) > 0
	case *syntax.BinaryCmd, *syntax.DeclClause, *syntax.IfClause, nil:
		return false
	}
	return true
}

// addRedirectsToText adds the redirections before the last word to c.Text. It also sets c.Redirected and c.Interleaved.
func (r *scriptReader) addRedirectsToText(c *Command, call *syntax.CallExpr, redirects []*syntax.Redirect) {
	if len(redirects) == 0 || len(call.Args) == 0 {
		return
	}
	at, last := redirects[0].Pos().Offset(), call.Args[len(call.Args)-1]
	if at > last.Pos().Offset() {
		return
	}
	first := call.Pos().Offset()
	c.Redirected = at < first
	c.Interleaved = c.Interleaved || slices.ContainsFunc(redirects, func(n *syntax.Redirect) bool {
		return n.Pos().Offset() > first && n.Pos().Offset() < last.Pos().Offset()
	}) ||
		c.Redirected && len(call.Assigns) > 0
	c.Text = r.source[min(at, first):last.End().Offset()]
}

func (r *scriptReader) readRedirect(n *syntax.Redirect) Redirect {
	out := Redirect{Op: n.Op.String()}
	if n.Op == syntax.RdrOut || n.Op == syntax.AppOut || n.Op == syntax.RdrAll {
		r.outputRedirects = append(r.outputRedirects, [2]int{int(n.Pos().Offset()), int(n.Word.End().Offset())})
	}
	if n.Word != nil {
		values := r.values
		r.values = nil // the real CLI does not know the values of variables here (observed with 2.1.330)
		if out.Target, out.Word = r.readWord(n.Word); strings.ContainsRune(out.Word.Shape, PlaceholderOutput) {
			out.Word.Paths = nil
		}
		r.values = values
	}
	switch n.Op {
	case syntax.RdrIn:
		out.ReadsFile = true
	case syntax.DplIn:
		out.ReadsFile = !isDescriptor(out.Target)
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
	case syntax.DplOut:
		out.WritesFile = !isDescriptor(out.Target)
	case syntax.RdrInOut:
		out.ReadsFile, out.WritesFile = true, true
	default:
		out.WritesFile = out.Target != "/dev/null"
	}
	return out
}

func isDescriptor(s string) bool {
	s = strings.TrimSuffix(s, "-") // <&3- also closes it
	return strings.Trim(s, "0123456789") == ""
}

// textObstacle looks for an obstacle in the plain text of a command. Like the real CLI (observed with 2.1.330), it also
// searches quoted text and comments.
func textObstacle(cmd string) Obstacle {
	switch {
	case strings.ContainsFunc(cmd, func(r rune) bool {
		return strings.ContainsRune("\u200b\ufeff\u2028\u2029", r) || r != ' ' && unicode.Is(unicode.Zs, r)
	}):
		return Obstacle{Kind: ObstacleUnicodeSpaceCharacter}
	case hasBackslashBeforeSpaceOrLineEnd(cmd):
		return Obstacle{Kind: ObstacleBackslashBeforeSpaceOrLineEnd}
	case strings.Contains(cmd, "~["):
		return Obstacle{Kind: ObstacleZshDynamicNamedDirectory}
	case equalsExpansionPattern().MatchString(cmd):
		return Obstacle{Kind: ObstacleZshEqualsExpansion}
	case hasQuoteInsideBraces(cmd):
		return Obstacle{Kind: ObstacleQuoteInsideBraces}
	}
	return Obstacle{}
}

// hasBackslashBeforeSpaceOrLineEnd reports whether a backslash precedes a space or a line end. The
// usual line continuation after a space does not count.
func hasBackslashBeforeSpaceOrLineEnd(cmd string) bool {
	run := 0 // backslashes so far
	for i := range len(cmd) {
		switch c := cmd[i]; {
		case c == '\\':
			run++
			continue
		case run == 0:
		case c == ' ' || c == '\t':
			return true
		case c == '\n' && run%2 == 1 && (run > 1 || i < 2 || cmd[i-2] != ' ' && cmd[i-2] != '\t'):
			return true
		}
		run = 0
	}
	return false
}

var equalsExpansionPattern = LazyRegexp(`(?:^|[\s;&|])=[a-zA-Z_]`)

// hasQuoteInsideBraces reports whether a quote follows an open, unquoted brace.
func hasQuoteInsideBraces(cmd string) bool {
	open := false
	var quote byte // the current quote; 0 means none
	for i := 0; i < len(cmd); i++ {
		c := cmd[i]
		if open && (c == '\'' || c == '"') {
			return true
		}
		switch {
		case c == '}':
			open = false
		case quote != 0:
			switch {
			case c == quote:
				quote = 0
			case quote == '"' && c == '\\':
				i++
			}
		case c == '{':
			open = true
		case c == '\\':
			i++
			open = open || i < len(cmd) && cmd[i] == '{'
		case c == '\'' || c == '"':
			quote = c
		}
	}
	return false
}
