package simulator

import (
	"fmt"
	"slices"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// heartbeatEvery is how often a call says that it still runs, whatever tool it
// is of.
const heartbeatEvery = 30 * time.Second

// heartbeat follows the calls that run side by side.
type heartbeat struct {
	ticker *time.Ticker
	calls  []call // those that have not ended
	beats  int
}

func newHeartbeat(calls []call) *heartbeat {
	return &heartbeat{ticker: time.NewTicker(heartbeatEvery), calls: slices.Clone(calls)}
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
			{Key: "tool_use_id", Value: fmt.Sprintf("%s-heartbeat-%d", c.use.ID, h.beats-1)},
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
