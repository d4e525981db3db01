package permission

import (
	"slices"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// denialIfCommandUsesDeniedPath refuses a command line that uses a path that a deny rule covers; nil means no refusal. Paths after a cd
// are also resolved in the new directory; a refusal there takes precedence. Like the real CLI (observed with 2.1.330), it ignores
// globs, braces, redirections of compound commands, and every line that contains a list in a subshell, such as (a; b).
func (c commandLine) denialIfCommandUsesDeniedPath() *Verdict {
	if !c.modeAndRules.rules.hasPathDenyRule() || c.script.SubshellList || obstacleMayHidePaths(c.script.Obstacle.Kind) {
		return nil
	}
	var refused *Verdict
	directories := slices.Clip(c.startDirs)
	for _, cmd := range c.script.Commands {
		if len(cmd.Words) > 0 && cmd.Words[0].Value != "" {
			cmd.Args = append([]string{cmd.Words[0].Value}, cmd.Args[1:]...)
		}
		inner := shellcmd.Script{}.WithoutWrappersBeforeRemoval(cmd)
		to := c.words.filesReadAndChanged(inner)
		if v := c.readDenialAfterCD(directories[1:], inner.Name(), to.reads); v != nil {
			return v
		}
		name := inner.Name()
		if c.script.Obstacle.Kind == shellcmd.ObstacleSubshell || cmd.IsOutputPiped {
			name = "" // a cd in a subshell or before a pipe is not followed (observed with 2.1.330)
		}
		switch name {
		case "cd":
			directories = c.words.possibleDirectoriesBeforeAndAfterCD(directories, to.reads)
		case "pushd":
			directories = c.words.possibleDirectoriesBeforeAndAfterCD(directories, c.words.fileOperands(inner))
		case "popd": // after popd, the previous directory is unknown
			directories = append(directories, c.startDirs...)
		}
		to = c.words.withRedirectedFiles(to, cmd.Redirects)
		if refused == nil && c.isDeniedIn(directories, to) {
			refused = new(c.denyCommandVerdict("subcommandResults", c.refusedCommandTextOrWholeLine(cmd)).withDecisionRuleSourceAndCode(c.modeAndRules.rules.sourceOfFirstPathDenyRule()))
		}
	}
	return refused
}

// obstacleMayHidePaths reports whether an obstacle may hide paths of the command line (observed with 2.1.330).
func obstacleMayHidePaths(k shellcmd.ObstacleKind) bool {
	switch k {
	case shellcmd.ObstacleCommandSubstitution, shellcmd.ObstacleCommandSubstitutionInDoubleQuotes, shellcmd.ObstacleProcessSubstitution, shellcmd.ObstacleBraceGroupOrArithmeticCommand, shellcmd.ObstacleFunction, shellcmd.ObstacleCase,
		shellcmd.ObstacleBareVariable, shellcmd.ObstacleBracedVariable, shellcmd.ObstacleExpandedHeredoc, shellcmd.ObstacleReadWriteOrNamedDescriptorRedirect, shellcmd.ObstacleBackslashBeforeSpaceOrLineEnd, shellcmd.ObstacleDollarQuotedText:
		return true
	default:
		return false
	}
}

func (c commandLine) isDeniedIn(directories []string, access filesReadAndChanged) bool {
	denied := func(tool string) func(string) bool {
		return func(path string) bool {
			return slices.ContainsFunc(directories, func(place string) bool {
				return c.modeAndRules.rules.hasRuleForPath(BehaviorDeny, tool, c.modeAndRules.resolver.absolutePathFrom(place, path))
			}) || hasParentReference(path) && c.modeAndRules.rules.hasRuleForPath(BehaviorDeny, tool, c.modeAndRules.resolver.resolveParentReferences(path))
		}
	}
	return slices.ContainsFunc(pathsOfPlainOperands(access.reads), denied("Read")) || slices.ContainsFunc(pathsOfPlainOperands(access.changes), denied("Edit"))
}

// readDenialAfterCD refuses a command that reads a denied file in one of the directories that a cd may have entered.
func (c commandLine) readDenialAfterCD(directories []string, commandName string, read []fileOperand) *Verdict {
	for _, place := range directories {
		for _, path := range pathsOfPlainOperands(read) {
			if abs := c.modeAndRules.resolver.absolutePathFrom(place, path); c.modeAndRules.rules.hasRuleForPath(BehaviorDeny, "Read", abs) {
				v := c.denyVerdict("rule", commandName+" from '"+abs+"' was blocked by a deny rule.")
				v.DenyRule, v.Decision.Source = true, c.modeAndRules.rules.denialSourceOfFirstDenyRule(func(r rule) bool {
					return r.matchesCallAsOneUnit(&analyzedCall{modeAndRules: c.modeAndRules, name: "Read", toolClass: claudecode.ToolClassRead, path: abs})
				})
				return new(v.withDecisionRuleSourceAndCode(c.modeAndRules.rules.sourceOfFirstPathDenyRule()))
			}
		}
	}
	return nil
}

// approvalIfNestedScriptHasDeniedCommand returns the approval request for a script that is an argument of a shell, as in sh -c "rm x". It
// returns nil if no rule denies a command of the script, or if nothing in the script looks like a removal (observed with 2.1.330).
func (c commandLine) approvalIfNestedScriptHasDeniedCommand() *approvalRequest {
	if c.toolClass != claudecode.ToolClassRunsCommandLine || !c.modeAndRules.rules.hasDenyOrAskRuleWithContent(c.analyzedCall) {
		return nil
	}
	scripts := c.nestedScriptsInBypassMode(maxDepthOfScriptsInScripts)
	for _, cmd := range c.script.Commands {
		scripts = append(scripts, commandLineWithScript(c, cmd.WrapperOptionScript()).nestedScriptsInBypassMode(maxDepthOfScriptsInScripts)...)
	}
	for _, inner := range scripts {
		if mayRemoveFilesPattern().MatchString(quotePattern().ReplaceAllString(inner.command, "")) && c.modeAndRules.rules.hasMatchingRule(BehaviorDeny, inner.analyzedCall) {
			return &approvalRequest{
				message:    "A permission rule denies a command inside this shell -c script, so Claude Code could not check it for dangerous removals. Approving runs the whole script, including that command.",
				reasonType: "safetyCheck", reason: "A permission rule denies a command in this shell -c script", safety: protocol.SafetyNeedsApprovalOfEachCall, circuitBreaker: "dangerousRemoval",
			}
		}
	}
	return nil
}

// mayRemoveFilesPattern matches a script, without quotes, that contains rm or rmdir, braces that expand, or a variable as program.
var (
	mayRemoveFilesPattern = shellcmd.LazyRegexp("\\{[^{}\\s]*(,|\\.\\.)|(?i:(^|[^\\w.-])rm(dir)?([^\\w.-]|$))|(^|[;&|(){}\n`!])\\s*(\\w+\\+?=\\S*\\s+)*\\$")
	quotePattern          = shellcmd.LazyRegexp(`\$?['"]|\\`)
)
