package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// sensitiveFileApproval returns the approval request for a file that can configure commands that run automatically.
// Modes and rules that allow edits do not apply to such a file. Nil means that it is an ordinary file.
func (c *analyzedCall) sensitiveFileApproval(abs string) *approvalRequest {
	ask := func(message string) *approvalRequest {
		return &approvalRequest{message: message, reasonType: "safetyCheck", reason: message, blockedPath: abs, safety: protocol.SafetyApprovableByRuleOrClassifier}
	}
	if specialWindowsPathPattern().MatchString(abs) {
		q := ask("Claude requested permissions to write to " + abs + ", which contains a suspicious Windows path pattern that requires manual approval.")
		q.safety = protocol.SafetyNeedsApprovalOfEachCall
		return q
	}
	if c.modeAndRules.resolver.isWritableMemory(abs) && isBelowAny(c.modeAndRules.resolver.stateDirs.AgentMemory, abs) {
		return nil
	}
	parts := strings.Split(strings.ToLower(abs), "/")
	for i, part := range parts {
		below := parts[i+1:]
		switch {
		case part == ".claude":
			if len(below) > 0 && below[0] == "worktrees" {
				continue
			}
			// Settings, commands, agents and skills are configuration that the CLI reads.
			if len(below) == 0 || slices.Contains([]string{"commands", "agents", "skills"}, below[0]) || len(below) == 1 && slices.Contains([]string{"settings.json", "settings.local.json"}, below[0]) {
				q := ask("Claude requested permissions to write to " + abs + ", but you haven't granted it yet.")
				if len(below) == 1 && strings.HasPrefix(below[0], "settings.") {
					q.circuitBreaker = "claudeSettingsFile"
				}
				return q
			}
			return ask("Claude requested permissions to edit " + abs + " which is a sensitive file.")
		case slices.Contains(strings.Fields(sensitiveDirectories), part), part == ".config" && len(below) > 0 && below[0] == "git", len(below) == 0 && slices.Contains(strings.Fields(sensitiveFileNames), part):
			return ask("Claude requested permissions to edit " + abs + " which is a sensitive file.")
		}
	}
	return nil
}

// specialWindowsPathPattern matches names that are special on Windows: trailing dots, short names, devices (observed with 2.1.330).
var specialWindowsPathPattern = shellcmd.LazyRegexp(`(?i)^//|\.\.\.(/|$)|[^/. ~][. ]*[. \t](/|$)|~\d|\.(con|prn|aux|nul|com\d|lpt\d)$`)

// verdictIfReadPathIsSpecialOnWindows returns an Ask verdict for reading a file whose name has
// another meaning on Windows. It returns nil for other names, and if a rule allows the whole tool.
func (c *analyzedCall) verdictIfReadPathIsSpecialOnWindows() *Verdict {
	if c.toolClass != claudecode.ToolClassRead || !specialWindowsPathPattern().MatchString(c.path) ||
		slices.ContainsFunc(c.modeAndRules.rules.rules, func(r rule) bool {
			return r.Behavior == BehaviorAllow && r.content == "" && !r.isStar && r.matchesCallAsOneUnit(c)
		}) {
		return nil
	}
	v := c.askVerdict("Claude requested permissions to read from "+c.path+", which contains a suspicious Windows path pattern that requires manual approval.", "safetyCheck", "")
	v.Safety = protocol.SafetyNeedsApprovalOfEachCall
	return &v
}

const sensitiveDirectories = ".git .vscode .idea .husky .devcontainer .cargo .yarn"

const sensitiveFileNames = ".gitconfig .gitmodules .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .zshrc .zprofile .zshenv .zlogin .zlogout .profile .ripgreprc " +
	".mcp.json .claude.json .envrc .npmrc .yarnrc .bazelrc .pre-commit-config.yaml pyrightconfig.json"

// approvalIfCallChangesSensitiveFile returns the approval that a call needs because it changes a file
// that configures commands that run automatically; nil means none. No allow rule replaces this approval.
func (c *analyzedCall) approvalIfCallChangesSensitiveFile() *approvalRequest {
	switch c.toolClass {
	case claudecode.ToolClassWrite:
		q := c.sensitiveFileApproval(c.path)
		if q != nil {
			q.blockedPath, q.suggestions = "", c.suggestUpdates()
		}
		return q
	case claudecode.ToolClassRunsCommandLine:
		return newCommandLineOfCall(c).sensitiveChangeApproval()
	default:
	}
	return nil
}

// sensitivePathApproval returns the approval request for a path of the command line; nil means that it is not sensitive.
func (c commandLine) sensitivePathApproval(path string) *approvalRequest {
	abs := c.modeAndRules.resolver.resolveLinksBeforeParents(path)
	if strings.HasPrefix(path, "//") { // on Windows, the path would name a host
		abs = "/" + abs
	}
	return c.sensitiveFileApproval(abs)
}

// sensitiveChangeApproval returns the approval request for the first sensitive file that the command line changes. Like
// the real CLI (observed with 2.1.330), it checks only plain names in command lines that can be analysed completely. It
// skips operands of commands with options or a redirection, and relative names after a change of directory.
func (c commandLine) sensitiveChangeApproval() *approvalRequest {
	if !c.script.HasOnlyHarmlessObstacle() && (c.script.FirstProgramNeedingPermissionDespiteRule() == "" || c.script.Obstacle.Kind != shellcmd.ObstacleSubshell) {
		return nil
	}
	moved := slices.ContainsFunc(c.script.Commands, func(cmd shellcmd.Command) bool {
		return !cmd.IsOutputPiped && slices.Contains([]string{"cd", "pushd", "popd"}, c.script.WithoutWrappersBeforeRemoval(cmd.WithoutBuiltinAndTimeoutPrefix()).Name())
	})
	redirects := slices.Clone(c.script.Redirects)
	for _, cmd := range c.script.Commands {
		inner := shellcmd.Script{}.WithoutWrappersBeforeRemoval(cmd)
		if name := inner.Name(); (isAutoAllowedInAcceptEdits(name) || name == "tee") && !cmd.IsHidden && !cmd.IsReadOnly() && !moved && !shellcmd.HasWrite(cmd.Redirects) && !isCopyOrMoveWithOptions(inner) {
			if q := c.approvalForFirstSensitiveOperand(inner); q != nil {
				return q
			}
		}
		if q := approvalIfSignInTokenDirectoryMovedOrLinked(c, inner); q != nil && !cmd.IsHidden && !moved {
			return q
		}
		redirects = append(redirects, cmd.Redirects...)
	}
	return sensitiveRedirectApproval(c, redirects, moved)
}

// sensitiveRedirectApproval returns the approval request for the first redirection that writes a sensitive file.
func sensitiveRedirectApproval(c commandLine, redirects []shellcmd.Redirect, changesDirectory bool) *approvalRequest {
	for _, r := range redirects {
		if !r.WritesFile {
			continue
		}
		for _, path := range c.words.expandOperand(r.Target, r.Word).paths {
			if q := c.sensitivePathApproval(path); q != nil && (!changesDirectory || filepath.IsAbs(path)) { // after a change of directory, it is unknown which file a relative path names
				q.suggestions = []protocol.PermissionUpdate{c.addDirectoryUpdate(c.modeAndRules.resolver.resolveLinksBeforeParents(path))}
				return q
			}
		}
	}
	return nil
}

func (c commandLine) approvalForFirstSensitiveOperand(unwrappedCommand shellcmd.Command) *approvalRequest {
	for _, path := range pathsOfPlainOperands(c.words.fileOperands(unwrappedCommand)) {
		q := c.sensitivePathApproval(path)
		if removes := unwrappedCommand.Name() == "rm" || unwrappedCommand.Name() == "mv"; hasParentReference(path) && removes {
			q = c.approvalIfDirectoryContainsSignInTokens(path)
		} else if hasParentReference(path) {
			q = nil
		}
		if q != nil {
			q.suggestions = append([]protocol.PermissionUpdate{c.addDirectoryUpdate(c.modeAndRules.resolver.resolveLinksBeforeParents(path))}, c.acceptEditsSuggestion()...)
			return q
		}
	}
	return nil
}

// targetOptionPattern matches an option whose value is the directory that receives the files.
var targetOptionPattern = shellcmd.LazyRegexp(`^(-[a-zA-Z]*t|--t)`)

var linkOptionPattern = shellcmd.LazyRegexp(`^(-[a-zA-Z]*[sl]|--symbolic-link|--link)`)

// approvalIfSignInTokenDirectoryMovedOrLinked returns the approval request for moving or linking a directory with the CLI's sign-in tokens.
func approvalIfSignInTokenDirectoryMovedOrLinked(c commandLine, unwrappedCommand shellcmd.Command) *approvalRequest {
	name := filepath.Base(unwrappedCommand.Name())
	if name != "mv" && name != "ln" && name != "link" && (name != "cp" || !slices.ContainsFunc(unwrappedCommand.Args, func(a string) bool { return linkOptionPattern().MatchString(a) })) {
		return nil
	}
	links, at := name == "ln" || name == "link", slices.IndexFunc(unwrappedCommand.Args, targetOptionPattern().MatchString)
	if at >= 0 && !links && (unwrappedCommand.Args[at][1] == '-' || strings.HasSuffix(unwrappedCommand.Args[at], "t")) {
		end := min(at+2-min(1, strings.Count(unwrappedCommand.Args[at], "=")), len(unwrappedCommand.Args)) // the next word is the target, unless this word contains it after "="
		unwrappedCommand.Args, unwrappedCommand.Words = slices.Delete(slices.Clone(unwrappedCommand.Args), at, end), slices.Delete(slices.Clone(unwrappedCommand.Words), at, end)
	}
	paths := pathsOfPlainOperands(c.words.fileOperands(unwrappedCommand))
	if at < 0 && (len(paths) > 1 || !links) {
		paths = paths[:max(0, len(paths)-1)]
	}
	if i := slices.IndexFunc(paths, func(p string) bool { return c.approvalIfDirectoryContainsSignInTokens(p) != nil }); i >= 0 {
		return c.approvalIfDirectoryContainsSignInTokens(paths[i])
	}
	return nil
}

// approvalIfDirectoryContainsSignInTokens returns the approval request for a change of a directory that contains the CLI's sign-in tokens.
func (c commandLine) approvalIfDirectoryContainsSignInTokens(path string) *approvalRequest {
	tokens := filepath.Join(c.modeAndRules.resolver.home, ".claude", ".credentials.json")
	if abs := c.modeAndRules.resolver.resolveLinksBeforeParents(path); c.modeAndRules.resolver.home == "" || !isAtOrBelow(filepath.Clean(abs), tokens) {
		return nil
	}
	message := "This command changes a directory that contains " + tokens + ", which tools may not change."
	return &approvalRequest{message: message, reasonType: "safetyCheck", reason: message, safety: protocol.SafetyNeedsApprovalOfEachCall}
}
