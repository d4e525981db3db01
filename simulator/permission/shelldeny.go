package permission

import (
	"slices"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
)

// deniedPath refuses a command line that reaches a path which a deny rule for
// reading or for editing is about; nil = it reaches none. After a cd, paths are
// looked up where it goes, too, and that refusal comes first.
func (c line) deniedPath() *Verdict {
	if !c.rules.deniesPaths() {
		return nil
	}
	var refused *Verdict
	places := slices.Clip(c.starts)
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
			refused = new(c.denyText("subcommandResults", c.partOf(cmd)))
		}
	}
	if refused == nil && c.deniedIn(places, c.redirected(reach{}, c.script.Redirects)) {
		refused = new(c.denyText("subcommandResults", c.command))
	}
	return refused
}

// deniedIn tells whether one of the files is denied, from any of the places.
func (c line) deniedIn(places []string, to reach) bool {
	denied := func(tool string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(places, func(place string) bool {
				return c.rules.byRule(BehaviorDeny, tool, c.at.from(place, path))
			}) || stepsBack(path) && c.rules.byRule(BehaviorDeny, tool, c.at.walked(path))
		}
	}
	return slices.ContainsFunc(pathsOf(to.read), denied("Read")) || slices.ContainsFunc(pathsOf(to.changed), denied("Edit"))
}

// deniedAfter refuses a command that reads below a directory which a cd has gone
// to.
func (c line) deniedAfter(places []string, name string, read []operand) *Verdict {
	for _, place := range places {
		for _, path := range pathsOf(read) {
			if abs := c.at.from(place, path); c.rules.byRule(BehaviorDeny, "Read", abs) {
				v := c.deny("rule", name+" from '"+abs+"' was blocked by a deny rule.")
				v.DenyRule, v.Decision.Source = true, c.rules.refuser(func(r rule) bool {
					return r.matches(&call{judge: c.judge, name: "Read", kind: kindRead, path: abs})
				})
				return &v
			}
		}
	}
	return nil
}

// veiled asks about a command line that may do what a deny rule forbids and
// cannot be read that far: neither a mode nor an allow rule answers for it. Nil =
// all of it is clear, or no rule forbids a part of what the tool can do.
func (c line) veiled() *question {
	commands, paths := c.rules.namesCommands(c.call), c.rules.deniesPaths()
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
func (c line) veiledFile() bool {
	unknown := func(op operand) bool { return !op.known }
	all := c.redirected(reach{}, c.script.Redirects)
	for _, cmd := range c.script.Commands {
		one := c.redirected(c.reaches(cmd.Innermost()), cmd.Redirects)
		all.read, all.changed = append(all.read, one.read...), append(all.changed, one.changed...)
	}
	return slices.ContainsFunc(all.read, unknown) || slices.ContainsFunc(all.changed, unknown)
}

// forbiddenInside refuses a command line for a script that it hands to another
// shell.
func (c line) forbiddenInside() *Verdict {
	if c.kind != kindShell || !c.rules.namesCommands(c.call) && !c.rules.deniesPaths() {
		return nil
	}
	for _, inner := range c.nested(maxNested) {
		if c.rules.anyRule(BehaviorDeny, inner.call) || inner.deniedPath() != nil {
			return new(c.denyText("subcommandResults", c.command))
		}
	}
	return nil
}

// veiledInside is veiled for the scripts that are handed to other shells, too.
func (c line) veiledInside() *question {
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
