package permission

import (
	"path/filepath"
	"regexp"
	"strings"
)

// abs makes a path of a call or an option absolute and clean.
func (p *Policy) abs(path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found && p.opts.Home != "" {
		path = filepath.Join(p.opts.Home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.opts.CWD, path)
	}
	return filepath.Clean(path)
}

// inside tells whether the path lies in a working directory. Symbolic links
// are followed on both sides when Options.Resolve is there.
func (p *Policy) inside(path string) bool {
	path = p.resolve(path)
	for _, dir := range p.dirs {
		if under(p.resolve(dir), path) {
			return true
		}
	}
	return false
}

func (p *Policy) resolve(path string) string {
	if p.opts.Resolve == nil {
		return path
	}
	return p.opts.Resolve(path)
}

func under(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// matchesPath matches the paths of a call against a path pattern, which means,
// by its start: "//x" an absolute path, "~/x" one in the home directory, "/x"
// one below the folder of the rule's settings, all else one below the working
// directory. From there on it is a gitignore pattern.
func (r *rule) matchesPath(c *call) bool {
	root := c.policy.opts.CWD
	switch {
	case r.glob == nil:
		return false
	case strings.HasPrefix(r.content, "//"):
		root = "/"
	case strings.HasPrefix(r.content, "~/"):
		root = c.policy.opts.Home
	case strings.HasPrefix(r.content, "/") && r.Root != "":
		root = r.Root
	}
	if root == "" {
		return false
	}
	for _, root := range []string{root, c.policy.resolve(root)} {
		for _, path := range []string{c.path, c.policy.resolve(c.path)} {
			if under(root, path) && r.glob.MatchString(strings.TrimPrefix(path[len(root):], "/")) {
				return true
			}
		}
	}
	return false
}

// compileGlob turns the gitignore part of a path pattern into an expression for slash-separated
// paths relative to its root. A pattern also matches all that lies below what
// it names; one without an inner slash matches at every depth.
func compileGlob(pattern string) (*regexp.Regexp, error) {
	pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "~"), "./")
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
