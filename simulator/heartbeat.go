package simulator

import (
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// heartbeatEvery is how often a call of an MCP tool says that it still runs
// (spec: cli-observed 6).
const heartbeatEvery = 30 * time.Second

// heartbeat follows the calls that run side by side.
type heartbeat struct {
	ticker *time.Ticker
	calls  []call // those that have not ended
	beats  int
}

func newHeartbeat(calls []call) *heartbeat {
	h := &heartbeat{ticker: time.NewTicker(heartbeatEvery)}
	for _, c := range calls {
		if c.tool.Server != "" {
			h.calls = append(h.calls, c)
		}
	}
	return h
}

// over says that a call has ended.
func (h *heartbeat) over(id string) {
	for i, c := range h.calls {
		if c.use.ID == id {
			h.calls = append(h.calls[:i:i], h.calls[i+1:]...)
			return
		}
	}
}

// beat yields a sign of life for every call that still runs.
func (t *turn) beat(h *heartbeat) error {
	h.beats++
	for _, c := range h.calls {
		err := t.emit(t.stamp(&protocol.Frame{Type: "tool_progress", Fields: []protocol.Field{
			{Key: "tool_use_id", Value: c.use.ID},
			{Key: "tool_name", Value: c.use.Name},
			{Key: "parent_tool_use_id", Value: c.use.ID},
			{Key: "elapsed_time_seconds", Value: h.beats * int(heartbeatEvery/time.Second)},
			{Key: "heartbeat", Value: true},
		}}))
		if err != nil {
			return err
		}
	}
	return nil
}
