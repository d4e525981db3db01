package match

import (
	"regexp"
	"strings"
)

// CompileGitignore converts a .gitignore pattern to an expression for slash-separated paths relative to the directory
// of the .gitignore file. A pattern also matches everything below a directory that it matches. A pattern without an
// inner slash matches at every depth.
func CompileGitignore(pattern string) (*regexp.Regexp, error) {
	if base := strings.TrimSuffix(pattern, "/**"); strings.Trim(base, "/") != "" {
		pattern = base // the directory itself also matches its content
	}
	anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
	pattern = strings.Trim(pattern, "/")
	var b strings.Builder
	b.WriteString(`(?s)^`)
	if !anchored {
		b.WriteString(`(?:.*/)?`)
	}
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			i++
		case rest[0] == '*':
			b.WriteString(`[^/]*`)
		case rest[0] == '?':
			b.WriteString(`[^/]`)
		case rest[0] == '\\' && len(rest) > 1:
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case rest[0] == '[' && strings.Contains(rest[1:], "]"):
			class := rest[:strings.Index(rest[1:], "]")+2]
			i += len(class) - 1
			b.WriteString(strings.Replace(class, "[!", "[^", 1))
		default:
			b.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	b.WriteString(`(?:/.*)?$`)
	return regexp.Compile(b.String())
}
