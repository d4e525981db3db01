package shellcmd

import (
	"regexp"
	"slices"
	"strings"
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
		return !slices.ContainsFunc(c.Assigns, func(n string) bool { return n != strings.ToLower(n) })
	}
	if c.Dynamic[0] || slices.ContainsFunc(c.Assigns, func(n string) bool { return !harmlessVariable(n) }) {
		return false
	}
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

func harmlessVariable(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES":
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
		"groups", "uname", "uptime", "printenv", "nproc", "free", "arch", "tty", "locale", "cal", "expr",
		"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "cksum", "sum", "b2sum",
		"hexdump", "od", "strings", "fold", "fmt", "expand", "unexpand", "join", "column", "jq", "ps",
		"exit", "return", "break", "continue", "wait", "jobs", "times":
		return true
	}
	return false
}

// readsWith decides about commands whose arguments matter; all of them are
// literal.
func readsWith(name string, args []string) bool {
	switch name {
	case "find":
		return !anyOf(args, "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint", "-fprint0", "-fprintf")
	case "fd":
		return !hasOption(args, "xX", "--exec", "--exec-batch")
	case "rg":
		return !hasOption(args, "", "--pre", "--hostname-bin")
	case "sort":
		return !hasOption(args, "oT", "--output", "--compress-program", "--temporary-directory")
	case "uniq":
		return operands(args) <= 1
	case "tree":
		return !hasOption(args, "oR", "--output")
	case "date":
		return !hasOption(args, "s", "--set") && !slices.ContainsFunc(args, func(a string) bool {
			return a != "" && a[0] != '-' && a[0] != '+'
		})
	case "base64":
		return !hasOption(args, "o", "--output")
	case "file":
		return !hasOption(args, "C", "--compile")
	case "printf":
		return len(args) == 0 || !strings.HasPrefix(args[0], "-v")
	case "hostname":
		return len(args) == 0 || len(args) == 1 && slices.Contains([]string{"-f", "-s", "-i", "-I", "-d"}, args[0])
	case "env", "alias", "umask":
		return len(args) == 0
	case "command":
		return len(args) > 0 && (args[0] == "-v" || args[0] == "-V")
	case "sed":
		return printingSed(args)
	case "git":
		return gitReads(args)
	case "node", "python", "python3", "go", "npm", "yarn", "pnpm", "cargo", "rustc", "ruby", "java", "bash", "make", "docker", "deno", "bun":
		return len(args) == 1 && (args[0] == "--version" || name == "node" && args[0] == "-v" || name == "go" && args[0] == "version")
	}
	return false
}

var sedPrint = regexp.MustCompile(`^(\d+|\$)(,(\d+|\$))?p$`)

// printingSed allows `sed -n 10,20p FILE…` and nothing else.
func printingSed(args []string) bool {
	if len(args) < 2 || args[0] != "-n" || !sedPrint.MatchString(args[1]) {
		return false
	}
	return !slices.ContainsFunc(args[2:], func(a string) bool { return strings.HasPrefix(a, "-") })
}

// gitReads allows the subcommands that look and never touch the repository.
func gitReads(args []string) bool {
	for len(args) > 0 && (args[0] == "--no-pager" || args[0] == "-P") {
		args = args[1:]
	}
	if len(args) == 0 {
		return false
	}
	sub, rest := args[0], args[1:]
	if hasOption(rest, "", "--output", "--ext-diff", "--open-files-in-pager", "--upload-pack", "--exec") {
		return false
	}
	switch sub {
	case "status", "log", "diff", "show", "blame", "shortlog", "describe", "rev-parse", "rev-list", "ls-files",
		"ls-tree", "cat-file", "merge-base", "name-rev", "for-each-ref", "show-ref", "count-objects", "whatchanged",
		"--version", "version":
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
		return len(rest) > 0 && slices.Contains([]string{"--get", "--get-all", "--list", "-l", "get", "list"}, rest[0])
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
