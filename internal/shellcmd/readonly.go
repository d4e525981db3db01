package shellcmd

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ReadOnly says that the script changes no file and no state outside its own
// shell. It is conservative: false also means "not known".
func (s Script) ReadOnly() bool {
	if s.Opaque || len(s.Commands) == 0 || writes(s.Redirects) {
		return false
	}
	for _, c := range s.Commands {
		if !c.ReadOnly() {
			return false
		}
	}
	return true
}

// ReadOnly says that this command is known to only read.
func (c Command) ReadOnly() bool {
	if writes(c.Redirects) {
		return false
	}
	if len(c.Args) == 0 {
		return !slices.ContainsFunc(c.Assigns, steersShell)
	}
	if c.Timed || c.Dynamic[0] || !c.Harmless() {
		return false
	}
	c = c.Unwrapped()
	if onlyReads(c.Args[0]) {
		return true
	}
	if slices.Contains(c.Dynamic, true) {
		// An expansion may become an option that these commands write with;
		// only quoted globs for find and plain paths are common, and those are
		// static.
		return false
	}
	return readsWith(c.Args[0], c.Args[1:])
}

func writes(rs []Redirect) bool {
	return slices.ContainsFunc(rs, func(r Redirect) bool { return r.Writes })
}

// steersShell names variables that change what later commands do.
func steersShell(name string) bool {
	switch name {
	case "PATH", "IFS", "ENV", "BASH_ENV", "SHELLOPTS", "PROMPT_COMMAND", "PS4", "CDPATH", "GLOBIGNORE":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_")
}

func harmlessVariable(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "NODE_ENV":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// onlyReads names the commands that cannot write whatever their arguments are.
func onlyReads(name string) bool {
	switch name {
	case "ls", "cat", "echo", "pwd", "head", "tail", "wc", "grep", "egrep", "fgrep", "true", "false", ":",
		"test", "[", "which", "type", "cd", "stat", "du", "df", "cut", "tr", "nl", "tac", "rev", "paste",
		"comm", "cmp", "diff", "basename", "dirname", "realpath", "readlink", "seq", "sleep", "whoami", "id",
		"groups", "uname", "uptime", "nproc", "free", "arch", "locale", "cal", "expr", "numfmt", "tput", "tsort",
		"md5sum", "sha1sum", "sha256sum", "hexdump", "od", "strings", "fold", "fmt", "expand", "unexpand",
		"column", "jq", "ps", "pr", "lsof", "netstat", "help":
		return true
	}
	return false
}

// readsWith decides about commands whose arguments matter; all of them are
// literal.
func readsWith(name string, args []string) bool {
	if short, long := harmfulOptions(name); long != nil {
		return !hasOption(args, short, long...)
	}
	switch name {
	case "find":
		return !anyOf(args, "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf")
	case "uniq":
		return operands(args) == 0
	case "date":
		return readsDate(args)
	case "history":
		return len(args) == 0 || len(args) == 1 && duration().MatchString(args[0])
	case "printf":
		return len(args) == 0 || !strings.HasPrefix(args[0], "-v")
	case "hostname":
		return len(args) == 0 || len(args) == 1 && slices.Contains([]string{"-f", "-s", "-i", "-I", "-d"}, args[0])
	case "ifconfig":
		return len(args) == 0
	case "command":
		return len(args) > 0 && onlyReads(args[0])
	case "builtin":
		return len(args) > 0 && args[0] == "cd"
	case "xargs":
		return harmlessXargs(args)
	case "docker":
		return len(args) > 0 && slices.Contains([]string{"ps", "images", "logs"}, args[0])
	case "sed":
		return printingSed(args)
	case "git":
		return gitReads(args)
	case "node", "python", "python3":
		return len(args) == 1 && (args[0] == "--version" || name == "node" && args[0] == "-v")
	}
	return false
}

// harmfulOptions are the options with which a command does more than read; nil =
// it is none of those that only options make harmful.
func harmfulOptions(name string) (short string, long []string) {
	switch name {
	case "fd":
		return "xX", []string{"--exec", "--exec-batch"}
	case "rg":
		return "", []string{"--pre", "--hostname-bin"}
	case "sort":
		return "oT", []string{"--output", "--compress-program", "--temporary-directory"}
	case "tree":
		return "oR", []string{"--output"}
	case "base64":
		return "o", []string{"--output"}
	case "file":
		return "C", []string{"--compile"}
	case "man":
		return "PH", []string{"--pager", "--html", "--browser"}
	case "ss":
		return "KD", []string{"--kill", "--diag"}
	}
	return "", nil
}

// readsDate refuses what sets the clock: an operand that is neither a format
// nor the value of -d.
func readsDate(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-d" || a == "-r":
			i++
		case hasOption([]string{a}, "s", "--set"), a == "", a[0] != '-' && a[0] != '+':
			return false
		}
	}
	return true
}

// harmlessXargs allows xargs without a command, or with one that only shows
// what it is given.
func harmlessXargs(args []string) bool {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; a {
		case "-n", "-P", "-L", "-d":
			i++
		case "-0", "-r", "-t", "-x":
		case "echo", "printf", "wc", "grep", "head", "tail":
			return true
		default:
			return false
		}
	}
	return true
}

var sedPrint = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d+|\$)(,(\d+|\$))?p$`) })

// printingSed allows `sed -n 10,20p FILE…` and nothing else.
func printingSed(args []string) bool {
	if len(args) < 2 || args[0] != "-n" || !sedPrint().MatchString(args[1]) {
		return false
	}
	return !slices.ContainsFunc(args[2:], func(a string) bool { return strings.HasPrefix(a, "-") })
}

// gitReads allows the subcommands that look and never touch the repository.
func gitReads(args []string) bool {
	if len(args) == 0 {
		return false
	}
	sub, rest := args[0], args[1:]
	if hasOption(rest, "", "--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--exec") {
		return false
	}
	switch sub {
	case "status", "log", "diff", "show", "blame", "shortlog", "describe", "rev-parse", "rev-list", "ls-files",
		"cat-file", "merge-base", "for-each-ref", "ls-remote":
		return true
	case "grep":
		return !hasOption(rest, "O")
	case "branch":
		return only(rest, "-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "--show-current", "--verbose", "--no-color")
	case "tag":
		return len(rest) == 0 || rest[0] == "-l" || rest[0] == "--list"
	case "remote":
		return only(rest, "-v", "--verbose") || rest[0] == "get-url"
	case "stash", "worktree":
		return len(rest) > 0 && (rest[0] == "list" || sub == "stash" && rest[0] == "show")
	case "reflog":
		return len(rest) == 0 || rest[0] == "show"
	case "config":
		return len(rest) > 0 && slices.Contains([]string{"--get", "--get-all"}, rest[0])
	}
	return false
}

func anyOf(args []string, names ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(names, a) })
}

func only(args []string, names ...string) bool {
	return !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(names, a) })
}

// hasOption looks for a short option letter, also inside a cluster, or a long
// option, also abbreviated or with a value.
func hasOption(args []string, short string, long ...string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if strings.HasPrefix(a, "--") {
			name, _, _ := strings.Cut(a, "=")
			if slices.ContainsFunc(long, func(l string) bool { return len(name) > 3 && strings.HasPrefix(l, name) }) {
				return true
			}
			continue
		}
		if len(a) > 1 && a[0] == '-' && strings.ContainsAny(a[1:], short) {
			return true
		}
	}
	return false
}

func operands(args []string) int {
	n := 0
	for _, a := range args {
		if a == "" || a[0] != '-' {
			n++
		}
	}
	return n
}
