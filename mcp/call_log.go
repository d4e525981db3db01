package mcp

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// RecordSource is the Source of every call in a CallLog. It shows readers that an MCP client recorded the call.
const RecordSource = "mcp_client"

// CallRecord is one finished call.
type CallRecord struct {
	Source    string `json:"source"`        // always "mcp_client"
	Server    string `json:"server"`        // name in the configuration
	Tool      string `json:"tool"`          // mcp__server__tool, see CanonicalName
	RawTool   string `json:"original_name"` // the tool's name as the server declares it
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Input and Result are the JSON values as sent and received. A value of more than MaxInlineRecord bytes is left
	// out, and only its CID refers to it, see [CallLog.Value].
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

// CallLogOptions configure a CallLog. With the zero value, the recorded calls have no times.
type CallLogOptions struct {
	// Store keeps inputs and results. If it is nil, the log creates a store of at most MaxBytes; MaxBytes 0 means the
	// default of cas.Options.
	Store    *cas.Store
	MaxBytes int64
	// MaxCalls is how many of the newest calls are kept; 0 means 1000.
	MaxCalls int
	// Now returns the current time. If it is nil, the times of calls are not recorded.
	Now func() time.Time
	// Observer receives each finished call and each notification; nil means none.
	Observer CallObserver
}

// A CallObserver receives calls and notifications. Its methods may be called from many goroutines, with no lock held.
type CallObserver interface {
	RecordCall(c CallRecord)
	// RecordNotification must return quickly, because no message of the server is read meanwhile. The notifications of
	// a call come before the record of the call.
	RecordNotification(n NotificationRecord)
}

// NotificationRecord is a server's progress or log message, which CallLog passes to the observer but does not keep.
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

const (
	defaultMaxCalls = 1000
	// MaxInlineRecord is the largest size, in bytes, of a value that a CallRecord itself contains.
	MaxInlineRecord = 64 << 10
)

// CallLog keeps the newest calls. All methods may be called from many goroutines.
type CallLog struct {
	options CallLogOptions

	mu    sync.Mutex
	calls []CallRecord
	total int
}

// NewCallLog returns an empty log.
func NewCallLog(o CallLogOptions) *CallLog {
	if o.Store == nil {
		o.Store = cas.New(cas.Options{MaxBytes: o.MaxBytes})
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = defaultMaxCalls
	}
	return &CallLog{options: o}
}

// Now returns the time of the log's clock; it is zero if there is no clock.
func (l *CallLog) Now() time.Time {
	if l.options.Now == nil {
		return time.Time{}
	}
	return l.options.Now()
}

// Add stores a call. It sets Source, InputCID and ResultCID, and computes DurationMS from StartedAt. The caller must
// not change Input and Result later.
func (l *CallLog) Add(c CallRecord) {
	c.Source = RecordSource
	if !c.StartedAt.IsZero() {
		c.DurationMS = l.Now().Sub(c.StartedAt).Milliseconds()
	}
	c.Input, c.InputCID = l.storeValue(c.Input)
	c.Result, c.ResultCID = l.storeValue(c.Result)
	l.mu.Lock()
	l.total++
	l.calls = append(l.calls, c)
	if len(l.calls) > l.options.MaxCalls+l.options.MaxCalls/4 { // trim many calls at once, so that it rarely copies
		l.calls = slices.Clone(l.calls[len(l.calls)-l.options.MaxCalls:])
	}
	l.mu.Unlock()
	if l.options.Observer != nil {
		l.options.Observer.RecordCall(c)
	}
}

// Notify passes a notification to the observer.
func (l *CallLog) Notify(n NotificationRecord) {
	if l.options.Observer != nil {
		l.options.Observer.RecordNotification(n)
	}
}

// storeValue stores a value and returns its CID, even if the value is too large for the store. inline is the value
// itself if it is small enough for a CallRecord, otherwise nil.
func (l *CallLog) storeValue(v json.RawMessage) (inline json.RawMessage, cid string) {
	if len(v) == 0 {
		return nil, ""
	}
	cid, _, err := l.options.Store.PutJSON(v)
	if cid == "" && err != nil { // not JSON: stored as raw bytes
		cid, _ = l.options.Store.Put(v)
	}
	if len(v) > MaxInlineRecord {
		return nil, cid
	}
	return v, cid
}

// Calls returns the stored calls in the order in which they ended, and how many there were in total.
func (l *CallLog) Calls() (calls []CallRecord, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls[max(0, len(l.calls)-l.options.MaxCalls):]), l.total
}

// Value returns the bytes that a CID refers to.
func (l *CallLog) Value(cid string) (data []byte, ok bool) { return l.options.Store.Get(cid) }
