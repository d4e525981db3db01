package journal

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Permission is the decision about a call before it ran.
type Permission struct {
	Tool       string `json:"tool"`                  // Tool is the full name of the tool.
	ToolUseID  string `json:"tool_use_id"`           // ToolUseID is the call's id.
	Decision   string `json:"decision"`              // Decision is `accept` or `reject`.
	Source     string `json:"source"`                // Source is who decided: `config`, `hook`, or the user.
	ReasonType string `json:"reason_type,omitempty"` // ReasonType is the kind of reason: `rule`, `mode`, `hook`…
}

// PermissionOf returns the decision about a call. It is the zero value if the permission check was not reached.
func PermissionOf(ev *protocol.ToolExecuted) Permission {
	d := ev.Result.Decision
	if d == nil {
		return Permission{}
	}
	return Permission{Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Decision: d.Decision, Source: d.Source, ReasonType: d.ReasonType}
}

// IsDeniedForLackOfAllowRule reports whether the call was denied because nothing allows it, not by a deny rule or a hook. For a shell
// command that a deny rule matched, ReasonType is subcommandResults instead of rule.
func (p Permission) IsDeniedForLackOfAllowRule() bool {
	return p.Decision == "reject" && p.Source == "config" && !slices.Contains([]string{"rule", "hook", "subcommandResults"}, p.ReasonType)
}

// Breakpoint is the decision about a call at a breakpoint.
type Breakpoint struct {
	Tool        string          `json:"tool"`                  // Tool is the full name of the tool.
	ToolUseID   string          `json:"tool_use_id"`           // ToolUseID is the call's id.
	Phase       string          `json:"phase"`                 // Phase is `before` or `after` the call.
	Action      string          `json:"action"`                // Action is `continue`, `modify`, `skip`, `fail` or `replace`.
	Breakpoint  string          `json:"breakpoint,omitempty"`  // Breakpoint is the name of the breakpoint.
	PauseID     string          `json:"pause_id,omitempty"`    // PauseID is the id of the pause in the debugger.
	Input       json.RawMessage `json:"input,omitempty"`       // Input is the new input of `modify`.
	Replacement string          `json:"replacement,omitempty"` // Replacement is the tool that `replace` runs instead.
}

// Tool is a tool call with its result.
type Tool struct {
	Tool      string          `json:"tool"`               // Tool is the full name of the tool.
	ToolUseID string          `json:"tool_use_id"`        // ToolUseID is the call's id.
	Server    string          `json:"server,omitempty"`   // Server is the MCP server that ran the tool.
	Input     json.RawMessage `json:"input"`              // Input is the input from the model.
	RanWith   json.RawMessage `json:"ran_with,omitempty"` // RanWith is the input after changes by hooks, the host or a breakpoint.
	Result    string          `json:"result"`             // Result is the text that the model receives.
	Blocks    json.RawMessage `json:"blocks,omitempty"`   // Blocks are the content blocks of a result that is more than text.
	IsError   bool            `json:"is_error"`           // IsError is true if the call failed.
	Unknown   bool            `json:"unknown,omitempty"`  // Unknown is true if the tool or its server does not exist.
	Executed  bool            `json:"executed"`           // Executed is true if the tool ran.
	MS        float64         `json:"ms"`                 // MS is how long the call took, including questions and hooks.
}

// MCPCall is a request to a server and its response.
type MCPCall struct {
	Source     string          `json:"source"`                // Source is `mcp_client`.
	Server     string          `json:"server"`                // Server is the name of the server in the configuration.
	Tool       string          `json:"tool"`                  // Tool is the full name of the tool.
	RawTool    string          `json:"original_name"`         // RawTool is the name of the tool as the server calls it.
	ToolUseID  string          `json:"tool_use_id,omitempty"` // ToolUseID is the call's id.
	Input      json.RawMessage `json:"input,omitempty"`       // Input is the JSON that was sent.
	InputCID   string          `json:"input_cid,omitempty"`   // InputCID is the SHA-512 of the input.
	Result     json.RawMessage `json:"result,omitempty"`      // Result is the JSON result.
	ResultCID  string          `json:"result_cid,omitempty"`  // ResultCID is the SHA-512 of the result.
	Error      string          `json:"error,omitempty"`       // Error is the reason if there is no result.
	ErrorCode  int             `json:"error_code,omitempty"`  // ErrorCode is the JSON-RPC error code.
	StartedAt  time.Time       `json:"started_at,omitzero"`   // StartedAt is when the call was sent.
	DurationMS int64           `json:"duration_ms"`           // DurationMS is how long the server took.
}

// MCPNotification is a notification from a server: progress of a call, or a log message.
type MCPNotification struct {
	Source    string  `json:"source"`                  // Source is `mcp_client`, or `mcp_server` if a fixture server wrote the line.
	Server    string  `json:"server"`                  // Server is the name of the server in the configuration.
	RawTool   string  `json:"original_name,omitempty"` // RawTool is the name of the tool in progress, as the server calls it.
	ToolUseID string  `json:"tool_use_id,omitempty"`   // ToolUseID is the id of the call in progress.
	Progress  float64 `json:"progress,omitempty"`      // Progress is how far the call has progressed, in the server's unit.
	Total     float64 `json:"total,omitempty"`         // Total is the final value of the progress; absent if unknown.
	Level     string  `json:"level,omitempty"`         // Level is the level of a log message; absent for progress.
	Logger    string  `json:"logger,omitempty"`        // Logger is the source of a log message, as the server names it.
	// Text is the progress message or the logged value; values other than strings are written as JSON.
	Text string `json:"text,omitempty"`
}

func (Permission) kind() string { return "permission" }
func (Breakpoint) kind() string { return "breakpoint" }
func (Tool) kind() string       { return "tool" }
func (MCPCall) kind() string    { return "mcp_call" }

func (MCPNotification) kind() string { return "mcp_notification" }

// SaysNoFixtureCaseMatched reports whether resultText says that no case of one of our fixtures matches the arguments.
func SaysNoFixtureCaseMatched(resultText string) bool {
	_, rest, found := strings.Cut(resultText, "no case of ")
	return found && strings.Contains(rest, " matches the arguments ")
}

func toolLines(ev *protocol.ToolExecuted) ([]Body, error) {
	var lines []Body
	if d := PermissionOf(ev); d.Decision != "" {
		lines = append(lines, d)
	}
	l := Tool{
		Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Server: ev.Result.Server, Input: ev.Use.InputForModel(), Result: ev.Result.Content.Plain(),
		IsError: ev.Result.IsError, Unknown: ev.Result.UnknownTool, Executed: ev.Result.NonExecutionKind == "" && !ev.Result.UnknownTool, MS: float64(ev.Duration) / float64(time.Millisecond),
	}
	for _, b := range ev.Breakpoints {
		if b.Phase == "before" && (b.Action == "skip" || b.Action == "fail") {
			l.Executed = false
		}
		lines = append(lines, Breakpoint{Tool: ev.Use.Name, ToolUseID: ev.Use.ID, Phase: b.Phase, Action: b.Action, Breakpoint: b.Breakpoint, PauseID: b.Pause, Input: b.Input, Replacement: b.Replacement})
	}
	if ran := ev.ExecutedInput; ran != nil && !bytes.Equal(ran, ev.Use.Input) {
		l.RanWith = ran
	}
	blocks, err := blocksUnlessText(ev.Result.Content)
	l.Blocks = blocks
	return append(lines, l), err
}
