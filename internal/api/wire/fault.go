package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ApplyFaultOfKind changes the events as this kind of fault requires. mustKeepStreamOpen means that the stream must stay open
// after the events, although nothing follows.
func (s *EventList) ApplyFaultOfKind(faultKind string) (mustKeepStreamOpen bool) {
	at := func(name string) int {
		if i := slices.IndexFunc(s.Events, func(e Event) bool { return e.Name == name }); i >= 0 {
			return i
		}
		return len(s.Events) - 1
	}
	switch faultKind {
	case "ping-silence": // after the beginning, only pings are sent
		i := min(at("ping")+1, len(s.Events))
		s.Events = s.Events[:i]
		return true
	case "stall-mid-stream":
		s.Events = s.Events[:at("content_block_delta")+1]
		return true
	case "delta-after-stop":
		stop := at("content_block_stop")
		if d := at("content_block_delta"); d < stop {
			s.Events = slices.Insert(s.Events, stop+1, s.Events[d])
		}
	case "two-message-starts":
		s.Events = slices.Insert(s.Events, 1, s.Events[0])
	case "tool-json-truncated":
		for i, e := range slices.Backward(s.Events) {
			if bytes.Contains(e.Data, []byte(`"input_json_delta"`)) {
				s.Events = slices.Delete(s.Events, i, i+1)
				break
			}
		}
	case "usage-in-start-only":
		i := at("message_delta")
		var d struct { // without the usage
			Type  string           `json:"type"`
			Delta messageDeltaBody `json:"delta"`
		}
		if json.Unmarshal(s.Events[i].Data, &d) == nil {
			if body, err := protocol.Marshal(d); err == nil {
				s.Events[i].Data = body
			}
		}
	case "empty-content":
		first, last := at("content_block_start"), at("message_delta")
		s.Events = slices.Delete(s.Events, first, last)
	}
	return false
}
