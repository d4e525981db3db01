package debug

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// CallArguments are the arguments of a call in the form that its caller uses. They are never modified.
type CallArguments interface {
	// Input returns the value that expressions see as the variable input.
	Input() json.RawMessage
	// Truncated returns a copy without large values, for a list of records.
	Truncated() CallArguments
	// MarshalJSON returns an object. Its members become members of the JSON form of CallData.
	json.Marshaler
}

// ClaudelessCallInput is the input of a call by one of claudeless's own callers (see [CallerKind]), as a JSON object.
// ClaudelessCallInput{} means that the input is unknown.
type ClaudelessCallInput struct {
	JSON      json.RawMessage
	ContentID string // id of the canonical form of JSON
}

// Input returns the input as a JSON object.
func (in ClaudelessCallInput) Input() (inputObject json.RawMessage) { return in.JSON }

// Truncated returns a copy in which a marker replaces an input that is too large for a record.
func (in ClaudelessCallInput) Truncated() CallArguments {
	return ClaudelessCallInput{ValueOrTruncationMarker(in.JSON, in.ContentID), in.ContentID}
}

// MarshalJSON writes the input under the key input and, as for calls of older clients, under the key pretty_kwargs.
func (in ClaudelessCallInput) MarshalJSON() ([]byte, error) {
	pretty := in.JSON
	if pretty == nil {
		pretty = json.RawMessage("{}")
	}
	return protocol.Marshal(struct {
		JSON   json.RawMessage `json:"input,omitempty"`
		CID    string          `json:"input_cid,omitempty"`
		Args   [0]struct{}     `json:"args"`
		Kwargs struct{}        `json:"kwargs"`
		Pretty [0]struct{}     `json:"pretty_args"`
		Named  json.RawMessage `json:"pretty_kwargs"`
	}{JSON: in.JSON, CID: in.ContentID, Named: pretty})
}

// CallerProcess identifies the process that made a call.
type CallerProcess struct {
	PID          int     `json:"process_pid"`
	ProcessStart float64 `json:"process_start_time"` // Unix seconds
	ProcessKey   string  `json:"process_key,omitempty"`
}

// NewCallerProcess identifies a process by its id and its start time in Unix seconds; both 0 means unknown.
func NewCallerProcess(pid int, startUnixSeconds float64) CallerProcess {
	p := CallerProcess{PID: pid, ProcessStart: startUnixSeconds}
	if pid != 0 || startUnixSeconds != 0 {
		p.ProcessKey = fmt.Sprintf("%.6f+%d", startUnixSeconds, pid)
	}
	return p
}

// PauseInfo explains why and where a call is stopped. It is zero while the call runs.
type PauseInfo struct {
	Phase        CallPhase             `json:"phase,omitempty"`
	Reason       string                `json:"pause_reason,omitempty"` // breakpoint, exception
	Breakpoint   string                `json:"breakpoint,omitempty"`   // name of the breakpoint that stopped the call
	Capabilities []PauseDecisionAction `json:"capabilities,omitempty"` // actions that the caller supports
}

// CallData describes a call for front ends. It is not modified after a front end has received it.
type CallData struct {
	MethodName string     `json:"method_name"`
	CallID     string     `json:"call_id"`
	Client     CallerKind `json:"client,omitempty"`
	SessionID  string     `json:"session_id,omitempty"`
	ToolUseID  string     `json:"tool_use_id,omitempty"`
	Signature  string     `json:"signature,omitempty"`
	Evaluator  string     `json:"evaluator,omitempty"` // "local" or "client"
	CallerProcess
	PauseInfo
	Values       CallArguments   `json:"-"` // nil means ClaudelessCallInput{}
	PrettyResult json.RawMessage `json:"pretty_result,omitempty"`
	Exception    json.RawMessage `json:"exception,omitempty"`
	CallSite     json.RawMessage `json:"call_site,omitempty"`
	StartedAt    float64         `json:"started_at"`
}

// Input returns the value that expressions see as the variable input.
func (d CallData) Input() json.RawMessage { return d.valuesOrDefault().Input() }

func (d CallData) valuesOrDefault() CallArguments {
	if d.Values == nil {
		return ClaudelessCallInput{}
	}
	return d.Values
}

// MarshalJSON writes the call's fields and its values as members of one object.
func (d CallData) MarshalJSON() ([]byte, error) {
	type bare CallData
	return mergeJSONObjects(bare(d), d.valuesOrDefault())
}

func mergeJSONObjects(parts ...any) ([]byte, error) {
	out := []byte("{")
	for _, part := range parts {
		raw, err := protocol.Marshal(part)
		if err != nil {
			return nil, err
		}
		members := bytes.TrimSpace(raw)
		if len(members) < 2 || members[0] != '{' {
			continue // null
		}
		members = bytes.TrimSpace(members[1 : len(members)-1])
		if len(out) > 1 && len(members) > 0 {
			out = append(out, ',')
		}
		out = append(out, members...)
	}
	return append(out, '}'), nil
}

// maxRecordValueBytes is the size in bytes of the largest value in a record. Larger values are referenced by their CID.
const maxRecordValueBytes = 64 << 10

// ValueOrTruncationMarker returns the value or, if it is too large for a record, the object that replaces it.
func ValueOrTruncationMarker(value json.RawMessage, contentID string) json.RawMessage {
	if len(value) <= maxRecordValueBytes {
		return value
	}
	short, err := protocol.Marshal(struct {
		Truncated bool   `json:"__truncated__"`
		Size      int    `json:"size"`
		CID       string `json:"cid"`
	}{true, len(value), contentID})
	if err != nil {
		return nil
	}
	return short
}

// CallPhase specifies whether a pause is before or after the call.
type CallPhase string

// The phases.
const (
	PhaseBefore    CallPhase = "before"
	PhaseAfterCall CallPhase = "after"
)

// PauseDecisionAction is a decision about a stopped call.
type PauseDecisionAction string

// The actions. Only the hub uses ActionEndedWithoutDecision: it means that the caller has disconnected or the hub was closed.
const (
	ActionContinue             PauseDecisionAction = "continue"
	ActionModify               PauseDecisionAction = "modify"  // the call gets another input or, after it has run, another result
	ActionSkip                 PauseDecisionAction = "skip"    // the tool does not run; the call returns the given result
	ActionRaise                PauseDecisionAction = "raise"   // the call fails
	ActionRunOtherTool         PauseDecisionAction = "replace" // another tool runs
	ActionEndedWithoutDecision PauseDecisionAction = "abandoned"
)

// CallerKind says which program makes a call that can be paused.
type CallerKind string

// The kinds of callers that belong to claudeless. Clients of the older debugger have an empty kind.
const (
	ClientClaudelessRun CallerKind = "claudeless"
	ClientAgentHook     CallerKind = "hook"
	ClientProxy         CallerKind = "proxy"
	ClientExternal      CallerKind = "mcp_client" // calls made through the hub to an external server
)

// CallRecord is a completed call.
type CallRecord struct {
	CallData
	CallEnding
	ExtraFields any // additional members; nil means none

	breakpoints []string // breakpoints that matched the call when it completed
	size        int      // bytes of the call's values
}

// CallEnding describes how a call ended.
type CallEnding struct {
	Status string `json:"status"` // success, exception, or the status of an event
	// Source is "mcp_client" for calls made through the debugger to an external server, whose name is Server.
	Source        string              `json:"source,omitempty"`
	Server        string              `json:"server,omitempty"`
	Action        PauseDecisionAction `json:"action,omitempty"`       // decision before the call
	AfterAction   PauseDecisionAction `json:"after_action,omitempty"` // decision after the call
	CompletedAt   float64             `json:"completed_at"`
	PausedSeconds float64             `json:"paused_for,omitempty"` // how long the call was paused
	ResultCID     string              `json:"result_cid,omitempty"`
	ErrorCID      string              `json:"exception_cid,omitempty"`
	ErrorType     string              `json:"exception_type,omitempty"`
	Error         string              `json:"exception_message,omitempty"`
	Sessions      []string            `json:"repl_sessions,omitempty"`
	// OriginalInput is the input that the agent sent, if the debugger changed the input. FinalResult is the result or the
	// text of the failure that the agent received, if the debugger changed the outcome.
	OriginalInput json.RawMessage `json:"original_input,omitempty"`
	FinalResult   json.RawMessage `json:"final_result,omitempty"`
}

// MarshalJSON writes all parts of the record as one object.
func (rec CallRecord) MarshalJSON() ([]byte, error) {
	return mergeJSONObjects(rec.CallData, rec.CallEnding, rec.ExtraFields)
}
