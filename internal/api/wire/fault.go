package wire

import (
	"bytes"
	"encoding/json"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ApplyFault changes the events as this kind of fault requires. silent means that the stream must stay open after the
// events, although nothing follows.
func (s *EventList) ApplyFault(kind string) (silent bool) {
	at := func(name string) int {
		for i := range s.Events {
			if s.Events[i].Name == name {
				return i
			}
		}
		return len(s.Events) - 1
	}
	insert := func(i int, e Event) {
		s.Events = append(s.Events[:i:i], append([]Event{e}, s.Events[i:]...)...)
	}
	switch kind {
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
			insert(stop+1, s.Events[d])
		}
	case "two-message-starts":
		insert(1, s.Events[0])
	case "tool-json-truncated":
		s.dropLastTextEvent(`"input_json_delta"`)
	case "usage-in-start-only":
		i := at("message_delta")
		var d messageDelta
		if json.Unmarshal(s.Events[i].Data, &d) == nil {
			if body, err := protocol.Marshal(struct {
				Type  string           `json:"type"`
				Delta messageDeltaBody `json:"delta"`
			}{d.Type, d.Delta}); err == nil {
				s.Events[i].Data = body
			}
		}
	case "empty-content":
		first, last := at("content_block_start"), at("message_delta")
		s.Events = append(s.Events[:first:first], s.Events[last:]...)
	}
	return false
}

func (s *EventList) dropLastTextEvent(text string) {
	for i := len(s.Events) - 1; i >= 0; i-- {
		if bytes.Contains(s.Events[i].Data, []byte(text)) {
			s.Events = append(s.Events[:i:i], s.Events[i+1:]...)
			return
		}
	}
}
