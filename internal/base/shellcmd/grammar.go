package shellcmd

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// readOnlyOptionGrammar lists the options with which a command only reads. All other options are refused, because their effect
// is unknown. Abbreviations of long options are also refused, because they may mean another option in a later version.
type readOnlyOptionGrammar struct {
	Flags            string // letters without a value; they may be combined
	FlagsWithValue   string // letters whose value is the rest of the word or the next word
	FlagsWithNumber  string // letters whose value is a number, in the same word or in the next
	Numeric          string // letters whose value is a number in the next word
	LongNames        string // long names without a value, separated by spaces
	Optional         string // long names that may have a value after =
	LongWithValue    string // long names that have a value, after = or as the next word
	LongWithNumber   string // names of longWithValue whose value is a number
	AllowsDigits     bool   // a number such as -5 is an option
	OperandsNeedPlus bool   // every operand must begin with a plus sign, as in date +%F
	MaxOperands      int    // maximum number of operands; 0 means any number, -1 means none
	StopsAtOperand   bool   // options end at the first operand
	RefusesDashes    bool   // no operand after -- may begin with a hyphen
}

func (g readOnlyOptionGrammar) allowsOptionsAndOperands(args []string) bool {
	rest, ok := g.parseOptionsAndReturnOperands(args)
	switch {
	case !ok, g.MaxOperands < 0 && len(rest) > 0, g.MaxOperands > 0 && len(rest) > g.MaxOperands:
		return false
	case g.OperandsNeedPlus:
		return !slices.ContainsFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "+") })
	}
	return true
}

// parseOptionsAndReturnOperands returns the arguments that are not options; areOptionsAllowed is false if one is not allowed.
func (g readOnlyOptionGrammar) parseOptionsAndReturnOperands(args []string) (operands []string, areOptionsAllowed bool) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			dashes := slices.ContainsFunc(args[i+1:], func(a string) bool { return strings.HasPrefix(a, "-") })
			return append(operands, args[i+1:]...), !dashes || !g.RefusesDashes
		case len(a) > 1 && a[0] == '-':
			known, value := g.parseOption(a)
			if value != "" {
				i++
			}
			needsNumber := len(value) == 1 && strings.Contains(g.FlagsWithNumber+g.Numeric, value) || len(value) > 1 && strings.Contains(g.LongWithNumber, value)
			if !known || i == len(args) || needsNumber && !isInteger(args[i]) || value != "" && strings.HasPrefix(args[i], "-") && len(args[i]) > 1 {
				return nil, false
			}
		case g.StopsAtOperand:
			return append(operands, args[i:]...), true
		default:
			operands = append(operands, a)
		}
	}
	return operands, true
}

// parseOption parses a word of options such as -la. known is true if all options in the word are known. If the last of
// them takes the next word as its value, optionAwaitingValue is the name of this option; otherwise it is empty.
func (g readOnlyOptionGrammar) parseOption(word string) (known bool, optionAwaitingValue string) {
	long, isLong := strings.CutPrefix(word, "--")
	if !isLong {
		return g.parseCluster(word[1:])
	}
	name, text, assigned := strings.Cut(long, "=")
	name = " " + name + " "
	switch {
	case !strings.Contains(g.LongWithValue, name):
		return strings.Contains(g.Optional, name) || !assigned && strings.Contains(g.LongNames, name), ""
	case assigned:
		return isInteger(text) || !strings.Contains(g.LongWithNumber, name), ""
	}
	return true, name
}

// parseCluster parses a word of one-letter options, such as -la. The results mean the same as those of parseOption. If the word
// has several letters, none of the options may have a value, except after an equals sign (observed with 2.1.330).
func (g readOnlyOptionGrammar) parseCluster(letters string) (known bool, optionAwaitingValue string) {
	if g.AllowsDigits && isInteger(letters) {
		return true, ""
	}
	for i := range len(letters) {
		letter, rest := letters[i:i+1], letters[i+1:]
		value, assigned := strings.CutPrefix(rest, "=")
		switch {
		case i == 0 && strings.Contains(g.FlagsWithNumber, letter) && isInteger(rest),
			i == 0 && assigned && (strings.Contains(g.FlagsWithValue, letter) || strings.Contains(g.FlagsWithNumber+g.Numeric, letter) && isInteger(value)):
			return true, ""
		case strings.Contains(g.FlagsWithValue+g.FlagsWithNumber+g.Numeric, letter):
			return rest == "" && i == 0, letter
		case !strings.Contains(g.Flags, letter):
			return false, ""
		}
	}
	return true, ""
}

// wrapper describes the arguments of a program that runs another program.
type wrapper struct {
	ValueOptions       string // letters of options whose value is the next word
	LongNames          string // long names of options whose value is the next word, separated by spaces
	Operands           int    // number of the wrapper's arguments before the program, such as 1 for the duration of timeout
	AcceptsAssignments bool   // accepts NAME=value before the program
}

//go:embed programs.json
var programsJSON string

// programTable lists the wrappers, and the options with which commands and git subcommands change nothing. The real CLI
// allows a few more (observed with 2.1.329). git ls-remote may have no operand, because ext::… would run a command.
type programTable struct {
	Wrappers       map[string]wrapper
	ReadOnly, Git  map[string]readOnlyOptionGrammar
	ReadingPhrases map[string]string

	// Variables that rules and permissions ignore before a command. Those of the locale must also have a value such as C or UTF-8.
	HarmlessVariables, LocaleVariables []string
	AlwaysReadOnly                     []string          // programs that write nothing with any arguments
	TputEffects                        []string          // capabilities of terminals that clear, reset or program the terminal
	SameGrammarAs                      map[string]string // other names of programs in ReadOnly
}

var programs = sync.OnceValue(func() (t programTable) {
	if err := json.Unmarshal([]byte(programsJSON), &t); err != nil {
		panic(err) // the file is part of the program
	}
	return t
})

// ReadingPhrase returns what a command does to the files it reads, such as "list files in" for ls. It is empty for
// commands that need no permission to read files.
func ReadingPhrase(commandName string) string { return programs().ReadingPhrases[commandName] }

// grammarOf returns the options with which the program called name changes nothing; ok is false if no such options are known.
func grammarOf(name string) (g readOnlyOptionGrammar, ok bool) {
	g, ok = programs().ReadOnly[cmp.Or(programs().SameGrammarAs[name], name)]
	return g, ok
}

var (
	positionalPattern             = LazyRegexp(`^\$(\d|\{\d+(:\?)?\}|[@*]|\{[@*]\})`)
	singleQuotedDollarPattern     = LazyRegexp(`'[^']*\$[^']*'`)
	untraceablePositionalsPattern = LazyRegexp(`(?s)\$\{?[@*\d].*\b(shift|set\s+(--|[^-+\s]))|(\b(shift|set\s+(--|[^-+\s]))|\(\)).*\$\{?[@*\d]|\$\{[@*]:|\$\{\d+([^}:\d]|:[^?])|'[^']*\$\{?[@*\d][^']*'`)
)

// PassesUnclearScriptToShell reports whether the command passes to a shell a script that the real CLI cannot follow (observed with
// 2.1.330): the script refers to one of the variables, even within quotes, or it uses its arguments in an unclear way, for example after
// shift.
func (c Command) PassesUnclearScriptToShell(unclearVariables []string) bool {
	inner := c.Innermost()
	i := indexOfShellScriptArgument(inner.Args)
	if i == 0 {
		return false
	}
	script := inner.Args[i]
	if inner.Words[i].IsDynamic {
		return singleQuotedDollarPattern().MatchString(script)
	}
	return len(inner.Args) > i+1 && untraceablePositionalsPattern().MatchString(script) || slices.ContainsFunc(unclearVariables, func(name string) bool {
		return regexp.MustCompile(`\$\{?#?` + regexp.QuoteMeta(name) + `\b`).MatchString(script)
	})
}

// replacePositionalParameters replaces $1, $@ and similar expansions in a script by arguments, which start with $0.
func replacePositionalParameters(script string, argumentsFromDollarZero []Word) string {
	if len(argumentsFromDollarZero) < 2 {
		script = strings.ReplaceAll(script, `"$@"`, "")
	}
	var b strings.Builder
	var quote byte
	for i := 0; i < len(script); i++ {
		c := script[i]
		found := positionalPattern().FindString(script[i:])
		switch {
		case quote != '\'' && c == '\\' && i+1 < len(script):
			b.WriteByte(c)
			i++
		case quote != '\'' && found != "" && (quote != 0 || len(argumentsFromDollarZero) > 0):
			b.WriteString(sourceOfPositionalParameter(strings.Trim(found, "${:?}"), argumentsFromDollarZero, quote != 0))
			i += len(found) - 1
			continue
		case quote == c:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
		b.WriteByte(script[i])
	}
	return b.String()
}

func sourceOfPositionalParameter(name string, argumentsFromDollarZero []Word, isInsideQuotes bool) string {
	chosen := argumentsFromDollarZero[min(1, len(argumentsFromDollarZero)):]
	if n, err := strconv.Atoi(name); err == nil {
		chosen = argumentsFromDollarZero[min(n, len(argumentsFromDollarZero)):min(n+1, len(argumentsFromDollarZero))]
	}
	texts := make([]string, len(chosen))
	for i, w := range chosen {
		texts[i] = w.Source
		if rest, ok := strings.CutPrefix(w.Source, "~"); ok && (rest == "" || rest[0] == '/') {
			texts[i] = `"$HOME"` + rest
		}
		if w.Shape == "" {
			texts[i] = ""
		}
		if isInsideQuotes {
			texts[i] = strings.Trim(strings.ReplaceAll(texts[i], `"$HOME"`, "$HOME"), `"'`)
		}
	}
	if isInsideQuotes && name == "@" {
		return strings.Join(texts, `" "`)
	}
	return strings.Join(texts, " ")
}
