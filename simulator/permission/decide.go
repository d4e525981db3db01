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

// RemoveUnknownKeys removes, from the input of a built-in tool, the keys that the tool does not have.
func (p *Policy) RemoveUnknownKeys(tool string, input json.RawMessage) json.RawMessage {
	if p.opts.Tool == nil {
		return input
	}
	t, ok := p.opts.Tool(tool)
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
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

// decider decides whether calls may run. It is used while Policy.mu is locked.
type decider struct {
	*judge
	o *Options
}

// Decide returns the verdict on one call. It does not ask anybody. If the verdict is Ask and the session has no
// prompter, the caller denies the call with [Verdict.Denial].
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
	d := decider{p.judgeOf(use.Agent), &p.opts}
	if d.isDecidedByClassifier() {
		d.judge = d.withoutWideRules()
	}
	c := d.newCall(use, tool)
	switch {
	case p.opts.AutoApprove != nil && p.opts.AutoApprove(use.Name):
		return c.allow("")
	case !c.isComplete:
		return Verdict{Behavior: Allow}
	}
	v := d.decide(c)
	if v.Behavior == Ask {
		v = d.denyWithoutPrompt(c, v)
	}
	return v
}

func (p *Policy) judgeOf(agent *protocol.AgentRef) *judge {
	if agent == nil || agent.Mode == "" {
		return &p.judge
	}
	own := p.judge
	own.mode = protocol.PermissionMode(agent.Mode)
	return &own
}

// isDecidedByClassifier reports whether a classifier decides whether calls may run, because no user can be asked.
func (d decider) isDecidedByClassifier() bool {
	return d.hasClassifier() && !d.o.HasAsker && !d.o.NoPrompts
}

// withoutWideRules returns a judge without the rules that would allow every command or every agent. A classifier must
// decide about the calls that these rules would allow (observed with 2.1.330).
func (j *judge) withoutWideRules() *judge {
	narrow, kept := *j, *j.rules
	kept.rules = slices.DeleteFunc(slices.Clone(kept.rules), func(r rule) bool {
		wide := r.tool == "Agent" || r.tool == "Bash" && (r.content == "" || r.isStar || claudecode.PermitsArbitraryCode(r.content))
		return r.Behavior == BehaviorAllow && wide
	})
	narrow.rules = &kept
	return &narrow
}

// decide applies the checks in the order of precedence (spec: cli-contract 6.1).
func (d decider) decide(c *call) Verdict {
	if v := d.denyRuleVerdict(c); v != nil {
		return *v
	}
	if asks := d.rules.firstRule(BehaviorAsk, c); asks != nil {
		return c.askByRule(asks)
	}
	if c.kind == claudecode.ToolClassUser {
		v := c.ask(c.unansweredMessage(), "", "")
		v.RequiresUser, v.Suggestions = true, nil
		return v
	}
	if errors.Is(c.parseErr, shellcmd.ErrUncertain) {
		return c.verdictFor(ambiguityApproval())
	}
	if q := newCommandLine(c).nestedDenyApproval(); q != nil {
		return c.verdictFor(*q)
	}
	if q := newCommandLine(c).removalApproval(); q != nil {
		return c.verdictFor(*q)
	}
	if d.mode == protocol.ModeBypass {
		return c.allow("mode")
	}
	if d.mode == protocol.ModePlan && c.kind == claudecode.ToolClassWrite && d.o.PlanDir != "" && filepath.Dir(c.path) == d.o.PlanDir {
		return c.allow("other")
	}
	if q := c.safetyApproval(); q != nil {
		return c.verdictFor(*q)
	}
	for _, line := range newCommandLine(c).withClosedQuote() {
		if q := line.sensitiveChangeApproval(); q != nil {
			return c.verdictFor(*q)
		}
	}
	if d.mode == protocol.ModePlan && c.kind == claudecode.ToolClassWrite {
		v := c.ask("Cannot write to "+c.path+" while in plan mode.", "mode", "").withReasonCode("mode:plan")
		v.Suggestions = nil // only another mode permits the call, so no rule is suggested
		return v
	}
	if d.mode == protocol.ModePlan && c.server != "" && !c.readOnly {
		return c.ask("Cannot call "+c.use.Name+" while in plan mode.", "mode", "") // this call is refused in plan mode even if a rule allows it (observed with 2.1.330)
	}
	if q := c.suspiciousReadVerdict(); q != nil {
		return *q
	}
	if q := backgroundApproval(newCommandLine(c)); q != nil {
		return c.verdictFor(*q)
	}
	if d.rules.hasRule(BehaviorAllow, c) {
		return c.allowByRule()
	}
	return d.decideByClass(c)
}

func (d decider) denyRuleVerdict(c *call) *Verdict {
	if d.rules.hasRule(BehaviorDeny, c) {
		return new(c.denyByRule())
	}
	switch c.kind {
	case claudecode.ToolClassShell:
		return newCommandLine(c).pathDenial()
	case claudecode.ToolClassWrite:
		return cmp.Or(c.denyByReadRule(), linkDenial(c))
	default:
		return nil
	}
}

// RefuseFile returns a refusal and true if a deny rule covers the file that a call reads or writes. It is called before
// the tool checks the input. If it returns false, [Policy.Decide] must decide about the call.
func (p *Policy) RefuseFile(use protocol.ToolUse) (Verdict, bool) {
	if k := classOf(canonicalName(use.Name)); k != claudecode.ToolClassRead && k != claudecode.ToolClassWrite {
		return Verdict{}, false
	}
	v := p.Decide(use)
	return v, v.Behavior == Deny && v.DenyRule && v.ToolError
}

// decideByClass decides about a call to which no rule applies, by the class of its tool.
func (d decider) decideByClass(c *call) Verdict {
	switch c.kind {
	case claudecode.ToolClassShell:
		return newCommandLine(c).decideShell()
	case claudecode.ToolClassRead:
		if d.resolver.isInWorkingDir(c.path) || d.hasClassifier() {
			return c.allow("mode")
		}
		return c.askOutsideWorkingDir(c.unansweredMessage())
	case claudecode.ToolClassWrite:
		if !d.resolver.isInWorkingDir(c.path) {
			return c.askOutsideWorkingDir(c.unansweredMessage())
		}
		if d.allowsEdits() {
			return c.allow("mode")
		}
	case claudecode.ToolClassNeverAsk:
		return c.allow("")
	case claudecode.ToolClassAgent:
		if !d.isDecidedByClassifier() {
			return c.allow("")
		}
	case claudecode.ToolClassFetch:
		if c.fetchesDocumentation() {
			return c.allow("other")
		}
	case claudecode.ToolClassSkill:
		if d.o.AskSkill == nil || !d.o.AskSkill(c.subject) {
			return c.allow("")
		}
	default:
	}
	return c.ask(c.unansweredMessage(), "", "")
}

var outputPattern = shellcmd.LazyPattern("\\$\\([^()]*\\)|`[^`]*`")

// backgroundApproval returns the question about a command line that runs harmless commands in the background. A rule that
// allows the whole tool does not answer it (observed with 2.1.330).
func backgroundApproval(c commandLine) *approvalRequest {
	if c.parseErr != nil || c.script.Obstacle != (shellcmd.Obstacle{Kind: shellcmd.ObstacleBackground}) {
		return nil
	}
	reading, judge := scriptCommandLine(c, outputPattern().ReplaceAllString(c.command, "x")), *c.judge // output is plain text for commands that read
	reading.judge, judge.mode = &judge, protocol.ModeDefault
	isAssignment := len(c.script.Commands) == 1 && len(c.script.Commands[0].Args) == 0 && c.script.Commands[0].Text != ""
	if (isAssignment || c.isEveryPartAllowed() || reading.isEveryPartAllowed()) && c.redirectionApproval() == nil {
		return obstacleApproval(c.script.Obstacle, true)
	}
	return nil
}

// noApprovalSurfaceText begins as the text of the real CLI, and has its length, because tokens are estimated from lengths.
const noApprovalSurfaceText = "Permission for this tool use was denied. It requires approval, and this session has no approval surface. Nobody can see a permission prompt " +
	"here, so the call was denied automatically and did not run. Do not report that it ran, and do not try it a second time: until the session " +
	"ends, every action that needs an approval is denied. Tell the user what you could not do and for what purpose it was needed. You can " +
	"continue with all other parts of the task that do not need an approval. This is the action that needed an approval: "

// denyWithoutPrompt replaces a question by a denial if the mode or the options prevent the question from being asked.
func (d decider) denyWithoutPrompt(c *call, v Verdict) Verdict {
	switch {
	case d.mode == protocol.ModeDontAsk:
		return c.deny("mode", "Permission to use "+c.use.Name+" has been denied because Claude Code is running in don't ask mode. Only calls that a rule or the mode allows run here; do not try to reach the same end another way.").withReasonCode("mode:dontAsk")
	case d.o.NoPrompts:
		v = c.deny("asyncAgent", noApprovalSurfaceText+v.Message).withReasonCode("unknown")
		v.Event.DecisionReason = "no approval surface in this session; permission request denied automatically"
		return v
	case v.AskRule || v.RequiresUser || d.o.HasAsker:
		return v
	case d.hasClassifier() && v.Safety == protocol.SafetyDangerous:
		reason := v.Reason
		v = c.deny("safetyCheck", "Permission for this command was denied by a built-in Claude Code safety check, not by the user. It stops removals that reach further than they seem to; only a person may approve one.")
		v.Event.DecisionReason = reason
		return v
	case d.mode == protocol.ModeAuto, d.hasClassifier() && v.ReasonType != "mode":
		v = c.deny("classifier", "Auto mode is unavailable: its safety check does not run for this session, so "+c.use.Name+" was not run. Other calls that need the check are refused too; go on with those that need none.")
		v.NonExecutionKind = "automode-unavailable"
		v.Event.DecisionReasonCode = "auto_mode_no_check_in_session"
		v.Event.DecisionReason = "Classifier unavailable"
		v.Decision.ReasonCode = "classifier:auto-mode:unavailable"
		return v
	}
	return v
}

// IsReadable reports whether a file may be read: it is in a working directory, an allow rule for paths covers it, or
// the mode is bypassPermissions. Other modes, and rules that allow a whole tool, do not matter (observed with 2.1.329).
func (p *Policy) IsReadable(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	abs := p.resolver.resolveCallPath(path)
	if p.mode == protocol.ModeBypass || p.resolver.isInWorkingDir(abs) {
		return true
	}
	return slices.ContainsFunc([]string{"Read", "Edit"}, func(tool string) bool {
		file := &call{judge: &p.judge, name: tool, kind: classOf(tool), path: abs}
		return slices.ContainsFunc(p.rules.rules, func(r rule) bool {
			return r.Behavior == BehaviorAllow && r.content != "" && r.matches(file)
		})
	})
}

// IsHidden reports whether a deny rule prevents reading a file.
func (p *Policy) IsHidden(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules.hasPathDenyRule() && p.rules.coversPath(BehaviorDeny, "Read", p.resolver.resolveCallPath(path))
}

// Covers reports whether a rule, in the syntax of settings, applies to the call, or to any part of its shell command.
// An invalid rule applies to nothing. A rule for an agent type applies to no call: see [Policy.DeniedAgent].
func (p *Policy) Covers(ruleText string, use protocol.ToolUse) bool {
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
	c := p.newCall(use, tool)
	return r.matchesAnyPart(c)
}

// DeniedAgent returns the deny rule that prevents agents of a type from starting, and its source; empty means none.
// [Policy.Decide] ignores this rule: the Agent tool runs and reports the rule in its result (observed with 2.1.329).
func (p *Policy) DeniedAgent(name string) (text, source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules.rules {
		if r.Behavior == BehaviorDeny && r.tool == "Agent" && r.content == name {
			return FormatRule(protocol.PermissionRule{ToolName: r.tool, RuleContent: name}), r.Source
		}
	}
	return "", ""
}
