package files

import (
	"cmp"
	_ "embed" // for file_types.txt
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/simulator/protocol"

	"github.com/bmatcuk/doublestar/v4"
)

type grepInput struct {
	Pattern      string                  `json:"pattern"`
	Path         string                  `json:"path"`
	Glob         string                  `json:"glob"`
	OutputMode   string                  `json:"output_mode"`
	Before       tool.IntFromJSONNumber  `json:"-B"`
	After        tool.IntFromJSONNumber  `json:"-A"`
	Around       tool.IntFromJSONNumber  `json:"-C"`
	Context      tool.IntFromJSONNumber  `json:"context"`
	Numbers      *bool                   `json:"-n"`
	IgnoreCase   bool                    `json:"-i"`
	OnlyMatching bool                    `json:"-o"`
	Type         string                  `json:"type"`
	HeadLimit    *tool.IntFromJSONNumber `json:"head_limit"`
	Offset       tool.IntFromJSONNumber  `json:"offset"`
	Multiline    bool                    `json:"multiline"`
}

type grepSearch struct {
	grepInput
	root       string
	singleFile bool // root is a file
	pattern    *regexp.Regexp
	filters    []string // globs; only files whose path matches all of them are searched
	finder     *Finder
}

func (f *Finder) refuseMissingPath(in grepInput) *protocol.ToolResult {
	path := f.options.Paths.Path(in.Path)
	if _, err := os.Stat(path); err != nil {
		return new(tool.Fail("Path does not exist: %s. %s", in.Path, workingDirectoryNoteWithSuggestion(f.options.Paths.Dir(), path)))
	}
	return nil
}

func (f *Finder) newGrepSearch(in grepInput) (*grepSearch, *protocol.ToolResult) {
	if refusal := f.refuseMissingPath(in); refusal != nil {
		return nil, refusal
	}
	s := &grepSearch{grepInput: in, root: f.options.Paths.Path(in.Path), finder: f}
	if info, err := os.Stat(s.root); err == nil {
		s.singleFile = !info.IsDir()
	}
	flags := ""
	if in.IgnoreCase {
		flags += "i"
	}
	if in.Multiline {
		flags += "ms"
	}
	var err error
	s.pattern, err = compilePattern(in.Pattern, flags)
	if fault := patternErrorTextOrEmpty(in.Pattern, err); fault != "" {
		return nil, new(invalidPatternResult("%s", fault))
	}
	for _, g := range splitGlobList(in.Glob) {
		if !doublestar.ValidatePattern(strings.TrimPrefix(g, "!")) {
			return nil, new(invalidGlobResult(g))
		}
	}
	if in.Type != "" {
		patterns := fileTypeGlobs(in.Type)
		if patterns == nil {
			return nil, new(invalidPatternResult("unrecognized file type: %s", in.Type))
		}
		s.filters = append(s.filters, "{"+strings.Join(patterns, ",")+"}")
	}
	return s, nil
}

func isVersionControlDir(name string) bool {
	return slices.Contains([]string{".git", ".svn", ".hg", ".bzr", ".jj", ".sl"}, name)
}

func splitGlobList(list string) []string {
	var out []string
	for word := range strings.FieldsSeq(list) {
		if strings.Contains(word, "{") {
			out = append(out, word)
			continue
		}
		out = append(out, strings.FieldsFunc(word, func(r rune) bool { return r == ',' })...)
	}
	return out
}

// matchIgnoreStyleGlob reports whether a glob matches a path by the rules of ignore files: a glob without a slash matches at any depth.
func matchIgnoreStyleGlob(pattern, rel string) bool {
	name := rel
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		name = path.Base(rel)
	}
	if strings.HasSuffix(pattern, "/**") {
		pattern += "/*" // the content of the directory, but not the directory
	}
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), name)
	return ok && err == nil
}

// fileTypeTable has rows of names of a ripgrep file type and its globs.
//
//go:embed file_types.txt
var fileTypeTable string

// fileTypeGlobs returns the globs of a ripgrep file type; nil means unknown.
func fileTypeGlobs(name string) []string {
	for row := range strings.Lines(fileTypeTable) {
		names, globs, _ := strings.Cut(row, "\t")
		if slices.Contains(strings.Fields(names), name) {
			return strings.Fields(globs)
		}
	}
	return nil
}

// DenyRuleSearchFilter reports which files a deny rule hides from searches.
type DenyRuleSearchFilter interface {
	IsReadDenied(path string) bool
}

// FinderOptions configure [NewFinder]. Paths and Clock are required.
type FinderOptions struct {
	Paths  *tool.Shell          // resolves paths relative to its working directory
	Clock  tool.ClockWithIDs    // measures the duration of searches
	Access DenyRuleSearchFilter // nil means nothing is hidden
}

// Finder searches files for a session. Many goroutines may call its methods.
type Finder struct{ options FinderOptions }

// NewFinder creates a Finder. It accesses no file.
func NewFinder(o FinderOptions) *Finder {
	o.Access = cmp.Or[DenyRuleSearchFilter](o.Access, noDenyRuleSearchFilter{})
	return &Finder{o}
}

type noDenyRuleSearchFilter struct{}

func (noDenyRuleSearchFilter) IsReadDenied(string) bool { return false }

// resolveSearchDirectory returns a search's directory (empty means the working directory), or a result that explains a refusal.
func (f *Finder) resolveSearchDirectory(path string) (string, *protocol.ToolResult) {
	dir := f.options.Paths.Path(path)
	info, err := os.Stat(dir)
	var r protocol.ToolResult
	switch {
	case err != nil:
		r = tool.Fail("Directory does not exist: %s. %s", path, workingDirectoryNoteWithSuggestion(f.options.Paths.Dir(), dir))
	case !info.IsDir():
		r = tool.Fail("Path is not a directory: %s", path)
	default:
		return dir, nil
	}
	return dir, &r
}

func (f *Finder) relativePath(path string) string {
	if rel, err := filepath.Rel(f.options.Paths.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

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
