package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// fakeModel plays replies in order and records the requests.
type fakeModel struct {
	replies  []scenarios.Reply
	requests []scenarios.Request
}

func (m *fakeModel) Next(_ context.Context, r scenarios.Request) (scenarios.Reply, error) {
	m.requests = append(m.requests, r)
	if len(m.replies) == 0 {
		return text("done"), nil
	}
	reply := m.replies[0]
	if len(m.replies) > 1 {
		m.replies = m.replies[1:]
	}
	return reply, nil
}

func text(s string) scenarios.Reply {
	return scenarios.Reply{Blocks: []protocol.Block{protocol.Text(s)}}
}

func callReply(inputs ...string) scenarios.Reply {
	var r scenarios.Reply
	for _, in := range inputs {
		name, input, _ := strings.Cut(in, " ")
		r.Blocks = append(r.Blocks, protocol.ToolUse{Name: name, Input: json.RawMessage(input)})
	}
	return r
}

// fakeTools has the tools Read (read-only), Slow (read-only, 1 s), Write (100 ms) and Fail; each records when it ran.
type fakeTools struct{ log chan string }

func (f fakeTools) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{
		{Name: "Read", ReadOnly: true},
		{Name: "Slow", ReadOnly: true},
		{Name: "Write"},
		{Name: "Fail"},
		{Name: "mcp__my_server__echo", RawName: "echo", Server: "my.server", ServerTitle: "srv"},
		{Name: "mcp__my_server__long", RawName: "long", Server: "my.server", ServerTitle: "srv"},
	}, nil
}

func (f fakeTools) Execute(ctx context.Context, call protocol.ToolUse) (executor.Result, error) {
	switch call.Name {
	case "Read", "mcp__my_server__echo":
	case "Slow":
		if err := new(fakeClock).Sleep(ctx, time.Second); err != nil {
			return executor.Result{}, err
		}
	case "Write":
		if err := new(fakeClock).Sleep(ctx, 100*time.Millisecond); err != nil {
			return executor.Result{}, err
		}
	case "mcp__my_server__long":
		if err := new(fakeClock).Sleep(ctx, 65*time.Second); err != nil {
			return executor.Result{}, err
		}
	case "Fail":
		return executor.ResultOf(protocol.ErrorResult("it failed")), nil
	default:
		return executor.Result{}, executor.ErrUnknownTool
	}
	if f.log != nil {
		f.log <- call.Name
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: call.Name + " ran"}}), nil
}

// fakeClock uses the time of the test and consecutive ids.
type fakeClock struct{ ids int }

func (*fakeClock) Now() time.Time { return time.Now() }
func (*fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (c *fakeClock) NewID() string {
	c.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", c.ids)
}

// fixedContext is a context provider with fixed texts.
type fixedContext struct{ before, after []string }

func (fixedContext) InitEventWithModelWarning(context.Context) protocol.InitEvent {
	return protocol.InitEvent{}
}

func (t fixedContext) FirstPromptContext(string) (before, after []string) { return t.before, t.after }

func newSimulator(t *testing.T, o simulator.Options) *simulator.Simulator {
	t.Helper()
	o.Clock, o.State = &fakeClock{}, &simulator.SessionState{}
	o.State.BeginConversation("S", "")
	if o.Main == nil {
		o.Main = &simulator.MainOptions{}
	}
	if o.Main.Context == nil {
		o.Main.Context = fixedContext{}
	}
	if o.Tools == nil {
		o.Tools = simulator.NonInspectingExecutor(fakeTools{})
	}
	s, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// playTurn runs one prompt and renders its wire events, one short line each.
func playTurn(ctx context.Context, t *testing.T, s *simulator.Simulator, prompt string) ([]string, *protocol.ResultEvent) {
	t.Helper()
	var lines []string
	var result *protocol.ResultEvent
	for ev, err := range s.RunTurn(ctx, protocol.UserMessage{Content: protocol.Content{Text: prompt}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := ev.(*protocol.ResultEvent); ok {
			result = r
		}
		if line := eventText(ev); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, result
}

func eventText(ev protocol.Event) string {
	switch ev := ev.(type) {
	case *protocol.InitEvent:
		return "init"
	case *protocol.AssistantEvent:
		switch b := ev.Message.Content[0].(type) {
		case protocol.TextBlock:
			return strings.TrimSpace(fmt.Sprintf("assistant text %q %s", b.Text, ev.Error))
		case protocol.ToolUse:
			return "assistant tool_use " + b.Name
		case protocol.ThinkingBlock:
			return "assistant thinking"
		}
	case *protocol.UserEvent:
		b := ev.Message.Content.Blocks[0]
		if r, ok := b.(protocol.ToolResultBlock); ok {
			return fmt.Sprintf("user tool_result %q error=%v", r.Content.Plain(), r.IsError != nil && *r.IsError)
		}
		return fmt.Sprintf("user text %q", ev.Message.Content.Plain())
	case *protocol.PermissionDeniedEvent:
		return "permission_denied " + ev.ToolName
	case *protocol.APIRetryEvent:
		return fmt.Sprintf("api_retry %d/%d %s", ev.Attempt, ev.MaxRetries, ev.Error)
	case *protocol.SystemEvent:
		return ev.Subtype
	case *protocol.StreamEvent:
		raw, _ := protocol.Marshal(ev.Event)
		var kind struct{ Type string }
		_ = json.Unmarshal(raw, &kind)
		return kind.Type
	case *protocol.ResultEvent:
		return fmt.Sprintf("result %s error=%v turns=%d %s", ev.Subtype, ev.IsError, ev.NumTurns, ev.TerminalReason)
	}
	return ""
}

// The order of events is that of the recorded runs p-stream-json, tool-read, tool-multi, think,
// partial-tool and tool-unknown.
func TestOrderOfEvents(t *testing.T) {
	tests := []struct {
		name    string
		o       simulator.Options
		replies []scenarios.Reply
		want    []string
	}{
		{"plain", simulator.Options{}, []scenarios.Reply{text("hello")}, []string{
			"init", `assistant text "hello"`, "result success error=false turns=1 completed",
		}},
		{"tool", simulator.Options{}, []scenarios.Reply{callReply(`Read {}`), text("done")}, []string{
			"init", "assistant tool_use Read", `user tool_result "Read ran" error=false`, `assistant text "done"`,
			"result success error=false turns=2 completed",
		}},
		{"a failed call does not stop its siblings", simulator.Options{}, []scenarios.Reply{callReply(`Fail {}`, `Write {}`), text("done")}, []string{
			"init", "assistant tool_use Fail", "assistant tool_use Write", `user tool_result "it failed" error=true`,
			`user tool_result "Write ran" error=false`, `assistant text "done"`, "result success error=false turns=3 completed",
		}},
		{"read-only neighbours end in their own order", simulator.Options{}, []scenarios.Reply{callReply(`Slow {}`, `Read {}`), text("done")}, []string{
			"init", "assistant tool_use Slow", "assistant tool_use Read", `user tool_result "Read ran" error=false`,
			`user tool_result "Slow ran" error=false`, `assistant text "done"`, "result success error=false turns=3 completed",
		}},
		{"in call order when repeatable", simulator.Options{Display: simulator.DisplayOptions{OrderedResults: true}}, []scenarios.Reply{callReply(`Slow {}`, `Read {}`), text("done")}, []string{
			"init", "assistant tool_use Slow", "assistant tool_use Read", `user tool_result "Slow ran" error=false`,
			`user tool_result "Read ran" error=false`, `assistant text "done"`, "result success error=false turns=3 completed",
		}},
		{"unknown tool", simulator.Options{}, []scenarios.Reply{callReply(`Frobnicate {"a":1}`), text("done")}, []string{
			"init", "assistant tool_use Frobnicate",
			`user tool_result "<tool_use_error>Error: No such tool available: Frobnicate</tool_use_error>" error=true`,
			`assistant text "done"`, "result success error=false turns=2 completed",
		}},
		{"canonical names", simulator.Options{}, []scenarios.Reply{callReply(`my.server/echo {}`), text("done")}, []string{
			"init", "assistant tool_use mcp__my_server__echo", `user tool_result "mcp__my_server__echo ran" error=false`,
			`assistant text "done"`, "result success error=false turns=2 completed",
		}},
		{"thinking", simulator.Options{}, []scenarios.Reply{{Blocks: []protocol.Block{protocol.ThinkingBlock{Thinking: "hm"}, protocol.Text("x")}}}, []string{
			"init", "thinking_tokens", "thinking_tokens", "assistant thinking", `assistant text "x"`, "result success error=false turns=1 completed",
		}},
		{"partial messages", simulator.Options{Display: simulator.DisplayOptions{PartialMessages: true}}, []scenarios.Reply{
			{Blocks: []protocol.Block{protocol.Text("word"), protocol.ToolUse{Name: "Read", Input: json.RawMessage(`{"a":1}`)}}},
			text("done"),
		}, []string{
			"init", "status", "message_start",
			"content_block_start", "content_block_delta", `assistant text "word"`, "content_block_stop",
			"content_block_start", "content_block_delta", "content_block_delta", "content_block_delta", "assistant tool_use Read", "content_block_stop",
			"message_delta", "message_stop", `user tool_result "Read ran" error=false`,
			"status", "message_start", "content_block_start", "content_block_delta", `assistant text "done"`, "content_block_stop",
			"message_delta", "message_stop", "result success error=false turns=2 completed",
		}},
		{"a step without calls is followed by the next", simulator.Options{}, []scenarios.Reply{
			{Blocks: []protocol.Block{protocol.Text("one")}, HasMore: true}, text("two"),
		}, []string{
			"init", `assistant text "one"`, `assistant text "two"`, "result success error=false turns=1 completed",
		}},
		{"empty reply", simulator.Options{}, []scenarios.Reply{{}, {}}, []string{
			"init", asksForMore, "result success error=false turns=2 completed",
		}},
		{"empty reply with another step", simulator.Options{}, []scenarios.Reply{{HasMore: true}, text("there")}, []string{
			"init", asksForMore, `assistant text "there"`, "result success error=false turns=2 completed",
		}},
		{"two empty replies with another step", simulator.Options{}, []scenarios.Reply{{HasMore: true}, {HasMore: true}, text("there")}, []string{
			"init", asksForMore, `assistant text "there"`, "result success error=false turns=2 completed",
		}},
		{"an empty step behind a text", simulator.Options{}, []scenarios.Reply{{Blocks: text("one").Blocks, HasMore: true}, {HasMore: true}, text("two")}, []string{
			"init", `assistant text "one"`, `assistant text "two"`, "result success error=false turns=1 completed",
		}},
		{"the API would go on", simulator.Options{}, []scenarios.Reply{{Blocks: text("one").Blocks, StopReason: "pause_turn", HasMore: true}}, []string{
			"init", `assistant text "one"`, "result success error=false turns=1 completed",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.o.Model = &fakeModel{replies: tt.replies}
				got, _ := playTurn(t.Context(), t, newSimulator(t, tt.o), "hi")
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Calls that are not known to be read-only run one after another. In the real CLI, two MCP calls
// that sleep 600 and 300 ms took 920 ms.
func TestWritingCallsRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{callReply(`Write {}`, `Write {}`, `Slow {}`, `Slow {}`), text("done")}}})
		began := time.Now()
		playTurn(t.Context(), t, s, "hi")
		if took := time.Since(began); took != 1200*time.Millisecond {
			t.Errorf("took %s, want 2 × 100 ms one after the other and 1 s for two at once", took)
		}
	})
}

func TestMaxTurns(t *testing.T) {
	model := &fakeModel{replies: []scenarios.Reply{callReply(`Read {}`)}}
	got, result := playTurn(t.Context(), t, newSimulator(t, simulator.Options{Model: model, Limits: simulator.Limits{MaxTurns: 2}}), "loop")
	want := []string{
		"init", "assistant tool_use Read", `user tool_result "Read ran" error=false`,
		"assistant tool_use Read", `user tool_result "Read ran" error=false`, "result error_max_turns error=true turns=3 max_turns",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Reached maximum number of turns (2)"}, result.Errors); diff != "" || *result.StopReason != "tool_use" || result.Result != nil {
		t.Errorf("result %+v\n%s", result, diff)
	}
}

// The budget is checked after each reply. The calls of this reply do not run, and later prompts of
// the session get the same result without a request.
func TestMaxBudget(t *testing.T) {
	reply := callReply(`Read {}`)
	reply.Usage = &scenarios.Usage{InputTokens: 1_000_000, OutputTokens: 100_000}
	model := &fakeModel{replies: []scenarios.Reply{reply}}
	s := newSimulator(t, simulator.Options{Model: model, Limits: simulator.Limits{BudgetUSD: 0.5}})
	got, result := playTurn(t.Context(), t, s, "loop")
	want := []string{"init", "assistant tool_use Read", "result error_max_budget_usd error=true turns=1 budget_exhausted"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Reached maximum budget ($0.5)"}, result.Errors); diff != "" {
		t.Error(diff)
	}
	if got, _ = playTurn(t.Context(), t, s, "again"); len(got) != 2 || len(model.requests) != 1 {
		t.Errorf("second prompt: %q after %d requests", got, len(model.requests))
	}
}

func TestUsageAndCostAddUp(t *testing.T) {
	first, last := callReply(`Read {}`), text("done")
	first.Usage, last.Usage = &scenarios.Usage{InputTokens: 10, OutputTokens: 5}, &scenarios.Usage{InputTokens: 20, OutputTokens: 7}
	s := newSimulator(t, simulator.Options{
		Model: &fakeModel{replies: []scenarios.Reply{first, last}},
		Main:  &simulator.MainOptions{Costs: map[string]protocol.ModelUsage{"claude-opus-5-5": {InputTokens: 1000, CostUSD: 1}}},
	})
	_, r := playTurn(t.Context(), t, s, "hi")
	if r.Usage.InputTokens != 30 || r.Usage.OutputTokens != 12 {
		t.Errorf("usage of the turn: %+v", r.Usage)
	}
	m := r.ModelUsage["claude-opus-5-5"]
	if m.InputTokens != 1030 || m.OutputTokens != 12 {
		t.Errorf("usage of the session: %+v", m)
	}
	if since := (*r.ModelUsageSince)["claude-opus-5-5"]; since.InputTokens != 30 {
		t.Errorf("usage since the last result: %+v", since)
	}
	if r.TotalCostUSD != m.CostUSD || r.TotalCostUSD <= 1 {
		t.Errorf("cost %v, of the model %v", r.TotalCostUSD, m.CostUSD)
	}
}

// An interrupt while a tool runs: the call is rejected, the turn has its result
// and the next prompt works (checklist row 29).
func TestInterruptTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{callReply(`Slow {}`, `Write {}`), text("after")}}})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		got, result := playTurn(ctx, t, s, "hi")
		stopped := fmt.Sprintf("user tool_result %q error=true", executor.InterruptedWhileRunningResult().Content.Text)
		rejected := fmt.Sprintf("user tool_result %q error=true", executor.InterruptedResult().Content.Text)
		want := []string{
			"init", "assistant tool_use Slow", "assistant tool_use Write", stopped, rejected,
			`user text "[Request interrupted by user for tool use]"`, "result error_during_execution error=true turns=4 aborted_tools",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if *result.StopReason != "tool_use" {
			t.Errorf("stop reason %q", *result.StopReason)
		}
		if got, _ = playTurn(t.Context(), t, s, "next"); got[len(got)-1] != "result success error=false turns=1 completed" {
			t.Errorf("next prompt: %q", got)
		}
	})
}

// A running call that a signal interrupts has the same result as a call that has not started.
func TestSignalInTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{callReply(`Slow {}`), text("after")}}})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(500*time.Millisecond, func() { cancel(simulator.ErrSignalled) }).Stop()
		got, _ := playTurn(ctx, t, s, "hi")
		want := []string{
			"init", "assistant tool_use Slow", fmt.Sprintf("user tool_result %q error=true", executor.InterruptedResult().Content.Text),
			`user text "[Request interrupted by user for tool use]"`, "result error_during_execution error=true turns=3 aborted_tools",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// askingTool is a tool whose permission question is open when the turn ends.
type askingTool struct {
	fakeTools
	end context.CancelFunc
}

func (a askingTool) Execute(ctx context.Context, use protocol.ToolUse) (executor.Result, error) {
	a.end()
	return executor.Result{}, &simulator.InterruptedPermissionError{Call: use.ID, Err: ctx.Err()}
}

// A call counts as denied if the host interrupts the turn while the permission question about the call is open.
func TestInterruptQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSimulator(t, simulator.Options{
		Model: &fakeModel{replies: []scenarios.Reply{callReply(`Write {}`), text("after")}}, Tools: simulator.NonInspectingExecutor(askingTool{end: cancel}),
	})
	_, result := playTurn(ctx, t, s, "hi")
	if len(result.PermissionDenials) != 1 || result.PermissionDenials[0].ToolName != "Write" || result.TerminalReason != "aborted_tools" {
		t.Errorf("%s, denials %+v", result.TerminalReason, result.PermissionDenials)
	}
}

func TestInterruptStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{
			Model:   &fakeModel{replies: []scenarios.Reply{text("one two three four")}},
			Display: simulator.DisplayOptions{Stream: scenarios.Stream{TokensPerSecond: 1}},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		got, result := playTurn(ctx, t, s, "hi")
		want := []string{
			"init", `assistant text "one two "`, `user text "[Request interrupted by user]"`,
			"result error_during_execution error=true turns=2 aborted_streaming",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if result.StopReason != nil {
			t.Errorf("stop reason %q", *result.StopReason)
		}
		if u := result.Usage; u.InputTokens != 0 || u.OutputTokens != 0 {
			t.Errorf("usage of the turn: %+v", u)
		}
		if u := result.ModelUsage["claude-opus-5-5"]; u.InputTokens != 1 || u.OutputTokens != 3 { // "one two " counts as one token for three characters
			t.Errorf("usage of the session: %+v", u)
		}
	})
}

// If partial messages are enabled, the stream of an interrupted message also has its closing events.
func TestInterruptPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{
			Model:   &fakeModel{replies: []scenarios.Reply{text("one two three four")}},
			Display: simulator.DisplayOptions{Stream: scenarios.Stream{TokensPerSecond: 1}, PartialMessages: true},
		})
		for _, tt := range []struct {
			after time.Duration
			from  int // the first block that is abandoned
			want  []string
		}{
			{2500 * time.Millisecond, 1, []string{
				"message_start", "content_block_start", "content_block_delta", "content_block_delta", "assistant", "user",
				"content_block_stop", "message_delta", "message_stop", "result",
			}},
			{500 * time.Millisecond, 0, []string{
				"message_start", "content_block_start", "user", "content_block_stop", "message_delta", "message_stop", "result",
			}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), tt.after)
			var got []string
			var last *protocol.StreamEvent
			for ev := range s.RunTurn(ctx, protocol.UserMessage{Content: protocol.Content{Text: "hi"}}) {
				switch ev := ev.(type) {
				case *protocol.StreamEvent:
					last = ev
					got = append(got, streamKind(t, ev))
				case *protocol.AssistantEvent, *protocol.UserEvent, *protocol.ResultEvent:
					got = append(got, strings.Fields(eventText(ev))[0])
				}
			}
			cancel()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", tt.after, diff)
			}
			if diff := cmp.Diff(&protocol.AbandonedBlocks{APIMessageID: last.APIMessageID, FromBlockIndex: tt.from}, last.AbandonedBlocks); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", tt.after, diff)
			}
		}
	})
}

// streamKind is the type of a raw API event.
func streamKind(t *testing.T, ev *protocol.StreamEvent) string {
	t.Helper()
	raw, err := protocol.Marshal(ev.Event)
	if err != nil {
		t.Fatal(err)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		t.Fatal(err)
	}
	return kind.Type
}

// If the consumer stops, running tools are cancelled.
func TestConsumerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{callReply(`Read {}`, `Slow {}`)}}})
		began := time.Now()
		for ev := range s.RunTurn(t.Context(), protocol.UserMessage{}) {
			if _, ok := ev.(*protocol.UserEvent); ok {
				break
			}
		}
		if took := time.Since(began); took >= time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestCrashComesOutAsAnError(t *testing.T) {
	s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{{Failure: &scenarios.Failure{Type: scenarios.FailCrash, ExitCode: 7}}}}})
	var got error
	for _, err := range s.RunTurn(t.Context(), protocol.UserMessage{}) {
		got = err
	}
	if crash, ok := errors.AsType[*simulator.CrashError](got); !ok || crash.ExitCode != 7 {
		t.Errorf("error %v", got)
	}
}

type failingTranscript struct{ transcriptFunc }

func (failingTranscript) Record(protocol.Event) error { return errors.New("no space left on device") }

func TestTranscriptThatFailsIsOneWarning(t *testing.T) {
	s := newSimulator(t, simulator.Options{Model: &fakeModel{}, Main: &simulator.MainOptions{Transcript: failingTranscript{}}})
	warnings := 0
	last := ""
	for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ev.(*protocol.StderrWarning); ok {
			warnings++
		}
		last = eventText(ev)
	}
	if warnings != 1 || last != "result success error=false turns=1 completed" {
		t.Errorf("%d warnings, last event %q", warnings, last)
	}
}

// A running call sends a heartbeat every 30 s, under its own id (checklist row 64).
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulator(t, simulator.Options{Model: &fakeModel{replies: []scenarios.Reply{callReply("mcp__my_server__long {}", "Slow {}"), text("done")}}})
		began := time.Now()
		var got []string
		for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{}) {
			if err != nil {
				t.Fatal(err)
			}
			if f, ok := ev.(*protocol.Frame); ok {
				line, err := protocol.Marshal(f)
				if err != nil {
					t.Fatal(err)
				}
				call, rest, _ := strings.Cut(string(line), `"tool_name"`)
				got = append(got, fmt.Sprintf("%s %v %s", time.Since(began), strings.Contains(call, fmt.Sprintf("toolu_010000000400004000800000-heartbeat-%d\"", len(got))), strings.Split(rest, `"session_id"`)[0]))
			}
		}
		id := `"toolu_010000000400004000800000"`
		want := []string{
			`30s true :"mcp__my_server__long","parent_tool_use_id":` + id + `,"elapsed_time_seconds":30,"heartbeat":true,`,
			`1m0s true :"mcp__my_server__long","parent_tool_use_id":` + id + `,"elapsed_time_seconds":60,"heartbeat":true,`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("heartbeats (-want +got):\n%s", diff)
		}
	})
}

// asksForMore is the CLI's answer to an empty reply.
const asksForMore = `user text "[Your previous response had no visible output. Please continue and produce a user-visible response.]"`
