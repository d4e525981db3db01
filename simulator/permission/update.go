package permission

import (
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Apply puts updates of a host into force, in order, and tells whether the
// mode is another one afterwards. Rules that do not parse and modes that may
// not be set are passed over, as are updates of an unknown type.
func (p *Policy) Apply(updates []protocol.PermissionUpdate) (modeChanged bool) {
	dirs := p.Directories()
	modeChanged = p.apply(updates)
	if now := p.Directories(); p.opts.OnDirectories != nil && !slices.Equal(dirs, now) {
		p.opts.OnDirectories(now)
	}
	return modeChanged
}

func (p *Policy) apply(updates []protocol.PermissionUpdate) (modeChanged bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.mode
	for _, u := range updates {
		switch u.Type {
		case "addRules":
			p.rules = append(p.rules, parseUpdate(u)...)
		case "replaceRules":
			p.rules = slices.DeleteFunc(p.rules, func(r rule) bool {
				return r.Behavior == u.Behavior && r.Source == destination(u)
			})
			p.rules = append(p.rules, parseUpdate(u)...)
		case "removeRules":
			gone := parseUpdate(u)
			p.rules = slices.DeleteFunc(p.rules, func(r rule) bool {
				return slices.ContainsFunc(gone, func(g rule) bool {
					return r.Behavior == g.Behavior && r.Source == g.Source && r.tool == g.tool && r.content == g.content
				})
			})
		case "setMode":
			if mode, err := ParseMode(string(u.Mode)); err == nil {
				_ = p.setMode(mode) // a mode that may not be set leaves the old one
			}
		case "addDirectories":
			for _, d := range u.Directories {
				p.addDirectory(Directory{d, destination(u)})
			}
		case "removeDirectories":
			p.dirs = slices.DeleteFunc(p.dirs, func(dir string) bool {
				return dir != p.abs(p.opts.CWD) && slices.ContainsFunc(u.Directories, func(d string) bool { return p.abs(d) == dir })
			})
		}
	}
	return p.mode != before
}

func (p *Policy) addDirectory(d Directory) {
	if dir := p.abs(d.Path); !slices.Contains(p.dirs, dir) {
		p.dirs = append(p.dirs, dir)
		p.roots[dir] = d.Source
	}
}

// Replace puts rules in the place of those of a source. Rules that do not parse
// are left out.
func (p *Policy) Replace(source string, rules []Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.DeleteFunc(p.rules, func(r rule) bool { return r.Source == source })
	for _, r := range rules {
		if parsed, err := parseRule(r); err == nil {
			p.rules = append(p.rules, parsed)
		}
	}
}

// ReplaceDirectories puts working directories in the place of those of a source.
func (p *Policy) ReplaceDirectories(source string, dirs []string) {
	var gone []string
	for _, d := range p.Added() {
		if d.Source == source {
			gone = append(gone, d.Path)
		}
	}
	p.Apply([]protocol.PermissionUpdate{
		{Type: "removeDirectories", Directories: gone},
		{Type: "addDirectories", Directories: dirs, Destination: source},
	})
}

func destination(u protocol.PermissionUpdate) string {
	if u.Destination == "" {
		return "session"
	}
	return u.Destination
}

func parseUpdate(u protocol.PermissionUpdate) []rule {
	var out []rule
	for _, r := range u.Rules {
		parsed, err := parseRule(Rule{Behavior: u.Behavior, Source: destination(u), Text: FormatRule(r)})
		if err == nil {
			out = append(out, parsed)
		}
	}
	return out
}
