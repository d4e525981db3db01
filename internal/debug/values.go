package debug

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Values are the arguments of a call as its kind of caller sends them. Values of
// this type are never changed.
type Values interface {
	// Input is what expressions see as input.
	Input() json.RawMessage
	// Short are the values small enough for a record that is one of many.
	Short() Values
	// MarshalJSON writes the members of a call's data that are about them.
	json.Marshaler
}

// Input are the values of our callers: one JSON object. The zero value is of
// calls whose input is not known.
type Input struct {
	JSON json.RawMessage
	CID  string // of the canonical form
}

// Input is the object.
func (in Input) Input() json.RawMessage { return in.JSON }

// Short gives up an object that is too large.
func (in Input) Short() Values { return Input{Shorten(in.JSON, in.CID), in.CID} }

// MarshalJSON writes the input, also where callers that have arguments show them.
func (in Input) MarshalJSON() ([]byte, error) {
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
	}{JSON: in.JSON, CID: in.CID, Named: pretty})
}

// Process is where a call comes from.
type Process struct {
	PID          int     `json:"process_pid"`
	ProcessStart float64 `json:"process_start_time"` // Unix seconds
	ProcessKey   string  `json:"process_key,omitempty"`
}

// NewProcess names a process by its number and its beginning in Unix seconds;
// both 0 = unknown.
func NewProcess(pid int, started float64) Process {
	p := Process{PID: pid, ProcessStart: started}
	if pid != 0 || started != 0 {
		p.ProcessKey = fmt.Sprintf("%.6f+%d", started, pid)
	}
	return p
}

// Halt is why and where a call is stopped; a call that runs has none.
type Halt struct {
	Phase        Phase    `json:"phase,omitempty"`
	Reason       string   `json:"pause_reason,omitempty"` // breakpoint, exception
	Breakpoint   string   `json:"breakpoint,omitempty"`   // the one that stopped it
	Capabilities []Action `json:"capabilities,omitempty"` // what may be decided
}

// CallData is a call as fronts see it. Values of it are never changed once
// they are shown.
type CallData struct {
	MethodName string `json:"method_name"`
	CallID     string `json:"call_id"`
	Client     Client `json:"client,omitempty"`
	SessionID  string `json:"session_id,omitempty"`
	ToolUseID  string `json:"tool_use_id,omitempty"`
	Signature  string `json:"signature,omitempty"`
	Evaluator  string `json:"evaluator,omitempty"` // local, client
	Process
	Halt
	Values       Values          `json:"-"` // nil = Input{}
	PrettyResult json.RawMessage `json:"pretty_result,omitempty"`
	Exception    json.RawMessage `json:"exception,omitempty"`
	CallSite     json.RawMessage `json:"call_site,omitempty"`
	StartedAt    float64         `json:"started_at"`
}

// Input is what expressions see as input.
func (d CallData) Input() json.RawMessage { return d.values().Input() }

func (d CallData) values() Values {
	if d.Values == nil {
		return Input{}
	}
	return d.Values
}

// MarshalJSON writes the values among the other members.
func (d CallData) MarshalJSON() ([]byte, error) {
	type bare CallData
	return join(bare(d), d.values())
}

// join writes the members of several objects as one object.
func join(parts ...any) ([]byte, error) {
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

// maxInRecord is the size up to which records hold values themselves; larger
// ones are found by their CID.
const maxInRecord = 64 << 10

// Shorten gives up a value too large for a record and says so in its place.
func Shorten(v json.RawMessage, cid string) json.RawMessage {
	if len(v) <= maxInRecord {
		return v
	}
	short, err := protocol.Marshal(struct {
		Truncated bool   `json:"__truncated__"`
		Size      int    `json:"size"`
		CID       string `json:"cid"`
	}{true, len(v), cid})
	if err != nil {
		return nil
	}
	return short
}

// Phase is the side of a call that a pause is on.
type Phase string

// The phases.
const (
	Before Phase = "before"
	After  Phase = "after"
)

// Action is what is decided about a stopped call.
type Action string

// The actions. ActionAbandon is what the hub decides when the caller is gone.
const (
	ActionContinue Action = "continue"
	ActionModify   Action = "modify"  // other input, or after the call another result
	ActionSkip     Action = "skip"    // the tool does not run; the result is made up
	ActionRaise    Action = "raise"   // the call fails
	ActionReplace  Action = "replace" // another tool runs
	ActionAbandon  Action = "abandoned"
)

// Client is the kind of a caller, for people.
type Client string

// The callers of ours; those of the older debugger have none.
const (
	ClientRun      Client = "claudeless"
	ClientHook     Client = "hook"
	ClientProxy    Client = "proxy"
	ClientExternal Client = "mcp_client" // calls made through the hub itself
)

// Record is a call that is over.
type Record struct {
	CallData
	Ending
	More json.Marshaler // further members; nil = none

	hit  []string // breakpoints on the call when it was over
	size int      // bytes of its values
}

// Ending is how a call ended.
type Ending struct {
	Status string `json:"status"` // success, exception, or the status of an event
	// Source is "mcp_client" for calls made through the hub to the external
	// server Server.
	Source      string  `json:"source,omitempty"`
	Server      string  `json:"server,omitempty"`
	Action      Action  `json:"action,omitempty"`       // decided before the call
	AfterAction Action  `json:"after_action,omitempty"` // decided after it
	CompletedAt float64 `json:"completed_at"`
	// PausedFor is how many seconds of the time until then the call was paused.
	PausedFor float64  `json:"paused_for,omitempty"`
	ResultCID string   `json:"result_cid,omitempty"`
	ErrorCID  string   `json:"exception_cid,omitempty"`
	ErrorType string   `json:"exception_type,omitempty"`
	Error     string   `json:"exception_message,omitempty"`
	Sessions  []string `json:"repl_sessions,omitempty"`
	// OriginalInput is what the agent asked for, when the input was changed, and
	// FinalResult what it was given, when the result was: a failure is its text.
	OriginalInput json.RawMessage `json:"original_input,omitempty"`
	FinalResult   json.RawMessage `json:"final_result,omitempty"`
}

// MarshalJSON writes all parts as one object.
func (rec Record) MarshalJSON() ([]byte, error) { return join(rec.CallData, rec.Ending, rec.More) }
