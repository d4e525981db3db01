package permission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// decideShell returns the verdict on a Bash call that no rule for the whole tool covers. It asks about commands that cannot be
// analysed, then about changes of the directory, then about redirections. Otherwise each simple command is decided separately.
func (c commandLine) decideShell() Verdict {
	obstacle := c.script.Obstacle
	if name := c.script.FirstProgramNeedingPermissionDespiteRule(); obstacle.Kind == shellcmd.NoObstacle && name != "" {
		obstacle = shellcmd.Obstacle{Kind: shellcmd.ObstacleEval, Text: name}
	}
	if c.script.IsPipeline && obstacle.Kind == shellcmd.ObstacleBackground {
		obstacle = shellcmd.Obstacle{} // it belongs to one stage, whose commands need approval
	}
	q := obstacleApproval(obstacle, c.isEverySimpleCommandAllowed())
	if c.parseErr != nil && (q == nil || !c.script.Obstacle.IsFoundWithoutParsing()) {
		q = approvalWithEmptySuggestionList("Parse error").setReasonCode(reasonCodeTooComplex)
	}
	if q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	if q := c.riskyDirectoryChangeApproval(); q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	parts := c.decideSimpleCommands()
	refusedOtherwise := slices.ContainsFunc(refusedCommands(parts), func(x commandVerdict) bool { return !isReadOnlyCommandWithWriteRedirect(x.cmd) })
	if q := c.redirectReadOrWriteApproval(); q != nil && (!c.script.IsPipeline || !refusedOtherwise) {
		return c.askVerdictFromApprovalRequest(*q)
	}
	return c.combineVerdicts(parts)
}

// askVerdictForReasonOtherThanRule returns the Ask verdict that the command line would get without the ask rule ignoredAskRule.
// It returns nil if ignoredAskRule is the reason to ask: the rule is about the only command of the line, or nothing
// else requires a question (observed with 2.1.330).
func (c commandLine) askVerdictForReasonOtherThanRule(ignoredAskRule *rule) *Verdict {
	if ignoredAskRule.content != "" && len(c.script.Commands) == 1 && c.script.Obstacle.Kind == shellcmd.NoObstacle {
		return nil
	}
	v := c.decideShell()
	if v.Behavior != Ask || v.Message == needsApprovalText || v.ReasonType == "rule" {
		return nil
	}
	if v.ReasonType == "subcommandResults" && !c.script.IsPipeline && !slices.ContainsFunc(c.decideSimpleCommands(), func(x commandVerdict) bool { return x.approval != nil }) {
		return nil
	}
	return &v
}

func (c commandLine) askRuleSource(cmd shellcmd.Command) (source string, asked bool) {
	for _, r := range c.modeAndRules.rules.rules {
		if r.Behavior == BehaviorAsk && r.content != "" && r.coversToolOfCall(c.analyzedCall) && r.matchesCommand(cmd) {
			return r.Source, true
		}
	}
	return "", false
}

func (c commandLine) isEverySimpleCommandAllowed() bool {
	return !slices.ContainsFunc(c.decideSimpleCommands(), func(x commandVerdict) bool { return !x.isAllowed })
}

type commandVerdict struct {
	cmd                  shellcmd.Command
	isAllowed            bool
	isAllowedByMode      bool             // the permission mode, and no rule, allows the command
	isAllowedByExactRule bool             // an allow rule names this exact command
	changedDirectory     bool             // the command changes files in a directory entered by a cd in the same line
	approval             *approvalRequest // why a command that is not allowed needs approval; nil means that no rule or mode allows it
}

func (c commandLine) decideSimpleCommands() (parts []commandVerdict) {
	for i := range c.script.Commands {
		parts = append(parts, c.decideSimpleCommand(i))
	}
	return parts
}

// decideSimpleCommand decides whether the simple command at index i may run. Ask rules, the form of the command and its
// paths may require an approval that no allow rule can replace. Otherwise the command is allowed if an allow rule
// applies to it, if it only reads, or if the mode allows it to change files.
func (c commandLine) decideSimpleCommand(commandIndex int) commandVerdict {
	cmd := c.script.Commands[commandIndex]
	out := commandVerdict{cmd: cmd}
	if source, asked := c.askRuleSource(cmd); asked {
		out.approval = &approvalRequest{message: c.unansweredMessage(), reasonType: "rule", reasonCode: ruleReasonCode(source)}
		return out
	}
	if stage := commandLineWithScript(c, cmd.Stage); c.script.IsPipeline && stage.script.Obstacle.Kind == shellcmd.ObstacleBackground {
		if out.approval = harmlessBackgroundApproval(stage); out.approval != nil {
			out.approval.reasonCode = out.approval.reasonType
		}
		return out
	}
	inner := cmd.WithoutBuiltinAndTimeoutPrefix()
	if q := approvalForDangerousFindOrAwk(inner); q != nil {
		out.approval = q
		return out
	}
	if q := c.approvalIfCommandChangesFilesInLineWithCD(inner); q != nil {
		out.approval, out.changedDirectory = q, true
		return out
	}
	outside, inside := c.approvalsForFirstUnpermittedPath(cmd)
	if outside != nil {
		out.approval = outside
		return out
	}
	switch exact, match := c.allowedByRule(cmd); {
	case match:
		out.isAllowed, out.isAllowedByExactRule = true, exact
	case c.script.HasOpenQuote && commandIndex == len(c.script.Commands)-1 && inner.Name() == "sed": // the real CLI does not parse it (observed with 2.1.330)
	case cmd.IsReadOnly():
		isUnknownFileShown := inner.Name() == "xargs" && !slices.Contains([]string{"", "xargs", "echo", "printf"}, cmd.Innermost().Name())
		out.isAllowed = !isUnknownFileShown || c.script.IsInputFileListFromPipeline(commandIndex) || !c.modeAndRules.rules.hasPathDenyRule()
	case c.modeAndRules.modeIsAcceptEditsOrAuto() && (isAllowedByAcceptEditsMode(cmd) || isReadOnlyCommandWithWriteRedirect(cmd)):
		out.isAllowed, out.isAllowedByMode = true, true
	case isReadOnlyCommandWithWriteRedirect(cmd) && c.redirectReadOrWriteApproval() == nil:
		out.isAllowed = true
	case c.modeAndRules.modeIsAcceptEditsOrAuto() && cmd.Name() == "sed":
		out.approval = dangerousSedApproval()
	default:
		out.approval = inside
	}
	return out
}

// isAllowedByAcceptEditsMode reports whether the permission mode acceptEdits allows the command. The command touch is allowed
// only as the first word, without quotes and options (observed with 2.1.330).
func isAllowedByAcceptEditsMode(cmd shellcmd.Command) bool {
	inner := cmd.WithoutUnprivilegedWrappers()
	own := cmd.Args[:len(cmd.Args)-len(inner.Args)]
	isUnclear := func(w shellcmd.Word) bool { return w.IsDynamic || w.Shape != "" && strings.Trim(w.Shape, `\`) == "" }
	switch {
	case slices.ContainsFunc(cmd.Words, isUnclear), cmd.Interleaved, cmd.IsContinued, cmd.IsTimed && len(cmd.Assignments) > 0,
		!cmd.AreAssignmentsHarmless(), !wrapperPattern().MatchString(strings.Join(own, " ") + " "):
		return false
	case inner.Name() == "touch":
		return len(own)+len(cmd.Assignments) == 0 && !cmd.IsTimed && cmd.Words[0].Source == "touch" && !slices.ContainsFunc(cmd.Args, func(a string) bool { return a != "" && strings.ContainsRune("- \t\n\\", rune(a[0])) })
	case inner.Name() == "sed":
		return inner.IsPlainSedSubstitution() || inner.IsReadOnly()
	}
	return isAutoAllowedInAcceptEdits(inner.Name())
}

// commandSubstitutionPattern matches command substitutions, and arithmetic expansions with the character before them.
var commandSubstitutionPattern = shellcmd.LazyRegexp("([\\s\\w])\\$\\(\\([^()]*\\)\\)|\\$\\([^()]*\\)|`[^`]*`")

// harmlessBackgroundApproval returns the approval request for a command line that runs harmless commands in the
// background. A rule that allows the whole tool does not replace the approval (observed with 2.1.330).
func harmlessBackgroundApproval(c commandLine) *approvalRequest {
	if c.parseErr != nil || c.script.Obstacle != (shellcmd.Obstacle{Kind: shellcmd.ObstacleBackground}) {
		return nil
	}
	if c.script.IsPipeline {
		if slices.ContainsFunc(c.script.Commands, func(cmd shellcmd.Command) bool {
			return harmlessBackgroundApproval(commandLineWithScript(c, cmd.Stage)) != nil
		}) {
			return new(approvalForRefusedCommands(refusedCommands(c.decideSimpleCommands())))
		}
		return nil
	}
	reading, judge := commandLineWithScript(c, commandSubstitutionPattern().ReplaceAllString(c.command, "${1}x")), *c.modeAndRules // for commands that read, substitutions and constant arithmetic count as plain text
	reading.modeAndRules, judge.mode = &judge, protocol.ModeDefault
	isAssignment := len(c.script.Commands) == 1 && len(c.script.Commands[0].Args) == 0 && c.script.Commands[0].Text != ""
	if (isAssignment || c.isEverySimpleCommandAllowed() || reading.isEverySimpleCommandAllowed()) && c.redirectReadOrWriteApproval() == nil {
		return obstacleApproval(c.script.Obstacle, true)
	}
	return nil
}

func (c commandLine) combineVerdicts(parts []commandVerdict) Verdict {
	refused := refusedCommands(parts)
	switch {
	case len(refused) == 0 && c.script.IsOpaque:
		return c.askVerdictFromApprovalRequest(*approvalWithoutSuggestionList(needsApprovalText))
	case len(refused) == 0 && len(parts) == 1 && parts[0].isAllowedByExactRule:
		return c.allowByRuleVerdict()
	case len(refused) == 0 && len(parts) == 1 && parts[0].isAllowedByMode && c.modeAndRules.mode == protocol.ModeAuto:
		return c.allowVerdict("mode")
	case len(refused) == 0:
		return c.allowVerdict("subcommandResults")
	case len(refused) == 1 && refused[0].approval != nil && !c.script.IsPipeline:
		return c.askVerdictFromApprovalRequest(*refused[0].approval)
	case len(parts) == 1:
		q, similar := *approvalWithEmptySuggestionList(needsApprovalText), c.command
		if strings.HasPrefix(c.command, "cd "+c.startDirs[0]) {
			similar = parts[0].cmd.Text // without the cd that does not count
		}
		q.suggestions = append(q.suggestions, suggestAllowRuleForSimilarCommands(similar))
		return c.askVerdictFromApprovalRequest(q)
	}
	q := approvalForRefusedCommands(refused)
	if strings.Contains(c.command, "\\\n") {
		q.reasonCode = reasonCodeTooComplex // a command that continues on the next line has this code (observed with 2.1.330)
	}
	return c.askVerdictFromApprovalRequest(q)
}

func refusedCommands(parts []commandVerdict) []commandVerdict {
	return slices.DeleteFunc(slices.Clone(parts), func(x commandVerdict) bool { return x.isAllowed })
}

func approvalForRefusedCommands(refusedCommands []commandVerdict) approvalRequest {
	var texts []string
	moved, circuitBreaker := false, ""
	var out []protocol.PermissionUpdate
	rules := protocol.PermissionUpdate{}
	for _, x := range refusedCommands {
		if text := cmp.Or(x.cmd.Stage, x.cmd.Text); x.cmd.Stage == "" || !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		moved = moved || x.changedDirectory
		if x.approval != nil {
			circuitBreaker = cmp.Or(circuitBreaker, x.approval.circuitBreaker)
		}
		if x.approval != nil && len(refusedCommands) == 1 {
			out = append(out, x.approval.suggestions...)
			continue
		}
		rule := suggestAllowRuleForSimilarCommands(x.cmd.Text)
		if reads := x.approval.suggestedReadRules(); reads != nil {
			rule.Rules = reads
		}
		rule.Rules = append(rules.Rules, rule.Rules...)
		rules = rule
	}
	if moved {
		out = nil
	} else if len(rules.Rules) > 0 {
		out = append(out, rules)
	}
	what := "The following part requires approval: "
	if len(texts) > 1 {
		what = "The following parts require approval: "
	}
	return approvalRequest{circuitBreaker: circuitBreaker, message: "This Bash command contains multiple operations. " + what + strings.Join(texts, ", "), reasonType: "subcommandResults", suggestions: out, reasonCode: reasonCodeOfRefusedCommands(refusedCommands)}
}

// reasonCodeOfRefusedCommands returns the reason code of a command line from the codes of its refused parts. A part whose paths
// are the problem has no code. If parts have different codes, the result lists them all.
func reasonCodeOfRefusedCommands(refusedCommands []commandVerdict) string {
	var codes []string
	for _, x := range refusedCommands {
		code := reasonCodeNoRule
		if x.approval != nil {
			code = x.approval.reasonCode
		}
		if code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	switch len(codes) {
	case 0:
		return "subcommandResults"
	case 1:
		return codes[0]
	}
	slices.Sort(codes)
	return "subcommands:" + strings.Join(codes, "+")
}

func isReadOnlyCommandWithWriteRedirect(cmd shellcmd.Command) bool {
	written := shellcmd.HasWrite(cmd.Redirects)
	cmd.Redirects = nil
	return written && !cmd.Redirected && len(cmd.Args) > 0 && cmd.Args[0] != "[" && cmd.IsReadOnly()
}

// wrapperPattern matches programs that only run another program, such as nohup. A rule for the other program also
// applies to the wrapped command, but only if the wrapper has no options outside the pattern (observed with 2.1.330).
var wrapperPattern = shellcmd.LazyRegexp(`^ ?(noglob )*(nohup |nice (-n -?\d+ |-\d+ )?|stdbuf (-[ioe](L|\d+) )+|(command|builtin) (-\S+ )*|` +
	`timeout ((--foreground|--preserve-status|--verbose|-v|--(signal|kill-after)[= ]\S+|-[sk] ?\S+) )*\d+(\.\d+)?[smhd]? )*$`)

// allowedByRule reports whether an allow rule applies to the command (match), and whether the text of a rule equals the
// complete command (exact).
func (c commandLine) allowedByRule(cmd shellcmd.Command) (exact, match bool) {
	type spelling struct {
		text   string
		spaced bool // the rule is a pattern, so it does not name the command completely
	}
	texts := []spelling{{cmd.Text, slices.ContainsFunc(cmd.Words, func(w shellcmd.Word) bool { return w.HasExtraSpace })}}
	from := func(i int) {
		text, spaced := cmd.SourceFromWord(i)
		texts = append(texts, spelling{text, spaced})
	}
	own := len(cmd.Args) - len(cmd.WithoutUnprivilegedWrappers().Args)
	switch {
	case cmd.Redirected || cmd.Interleaved:
	case len(cmd.Args) > 1 && cmd.Args[0] == "xargs":
		from(1)
		texts[1].spaced = true
	case len(cmd.Args) > 0 && cmd.AreAssignmentsHarmless() && wrapperPattern().MatchString(strings.Join(cmd.Args[:own], " ")+" "):
		from(own)
	}
	hereString := slices.ContainsFunc(cmd.Redirects, func(r shellcmd.Redirect) bool { return r.Op == "<<<" })
	for _, r := range c.modeAndRules.rules.rules {
		if r.Behavior != BehaviorAllow || r.content == "" || !r.coversToolOfCall(c.analyzedCall) {
			continue
		}
		for _, text := range texts {
			if (text.spaced || hereString) && !strings.Contains(r.content, "*") {
				continue
			}
			exact = exact || r.content == text.text
			match = match || ruleContentMatchesCommand(r.content, text.text)
		}
	}
	return exact, match
}

// The reason codes of shell commands (observed with 2.1.330).
const (
	reasonCodeUnknown         = "unknown"
	reasonCodeNoRule          = "bashMiss:no-rule-match"
	reasonCodeTooComplex      = "bashMiss:too-complex"
	reasonCodeSemantics       = "bashMiss:semantics"
	reasonCodeShellOperators  = "bashMiss:shell-operators"
	reasonCodeMultipleCD      = "bashMiss:multi-cd"
	reasonCodeCDWithGit       = "bashMiss:cd-git-compound"
	reasonCodeCDWithRedirect  = "bashMiss:cd-compound-redirect"
	reasonCodeCDWithWrite     = "bashMiss:cd-compound-write"
	reasonCodeCopyOrMoveFlags = "bashMiss:flag-validation"
	reasonCodeDangerousSed    = "bashMiss:sed-dangerous"
)
