// Package record stores the calls to MCP servers and their outcome. The content
// that a call's CIDs refer to is available until the store drops it to make
// room.
package record

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/cas"
)

// Source is the source of every call kept here, for those who mix them with
// calls of other origin.
const Source = "mcp_client"

// Call is one call that is over.
type Call struct {
	Source    string `json:"source"`        // always "mcp_client"
	Server    string `json:"server"`        // raw name
	Tool      string `json:"tool"`          // canonical name
	RawTool   string `json:"original_name"` // the server's own name for it
	ToolUseID string `json:"tool_use_id,omitempty"`
	// Input and Result are JSON values as they were sent and came. A value
	// above MaxInline bytes is left out; its CID finds it.
	Input     json.RawMessage `json:"input,omitempty"`
	InputCID  string          `json:"input_cid,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	ResultCID string          `json:"result_cid,omitempty"`
	// Error says why there is no result: an error answer, with its code, a
	// time-out, a lost connection, a cancelled call. Empty = there is one.
	Error      string    `json:"error,omitempty"`
	ErrorCode  int       `json:"error_code,omitempty"` // of JSON-RPC
	StartedAt  time.Time `json:"started_at,omitzero"`
	DurationMS int64     `json:"duration_ms"`
}

// Options describe a Log. The zero value keeps calls without times and without
// a store.
type Options struct {
	// Store keeps inputs and results; nil = one of the log's own, of at most Bytes
	// (0 = as many as a store has by itself).
	Store *cas.Store
	Bytes int64
	// Max is how many calls are kept, the newest; 0 = 1000.
	Max int
	// Now is the clock; nil = calls have no times.
	Now func() time.Time
	// Observe gets every call when it is over, one at a time per caller and
	// without locks held; nil = nobody does.
	Observe func(Call)
}

const (
	defaultMax = 1000
	// MaxInline is the size up to which calls hold values themselves.
	MaxInline = 64 << 10
)

// Log keeps the newest calls. All methods may be called from many goroutines.
type Log struct {
	o Options

	mu    sync.Mutex
	calls []Call
	total int
}

// New makes an empty log.
func New(o Options) *Log {
	if o.Store == nil {
		o.Store = cas.New(cas.Options{MaxBytes: o.Bytes})
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	return &Log{o: o}
}

// Now is the time of the log's clock; zero without one.
func (l *Log) Now() time.Time {
	if l.o.Now == nil {
		return time.Time{}
	}
	return l.o.Now()
}

// Add keeps a call: Source, both CIDs and, from StartedAt, DurationMS are
// filled in. Input and Result must not be changed afterwards.
func (l *Log) Add(c Call) {
	c.Source = Source
	if !c.StartedAt.IsZero() {
		c.DurationMS = l.Now().Sub(c.StartedAt).Milliseconds()
	}
	c.Input, c.InputCID = l.put(c.Input)
	c.Result, c.ResultCID = l.put(c.Result)
	l.mu.Lock()
	l.total++
	l.calls = append(l.calls, c)
	if len(l.calls) > l.o.Max+l.o.Max/4 { // cut off rarely, in one go
		l.calls = slices.Clone(l.calls[len(l.calls)-l.o.Max:])
	}
	l.mu.Unlock()
	if l.o.Observe != nil {
		l.o.Observe(c)
	}
}

// put keeps a value, and gives up a copy that is too large for a call. A value
// the store refuses for its size still has its CID.
func (l *Log) put(v json.RawMessage) (inline json.RawMessage, cid string) {
	if len(v) == 0 {
		return nil, ""
	}
	cid, _, err := l.o.Store.PutJSON(v)
	if cid == "" && err != nil { // not JSON: kept as the bytes it is
		cid, _ = l.o.Store.Put(v)
	}
	if len(v) > MaxInline {
		return nil, cid
	}
	return v, cid
}

// Calls returns the calls kept, in the order of their ends, and how many there
// were in all.
func (l *Log) Calls() (calls []Call, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls[max(0, len(l.calls)-l.o.Max):]), l.total
}

// Value returns the bytes of a CID.
func (l *Log) Value(cid string) (data []byte, ok bool) { return l.o.Store.Get(cid) }
