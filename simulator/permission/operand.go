package permission

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// Limits of the analysis of a command line: the depth of scripts inside scripts, and the number of directories that it may change to.
const (
	maxDepthOfScriptsInScripts    = 4
	maxPossibleDirectoriesAfterCD = 32
)

type filesReadAndChanged struct{ reads, changes []fileOperand }

// filesReadAndChanged returns the files that a command reads and changes, except the files of its redirections.
func (l shellWordResolver) filesReadAndChanged(cmd shellcmd.Command) filesReadAndChanged {
	name := cmd.Name()
	if base := path.Base(name); isAutoAllowedInAcceptEdits(base) && base != "sed" || base == "tee" {
		name = base
	}
	if name == "git" {
		return filesReadAndChanged{reads: l.gitDiffAndGrepOperands(cmd)}
	}
	ops := l.fileOperands(cmd)
	switch {
	case name == "cp" || name == "mv":
		if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-t") || strings.HasPrefix(a, "--t") }) {
			return filesReadAndChanged{ops, ops} // the option names the target, so all operands are sources
		}
		return filesReadAndChanged{ops[:max(0, len(ops)-1)], ops}
	case name == "sed":
		return filesReadAndChanged{ops, ops}
	case isAutoAllowedInAcceptEdits(name) || name == "tee":
		return filesReadAndChanged{nil, ops}
	case shellcmd.ReadingPhrase(name) == "" && name != "awk" && name != "gawk" && name != "mawk": // only deny rules apply to the files of awk
		return filesReadAndChanged{}
	case len(ops) == 0 && (name == "ls" || name == "find"):
		return filesReadAndChanged{reads: []fileOperand{newPlainFileOperand(".")}}
	}
	return filesReadAndChanged{reads: ops}
}

// gitDiffAndGrepOperands returns the files that git diff and git grep read. Each file is given relative to the current directory
// and, if the command has -C, also relative to the directories of -C. Files of other git subcommands are not checked
// against deny rules (observed with 2.1.330).
func (l shellWordResolver) gitDiffAndGrepOperands(cmd shellcmd.Command) (out []fileOperand) {
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
	for _, op := range l.fileOperands(cmd) {
		out = append(out, op)
		for _, dir := range dirs {
			for _, name := range op.paths {
				out = append(out, newPlainFileOperand(joinUncleaned(dir, name)))
			}
		}
	}
	return out
}

func (l shellWordResolver) withRedirectedFiles(access filesReadAndChanged, redirects []shellcmd.Redirect) filesReadAndChanged {
	for _, r := range redirects {
		if r.ReadsFile && !r.WritesFile {
			access.reads = append(slices.Clip(access.reads), l.expandOperand(r.Target, r.Word))
		}
		if r.WritesFile {
			access.changes = append(slices.Clip(access.changes), l.expandOperand(r.Target, r.Word))
		}
	}
	return access
}

// possibleDirectoriesBeforeAndAfterCD returns the directories in which the shell may be after a cd to one of the operands. They include
// the given directoriesBefore, because the cd may fail.
func (l shellWordResolver) possibleDirectoriesBeforeAndAfterCD(directoriesBefore []string, operands []fileOperand) []string {
	for _, place := range slices.Clone(directoriesBefore) {
		for _, path := range pathsOf(operands) {
			if next := l.absolutePathFrom(place, path); !slices.Contains(directoriesBefore, next) && len(directoriesBefore) < maxPossibleDirectoriesAfterCD {
				directoriesBefore = append(directoriesBefore, next)
			}
		}
	}
	return directoriesBefore
}

type shellWordResolver struct{ *pathResolver }

type commandLine struct {
	*analyzedCall
	words          shellWordResolver
	startDirs      []string // directories in which the command line may start
	chainDirectory string   // the directory in which all commands after the first run; empty if it is not known
	isFragment     bool     // it is a piece of a text that cannot be parsed
	isNested       bool     // it is a script that is an argument of a shell
}

func newCommandLineOfCall(shellCall *analyzedCall) commandLine {
	return commandLine{analyzedCall: shellCall, words: shellWordResolver{shellCall.modeAndRules.resolver}, startDirs: []string{shellCall.modeAndRules.resolver.absolutePathFromCurrentDir("")}}
}

func commandLineWithScript(c commandLine, script string) commandLine {
	call := *c.analyzedCall
	call.command = script
	call.script, call.parseErr = shellcmd.Parse(script)
	return commandLine{analyzedCall: &call, words: c.words, startDirs: c.startDirs}
}

type fileOperand struct {
	text string // the path that the word names, or the word itself if it may name several paths
	// paths are the files that the word names, with ~ expanded. For a glob, paths contains the directory before its
	// first wildcard, the glob itself, and the matches.
	paths    []string
	isKnown  bool // paths contains every file that the word can name
	hasGlob  bool
	hasTilde bool // ~user, ~+ or ~-
	isPlain  bool // the word is a single name, without braces and escapes
}

// maxWildcardsInExpandedGlob is the maximum number of special characters in a glob that is expanded.
const maxWildcardsInExpandedGlob = 8

func (l shellWordResolver) expandOperand(text string, word shellcmd.Word) fileOperand {
	out := fileOperand{text: text, hasTilde: word.StartsWithTilde, isKnown: word.Paths != nil, isPlain: len(word.Paths) == 1 && word.Paths[0].Glob == "" && !word.IsDollarQuoted}
	for _, p := range word.Paths {
		name, glob := p.Name, p.Glob
		if p.Home {
			home := l.home
			if home == "" {
				out.isKnown = false
				continue
			}
			name, glob = joinUncleaned(home, name), joinUncleaned(escapeGlob(home), glob)
		}
		if p.Glob == "" {
			out.paths = append(out.paths, name)
			continue
		}
		out.hasGlob = true
		start, _ := filepath.Split(name[:strings.IndexAny(name, "*?[")])
		out.paths = append(out.paths, filepath.Clean("./"+start), name)
		if filepath.IsAbs(name) {
			out.paths[len(out.paths)-2] = filepath.Clean(start)
		}
		if l.fileSystem == nil || strings.Count(glob, "*")+strings.Count(glob, "?")+strings.Count(glob, "[") > maxWildcardsInExpandedGlob {
			out.isKnown = false
			continue
		}
		out.paths = append(out.paths, l.fileSystem.Glob(l.absoluteGlobPattern(glob))...)
	}
	if len(out.paths) == 1 {
		out.text = out.paths[0]
	}
	return out
}

func (l shellWordResolver) fileOperands(cmd shellcmd.Command) []fileOperand {
	if len(cmd.Args) == 0 {
		return nil
	}
	skip := 0 // number of leading operands that are not paths, such as patterns and programs
	named, ownPattern := l.filesNamedByOptions(cmd)
	if cmd.Name() == "cd" && len(cmd.Args) == 1 {
		return []fileOperand{{text: l.home, paths: []string{l.home}, isKnown: true, isPlain: true}}
	} else if !ownPattern && slices.Contains([]string{"grep", "egrep", "fgrep", "rg", "jq", "git", "sed"}, cmd.Name()) {
		skip = 1
	} else if cmd.Name() == "tr" { // one set of characters to delete, or two sets
		skip = 2
		if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-") && strings.Contains(a, "d") }) {
			skip = 1
		}
	}
	out, ended := []fileOperand(nil), false
	for i, arg := range cmd.Args[1:] {
		isOption := strings.HasPrefix(arg, "-") && !ended
		if isOption && cmd.Name() == "find" && !slices.Contains([]string{"-H", "-L", "-P", "--"}, arg) {
			break // the paths end before the first condition (observed with 2.1.330)
		}
		switch {
		case isOption:
			ended = arg == "--"
			if cmd.Name() == "sed" && arg == "-e" {
				skip++ // the value of the option is a script
			}
			if skip > 0 && !ownPattern && slices.Contains(strings.Fields(optionsWithValueOfSearchCommand(cmd.Name())), arg) {
				skip++
			}
		case arg == "" && cmd.Name() == "sed": // an empty word is not an operand (observed with 2.1.330)
		case skip > 0:
			skip--
		default:
			out = append(out, l.expandOperand(arg, cmd.Words[i+1]))
		}
	}
	return append(out, named...)
}

// optionsWithValueOfSearchCommand returns the options of a search command whose value is the next word (observed with 2.1.330).
func optionsWithValueOfSearchCommand(commandName string) (spaceSeparatedOptions string) {
	const shared = "-A -B -C -m --max-count --after-context --before-context --context"
	const grep = shared + " --include --exclude --exclude-dir"
	return map[string]string{"grep": grep, "egrep": grep, "fgrep": grep, "rg": shared + " -g -t -T --glob --type --type-not --max-depth", "jq": "--indent"}[commandName]
}

// filesNamedByOptions returns the files that options name, as in --file=FILE or find -newer FILE. hasPatternOption is
// true if an option supplies the search pattern or the script, so that the first operand is a file.
func (l shellWordResolver) filesNamedByOptions(cmd shellcmd.Command) (files []fileOperand, hasPatternOption bool) {
	for i, arg := range cmd.Args[1:] {
		name, value, assigned := strings.Cut(arg, "=")
		next := min(i+2, len(cmd.Args)-1)
		switch {
		case isPatternOrScriptOption(cmd.Name(), arg):
			hasPatternOption = true
			if len(arg) > 2 && strings.HasPrefix(arg, "-f") && arg[1] != '-' && cmd.Name() != "sed" {
				files = append(files, newPlainFileOperand(arg[2:]))
			}
		case cmd.Name() == "find" && slices.Contains([]string{"-newer", "-anewer", "-cnewer", "-samefile"}, arg):
			files = append(files, l.expandOperand(cmd.Args[next], cmd.Words[next]))
		case cmd.Name() == "cp" || cmd.Name() == "mv":
			if _, into, glued := strings.Cut(arg, "t"); glued && into != "" && len(arg) > 1 && arg[0] == '-' && arg[1] != '-' {
				files = append(files, newPlainFileOperand(into))
			}
		}
		if !assigned || !strings.HasPrefix(name, "--") {
			continue
		}
		for option := range strings.FieldsSeq(fileOptions) {
			if len(name) > 3 && name != "--exclude" && strings.HasPrefix("--"+option, name) {
				file := newPlainFileOperand(value)
				// Deny rules do not apply to files that options of these commands name (observed with 2.1.330).
				file.isPlain = !slices.Contains([]string{"diff", "file", "sed", "sort", "wc"}, cmd.Name())
				files = append(files, file)
			}
		}
	}
	return files, hasPatternOption
}

func newPlainFileOperand(fileName string) fileOperand {
	return fileOperand{text: fileName, paths: []string{fileName}, isKnown: true, isPlain: true}
}

// isPatternOrScriptOption reports whether an option such as -e or -f supplies the search pattern or the script.
func isPatternOrScriptOption(commandName, option string) bool {
	switch commandName {
	case "grep", "egrep", "fgrep", "rg":
		return strings.HasPrefix(option, "--reg") || strings.HasPrefix(option, "--fil") && !strings.HasPrefix(option, "--files") ||
			len(option) > 1 && option[0] == '-' && option[1] != '-' && strings.ContainsAny(option, "ef")
	case "sed":
		return strings.HasPrefix(option, "--exp") || strings.HasPrefix(option, "--fil") || strings.HasPrefix(option, "-e") || strings.HasPrefix(option, "-f")
	case "jq":
		return strings.HasPrefix(option, "--from") || strings.HasPrefix(option, "-f") || strings.HasPrefix(option, "-L")
	}
	return false
}

const fileOptions = "file files0-from from-file to-file exclude-from ignore-file random-source magic-file files-from arg-file temporary-directory target-directory reference"

// approvalIfPathUnclear returns the approval request for an operand if its text does not show which file it names, for example
// because it contains a variable or "..". Nil means that the text shows which file the operand names.
func (l shellWordResolver) approvalIfPathUnclear(operand fileOperand) *approvalRequest {
	switch {
	case operand.hasTilde || slices.ContainsFunc(operand.paths, func(p string) bool { return len(p) > 1 && p[0] == '~' && p[1] != '/' }):
		return approvalWithoutSuggestionList("Tilde expansion variants (~user, ~+, ~-) in paths require manual approval")
	case !operand.isKnown && (!operand.hasGlob || l.fileSystem != nil), slices.ContainsFunc(operand.paths, func(p string) bool { return strings.HasPrefix(p, "=") || strings.ContainsAny(p, "$`") }): // even in quotes (observed with 2.1.330)
		return approvalWithoutSuggestionList("Shell expansion syntax in paths requires manual approval")
	}
	for _, path := range operand.paths {
		if !hasParentReference(path) {
			continue
		}
		if abs := l.absolutePathFromCurrentDir(path); l.isInWorkingDir(abs) && l.isInWorkingDir(l.resolveParentReferences(path)) {
			return approvalWithoutSuggestionList("Path contains '..' traversal after a directory segment, which may follow a symlink outside the working directory")
		}
	}
	return nil
}

func pathsOf(ops []fileOperand) []string {
	var out []string
	for _, op := range ops {
		out = append(out, op.paths...)
	}
	return out
}

// pathsOfPlainOperands returns the paths of the operands that are plain words. Deny rules for paths apply only to these.
func pathsOfPlainOperands(operands []fileOperand) []string {
	return pathsOf(slices.DeleteFunc(slices.Clone(operands), func(op fileOperand) bool { return !op.isPlain }))
}

// isAutoAllowedInAcceptEdits reports whether a command changes files and may run without a question in mode acceptEdits.
func isAutoAllowedInAcceptEdits(name string) bool {
	return slices.Contains([]string{"touch", "mkdir", "rm", "rmdir", "mv", "cp", "sed"}, name)
}

func isCopyOrMoveWithOptions(cmd shellcmd.Command) bool {
	return (cmd.Name() == "cp" || cmd.Name() == "mv") && slices.ContainsFunc(cmd.Args[1:], func(a string) bool { return strings.HasPrefix(a, "-") })
}
