package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// FileSystem resolves paths in the file system. It is read-only.
type FileSystem interface {
	// Resolve follows the symbolic links of an absolute path as far as the path exists.
	Resolve(path string) string
	// Glob returns the matches of an absolute shell pattern. It may also return other paths.
	Glob(pattern string) []string
	IsDir(path string) bool
}

// WorkingDirectory is a working directory with its source.
type WorkingDirectory struct {
	Path   string `json:"path"`
	Source string `json:"source"` // "cliArg", "session", …; "localSettings" for a directory from any settings file
}

type pathResolver struct {
	startDir   string        // directory in which the session began
	home       string        // home directory; empty means unknown
	fileSystem FileSystem    // nil means paths are compared as written
	currentDir func() string // directory to which paths of calls are relative; nil means startDir

	workingDirs       []string          // working directories, absolute and clean; the first is startDir
	workingDirSources map[string]string // source of each directory

	stateDirs StateDirs
}

func (p *pathResolver) isWritableMemory(path string) bool {
	return strings.HasSuffix(path, ".md") && isBelowAny(slices.Concat(p.stateDirs.Memory, p.stateDirs.AgentMemory), path)
}

func (p *pathResolver) isReadableOutsideWorkingDirs(path string) bool {
	return isBelowAny(slices.Concat(p.stateDirs.Memory, p.stateDirs.AgentMemory), path) || slices.ContainsFunc(p.stateDirs.Readable, func(dir string) bool { return isAtOrBelow(dir, path) })
}

func isBelowAny(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
}

// addWorkingDirectoryIfNew adds a working directory, unless it was added before. CWD is always a working
// directory, but can be added again with another source.
func (p *pathResolver) addWorkingDirectoryIfNew(d WorkingDirectory) {
	if dir := p.absolutePathFromStartDir(d.Path); !slices.Contains(p.workingDirs[1:], dir) {
		p.workingDirs = append(p.workingDirs, dir)
		p.workingDirSources[dir] = d.Source
	}
}

// joinUncleaned joins a directory and a name. Unlike filepath.Join, it keeps a ".." after a link.
func joinUncleaned(dir, name string) string {
	if name == "" {
		return dir
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(path)
}

func (p *pathResolver) absoluteGlobPattern(pattern string) string {
	if filepath.IsAbs(pattern) {
		return pattern
	}
	return joinUncleaned(escapeGlob(p.absolutePathFromCurrentDir("")), pattern)
}

// hasParentReference reports whether a path contains ".." after the name of a directory. If that directory is a
// symbolic link, the path does not lead where its text suggests.
func hasParentReference(path string) bool { return parentReferenceAfterDirPattern().MatchString(path) }

// parentReferenceAfterDirPattern also matches a backslash next to "..", which separates names on Windows (observed with 2.1.330).
var parentReferenceAfterDirPattern = shellcmd.LazyRegexp(`(^|/)(\.?[^/.]|\.\.[^/])[^/]*/(.*/)?\.\.(/|$)|(^|/)\.\.\\|\\\.\.`)

// resolveParentReferences returns the absolute form of a path; it follows symbolic links only where ".." comes after them.
func (p *pathResolver) resolveParentReferences(path string) string {
	at := "/"
	if !filepath.IsAbs(path) {
		at = p.absolutePathFromCurrentDir("")
	}
	for step := range strings.SplitSeq(path, "/") {
		switch step {
		case "", ".":
		case "..":
			at = filepath.Dir(p.resolveLinks(at))
		default:
			at = filepath.Join(at, step)
		}
	}
	return at
}

func (p *pathResolver) absolutePathFromStartDir(path string) string {
	return p.absolutePathFrom(p.startDir, path)
}

// absolutePathFromCurrentDir returns the absolute, clean form of a path that is relative to the current directory.
func (p *pathResolver) absolutePathFromCurrentDir(path string) string {
	if p.currentDir == nil {
		return p.absolutePathFromStartDir(path)
	}
	return p.absolutePathFrom(p.currentDir(), path)
}

// absolutePathKeepingDoubleSlash keeps two slashes at the beginning of a path. They can name another computer: no rule and no
// working directory covers such a path.
func (p *pathResolver) absolutePathKeepingDoubleSlash(path string) string {
	if strings.HasPrefix(path, "//") {
		return "/" + p.resolveLinksBeforeParents(path)
	}
	return p.resolveLinksBeforeParents(path)
}

// resolveLinksBeforeParents resolves a path of a command line as the shell does: it follows a link before it applies "..".
func (p *pathResolver) resolveLinksBeforeParents(path string) string {
	abs := p.absolutePathFromCurrentDir(path)
	if hasParentReference(path) {
		if walked := p.resolveParentReferences(path); p.resolveLinks(walked) != p.resolveLinks(abs) {
			return walked
		}
	}
	return abs
}

func (p *pathResolver) absolutePathFrom(dir, path string) string {
	if rest, found := strings.CutPrefix(path+"/", "~/"); found && p.home != "" {
		path = filepath.Join(p.home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// isInWorkingDir reports whether path is in a working directory. With Options.FileSystem, it resolves links in both.
func (p *pathResolver) isInWorkingDir(path string) bool {
	path = p.resolveLinks(path)
	return slices.ContainsFunc(p.workingDirs, func(dir string) bool { return isAtOrBelow(p.resolveLinks(dir), path) })
}

func (p *pathResolver) resolveLinks(path string) string {
	if p.fileSystem == nil {
		return path
	}
	return p.fileSystem.Resolve(path)
}

func isAtOrBelow(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
