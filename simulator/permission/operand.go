package permission

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// maxNested bounds how deep scripts inside of scripts are looked into, and
// maxPlaces how many directories a command line is followed through.
const (
	maxNested = 4
	maxPlaces = 32
)

// fileAccess are the files that a command reads and those that it changes.
type fileAccess struct{ read, changed []fileOperand }

// reaches returns the files that a command reads and changes, without its redirections.
func (l lookup) reaches(cmd shellcmd.Command) fileAccess {
	name := cmd.Name()
	if base := path.Base(name); isFileCommand(base) && base != "sed" || base == "tee" {
		name = base
	}
	if name == "git" {
		return fileAccess{read: l.gitOperands(cmd)}
	}
	ops := l.operands(cmd)
	switch {
	case name == "cp" || name == "mv":
		if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-t") || strings.HasPrefix(a, "--t") }) {
			return fileAccess{ops, ops} // the last one is not a target
		}
		return fileAccess{ops[:max(0, len(ops)-1)], ops}
	case name == "sed":
		return fileAccess{ops, ops}
	case isFileCommand(name) || name == "tee":
		return fileAccess{nil, ops}
	case readingVerb(name) == "" && !showsFiles(name):
		return fileAccess{}
	case len(ops) == 0 && (name == "ls" || name == "find"):
		return fileAccess{read: []fileOperand{valueOf(".")}}
	}
	return fileAccess{read: ops}
}

// gitOperands returns the files that git diff and git grep read, from the current directory and from those of -C. Deny
// rules are not matched with the files of other subcommands (observed with 2.1.330).
func (l lookup) gitOperands(cmd shellcmd.Command) (out []fileOperand) {
	at, dirs := 1, []string{}
	for ; at < len(cmd.Args) && strings.HasPrefix(cmd.Args[at], "-"); at++ {
		if cmd.Args[at] == "-C" && at+1 < len(cmd.Args) {
			dirs = append(dirs, cmd.Args[at+1])
		}
		if cmd.Args[at] == "-C" || cmd.Args[at] == "-c" {
			at++
		}
	}
	if at >= len(cmd.Args) || cmd.Args[at] != "diff" && cmd.Args[at] != "grep" {
		return nil
	}
	if cmd.Args, cmd.Words = cmd.Args[at:], cmd.Words[at:]; cmd.Args[0] == "diff" {
		cmd.Args, cmd.Words = append([]string{"git"}, cmd.Args...), append([]shellcmd.Word{{}}, cmd.Words...)
	}
	for _, op := range l.operands(cmd) {
		out = append(out, op)
		for _, dir := range dirs {
			for _, name := range op.paths {
				out = append(out, valueOf(joined(dir, name)))
			}
		}
	}
	return out
}

// showsFiles names commands that print files, and are not asked about them by
// name.
func showsFiles(name string) bool {
	return name == "awk" || name == "gawk" || name == "mawk"
}

// redirected adds the files of redirections.
func (l lookup) redirected(to fileAccess, redirects []shellcmd.Redirect) fileAccess {
	for _, r := range redirects {
		if r.Reads && !r.Writes {
			to.read = append(slices.Clip(to.read), l.operand(r.Target, r.Word))
		}
		if r.Writes {
			to.changed = append(slices.Clip(to.changed), l.operand(r.Target, r.Word))
		}
	}
	return to
}

// directoriesAfterCD returns the directories in which the shell may be after it changes to one of the operands.
func (l lookup) directoriesAfterCD(places []string, to []fileOperand) []string {
	for _, place := range slices.Clone(places) {
		for _, path := range pathsOf(to) {
			if next := l.from(place, path); !slices.Contains(places, next) && len(places) < maxPlaces {
				places = append(places, next)
			}
		}
	}
	return places
}

// lookup resolves the words of a command line to files.
type lookup struct{ *pathResolver }

// line is a call that runs a command line.
type line struct {
	*call
	lookup lookup
	starts []string // directories that it may begin in
}

func newLine(c *call) line { return line{c, lookup{c.judge.at}, []string{c.judge.at.callPath("")}} }

// all are the command line itself and those nested in it.
func (c line) all() []line { return append([]line{c}, c.nested(maxNested)...) }

// nested are the calls that the command line represents when the scripts that it
// hands to other shells are taken for its own.
func (c line) nested(depth int) []line {
	if depth == 0 {
		return nil
	}
	var out []line
	places := c.starts
	for _, cmd := range c.script.Commands {
		if inner := cmd.Innermost(); inner.Name() == "cd" {
			places = c.lookup.directoriesAfterCD(slices.Clip(places), c.lookup.reaches(inner).read)
		}
		script, _, ok := cmd.Nested()
		if !ok || strings.TrimSpace(script) == "" {
			continue
		}
		call := *c.call
		call.command = script
		call.script, call.parseErr = shellcmd.Parse(script)
		inner := line{&call, c.lookup, places}
		out = append(append(out, inner), inner.nested(depth-1)...)
	}
	return out
}

// fileOperand is a word of a command line that names files.
type fileOperand struct {
	text string // as written, or as it is when nothing is left to resolve
	// paths are the files that it names, with ~ expanded. For a glob they are its base directory, the glob itself,
	// and its current matches.
	paths []string
	known bool // paths are all that it can name
	glob  bool
	tilde bool // ~user, ~+ or ~-
	plain bool // one name, without braces and codes
}

// maxGlobs bounds the special characters of a pattern that is looked up.
const maxGlobs = 8

// fileOperand resolves one word.
func (l lookup) operand(text string, word shellcmd.Word) fileOperand {
	out := fileOperand{text: text, tilde: word.Tilde, known: word.Paths != nil, plain: len(word.Paths) == 1 && word.Paths[0].Glob == "" && !word.DollarQuoted}
	for _, p := range word.Paths {
		name, glob := p.Name, p.Glob
		if p.Home {
			home := l.home
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
		if l.disk == nil || strings.Count(glob, "*")+strings.Count(glob, "?")+strings.Count(glob, "[") > maxGlobs {
			out.known = false
			continue
		}
		out.paths = append(out.paths, l.disk.Glob(l.absGlob(glob))...)
	}
	if len(out.paths) == 1 {
		out.text = out.paths[0]
	}
	return out
}

// operands are the arguments that name files.
func (l lookup) operands(cmd shellcmd.Command) []fileOperand {
	if len(cmd.Args) == 0 || cmd.Name() == "tr" {
		return nil
	}
	skip := 0 // leading operands that are not paths: patterns, programs
	named, ownPattern := l.optionFiles(cmd)
	switch cmd.Name() {
	case "grep", "egrep", "fgrep", "rg", "jq", "git", "sed":
		if !ownPattern {
			skip = 1
		}
	case "cd":
		if len(cmd.Args) == 1 {
			return []fileOperand{{text: l.home, paths: []string{l.home}, known: true, plain: true}}
		}
	}
	var out []fileOperand
	ended := false
	for i, arg := range cmd.Args[1:] {
		if strings.HasPrefix(arg, "-") && !ended {
			if cmd.Name() == "find" && (len(out) > 0 || arg == "-files0-from") {
				break
			}
			ended = arg == "--"
			if cmd.Name() == "sed" && arg == "-e" {
				skip++ // its value is a script
			}
			continue
		}
		if arg == "" && cmd.Name() == "sed" { // an empty word is not an operand (observed with 2.1.330)
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		out = append(out, l.operand(arg, cmd.Words[i+1]))
	}
	return append(out, named...)
}

// optionFiles returns the files that options name, in the same word or in the next. ownPattern is true if an option
// has the pattern, so that the first operand is not one.
func (l lookup) optionFiles(cmd shellcmd.Command) (files []fileOperand, ownPattern bool) {
	for i, arg := range cmd.Args[1:] {
		name, value, assigned := strings.Cut(arg, "=")
		next := min(i+2, len(cmd.Args)-1)
		switch {
		case patternOption(cmd.Name(), arg):
			ownPattern = true
			if len(arg) > 2 && strings.HasPrefix(arg, "-f") && arg[1] != '-' && cmd.Name() != "sed" {
				files = append(files, valueOf(arg[2:]))
			}
		case cmd.Name() == "find" && slices.Contains([]string{"-newer", "-anewer", "-cnewer", "-samefile"}, arg):
			files = append(files, l.operand(cmd.Args[next], cmd.Words[next]))
		case cmd.Name() == "cp" || cmd.Name() == "mv":
			if _, into, glued := strings.Cut(arg, "t"); glued && into != "" && len(arg) > 1 && arg[0] == '-' && arg[1] != '-' {
				files = append(files, valueOf(into))
			}
		}
		if !assigned || !strings.HasPrefix(name, "--") {
			continue
		}
		for _, option := range fileOptions() {
			if len(name) > 3 && name != "--exclude" && strings.HasPrefix("--"+option, name) {
				file := valueOf(value)
				// Deny rules are not matched with it (observed with 2.1.330).
				file.plain = !slices.Contains([]string{"diff", "file", "sed", "sort", "wc"}, cmd.Name())
				files = append(files, file)
			}
		}
	}
	return files, ownPattern
}

// valueOf is the file name that follows an option in the same word.
func valueOf(name string) fileOperand {
	return fileOperand{text: name, paths: []string{name}, known: true, plain: true}
}

// patternOption reports whether an option replaces the first operand.
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

// unclearPath asks about an operand whose target cannot be determined.
func (l lookup) unclearPath(op fileOperand) *approval {
	switch {
	case op.tilde || slices.ContainsFunc(op.paths, func(p string) bool { return len(p) > 1 && p[0] == '~' && p[1] != '/' }):
		return other("Tilde expansion variants (~user, ~+, ~-) in paths require manual approval")
	case !op.known && (!op.glob || l.disk != nil), slices.ContainsFunc(op.paths, expands):
		return other("Shell expansion syntax in paths requires manual approval")
	}
	for _, path := range op.paths {
		if !stepsBack(path) {
			continue
		}
		if abs := l.callPath(path); l.inside(abs) && l.inside(l.walked(path)) {
			return other("Path contains '..' traversal after a directory segment, which may follow a symlink outside the working directory")
		}
	}
	return nil
}

// expands reports whether a path looks as if the shell would expand it, although quotes prevent that (observed with
// 2.1.330).
func expands(path string) bool {
	return strings.HasPrefix(path, "=") || strings.ContainsAny(path, "$`")
}

// pathsOf are the files that operands name.
func pathsOf(ops []fileOperand) []string {
	var out []string
	for _, op := range ops {
		out = append(out, op.paths...)
	}
	return out
}

// plainPaths are the files that rules which deny paths are matched with.
func plainPaths(ops []fileOperand) []string {
	return pathsOf(slices.DeleteFunc(slices.Clone(ops), func(op fileOperand) bool { return !op.plain }))
}

// isFileCommand reports whether acceptEdits allows the command.
func isFileCommand(name string) bool {
	return slices.Contains([]string{"touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed"}, name)
}

func writes(rs []shellcmd.Redirect) bool {
	return slices.ContainsFunc(rs, func(r shellcmd.Redirect) bool { return r.Writes })
}

// readingVerb returns the verb with which a question describes what the command does to its files; empty = it needs
// no permission for them.
func readingVerb(name string) string {
	verbs := [...][2]string{
		{"cd", "change directories to"},
		{"ls", "list files in"},
		{"find", "search files in"},
		{"cat", "concatenate files from"},
		{"head", "read the beginning of files from"},
		{"tail", "read the end of files from"},
		{"sort", "sort contents of files from"},
		{"uniq", "filter duplicate lines from files in"},
		{"wc", "count lines/words/bytes in files from"},
		{"cut", "extract columns from files in"},
		{"paste", "merge files from"},
		{"column", "format files from"},
		{"file", "examine file types in"},
		{"stat", "read file stats from"},
		{"diff", "compare files from"},
		{"strings", "extract strings from files in"},
		{"hexdump", "display hex dump of files from"},
		{"od", "display octal dump of files from"},
		{"base64", "encode/decode files from"},
		{"nl", "number lines in files from"},
		{"grep", searching},
		{"egrep", searching},
		{"fgrep", searching},
		{"rg", searching},
		{"jq", "process JSON from files in"},
		{"sha256sum", "compute SHA-256 checksums for files in"},
		{"sha1sum", "compute SHA-1 checksums for files in"},
		{"md5sum", "compute MD5 checksums for files in"},
		{"tac", "read files (reversed) from"},
		{"rev", "read files (reversed lines) from"},
		{"comm", "compare files from"},
		{"cmp", "compare files from"},
		{"fold", "wrap lines of files from"},
		{"fmt", "reformat files from"},
		{"pr", "paginate files from"},
		{"expand", "convert tabs in files from"},
		{"unexpand", "convert tabs in files from"},
		{"tsort", "sort files from"},
		{"git", "access files with git from"},
		{"man", "read manual page files from"},
	}
	for _, v := range verbs {
		if v[0] == name {
			return v[1]
		}
	}
	return ""
}

const searching = "search for patterns in files from"
