// Package search implements the tools that find files: Glob by name and Grep by
// content. Files hidden by a permission rule are left out of the results.
package search

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Where is what paths start from.
type Where interface {
	Dir() string
	// Path makes a path absolute.
	Path(string) string
}

// Access tells whether a deny rule keeps a file from being read.
type Access interface {
	Hidden(path string) bool
}

// Options says where to search. Where and Clock are required.
type Options struct {
	Where  Where
	Clock  tool.Clock // times searches
	Access Access     // nil = nothing is hidden
}

// Finder searches for a session. Its methods may be called from many
// goroutines.
type Finder struct{ o Options }

// New makes a finder. It touches no file.
func New(o Options) *Finder {
	if o.Access == nil {
		o.Access = open{}
	}
	return &Finder{o}
}

// open hides nothing.
type open struct{}

func (open) Hidden(string) bool { return false }

// directory checks the optional directory of a search.
func (f *Finder) directory(path string) (string, *protocol.ToolResult) {
	dir := f.o.Where.Path(path)
	info, err := os.Stat(dir)
	var r protocol.ToolResult
	switch {
	case err != nil:
		r = tool.Fail("Directory does not exist: %s. Note: your current working directory is %s.", path, f.o.Where.Dir())
	case !info.IsDir():
		r = tool.Fail("Path is not a directory: %s", path)
	default:
		return dir, nil
	}
	return dir, &r
}

// relative shortens a path below the working directory.
func (f *Finder) relative(path string) string {
	if rel, err := filepath.Rel(f.o.Where.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// rejected is the result of a search that its pattern keeps from beginning.
func rejected(format string, args ...any) protocol.ToolResult {
	return tool.Fail("Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: "+format, args...)
}

// badGlob words what is wrong with a pattern of file names.
func badGlob(pattern string) protocol.ToolResult {
	why := "unclosed character class; missing ']'"
	if strings.Count(pattern, "{") > strings.Count(pattern, "}") {
		why = "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"
	}
	return rejected("error parsing glob '%s': %s", pattern, why)
}
