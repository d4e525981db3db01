package builtin

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

const maxGlobbed = 100 // files shown

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

func globTool() tool {
	return tool{
		name: "Glob", readOnly: true,
		description: "Finds files by a pattern such as **/*.go; the oldest come first.",
		input: object(
			req("pattern", str("The pattern; without a slash it is looked for at every depth")),
			opt("path", str("Directory to look in (default the working directory)")),
		),
		check: typedCheck(func(t *Tools, in globInput) *protocol.ToolResult {
			_, refusal := t.directory(in.Path)
			return refusal
		}),
		run: typed(glob),
	}
}

// directory checks the optional directory of a search.
func (t *Tools) directory(path string) (string, *protocol.ToolResult) {
	dir := t.path(path)
	info, err := os.Stat(dir)
	var r protocol.ToolResult
	switch {
	case err != nil:
		r = refuse("Directory does not exist: %s. Note: your current working directory is %s.", path, t.Dir())
	case !info.IsDir():
		r = refuse("Path is not a directory: %s", path)
	default:
		return dir, nil
	}
	return dir, &r
}

// hidden tells whether searches pass a file over.
func (t *Tools) hidden(path string) bool { return t.o.Hidden != nil && t.o.Hidden(path) }

// rejected is the result of a search that its pattern keeps from beginning.
func rejected(format string, args ...any) protocol.ToolResult {
	return fail("Search failed — ripgrep rejected the pattern, glob, or file type without searching:\nrg: "+format, args...)
}

// badGlob words what is wrong with a pattern of file names.
func badGlob(pattern string) protocol.ToolResult {
	why := "unclosed character class; missing ']'"
	if strings.Count(pattern, "{") > strings.Count(pattern, "}") {
		why = "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"
	}
	return rejected("error parsing glob '%s': %s", pattern, why)
}

func glob(ctx context.Context, t *Tools, in globInput) protocol.ToolResult {
	start := t.o.Now()
	root, refusal := t.directory(in.Path)
	if refusal != nil {
		return *refusal
	}
	pattern := filepath.ToSlash(in.Pattern)
	switch {
	case filepath.IsAbs(in.Pattern):
		var base string
		base, pattern = doublestar.SplitPattern(pattern)
		root = filepath.FromSlash(base)
	case !strings.Contains(pattern, "/"):
		pattern = "**/" + pattern
	default:
		pattern = strings.TrimPrefix(pattern, "./")
	}
	if !doublestar.ValidatePattern(pattern) {
		return badGlob(in.Pattern)
	}
	found, err := globFiles(ctx, root, pattern)
	switch {
	case ctx.Err() != nil:
		return executor.Interrupted()
	case err != nil:
		return fail("%v", err)
	}
	found = slices.DeleteFunc(found, func(f dated) bool { return t.hidden(filepath.Join(root, filepath.FromSlash(f.name))) })
	found.sort()
	slices.Reverse(found)
	out := globOutput{
		Filenames: []string{}, TotalMatches: len(found), CountIsComplete: true,
		Truncated: len(found) > maxGlobbed, DurationMS: t.o.Now().Sub(start).Milliseconds(),
	}
	for _, f := range found[:min(len(found), maxGlobbed)] {
		out.Filenames = append(out.Filenames, t.relative(filepath.Join(root, filepath.FromSlash(f.name))))
	}
	out.NumFiles = len(out.Filenames)
	if out.NumFiles == 0 {
		return text("No files found", out)
	}
	lines := out.Filenames
	if out.Truncated {
		lines = append(slices.Clone(lines), "(Results are truncated. Consider using a more specific path or pattern.)")
	}
	return text(strings.Join(lines, "\n"), out)
}

// dated is a file with the time of its last change.
type dated struct {
	name  string
	mtime time.Time
}

type datedFiles []dated

// sort puts the newest first, files of one age by name.
func (ds datedFiles) sort() {
	slices.SortFunc(ds, func(a, b dated) int {
		return cmp.Or(b.mtime.Compare(a.mtime), strings.Compare(a.name, b.name))
	})
}

func globFiles(ctx context.Context, root, pattern string) (datedFiles, error) {
	var found datedFiles
	err := doublestar.GlobWalk(os.DirFS(root), pattern, func(name string, d fs.DirEntry) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if inRepository(name) && !strings.Contains(pattern, ".git") {
			return nil
		}
		f := dated{name: name}
		if info, err := d.Info(); err == nil {
			f.mtime = info.ModTime()
		}
		found = append(found, f)
		return nil
	}, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
	return found, err
}

// inRepository says that the path leads through a version control directory.
func inRepository(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), isRepository)
}

func isRepository(name string) bool {
	switch name {
	case ".git", ".svn", ".hg", ".bzr", ".jj", ".sl":
		return true
	}
	return false
}

// relative shortens a path below the working directory.
func (t *Tools) relative(path string) string {
	if rel, err := filepath.Rel(t.Dir(), path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

// globs splits a list of patterns at spaces, and at commas outside braces.
func globs(list string) []string {
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

// matchGlob matches as ignore files do: without a slash at every depth.
func matchGlob(pattern, rel string) bool {
	name := rel
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		name = path.Base(rel)
	}
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), name)
	return ok && err == nil
}

// fileType names the files of a kind, nil = unknown.
func fileType(name string) []string {
	switch name {
	case "go", "java", "lua", "sql", "swift", "css", "csv", "dart", "zig", "txt", "toml", "proto":
		return []string{"*." + name}
	case "js":
		return []string{"*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"}
	case "ts", "typescript":
		return []string{"*.ts", "*.tsx", "*.mts", "*.cts"}
	case "py", "python":
		return []string{"*.py", "*.pyi"}
	case "rust":
		return []string{"*.rs"}
	case "c":
		return []string{"*.c", "*.h"}
	case "cpp":
		return []string{"*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.h", "*.inl"}
	case "md", "markdown":
		return []string{"*.md", "*.markdown", "*.mdx"}
	case "json":
		return []string{"*.json"}
	case "yaml":
		return []string{"*.yaml", "*.yml"}
	case "html":
		return []string{"*.html", "*.htm"}
	case "xml":
		return []string{"*.xml", "*.xsd", "*.xsl", "*.svg"}
	case "sh":
		return []string{"*.sh", "*.bash", "*.zsh", ".bashrc", ".profile", ".zshrc"}
	case "ruby":
		return []string{"*.rb", "*.gemspec", "Gemfile", "Rakefile"}
	case "php":
		return []string{"*.php"}
	case "kotlin":
		return []string{"*.kt", "*.kts"}
	case "csharp", "cs":
		return []string{"*.cs"}
	}
	return nil
}
