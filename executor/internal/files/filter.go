package files

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

func isRepository(name string) bool {
	return slices.Contains([]string{".git", ".svn", ".hg", ".bzr", ".jj", ".sl"}, name)
}

// splitGlobs splits a list of patterns at spaces, and at commas outside braces.
func splitGlobs(list string) []string {
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

// matchGlob matches as ignore files do: a pattern without a slash matches at every depth.
func matchGlob(pattern, rel string) bool {
	name := rel
	if !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") {
		name = path.Base(rel)
	}
	ok, err := doublestar.Match(strings.TrimPrefix(pattern, "/"), name)
	return ok && err == nil
}

// fileType returns the file patterns of a type; nil means unknown.
func fileType(name string) []string {
	if slices.Contains(strings.Fields("go java lua sql swift css csv dart zig txt toml proto json php"), name) {
		return []string{"*." + name}
	}
	for _, kind := range [...][2]string{
		{"js", "*.js *.jsx *.mjs *.cjs *.vue"},
		{"ts typescript", "*.ts *.tsx *.mts *.cts"},
		{"py python", "*.py *.pyi"},
		{"rust", "*.rs"},
		{"c", "*.c *.h"},
		{"cpp", "*.cpp *.cc *.cxx *.hpp *.hh *.hxx *.h *.inl"},
		{"md markdown", "*.md *.markdown *.mdx"},
		{"yaml", "*.yaml *.yml"},
		{"html", "*.html *.htm"},
		{"xml", "*.xml *.xsd *.xsl *.svg"},
		{"sh", "*.sh *.bash *.zsh .bashrc .profile .zshrc"},
		{"ruby", "*.rb *.gemspec Gemfile Rakefile"},
		{"kotlin", "*.kt *.kts"},
		{"csharp cs", "*.cs"},
	} {
		if slices.Contains(strings.Fields(kind[0]), name) {
			return strings.Fields(kind[1])
		}
	}
	return nil
}
