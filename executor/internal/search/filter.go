package search

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

func isRepository(name string) bool {
	return slices.Contains([]string{".git", ".svn", ".hg", ".bzr", ".jj", ".sl"}, name)
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
