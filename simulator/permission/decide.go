package permission

import (
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Decide gives the verdict on one call without asking anybody. Of an Ask, the
// denial fields say what follows when nobody can be asked.
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
	c := p.inspect(use, tool)
	switch {
	case p.opts.AutoApprove != nil && p.opts.AutoApprove(use.Name):
		return c.allow("")
	case !c.complete:
		return Verdict{Behavior: Allow}
	}
	v := p.decide(c)
	if v.Behavior == Ask {
		v = p.unasked(c, v)
	}
	return v
}

// decide is the order of precedence (spec: cli-contract 6.1).
func (p *Policy) decide(c *call) Verdict {
	if v := p.forbidden(c); v != nil {
		return *v
	}
	if p.anyRule(BehaviorAsk, c) {
		v := c.ask(c.requested(), "rule", "")
		v.AskRule = true
		return v
	}
	if c.kind == kindUser {
		v := c.ask(c.requested(), "", "")
		v.RequiresUser, v.Suggestions = true, nil
		return v
	}
	if q := c.veiledInside(); q != nil {
		return c.put(*q)
	}
	if q := c.removal(); q != nil {
		return c.put(*q)
	}
	if p.mode == protocol.ModeBypass {
		return c.allow("mode")
	}
	if q := c.safety(); q != nil {
		return c.put(*q)
	}
	if p.mode == protocol.ModePlan && c.kind == kindWrite {
		v := c.ask("Cannot write to "+c.path+" while in plan mode.", "mode", "")
		v.Suggestions = nil // nothing short of leaving the mode would help
		return v
	}
	if p.anyRule(BehaviorAllow, c) {
		return c.allowByRule()
	}
	return p.byKind(c)
}

// forbidden is the refusal of a deny rule; nil = no rule refuses.
func (p *Policy) forbidden(c *call) *Verdict {
	if p.anyRule(BehaviorDeny, c) {
		v := c.denyByRule()
		return &v
	}
	switch c.kind {
	case kindShell:
		if v := c.deniedPath(); v != nil {
			return v
		}
		return p.forbiddenInside(c)
	case kindWrite:
		return c.unreadable()
	default:
		return nil
	}
}

// Refuses gives the verdict on a file that deny rules refuse before its tool
// looks at the input; false = it is left to [Policy.Decide].
func (p *Policy) Refuses(use protocol.ToolUse) (Verdict, bool) {
	if k := kindOf(canonicalName(use.Name)); k != kindRead && k != kindWrite {
		return Verdict{}, false
	}
	v := p.Decide(use)
	return v, v.Behavior == Deny && v.DenyRule && v.ToolError
}

// byKind decides a call that no rule is about.
func (p *Policy) byKind(c *call) Verdict {
	switch c.kind {
	case kindShell:
		return p.shell(c)
	case kindRead:
		if p.inside(c.path) || p.checked() {
			return c.allow("mode")
		}
		return c.askOutside(c.requested())
	case kindWrite:
		if !p.inside(c.path) {
			return c.askOutside(c.requested())
		}
		if p.editsAllowed() {
			return c.allow("mode")
		}
	case kindAgent, kindFree:
		return c.allow("")
	case kindFetch:
		if c.documentation() {
			return c.allow("other")
		}
	case kindSkill:
		if p.opts.AskSkill == nil || !p.opts.AskSkill(c.subject) {
			return c.allow("")
		}
	default:
	}
	return c.ask(c.requested(), "", "")
}

// checked tells whether the mode has a classifier look at what is not allowed.
func (p *Policy) checked() bool {
	return p.mode == protocol.ModeAuto || p.mode == protocol.ModePlan
}

// editsAllowed tells whether the mode lets files inside the working
// directories be changed.
func (p *Policy) editsAllowed() bool {
	return p.mode == protocol.ModeAcceptEdits || p.mode == protocol.ModeAuto
}

func (p *Policy) anyRule(behavior string, c *call) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		if r.Behavior != behavior {
			return false
		}
		if behavior == BehaviorAllow {
			return r.matches(c)
		}
		return r.forbids(c)
	})
}

// unasked turns a question into the denial that the mode or the options make
// of it before anybody is asked.
func (p *Policy) unasked(c *call, v Verdict) Verdict {
	switch {
	case p.mode == protocol.ModeDontAsk:
		return c.deny("mode", c.dontAsk())
	case p.opts.NoPrompts:
		return c.deny("asyncAgent", c.noPrompts())
	case v.AskRule || v.RequiresUser || p.opts.HasAsker:
		return v
	case p.checked() && v.Safety == protocol.SafetyDangerous:
		reason := v.Reason
		v = c.deny("safetyCheck", tooDangerous())
		v.Event.DecisionReason = reason
		return v
	case p.mode == protocol.ModeAuto, p.mode == protocol.ModePlan && v.ReasonType != "mode":
		v = c.deny("classifier", c.unclassified())
		v.NonExecutionKind = "automode-unavailable"
		v.Event.DecisionReasonCode = "auto_mode_no_check_in_session"
		v.Event.DecisionReason = "Classifier unavailable"
		return v
	}
	return v
}

// Behavior is what becomes of a call.
type Behavior int

// The zero value is Ask: a verdict nobody filled in lets nothing run.
const (
	Ask Behavior = iota
	Allow
	Deny
)

// Verdict is the outcome of [Policy.Decide], with what the stream shows of it.
type Verdict struct {
	Behavior Behavior
	// Decision is shown in tool_result_meta. Of an Ask it is the decision when
	// nobody can be asked. Zero = permission checks were not reached.
	Decision         protocol.PermissionDecision
	NonExecutionKind string // empty when the call runs
	Message          string // tool result of a denial
	// Event is shown before the result of a denial, without uuid and session_id;
	// nil = none. An Ask that somebody answers shows none.
	Event       *protocol.PermissionDenied
	CountDenial bool // belongs into result.permission_denials
	ToolError   bool // Message goes into <tool_use_error>

	// For can_use_tool, when Behavior is Ask.
	Suggestions  []protocol.PermissionUpdate
	BlockedPath  string
	Safety       protocol.Safety
	Reason       string
	ReasonType   string
	RequiresUser bool
	// DenyRule says that a deny rule refuses: a hook's "allow" does not overrule
	// it, as it does a refusal by mode.
	DenyRule bool
	// AskRule says that an ask rule wants the question: a hook's "allow" does
	// not overrule it.
	AskRule bool
}

// Denial is the result of a call that a Deny refuses, or of an Ask when nobody
// can be asked, and the event to show before it; nil = none.
func (v Verdict) Denial() (protocol.ToolResult, *protocol.PermissionDenied) {
	var r protocol.ToolResult
	event := v.Event
	if v.ToolError {
		r, event = protocol.UsageError(v.Message), nil
		r.Output = "Error: " + v.Message
	} else {
		r = protocol.ErrorResult(v.Message)
		r.NonExecutionKind = v.NonExecutionKind
	}
	if v.Decision != (protocol.PermissionDecision{}) {
		r.Decision = &v.Decision
	}
	return r, event
}
