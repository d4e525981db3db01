package files

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const maxGlobResults = 100

type globInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

type globOutput struct {
	Filenames       []string `json:"filenames"`
	DurationMS      int64    `json:"durationMs"`
	NumFiles        int      `json:"numFiles"`
	Truncated       bool     `json:"truncated"`
	TotalMatches    int      `json:"totalMatches"`
	CountIsComplete bool     `json:"countIsComplete"`
}

// Glob returns the tool that finds files by name.
func Glob(f *Finder) tool.Tool {
	return tool.Tool{
		Name: "Glob",
		Run:  tool.TypedRun(f, runGlobOldestFirst),
	}
}

func runGlobOldestFirst(ctx context.Context, f *Finder, in globInput) protocol.ToolResult {
	start := f.options.Clock.Now()
	root, refusal := f.resolveSearchDirectory(in.Path)
	if refusal != nil {
		return *refusal
	}
	pattern, negated := strings.CutPrefix(filepath.ToSlash(in.Pattern), "!")
	switch {
	case filepath.IsAbs(in.Pattern):
		var base string
		base, pattern = doublestar.SplitPattern(pattern)
		root = filepath.FromSlash(base)
	case pattern == "", pattern == "**": // these patterns match every file
		pattern = "**"
	case !strings.Contains(pattern, "/"):
		pattern = "**/" + pattern
	}
	if strings.HasPrefix(pattern, "./") {
		return noMatchesResult(f, start) // the pattern is compared with paths that do not begin with ./
	}
	if !doublestar.ValidatePattern(pattern) {
		return invalidGlobResult(in.Pattern)
	}
	walked := pattern
	if negated {
		walked = "**"
	}
	found, err := globFiles(ctx, root, walked)
	switch {
	case ctx.Err() != nil:
		return executor.InterruptedResult()
	case err != nil:
		return tool.Fail("%v", err)
	}
	found = slices.DeleteFunc(found, func(d fileWithModificationTime) bool {
		return f.options.Access.IsReadDenied(filepath.Join(root, filepath.FromSlash(d.name))) || negated && doublestar.MatchUnvalidated(pattern, d.name)
	})
	found.sortNewestFirstThenByName()
	slices.Reverse(found)
	out := globOutput{Filenames: []string{}, TotalMatches: len(found), CountIsComplete: true, Truncated: len(found) > maxGlobResults, DurationMS: f.options.Clock.Now().Sub(start).Milliseconds()}
	for _, d := range found[:min(len(found), maxGlobResults)] {
		out.Filenames = append(out.Filenames, f.relativePath(filepath.Join(root, filepath.FromSlash(d.name))))
	}
	out.NumFiles = len(out.Filenames)
	if out.NumFiles == 0 {
		return noMatchesResult(f, start)
	}
	lines := out.Filenames
	if out.Truncated {
		lines = append(slices.Clone(lines), "(Results are truncated. Consider using a more specific path or pattern.)")
	}
	return tool.TextResult(strings.Join(lines, "\n"), out)
}

func noMatchesResult(f *Finder, start time.Time) protocol.ToolResult {
	return tool.TextResult("No files found", globOutput{Filenames: []string{}, CountIsComplete: true, DurationMS: f.options.Clock.Now().Sub(start).Milliseconds()})
}

func globFiles(ctx context.Context, root, pattern string) (filesWithModificationTimes, error) {
	var found filesWithModificationTimes
	err := doublestar.GlobWalk(os.DirFS(root), pattern, func(name string, d fs.DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if slices.ContainsFunc(strings.Split(name, "/"), isVersionControlDir) && !strings.Contains(pattern, ".git") {
			return nil
		}
		f := fileWithModificationTime{name: name}
		if info, err := d.Info(); err == nil {
			f.mtime = info.ModTime()
		}
		found = append(found, f)
		return nil
	}, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	return found, err
}

type fileWithModificationTime struct {
	name  string
	mtime time.Time
}

type filesWithModificationTimes []fileWithModificationTime

func (ds filesWithModificationTimes) sortNewestFirstThenByName() {
	slices.SortFunc(ds, func(a, b fileWithModificationTime) int {
		return cmp.Or(b.mtime.Compare(a.mtime), strings.Compare(a.name, b.name))
	})
}
