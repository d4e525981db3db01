package permission

import (
	"slices"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// deniedPath refuses a command line that uses a path with a deny rule for reading or editing; nil = it uses none.
// After a cd, paths are also resolved in the new directory, and that refusal comes first. It checks what the real CLI
// checks (observed with 2.1.330): plain file names, but not globs, braces, redirections of compound commands, or
// anything in a line with a list in a subshell.
func (c line) deniedPath() *Verdict {
	if !c.judge.rules.deniesPaths() || c.script.SubshellList || hidesPaths(c.script.Obstacle.Kind) {
		return nil
	}
	var refused *Verdict
	places := slices.Clip(c.starts)
	for _, cmd := range c.script.Commands {
		if len(cmd.Words) > 0 && cmd.Words[0].Value != "" {
			cmd.Args = append([]string{cmd.Words[0].Value}, cmd.Args[1:]...)
		}
		inner := cmd.UnwrappedForRemoval()
		to := c.lookup.reaches(inner)
		if v := c.deniedAfter(places[1:], inner.Name(), to.read); v != nil {
			return v
		}
		name := inner.Name()
		if c.script.Obstacle.Kind == shellcmd.Subshell {
			name = "" // a cd in a subshell is not followed (observed with 2.1.330)
		}
		switch name {
		case "cd":
			places = c.lookup.directoriesAfterCD(places, to.read)
		case "pushd":
			places = c.lookup.directoriesAfterCD(places, c.lookup.operands(inner))
		case "popd": // wherever it was before
			places = append(places, c.starts...)
		}
		to = c.lookup.redirected(to, cmd.Redirects)
		if refused == nil && c.deniedIn(places, to) {
			refused = new(c.denyText("subcommandResults", c.partOf(cmd)).deniedBy(c.judge.rules.pathSource()))
		}
	}
	return refused
}

// hidesPaths reports whether an obstacle prevents the analysis of all paths of the command line (observed with
// 2.1.330).
func hidesPaths(k shellcmd.ObstacleKind) bool {
	switch k {
	case shellcmd.Nested, shellcmd.NestedInQuotes, shellcmd.ProcessSubstitution, shellcmd.Group, shellcmd.Function, shellcmd.Case,
		shellcmd.BareVariable, shellcmd.BracedVariable, shellcmd.OpenHeredoc, shellcmd.HiddenRedirect, shellcmd.EscapedSpace, shellcmd.CodedText:
		return true
	default:
		return false
	}
}

// deniedIn reports whether one of the files is denied, from any of the directories.
func (c line) deniedIn(places []string, to fileAccess) bool {
	denied := func(tool string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(places, func(place string) bool {
				return c.judge.rules.byRule(BehaviorDeny, tool, c.judge.at.from(place, path))
			}) || stepsBack(path) && c.judge.rules.byRule(BehaviorDeny, tool, c.judge.at.walked(path))
		}
	}
	return slices.ContainsFunc(plainPaths(to.read), denied("Read")) || slices.ContainsFunc(plainPaths(to.changed), denied("Edit"))
}

// deniedAfter refuses a command that reads below a directory which a cd has gone
// to.
func (c line) deniedAfter(places []string, name string, read []fileOperand) *Verdict {
	for _, place := range places {
		for _, path := range plainPaths(read) {
			if abs := c.judge.at.from(place, path); c.judge.rules.byRule(BehaviorDeny, "Read", abs) {
				v := c.deny("rule", name+" from '"+abs+"' was blocked by a deny rule.")
				v.DenyRule, v.Decision.Source = true, c.judge.rules.refuser(func(r rule) bool {
					return r.matches(&call{judge: c.judge, name: "Read", kind: claudecode.ClassRead, path: abs})
				})
				return new(v.deniedBy(c.judge.rules.pathSource()))
			}
		}
	}
	return nil
}

// deniedInside asks about a script in a shell argument in which a rule denies a command; nil = none.
func (c line) deniedInside() *approval {
	if c.kind != claudecode.ClassShell || !c.judge.rules.namesCommands(c.call) {
		return nil
	}
	for _, inner := range c.shellScripts(maxNested) {
		if c.judge.rules.anyRule(BehaviorDeny, inner.call) {
			return &approval{
				message:    "A permission rule denies a command inside this shell -c script. Approving runs the whole script, including that command.",
				reasonType: "safetyCheck", reason: "A denied command in a shell -c script", safety: protocol.SafetyDangerous,
			}
		}
	}
	return nil
}
