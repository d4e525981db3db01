package permission

import (
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/shellcmd"
)

// maxNested bounds how deep scripts inside of scripts are looked into, and
// maxPlaces how many directories a command line is followed through.
const (
	maxNested = 4
	maxPlaces = 32
)

// reach are the files that a command reads and those that it changes.
type reach struct{ read, changed []operand }

// reaches tells of a command, without its redirections, which files it reads and
// changes.
func (c *call) reaches(cmd shellcmd.Command) reach {
	ops := c.operands(cmd)
	switch name := cmd.Name(); {
	case name == "cp" || name == "mv":
		if slices.ContainsFunc(cmd.Args, func(a string) bool { return strings.HasPrefix(a, "-t") || strings.HasPrefix(a, "--t") }) {
			return reach{ops, ops} // the last one is no target
		}
		return reach{ops[:max(0, len(ops)-1)], ops}
	case name == "sed":
		return reach{ops, ops}
	case isFileCommand(name) || name == "tee":
		return reach{nil, ops}
	case readingVerb(name) == "" && !showsFiles(name):
		return reach{}
	case len(ops) == 0 && (name == "ls" || name == "find"):
		return reach{read: []operand{valueOf(".")}}
	}
	return reach{read: ops}
}

// showsFiles names commands that print files, and are not asked about them by
// name.
func showsFiles(name string) bool {
	switch name {
	case "awk", "gawk", "mawk", "less", "more", "xxd", "zcat", "bat", "source", ".", "mapfile", "split", "shuf", "join":
		return true
	}
	return false
}

// redirected adds the files of redirections.
func (c *call) redirected(to reach, redirects []shellcmd.Redirect) reach {
	for _, r := range redirects {
		if r.Reads {
			to.read = append(slices.Clip(to.read), c.operand(r.Target, r.Word))
		}
		if r.Writes {
			to.changed = append(slices.Clip(to.changed), c.operand(r.Target, r.Word))
		}
	}
	return to
}

// deniedPath refuses a command line that reaches a path which a deny rule for
// reading or for editing is about; nil = it reaches none. After a cd, paths are
// looked up where it goes, too, and that refusal comes first.
func (c *call) deniedPath() *Verdict {
	if !c.policy.deniesPaths() {
		return nil
	}
	var refused *Verdict
	places := []string{c.policy.callPath("")}
	for _, cmd := range c.script.Commands {
		inner := cmd.Innermost()
		to := c.reaches(inner)
		if v := c.deniedAfter(places[1:], inner.Name(), to.read); v != nil {
			return v
		}
		if inner.Name() == "cd" {
			places = c.moved(places, to.read)
		}
		if refused == nil && c.deniedIn(places, c.redirected(to, cmd.Redirects)) {
			v := c.denyText("subcommandResults", c.partOf(cmd))
			refused = &v
		}
	}
	if refused == nil && c.deniedIn(places, c.redirected(reach{}, c.script.Redirects)) {
		v := c.denyText("subcommandResults", c.command)
		refused = &v
	}
	return refused
}

// moved are the places where the shell may be after it goes to one of the
// operands.
func (c *call) moved(places []string, to []operand) []string {
	for _, place := range slices.Clone(places) {
		for _, path := range pathsOf(to) {
			if next := c.policy.from(place, path); !slices.Contains(places, next) && len(places) < maxPlaces {
				places = append(places, next)
			}
		}
	}
	return places
}

// deniedIn tells whether one of the files is denied, from any of the places.
func (c *call) deniedIn(places []string, to reach) bool {
	denied := func(tool string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(places, func(place string) bool {
				return c.policy.byRule(BehaviorDeny, tool, c.policy.from(place, path))
			}) || stepsBack(path) && c.policy.byRule(BehaviorDeny, tool, c.policy.walked(path))
		}
	}
	return slices.ContainsFunc(pathsOf(to.read), denied("Read")) || slices.ContainsFunc(pathsOf(to.changed), denied("Edit"))
}

// deniedAfter refuses a command that reads below a directory which a cd has gone
// to.
func (c *call) deniedAfter(places []string, name string, read []operand) *Verdict {
	for _, place := range places {
		for _, path := range pathsOf(read) {
			if abs := c.policy.from(place, path); c.policy.byRule(BehaviorDeny, "Read", abs) {
				v := c.deny("rule", name+" from '"+abs+"' was blocked by a deny rule.")
				v.DenyRule, v.Decision.Source = true, c.policy.refuser(func(r rule) bool {
					return r.matches(&call{policy: c.policy, name: "Read", kind: kindRead, path: abs})
				})
				return &v
			}
		}
	}
	return nil
}

// deniesPaths tells whether there is a deny rule about paths to read or to edit.
func (p *Policy) deniesPaths() bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Behavior == BehaviorDeny && r.content != "" && (r.tool == "Read" || r.tool == "Edit")
	})
}

// namesCommands tells whether there is a deny or ask rule about some commands.
func (p *Policy) namesCommands(c *call) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.Behavior != BehaviorAllow && r.content != "" && r.covers(c)
	})
}

// veiled asks about a command line that may do what a deny rule forbids and
// cannot be read that far: neither a mode nor an allow rule answers for it. Nil =
// all of it is clear, or no rule forbids a part of what the tool can do.
func (c *call) veiled() *question {
	commands, paths := c.policy.namesCommands(c), c.policy.deniesPaths()
	if c.kind != kindShell || !commands && !paths {
		return nil
	}
	const why = " and a permission rule denies some of what it could do, so it can't be checked before it runs. Approving runs the command as written."
	switch {
	case c.parseErr != nil:
		return other("This command can't be read to its end," + why)
	case commands && slices.ContainsFunc(c.script.Commands, veiledProgram):
		return other("This command runs a program that is only known when it runs," + why)
	case paths && c.veiledFile():
		return other("This command names files that are only known when it runs," + why)
	}
	return nil
}

// veiledProgram tells whether what the command runs is only known then.
func veiledProgram(cmd shellcmd.Command) bool {
	if _, known, nested := cmd.Nested(); nested && !known {
		return true
	}
	inner := cmd.Innermost()
	if len(inner.Args) == 0 || !inner.Words[0].Dynamic {
		return false
	}
	known := inner.Words[0].Paths
	return known == nil || slices.ContainsFunc(known, func(p shellcmd.Path) bool { return p.Glob != "" })
}

// veiledFile tells whether a command that shows or changes files, or a
// redirection, has an operand that is only known when it runs.
func (c *call) veiledFile() bool {
	unknown := func(op operand) bool { return !op.known }
	all := c.redirected(reach{}, c.script.Redirects)
	for _, cmd := range c.script.Commands {
		one := c.redirected(c.reaches(cmd.Innermost()), cmd.Redirects)
		all.read, all.changed = append(all.read, one.read...), append(all.changed, one.changed...)
	}
	return slices.ContainsFunc(all.read, unknown) || slices.ContainsFunc(all.changed, unknown)
}

// nested are the calls that the command line stands for when the scripts that it
// hands to other shells are taken for its own.
func (c *call) nested(depth int) []*call {
	if depth == 0 {
		return nil
	}
	var out []*call
	for _, cmd := range c.script.Commands {
		script, _, ok := cmd.Nested()
		if !ok || strings.TrimSpace(script) == "" {
			continue
		}
		inner := *c
		inner.command = script
		inner.script, inner.parseErr = shellcmd.Parse(script)
		out = append(append(out, &inner), inner.nested(depth-1)...)
	}
	return out
}

// forbiddenInside refuses a command line for a script that it hands to another
// shell.
func (p *Policy) forbiddenInside(c *call) *Verdict {
	if c.kind != kindShell || !p.namesCommands(c) && !p.deniesPaths() {
		return nil
	}
	for _, inner := range c.nested(maxNested) {
		if p.anyRule(BehaviorDeny, inner) || inner.deniedPath() != nil {
			v := c.denyText("subcommandResults", c.command)
			return &v
		}
	}
	return nil
}

// veiledInside is veiled for the scripts that are handed to other shells, too.
func (c *call) veiledInside() *question {
	if q := c.veiled(); q != nil || c.kind != kindShell {
		return q
	}
	for _, inner := range c.nested(maxNested) {
		if q := inner.veiled(); q != nil {
			return q
		}
	}
	return nil
}
