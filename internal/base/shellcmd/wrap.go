package shellcmd

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var durationPattern = LazyRegexp(`^\d+(\.\d+)?[smhd]?$`)

// skipOwnArgumentsOfWrapper returns the arguments after the wrapper's own. It assumes that an unknown option has no value.
func (w wrapper) skipOwnArgumentsOfWrapper(args []string) (wrappedCommand []string) {
	own := w.Operands
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "--":
			args = args[1:]
			return args[min(own, len(args)):]
		case strings.HasPrefix(a, "--"):
			args = args[1:]
			if len(args) > 0 && strings.Contains(w.LongNames, " "+a[2:]+" ") {
				args = args[1:]
			}
		case a == "-" && w.AcceptsAssignments:
			args = args[1:]
		case len(a) > 1 && a[0] == '-':
			args = args[1:]
			if i := strings.IndexAny(a[1:], w.ValueOptions); i >= 0 && i+2 == len(a) && len(args) > 0 {
				args = args[1:]
			}
		case w.AcceptsAssignments && strings.Contains(a, "="):
			args = args[1:]
		case own > 0:
			own, args = own-1, args[1:]
		default:
			return args
		}
	}
	return nil
}

// WithoutBuiltinAndTimeoutPrefix returns the command without the programs that only run the rest: noglob, builtin, command, and a plain
// timeout such as `timeout 5`. Any other command is returned unchanged.
func (c Command) WithoutBuiltinAndTimeoutPrefix() Command {
	for len(c.Args) > 1 && c.Args[0] == "noglob" && !strings.HasPrefix(c.Args[1], "-") {
		c.Args, c.Words = c.Args[1:], c.Words[1:]
	}
	for len(c.Args) > 1 && (c.Args[0] == "builtin" || c.Args[0] == "command") {
		own := 1
		if c.Args[1] == "--" || c.Args[0] == "command" && c.Args[1] == "-p" {
			own = 2
		}
		if len(c.Args) == own || strings.HasPrefix(c.Args[own], "-") {
			break
		}
		c.Args, c.Words = c.Args[own:], c.Words[own:]
	}
	if len(c.Args) > 2 && c.Args[0] == "timeout" && durationPattern().MatchString(c.Args[1]) {
		c.Args, c.Words = c.Args[2:], c.Words[2:]
	}
	return c
}

// WithoutUnprivilegedWrappers returns the innermost command, without wrappers such as nice and their options. Wrappers that change
// the user, such as sudo, are kept.
func (c Command) WithoutUnprivilegedWrappers() Command {
	return c.WithoutBuiltinAndTimeoutPrefix().removeWrappers("timeout", "nohup", "nice", "env", "command", "builtin", "stdbuf", "setsid", "ionice")
}

// HasOnlyHarmlessObstacle reports whether the real CLI analyses the script completely (observed with 2.1.330).
func (s Script) HasOnlyHarmlessObstacle() bool {
	return slices.Contains([]ObstacleKind{NoObstacle, ObstacleVariableSetByScript, ObstacleQuotedHashLine, ObstacleBackground, ObstacleEval, ObstacleArithmeticTest}, s.Obstacle.Kind)
}

// IsNotFullyAnalysedByRealCLI reports whether the real CLI leaves some part of the script or of the command unanalysed.
func (s Script) IsNotFullyAnalysedByRealCLI(c Command) bool {
	return !s.HasOnlyHarmlessObstacle() || len(s.Unclear) > 0 || c.IsHidden || c.IsContinued || s.IsBroken
}

// WithoutWrappersBeforeRemoval returns the command without the wrappers that may precede a command like rm. The real CLI
// knows more of these programs in scripts that it cannot analyse completely (observed with 2.1.330).
func (s Script) WithoutWrappersBeforeRemoval(c Command) Command {
	names := []string{"timeout", "nohup", "nice", "env", "command", "builtin", "stdbuf"}
	plain := c.WithoutBuiltinAndTimeoutPrefix()
	if inner := plain.removeWrappers(names...); wrappersBeforeRemovalPattern().MatchString(strings.Join(plain.Args[:len(plain.Args)-len(inner.Args)], "\t") + "\t") {
		plain = inner
	}
	if !s.IsNotFullyAnalysedByRealCLI(c) {
		return plain
	}
	return plain.removeWrappers("env", "nohup", "timeout", "command", "builtin", "nice", "stdbuf", "sudo", "doas", "setsid", "exec", "ionice", "watch", "flock", "taskset", "chrt", "strace", "ltrace", "unshare", "nsenter", "pkexec", "sandbox-exec", "time")
}

// wrappersBeforeRemovalPattern matches the wrappers that may precede a command like rm in a simple script, with their options
// (observed with 2.1.330). In the text that it matches, a tab follows each word.
var wrappersBeforeRemovalPattern = LazyRegexp(strings.NewReplacer(" ", `\t`, `\S`, `[^\t]`).Replace(`^( |(\S*/)?env ((-[i0v]|-u \S+|[^\t=-][^\t=]*=\S*) )*|nice (-n \S+ |-\d+ )?(-- )?|` +
	`stdbuf ((-[ioe] ?\S+|--(input|output|error)=\S+) )+|nohup (-- )?|command (-p )?(-- )?|builtin (-- )?|` +
	`timeout ((-[vf]|--(foreground|preserve-status|verbose)|--(signal|kill-after)[= ]\S+|-[sk] ?\S+|--) )*\S+ )*$`))

func (c Command) removeWrappers(names ...string) Command {
	for len(c.Args) > 0 {
		name := c.Args[0]
		if base := path.Base(name); base == "env" || base == "sudo" {
			name = base
		}
		if !slices.Contains(names, name) {
			return c
		}
		w := programs().Wrappers[name]
		rest := w.skipOwnArgumentsOfWrapper(c.Args[1:])
		if slices.Contains(names, "sudo") && (name == "nice" || name == "stdbuf") && len(rest) == len(c.Args)-1 {
			return c // after sudo, the real CLI removes nice and stdbuf only if they have options (observed with 2.1.330)
		}
		if len(rest) == 0 || hasArgumentsHidingWrappedProgram(c.Args[0], c.Words[1:len(c.Words)-len(rest)]) {
			return c
		}
		c.Args, c.Words = rest, c.Words[len(c.Words)-len(rest):]
	}
	return c
}

func hasArgumentsHidingWrappedProgram(wrapperName string, ownArguments []Word) bool {
	if n := len(ownArguments); wrapperName == "timeout" && n > 0 && ownArguments[n-1].Shape != "--" && !durationPattern().MatchString(ownArguments[n-1].Shape) {
		return true
	}
	if wrapperName == "env" && slices.ContainsFunc(ownArguments, func(w Word) bool { return w.Source == "-S" }) {
		return true
	}
	return (wrapperName == "timeout" || wrapperName == "nice" || wrapperName == "stdbuf" || wrapperName == "env") &&
		slices.ContainsFunc(ownArguments, func(w Word) bool { return w.IsDynamic && !strings.Contains(w.Source, "=") })
}

// SourceFromWord returns the words from wordIndex on, separated by single spaces. Only the first of them is without its
// quotes. hasExtraSpaces is true if the source separates the words by other spaces.
func (c Command) SourceFromWord(wordIndex int) (text string, hasExtraSpaces bool) {
	parts := []string{c.Args[wordIndex]}
	for _, w := range c.Words[wordIndex+1:] {
		parts, hasExtraSpaces = append(parts, w.Source), hasExtraSpaces || w.HasExtraSpace
	}
	return strings.Join(parts, " "), hasExtraSpaces
}

// Innermost returns the command that the wrappers run in the end. It removes all wrappers, including xargs and sudo.
func (c Command) Innermost() Command {
	for len(c.Args) > 0 {
		w, ok := programs().Wrappers[path.Base(c.Args[0])]
		if !ok {
			return c
		}
		rest := w.skipOwnArgumentsOfWrapper(c.Args[1:])
		if len(rest) == 0 || c.Args[0] != "stdbuf" && hasArgumentsHidingWrappedProgram(path.Base(c.Args[0]), c.Words[1:len(c.Words)-len(rest)]) || len(c.Args) == len(rest)+1 && c.Args[0] == "stdbuf" {
			return c
		}
		c.Args, c.Words = rest, c.Words[len(c.Words)-len(rest):]
	}
	return c
}

// FindUnquotedRmOrRmdir finds rm or rmdir among the words of the command. It returns the program's name in lower case and without its
// directory, and the command from this word on. Like the real CLI (observed with 2.1.330), it skips expansions, and unquoted wrappers
// together with their options, numbers and assignments. Any word after an option may be its value. programName is empty if neither program
// is found, or if the program or a wrapper is quoted.
func (c Command) FindUnquotedRmOrRmdir() (programName string, removalCommand Command) {
	reached, wrapped := make([]bool, len(c.Words)+2), c.IsTimed
	reached[0] = true
	for i, w := range c.Words {
		source := strings.TrimPrefix(w.Source, `\`)
		if !reached[i] || source == "" || strings.ContainsAny(source, `'"\`) && !maybeEmptyWord().MatchString(source) {
			continue
		}
		switch programName = strings.ToLower(path.Base(source)); {
		case programName == "rm" || programName == "rmdir":
			c.Args, c.Words = c.Args[i:], c.Words[i:]
			return programName, c
		case slices.Contains(strings.Fields("sudo doas pkexec env nice ionice nohup timeout stdbuf setsid xargs time command exec busybox"), programName), programName == "coproc" && i == 0 && !c.IsTimed:
			reached[i+1], wrapped = true, true
		case strings.HasPrefix(source, "$"), source == "--", source == "{" && i > 0 && c.Words[i-1].Source == "coproc", wrapped && (strings.Contains(source, "=") || strings.IndexByte("-0123456789", source[0]) >= 0):
			reached[i+1] = true
			reached[i+2] = reached[i+2] || source[0] == '-' && source != "--"
		}
	}
	return "", c
}

// LeadingAssignmentLines returns the assignments that precede the first command of the script, each with a line end.
func (s Script) LeadingAssignmentLines() string {
	var b strings.Builder
	for _, c := range s.Commands {
		if len(c.Assignments) == 0 && !slices.Contains([]string{"declare", "export", "local", "readonly", "typeset"}, c.Name()) || len(c.Args) > 0 && len(c.Assignments) > 0 {
			break
		}
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

// WithVariableValuesFromScript returns the command with the values of the variables that its script has set.
func (c Command) WithVariableValuesFromScript() Command {
	c.Args = slices.Clone(c.Args)
	for i, w := range c.Words {
		c.Args[i] = cmp.Or(w.Value, c.Args[i])
	}
	return c
}

// AreAssignmentsHarmless reports whether the variables set before the command cannot change its effect, and whether their
// values are plain: letters, digits and the characters _ . / : - without quotes.
func (c Command) AreAssignmentsHarmless() bool {
	return c.hasOnlyHarmlessAssignments(plainAssignmentPattern())
}

var (
	plainAssignmentPattern   = LazyRegexp(`^(\w+)=([\w./:-]+)$`)
	literalAssignmentPattern = LazyRegexp(`^(\w+)=((?:[^\s$` + "`" + `~"'\\(){}<>;&|]|'[^']*'|"[^"$` + "`" + `]*")*)$`)
	pathInValuePattern       = LazyRegexp(`(^|:)["']?(/|\./)|(^|[/:])["']?\.\.(["'/:]|$)|~`)
	harmlessLocalePattern    = LazyRegexp(`(?i)^["']?(C|POSIX|([\w-]+\.)?UTF-?8(@\w+)?)["']?$`)
)

func (c Command) hasOnlyHarmlessAssignments(pattern *regexp.Regexp) bool {
	return !slices.ContainsFunc(c.Assignments, func(assignment string) bool {
		m := pattern.FindStringSubmatch(assignment)
		switch {
		case m == nil || pathInValuePattern().MatchString(m[2]):
			return true
		case slices.Contains(programs().LocaleVariables, m[1]):
			return !harmlessLocalePattern().MatchString(m[2]) && assignment != "LANG="
		}
		return !slices.Contains(programs().HarmlessVariables, m[1])
	})
}

// isHarmlessAssignment reports whether the command only sets one harmless variable (all exceptions were observed with 2.1.330).
func (c Command) isHarmlessAssignment() bool {
	if len(c.Args) > 0 || len(c.Assignments) != 1 {
		return false
	}
	name, value, _ := strings.Cut(c.Assignments[0], "=")
	switch name {
	case "LANGUAGE", "LC_TIME":
		return false
	case "COLUMNS", "LINES":
		return !strings.Contains(value, "$")
	}
	return !strings.Contains(value, "~") && slices.Contains(programs().HarmlessVariables, strings.TrimSuffix(name, "+"))
}

// UnwrappedCommandLines returns the command line, and the lines that remain when wrappers and their options are removed one by one. For
// `sudo timeout 5 rm x` these are `timeout 5 rm x` and `rm x`. The program in a line is given without its directory. The
// wrappers are those that the real CLI removes (observed with 2.1.330).
func (c Command) UnwrappedCommandLines() []string {
	args := slices.Clone(c.Args)
	var out []string
	for len(args) > 0 {
		words := c.Words[len(c.Words)-len(args):]
		args[0] = cmp.Or(words[0].Value, args[0])
		isFirst := len(args) == len(c.Args)
		mayBeEmpty := words[0].Value == "" && maybeEmptyWord().MatchString(words[0].Source) && words[0].Source != "$HOME"
		switch {
		case (!isFirst || c.IsTimed) && mayBeEmpty: // the real CLI skips such a word after a wrapper command such as env (observed with 2.1.330)
			args = args[1:]
			continue
		case words[0].IsDollarQuoted:
			return out
		}
		if len(out) > 0 && strings.HasPrefix(out[len(out)-1], "xargs ") {
			return append(out, strings.Join(args, " ")) // observed with 2.1.330
		}
		args[0] = strings.TrimSuffix(path.Base(args[0]), ".exe")
		out = append(out, strings.Join(args, " "))
		if isFirst && strings.HasPrefix(words[0].Source, "`") && words[0].Shape == string(PlaceholderOutput) {
			out = append(out, strings.Join(args[1:], " ")) // the output may be empty
		}
		if script := wrapperOptionScript(args); script != "" {
			return append(out, scriptAndLinesOfItsFirstCommand(strings.Trim(script, `"`))...)
		}
		w, ok := programs().Wrappers[args[0]]
		if args[0] == "--" { // the "--" that ends the options of time
			w, ok = wrapper{}, true
		}
		rest := w.skipOwnArgumentsOfWrapper(args[1:])
		own := words[1 : len(words)-len(rest)]
		isQuoted := slices.ContainsFunc(own, func(w Word) bool { return w.IsDollarQuoted })
		if !ok || isWrapperHidingProgramFromRules(args) || isQuoted || args[0] != "env" && hasArgumentsHidingWrappedProgram(args[0], own) {
			return out
		}
		out = append(out, Command{Args: args, Words: words}.unwrappedLinesIfFirstVariableEmpty(own)...)
		if (args[0] == "nice" || args[0] == "stdbuf") && len(rest) > 0 && slices.Contains([]string{"ionice", "setsid", "sudo"}, rest[0]) {
			return append(out, strings.Join(rest, " ")) // observed with 2.1.330
		}
		args = rest
	}
	return out
}

// scriptAndLinesOfItsFirstCommand returns the script itself, followed by the unwrapped command lines of its first command.
func scriptAndLinesOfItsFirstCommand(script string) []string {
	out := []string{script}
	if inner, _ := Parse(script); len(inner.Commands) > 0 {
		out = append(out, inner.Commands[0].UnwrappedCommandLines()...)
	}
	return slices.Compact(out)
}

var maybeEmptyWord = LazyRegexp(`^\$(\w+|[?#!$@*-]|\{[^}]*\}|\(\(.*\)\)|'[^']*')$`)

// unwrappedLinesIfFirstVariableEmpty returns the unwrapped command lines of c as if the first variable among the wrapper's
// own words were empty. It returns nil if there is no variable.
func (c Command) unwrappedLinesIfFirstVariableEmpty(wrapperWords []Word) []string {
	i := slices.IndexFunc(wrapperWords, func(w Word) bool { return w.Shape == string(PlaceholderPossiblyEmptyVariable) && w.Source[0] == '$' })
	if i < 0 {
		return nil
	}
	return Command{Args: slices.Delete(slices.Clone(c.Args), i+1, i+2), Words: slices.Delete(slices.Clone(c.Words), i+1, i+2)}.UnwrappedCommandLines()
}

func isWrapperHidingProgramFromRules(args []string) bool {
	option := ""
	if len(args) > 1 && strings.HasPrefix(args[1], "-") {
		option = args[1]
	}
	switch args[0] {
	case "busybox", "toybox", "unbuffer", "chronic", "caffeinate":
		return true
	case "xargs":
		return option != ""
	case "nice":
		return option != "" && option != "-n" && option != "--" && !isInteger(option[1:])
	case "stdbuf":
		return option == "" || len(option) == 2 || strings.HasPrefix(option, "--")
	case "command":
		return option == "-v" || option == "-V"
	}
	return false
}

var scriptOptionPattern = LazyRegexp(`^(-c|-S|--split-string)(.*)$`)

// wrapperOptionScript returns the script that is the value of an option of flock, script or env; "" means none.
func wrapperOptionScript(args []string) string {
	for i, a := range args[1:] {
		found := scriptOptionPattern().FindStringSubmatch(a)
		switch isEnv := path.Base(args[0]) == "env"; {
		case isShell(a):
			return "" // a -c after the shell is an option of the shell
		case found == nil || isEnv == (found[1] == "-c") || !isEnv && args[0] != "flock" && args[0] != "script":
		case found[2] != "":
			return strings.TrimPrefix(found[2], "=")
		case i+2 < len(args):
			return args[i+2]
		}
	}
	return ""
}

// WrapperOptionScript returns the script that is the value of an option of flock, script or env, also after other wrappers; "" means none.
func (c Command) WrapperOptionScript() string {
	for len(c.Args) > 1 {
		w, ok := programs().Wrappers[c.Args[0]]
		if script := wrapperOptionScript(c.Args); script != "" || !ok {
			return script
		}
		c.Args = w.skipOwnArgumentsOfWrapper(c.Args[1:])
	}
	return ""
}

// ShellScript returns the script that the command passes to a shell as an argument, as bash -c does; empty means none.
func (c Command) ShellScript() string {
	inner := c.Innermost()
	if slices.Contains(c.Args, "xargs") {
		return ""
	}
	if isShell(inner.Name()) {
		return c.NestedScript()
	}
	return ""
}

// NestedScript returns the script that the command runs, as eval, bash -c and find -exec do, or "". Expansions are unchanged.
func (c Command) NestedScript() string {
	inner := c.Innermost()
	if len(inner.Args) == 0 {
		return ""
	}
	switch name := path.Base(inner.Args[0]); {
	case name == "eval":
		return strings.Join(inner.Args[1:], " ")
	case isShell(name):
		i := indexOfShellScriptArgument(inner.Args)
		if inner.Words[i].IsDynamic {
			return strings.Trim(inner.Args[i], `"`)
		}
		if i > 0 {
			return replacePositionalParameters(inner.Args[i], inner.Words[i+1:])
		}
	case name == "trap":
		if len(inner.Args) > 1 {
			return inner.Args[1]
		}
	case name == "find":
		return commandLinesOfFindExec(inner)
	}
	return ""
}

func isShell(name string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "zsh", "ksh", "ash"}, strings.ToLower(strings.TrimSuffix(path.Base(name), ".exe")))
}

// indexOfShellScriptArgument returns the index of the script in the arguments of a shell; 0 means no script.
func indexOfShellScriptArgument(shellArgs []string) (indexOrZero int) {
	isOption := func(a string) bool { return len(a) > 1 && strings.ContainsAny(a[:1], "-+") }
	for i, a := range shellArgs {
		if i > 0 && !isOption(a) && !strings.Contains(" -o +o -O +O --rcfile --init-file ", " "+shellArgs[i-1]+" ") {
			return 0
		}
		if i == 0 || !isOption(a) || strings.HasPrefix(a, "--") || !strings.Contains(a, "c") {
			if a == "-" || a == "--" {
				return 0
			}
			continue
		}
		for i++; i < len(shellArgs); i++ {
			if !isOption(shellArgs[i]) {
				return i
			}
		}
	}
	return 0
}

func commandLinesOfFindExec(findCommand Command) string {
	var lines []string
	for i, a := range findCommand.Args {
		switch a {
		case "-exec", "-execdir", "-ok", "-okdir":
			line := findCommand.Args[i+1:]
			if end := slices.IndexFunc(line, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				line = line[:end]
			}
			quoted := make([]string, len(line))
			for j, w := range line {
				if findCommand.Words[i+1+j].IsDynamic || w == "{}" { // the shell expands it before find runs
					quoted[j] = w
					continue
				}
				quoted[j], _ = syntax.Quote(w, syntax.LangBash) // fails only for NUL, which Parse drops
			}
			lines = append(lines, strings.Join(quoted, " "))
		}
	}
	return strings.Join(lines, "\n")
}

// evaluatorPattern matches commands whose arguments are code, or that change how the shell reads code (observed with 2.1.330). A
// space follows each word.
var evaluatorPattern = LazyRegexp(`^(eval|exec|source|\.|alias|trap|hash|let|enable|coproc|mapfile|readarray|shopt|bind|complete|nocorrect|-|zmodload|emulate|autoload|` +
	`sysopen|sysread|syswrite|sysseek|zpty|ztcp|zsocket|vared|zf_\S*) |^(strace|ltrace|unshare|nsenter|setsid|flock|watch|ionice|taskset|chrt|sandbox-exec|script) .|` +
	`^fc (.* )?-e |^printf -v |^wait (.* )?-p |^unset .*\[|^read (-[^adinNptu ]*[adinNptu] \S* |-[^adinNptu ]* )*[^- ]|^env (.* )?-S |^jq .*system\(|^jq (.* )?(-\w*[fL]|--(from-file|library-path|rawfile|slurpfile) )`)

// FirstProgramNeedingPermissionDespiteRule returns the first program for which the real CLI asks even if a rule allows commands
// that begin with its name; empty means none.
func (s Script) FirstProgramNeedingPermissionDespiteRule() string {
	for _, c := range s.Commands {
		inner := c.WithoutBuiltinAndTimeoutPrefix().removeWrappers("timeout", "nohup", "nice", "env", "command", "builtin", "stdbuf")
		if len(inner.Args) > 1 && inner.Args[0] == "xargs" {
			inner.Args = inner.Args[1:]
		}
		if len(inner.Args) > 0 && evaluatorPattern().MatchString(strings.Join(append([]string{path.Base(inner.Args[0])}, inner.Args[1:]...), " ")+" ") {
			return path.Base(inner.Args[0])
		}
	}
	return ""
}
