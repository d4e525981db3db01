package mcp

import (
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// RecordSource is the Source of every record. It shows readers that an MCP client recorded the call.
const RecordSource = "mcp_client"

// CallRecord is one finished call.
type CallRecord struct {
	Source    string `json:"source"`        // always "mcp_client"
	Server    string `json:"server"`        // name in the configuration
	Tool      string `json:"tool"`          // mcp__server__tool, see CanonicalName
	RawTool   string `json:"original_name"` // the tool's name as the server declares it
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Input and Result are the JSON values as sent and received.
	Input     json.RawMessage `json:"input,omitempty"`
	InputCID  string          `json:"input_cid,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	ResultCID string          `json:"result_cid,omitempty"`
	// Error is why the call failed: an error response, timeout, lost connection or cancellation. Empty means success.
	Error      string    `json:"error,omitempty"`
	ErrorCode  int       `json:"error_code,omitempty"` // JSON-RPC error code
	StartedAt  time.Time `json:"started_at,omitzero"`
	DurationMS int64     `json:"duration_ms"`
}

// A CallObserver receives calls and notifications. Its methods may be called from many goroutines, with no lock held.
type CallObserver interface {
	Now() time.Time
	RecordCall(c CallRecord)
	// RecordNotification must return quickly, because no message of the server is read meanwhile. The notifications of
	// a call come before the record of the call.
	RecordNotification(n NotificationRecord)
}

// NotificationRecord is a server's progress or log message.
type NotificationRecord struct {
	Source    string `json:"source"` // always "mcp_client"
	Server    string `json:"server"` // name in the configuration
	RawTool   string `json:"original_name,omitempty"`
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Progress and Total are in the unit of the server.
	Progress float64 `json:"progress,omitempty"`
	Total    float64 `json:"total,omitempty"`
	// Level and Logger belong to log messages; Level is empty for progress.
	Level  string `json:"level,omitempty"`
	Logger string `json:"logger,omitempty"`
	// Text is the message of the progress, or the data of the log message: JSON unless it is a string.
	Text string `json:"text,omitempty"`
}

// canonicalJSONContentID returns the CID of a JSON value, or of bytes that are not JSON; it is empty without a value.
func canonicalJSONContentID(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	if canonical, err := cas.Canonical(value); err == nil {
		value = canonical
	}
	return cas.CID(value)
}
