package files

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
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

func (s *grepSearch) searchAllFiles(ctx context.Context) ([]fileMatches, error) {
	var found []fileMatches
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // unreadable files do not match
		case d.IsDir():
			if path != s.root && (isVersionControlDir(d.Name()) || s.finder.options.Access.IsHidden(path)) {
				return fs.SkipDir
			}
			return nil
		case path != s.root && (!d.Type().IsRegular() || !s.matchesFilters(path) || s.finder.options.Access.IsHidden(path)):
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
	rel, err := filepath.Rel(s.root, p)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	for _, f := range s.filters {
		if !matchIgnoreStyleGlob(f, rel) {
			return false
		}
	}
	positive, matched := false, false
	for _, g := range splitGlobList(s.Glob) {
		if negated, ok := strings.CutPrefix(g, "!"); ok {
			if matchIgnoreStyleGlob(negated, rel) {
				return false
			}
			continue
		}
		positive = true
		matched = matched || matchIgnoreStyleGlob(g, rel)
	}
	return matched || !positive
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
