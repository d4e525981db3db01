package permission

import (
	"cmp"
	_ "embed" // for obstacles.json
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// approvalRequest describes why a call needs the user's approval: the message, the reason and the suggested updates.
type approvalRequest struct {
	message, reasonType, reason, blockedPath string
	safety                                   protocol.SafetyApprovalReason
	reasonCode                               string // reason code; if empty, reasonType and message determine it
	circuitBreaker                           string // name of the check that no rule or mode can override; empty means none
	// suggestions for the host; nil omits the list
	suggestions []protocol.PermissionUpdate
}

// suggestedReadRules returns the suggested rules for reading, or nil if the request is not about a path that is read.
func (q *approvalRequest) suggestedReadRules() []protocol.PermissionRule {
	if q == nil {
		return nil
	}
	for _, u := range q.suggestions {
		if len(u.Rules) > 0 && u.Rules[0].ToolName == "Read" {
			return u.Rules
		}
	}
	return nil
}

func (c *analyzedCall) askVerdictFromApprovalRequest(q approvalRequest) Verdict {
	v := c.askVerdict(q.message, q.reasonType, q.reason)
	v.BlockedPath, v.Suggestions, v.Safety = q.blockedPath, q.suggestions, q.safety
	v.Decision.CircuitBreaker = q.circuitBreaker
	switch {
	case q.reasonCode != "":
		v.Decision.ReasonCode = q.reasonCode
	case q.reasonType == "safetyCheck":
		v.Decision.ReasonCode = q.reasonType
	case q.message == needsApprovalText:
		v.Decision.ReasonCode = reasonCodeNoRule
	}
	return v
}

func (q *approvalRequest) setReasonCode(code string) *approvalRequest {
	q.reasonCode = code
	return q
}

func dangerousSedApproval() *approvalRequest {
	return &approvalRequest{
		message: "sed command requires approval (contains potentially dangerous operations)", reasonType: "other", reasonCode: reasonCodeDangerousSed,
		reason: "sed command contains operations that require explicit approval (e.g., write commands, execute commands)",
	}
}

func (c *analyzedCall) pathIfDirectoryElseParent(path string) string {
	path = filepath.Clean(path)
	if disk := c.modeAndRules.resolver.fileSystem; disk != nil && disk.IsDir(path) {
		return path
	}
	return filepath.Dir(path)
}

func (c *analyzedCall) addDirectoryUpdate(path string) protocol.PermissionUpdate {
	return protocol.PermissionUpdate{Type: "addDirectories", Directories: []string{c.pathIfDirectoryElseParent(path)}, Destination: "session"}
}

func (c *analyzedCall) acceptEditsSuggestion() []protocol.PermissionUpdate {
	if c.modeAndRules.modeIsAcceptEditsOrAuto() {
		return nil
	}
	return []protocol.PermissionUpdate{switchToAcceptEditsUpdate()}
}

func switchToAcceptEditsUpdate() protocol.PermissionUpdate {
	return protocol.PermissionUpdate{Type: "setMode", Mode: protocol.ModeAcceptEdits, Destination: "session"}
}

func (c *analyzedCall) allowVerdict(reasonType string) Verdict {
	return Verdict{Behavior: Allow, Decision: protocol.PermissionDecision{Decision: "accept", Source: "config", ReasonType: reasonType}}
}

// allowByRuleVerdict allows the call because of a rule. If the rule is in the user's own settings, the decision is recorded as
// the user's permanent permission.
func (c *analyzedCall) allowByRuleVerdict() Verdict {
	v, rules := c.allowVerdict("rule"), c.modeAndRules.rules.rules
	i := slices.IndexFunc(rules, func(r rule) bool { return r.Behavior == BehaviorAllow && r.matchesAnyPart(c) })
	if i < 0 { // no rule names the command, so the rule is about a path in the command line
		i = slices.IndexFunc(rules, func(r rule) bool { return r.Behavior == BehaviorAllow && r.coversToolOfCall(c) })
	}
	if i < 0 {
		return v
	}
	v.Decision.RuleSource = rules[i].Source
	switch rules[i].Source {
	case "userSettings", "localSettings":
		v.Decision.Source = "user_permanent"
	}
	return v
}

// askVerdict returns an Ask verdict, explained by reasonType and reason. If no user can answer, message is the tool result.
func (c *analyzedCall) askVerdict(message, reasonType, reason string) Verdict {
	return Verdict{
		Behavior:         Ask,
		Decision:         protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonCode: reasonCodeUnknown},
		NonExecutionKind: "user-rejected", Message: message, Event: c.denialEvent(message, reasonType, reason),
		CountDenial: true, Suggestions: c.suggestUpdates(), ReasonType: reasonType, Reason: reason,
	}
}

// askByRuleVerdict returns the Ask verdict for the rule r. It gives another reason if the command line has one.
func (c *analyzedCall) askByRuleVerdict(r *rule) Verdict {
	message, reasonType := c.unansweredMessage(), "rule"
	switch isWriteInBypassMode := c.modeAndRules.mode == protocol.ModeBypass && c.toolClass == claudecode.ToolClassWrite; {
	case r.content == "" && isWriteInBypassMode:
		reasonType = ""
	case r.content == "":
		message = unansweredRequestMessage("use " + c.use.Name)
	}
	v := c.askVerdict(message, reasonType, "")
	if c.toolClass == claudecode.ToolClassRunsCommandLine {
		if own := newCommandLineOfCall(c).askVerdictForReasonOtherThanRule(r); own != nil {
			v = *own
		}
	}
	v.AskRule, v.RuleSource = true, r.Source
	if r.content == "" || !strings.HasPrefix(v.Decision.ReasonCode, "subcommands:") {
		v.Decision.ReasonCode = ruleReasonCode(r.Source)
	}
	v.Decision.RuleSource = r.Source
	return v
}

func (c *analyzedCall) askOutsideWorkingDirVerdict(message string) Verdict {
	v := c.askVerdict(message, "workingDir", "Path is outside allowed working directories")
	v.Decision.ReasonCode = "workingDir"
	return v
}

func (c *analyzedCall) denyVerdict(reasonType, message string) Verdict {
	return Verdict{
		Behavior:         Deny,
		Decision:         protocol.PermissionDecision{Decision: "reject", Source: "config", ReasonType: reasonType, ReasonCode: reasonType},
		NonExecutionKind: "permission-rule", Message: message, Event: c.denialEvent(message, reasonType, ""),
		CountDenial: true, ReasonType: reasonType,
	}
}

// denyFileAsToolErrorVerdict refuses a call because a rule protects its file. For the model, the refusal is an input error of the tool.
// No event reports it.
func (c *analyzedCall) denyFileAsToolErrorVerdict(message, source string) Verdict {
	return Verdict{Behavior: Deny, ToolError: true, DenyRule: true, CountDenial: true, Decision: protocol.PermissionDecision{Decision: "reject", Source: source, ReasonType: "rule"}, Message: message}
}

// denialIfChangedFileIsReadDenied refuses to change a file that a deny rule protects from reading; nil means that no rule does.
func (c *analyzedCall) denialIfChangedFileIsReadDenied() *Verdict {
	if c.toolClass != claudecode.ToolClassWrite || c.name == "NotebookEdit" {
		return nil
	}
	reading := &analyzedCall{modeAndRules: c.modeAndRules, name: "Read", toolClass: claudecode.ToolClassRead, path: c.path}
	hides := func(r rule) bool {
		wholeTool := r.content == "" && r.Source == "cliArg" // --disallowedTools Read removes the tool, but does not protect files
		return r.Behavior == BehaviorDeny && r.tool == "Read" && !wholeTool && r.matchesCallAsOneUnit(reading)
	}
	at := slices.IndexFunc(c.modeAndRules.rules.rules, hides)
	if at < 0 {
		return nil
	}
	done := "edited"
	if c.name == "Write" {
		done = "written"
	}
	v := c.denyFileAsToolErrorVerdict("File is covered by a Read deny rule in your permission settings and cannot be "+done+".", c.modeAndRules.rules.denialSourceOfFirstDenyRule(hides))
	return new(v.withDecisionRuleSourceAndCode(c.modeAndRules.rules.rules[at].Source))
}

// denialIfFileItselfIsSymlink refuses, in every mode, to change a file through a symbolic link to it. A link to a directory in
// the path is followed (observed with 2.1.330). Nil means that the file is not a link.
func denialIfFileItselfIsSymlink(c *analyzedCall) *Verdict {
	dir, name := filepath.Split(c.path)
	target := c.modeAndRules.resolver.resolveLinks(c.path)
	if target == filepath.Join(c.modeAndRules.resolver.resolveLinks(filepath.Clean(dir)), name) {
		return nil
	}
	v := c.denyVerdict("other", "Refusing to write "+c.path+": it is a symbolic link. Write to the link's target path instead: "+target+".")
	v.Event.DecisionReason, v.DenyRule = "Write target is a symbolic link", true // a hook cannot overrule this refusal
	return &v
}

func (c *analyzedCall) newRuleDenialVerdict() Verdict {
	for _, r := range c.modeAndRules.rules.rules {
		if r.Behavior == BehaviorDeny && r.matchesParameterValue(c) {
			v := c.denyVerdict("rule", "Permission to use "+c.use.Name+" with "+r.content+" has been denied.")
			v.DenyRule, v.Decision.Source = true, c.sourceOfDenialByRule()
			return v.withDecisionRuleSourceAndCode(r.Source)
		}
	}
	switch c.name {
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit":
		if c.name == "Read" && !isPathDeniedWithoutFollowingLinks(c) { // the rule denies only the target of the link
			break
		}
		return c.denyFileAsToolErrorVerdict("File is in a directory that is denied by your permission settings.", c.sourceOfDenialByRule()).withDecisionRuleSourceAndCode(c.modeAndRules.rules.denyRuleSource(c))
	}
	what := "use " + c.use.Name
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		return c.newCommandLineDenialVerdict()
	case claudecode.ToolClassRead:
		what = "read " + c.path
	default:
	}
	message := "Permission to " + what + " has been denied."
	if c.toolClass == claudecode.ToolClassSkill {
		message = "Skill execution blocked by permission rules"
	}
	if c.toolClass == claudecode.ToolClassFetch && c.domain != "" && slices.ContainsFunc(c.modeAndRules.rules.rules, func(r rule) bool {
		return r.Behavior == BehaviorDeny && r.content != "" && r.matchesAnyPart(c)
	}) {
		message = c.use.Name + " denied access to domain:" + c.domain + "."
	}
	v := c.denyVerdict("rule", message)
	v.DenyRule, v.Decision.Source = true, c.sourceOfDenialByRule()
	return v.withDecisionRuleSourceAndCode(c.modeAndRules.rules.denyRuleSource(c))
}

// sourceOfDenialByRule returns the source of a denial; a rule in the user's own settings counts as a refusal by the user.
func (c *analyzedCall) sourceOfDenialByRule() (userRejectOrConfig string) {
	return c.modeAndRules.rules.denialSourceOfFirstDenyRule(func(r rule) bool { return r.matchesAnyPart(c) })
}

// newCommandLineDenialVerdict refuses a command line. If one command of a pipeline is the reason, the message shows it.
func (c *analyzedCall) newCommandLineDenialVerdict() Verdict {
	reasonType, command := "subcommandResults", c.command
	single := len(c.script.Commands) == 1
	for _, r := range c.modeAndRules.rules.rules {
		if r.Behavior != BehaviorDeny || !r.coversToolOfCall(c) {
			continue
		}
		if r.content == "" { // the rule covers the whole tool
			v := c.denyVerdict("rule", "Permission to use "+c.use.Name+" has been denied.")
			v.DenyRule = true
			return v.withDecisionRuleSourceAndCode(r.Source)
		}
		if r.matchesCallAsOneUnit(c) || c.parseErr != nil || c.script.Obstacle.Kind != shellcmd.NoObstacle && c.script.Obstacle.Kind != shellcmd.ObstacleBackground ||
			single && slices.Contains(c.script.Commands[0].UnwrappedCommandLines(), r.content) {
			reasonType = "rule"
		}
		for _, cmd := range c.script.Commands {
			if c.script.IsPipeline && reasonType != "rule" && r.matchesCommand(cmd) {
				command = cmd.Stage
			}
		}
	}
	v := c.denyCommandVerdict(reasonType, command)
	if reasonType == "rule" {
		v.Decision.Source = c.sourceOfDenialByRule()
	}
	return v.withDecisionRuleSourceAndCode(c.modeAndRules.rules.denyRuleSource(c))
}

func (c *analyzedCall) denyCommandVerdict(reasonType, command string) Verdict {
	v := c.denyVerdict(reasonType, "Permission to use Bash with command "+command+" has been denied.")
	v.DenyRule = true
	return v
}

func (c *analyzedCall) denialEvent(message, reasonType, reason string) *protocol.PermissionDeniedEvent {
	return &protocol.PermissionDeniedEvent{Type: "system", Subtype: "permission_denied", ToolName: c.use.Name, ToolUseID: c.use.ID, DecisionReasonType: reasonType, DecisionReason: reason, Message: message}
}

func (c *analyzedCall) allowedDirectoriesText() string {
	return strings.Join(c.modeAndRules.resolver.workingDirs, "', '")
}

const needsApprovalText = "This command requires approval"

// approvalWithEmptySuggestionList returns an approval request whose message is the reason. Its suggestions are empty.
func approvalWithEmptySuggestionList(reason string) *approvalRequest {
	return &approvalRequest{message: reason, reasonType: "other", reason: reason, suggestions: []protocol.PermissionUpdate{}}
}

// ambiguityApproval returns the request for a command that a shell may parse differently. Every mode requires it.
func ambiguityApproval() approvalRequest {
	q := *approvalWithEmptySuggestionList("This command could not be checked for dangerous rm operations: the shell may read it differently than it was parsed. This requires explicit approval.")
	q.reasonType, q.safety = "safetyCheck", protocol.SafetyNeedsApprovalOfEachCall
	return q
}

// approvalWithoutSuggestionList is like approvalWithEmptySuggestionList, but omits the list of suggestions.
func approvalWithoutSuggestionList(reason string) *approvalRequest {
	return &approvalRequest{message: reason, reasonType: "other", reason: reason}
}

//go:embed obstacles.json
var obstacleTable string

// obstacleTexts has the reason for each kind of obstacle. In it, %s stands for the details of the obstacle.
var obstacleTexts = sync.OnceValue(func() (texts map[shellcmd.ObstacleKind]string) {
	_ = json.Unmarshal([]byte(obstacleTable), &texts) // the file is part of the program
	return texts
})

// obstacleApproval returns the approval request for a command line with an obstacle to its analysis; nil means no question.
// commandsAreAllowed is true if the commands themselves would be allowed.
func obstacleApproval(o shellcmd.Obstacle, commandsAreAllowed bool) *approvalRequest {
	switch o.Kind {
	case shellcmd.NoObstacle:
		return nil
	case shellcmd.ObstacleSubshell:
		return approvalWithoutSuggestionList("This command uses shell operators that require approval for safety").setReasonCode(reasonCodeShellOperators)
	case shellcmd.ObstacleBackground:
		if !commandsAreAllowed {
			return approvalWithoutSuggestionList(needsApprovalText)
		}
		q := approvalWithoutSuggestionList("This command uses the `&` background operator, which defers execution past approval-time safety checks. Approve only if you trust it.")
		q.reasonType, q.safety, q.circuitBreaker = "safetyCheck", protocol.SafetyNeedsApprovalOfEachCall, "backgroundOperator"
		return q
	default:
		code := reasonCodeTooComplex
		if slices.Contains([]shellcmd.ObstacleKind{shellcmd.ObstacleEval, shellcmd.ObstacleArithmeticTest, shellcmd.ObstacleVariableTestWithSubscript}, o.Kind) {
			code = reasonCodeSemantics
		}
		text := cmp.Or(obstacleTexts()[o.Kind+shellcmd.ObstacleKind("/"+o.Text)], obstacleTexts()[o.Kind], "A variable in this command can't be checked before it runs")
		return approvalWithEmptySuggestionList(strings.ReplaceAll(text, "%s", o.Text)).setReasonCode(code)
	}
}

// approvalForDangerousFindOrAwk returns the approval request for a find or awk command that may run other
// commands or change files; nil means none. The approval is required even if a rule allows the command.
func approvalForDangerousFindOrAwk(cmd shellcmd.Command) *approvalRequest {
	if cmd.Name() == "awk" && strings.Contains(strings.Join(cmd.Args, " "), "system(") {
		return approvalWithEmptySuggestionList("awk program contains system() which executes arbitrary commands").setReasonCode(reasonCodeSemantics)
	}
	if cmd.Name() != "find" {
		return nil
	}
	for _, arg := range cmd.Args {
		if slices.Contains(strings.Fields("-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf"), arg) {
			return approvalWithEmptySuggestionList("find with '" + arg + "' executes commands or modifies files — cannot be auto-allowed by a Bash(find:*) prefix rule").setReasonCode(reasonCodeSemantics)
		}
	}
	return nil
}

// unansweredMessage returns the message of a denial if no user answered the permission question.
func (c *analyzedCall) unansweredMessage() string {
	what := "use " + c.use.Name
	switch c.toolClass {
	case claudecode.ToolClassRead:
		what = "read from " + c.path
	case claudecode.ToolClassWrite:
		what = "write to " + c.path
	case claudecode.ToolClassSkill:
		return "Execute skill: " + c.agentTypeOrSkill + ". The user can add the allow rule Skill(" + c.agentTypeOrSkill + ") to .claude/settings.local.json to let it run without asking."
	default:
	}
	return unansweredRequestMessage(what)
}

func unansweredRequestMessage(what string) string {
	return "Claude requested permissions to " + what + ", but you haven't granted it yet."
}

// suggestUpdates returns the updates that a host may include in its answer, so that similar calls need no question.
func (c *analyzedCall) suggestUpdates() []protocol.PermissionUpdate {
	outside := !c.modeAndRules.resolver.isInWorkingDir(c.path)
	dir := filepath.Dir(c.path)
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		return []protocol.PermissionUpdate{suggestAllowRuleForSimilarCommands(c.command)}
	case claudecode.ToolClassRead:
		if !outside {
			return nil
		}
		if c.name != "Read" {
			dir = c.path
		}
		u := allowRuleUpdate("Read", "/"+strings.TrimSuffix(dir, "/")+"/**")
		u.Destination = "session"
		return []protocol.PermissionUpdate{u}
	case claudecode.ToolClassWrite:
		if c.modeAndRules.mode == protocol.ModePlan {
			return nil // no update permits the call before plan mode ends
		}
		updates := append([]protocol.PermissionUpdate{}, c.acceptEditsSuggestion()...)
		if outside {
			updates = append(updates, protocol.PermissionUpdate{Type: "addDirectories", Directories: []string{dir}, Destination: "session"})
		}
		return updates
	case claudecode.ToolClassFetch:
		if c.domain == "" {
			return nil
		}
		return []protocol.PermissionUpdate{allowRuleUpdate(c.name, "domain:"+c.domain)}
	case claudecode.ToolClassSkill:
		return []protocol.PermissionUpdate{allowRuleUpdate(c.name, c.agentTypeOrSkill)}
	default:
		return []protocol.PermissionUpdate{allowRuleUpdate(c.use.Name, "")}
	}
}

var subcommandPattern = shellcmd.LazyRegexp(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// suggestAllowRuleForSimilarCommands suggests a rule for commands that begin with the first two words of this command, if the second
// word looks like a subcommand and the first does not run other programs. Otherwise it suggests a rule for this command line only.
func suggestAllowRuleForSimilarCommands(command string) protocol.PermissionUpdate {
	text, _, heredoc := strings.Cut(strings.TrimSpace(command), " <<")
	if name, rest, found := strings.Cut(text, " "); found && strings.HasPrefix(name, "NODE_ENV=") {
		text = rest
	}
	if first, _, several := strings.Cut(text, "\n"); several && !strings.Contains(first, " ") {
		return allowRuleUpdate("Bash", first+" *")
	}
	words := strings.Fields(text)
	if heredoc && len(words) > 2 {
		return allowRuleUpdate("Bash", words[0]+" "+words[1]+" *")
	}
	if len(words) > 1 && subcommandPattern().MatchString(words[1]) && !runsOtherPrograms(words[0]) {
		text = words[0] + " " + words[1] + " *"
	}
	return allowRuleUpdate("Bash", text)
}

// runsOtherPrograms reports whether a program runs other programs, so that a rule with it as prefix allows too much.
func runsOtherPrograms(name string) bool {
	programs := "bash sh zsh sudo su env nice nohup time timeout xargs stdbuf exec eval command builtin watch doas"
	return strings.Contains(name, "=") || slices.Contains(strings.Fields(programs), name)
}

func allowRuleUpdate(tool, content string) protocol.PermissionUpdate {
	return protocol.PermissionUpdate{Type: "addRules", Rules: []protocol.PermissionRule{{ToolName: tool, RuleContent: content}}, Behavior: BehaviorAllow, Destination: "localSettings"}
}
