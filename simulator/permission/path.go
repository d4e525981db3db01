package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// abs makes a path of an option absolute and clean.
func (p *Policy) abs(path string) string { return p.from(p.opts.CWD, path) }

// callPath makes a path of a call absolute and clean.
func (p *Policy) callPath(path string) string {
	if p.opts.Dir == nil {
		return p.abs(path)
	}
	return p.from(p.opts.Dir(), path)
}

// reached is where a path of a command line leads: the shell follows a link
// before it steps back over it, so that what lies behind it is meant.
func (p *Policy) reached(path string) string {
	abs := p.callPath(path)
	if stepsBack(path) {
		if walked := p.walked(path); p.resolve(walked) != p.resolve(abs) {
			return walked
		}
	}
	return abs
}

func (p *Policy) from(dir, path string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found && p.opts.Home != "" {
		path = filepath.Join(p.opts.Home, rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// Readable tells whether a file may be read because of where it lies: inside, or
// where a rule about paths allows it. What a mode or a rule about the whole tool
// allows does not count, but for bypassPermissions (observed with 2.1.329).
func (p *Policy) Readable(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	abs := p.callPath(path)
	if p.mode == protocol.ModeBypass || p.inside(abs) {
		return true
	}
	return slices.ContainsFunc([]string{"Read", "Edit"}, func(tool string) bool {
		file := &call{policy: p, name: tool, kind: kindOf(tool), path: abs}
		return slices.ContainsFunc(p.rules, func(r rule) bool {
			return r.Behavior == BehaviorAllow && r.content != "" && r.matches(file)
		})
	})
}

// Hidden tells whether a deny rule keeps a file from being read.
func (p *Policy) Hidden(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.deniesPaths() && p.byRule(BehaviorDeny, "Read", p.callPath(path))
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
	if base := strings.TrimSuffix(pattern, "/**"); strings.Trim(base, "/") != "" {
		pattern = base // a directory itself is among what is below it
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

// sensitive asks about a file that configures what runs by itself: a mode or a
// rule that allows edits does not reach it. Nil = it is none.
func (c *call) sensitive(abs string) *question {
	ask := func(message string) *question {
		return &question{message: message, reasonType: "safetyCheck", reason: message, blocked: abs, safety: protocol.SafetySensitive}
	}
	if strings.HasSuffix(abs, "...") || strings.Contains(abs, ".../") {
		q := ask("Claude requested permissions to write to " + abs + ", which contains a suspicious Windows path pattern that requires manual approval.")
		q.safety = protocol.SafetyDangerous
		return q
	}
	parts := strings.Split(strings.ToLower(abs), "/")
	for i, part := range parts {
		below := parts[i+1:]
		switch {
		case part == ".claude":
			if len(below) > 0 && below[0] == "worktrees" {
				continue
			}
			if ownSettings(below) {
				return ask("Claude requested permissions to write to " + abs + ", but you haven't granted it yet.")
			}
			return ask(sensitiveFile(abs))
		case sensitiveDirectory(part), part == ".config" && len(below) > 0 && below[0] == "git", len(below) == 0 && sensitiveName(part):
			return ask(sensitiveFile(abs))
		}
	}
	return nil
}

func sensitiveFile(abs string) string {
	return "Claude requested permissions to edit " + abs + " which is a sensitive file."
}

// ownSettings tells whether this is a part of .claude that the CLI itself
// reads.
func ownSettings(below []string) bool {
	if len(below) == 0 {
		return true
	}
	switch below[0] {
	case "settings.json", "settings.local.json":
		return len(below) == 1
	case "commands", "agents", "skills":
		return true
	}
	return false
}

func sensitiveDirectory(name string) bool {
	switch name {
	case ".git", ".vscode", ".idea", ".husky", ".devcontainer", ".cargo", ".yarn":
		return true
	}
	return false
}

func sensitiveName(name string) bool {
	switch name {
	case ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout", ".profile", ".ripgreprc", ".mcp.json", ".claude.json",
		".envrc", ".npmrc", ".yarnrc", ".bazelrc", ".pre-commit-config.yaml", "pyrightconfig.json":
		return true
	}
	return false
}
