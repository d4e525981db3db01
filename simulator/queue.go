package simulator

import (
	"errors"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Queue is what a turn knows of the prompts that wait behind it. The zero value
// has none.
type Queue struct {
	// Absorb takes the prompts that are to become part of the running turn; it is
	// called between tool rounds. Nil = prompts wait for a turn of their own.
	Absorb func() []protocol.UserMessage
	// Waiting counts the prompts of people that wait for a turn; nil = 0.
	Waiting func() int
}

// ErrSuperseded as the cause of a turn's end says that another prompt is to be
// answered at once: the turn ends without telling the model of an interrupt.
var ErrSuperseded = errors.New("another prompt is to be answered now")

// absorb makes prompts that came during the tool round part of the turn: the
// model reads them with the results, and they get no result of their own.
func (t *turn) absorb() error {
	if t.s.o.Queue.Absorb == nil {
		return nil
	}
	var taken []protocol.UserMessage
	for _, in := range t.s.o.Queue.Absorb() {
		out, err := t.runHooks(protocol.UserPromptSubmitHook{Prompt: in.Content.Plain()})
		if err != nil {
			return err
		}
		if err := t.emitAll(out.Notices); err != nil {
			return err
		}
		if out.Block || out.StopTurn || out.CrashError != "" {
			continue
		}
		taken = append(taken, in)
	}
	for _, in := range taken {
		id := in.UUID
		if id == "" {
			id = t.s.o.NewID()
		}
		if err := t.absorbed(in, id); err != nil {
			return err
		}
		t.waiting = append(t.waiting, in.Content.Plain())
	}
	for _, in := range taken {
		if in.UUID == "" {
			continue
		}
		if err := t.lifecycle(in.UUID, "started"); err != nil {
			return err
		}
		t.in.UUIDs = append(t.in.UUIDs, in.UUID)
		t.taken = append(t.taken, in.UUID)
	}
	return nil
}

// absorbed tells transcripts about a prompt and, if asked to, repeats it.
func (t *turn) absorbed(in protocol.UserMessage, id string) error {
	err := t.emit(&protocol.Absorbed{UUID: id, Content: in.Content, Origin: in.Origin, Timestamp: t.timestamp()})
	if err != nil || !t.s.o.Replay {
		return err
	}
	return t.replay(in, id)
}

// replay repeats a prompt of the host.
func (t *turn) replay(in protocol.UserMessage, id string) error {
	yes := true
	return t.emit(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, Origin: in.Origin,
		SessionID: t.s.o.SessionID, UUID: id, Timestamp: t.timestamp(), IsReplay: &yes,
	})
}

// unanswered takes the first absorbed prompt that no reply has followed up yet.
func (t *turn) unanswered() (text string, ok bool) {
	if len(t.waiting) == 0 {
		return "", false
	}
	text, t.waiting = t.waiting[0], t.waiting[1:]
	return text, true
}

// settle tells what has become of the absorbed prompts.
func (t *turn) settle(end finish) error {
	state := "completed"
	if strings.HasPrefix(end.terminal, "aborted") {
		state = "cancelled"
	}
	for _, id := range t.taken {
		if err := t.lifecycle(id, state); err != nil {
			return err
		}
	}
	return nil
}

// merged are the ids of the prompts that became part of this one before it
// began.
func (t *turn) merged() []string {
	if n := len(t.in.UUIDs); n > 1 {
		return t.in.UUIDs[:n-1]
	}
	return nil
}

func (t *turn) lifecycle(id, state string) error {
	return t.emit(t.stamp(&protocol.Frame{Type: "command_lifecycle", Fields: []protocol.Field{
		{Key: "command_uuid", Value: id}, {Key: "state", Value: state},
	}}))
}

// names gives what names the prompts of the turn as events do: the turn's own, or
// the last one that became part of it.
func (t *turn) names() (uuid string, uuids []string) {
	if t.in.UUID != "" || len(t.in.UUIDs) == 0 {
		return t.in.UUID, t.in.UUIDs
	}
	return t.in.UUIDs[len(t.in.UUIDs)-1], t.in.UUIDs
}
