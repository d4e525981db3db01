package shell

import (
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// The functions below tell from its text what a command line does. One that
// cannot be read does nothing that they know of.

// longSleep is the shortest pause, in seconds, that is refused as the first
// command.
const longSleep = 25

// LongPause words a command that begins with a long sleep; empty = it does not.
func LongPause(command string) string {
	script, err := shellcmd.Parse(command)
	if err != nil || !Pauses(command) || len(script.Commands) == 0 || len(script.Commands[0].Args) != 2 {
		return ""
	}
	first := script.Commands[0]
	seconds, err := strconv.ParseFloat(first.Args[1], 64)
	if err != nil || seconds < longSleep || first.Text != "sleep "+first.Args[1] {
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

// Pauses tells whether the command begins with a sleep: there is no use in
// going on with it in the background.
func Pauses(command string) bool {
	for line := range strings.Lines(command) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return strings.HasPrefix(line, "sleep ")
		}
	}
	return false
}

// Silent says that the command is not expected to print anything.
func Silent(command string) bool {
	script, err := shellcmd.Parse(command)
	if err != nil || len(script.Commands) == 0 {
		return false
	}
	return !slices.ContainsFunc(script.Commands, func(c shellcmd.Command) bool {
		return !slices.Contains([]string{"mv", "cp", "rm", "mkdir", "rmdir", "chmod", "chown", "chgrp", "touch", "ln", "cd", "export", "unset", "wait"}, c.Name())
	})
}

// Shows names the file that the command shows as it is, "cat FILE"; empty = it
// does something else.
func Shows(command string) string {
	script, err := shellcmd.Parse(command)
	if err != nil || script.Opaque || len(script.Commands) != 1 || len(script.Redirects) > 0 {
		return ""
	}
	args := script.Commands[0].Args
	if len(args) != 2 || args[0] != "cat" || strings.HasPrefix(args[1], "-") {
		return ""
	}
	return args[1]
}

// Views names the file that the command prints from, by itself: "head -n 3 FILE"
// or "grep -n x FILE"; empty = it does something else (observed with 2.1.329).
func Views(command string) string {
	script, err := shellcmd.Parse(command)
	if err != nil || script.Opaque || len(script.Commands) != 1 || len(script.Redirects) > 0 || len(script.Commands[0].Redirects) > 0 {
		return ""
	}
	var operands []string
	args := script.Commands[0].Args
	if len(args) == 0 {
		return ""
	}
	for i, arg := range args[1:] {
		number := strings.Trim(arg, "0123456789") == "" && args[i] == "-n"
		if !strings.HasPrefix(arg, "-") && !number {
			operands = append(operands, arg)
		}
	}
	want := 1
	switch args[0] {
	case "cat", "head", "tail":
	case "grep", "sed":
		want = 2 // a pattern or a script comes first
	default:
		return ""
	}
	if len(operands) != want || args[0] == "sed" && !slices.Contains(args, "-n") || strings.ContainsAny(operands[want-1], "$`*?[") {
		return ""
	}
	return operands[want-1]
}

// ChangesDirectory tells whether the shell may be elsewhere after the command.
func ChangesDirectory(command string) bool {
	script, err := shellcmd.Parse(command)
	return err == nil && slices.ContainsFunc(script.Commands, func(c shellcmd.Command) bool {
		return c.Name() == "cd" || c.Name() == "pushd" || c.Name() == "popd"
	})
}

// CodeMeaning explains codes that are answers and not failures: those of the
// command that ran last.
func CodeMeaning(command string, code int) string {
	if code != 1 || strings.ContainsAny(command, "`") || strings.Contains(command, "$(") || strings.Contains(command, "<(") {
		return ""
	}
	script, err := shellcmd.Parse(command)
	if err != nil || len(script.Commands) == 0 {
		return ""
	}
	switch script.Commands[len(script.Commands)-1].Name() {
	case "grep", "egrep", "fgrep", "rg":
		return "No matches found"
	case "find":
		return "Some directories were inaccessible"
	case "diff":
		return "Files differ"
	case "test", "[":
		return "Condition is false"
	}
	return ""
}
