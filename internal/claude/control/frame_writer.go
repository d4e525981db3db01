package control

import (
	"sync"

	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// frameWriter puts frames on stdout without waiting for the host to read them.
type frameWriter struct {
	lines       *lineWriter
	metadata    FrameMetadata
	stateEvents StateEvents
	replay      bool // prompts without a turn of their own are repeated, and answers

	mu        sync.Mutex
	lastState string // session state shown
}

// write puts out one frame.
func (a *frameWriter) write(frame any) {
	line, err := protocol.Marshal(frame)
	if err != nil { // of our own types only raw JSON of the host can do this
		return
	}
	a.lines.put(line)
}

// showEvents puts out events that belong to no turn.
func (a *frameWriter) showEvents(events ...protocol.Event) {
	for _, ev := range events {
		switch ev := ev.(type) {
		case *protocol.System:
			ev.UUID, ev.SessionID = a.metadata.NewID(), a.metadata.SessionID()
		case *protocol.Frame:
			ev.UUID, ev.SessionID = a.metadata.NewID(), a.metadata.SessionID()
		case *protocol.User:
			ev.SessionID, ev.Timestamp = a.metadata.SessionID(), a.metadata.Timestamp()
		}
		a.write(ev)
	}
}

// showState shows the session's state, when it has changed, to hosts that want to
// know it.
func (a *frameWriter) showState(state string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stateEvents == StateEventsOff || a.lastState == state {
		return
	}
	a.lastState = state
	ev := &protocol.System{Subtype: "session_state_changed", Fields: []protocol.Field{{Key: "state", Value: state}}}
	if a.stateEvents == StateEventsHostOnly {
		ev.Fields = append(ev.Fields, protocol.Field{Key: "sdk_host_only", Value: true})
	}
	a.showEvents(ev)
}

// repeatPrompt shows a prompt that has no turn of its own. Such an event tells no
// time.
func (a *frameWriter) repeatPrompt(in protocol.UserMessage) {
	if !a.replay || !simulator.Repeats(in) {
		return
	}
	yes := true
	a.write(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content},
		SessionID: a.metadata.SessionID(), UUID: in.UUID, IsReplay: &yes,
	})
}
