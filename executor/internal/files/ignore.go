package files

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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
