package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/shellcmd"
)

// operand is a word of a command line that names files.
type operand struct {
	text string // as written, or as it is when nothing is left to resolve
	// paths are the files that it names, with the home directory put in: a glob
	// is the directory that it begins in, itself, and what it matches now.
	paths []string
	known bool // paths are all that it can name
	glob  bool
	tilde bool // ~user, ~+ or ~-
}

// maxGlobs bounds the special characters of a pattern that is looked up.
const maxGlobs = 8

// operand resolves one word.
func (c *call) operand(text string, word shellcmd.Word) operand {
	out := operand{text: text, tilde: word.Tilde, known: word.Paths != nil}
	for _, p := range word.Paths {
		name, glob := p.Name, p.Glob
		if p.Home {
			home := c.policy.opts.Home
			if home == "" {
				out.known = false
				continue
			}
			name, glob = joined(home, name), joined(escapeGlob(home), glob)
		}
		if p.Glob == "" {
			out.paths = append(out.paths, name)
			continue
		}
		out.glob = true
		start, _ := filepath.Split(name[:strings.IndexAny(name, "*?[")])
		out.paths = append(out.paths, filepath.Clean("./"+start), name)
		if filepath.IsAbs(name) {
			out.paths[len(out.paths)-2] = filepath.Clean(start)
		}
		if c.policy.opts.Glob == nil || strings.Count(glob, "*")+strings.Count(glob, "?")+strings.Count(glob, "[") > maxGlobs {
			out.known = false
			continue
		}
		out.paths = append(out.paths, c.policy.opts.Glob(c.policy.absGlob(glob))...)
	}
	if len(out.paths) == 1 {
		out.text = out.paths[0]
	}
	return out
}

// joined puts a directory in front without tidying up, which would hide a step
// back over a link.
func joined(dir, name string) string {
	if name == "" {
		return dir
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(path)
}

// absGlob makes a pattern of a call absolute.
func (p *Policy) absGlob(pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return joined(escapeGlob(p.callPath("")), pattern)
}

// operands are the arguments that name files.
func (c *call) operands(cmd shellcmd.Command) []operand {
	if len(cmd.Args) == 0 || cmd.Name() == "tr" {
		return nil
	}
	skip := 0 // leading operands that are no paths: patterns, programs
	named, ownPattern := c.optionFiles(cmd)
	switch cmd.Name() {
	case "grep", "egrep", "fgrep", "rg", "jq", "git", "sed":
		if !ownPattern {
			skip = 1
		}
	case "cd":
		if len(cmd.Args) == 1 {
			return []operand{{text: c.policy.opts.Home, paths: []string{c.policy.opts.Home}, known: true}}
		}
	}
	var out []operand
	ended := false
	for i, arg := range cmd.Args[1:] {
		if strings.HasPrefix(arg, "-") && !ended && (arg != "-" || cmd.Name() != "cd") {
			if cmd.Name() == "find" && len(out) > 0 {
				break
			}
			ended = arg == "--"
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		op := c.operand(arg, cmd.Words[i+1])
		if cmd.Name() == "cd" && arg == "-" {
			op = operand{text: arg, tilde: true} // wherever it was before
		}
		out = append(out, op)
	}
	return append(out, named...)
}

// optionFiles are the files that options name, in the same word or in the next;
// ownPattern says that the first operand is no pattern, because an option has
// it.
func (c *call) optionFiles(cmd shellcmd.Command) (files []operand, ownPattern bool) {
	for i, arg := range cmd.Args[1:] {
		name, value, assigned := strings.Cut(arg, "=")
		next := min(i+2, len(cmd.Args)-1)
		switch {
		case patternOption(cmd.Name(), arg):
			ownPattern = true
			if len(arg) > 2 && strings.HasPrefix(arg, "-f") && arg[1] != '-' && cmd.Name() != "sed" {
				files = append(files, valueOf(arg[2:]))
			}
		case cmd.Name() == "find" && slices.Contains([]string{"-newer", "-anewer", "-cnewer", "-samefile", "-files0-from"}, arg):
			files = append(files, c.operand(cmd.Args[next], cmd.Words[next]))
		}
		if !assigned || !strings.HasPrefix(name, "--") {
			continue
		}
		for _, option := range fileOptions() {
			if len(name) > 3 && name != "--exclude" && strings.HasPrefix("--"+option, name) {
				files = append(files, valueOf(value))
			}
		}
	}
	return files, ownPattern
}

// valueOf is the file that stands in a word behind its option.
func valueOf(name string) operand { return operand{text: name, paths: []string{name}, known: true} }

// patternOption tells whether an option brings what else the first operand is.
func patternOption(command, arg string) bool {
	switch command {
	case "grep", "egrep", "fgrep", "rg":
		return strings.HasPrefix(arg, "--reg") || strings.HasPrefix(arg, "--fil") && !strings.HasPrefix(arg, "--files") ||
			len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(arg, "ef")
	case "sed":
		return strings.HasPrefix(arg, "--exp") || strings.HasPrefix(arg, "--fil") || strings.HasPrefix(arg, "-e") || strings.HasPrefix(arg, "-f")
	case "jq":
		return strings.HasPrefix(arg, "--from") || strings.HasPrefix(arg, "-f") || strings.HasPrefix(arg, "-L")
	}
	return false
}

// fileOptions are long options whose value is a file that is read or written.
func fileOptions() []string {
	return []string{
		"file", "files0-from", "from-file", "to-file", "exclude-from", "ignore-file", "random-source", "magic-file", "files-from",
		"arg-file", "temporary-directory", "target-directory", "reference",
	}
}

// unclearPath asks about an operand of which it cannot be told where it leads.
func (c *call) unclearPath(op operand) *question {
	switch {
	case op.tilde:
		return other("Tilde expansion variants (~user, ~+, ~-) in paths require manual approval")
	case !op.known && (!op.glob || c.policy.opts.Glob != nil):
		return other("Shell expansion syntax in paths requires manual approval")
	}
	for _, path := range op.paths {
		if !stepsBack(path) {
			continue
		}
		if abs := c.policy.callPath(path); c.policy.inside(abs) && c.policy.inside(c.policy.walked(path)) {
			return other("Path contains '..' traversal after a directory segment, which may follow a symlink outside the working directory")
		}
	}
	return nil
}

// stepsBack tells whether a path goes back over a directory that it names, which
// a link makes another place than its text says.
func stepsBack(path string) bool {
	down := false
	for step := range strings.SplitSeq(path, "/") {
		switch step {
		case "..":
			if down {
				return true
			}
		case "", ".":
		default:
			down = true
		}
	}
	return false
}

// walked is where a path leads when each link on it is followed before the next
// step.
func (p *Policy) walked(path string) string {
	at := "/"
	if !filepath.IsAbs(path) {
		at = p.callPath("")
	}
	for step := range strings.SplitSeq(path, "/") {
		switch step {
		case "", ".":
		case "..":
			at = filepath.Dir(p.resolve(at))
		default:
			at = filepath.Join(at, step)
		}
	}
	return at
}

// pathsOf are the files that operands name.
func pathsOf(ops []operand) []string {
	var out []string
	for _, op := range ops {
		out = append(out, op.paths...)
	}
	return out
}
