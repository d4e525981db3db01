package permission

import (
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/internal/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// safety asks about what no allow rule reaches: files that configure what runs
// by itself. A command line is looked through however it is built.
func (c *call) safety() *question {
	switch c.kind {
	case kindWrite:
		q := c.sensitive(c.path)
		if q != nil {
			q.blocked, q.suggestions = "", c.suggestions()
		}
		return q
	case kindShell:
		for _, one := range append([]*call{c}, c.nested(maxNested)...) {
			if q := one.sensitiveChange(); q != nil {
				return q
			}
		}
	default:
	}
	return nil
}

// sensitiveChange asks about the first sensitive file that the command line
// changes.
func (c *call) sensitiveChange() *question {
	redirects := slices.Clone(c.script.Redirects)
	for _, cmd := range c.script.Commands {
		inner := cmd.Innermost()
		if name := inner.Name(); (isFileCommand(name) || name == "tee") && !cmd.ReadOnly() {
			for _, path := range pathsOf(c.operands(inner)) {
				if q := c.sensitive(c.policy.reached(path)); q != nil {
					q.suggestions = append([]protocol.PermissionUpdate{c.addDirectory(c.policy.reached(path))}, c.editSuggestion()...)
					return q
				}
			}
		}
		redirects = append(redirects, cmd.Redirects...)
	}
	for _, r := range redirects {
		if !r.Writes {
			continue
		}
		for _, path := range c.operand(r.Target, r.Word).paths {
			if q := c.sensitive(c.policy.reached(path)); q != nil {
				q.suggestions = []protocol.PermissionUpdate{c.addDirectory(c.policy.reached(path))}
				return q
			}
		}
	}
	return nil
}

// removal asks about the removal of what a machine or a session cannot do
// without, which not even bypassPermissions answers for. The whole command line
// is followed, into other shells and after a cd.
func (c *call) removal() *question {
	if c.kind != kindShell {
		return nil
	}
	for _, one := range append([]*call{c}, c.nested(maxNested)...) {
		places := []string{c.policy.callPath("")}
		for _, cmd := range one.script.Commands {
			inner := cmd.Innermost()
			if inner.Name() == "cd" {
				places = one.moved(places, one.operands(inner))
			}
			if q := one.dangerousRemoval(inner, places); q != nil {
				return q
			}
		}
	}
	return nil
}

func (c *call) dangerousRemoval(cmd shellcmd.Command, places []string) *question {
	name := filepath.Base(cmd.Name())
	if name != "rm" && name != "rmdir" {
		return nil
	}
	return c.dangerous(name, c.operands(cmd), places)
}

// dangerous asks about the removal of a root, of what stands right below it, and
// of a directory that holds the home directory or a working directory: itself or
// all that is in it. Paths are those from any of the places.
func (c *call) dangerous(name string, ops []operand, places []string) *question {
	if name != "rm" && name != "rmdir" {
		return nil
	}
	for _, op := range ops {
		paths := op.paths
		if op.glob { // the pattern itself; what it matches is below
			paths = nil
			for _, path := range op.paths {
				if base := filepath.Base(path); base == "*" || base == ".*" {
					paths = append(paths, path)
				}
			}
		}
		for _, path := range paths {
			for _, place := range places {
				if q := c.critical(name, c.policy.from(place, path), op.glob); q != nil {
					return q
				}
			}
		}
	}
	return nil
}

// critical asks about one path; all says that it is a pattern for what a
// directory holds.
func (c *call) critical(name, abs string, all bool) *question {
	dir := abs
	if all {
		dir = filepath.Dir(abs)
	}
	what := ""
	switch home := c.policy.opts.Home; {
	case filepath.Dir(dir) == "/" && (!all || dir == "/"), home != "" && under(dir, filepath.Clean(home)):
		what = "a critical system directory"
	case slices.ContainsFunc(c.policy.dirs, func(work string) bool {
		return under(dir, work) || under(c.policy.resolve(dir), c.policy.resolve(work))
	}):
		what = "a workspace directory (the working directory, one added to it, or one around them)"
	default:
		return nil
	}
	return &question{
		message:    "Dangerous " + name + " operation detected: '" + abs + "'\n\nThis command would remove " + what + ". This requires explicit approval and cannot be auto-allowed by permission rules.",
		reasonType: "safetyCheck", reason: "Dangerous " + name + " operation on critical path: " + abs,
		safety: protocol.SafetyDangerous, suggestions: []protocol.PermissionUpdate{},
	}
}
