package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// chainAfterCDPattern matches a command line that begins with cd and contains no separator except &&, even in quotes.
var chainAfterCDPattern = shellcmd.LazyRegexp(`^[ \t]*cd[ \t]([^;&|\n]|&&|\|[^|])*$`)

// commandLineWithCDsApplied omits each cd into the current directory from a line without pipes. If && joins all commands of the
// line and the first one is a cd to a path such as /x or ./x in a working directory, the paths of the line are relative to this directory.
// For a name such as x, the shell may find another directory through CDPATH (observed with 2.1.330).
func commandLineWithCDsApplied(shellCall *analyzedCall) commandLine {
	c, call, judge, resolver := newCommandLineOfCall(shellCall), *shellCall, *shellCall.modeAndRules, *shellCall.modeAndRules.resolver
	if c.script.IsPipeline || len(c.script.Commands) < 2 {
		return c
	}
	call.script.Commands = slices.DeleteFunc(slices.Clone(c.script.Commands), func(cmd shellcmd.Command) bool { return isCDInto(c.startDirs[0], cmd) })
	c.analyzedCall = &call
	if len(call.script.Commands) == 0 || !chainAfterCDPattern().MatchString(c.command) {
		return c
	}
	first := call.script.Commands[0]
	if first.Name() != "cd" || len(first.Args) != 2 || len(first.Redirects) > 0 {
		return c
	}
	to := c.words.expandOperand(first.Args[1], first.Words[1])
	if !to.isPlain || to.hasTilde || strings.Contains(to.text, "..") || to.text != "." && !strings.HasPrefix(to.text, "./") && !filepath.IsAbs(to.text) {
		return c
	}
	if dir := resolver.resolveLinks(resolver.absolutePathFromCurrentDir(to.text)); resolver.isInWorkingDir(dir) {
		c.chainDirectory = dir
		resolver.currentDir = func() string { return dir }
		call.modeAndRules, judge.resolver, c.words = &judge, &resolver, shellWordResolver{&resolver}
	}
	return c
}

func isCDInto(dir string, cmd shellcmd.Command) bool {
	return cmd.Text == "cd "+dir && len(cmd.Redirects) == 0 && !cmd.IsTimed
}

// riskyDirectoryChangeApproval returns the approval request for a command line that changes the
// directory and also contains a second cd, a git command, or a redirection to a file.
func (c commandLine) riskyDirectoryChangeApproval() *approvalRequest {
	cds, git, redirected, elsewhere := 0, false, shellcmd.HasWrite(c.script.Redirects), false
	for _, cmd := range c.script.Commands {
		name := cmd.WithoutBuiltinAndTimeoutPrefix().Name()
		switch name {
		case "cd":
			cds++
			elsewhere = elsewhere || !isCDInto(c.startDirs[0], cmd)
		case "git":
			git = true
		}
		redirected = redirected || shellcmd.HasWrite(cmd.Redirects) || slices.ContainsFunc(cmd.Redirects, func(r shellcmd.Redirect) bool { return r.ReadsFile && r.Target != "/dev/null" })
	}
	switch {
	case cds == 0:
	case cds > 1:
		return approvalWithoutSuggestionList("Multiple directory changes in one command require approval for clarity").setReasonCode(reasonCodeMultipleCD)
	case git && elsewhere && c.chainDirectory != c.startDirs[0]:
		return approvalWithoutSuggestionList("This command changes directory before running a version-control command, which can pick up untrusted hooks or repository configuration from the target directory. Approve only if you trust it.").setReasonCode(reasonCodeCDWithGit)
	case redirected && c.chainDirectory == "":
		return &approvalRequest{
			message: "Commands that change directories and write via output redirection" + ensurePathsText, reasonType: "other", reasonCode: reasonCodeCDWithRedirect,
			reason: "Compound command contains cd with output redirection" + manualApprovalSuffix,
		}
	}
	return nil
}

const (
	manualApprovalSuffix = " - manual approval required to prevent path resolution bypass"
	ensurePathsText      = " require explicit approval to ensure paths are evaluated correctly. For security, Claude Code cannot automatically determine the final working directory when 'cd' is used in compound commands."
)

// approvalIfCommandChangesFilesInLineWithCD returns the approval request for a command that changes
// files, if its command line also changes the directory; it returns nil for other commands.
func (c commandLine) approvalIfCommandChangesFilesInLineWithCD(unwrappedCommand shellcmd.Command) *approvalRequest {
	moves := slices.ContainsFunc(c.script.Commands, func(cmd shellcmd.Command) bool { return cmd.WithoutBuiltinAndTimeoutPrefix().Name() == "cd" })
	if !moves || c.chainDirectory != "" || !isAutoAllowedInAcceptEdits(unwrappedCommand.Name()) {
		return nil
	}
	q := &approvalRequest{
		message: "Commands that change directories and perform write operations" + ensurePathsText, reasonType: "other", reasonCode: reasonCodeCDWithWrite,
		reason: "Compound command contains cd with write operation" + manualApprovalSuffix, suggestions: []protocol.PermissionUpdate{},
	}
	if !c.modeAndRules.modeIsAcceptEditsOrAuto() {
		q.suggestions = append(q.suggestions, suggestAllowRuleForSimilarCommands(c.command), switchToAcceptEditsUpdate())
	}
	return q
}

func (c commandLine) redirectReadOrWriteApproval() *approvalRequest {
	redirects := slices.Clone(c.script.Redirects)
	for _, cmd := range c.script.Commands {
		redirects = append(redirects, cmd.Redirects...)
	}
	for _, r := range redirects {
		if !r.WritesFile && !r.ReadsFile || r.Target == "/dev/null" || !r.WritesFile && slices.Contains([]string{"/dev/stdin", "/dev/fd/0", "/dev/tty"}, r.Target) {
			continue
		}
		op := c.words.expandOperand(r.Target, r.Word)
		if r.Word.IsDynamic && (!op.isKnown || op.hasGlob || len(op.paths) != 1) {
			return approvalWithoutSuggestionList("Shell expansion syntax in paths requires manual approval")
		}
		if q := c.words.approvalIfPathUnclear(op); q != nil {
			return q
		}
		for _, path := range op.paths {
			if r.WritesFile && globTextPattern().MatchString(path) {
				return c.newGlobWriteApproval(path)
			}
			if q := c.approvalOfRedirect(r, c.modeAndRules.resolver.resolveLinksBeforeParents(path)); q != nil {
				return q
			}
		}
	}
	return nil
}

func (c commandLine) approvalOfRedirect(r shellcmd.Redirect, abs string) *approvalRequest {
	if r.ReadsFile && !c.modeAndRules.isInWorkingDirOrAllowed("Read", abs) {
		return c.readOutsideWorkingDirsApproval("Input redirection from '"+abs+"' was blocked.", "read files in", abs)
	}
	if !r.WritesFile {
		return nil
	}
	if q := c.sensitiveFileApproval(abs); q != nil {
		q.suggestions = []protocol.PermissionUpdate{c.addDirectoryUpdate(abs)}
		return q
	}
	inside := c.modeAndRules.resolver.isInWorkingDir(abs)
	if inside && c.modeAndRules.modeIsAcceptEditsOrAuto() || c.modeAndRules.resolver.isWritableMemory(abs) || c.modeAndRules.rules.hasRuleForPath(BehaviorAllow, "Edit", abs) {
		return nil
	}
	return c.newPathChangeApproval("Output redirection to '"+abs+"'", abs, inside, false)
}

// approvalsForFirstUnpermittedPath returns the approval request for the first path of a command that needs permission; both results
// are nil if no path does. outsideWorkingDirs is set for a path outside the working directories, and must be asked even if a rule
// allows the command. insideWorkingDirs is set for any other path, and is asked only if nothing else allows the command.
func (c commandLine) approvalsForFirstUnpermittedPath(cmd shellcmd.Command) (outsideWorkingDirs, insideWorkingDirs *approvalRequest) {
	inner := cmd.WithoutUnprivilegedWrappers()
	name := inner.Name()
	verb := shellcmd.ReadingPhrase(name)
	switch {
	case name == "git" && (len(inner.Args) < 2 || inner.Args[1] != "diff" && !slices.Contains(inner.Args, "--no-index")):
		verb = ""
	case name == "sed" && cmd.IsReadOnly():
		verb = "edit files in"
	}
	if verb != "" {
		for _, op := range c.words.fileOperands(inner) {
			if q := c.words.approvalIfPathUnclear(op); q != nil {
				return q, nil
			}
			for _, path := range op.paths {
				if abs := c.modeAndRules.resolver.absolutePathKeepingDoubleSlash(path); !c.modeAndRules.isInWorkingDirOrAllowed("Read", abs) {
					return c.readOutsideWorkingDirsApproval(name+" in '"+abs+"' was blocked.", verb, abs), nil
				}
			}
		}
	}
	if !isAutoAllowedInAcceptEdits(name) && name != "tee" || cmd.IsReadOnly() {
		return nil, nil
	}
	return c.approvalsForFirstUnpermittedChange(inner)
}

// approvalsForFirstUnpermittedChange does the work of [commandLine.approvalsForFirstUnpermittedPath] for a command that
// creates, changes or removes files.
func (c commandLine) approvalsForFirstUnpermittedChange(unwrappedCommand shellcmd.Command) (outsideWorkingDirs, insideWorkingDirs *approvalRequest) {
	name, ops := unwrappedCommand.Name(), c.words.fileOperands(unwrappedCommand)
	if isCopyOrMoveWithOptions(unwrappedCommand) {
		return c.approvalForCopyOrMoveWithOptions(name), nil
	}
	paths, q := c.absolutePathsOfFilesToChange(ops)
	if q != nil {
		return q, nil
	}
	for _, path := range paths {
		if q := c.sensitiveFileApproval(strings.TrimSuffix(path, "/")); q != nil {
			q.suggestions = append([]protocol.PermissionUpdate{c.addDirectoryUpdate(path)}, c.acceptEditsSuggestion()...)
			return q, nil
		}
	}
	for _, path := range paths {
		if !c.modeAndRules.isInWorkingDirOrAllowed("Edit", strings.TrimSuffix(path, "/")) {
			return c.newPathChangeApproval(name+" in '"+path+"'", path, false, true), nil
		}
	}
	if len(paths) == 0 || c.modeAndRules.modeIsAcceptEditsOrAuto() {
		return nil, nil
	}
	for _, path := range paths {
		if !c.modeAndRules.rules.hasRuleForPath(BehaviorAllow, "Edit", strings.TrimSuffix(path, "/")) {
			return nil, c.newPathChangeApproval(name+" in '"+path+"'", path, true, true)
		}
	}
	if name == "sed" {
		return nil, dangerousSedApproval()
	}
	return nil, nil
}

// globTextPattern matches a name that looks like a glob. The real CLI asks about writing to it even if it is quoted.
var globTextPattern = shellcmd.LazyRegexp(`[*?]|\[.*\]|\{.*\}`)

// absolutePathsOfFilesToChange returns the absolute paths of the operands of a command that changes files; a trailing slash
// is kept. approvalIfUnclear is the approval request for an operand that cannot be resolved; nil means none.
func (c commandLine) absolutePathsOfFilesToChange(operands []fileOperand) (absolutePaths []string, approvalIfUnclear *approvalRequest) {
	var paths []string
	for _, op := range operands {
		if op.hasGlob || slices.ContainsFunc(op.paths, func(p string) bool { return globTextPattern().MatchString(p) }) {
			return nil, c.newGlobWriteApproval(op.text)
		}
		if q := c.words.approvalIfPathUnclear(op); q != nil {
			return nil, q
		}
		for _, path := range op.paths {
			abs := c.modeAndRules.resolver.resolveLinksBeforeParents(path)
			if strings.HasSuffix(path, "/") && abs != "/" {
				abs += "/"
			}
			paths = append(paths, abs)
		}
	}
	return paths, nil
}

func (c commandLine) readOutsideWorkingDirsApproval(messageStart, verb, abs string) *approvalRequest {
	q := &approvalRequest{message: messageStart + " For security, Claude Code may only " + verb + " the allowed working directories for this session: '" + c.allowedDirectoriesText() + "'.", blockedPath: abs, suggestions: []protocol.PermissionUpdate{}}
	if dir := c.pathIfDirectoryElseParent(abs); dir != "/" {
		read := allowRuleUpdate("Read", "/"+dir+"/**")
		read.Destination = "session"
		q.suggestions = append(q.suggestions, suggestAllowRuleForSimilarCommands(c.command), read)
	}
	return q
}

// newPathChangeApproval returns the approval request for a path that a command or a redirection changes. changeDescription describes
// the change. isInWorkingDirectory is true if the path is in a working directory, and isChangeByCommand is false for a redirection.
func (c commandLine) newPathChangeApproval(changeDescription, abs string, isInWorkingDirectory, isChangeByCommand bool) *approvalRequest {
	where := " needs approval. The path is inside the working directories for this session ('" + c.allowedDirectoriesText() + "'), and Claude Code asks before a shell command creates, changes or removes files there."
	if !isInWorkingDirectory {
		where = " needs approval. The path is outside the working directories for this session ('" + c.allowedDirectoriesText() + "'). Allowing runs the command as written."
	}
	q := &approvalRequest{message: changeDescription + where, blockedPath: abs, suggestions: []protocol.PermissionUpdate{suggestAllowRuleForSimilarCommands(c.command), c.addDirectoryUpdate(abs)}}
	if isChangeByCommand {
		q.suggestions = append(q.suggestions, c.acceptEditsSuggestion()...)
	}
	return q
}

func (c commandLine) newGlobWriteApproval(path string) *approvalRequest {
	const reason = "Glob patterns are not allowed in write operations. Please specify an exact file path."
	return &approvalRequest{
		message: reason, reasonType: "other", reason: reason, blockedPath: path, reasonCode: "other",
		suggestions: append([]protocol.PermissionUpdate{suggestAllowRuleForSimilarCommands(c.command), c.addDirectoryUpdate(c.modeAndRules.resolver.absolutePathFromCurrentDir(path))}, c.acceptEditsSuggestion()...),
	}
}

// approvalForCopyOrMoveWithOptions returns the approval request for cp and mv with options, because an option may change the target.
func (c commandLine) approvalForCopyOrMoveWithOptions(commandName string) *approvalRequest {
	q := &approvalRequest{
		message:    commandName + " with flags requires manual approval to ensure path safety. For security, Claude Code cannot automatically validate " + commandName + " commands that use flags, as some flags like --target-directory=PATH can bypass path validation.",
		reasonType: "other", reason: commandName + " command with flags requires manual approval", reasonCode: reasonCodeCopyOrMoveFlags, suggestions: []protocol.PermissionUpdate{},
	}
	if !c.modeAndRules.modeIsAcceptEditsOrAuto() {
		q.suggestions = append(q.suggestions, suggestAllowRuleForSimilarCommands(c.command), switchToAcceptEditsUpdate())
	}
	return q
}

func (c commandLine) refusedCommandTextOrWholeLine(refusedCommand shellcmd.Command) string {
	if c.script.IsPipeline {
		return refusedCommand.Stage
	}
	return c.command
}
