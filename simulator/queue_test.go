package simulator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func queuedPrompt(text, id string) protocol.UserMessage {
	return protocol.UserMessage{Content: protocol.Content{Text: text}, UUID: id}
}

// Prompts that arrive while tools run become part of the turn: they are replayed if the host asks for it, have
// lifecycle events, and are listed in the events. Only prompts that a rule of the scenario matches are sent to the
// model (checklist row 65).
func TestAbsorb(t *testing.T) {
	rounds := queue{{queuedPrompt("two", "u-2"), queuedPrompt("three", "")}, nil}
	model := &fakeModel{replies: []scenarios.Reply{callReply(`Read {}`), text("done"), text("two too"), {IsUnmatched: true}}}
	var kept []string
	s := newSimulator(t, simulator.Options{
		Model: model, Display: simulator.DisplayOptions{ReplayPrompts: true}, Main: &simulator.MainOptions{
			Transcript: transcriptFunc(func(ev protocol.Event) {
				if a, ok := ev.(*protocol.PromptAbsorbed); ok {
					kept = append(kept, a.Content.Plain())
				}
			}),
			Prompts: &rounds,
		},
	})
	var got, messages []string
	var result *protocol.ResultEvent
	for ev, err := range s.RunTurn(t.Context(), queuedPrompt("one", "u-1")) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case *protocol.InitEvent:
			got = append(got, fmt.Sprint("init ", ev.UserMessageUUIDs))
		case *protocol.AssistantEvent:
			got = append(got, fmt.Sprint("assistant ", ev.UserMessageUUID, ev.UserMessageUUIDs))
			messages = append(messages, ev.Message.ID)
		case *protocol.UserEvent:
			got = append(got, "user "+ev.Message.Content.Plain())
		case *protocol.Frame:
			got = append(got, fmt.Sprint(ev.Type, " ", ev.Fields[0].Value, " ", ev.Fields[1].Value))
		case *protocol.ResultEvent:
			result = ev
		}
	}
	want := []string{
		"init [u-1]", "user one", "assistant u-1[u-1]", "user ", "user two", "user three", "command_lifecycle u-2 started",
		"assistant []", "assistant []", "command_lifecycle u-2 completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"two", "three"}, kept); diff != "" {
		t.Errorf("in the transcript (-want +got):\n%s", diff)
	}
	if *result.Result != "two too" || result.NumTurns != 2 || *result.QueuedTurnCount != 7 || result.UserMessageUUID != "u-1" {
		t.Errorf("result %+v", result)
	}
	if diff := cmp.Diff([]string{"u-1", "u-2"}, result.UserMessageUUIDs); diff != "" {
		t.Errorf("prompts of the result (-want +got):\n%s", diff)
	}
	if len(messages) != 3 || messages[0] == messages[1] || messages[1] != messages[2] { // one request has the results and the prompts
		t.Errorf("ids of the messages: %q", messages)
	}
	if asked := model.requests[2]; asked.Prompt != "two" || !asked.IsInterjected {
		t.Errorf("the model was asked %+v", asked)
	}
}

// queue contains the prompts that each tool round takes. It reports that seven more prompts are waiting.
type queue [][]protocol.UserMessage

func (q *queue) CountWaitingUserPrompts() int { return 7 }

func (q *queue) IsClosedForNewPrompts() bool { return false }

func (q *queue) TakeJoiningPrompts() []protocol.UserMessage {
	next := (*q)[0]
	*q = (*q)[1:]
	return next
}

// transcriptFunc receives events; a new conversation gets the id NEW.
type transcriptFunc func(protocol.Event)

func (transcriptFunc) Reset() (id, path string, err error) { return "NEW", "", nil }
func (transcriptFunc) LineChanges() (added, removed int)   { return 0, 0 }

func (f transcriptFunc) Record(ev protocol.Event) error {
	f(ev)
	return nil
}

// A prompt with the priority "now" ends the turn without a message to the model. A streamed reply
// gets no interrupt text, and calls are cancelled (checklist row 65).
func TestSuperseded(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply scenarios.Reply
		want  []string
	}{
		{"streaming", text("one two three four"), []string{
			"init", `assistant text "one two "`, "result error_during_execution error=true turns=1 aborted_streaming",
		}},
		{"tools", callReply(`Slow {}`, `Write {}`), []string{
			"init", "assistant tool_use Slow", "assistant tool_use Write",
			fmt.Sprintf("user tool_result %q error=true", executor.AbortedByPromptResult().Content.Text),
			fmt.Sprintf("user tool_result %q error=true", executor.NotStartedResult().Content.Text),
			"result success error=false turns=3 aborted_tools",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulator(t, simulator.Options{
					Model: &fakeModel{replies: []scenarios.Reply{c.reply}}, Display: simulator.DisplayOptions{Stream: scenarios.Stream{TokensPerSecond: 1}},
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(2500*time.Millisecond, func() { cancel(simulator.ErrSuperseded) }).Stop()
				if got, _ := playTurn(ctx, t, s, "hi"); !cmp.Equal(c.want, got) {
					t.Errorf("events (-want +got):\n%s", cmp.Diff(c.want, got))
				}
			})
		})
	}
}
