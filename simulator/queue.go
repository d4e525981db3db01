package simulator

import (
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// noContent stands for the empty prompt when it is repeated.
const noContent = "(no content)"

// ErrSuperseded as the cause of a turn's end says that another prompt is to be
// answered at once: the turn ends without telling the model of an interrupt.
var ErrSuperseded = errors.New("another prompt is to be answered now")

// absorb makes prompts that came during the tool round part of the turn: the
// model reads them with the results, and they get no result of their own.
func (t *turn) absorb() error {
	if err := t.absorbNotices(); err != nil || t.s.main.Prompts == nil {
		return err
	}
	var taken []protocol.UserMessage
	for _, in := range t.s.main.Prompts.Absorb() {
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
			id = t.s.o.Clock.NewID()
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

// absorbNotices tells the model of background work that has ended by now: no
// turn of its own follows. In an ordered set nobody knows yet.
func (t *turn) absorbNotices() error {
	tasks := t.s.main.Tasks
	if tasks == nil || !tasks.Live() {
		return nil
	}
	for n, ok := tasks.NextNotice(); ok; n, ok = tasks.NextNotice() {
		err := t.emit(&protocol.Absorbed{
			UUID: t.s.o.Clock.NewID(), Content: protocol.Content{Text: n.Text}, Origin: n.Origin, Notice: true, Timestamp: t.timestamp(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// absorbed tells transcripts about a prompt and, if asked to, repeats it.
func (t *turn) absorbed(in protocol.UserMessage, id string) error {
	err := t.emit(&protocol.Absorbed{UUID: id, Content: in.Content, Origin: in.Origin, Timestamp: t.timestamp()})
	if err != nil {
		return err
	}
	return t.replay(in, id)
}

// Repeats tells whether a host that wants its prompts repeated sees this one
// again: what no person wrote, what answers a call and what is blank are not.
func Repeats(in protocol.UserMessage) bool {
	return !in.Synthetic && !blank(in.Content) && !slices.ContainsFunc(in.Content.Blocks, func(b protocol.Block) bool {
		_, answer := b.(protocol.ToolResultBlock)
		return answer
	})
}

// replay repeats a prompt of the host, if asked to.
func (t *turn) replay(in protocol.UserMessage, id string) error {
	if !t.s.o.Show.Replay || !Repeats(in) {
		return nil
	}
	yes := true
	if in.Content.Blocks == nil && in.Content.Text == "" {
		in.Content.Text = noContent
	}
	return t.emit(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, Origin: in.Origin,
		SessionID: t.s.o.Live.SessionID(), UUID: id, Timestamp: t.timestamp(), IsReplay: &yes,
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

// Completed tells whether hosts hear that the prompts of a turn are completed;
// else it ended before its time, and they were cancelled.
func Completed(r *protocol.Result) bool {
	return (!r.IsError || r.TerminalReason == "max_turns") && !strings.HasPrefix(r.TerminalReason, "aborted")
}

// settle tells what has become of the absorbed prompts.
func (t *turn) settle(r *protocol.Result) error {
	state := "completed"
	if !Completed(r) {
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
	return t.emit(t.stamp(protocol.Lifecycle(id, state)))
}

// name names the prompts of the turn on its first assistant event.
func (t *turn) name(ev *protocol.Assistant) {
	if t.named || len(t.in.UUIDs) == 0 {
		return
	}
	t.named = true
	ev.UserMessageUUID, ev.UserMessageUUIDs = t.names()
}

// names gives what names the prompts of the turn as events do: the turn's own, or
// the last one that became part of it.
func (t *turn) names() (uuid string, uuids []string) {
	if t.in.UUID != "" || len(t.in.UUIDs) == 0 {
		return t.in.UUID, t.in.UUIDs
	}
	return t.in.UUIDs[len(t.in.UUIDs)-1], t.in.UUIDs
}
