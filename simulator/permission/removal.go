package permission

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// removalApproval returns the approval request that a command line requires if it removes files that the machine
// or the session needs. The approval is necessary even in mode bypassPermissions. Like the real CLI (observed
// with 2.1.330), it also searches scripts that are arguments of a shell, and some texts that cannot be parsed.
func (c commandLine) removalApproval() *approvalRequest {
	if c.toolClass != claudecode.ToolClassRunsCommandLine {
		return nil
	}
	scripts := append([]commandLine{c}, c.nestedScriptsInBypassMode(maxDepthOfScriptsInScripts)...)
	lines := slices.Concat(scripts, fragmentsOfUnparsableCommandLine(c))
	for _, group := range c.script.Groups {
		lines = append(lines, commandLineWithScript(c, group))
	}
	for _, one := range scripts {
		for _, fixed := range one.withClosedQuote() {
			lines = append(append(lines, fixed), fixed.nestedScriptsInBypassMode(maxDepthOfScriptsInScripts)...)
		}
	}
	for _, one := range lines {
		if q := one.removalApprovalWithoutNestedScripts(); q != nil {
			return q
		}
	}
	if q := approvalIfTextRemovesRoot(c); q != nil {
		return q
	}
	for i, one := range scripts {
		if q := one.unanalyzableRemovalApproval(); q != nil {
			return q
		}
		if i > 0 && errors.Is(one.parseErr, shellcmd.ErrUncertain) && removalNamePattern().MatchString(one.command) {
			return new(ambiguityApproval())
		}
	}
	return nil
}

var (
	incompleteLinePattern = shellcmd.LazyRegexp(`\S\\\n|(&&|\|\|)\s*(#.*)?$`) // a continued word, or no command after an operator
	singleQuotesPattern   = shellcmd.LazyRegexp(`'[^']*'`)
)

// approvalIfTextRemovesRoot returns the approval request for a removal whose target may be the root, in text that is not a command for the
// shell: after an operator that is in double quotes or follows a backslash, in an assigned value, and in the script of env -S after its
// first word. Like the real CLI (observed with 2.1.330), it skips text in single quotes.
func approvalIfTextRemovesRoot(c commandLine) *approvalRequest {
	var texts []string
	if incompleteLinePattern().MatchString(c.command) {
		texts = splitUnparsableScript(c.command)
	}
	for _, cmd := range c.script.Commands {
		if words := strings.Fields(cmd.WrapperOptionScript()); len(words) > 1 && commandBaseName(cmd) == "env" && !strings.Contains(words[0], "=") {
			texts = append(texts, strings.TrimLeft(strings.Join(words[1:], " "), "&| "))
		}
		for _, r := range cmd.Redirects {
			if r.Op == "<<<" {
				cmd.Text += " " + r.Word.Source
			}
		}
		pieces := strings.FieldsFunc(singleQuotesPattern().ReplaceAllString(cmd.Text, "x"), func(r rune) bool { return strings.ContainsRune("\n;&|", r) })
		if len(cmd.Args) == 0 && len(pieces) > 0 {
			_, pieces[0], _ = strings.Cut(pieces[0], " ")
			pieces = append(pieces[:1], pieces...)
		}
		texts = append(texts, pieces[min(1, len(pieces)):]...)
	}
	for _, text := range texts {
		script, _ := shellcmd.Parse(c.script.LeadingAssignmentLines() + strings.TrimRight(text, `" `))
		for _, cmd := range script.Commands {
			if q := approvalIfRemovalTargetIsRootWhenVariableUnset(cmd, true); q != nil {
				return q
			}
		}
	}
	return nil
}

var removalNamePattern = shellcmd.LazyRegexp(`\brm(dir)?\b`)

// removalScriptPattern matches a command that passes a script with a removal to a shell.
var removalScriptPattern = shellcmd.LazyRegexp(`(?s)\b(bash|sh|dash|zsh|ksh|ash)\s(.*\s)?-\w*c\b.*[^\w\\-](?i:rm(dir)?)\b[^-]`)

// The following patterns find, in a text that is not parsed, a shell, its option for a script, and a removal.
var (
	shellNamePattern           = shellcmd.LazyRegexp("(?i)(^|[^\\w.$-])(r?bash|dash|zsh|m?ksh|ash|sh|s\\\\h)(\\.exe)?($|[^\\w.-])")
	scriptOptionPattern        = shellcmd.LazyRegexp(`\s['"]?-[A-Za-z]*c[A-Za-z]*(['"\s;]|$)`)
	compoundWithHeredocPattern = shellcmd.LazyRegexp(`(?s)^\s*(if|while|until|for|case|select)\s.*<<-?\s*\w`)
	removalTextPattern         = shellcmd.LazyRegexp("(?im)((^|[;&|`(){]|\\b(?:if|then|else|elif|while|until|do|eval) ['\"]?)\\s*\\$?['\"]?|\\balias ['\"]?\\w+=|\\s-[a-z]*c\\s*(['\"]|['\"][^'\"]*[^'\"\\w\\\\-]))rm(dir)?(\\.exe)?['\"]?([\\s;,(}]|$)")
)

// unparsableStartPattern matches the start of a command that the real CLI cannot parse and in which it looks for scripts.
var unparsableStartPattern = shellcmd.LazyRegexp(`(?m)(^|[;&|])\s*((coproc|time)\s.*[({]|function\s)`)

// unanalyzableRemovalApproval returns the approval request for a script that is an argument of a shell, removes files, and cannot be
// analysed: a variable or argument in it has no clear value, or the script is in a function or case.
func (c commandLine) unanalyzableRemovalApproval() *approvalRequest {
	if text := strings.TrimSpace(c.command); (unparsableStartPattern().MatchString(text) || incompleteLinePattern().MatchString(text) || strings.Count(text, `"`)%2 > 0) && c.parseErr != nil && removalScriptPattern().MatchString(text) {
		return uncheckedRemovalScriptApproval()
	}
	texts := c.script.UnreadCompounds
	if compoundWithHeredocPattern().MatchString(c.command) && c.parseErr != nil && strings.Contains(c.parseErr.Error(), "unclosed here-document") {
		texts = append(texts, c.command)
	}
	for _, text := range texts {
		if shellNamePattern().MatchString(text) && scriptOptionPattern().MatchString(text) && (removalTextPattern().MatchString(text) || scriptRunsRmOrRmdir(strings.ReplaceAll(text, `\rm`, ""))) {
			return uncheckedRemovalScriptApproval()
		}
	}
	for _, cmd := range c.script.Commands {
		script := cmd.WithVariableValuesFromScript().ShellScript()
		isUnread := cmd.IsHidden || cmd.Clarity > shellcmd.ClarityUnknownVariable
		if isUnread && removalScriptPattern().MatchString(strings.ReplaceAll(cmd.Text, "\\\n", " ")+"\n"+strings.Join(cmd.Args, " ")+" ") || script != "" && cmd.PassesUnclearScriptToShell(c.script.Unclear) && scriptRunsRmOrRmdir(script) {
			return uncheckedRemovalScriptApproval()
		}
	}
	return nil
}

func uncheckedRemovalScriptApproval() *approvalRequest {
	return dangerousRemovalApproval("This command passes a script that runs rm to a shell, and the script could not be checked.",
		"A shell script runs rm and could not be checked")
}

func scriptRunsRmOrRmdir(scriptText string) bool {
	script, _ := shellcmd.Parse(scriptText)
	return slices.ContainsFunc(script.Commands, func(cmd shellcmd.Command) bool {
		name := strings.ToLower(commandBaseName(cmd.Innermost()))
		nested := cmd.NestedScript()
		if len(cmd.Args) > 1 && strings.HasPrefix(cmd.Args[0], "$") {
			name = cmd.Args[1] // a variable as the first word may be empty, so the next word counts
		}
		return name == "rm" || name == "rmdir" || nested != "" && scriptRunsRmOrRmdir(nested)
	})
}

var unclosedQuoteWordPattern = shellcmd.LazyRegexp(`\s('[^']*)$`)

// withClosedQuote repairs a command line whose last word begins with a single quote that is never closed. Like the real CLI (observed
// with 2.1.330), it replaces the last character of the line by the closing quote. It returns nil for other command lines.
func (c commandLine) withClosedQuote() (fragmentsAndLine []commandLine) {
	text := strings.TrimSpace(c.command)
	at := unclosedQuoteWordPattern().FindStringSubmatchIndex(text)
	if at == nil || c.parseErr == nil && !c.script.HasOpenQuote || strings.Contains(text, `\ `) || strings.Count(text[:at[2]], "'")%2+strings.Count(text[:at[2]], `"`)%2 > 0 {
		return nil
	}
	_, size := utf8.DecodeLastRuneInString(text)
	fixed := commandLineWithScript(c, text[:len(text)-size]+"'")
	return append(fragmentsOfUnparsableCommandLine(fixed), fixed)
}

// fragmentsOfUnparsableCommandLine splits an unparsable text into command lines, at line ends, operators and parentheses. It returns nil
// for other texts. In mode bypassPermissions, only ${HOME} is expanded in the command lines (observed with 2.1.330).
func fragmentsOfUnparsableCommandLine(c commandLine) []commandLine {
	if c.parseErr == nil {
		return nil
	}
	var out []commandLine
	for _, piece := range splitUnparsableScript(c.command) {
		if piece != c.command {
			fragment := commandLineWithScript(c, strings.Join(strings.Fields(piece), " "))
			fragment.script.IsBroken, fragment.isFragment = true, true
			out = append(out, fragment)
		}
	}
	return out
}

// removalApprovalWithoutNestedScripts is like removalApproval, but does not search scripts inside the command line.
func (c commandLine) removalApprovalWithoutNestedScripts() *approvalRequest {
	changesDirectory := c.chainDirectory == "" && slices.ContainsFunc(c.script.Commands, func(cmd shellcmd.Command) bool {
		inner := c.script.WithoutWrappersBeforeRemoval(cmd)
		return slices.Contains([]string{"cd", "pushd", "popd"}, inner.Name()) && (len(inner.Args) != 2 || inner.Args[1] != ".")
	})
	for _, cmd := range c.script.Commands {
		if q := c.approvalIfCommandRemovesImportantFiles(cmd.WithVariableValuesFromScript(), changesDirectory); q != nil {
			return q
		}
	}
	return nil
}

// approvalIfCommandOrNestedRemovesDirectoryInVariable returns the approval request for a command
// that removes a directory named by a variable, or that passes such a command to another shell.
func approvalIfCommandOrNestedRemovesDirectoryInVariable(outerScript shellcmd.Script, cmd shellcmd.Command) *approvalRequest {
	if slices.Contains(cmd.Args, "xargs") && !outerScript.IsNotFullyAnalysedByRealCLI(cmd) {
		return workingDirVariableRemovalApproval(cmd) // the real CLI does not search scripts after xargs here (observed with 2.1.330)
	}
	assignments := outerScript.LeadingAssignmentLines()
	for _, one := range commandsOfNestedScript(assignments, cmd) {
		if q := workingDirVariableRemovalApproval(one); q != nil {
			return q
		}
	}
	if cmd.ShellScript() != "" { // another shell does not know this shell's variables
		assignments = ""
	}
	for _, one := range commandsOfNestedScript(assignments, cmd) {
		if q := approvalIfRemovalTargetIsRootWhenVariableUnset(one, false); q != nil {
			return q
		}
	}
	return workingDirVariableRemovalApproval(cmd)
}

// commandsOfNestedScript returns the commands of the script that cmd passes to another shell, preceded by those in the text assignments.
func commandsOfNestedScript(assignments string, cmd shellcmd.Command) []shellcmd.Command {
	if cmd.Name() == "coproc" {
		cmd.Args, cmd.Words = cmd.Args[1:], cmd.Words[1:]
	}
	script := cmd.NestedScript()
	if script == "" {
		return nil
	}
	inner, _ := shellcmd.Parse(assignments + strings.Trim(script, `"`)) // after an error, inner has the commands before it
	return inner.Commands
}

// nestedScriptsInBypassMode returns the command lines in the scripts that are arguments of a shell, as in sh -c
// "rm x". It also searches these scripts for scripts, at most depth levels deep. Like the real CLI
// (observed with 2.1.330), it searches scripts as if the mode were bypassPermissions.
func (c commandLine) nestedScriptsInBypassMode(depth int) []commandLine {
	if depth == 0 {
		return nil
	}
	var out []commandLine
	for _, cmd := range c.script.Commands {
		script := cmd.WithVariableValuesFromScript().ShellScript()
		if option := cmd.WrapperOptionScript(); option != "" && c.script.IsNotFullyAnalysedByRealCLI(cmd) { // the real CLI reads no options in simple scripts (observed with 2.1.330)
			script = "(" + option + ")"
		}
		if strings.TrimSpace(script) == "" {
			continue
		}
		inner, searched := commandLineWithScript(c, c.script.LeadingAssignmentLines()+script), *c.modeAndRules
		searched.mode = protocol.ModeBypass
		inner.modeAndRules, inner.isNested = &searched, true
		out = append(append(out, inner), inner.nestedScriptsInBypassMode(depth-1)...)
	}
	return out
}

// approvalIfCommandRemovesImportantFiles returns the approval request that one command requires if it
// removes important files. lineChangesDirectory is true if the command line changes the directory.
func (c commandLine) approvalIfCommandRemovesImportantFiles(cmd shellcmd.Command, lineChangesDirectory bool) *approvalRequest {
	if c.isFragment {
		return c.removalTargetApproval(cmd, lineChangesDirectory)
	}
	if inner := (shellcmd.Script{IsBroken: true}).WithoutWrappersBeforeRemoval(cmd); commandBaseName(inner) == "rm" && !cmd.IsHidden && cmd.Clarity == shellcmd.ClarityFullyKnown {
		if operands, recursive := removalOperands(inner); recursive && slices.ContainsFunc(operands, isRemovalTargetOnlyCommandOutput) {
			return dangerousRemovalApproval("Dangerous rm operation detected: the target is the output of a command substitution (`$(...)` or backticks) and cannot be checked before the command runs.",
				"Dangerous rm operation on command substitution output")
		}
	}
	if q := approvalIfCommandOrNestedRemovesDirectoryInVariable(c.script, cmd); q != nil {
		return q
	}
	if q := c.removalTargetApproval(cmd, lineChangesDirectory); q != nil || cmd.IsInFunction {
		return q
	}
	return approvalIfRemovalTargetIsRootWhenVariableUnset(cmd, cmd.Clarity == shellcmd.ClarityFullyKnown && !cmd.IsHidden && !strings.Contains(cmd.Text, "${"))
}

// removalTargetApproval returns the approval request for the targets of a command whose words are known.
func (c commandLine) removalTargetApproval(cmd shellcmd.Command, changesDirectory bool) *approvalRequest {
	inner := c.script.WithoutWrappersBeforeRemoval(cmd)
	name := commandBaseName(inner)
	if name != "rm" && name != "rmdir" || inner.Words[0].IsDollarQuoted || cmd.Clarity == shellcmd.ClarityNotAnalysed || cmd.IsTimed && cmd.Interleaved {
		return nil
	}
	removesParents := name == "rmdir" && slices.ContainsFunc(inner.Args, func(a string) bool { return rmdirParentsOptionPattern().MatchString(a) })
	for _, target := range checkedRemovalOperands(c, cmd, inner, changesDirectory) {
		if removesParents {
			target += "/"
		}
		if changesDirectory && cmd.Clarity > shellcmd.ClarityFullyKnown && !filepath.IsAbs(target) && strings.Trim(target, "~") == target && target[:min(1, len(target))] != string(shellcmd.PlaceholderHomeVariable) {
			continue // the target cannot be resolved
		}
		if q := c.dangerousTargetApproval(name, target, changesDirectory); q != nil {
			return q
		}
	}
	return nil
}

// checkedRemovalOperands returns the operands of a removal to check. It omits operands that cannot be analysed.
func checkedRemovalOperands(c commandLine, cmd, unwrappedCommand shellcmd.Command, lineChangesDirectory bool) []string {
	operands, _ := removalOperands(unwrappedCommand)
	if c.modeAndRules.mode == protocol.ModeBypass && (c.isFragment || cmd.IsHidden || cmd.Clarity > shellcmd.ClarityUnknownVariable || cmd.Clarity == shellcmd.ClarityUnknownVariable && !cmd.Interleaved) {
		if !strings.Contains(cmd.Text, "${HOME}") || cmd.Clarity > shellcmd.ClarityUnknownVariable {
			return nil
		}
		operands = slices.DeleteFunc(operands, func(target string) bool {
			return strings.TrimRight(target, "/") != string(shellcmd.PlaceholderHomeVariable)
		})
	}
	if c.isNested && strings.Contains(cmd.Text, "${HOME}") {
		operands = slices.DeleteFunc(operands, func(target string) bool { return target == string(shellcmd.PlaceholderHomeVariable) })
	}
	if cmd.IsHidden {
		operands = slices.DeleteFunc(operands, func(target string) bool {
			_, all := directoryEmptiedByRemovingTarget(target)
			return strings.ContainsAny(target, unknownValuePlaceholders+string(shellcmd.PlaceholderOutput)) || lineChangesDirectory && (all || strings.Trim(target, "./") == "")
		})
	}
	return operands
}

var rmdirParentsOptionPattern = shellcmd.LazyRegexp(`^(--p|-[a-z]*p)`)

func workingDirVariableRemovalApproval(cmd shellcmd.Command) *approvalRequest {
	name, cmd := cmd.FindUnquotedRmOrRmdir()
	at := slices.IndexFunc(cmd.Words, func(w shellcmd.Word) bool { return w.Shape == string(shellcmd.PlaceholderWorkingDirectoryVariable) })
	if at < 0 || name == "" {
		return nil
	}
	return dangerousRemovalApproval("Dangerous "+name+" operation detected: this command sets the variable in "+cmd.Words[at].Source+" to the working directory, to a directory found from it, or to a path that is the root if a variable is empty.",
		"Dangerous "+name+" operation on a directory in a variable")
}

func commandBaseName(cmd shellcmd.Command) string {
	if len(cmd.Args) == 0 {
		return ""
	}
	return filepath.Base(cmd.Args[0])
}

func removalOperands(cmd shellcmd.Command) (operands []string, recursive bool) {
	ended := false
	for _, word := range cmd.Words[min(1, len(cmd.Words)):] {
		switch arg := word.Shape; {
		case ended || len(arg) < 2 || arg[0] != '-':
			operands = append(operands, arg)
		case arg == "--":
			ended = true
		case strings.HasPrefix(arg, "--"):
			name, _, _ := strings.Cut(arg, "=")
			recursive = recursive || strings.HasPrefix("--recursive", name) && len(name) > 2
		default:
			recursive = recursive || strings.ContainsAny(arg, "rR")
		}
	}
	return operands, recursive
}

// isRemovalTargetOnlyCommandOutput reports whether a target, such as $(cmd)/*, has only output of commands, stars and slashes.
func isRemovalTargetOnlyCommandOutput(target string) bool {
	target = strings.TrimSuffix(strings.TrimRight(target, "*/"), "/.")
	return target != "" && strings.Trim(target, string(shellcmd.PlaceholderOutput)) == ""
}

// dangerousTargetApproval returns the approval request for one operand that must not be removed without permission, or nil.
func (c commandLine) dangerousTargetApproval(commandName, target string, changesDirectory bool) *approvalRequest {
	home := c.modeAndRules.resolver.home
	if target == "~" || strings.HasPrefix(target, "~/") || strings.HasPrefix(target, string(shellcmd.PlaceholderHomeVariable)) {
		target = home + target[1:]
	}
	target = strings.ReplaceAll(target, string(shellcmd.PlaceholderOutput)+"/..", ".")
	for i, step := range strings.Split(target, "/") { // keep only the directory before the first path element that is the output of a command
		if step == string(shellcmd.PlaceholderOutput) && i > 0 {
			target = target[:strings.IndexByte(target, shellcmd.PlaceholderOutput)]
			break
		}
	}
	if filepath.Dir(target) == "/" { // directly in the root, a name that contains output next to other text counts as a plain name
		target = strings.ReplaceAll(target, string(shellcmd.PlaceholderOutput), "x")
	}
	if strings.ContainsAny(target, string([]rune{shellcmd.PlaceholderOutput, shellcmd.PlaceholderPossiblyEmptyVariable, shellcmd.PlaceholderOtherExpansion, shellcmd.PlaceholderHomeVariable, shellcmd.PlaceholderNonEmptyVariableExpansion})) {
		return nil // a target with an unknown value needs no approval
	}
	if trimmed := strings.TrimRight(target, `\/`); trimmed != target && (trimmed == "" || target[len(trimmed)] == '/') {
		target = trimmed + "/" // a backslash also separates names, as on Windows (observed with 2.1.330)
	}
	relative := !filepath.IsAbs(target)
	dir, all := directoryEmptiedByRemovingTarget(strings.ReplaceAll(target, `\`, "/"))
	if changesDirectory && relative && (all || strings.Trim(target, "./") == "") {
		return dangerousRemovalApproval("Dangerous "+commandName+" operation detected: '"+target+"' is relative, and the command changes directories, so what it would remove cannot be determined.",
			"Dangerous "+commandName+" operation after a change of directory")
	}
	if relative {
		target, dir = joinUncleaned(c.modeAndRules.resolver.absolutePathFromCurrentDir(""), target), joinUncleaned(c.modeAndRules.resolver.absolutePathFromCurrentDir(""), dir)
	}
	what := c.describeCriticalDirectory(target)
	if relative {
		what = c.describeCriticalDirectory(filepath.Clean(strings.TrimRight(filepath.Clean(target), " \t")))
	}
	if all {
		what = cmp.Or(what, c.describeCriticalDirectory(dir))
		if what == "" && (commandName == "rmdir" && strings.HasSuffix(target, "/") || slices.Contains(strings.Split(dir, "/"), "..") || strings.Contains(dir, "*")) {
			what = "what can't be told before it runs"
		}
	}
	kind := "critical path"
	switch {
	case what == "":
		return nil
	case what == workspaceDirectoryText && !all:
		kind = "working directory or its ancestor"
	}
	return dangerousRemovalApproval("Dangerous "+commandName+" operation detected: '"+filepath.Clean(target)+"'\n\nThis command would remove "+what+".",
		"Dangerous "+commandName+" operation on "+kind+": "+filepath.Clean(target))
}

// dangerousRemovalApproval returns a request for an approval that only the user can give, not a rule or a mode.
func dangerousRemovalApproval(message, reason string) *approvalRequest {
	return &approvalRequest{
		message:    message + " This requires explicit approval and cannot be auto-allowed by permission rules.",
		reasonType: "safetyCheck", reason: reason, safety: protocol.SafetyNeedsApprovalOfEachCall, suggestions: []protocol.PermissionUpdate{},
		circuitBreaker: "dangerousRemoval",
	}
}

const unknownValuePlaceholders = string(shellcmd.PlaceholderPossiblyEmptyVariable) + string(shellcmd.PlaceholderNonEmptyVariableExpansion) + string(shellcmd.PlaceholderOtherExpansion)

// approvalIfRemovalTargetIsRootWhenVariableUnset returns the approval request for a removal whose target
// becomes the root if a variable is not set. isHomeKnownToBeSet is true if $HOME is known to be set.
func approvalIfRemovalTargetIsRootWhenVariableUnset(cmd shellcmd.Command, isHomeKnownToBeSet bool) *approvalRequest {
	name, inner := cmd.FindUnquotedRmOrRmdir()
	operands, _ := removalOperands(inner)
	if name != "" && slices.ContainsFunc(operands, func(target string) bool {
		return rootOrSystemTargetIfVariableUnsetPattern().MatchString(target) && (!isHomeKnownToBeSet || target[0] != shellcmd.PlaceholderHomeVariable)
	}) {
		return dangerousRemovalApproval("Dangerous "+name+" operation detected: a variable in the target may be unset or empty, so that it becomes `/`, `/*` or a top-level path.",
			"Dangerous "+name+" operation on a variable expansion")
	}
	return nil
}

// rootOrSystemTargetIfVariableUnsetPattern matches the shape of a target that begins with a variable. If the variable
// is empty, the target is the root, a file directly below it, or a system directory.
var rootOrSystemTargetIfVariableUnsetPattern = shellcmd.LazyRegexp(`^[\x02\x04]/([/*?\[{\x01-\x06]|$)|^\x02/(\./)*(?i:` + systemDirectories + `)(/[/*]*)?$`)

const systemDirectories = "bin|boot|dev|etc|home|lib|lib32|lib64|mnt|media|nix|opt|proc|root|run|sbin|srv|sys|tmp|usr|var|Applications|Library|System|Users|Volumes|private"

// directoryEmptiedByRemovingTarget returns the directory that removing a target such as dir/* empties;
// removesAllContents is false for other targets.
func directoryEmptiedByRemovingTarget(target string) (dir string, removesAllContents bool) {
	steps := strings.Split(strings.TrimRight(target, "/"), "/")
	end := len(steps)
	if steps[end-1] == "" || strings.Trim(steps[end-1], "*") != "" {
		return "", false
	}
	for end > 0 && steps[end-1] != "" && strings.Trim(steps[end-1], "*") == "" {
		end--
	}
	dir = strings.Join(steps[:end], "/")
	if end == 1 && dir == "" {
		dir = "/"
	}
	if end > 0 && end < len(steps)-1 {
		dir += "/*" // the target is the content of a directory with an unknown name
	}
	return dir, true
}

const workspaceDirectoryText = "a workspace directory (the working directory, an additional working directory, or one of their parent directories)"

// describeCriticalDirectory describes a path that must not be removed by accident; empty means that it may be removed.
func (c commandLine) describeCriticalDirectory(abs string) string {
	clean := filepath.Clean(abs)
	if !slices.Contains(strings.Split(abs, "/"), "..") && (filepath.Dir(clean) == "/" || c.modeAndRules.resolver.home != "" && clean == filepath.Clean(c.modeAndRules.resolver.home)) {
		return "a critical system directory"
	}
	if slices.ContainsFunc(append([]string{c.modeAndRules.resolver.absolutePathFromCurrentDir("")}, c.modeAndRules.resolver.workingDirs...), func(work string) bool {
		return isAtOrBelow(clean, work) || isAtOrBelow(c.modeAndRules.resolver.resolveLinks(clean), c.modeAndRules.resolver.resolveLinks(work))
	}) {
		return workspaceDirectoryText
	}
	return ""
}
