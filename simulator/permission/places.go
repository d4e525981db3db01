package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// Disk resolves paths in the file system. It is read-only.
type Disk interface {
	// Resolve follows the symbolic links of an absolute path as far as it exists.
	Resolve(path string) string
	// Glob returns the matches of an absolute shell pattern; additional matches are harmless.
	Glob(pattern string) []string
	IsDir(path string) bool
}

// Directory is a working directory and its origin.
type Directory struct {
	Path   string `json:"path"`
	Source string `json:"source"` // "cliArg", "localSettings" for all settings, "session", …
}

// pathResolver are the directories of a session, and the way from a text to a path.
type pathResolver struct {
	cwd  string        // where the session began
	home string        // empty = not known
	disk Disk          // nil = paths are compared as written
	dir  func() string // that relative paths of calls start from; nil = cwd

	dirs  []string          // working directories, absolute and clean; the first is cwd
	roots map[string]string // source by directory
}

// add adds a working directory.
func (p *pathResolver) add(d Directory) {
	if dir := p.abs(d.Path); !slices.Contains(p.dirs, dir) {
		p.dirs = append(p.dirs, dir)
		p.roots[dir] = d.Source
	}
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
func (p *pathResolver) absGlob(pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return joined(escapeGlob(p.callPath("")), pattern)
}

// stepsBack reports whether a path uses ".." after a directory that it names; with a symbolic link that leads to
// another place than the text says.
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
func (p *pathResolver) walked(path string) string {
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

// abs makes a path of an option absolute and clean.
func (p *pathResolver) abs(path string) string { return p.from(p.cwd, path) }

// callPath makes a path of a call absolute and clean.
func (p *pathResolver) callPath(path string) string {
	if p.dir == nil {
		return p.abs(path)
	}
	return p.from(p.dir(), path)
}

// reached resolves a path of a command line as the shell does: it follows a link before "..".
func (p *pathResolver) reached(path string) string {
	abs := p.callPath(path)
	if stepsBack(path) {
		if walked := p.walked(path); p.resolve(walked) != p.resolve(abs) {
			return walked
		}
	}
	return abs
}

func (p *pathResolver) from(dir, path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found && p.home != "" {
		path = filepath.Join(p.home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// inside reports whether the path is in a working directory. Symbolic links are followed on both sides if
// Options.Resolve is set.
func (p *pathResolver) inside(path string) bool {
	path = p.resolve(path)
	return slices.ContainsFunc(p.dirs, func(dir string) bool { return under(p.resolve(dir), path) })
}

func (p *pathResolver) resolve(path string) string {
	if p.disk == nil {
		return path
	}
	return p.disk.Resolve(path)
}

func under(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
