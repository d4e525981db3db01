package catalog

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/match"
)

// InstructionFileOptions specify where to find instruction files.
type InstructionFileOptions struct {
	UserDir string // the state directory; empty means that the user has no instruction files
	CWD     string // absolute
	Home    string // home directory for ~; empty means ~ is not expanded
	// Project includes the files of the project, and Local the user's private files for the project.
	Project, Local bool
	AddedDirs      []string // other directories; their instruction files are read at the start, in the same way as the project's
	Excludes       []any    // patterns (strings) of absolute paths (claudeMdExcludes in settings) whose files are left out, with their imports
	AgentsMD       bool     // AGENTS.md files are read, too
}

// InstructionFile is a file with instructions for the model, such as CLAUDE.md or a rule.
type InstructionFile struct {
	Path       string
	Type       string   // "User", "Project" or "Local"
	Parent     string   // file that imports this file; empty means none
	Text       string   // content without front matter and comments
	Raw        string   // the whole file, with front matter and comments; empty means the same as Text
	Rule       bool     // the file is in a rules directory
	IsAgentsMD bool     // true for an AGENTS.md file and its imports; no InstructionsLoaded hook runs for them
	Globs      []string // patterns (as in .gitignore) of the paths below Base to which the file applies; nil means always
	Base       string
}

// HeadingInModelContext returns the heading that precedes the text of a file in the model's context.
func (m InstructionFile) HeadingInModelContext() string {
	about := map[string]string{
		"User":    "user's private global instructions for all projects",
		"Project": "project instructions, checked into the codebase",
		"Local":   "user's private project instructions, not checked in",
	}
	return "Contents of " + m.Path + " (" + about[m.Type] + "):"
}

// FindInstructionFilesAtStart finds the instruction files at the start of a session: the user's, then the project's from the
// root down to the working directory, then those of the added directories, each file followed by its imports. If no CLAUDE.md file
// applies to the working directory, AGENTS.md files do (observed with 2.1.330).
func FindInstructionFilesAtStart(o InstructionFileOptions) []InstructionFile {
	r := &instructionFileReader{options: o, seen: map[string]bool{}}
	if o.UserDir != "" {
		r.readFileAndImports(InstructionFile{Path: filepath.Join(o.UserDir, "CLAUDE.md"), Type: "User", Base: o.CWD}, 0)
		r.readRuleFilesBelow(filepath.Join(o.UserDir, "rules"), "User", o.CWD)
	}
	for _, dir := range slices.Concat(dirsFromRoot(o.CWD), o.AddedDirs) {
		r.readFromDirAndDotClaude(dir, "CLAUDE.md")
		r.readProjectRules(dir)
		r.readClaudeLocalFileIfEnabled(dir)
	}
	if !r.hasReadClaudeFileIn(dirsFromRoot(o.CWD)...) {
		for _, dir := range dirsFromRoot(o.CWD) {
			r.readFromDirAndDotClaude(dir, "AGENTS.md")
		}
	}
	return r.filesRead
}

// FindInstructionFilesForAccess finds the instruction files that apply once the model has read or written file (observed with
// 2.1.329). Their order: the user's rules that match file; the instruction files and matching rules of each directory between
// the working directory and file; matching rules of the working directory and its parents. Files in known are omitted.
func FindInstructionFilesForAccess(o InstructionFileOptions, accessedFile string, known map[string]bool) []InstructionFile {
	r := &instructionFileReader{options: o, seen: maps.Clone(known), accessedFile: accessedFile}
	if o.UserDir != "" {
		r.readRuleFilesBelow(filepath.Join(o.UserDir, "rules"), "User", o.CWD)
	}
	outer := dirsFromRoot(o.CWD)
	if isBelow(o.CWD, accessedFile) {
		for _, dir := range dirsFromRoot(filepath.Dir(accessedFile))[len(outer):] {
			r.accessedFile = ""
			r.readFromDirAndDotClaude(dir, "CLAUDE.md")
			r.readClaudeLocalFileIfEnabled(dir)
			r.readProjectRules(dir)
			if !r.hasReadClaudeFileIn(append(outer, dir)...) {
				r.readFromDirAndDotClaude(dir, "AGENTS.md")
			}
			r.accessedFile = accessedFile
			r.readProjectRules(dir)
		}
	}
	for _, dir := range outer {
		r.readProjectRules(dir)
	}
	return r.filesRead
}

// readFromDirAndDotClaude reads the file of a directory and that in .claude. The name is CLAUDE.md or AGENTS.md.
func (r *instructionFileReader) readFromDirAndDotClaude(dir, name string) {
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, ".claude", name)} {
		if r.options.Project && (r.options.AgentsMD || name != "AGENTS.md") {
			r.readFileAndImports(InstructionFile{Path: path, Type: "Project", Base: dir, IsAgentsMD: name == "AGENTS.md"}, 0)
		}
	}
}

func (r *instructionFileReader) readClaudeLocalFileIfEnabled(dir string) {
	if r.options.Local {
		r.readFileAndImports(InstructionFile{Path: filepath.Join(dir, "CLAUDE.local.md"), Type: "Local", Base: dir}, 0)
	}
}

func (r *instructionFileReader) hasReadClaudeFileIn(dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return r.seen[filepath.Join(dir, "CLAUDE.md")] || r.seen[filepath.Join(dir, ".claude", "CLAUDE.md")] || r.seen[filepath.Join(dir, "CLAUDE.local.md")]
	})
}

func (r *instructionFileReader) readProjectRules(dir string) {
	if r.options.Project {
		r.readRuleFilesBelow(filepath.Join(dir, ".claude", "rules"), "Project", dir)
	}
}

// isBelow reports whether file is inside dir, at any depth. It returns false if file is dir itself.
func isBelow(dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// isInMainAboveLinkedWorktree reports whether dir is in the main worktree and contains the linked worktree of cwd.
func isInMainAboveLinkedWorktree(dir, cwd string) bool {
	top := gitworktree.NearestDirectoryWithDotGit(cwd)
	main := gitworktree.MainTopOfLinkedWorktree(top)
	return main != "" && isBelow(dir, top) && (dir == main || isBelow(main, dir))
}

func dirsFromRoot(dir string) []string {
	var dirs []string
	for {
		dirs = append(dirs, dir)
		up := filepath.Dir(dir)
		if up == dir {
			slices.Reverse(dirs)
			return dirs
		}
		dir = up
	}
}

const (
	maxImportDepth          = 5
	maxInstructionFileBytes = 1 << 20 // maximum size of a file in bytes; longer files are omitted
)

// instructionFileReader reads each file once, in the order in which the model receives the files.
type instructionFileReader struct {
	options      InstructionFileOptions
	seen         map[string]bool
	accessedFile string // only files whose Globs match this path are read; empty means files without Globs
	filesRead    []InstructionFile
}

// readFileAndImports reads one file and then its imports. The path, type, parent and base of m must be set.
func (r *instructionFileReader) readFileAndImports(m InstructionFile, depth int) {
	if r.seen[m.Path] || depth > maxImportDepth || slices.ContainsFunc(r.options.Excludes, func(pattern any) bool { return isExcludedBy(fmt.Sprint(pattern), m.Path) }) {
		return
	}
	info, err := os.Stat(m.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxInstructionFileBytes {
		return
	}
	data, err := os.ReadFile(m.Path)
	if err != nil || m.Type == "Project" && m.Parent == "" && isBelow(m.Base, r.options.CWD) && isInMainAboveLinkedWorktree(m.Base, r.options.CWD) {
		return
	}
	d := parseDocument(data)
	if m.Text = htmlCommentPattern().ReplaceAllString(d.body, ""); strings.TrimSpace(m.Text) == "" {
		return
	}
	if m.Rule {
		m.Globs = pathGlobs(d)
	}
	if raw := string(data); raw != m.Text {
		m.Raw = raw
	}
	isCopy := m.IsAgentsMD && slices.ContainsFunc(r.filesRead, func(f InstructionFile) bool {
		return !f.IsAgentsMD && strings.TrimSpace(f.Text) == strings.TrimSpace(m.Text)
	})
	if isCopy || m.Parent == "" && !r.appliesAtStartOrToAccessedFile(m) {
		return
	}
	r.seen[m.Path] = true
	r.filesRead = append(r.filesRead, m)
	realPath, err := filepath.EvalSymlinks(m.Path) // imports are relative to the target of a symbolic link
	if err != nil {
		return
	}
	for _, name := range importedFiles(m.Text) {
		if target := r.resolveImport(name, filepath.Dir(realPath)); target != "" && (m.Type == "User" || isBelow(r.options.CWD, target)) { // imports from outside the project need approval
			r.readFileAndImports(InstructionFile{Path: target, Type: m.Type, Parent: m.Path, Base: m.Base, IsAgentsMD: m.IsAgentsMD}, depth+1)
		}
	}
}

// isExcludedBy matches a pattern of claudeMdExcludes, which begins with "!" if it excludes all other files.
func isExcludedBy(pattern, path string) bool {
	pattern, isNegated := strings.CutPrefix(pattern, "!")
	return doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path)) != isNegated
}

func (r *instructionFileReader) appliesAtStartOrToAccessedFile(m InstructionFile) bool {
	if r.accessedFile == "" || m.Globs == nil {
		return r.accessedFile == "" && m.Globs == nil
	}
	return matchesAnyPathGlob(m.Globs, m.Base, r.accessedFile)
}

// matchesAnyPathGlob reports whether file is below dir and one of the patterns of [pathGlobs] matches it.
func matchesAnyPathGlob(globs []string, dir, file string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel) && slices.ContainsFunc(globs, func(pattern string) bool {
		if strings.HasPrefix(pattern, "!") || strings.HasPrefix(pattern, "./") {
			return false
		}
		glob, err := match.CompileGitignore(pattern)
		return err == nil && glob.MatchString(filepath.ToSlash(rel))
	})
}

// pathGlobs returns the patterns of the paths to which a file applies, with braces expanded; nil means all paths.
func pathGlobs(d markdownDocument) (globs []string) {
	var all []string
	given := d.commaListOfKey("paths")
	if text, ok := d.frontMatter["paths"].(string); ok {
		given = splitAtCommasOutsideBraces(text)
	}
	for _, pattern := range given {
		for _, glob := range expandBraces(pattern) {
			if base := strings.TrimSuffix(glob, "/**"); base != "" {
				glob = base
			}
			all = append(all, glob)
		}
	}
	if !slices.ContainsFunc(all, func(glob string) bool { return glob != "**" }) {
		return nil
	}
	return all
}

func splitAtCommasOutsideBraces(text string) []string {
	depth := 0
	return slices.DeleteFunc(strings.FieldsFunc(text, func(c rune) bool {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		return c == ',' && depth <= 0
	}), func(part string) bool { return strings.TrimSpace(part) == "" })
}

const maxBracePatterns = 1000

func expandBraces(pattern string) []string {
	all := []string{strings.TrimSpace(pattern)}
	for i := 0; i < len(all) && len(all) < maxBracePatterns; {
		end := strings.IndexByte(all[i], '}')
		start := -1
		if end >= 0 {
			start = strings.LastIndexByte(all[i][:end], '{')
		}
		if start < 0 {
			i++
			continue
		}
		var parts []string
		for part := range strings.SplitSeq(all[i][start+1:end], ",") {
			parts = append(parts, all[i][:start]+strings.TrimSpace(part)+all[i][end+1:])
		}
		all = slices.Replace(all, i, i+1, parts...)
	}
	return all
}

func (r *instructionFileReader) readRuleFilesBelow(dir, instructionType, globBaseDir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			r.readFileAndImports(InstructionFile{Path: path, Type: instructionType, Rule: true, Base: globBaseDir}, 0)
		}
		return nil // unreadable files are skipped
	})
}

// resolveImport returns the path of an imported file; empty means none.
func (r *instructionFileReader) resolveImport(name, dir string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if r.options.Home == "" {
			return ""
		}
		return filepath.Join(r.options.Home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

var (
	htmlCommentPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)(?:^|\n)[ \t]*<!--.*?-->[ \t]*`) })
	markdownCodePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?s)(?:^|\n)[ \t]*```.*?(?:\n[ \t]*```|$)|`[^`\n]*`")
	})
	importPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@(\S+)`) })
)

// importedFiles returns the files that a text names with @, outside of code.
func importedFiles(text string) []string {
	var names []string
	for _, m := range importPattern().FindAllStringSubmatch(markdownCodePattern().ReplaceAllString(text, ""), -1) {
		names = append(names, strings.TrimRight(m[1], ".,;:!?)"))
	}
	return names
}
