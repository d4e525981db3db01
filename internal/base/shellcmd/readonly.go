package shellcmd

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// IsReadOnly reports whether the script changes no file and no state outside its own shell. False may also mean "unknown".
func (s Script) IsReadOnly() bool {
	return !s.IsOpaque && len(s.Commands) > 0 && !HasWrite(s.Redirects) && !slices.ContainsFunc(s.Commands, func(c Command) bool { return !c.IsReadOnly() })
}

// IsReadOnly reports whether this command is known to only read.
func (c Command) IsReadOnly() bool {
	if c.isHarmlessAssignment() {
		return len(c.Redirects) == 0 && !c.IsOutputPiped
	}
	if HasWrite(c.Redirects) || len(c.Args) == 0 || c.IsTimed || c.Interleaved || c.IsContinued || c.Words[0].IsDynamic || (c.Args[0] == "jq" || c.Args[0] == "[") && c.Words[0].Source != c.Args[0] || !c.hasOnlyHarmlessAssignments(literalAssignmentPattern()) {
		return false
	}
	inner := c.WithoutBuiltinAndTimeoutPrefix()
	if needsPermissionDueToWrappers(c.Args[:len(c.Args)-len(inner.Args)], inner.Args[0]) {
		return false
	}
	if c = inner.withHomeVariableAndTildeExpanded(); slices.ContainsFunc(c.Words, func(w Word) bool { return hasTildeUserPrefix(w.Shape) }) {
		return false
	}
	expands := slices.ContainsFunc(c.Args[1:], func(a string) bool { return strings.ContainsAny(a, "$`") })
	switch c.Args[0] {
	case "pwd", "whoami", "arch":
		return len(c.Args) == 1
	case "which", "pgrep":
		return !expands
	case "test":
		return !expands && hasOnlyKnownTestOperators(c.Args[1:]) && !slices.ContainsFunc(c.Words, func(w Word) bool { return w.IsDynamic })
	case "[":
		isOdd := func(w Word) bool { return w.IsDynamic && w.Source[0] != '~' }
		return len(c.Redirects)+len(c.Assignments) == 0 && slices.Index(c.Args, "]") == len(c.Args)-1 && !slices.ContainsFunc(inner.Words, isOdd) && !slices.ContainsFunc(c.Args, func(a string) bool { return strings.ContainsAny(a, "<>(") }) && !c.joinsBracketTestsUnparsably()
	}
	if c.Args[0] == "cd" {
		return len(c.Args) == 1 || len(c.Args) == 2 && (c.Args[1] == "-" || !strings.HasPrefix(c.Args[1], "-"))
	}
	if slices.Contains(programs().AlwaysReadOnly, c.Args[0]) { // with globs, some of these commands are not read-only
		return !slices.Contains(strings.Fields("seq sleep id expr true false uname nproc free cal groups uptime locale numfmt tsort type"), c.Args[0]) ||
			!slices.ContainsFunc(c.Words, func(w Word) bool { return w.IsDynamic })
	}
	if expands && c.Args[0] != "find" && c.Args[0] != "jq" {
		// If options matter, text that looks like an expansion is refused even if it is quoted (observed with 2.1.330).
		return false
	}
	if slices.ContainsFunc(c.Words, func(w Word) bool {
		return w.IsDynamic && (!slices.Contains([]string{"grep", "egrep", "fgrep"}, c.Args[0]) || len(w.Paths) == 0 || slices.ContainsFunc(w.Paths, func(p Path) bool { return p.Glob == "" }))
	}) {
		// After expansion, a word may be an option that makes these commands write.
		return false
	}
	return isReadOnlyWith(c.Args[0], c.Args[1:])
}

// needsPermissionDueToWrappers reports whether these wrappers make the real CLI ask for permission before it runs
// program, although the command only reads (observed with 2.1.330).
func needsPermissionDueToWrappers(wrappers []string, program string) bool {
	return len(wrappers) > 0 && (slices.Contains([]string{"[", "command", "builtin"}, program) || program == "test" && containsAny(wrappers, "command", "builtin") ||
		slices.Contains(wrappers, "timeout") && slices.Contains([]string{"type", "cd", "help", "history"}, program))
}

// withHomeVariableAndTildeExpanded returns the command with the home directory in place of $HOME and ~, but only in words that contain no
// other expansion and no glob.
func (c Command) withHomeVariableAndTildeExpanded() Command {
	c.Args, c.Words = slices.Clone(c.Args), slices.Clone(c.Words)
	name := c.Args[0]
	for i, w := range c.Words {
		if shape := strings.ReplaceAll(w.Shape, string(PlaceholderHomeVariable), "/home"); w.IsDynamic && (shape != w.Shape || shape[0] == '~' && name != "docker") && name != "help" && name != "ifconfig" && name != "ss" && !strings.ContainsAny(shape, "*?[{\x01\x02\x03\x04\x05\x06") {
			c.Args[i], c.Words[i].IsDynamic = shape, false
		}
	}
	return c
}

// hasOnlyKnownTestOperators reports whether a test command has only known operators, each with an operand. Only operators that begin
// with a hyphen are checked. The operators -a and -o, which join two tests, are not known (observed with 2.1.330).
func hasOnlyKnownTestOperators(args []string) bool {
	args = slices.Clone(args)
	for i, a := range args {
		if slices.Contains([]string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}, a) {
			args[i] = "-e"
		}
	}
	_, known := readOnlyOptionGrammar{RefusesDashes: true, FlagsWithValue: "bcdefghkLnNOGprsStuwxz"}.parseOptionsAndReturnOperands(args)
	return known
}

// joinsBracketTestsUnparsably reports whether a command [ joins tests in a way that the real CLI cannot parse (observed with
// 2.1.330). This is the case if -a or -o is quoted, or if it is not followed by exactly one word.
func (c Command) joinsBracketTestsUnparsably() bool {
	last := len(c.Args) - 1 // ]
	for i := 2; i < last; i++ {
		if op := c.Args[i]; (op == "-a" || op == "-o") && (i+2 != last || c.Words[i].Source != op) {
			return true
		}
	}
	return false
}

// HasWrite reports whether a redirection may write a file.
func HasWrite(rs []Redirect) bool {
	return slices.ContainsFunc(rs, func(r Redirect) bool { return r.WritesFile })
}

// isReadOnlyWith reports whether a command only reads with these arguments, which contain no expansions.
func isReadOnlyWith(name string, args []string) bool {
	if g, ok := grammarOf(name); ok {
		if name == "ps" && len(args) > 0 && strings.HasPrefix(args[0], "-") {
			g.MaxOperands = -1
		}
		return g.allowsOptionsAndOperands(args) && (name != "ps" || !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") && strings.ContainsAny(a, "eE") })) && (name != "ifconfig" || !slices.Contains(args, "--")) && (name != "tput" || !containsAny(args, programs().TputEffects...))
	}
	switch name {
	case "find":
		return !containsAny(args, "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf", "-files0-from")
	case "jq":
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--arg" || a == "--slurp" || a == "--raw-output" })
		return !hasOption(args, "fL0123456789", "--from-file", "--library-path", "--rawfile", "--slurpfile", "--argfile", "--raw-output0", "--run-tests") &&
			!slices.ContainsFunc(args, func(a string) bool { return jqOtherInputPattern().MatchString(a) })
	case "ip":
		return slices.Equal(args, []string{"addr"})
	case "history":
		return len(args) == 0 || len(args) == 1 && durationPattern().MatchString(args[0])
	case "printf":
		return len(args) == 0 || !strings.HasPrefix(args[0], "-v")
	case "xargs":
		return isHarmlessXargs(args)
	case "docker":
		return isReadOnlyDocker(args)
	case "sed":
		return isPrintingSed(args)
	case "git":
		return isReadOnlyGit(args)
	case "node", "python", "python3":
		return len(args) == 1 && (args[0] == "--version" || name == "node" && args[0] == "-v")
	}
	return false
}

// isReadOnlyDocker reports whether a docker command only reads. An option that selects another server or configuration
// is refused (observed with 2.1.330).
func isReadOnlyDocker(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0] {
	case "ps", "images":
		return !slices.ContainsFunc(args, func(a string) bool {
			name, _, _ := strings.Cut(a, "=")
			return slices.Contains([]string{"--host", "--context", "--config", "--tlscacert", "--tlscert", "--tlskey"}, name) ||
				strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, "Hc")
		})
	}
	g, ok := programs().ReadOnly["docker "+args[0]]
	return ok && g.allowsOptionsAndOperands(args[1:])
}

// jqOtherInputPattern matches constructs of a jq program that read more than its input.
var jqOtherInputPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(env|include|import)\b|\$ENV|` + "`") })

// isHarmlessXargs reports whether xargs runs no command, or a command that only prints its input.
func isHarmlessXargs(args []string) bool {
	g := readOnlyOptionGrammar{Flags: "0rtx", Numeric: "nPLs", FlagsWithValue: "dI", StopsAtOperand: true}
	rest, ok := g.parseOptionsAndReturnOperands(args)
	for i, a := range args[:max(0, len(args)-1)] {
		if a == "-I" && args[i+1] != "{}" || a == "-d" && len(args[i+1]) > 2 {
			return false
		}
	}
	if !ok || len(rest) == 0 {
		return ok
	}
	switch rest[0] {
	case "echo", "wc", "head", "tail":
		return true
	case "printf":
		return len(rest) == 1 || isReadOnlyWith(rest[0], rest[1:])
	case "grep", "egrep", "fgrep":
		return isReadOnlyWith(rest[0], rest[1:])
	}
	return false
}

func isReadOnlyGit(args []string) bool {
	if len(args) == 0 {
		return false
	}
	sub, rest := args[0], args[1:]
	switch sub {
	case "stash", "worktree", "config", "reflog":
		return isReadOnlyGitSubcommand(sub, rest)
	}
	g, ok := programs().Git[sub]
	if (sub == "branch" || sub == "tag") && containsAny(rest, "-l", "--list") {
		g.MaxOperands = 0 // with --list, git treats a name as a pattern
	}
	return ok && g.allowsOptionsAndOperands(rest) && !hasCustomGitFormat(rest)
}

var knownGitFormatPattern = LazyRegexp(`^(oneline|short|medium|full|fuller|reference|email|raw|t?format:.*|.*%.*)?$`)

// hasCustomGitFormat reports whether an argument selects a format not built into git, such as a configured alias.
func hasCustomGitFormat(args []string) bool {
	for i, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		if !assigned && i+1 < len(args) {
			value = args[i+1]
		}
		if (name == "--format" || name == "--pretty") && !knownGitFormatPattern().MatchString(value) {
			return true
		}
	}
	return false
}

// isReadOnlyGitSubcommand reports whether a nested subcommand of git, such as stash list, only reads.
func isReadOnlyGitSubcommand(subcommand string, args []string) bool {
	inner := ""
	if len(args) > 0 && (subcommand != "reflog" || !strings.HasPrefix(args[0], "-")) {
		inner = args[0]
		args = args[1:]
	}
	diff := programs().Git["diff"]
	list := readOnlyOptionGrammar{RefusesDashes: true, AllowsDigits: true, Numeric: "n", LongNames: " oneline graph all decorate ", LongWithValue: " date max-count ", LongWithNumber: " max-count "}
	switch {
	case subcommand == "stash" && inner == "list", subcommand == "reflog" && (inner == "" || inner == "show"):
		return list.allowsOptionsAndOperands(args)
	case subcommand == "reflog" && inner == "list":
		return len(args) == 0
	case subcommand == "stash" && inner == "show":
		return diff.allowsOptionsAndOperands(args)
	case subcommand == "worktree" && inner == "list":
		return !slices.ContainsFunc(args, func(a string) bool {
			return strings.HasPrefix(a, "-") && !slices.Contains(strings.Fields("--porcelain -v --verbose -z"), a)
		})
	case subcommand == "config" && inner == "--get":
		return readOnlyOptionGrammar{}.allowsOptionsAndOperands(args)
	}
	return false
}

func containsAny(args []string, names ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(names, a) })
}

// hasOption reports whether args contain one of these options. An option of shortLetters may be part of a cluster, and a long
// option may be abbreviated or have a value. Words after -- are also examined, because -- may itself be a value.
func hasOption(args []string, shortLetters string, longNames ...string) bool {
	for _, a := range args {
		if strings.HasPrefix(a, "--") {
			name, _, _ := strings.Cut(a, "=")
			if slices.ContainsFunc(longNames, func(l string) bool { return len(name) > 2 && strings.HasPrefix(l, name) }) {
				return true
			}
			continue
		}
		if letters, ok := strings.CutPrefix(a, "-"); ok && strings.ContainsAny(letters, shortLetters) {
			return true
		}
	}
	return false
}

// IsInputFileListFromPipeline reports whether the command at commandIndex reads a list of files that an earlier command of the
// pipeline prints, like xargs in `find src | sort | xargs wc`. Between the two commands, there may only be filters such as sort
// and grep. Any other input may contain any file name.
func (s Script) IsInputFileListFromPipeline(commandIndex int) bool {
	for commandIndex--; commandIndex >= 0 && s.IsPipeline; commandIndex-- {
		c := s.Commands[commandIndex].WithoutBuiltinAndTimeoutPrefix()
		switch c.Name() {
		case "ls", "fd":
			return true
		case "find":
			return !containsAny(c.Args, "-printf", "-fprintf")
		case "git":
			return len(c.Args) > 1 && c.Args[1] == "ls-files"
		case "rg", "grep":
			if hasOption(c.Args[1:], "lL", "--files-with-matches", "--files-without-match") {
				return true
			}
			g, _ := grammarOf("grep")
			if rest, ok := g.parseOptionsAndReturnOperands(c.Args[1:]); !ok || len(rest) != 1 || hasOption(c.Args[1:], "ef", "--regexp", "--file") {
				return false
			}
		case "sort", "uniq", "head", "tail":
			if slices.ContainsFunc(c.Args[1:], func(a string) bool { return a != "" && a[0] != '-' && !isInteger(a) }) {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// Claude Code 2.1.330 judges a sed script by its text, as these patterns do. It also refuses many harmless scripts.
var (
	sedOptionPattern = LazyRegexp(`^(-[Eri]+|--in-place|--regexp-extended|--posix|--)$`)
	// sedSubstitutionPattern matches a substitution with at most one digit among its flags.
	sedSubstitutionPattern = LazyRegexp(`^s/[^/]*/[^/]*/[gpimIM]*[1-9]?[gpimIM]*$`)
	// sedDangerPattern matches scripts with comments, negations, steps, ranges or escaped delimiters, and scripts that may
	// write files or execute commands.
	sedDangerPattern = LazyRegexp(`[^\x01-\x7f]|[{}\n;]|(^|[^s])#|^!|[/\d$]!|[\d$]\s*~\s*\d|,\s*~\s*\d|^,|,\s*[+-]|s\\|\\[|#%@]|` +
		`/[^/]*\s+[wWeE]|^[wW].|^e|^\d+\s*[wWe]|y[wWeE]|y[^\\\n].*[wWeE]|[wWeE].*y[^\\\n]`)
	// possibleSedScriptPattern matches a word that sed may read as a script. On macOS, sed reads
	// the word after -i as a suffix, and the next word as the script.
	possibleSedScriptPattern = LazyRegexp(`^[acdghilnpqrtwxzDGHNPT]$|^\d+(,\d+)?!?[acdghilnpqstxyzDGHNPT=]|^[sy][^\w]|^:|^[acir][\\/]|[*?\[]|^\S*[ \t]`)
	sedPrintPattern          = LazyRegexp(`^(\d+(,\d+)?)?p(;(\d+(,\d+)?)?p)*$`)
)

// IsPlainSedSubstitution reports whether the command is `sed s/a/b/ FILE…`, in place or not.
func (c Command) IsPlainSedSubstitution() bool {
	args := argsAfterSedOptions(c.Args[1:])
	if !areArgsHarmlessSedSubstitution(args) {
		return false
	}
	if before := c.Args[len(c.Args)-len(args)-1]; before[0] != '-' || before[1] == '-' || !strings.HasSuffix(before, "i") || len(args) == 1 {
		return true
	}
	file := c.Words[len(c.Words)-len(args)+1]
	return !sedDangerPattern().MatchString(args[1]) && (file.IsDynamic || strings.Contains(file.Source, `\ `) || !possibleSedScriptPattern().MatchString(args[1]))
}

func argsAfterSedOptions(args []string) []string {
	for len(args) > 0 && sedOptionPattern().MatchString(args[0]) {
		args = args[1:]
	}
	return args
}

// areArgsHarmlessSedSubstitution reports whether sedArgs begin with a harmless substitution and contain no option.
func areArgsHarmlessSedSubstitution(sedArgs []string) bool {
	if len(sedArgs) == 0 || slices.ContainsFunc(sedArgs, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		return false
	}
	script := strings.TrimSpace(sedArgs[0])
	return sedSubstitutionPattern().MatchString(script) && !sedDangerPattern().MatchString(script)
}

// isPrintingSed reports whether sed only prints lines, as in `sed -n 10,20p FILE…`, or substitutes in standard input.
func isPrintingSed(args []string) bool {
	if rest := argsAfterSedOptions(args); len(rest) == 1 && areArgsHarmlessSedSubstitution(rest) {
		return !slices.ContainsFunc(args[:len(args)-1], func(a string) bool { return strings.Contains(a, "i") && a[1] != '-' || a == "--in-place" })
	}
	g := readOnlyOptionGrammar{RefusesDashes: true, Flags: "nErz", LongNames: " quiet silent regexp-extended null-data "}
	rest, ok := g.parseOptionsAndReturnOperands(args)
	if !ok || len(rest) == 0 {
		return false
	}
	silent := slices.ContainsFunc(args, func(a string) bool {
		return a == "--quiet" || a == "--silent" || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "n")
	})
	return silent && sedPrintPattern().MatchString(rest[0])
}
