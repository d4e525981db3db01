package files

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// SearchAccess reports whether a deny rule forbids reading a file.
type SearchAccess interface {
	IsHidden(path string) bool
}

// FinderOptions configure [NewFinder]. Paths and Clock are required.
type FinderOptions struct {
	Paths  *tool.Shell  // resolves paths relative to its working directory
	Clock  tool.Clock   // measures the duration of searches
	Access SearchAccess // nil means nothing is hidden
}

// Finder searches files for a session. Many goroutines may call its methods.
type Finder struct{ options FinderOptions }

// NewFinder creates a Finder. It accesses no file.
func NewFinder(o FinderOptions) *Finder {
	if o.Access == nil {
		o.Access = unrestrictedSearch{}
	}
	return &Finder{o}
}

type unrestrictedSearch struct{}

func (unrestrictedSearch) IsHidden(string) bool { return false }

// checkDirectory returns the directory of a search, or a result that explains why it cannot be searched. An empty path
// means the working directory.
func (f *Finder) checkDirectory(path string) (string, *protocol.ToolResult) {
	dir := f.options.Paths.Path(path)
	info, err := os.Stat(dir)
	var r protocol.ToolResult
	switch {
	case err != nil:
		r = tool.Fail("Directory does not exist: %s. Note: your current working directory is %s.", path, f.options.Paths.Dir())
	case !info.IsDir():
		r = tool.Fail("Path is not a directory: %s", path)
	default:
		return dir, nil
	}
	return dir, &r
}

// relativePath returns a path inside of the working directory relative to that directory, and other paths unchanged.
func (f *Finder) relativePath(path string) string {
	if rel, err := filepath.Rel(f.options.Paths.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// invalidPatternResult returns the result for a pattern that ripgrep would reject.
func invalidPatternResult(format string, args ...any) protocol.ToolResult {
	return tool.Fail("Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: "+format, args...)
}

func invalidGlobResult(pattern string) protocol.ToolResult {
	why := "unclosed character class; missing ']'"
	if strings.Count(pattern, "{") > strings.Count(pattern, "}") {
		why = "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"
	}
	return invalidPatternResult("error parsing glob '%s': %s", pattern, why)
}
