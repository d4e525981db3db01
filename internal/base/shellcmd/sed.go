package shellcmd

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// The patterns below were measured with 2.1.330, which judges a script of sed by its text. They also refuse many harmless scripts.
var (
	sedOptions = lazyPattern(`^(-[Eri]+|--in-place|--regexp-extended|--posix|--)$`)
	// sedSubstitution matches a substitution with at most one digit among its flags.
	sedSubstitution = lazyPattern(`^s/[^/]*/[^/]*/[gpimIM]*[1-9]?[gpimIM]*$`)
	// sedDanger matches comments, negations, steps, ranges, escaped delimiters, and text that looks like commands that
	// write or execute.
	sedDanger = lazyPattern(`[^\x01-\x7f]|[{}\n;]|(^|[^s])#|^!|[/\d$]!|[\d$]\s*~\s*\d|,\s*~\s*\d|^,|,\s*[+-]|s\\|\\[|#%@]|` +
		`/[^/]*\s+[wWeE]|^[wW].|^e|^\d+\s*[wWe]|y[wWeE]|y[^\\\n].*[wWeE]|[wWeE].*y[^\\\n]`)
	// sedCommand matches other words that sed may read as a script. The sed of macOS takes the word after -i as a
	// suffix, and therefore the next word as its script.
	sedCommand = lazyPattern(`^[acdghilnpqrtwxzDGHNPT]$|^\d+(,\d+)?!?[acdghilnpqstxyzDGHNPT=]|^[sy][^\w]|^:|^[acir][\\/]|[*?\[]|^\S*[ \t]`)
	sedPrint   = lazyPattern(`^(\d+(,\d+)?)?p(;(\d+(,\d+)?)?p)*$`)
)

func lazyPattern(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// IsPlainSubstitution reports whether the command is `sed s/a/b/ FILE…`, in place or not.
func (c Command) IsPlainSubstitution() bool {
	args := argsAfterSedOptions(c.Args[1:])
	if !isSubstitution(args) {
		return false
	}
	before := c.Args[len(c.Args)-len(args)-1]
	if before[0] != '-' || before[1] == '-' || !strings.HasSuffix(before, "i") || len(args) == 1 {
		return true
	}
	file := c.Words[len(c.Words)-len(args)+1]
	return !sedDanger().MatchString(args[1]) && (file.IsDynamic || strings.Contains(file.Source, `\ `) || !sedCommand().MatchString(args[1]))
}

func argsAfterSedOptions(args []string) []string {
	for len(args) > 0 && sedOptions().MatchString(args[0]) {
		args = args[1:]
	}
	return args
}

// isSubstitution reports whether the arguments begin with a harmless script that only substitutes, and have no further options.
func isSubstitution(args []string) bool {
	if len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		return false
	}
	script := strings.TrimSpace(args[0])
	return sedSubstitution().MatchString(script) && !sedDanger().MatchString(script)
}

// isPrintingSed allows `sed -n 10,20p FILE…`, and a substitution on the input.
func isPrintingSed(args []string) bool {
	if rest := argsAfterSedOptions(args); len(rest) == 1 && isSubstitution(rest) {
		return !slices.ContainsFunc(args[:len(args)-1], func(a string) bool { return strings.Contains(a, "i") && a[1] != '-' || a == "--in-place" })
	}
	g := optionGrammar{flags: "nErz", longNames: " quiet silent regexp-extended null-data "}
	rest, ok := g.parseOperands(args)
	if !ok || len(rest) == 0 {
		return false
	}
	silent := slices.ContainsFunc(args, func(a string) bool {
		return a == "--quiet" || a == "--silent" || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "n")
	})
	return silent && sedPrint().MatchString(rest[0])
}
