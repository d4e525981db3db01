package control

import (
	"cmp"
	"sync"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// frameWriter writes frames to stdout. It queues frames, so that its callers never wait for the host to read.
type frameWriter struct {
	lines                     *lineWriter
	metadata                  FrameMetadata
	stateEvents               SessionStateEventMode
	echoesPromptsAndResponses bool // echo prompts that get no separate turn, and the host's responses

	mu        sync.Mutex
	lastState string
}

func (a *frameWriter) writeFrame(frame any) {
	line, err := protocol.Marshal(frame)
	if err != nil { // only invalid raw JSON from the host can cause an error
		return
	}
	a.lines.queueLine(line)
}

// writeEventsOutsideTurn writes events that belong to no turn, after setting their ids and time stamps.
func (a *frameWriter) writeEventsOutsideTurn(events ...protocol.Event) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case *protocol.System:
			ev.UUID, ev.SessionID = a.metadata.NewID(), cmp.Or(ev.SessionID, a.metadata.SessionID())
		case *protocol.Frame:
			ev.UUID, ev.SessionID = a.metadata.NewID(), cmp.Or(ev.SessionID, a.metadata.SessionID())
		case *protocol.User:
			ev.SessionID, ev.Timestamp = a.metadata.SessionID(), a.metadata.CurrentUTCTimestamp()
		}
		a.writeFrame(ev)
	}
}

func (a *frameWriter) writeStateIfChanged(state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stateEvents == SessionStateEventsOff || a.lastState == state {
		return
	}
	a.lastState = state
	ev := &protocol.System{Subtype: "session_state_changed", Fields: []protocol.Field{{Key: "state", Value: state}}}
	if a.stateEvents == SessionStateEventsMarkedHostOnly {
		ev.Fields = append(ev.Fields, protocol.Field{Key: "sdk_host_only", Value: true})
	}
	a.writeEventsOutsideTurn(ev)
}

// echoPrompt echoes a prompt that gets no separate turn. The echo has no time stamp.
func (a *frameWriter) echoPrompt(in protocol.UserMessage) {
	if !a.echoesPromptsAndResponses || !simulator.IsReplayable(in) {
		return
	}
	a.writeFrame(&protocol.User{Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, SessionID: a.metadata.SessionID(), UUID: in.UUID, IsReplay: new(true)})
}
