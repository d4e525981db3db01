package shellcmd

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(\.\d+)?[smhd]?$`) })

// Unwrapped is the command that a plain `timeout 5` runs, or the command
// itself.
func (c Command) Unwrapped() Command {
	if len(c.Args) > 2 && c.Args[0] == "timeout" && duration().MatchString(c.Args[1]) {
		c.Args, c.Dynamic = c.Args[2:], c.Dynamic[2:]
	}
	return c
}

// Wrapped is the command that is left when the programs that only run it, and
// their options, are taken off.
func (c Command) Wrapped() Command {
	for len(c.Args) > 0 {
		rest := c.Args
		switch c.Args[0] {
		case "timeout", "nohup", "nice", "env", "command", "stdbuf":
			rest = afterOptions(c.Args[1:])
		}
		if len(rest) == 0 || len(rest) == len(c.Args) {
			break
		}
		c.Args, c.Dynamic = rest, c.Dynamic[len(c.Dynamic)-len(rest):]
	}
	return c
}

// afterOptions leaves out what a program that runs another takes for itself:
// options, durations, variables.
func afterOptions(args []string) []string {
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || duration().MatchString(args[0]) || strings.Contains(args[0], "=")) {
		args = args[1:]
	}
	return args
}

// Harmless says that the variables set in front of the command cannot change
// what it does.
func (c Command) Harmless() bool {
	return !slices.ContainsFunc(c.Assigns, func(n string) bool { return !harmlessVariable(n) })
}

// Programs are the command lines that the command stands for when the
// programs that only run others, and their options, are taken off: those of
// `sudo timeout 5 rm x` are `timeout 5 rm x` and `rm x`. The program stands
// without its directory.
func (c Command) Programs() []string {
	args := slices.Clone(c.Args)
	var out []string
	for len(args) > 0 {
		args[0] = path.Base(args[0])
		out = append(out, strings.Join(args, " "))
		switch args[0] {
		case "timeout", "time", "nice", "nohup", "env", "sudo", "xargs", "stdbuf", "command", "builtin", "doas", "ionice", "setsid":
		default:
			return out
		}
		args = afterOptions(args[1:])
	}
	return out
}
