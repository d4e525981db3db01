package files

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const maxSearchedFileBytes = 64 << 20 // larger files are not searched

type fileMatches struct {
	fileWithModificationTime
	lines []string
	hits  []matchedLine
}

type matchedLine struct {
	number int      // line number, from 0
	parts  []string // the matching parts of the line, for -o
	count  int      // number of matches that begin in this line
}

// searchAllFiles searches the files below root, except those that ignore files exclude. A glob that names a file overrules them.
func (s *grepSearch) searchAllFiles(ctx context.Context) ([]fileMatches, error) {
	var found []fileMatches
	rules := map[string]ignoreRules{filepath.Dir(s.root): ignoreRulesOf(filepath.Dir(s.root))} // by directory
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		isSkipped := path != s.root && (s.finder.options.Access.IsReadDenied(path) || rules[dir].ignores(path, err == nil && d.IsDir()) && !s.isNamedByGlob(path))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // unreadable files do not match
		case d.IsDir():
			if isSkipped || path != s.root && isVersionControlDir(d.Name()) {
				return fs.SkipDir
			}
			rules[path] = rules[dir].withRulesIn(path)
			return nil
		case isSkipped, path != s.root && (!d.Type().IsRegular() || !s.matchesFilters(path)):
			return nil
		}
		if m, ok := s.searchFile(path); ok {
			found = append(found, m)
		}
		return nil
	})
	return found, err
}

func (s *grepSearch) matchesFilters(p string) bool {
	rel := s.pathBelowRoot(p)
	if slices.ContainsFunc(s.filters, func(f string) bool { return !matchIgnoreStyleGlob(f, rel) }) {
		return false
	}
	isPositive := false
	for _, g := range splitGlobList(s.Glob) {
		negated, ok := strings.CutPrefix(g, "!")
		if ok && matchIgnoreStyleGlob(negated, rel) {
			return false
		}
		isPositive = isPositive || !ok
	}
	return !isPositive || s.isNamedByGlob(p)
}

// isNamedByGlob reports whether the parameter glob matches the path.
func (s *grepSearch) isNamedByGlob(p string) bool {
	rel := s.pathBelowRoot(p)
	return slices.ContainsFunc(splitGlobList(s.Glob), func(g string) bool { return g[0] != '!' && matchIgnoreStyleGlob(g, rel) })
}

func (s *grepSearch) pathBelowRoot(p string) string {
	return filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, s.root), string(filepath.Separator)))
}

func (s *grepSearch) searchFile(path string) (fileMatches, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSearchedFileBytes {
		return fileMatches{}, false
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 || bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 {
		return fileMatches{}, false
	}
	m := fileMatches{fileWithModificationTime: fileWithModificationTime{s.finder.relativePath(path), info.ModTime()}}
	content := strings.ReplaceAll(string(data), "\r\n", "\n")
	m.lines = strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	if s.Multiline {
		m.hits = s.searchMultiline(content, len(m.lines))
	} else {
		m.hits = s.searchLines(m.lines)
	}
	return m, len(m.hits) > 0
}

func (s *grepSearch) searchLines(lines []string) []matchedLine {
	var hits []matchedLine
	for i, l := range lines {
		if !s.pattern.MatchString(l) {
			continue
		}
		h := matchedLine{number: i, count: 1}
		if s.OnlyMatching {
			h.parts = s.pattern.FindAllString(l, -1)
		}
		hits = append(hits, h)
	}
	return hits
}

func (s *grepSearch) searchMultiline(content string, lineCount int) []matchedLine {
	var hits []matchedLine
	line, counted := 0, 0
	for _, m := range s.pattern.FindAllStringIndex(content, -1) {
		line += strings.Count(content[counted:m[0]], "\n")
		counted = m[0]
		for i, part := range strings.Split(strings.TrimSuffix(content[m[0]:m[1]], "\n"), "\n") {
			n := line + i
			if n >= lineCount {
				break
			}
			if len(hits) == 0 || hits[len(hits)-1].number != n {
				hits = append(hits, matchedLine{number: n})
			}
			h := &hits[len(hits)-1]
			h.parts = append(h.parts, part)
			if i == 0 {
				h.count++
			}
		}
	}
	return hits
}

// The files that list which files Grep skips, those that take precedence last. The first two apply only in a git repository.
const ignoreFileNames, gitIgnoreFiles = ".git/info/exclude .gitignore .ignore .rgignore", 2

// ignoreRule is a line of an ignore file. Its pattern applies to paths relative to dir, the directory of the file.
type ignoreRule struct {
	fileIndex              int // index in ignoreFileNames
	dir, pattern           string
	isNegated, isOnlyOfDir bool
}

// ignoreRules are the rules for the content of a directory. The last rule that matches decides.
type ignoreRules struct {
	inRepository bool
	rules        []ignoreRule
}

func ignoreRulesOf(dir string) ignoreRules {
	var outer ignoreRules
	if parent := filepath.Dir(dir); parent != dir {
		outer = ignoreRulesOf(parent)
	}
	return outer.withRulesIn(dir)
}

// withRulesIn returns the rules for the content of dir, given those for the content of its parent. At the root of a repository, the
// .gitignore files above it no longer apply.
func (r ignoreRules) withRulesIn(dir string) ignoreRules {
	r.rules = slices.Clone(r.rules)
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		r.inRepository = true
		r.rules = slices.DeleteFunc(r.rules, func(x ignoreRule) bool { return x.fileIndex < gitIgnoreFiles })
	}
	for i, name := range strings.Fields(ignoreFileNames) {
		if i < gitIgnoreFiles && !r.inRepository {
			continue
		}
		text, _ := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))) // a missing file has no rules
		for line := range strings.Lines(string(text)) {
			rule := ignoreRule{fileIndex: i, dir: dir}
			line, rule.isNegated = strings.CutPrefix(strings.TrimRight(line, " \r\n"), "!")
			rule.pattern, rule.isOnlyOfDir = strings.CutSuffix(line, "/")
			if line != "" && line[0] != '#' {
				r.rules = append(r.rules, rule)
			}
		}
	}
	slices.SortStableFunc(r.rules, func(a, b ignoreRule) int { return cmp.Compare(a.fileIndex, b.fileIndex) })
	return r
}

func (r ignoreRules) ignores(path string, isDir bool) bool {
	for _, rule := range slices.Backward(r.rules) {
		if rel, err := filepath.Rel(rule.dir, path); err == nil && (isDir || !rule.isOnlyOfDir) && matchIgnoreStyleGlob(rule.pattern, filepath.ToSlash(rel)) {
			return !rule.isNegated
		}
	}
	return false
}
