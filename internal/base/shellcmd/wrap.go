package shellcmd

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

var duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+(\.\d+)?[smhd]?$`) })

// wrapper says how a program that runs another is called.
type wrapper struct {
	valued   string // letters of options whose value is the next word
	long     string // their long names, between spaces
	operands int    // words of its own in front of the program
	assigns  bool   // takes NAME=value in front of the program
}

// wrapperOf describes the programs that only run another.
func wrapperOf(name string) (w wrapper, ok bool) {
	switch name {
	case "timeout":
		return wrapper{valued: "sk", long: " signal kill-after ", operands: 1}, true
	case "env":
		return wrapper{valued: "uCa", long: " unset chdir argv0 ", assigns: true}, true
	case "nice":
		return wrapper{valued: "n", long: " adjustment "}, true
	case "ionice":
		return wrapper{valued: "cnpPu", long: " class classdata "}, true
	case "stdbuf":
		return wrapper{valued: "ioe", long: " input output error "}, true
	case "sudo":
		return wrapper{valued: "ugpCDhRrtTU", long: " user group prompt chdir host chroot role type other-user command-timeout close-from ", assigns: true}, true
	case "doas":
		return wrapper{valued: "uC"}, true
	case "xargs":
		return wrapper{valued: "InPLdEas", long: " replace max-args max-procs max-lines delimiter eof arg-file max-chars process-slot-var "}, true
	case "exec":
		return wrapper{valued: "a"}, true
	case "time":
		return wrapper{valued: "fo", long: " format output "}, true
	case "watch":
		return wrapper{valued: "nq", long: " interval equexit "}, true
	case "flock":
		return wrapper{valued: "wE", long: " timeout wait conflict-exit-code ", operands: 1}, true
	case "taskset", "chrt":
		return wrapper{valued: "TPD", operands: 1}, true
	case "strace", "ltrace":
		return wrapper{valued: "oesEpuabIOPSU"}, true
	case "unshare":
		return wrapper{valued: "RSGw", long: " root wd setuid setgid propagation setgroups map-user map-group kill-child-signal "}, true
	case "nsenter":
		return wrapper{valued: "tSG", long: " target setuid setgid "}, true
	case "nohup", "setsid", "command", "builtin", "busybox", "toybox", "unbuffer", "chronic", "caffeinate", "!":
		return wrapper{}, true
	}
	return wrapper{}, false
}

// after leaves out what the wrapper takes for itself. An option that it does
// not know stands alone.
func (w wrapper) after(args []string) []string {
	own := w.operands
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "--":
			args = args[1:]
			return args[min(own, len(args)):]
		case strings.HasPrefix(a, "--"):
			args = args[1:]
			if len(args) > 0 && strings.Contains(w.long, " "+a[2:]+" ") {
				args = args[1:]
			}
		case a == "-" && w.assigns:
			args = args[1:]
		case len(a) > 1 && a[0] == '-':
			args = args[1:]
			if i := strings.IndexAny(a[1:], w.valued); i >= 0 && i+2 == len(a) && len(args) > 0 {
				args = args[1:]
			}
		case w.assigns && strings.Contains(a, "="):
			args = args[1:]
		case own > 0:
			own, args = own-1, args[1:]
		default:
			return args
		}
	}
	return nil
}

// Unwrapped is the command that builtin or command, and a plain `timeout 5`, run,
// or the command itself.
func (c Command) Unwrapped() Command {
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
	if len(c.Args) > 2 && c.Args[0] == "timeout" && duration().MatchString(c.Args[1]) {
		c.Args, c.Words = c.Args[2:], c.Words[2:]
	}
	return c
}

// Wrapped is the command that is left when the programs that only run it, and
// their options, are taken off. Programs that change who runs it stay.
func (c Command) Wrapped() Command {
	return c.unwrap("timeout", "nohup", "nice", "env", "command", "builtin", "stdbuf", "setsid", "ionice")
}

// Removal is the command that is left when the programs through which a removal
// is followed are taken off (observed with 2.1.330).
func (c Command) Removal() Command {
	return c.unwrap("timeout", "nohup", "nice", "env", "command", "builtin", "stdbuf")
}

func (c Command) unwrap(wrappers ...string) Command {
	for len(c.Args) > 0 {
		if !slices.Contains(wrappers, c.Args[0]) {
			return c
		}
		w, _ := wrapperOf(c.Args[0])
		rest := w.after(c.Args[1:])
		if len(rest) == 0 || opaqueWrapper(c.Args[0], c.Words[1:len(c.Words)-len(rest)]) {
			return c
		}
		c.Args, c.Words = rest, c.Words[len(c.Words)-len(rest):]
	}
	return c
}

// opaqueWrapper tells whether a program that runs another has arguments of its
// own that hide the other: they are not known before it runs.
func opaqueWrapper(name string, own []Word) bool {
	if n := len(own); name == "timeout" && n > 0 && own[n-1].Shape != "--" && !duration().MatchString(own[n-1].Shape) {
		return true
	}
	return (name == "timeout" || name == "nice" || name == "stdbuf" || name == "env") &&
		slices.ContainsFunc(own, func(w Word) bool { return w.Dynamic && !strings.Contains(w.Source, "=") })
}

// From is the command line from the word at i on, as it is written but for blanks
// and for the quotes of its first word. Spaced says that single blanks are not all
// there is between its words.
func (c Command) From(i int) (text string, spaced bool) {
	parts := []string{c.Args[i]}
	for _, w := range c.Words[i+1:] {
		parts, spaced = append(parts, w.Source), spaced || w.Spaced
	}
	return strings.Join(parts, " "), spaced
}

// Innermost is Wrapped that also looks into xargs, sudo and all others.
func (c Command) Innermost() Command {
	for len(c.Args) > 0 {
		w, ok := wrapperOf(path.Base(c.Args[0]))
		if !ok {
			return c
		}
		rest := w.after(c.Args[1:])
		if len(rest) == 0 {
			return c
		}
		c.Args, c.Words = rest, c.Words[len(c.Words)-len(rest):]
	}
	return c
}

// Harmless says that the variables set in front of the command cannot change
// what it does.
func (c Command) Harmless() bool {
	return !slices.ContainsFunc(c.Assigns, func(n string) bool { return !harmlessVariable(n) })
}

// Programs are the command lines that the command stands for when the programs
// that only run others, and their options, are taken off: those of
// `sudo timeout 5 rm x` are `timeout 5 rm x` and `rm x`. The program stands
// without its directory. What is taken off is what the real CLI takes off
// (observed with 2.1.330).
func (c Command) Programs() []string {
	args := slices.Clone(c.Args)
	if len(args) > 0 {
		args[0] = cmp.Or(c.Words[0].Value, args[0])
	}
	var out []string
	for len(args) > 0 {
		words := c.Words[len(c.Words)-len(args):]
		if words[0].Coded {
			return out
		}
		args[0] = strings.TrimSuffix(path.Base(args[0]), ".exe")
		out = append(out, strings.Join(args, " "))
		if script := scriptOption(args); script != "" {
			return append(out, script)
		}
		w, ok := wrapperOf(args[0])
		if args[0] == "--" { // of time
			w, ok = wrapper{}, true
		}
		if !ok || showsOnly(args) {
			return out
		}
		rest := w.after(args[1:])
		if own := words[1 : len(words)-len(rest)]; args[0] != "env" && opaqueWrapper(args[0], own) {
			return out
		}
		if args = rest; len(args) > 1 && words[len(words)-len(rest)].Shape == string(Variable) {
			out = append(out, strings.Join(args[1:], " ")) // the variable may be empty
		}
	}
	return out
}

// showsOnly tells whether a program that runs others is one that rules do not
// look through, or is called so that they do not.
func showsOnly(args []string) bool {
	option := ""
	if len(args) > 1 && strings.HasPrefix(args[1], "-") {
		option = args[1]
	}
	switch args[0] {
	case "busybox", "toybox", "unbuffer", "chronic", "caffeinate":
		return true
	case "xargs":
		return option != ""
	case "stdbuf":
		return len(option) == 2 || strings.HasPrefix(option, "--")
	case "command":
		return option == "-v" || option == "-V"
	}
	return false
}

// scriptOption is the command line that is the value of an option; empty = none.
func scriptOption(args []string) string {
	for i, a := range args[1:] {
		value, assigned := strings.CutPrefix(a, "--split-string=")
		switch {
		case args[0] == "env" && assigned:
			return value
		case args[0] == "script" && a == "-c" && i+2 < len(args):
			return args[i+2]
		}
	}
	return ""
}

// ShellScript is the script that the command gives to a shell as an argument, as
// bash -c does; known = its text is.
func (c Command) ShellScript() (script string, known, ok bool) {
	inner := c.Innermost()
	switch inner.Name() {
	case "bash", "sh", "dash", "zsh", "ksh", "ash":
		if script, known, ok = c.Nested(); ok && len(inner.Args) > 1 {
			return script, known, true
		}
	}
	return "", false, false
}

// Nested is the script that the command hands to another shell, as eval, bash -c
// find -exec do; ok = there is one, known = its text is. Expansions in a text
// that is not known stand as they were written.
func (c Command) Nested() (script string, known, ok bool) {
	inner := c.Innermost()
	if len(inner.Args) == 0 {
		return "", true, false
	}
	dynamic := func(words []Word) bool {
		return slices.ContainsFunc(words, func(w Word) bool { return w.Dynamic && w.Paths == nil })
	}
	switch path.Base(inner.Args[0]) {
	case "eval":
		return strings.Join(inner.Args[1:], " "), !dynamic(inner.Words), true
	case "bash", "sh", "dash", "zsh", "ksh", "ash":
		for i, a := range inner.Args[1:] {
			if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c") && i+2 < len(inner.Args) {
				if inner.Words[i+2].Dynamic {
					return strings.Trim(inner.Args[i+2], `"`), false, true
				}
				return inner.Args[i+2], true, true
			}
		}
		return "", false, len(inner.Args) == 1 // what it reads from its input
	case "trap":
		return inner.Args[min(1, len(inner.Args)-1)], !dynamic(inner.Words), len(inner.Args) > 1
	case "find":
		return foundScript(inner)
	}
	return "", true, false
}

// foundScript is what find runs for each file.
func foundScript(c Command) (script string, known, ok bool) {
	var lines []string
	for i, a := range c.Args {
		switch a {
		case "-exec", "-execdir", "-ok", "-okdir":
			line := c.Args[i+1:]
			if end := slices.IndexFunc(line, func(w string) bool { return w == ";" || w == "+" }); end >= 0 {
				line = line[:end]
			}
			quoted := make([]string, len(line))
			for j, w := range line {
				if c.Words[i+1+j].Dynamic { // resolved before find sees it
					quoted[j] = w
					continue
				}
				q, err := syntax.Quote(w, syntax.LangBash)
				if err != nil {
					return "", false, true
				}
				quoted[j] = q
			}
			lines = append(lines, strings.Join(quoted, " "))
		}
	}
	return strings.Join(lines, "\n"), true, len(lines) > 0
}
