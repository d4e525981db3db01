package permission

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// RemoveUnknownBuiltinInputKeys removes, from the input of a built-in tool, the keys that the tool does not have.
func (p *Policy) RemoveUnknownBuiltinInputKeys(tool string, input json.RawMessage) json.RawMessage {
	if p.opts.Tool == nil {
		return input
	}
	t, ok := p.opts.Tool(tool)
	var schema struct{ Properties map[string]json.RawMessage }
	var keys map[string]json.RawMessage
	if !ok || t.Server != "" || json.Unmarshal(t.InputSchema, &schema) != nil || json.Unmarshal(input, &keys) != nil {
		return input
	}
	before := len(keys)
	maps.DeleteFunc(keys, func(key string, _ json.RawMessage) bool { _, known := schema.Properties[key]; return !known })
	if len(keys) == before {
		return input
	}
	known, err := json.Marshal(keys)
	if err != nil {
		return input
	}
	return known
}

// callDecider decides whether calls may run. It is used while Policy.mu is locked.
type callDecider struct {
	*modeAndRules
	policyOptions *Options
}

// Decide returns the verdict on one call. It asks no user: if the verdict is Ask, the caller asks,
// or denies the call with [Verdict.Denial] if the session has no prompter.
func (p *Policy) Decide(use protocol.ToolUse) Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	var tool protocol.Tool
	if p.opts.Tool != nil {
		found := false
		if tool, found = p.opts.Tool(use.Name); !found {
			return Verdict{Behavior: Allow}
		}
	}
	d := callDecider{p.modeAndRulesOfAgent(use.Agent), &p.opts}
	if d.doesClassifierDecideInsteadOfUser() {
		d.modeAndRules = d.withoutRulesAllowingAnyCommandOrAgent()
	}
	c := d.analyzeCall(use, tool)
	switch {
	case p.opts.AutoApprove != nil && p.opts.AutoApprove(use.Name):
		return c.allowVerdict("")
	case !c.isComplete:
		return Verdict{Behavior: Allow}
	}
	v := d.decide(c)
	if v.Behavior == Ask {
		v = d.denyIfQuestionMayNotBeAsked(c, v)
	}
	return v
}

func (p *Policy) modeAndRulesOfAgent(agent *protocol.AgentRef) *modeAndRules {
	if agent == nil || agent.Mode == "" {
		return &p.modeAndRules
	}
	own := p.modeAndRules
	own.mode = protocol.PermissionMode(agent.Mode)
	return &own
}

// doesClassifierDecideInsteadOfUser reports whether a classifier decides whether calls may run, because no person at a
// terminal is asked. An SDK host does not count as such a person.
func (d callDecider) doesClassifierDecideInsteadOfUser() bool {
	return d.usesClassifierInMode() && !d.policyOptions.AsksPerson && !d.policyOptions.NoPrompts
}

// withoutRulesAllowingAnyCommandOrAgent returns a copy without the rules that would allow every command or
// every agent. A classifier must decide about the calls that these rules would allow (observed with 2.1.330).
func (j *modeAndRules) withoutRulesAllowingAnyCommandOrAgent() *modeAndRules {
	narrow, kept := *j, *j.rules
	kept.rules = slices.DeleteFunc(slices.Clone(kept.rules), func(r rule) bool {
		wide := r.tool == "Agent" || r.tool == "Bash" && (r.content == "" || r.isStar || claudecode.PermitsArbitraryCode(r.content))
		return r.Behavior == BehaviorAllow && wide
	})
	narrow.rules = &kept
	return &narrow
}

// decide applies the checks in the order of precedence (spec: cli-contract 6.1).
func (d callDecider) decide(c *analyzedCall) Verdict {
	if v := d.denialByRuleOrSymlinkWrite(c); v != nil {
		return *v
	}
	if asks := d.rules.firstMatchingRule(BehaviorAsk, c); asks != nil {
		return c.askByRuleVerdict(asks)
	}
	if c.toolClass == claudecode.ToolClassAsksQuestionToUser {
		v := c.askVerdict(c.unansweredMessage(), "", "")
		v.RequiresUser, v.Suggestions = true, nil
		return v
	}
	if errors.Is(c.parseErr, shellcmd.ErrUncertain) {
		return c.askVerdictFromApprovalRequest(ambiguityApproval())
	}
	if q := newCommandLineOfCall(c).approvalIfNestedScriptHasDeniedCommand(); q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	if q := commandLineWithCDsApplied(c).removalApproval(); q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	if d.mode == protocol.ModeBypass {
		return c.allowVerdict("mode")
	}
	isPlan := d.mode == protocol.ModePlan && d.policyOptions.PlanDir != "" && filepath.Dir(c.path) == d.policyOptions.PlanDir
	if c.toolClass == claudecode.ToolClassWrite && (isPlan || d.resolver.isWritableMemory(c.path)) {
		return c.allowVerdict("other")
	}
	if q := c.approvalIfCallChangesSensitiveFile(); q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	for _, line := range newCommandLineOfCall(c).withClosedQuote() {
		if q := line.sensitiveChangeApproval(); q != nil {
			return c.askVerdictFromApprovalRequest(*q)
		}
	}
	if d.mode == protocol.ModePlan && c.toolClass == claudecode.ToolClassWrite {
		v := c.askVerdict("Cannot write to "+c.path+" while in plan mode.", "mode", "").withReasonCode("mode:plan")
		v.Suggestions = nil // only another mode permits the call, so no rule is suggested
		return v
	}
	if d.mode == protocol.ModePlan && c.server != "" && !c.readOnly {
		return c.askVerdict("Cannot call "+c.use.Name+" while in plan mode.", "mode", "") // this call is refused in plan mode even if a rule allows it (observed with 2.1.330)
	}
	if q := c.verdictIfReadPathIsSpecialOnWindows(); q != nil {
		return *q
	}
	if q := harmlessBackgroundApproval(newCommandLineOfCall(c)); q != nil {
		return c.askVerdictFromApprovalRequest(*q)
	}
	if d.rules.hasMatchingRule(BehaviorAllow, c) {
		return c.allowByRuleVerdict()
	}
	return d.decideWithoutRuleByToolClass(c)
}

func (d callDecider) denialByRuleOrSymlinkWrite(c *analyzedCall) *Verdict {
	if d.rules.hasMatchingRule(BehaviorDeny, c) {
		return new(c.newRuleDenialVerdict())
	}
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		return newCommandLineOfCall(c).denialIfCommandUsesDeniedPath()
	case claudecode.ToolClassWrite:
		return cmp.Or(c.denialIfChangedFileIsReadDenied(), denialIfFileItselfIsSymlink(c))
	default:
		return nil
	}
}

// FileDenialByRule returns a refusal and true if a deny rule covers the file that a call reads or writes. It is called before
// the tool checks the input. If it returns false, [Policy.Decide] must decide about the call.
func (p *Policy) FileDenialByRule(use protocol.ToolUse) (Verdict, bool) {
	if k := toolClassOf(CanonicalToolName(use.Name)); k != claudecode.ToolClassRead && k != claudecode.ToolClassWrite {
		return Verdict{}, false
	}
	v := p.Decide(use)
	return v, v.Behavior == Deny && v.DenyRule && v.ToolError
}

func (d callDecider) decideWithoutRuleByToolClass(c *analyzedCall) Verdict {
	switch c.toolClass {
	case claudecode.ToolClassRunsCommandLine:
		return commandLineWithCDsApplied(c).decideShell()
	case claudecode.ToolClassRead:
		if d.resolver.isInWorkingDir(c.path) || d.usesClassifierInMode() {
			return c.allowVerdict("mode")
		}
		if d.resolver.isReadableOutsideWorkingDirs(c.path) {
			return c.allowVerdict("other")
		}
		return c.askOutsideWorkingDirVerdict(c.unansweredMessage())
	case claudecode.ToolClassWrite:
		if !d.resolver.isInWorkingDir(c.path) {
			return c.askOutsideWorkingDirVerdict(c.unansweredMessage())
		}
		if d.modeIsAcceptEditsOrAuto() {
			return c.allowVerdict("mode")
		}
	case claudecode.ToolClassNeverAsk:
		return c.allowVerdict("")
	case claudecode.ToolClassStartsAgent:
		if !d.doesClassifierDecideInsteadOfUser() {
			return c.allowVerdict("")
		}
	case claudecode.ToolClassFetch:
		if claudecode.NeedsNoPermissionToFetch(c.domain, c.urlPath) {
			return c.allowVerdict("other")
		}
	case claudecode.ToolClassSkill:
		return d.skillVerdictWithoutRule(c)
	default:
	}
	return c.askVerdict(c.unansweredMessage(), "", "")
}

func (d callDecider) skillVerdictWithoutRule(c *analyzedCall) Verdict {
	if d.policyOptions.AskSkill != nil {
		if asks, reasonType, reason := d.policyOptions.AskSkill(c.agentTypeOrSkill); asks {
			v := c.askVerdict(c.unansweredMessage(), reasonType, reason)
			v.Decision.ReasonCode = cmp.Or(reasonType, v.Decision.ReasonCode)
			return v
		}
	}
	return c.allowVerdict("")
}

// noApprovalSurfaceText begins like the text of the real CLI and has the same length, because lengths determine token estimates.
const noApprovalSurfaceText = "Permission for this tool use was denied. It requires approval, and this session has no approval surface. Nobody can see a permission prompt " +
	"here, so the call was denied automatically and did not run. Do not report that it ran, and do not try it a second time: until the session " +
	"ends, every action that needs an approval is denied. Tell the user what you could not do and for what purpose it was needed. You can " +
	"continue with all other parts of the task that do not need an approval. This is the action that needed an approval: "

// denyIfQuestionMayNotBeAsked replaces an Ask verdict by a denial if the mode or the options do not permit a question.
func (d callDecider) denyIfQuestionMayNotBeAsked(c *analyzedCall, question Verdict) Verdict {
	switch {
	case d.mode == protocol.ModeDontAsk:
		return c.denyVerdict("mode", "Permission to use "+c.use.Name+" has been denied because Claude Code is running in don't ask mode. Only calls that a rule or the mode allows run here; do not try to reach the same end another way.").withReasonCode("mode:dontAsk")
	case d.policyOptions.NoPrompts:
		question = c.denyVerdict("asyncAgent", noApprovalSurfaceText+question.Message).withReasonCode("unknown")
		question.Event.DecisionReason = "no approval surface in this session; permission request denied automatically"
		return question
	case question.AskRule || question.RequiresUser:
		return question
	case d.policyOptions.AsksPerson:
		if d.mode == protocol.ModeAuto && question.Safety != protocol.SafetyNeedsApprovalOfEachCall {
			question.Decision.ReasonCode = "other" // auto mode cannot check the call
		}
		return question
	case d.usesClassifierInMode() && question.Safety == protocol.SafetyNeedsApprovalOfEachCall:
		reason := question.Reason
		question = c.denyVerdict("safetyCheck", "Permission for this command was denied by a built-in Claude Code safety check, not by the user. It stops removals that reach further than they seem to; only a person may approve one.")
		question.Event.DecisionReason = reason
		return question
	case d.mode == protocol.ModeAuto, d.usesClassifierInMode() && question.ReasonType != "mode":
		question = c.denyVerdict("classifier", "Auto mode is unavailable: its safety check does not run for this session, so "+c.use.Name+" was not run. Other calls that need the check are refused too; go on with those that need none.")
		question.NonExecutionKind = "automode-unavailable"
		question.Event.DecisionReasonCode = "auto_mode_no_check_in_session"
		question.Event.DecisionReason = "Classifier unavailable"
		question.Decision.ReasonCode = "classifier:auto-mode:unavailable"
		return question
	}
	return question
}

// IsReadableWithoutAsking reports whether a file may be read: it is in a working directory, an allow rule for paths covers it, or
// the mode is bypassPermissions. Other modes, and rules that allow a whole tool, do not matter (observed with 2.1.329). A file for which
// a rule asks may not be read.
func (p *Policy) IsReadableWithoutAsking(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	abs := p.resolver.absolutePathFromCurrentDir(path)
	switch {
	case p.rules.hasRuleForPath(BehaviorAsk, "Read", abs) || slices.ContainsFunc(p.rules.rules, func(r rule) bool { return r.Behavior == BehaviorAsk && r.tool == "Read" && r.content == "" }):
		return false
	case p.mode == protocol.ModeBypass || p.resolver.isInWorkingDir(abs):
		return true
	}
	return slices.ContainsFunc([]string{"Read", "Edit"}, func(tool string) bool {
		file := &analyzedCall{modeAndRules: &p.modeAndRules, name: tool, toolClass: toolClassOf(tool), path: abs}
		return slices.ContainsFunc(p.rules.rules, func(r rule) bool {
			return r.Behavior == BehaviorAllow && r.content != "" && r.matchesCallAsOneUnit(file)
		})
	})
}

// IsReadDenied reports whether a deny rule for paths prevents reading a file.
func (p *Policy) IsReadDenied(path string) (isReadDenied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules.hasPathDenyRule() && p.rules.hasRuleForPath(BehaviorDeny, "Read", p.resolver.absolutePathFromCurrentDir(path))
}

// RuleCoversCall reports whether a rule, in the syntax of settings, applies to the call, or to any part of its shell command.
// A rule with the name of one file tool does not apply to the others. An invalid rule applies to nothing. A rule for an
// agent type applies to no call: see [Policy.DenyRuleForAgentType].
func (p *Policy) RuleCoversCall(ruleText string, use protocol.ToolUse) bool {
	r, err := parseRule(Rule{Text: ruleText, Behavior: BehaviorDeny})
	if err != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var tool protocol.Tool
	if p.opts.Tool != nil {
		tool, _ = p.opts.Tool(use.Name) // for an unknown tool, only the name is known
	}
	c := p.analyzeCall(use, tool)
	if files := c.toolClass == claudecode.ToolClassRead || c.toolClass == claudecode.ToolClassWrite; files && r.toolPattern == nil && r.tool != c.name {
		return false
	}
	if c.toolClass == claudecode.ToolClassWrite && r.content != "" {
		r.tool = "Edit" // the rule whose paths count for all tools that write
	}
	return r.matchesAnyPart(c)
}

// DenyRuleForAgentType returns the deny rule that prevents agents of a type from starting, and its source; empty means none.
// [Policy.Decide] ignores this rule: the Agent tool runs and reports the rule in its result (observed with 2.1.329).
func (p *Policy) DenyRuleForAgentType(name string) (rule, source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules.rules {
		if r.Behavior == BehaviorDeny && r.tool == "Agent" && r.content == name {
			return FormatRule(protocol.PermissionRule{ToolName: r.tool, RuleContent: name}), r.Source
		}
	}
	return "", ""
}
