package permission

import (
	"github.com/claudeless/claudeless/simulator/protocol"
)

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
