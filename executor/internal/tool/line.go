package tool

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// The functions below analyze a command line without running it. They return false or "" for a line they cannot parse.

// minRefusedLeadingSleepSeconds is the shortest sleep that Bash refuses as the first command of a command line.
const minRefusedLeadingSleepSeconds = 25

// DescribeLongSleep returns a description of the long sleep with which a command line begins; empty for other commands.
func DescribeLongSleep(command string) string {
	script, err := shellcmd.Parse(command)
	if err != nil || !BeginsWithSleep(command) || len(script.Commands) == 0 || len(script.Commands[0].Args) != 2 {
		return ""
	}
	first := script.Commands[0]
	if seconds, err := strconv.ParseFloat(first.Args[1], 64); err != nil || seconds < minRefusedLeadingSleepSeconds || first.Text != "sleep "+first.Args[1] {
		return ""
	}
	var texts []string
	for _, c := range script.Commands[1:] {
		texts = append(texts, c.Text)
	}
	if len(texts) == 0 {
		return "standalone " + first.Text
	}
	return first.Text + " followed by: " + strings.Join(texts, " ")
}

// BeginsWithSleep reports whether the first command of a command line is a sleep. Such a command line is stopped at its
// timeout, not moved to the background.
func BeginsWithSleep(command string) bool {
	for line := range strings.Lines(command) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return strings.HasPrefix(line, "sleep ")
		}
	}
	return false
}

// PrintsNothingOnSuccess reports whether every simple command of a shell command line is known to print nothing if it succeeds.
func PrintsNothingOnSuccess(shellCommandLine string) bool {
	script, err := shellcmd.Parse(shellCommandLine)
	if err != nil || len(script.Commands) == 0 {
		return false
	}
	return !slices.ContainsFunc(script.Commands, func(c shellcmd.Command) bool {
		return !slices.Contains([]string{"mv", "cp", "rm", "mkdir", "rmdir", "chmod", "chown", "chgrp", "touch", "ln", "cd", "export", "unset", "wait"}, c.Name())
	})
}

// inPlaceEditPattern matches commands that Claude Code treats as editors of files (observed with 2.1.330): sed with the
// option i, commands with an option such as --fix, formatters, and package scripts such as format and fix.
var inPlaceEditPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`sed\b.*\s-[A-Za-z]*i|--(fix|write|in-place)|(^|\s)(black|isort|rustfmt|swiftformat)\b|` +
		`\b(cargo (fmt|fix)|(go|terraform|dprint) fmt|ruff format)\b|\b(run|pnpm|yarn)\s+(format|fix|lint:fix)\b`)
})

// EditsInPlace reports whether Claude Code expects a command to change existing files.
func EditsInPlace(command string) bool { return inPlaceEditPattern().MatchString(command) }

// FilePrintedByCat returns the file that the command prints completely, as in "cat FILE"; empty means none.
func FilePrintedByCat(shellCommandLine string) (path string) {
	script, err := shellcmd.Parse(shellCommandLine)
	if err != nil || script.IsOpaque || len(script.Commands) != 1 || len(script.Redirects) > 0 {
		return ""
	}
	args := script.Commands[0].Args
	if len(args) != 2 || args[0] != "cat" || strings.HasPrefix(args[1], "-") {
		return ""
	}
	return args[1]
}

// PrintedFile returns the file that the command prints, wholly or in parts, as in "head -n 3 FILE" or "grep -n x FILE"; empty
// means none (observed with 2.1.329).
func PrintedFile(command string) string {
	script, err := shellcmd.Parse(command)
	if err != nil || script.IsOpaque || len(script.Commands) != 1 || len(script.Redirects) > 0 || len(script.Commands[0].Redirects) > 0 {
		return ""
	}
	var operands []string
	args := script.Commands[0].Args
	if len(args) == 0 {
		return ""
	}
	for i, arg := range args[1:] {
		if number := strings.Trim(arg, "0123456789") == "" && args[i] == "-n"; !strings.HasPrefix(arg, "-") && !number {
			operands = append(operands, arg)
		}
	}
	want := 1
	switch args[0] {
	case "cat", "head", "tail":
	case "grep", "sed":
		want = 2 // a pattern or a script precedes the file
	default:
		return ""
	}
	if len(operands) != want || args[0] == "sed" && !slices.Contains(args, "-n") || strings.ContainsAny(operands[want-1], "$`*?[") {
		return ""
	}
	return operands[want-1]
}

// ChangesDirectory reports whether the command may change the working directory.
func ChangesDirectory(command string) bool {
	script, err := shellcmd.Parse(command)
	return err == nil && slices.ContainsFunc(script.Commands, func(c shellcmd.Command) bool {
		return c.Name() == "cd" || c.Name() == "pushd" || c.Name() == "popd"
	})
}

// ExitCodeMeaning returns the meaning of exit code 1 if the last command of a command line does not use it for failures, such as "No
// matches found" for grep. It returns "" for all other exit codes and commands.
func ExitCodeMeaning(command string, code int) string {
	script, err := shellcmd.Parse(command)
	outer := slices.DeleteFunc(script.Commands, func(c shellcmd.Command) bool { return c.IsInSubstitution })
	if code != 1 || err != nil || len(outer) == 0 {
		return ""
	}
	return map[string]string{
		"grep": "No matches found", "egrep": "No matches found", "fgrep": "No matches found", "rg": "No matches found",
		"find": "Some directories were inaccessible", "diff": "Files differ", "test": "Condition is false", "[": "Condition is false",
	}[outer[len(outer)-1].Name()]
}
