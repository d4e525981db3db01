package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSet(o task.Options) *task.Set {
	n := 0
	o.NewID = func() string { n++; return fmt.Sprintf("%08d-0000-4000-8000-%012d", n, n) }
	if o.Now == nil {
		o.Now = func() time.Time { return time.UnixMilli(1_700_000_000_000) }
	}
	return task.New(o)
}

// wireTexts renders events as they are sent, without their last two keys.
func wireTexts(t *testing.T, events []protocol.Event) []string {
	t.Helper()
	var out []string
	for _, ev := range events {
		raw, err := protocol.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := strings.CutSuffix(string(raw), `,"uuid":"","session_id":""}`)
		out = append(out, strings.TrimPrefix(line, `{"type":"system","subtype":`))
	}
	return out
}

// TestFrames checks the keys and the order of frames, as in the goldens subagent-fg and tool-bash-bg.
func TestFrames(t *testing.T) {
	s := newSet(task.Options{Dir: func() string { return "/tasks" }})
	a := s.Start(task.Info{Kind: task.KindAgent, ToolUseID: "toolu_1", Description: "d", AgentType: "Explore", Prompt: "p", Depth: 1})
	a.PostProgress("reading", "Read", task.Usage{TotalTokens: 3, ToolUses: 1, DurationMS: 2})
	a.End(task.End{Status: task.StatusCompleted, Summary: "found", Usage: &task.Usage{TotalTokens: 5}})
	a.End(task.End{Status: task.StatusFailed}) // too late
	a.Post(&protocol.StderrWarning{Text: "too late"})
	b := s.Start(task.Info{Kind: task.KindBash, ToolUseID: "toolu_2", Description: "wait", Command: "sleep 1", Background: true})
	b.End(task.End{Status: task.StatusFailed, Summary: "no"})
	ids := fmt.Sprintf(`"task_id":"%s","run_id":"%s"`, a.ID, a.RunID)
	bash := fmt.Sprintf(`"task_id":"%s","run_id":"%s"`, b.ID, b.RunID)
	want := []string{
		`"task_started",` + ids + `,"tool_use_id":"toolu_1","description":"d","subagent_type":"Explore","is_backgrounded":false,"spawn_depth":1,"task_type":"local_agent","prompt":"p"`,
		`"task_progress",` + ids + `,"tool_use_id":"toolu_1","description":"reading","subagent_type":"Explore","usage":{"total_tokens":3,"tool_uses":1,"duration_ms":2},"last_tool_name":"Read"`,
		`"task_updated",` + ids + `,"patch":{"status":"completed","end_time":1700000000000}`,
		`"task_notification",` + ids + `,"tool_use_id":"toolu_1","status":"completed","output_file":"/tasks/` + a.ID + `.output","summary":"found","usage":{"total_tokens":5,"tool_uses":0,"duration_ms":0}`,
		`"background_tasks_changed","tasks":[{` + bash + `,"task_type":"local_bash","description":"wait"}]`,
		`"task_started",` + bash + `,"tool_use_id":"toolu_2","description":"wait","is_backgrounded":true,"task_type":"local_bash"`,
		`"task_updated",` + bash + `,"patch":{"status":"failed","end_time":1700000000000}`,
		`"task_notification",` + bash + `,"tool_use_id":"toolu_2","status":"failed","output_file":"/tasks/` + b.ID + `.output","summary":"no"`,
		`"background_tasks_changed","tasks":[]`,
	}
	if _, ok := s.TakeNextNotice(task.ConversationPhaseBetweenTurns); ok {
		t.Error("a notice precedes the events of its task")
	}
	got := wireTexts(t, s.TakeEvents(task.ConversationPhaseInTurn))
	if len(got) != 6 {
		t.Errorf("%d events before the result of the call is shown", len(got))
	}
	s.ReleaseEventsOfLaunchedTasks()
	if diff := cmp.Diff(want, append(got, wireTexts(t, s.TakeEvents(task.ConversationPhaseInTurn))...)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if len(a.ID) != 17 || a.ID[0] != 'a' || len(b.ID) != 9 || b.ID[0] != 'b' {
		t.Errorf("ids %s, %s", a.ID, b.ID)
	}
	n, ok := s.TakeNextNotice(task.ConversationPhaseBetweenTurns)
	wantOrigin := `{"kind":"task-notification","producer":"session-task","runId":"` + b.RunID + `"}`
	if !ok || string(n.Origin) != wantOrigin || !strings.Contains(n.Text, "<status>failed</status>\n<summary>no</summary>") {
		t.Errorf("notice %+v", n)
	}
	if _, ok := s.TakeNextNotice(task.ConversationPhaseInTurn); ok {
		t.Error("an agent that the call waited for is told of")
	}
	wantStats := protocol.SubagentCounts{Spawned: 1, MaxDepth: 1, Completed: 1, ByType: map[string]int{"Explore": 1}}
	if diff := cmp.Diff(wantStats, s.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestNestedTaskIsBehindItsParent(t *testing.T) {
	s := newSet(task.Options{Ordered: true})
	parent := s.Start(task.Info{Kind: task.KindAgent, Background: true, Depth: 1})
	child := s.Start(task.Info{Kind: task.KindAgent, ParentID: parent.ID, Depth: 2})
	if !child.InBackground() {
		t.Error("the child of a background agent is in the foreground")
	}
	if events := s.TakeEvents(task.ConversationPhaseInTurn); len(events) != 2 {
		t.Errorf("%d events in the turn of an ordered set, want the start of the parent", len(events))
	}
	if stats := s.Stats(); stats.MaxDepth != 2 || stats.SpawnedBySubagents != 1 || stats.StartedInBackground != 1 {
		t.Errorf("stats %+v", stats)
	}
}

func TestStopAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(task.Options{})
		wait := func(ctx context.Context) task.End {
			<-ctx.Done()
			return task.End{Status: task.StatusCompleted, Summary: "was stopped"}
		}
		a := s.Start(task.Info{Kind: task.KindAgent, Background: true, Depth: 1})
		b := s.Start(task.Info{Kind: task.KindBash, Background: true})
		c := s.Start(task.Info{Kind: task.KindAgent, Background: true, Depth: 1})
		ctx, cancel := context.WithCancel(t.Context())
		for _, k := range []*task.Task{a, b, c} {
			s.GoDetached(ctx, k, wait)
		}
		cancel() // the end of the call is not that of its task
		synctest.Wait()
		if got := len(s.RunningInBackground()); got != 3 {
			t.Fatalf("%d tasks run", got)
		}
		if s.Stop(a.ID, task.KilledByParent) == nil || s.Stop("nosuch", task.KilledByUserOrHost) != nil {
			t.Error("Stop of a running task is false, or that of an unknown one true")
		}
		synctest.Wait()
		if s.Stop(a.ID, task.KilledByUserOrHost) != nil || s.HasPendingNotice() {
			t.Error("a stopped task runs on, or the model is told of it")
		}
		s.Close()
		s.Close()
		if s.HasRunningBackgroundTask() {
			t.Error("tasks outlive the set")
		}
		if k := s.Stats().Killed; k != (protocol.KilledAgentCounts{Parent: 1, System: 1}) {
			t.Errorf("killed %+v", k)
		}
		s.GoDetached(t.Context(), s.Start(task.Info{Kind: task.KindBash, Background: true}), wait) // is stopped immediately
		s.Close()
	})
}

// In a repeatable run, background agents run one at a time between turns, and their events are shown when they have ended.
func TestOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(task.Options{Ordered: true})
		var ran []int
		for i := range 2 {
			k := s.Start(task.Info{Kind: task.KindAgent, Background: true, Depth: 1})
			s.GoDetached(t.Context(), k, func(context.Context) task.End {
				ran = append(ran, i)
				time.Sleep(time.Second)
				return task.End{Status: task.StatusCompleted}
			})
		}
		synctest.Wait()
		if s.ShowsEventsLive() || len(ran) != 0 {
			t.Fatalf("ran %v before the turn was over", ran)
		}
		if n := len(s.TakeEvents(task.ConversationPhaseInTurn)); n != 4 {
			t.Errorf("%d events of the starts", n)
		}
		for i := range 2 {
			s.StartNextAgent()
			s.StartNextAgent() // one at a time
			synctest.Wait()
			if len(ran) != i+1 || s.TakeEvents(task.ConversationPhaseBetweenTurns) != nil {
				t.Errorf("agent %d: ran %v", i, ran)
			}
			time.Sleep(2 * time.Second)
			if n := len(s.TakeEvents(task.ConversationPhaseBetweenTurns)); n != 3 {
				t.Errorf("%d events of agent %d", n, i)
			}
		}
		s.GoDetached(t.Context(), s.Start(task.Info{Kind: task.KindAgent, Background: true}), nil) // never runs
		s.Close()
	})
}

// WaitUntilPostedEventsShown returns only after the posted events were shown.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(task.Options{})
		k := s.Start(task.Info{Kind: task.KindAgent})
		k.Post(&protocol.StderrWarning{Text: "one"})
		done := false
		go func() { k.WaitUntilPostedEventsShown(t.Context()); done = true }()
		synctest.Wait()
		if len(s.TakeEvents(task.ConversationPhaseInTurn)) != 2 || done {
			t.Error("Settle does not wait")
		}
		s.MarkTakenEventsEmitted()
		synctest.Wait()
		if !done {
			t.Error("Settle waits for ever")
		}
		k.Post(&protocol.StderrWarning{Text: "two"})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		k.WaitUntilPostedEventsShown(ctx)                                                              // ends with ctx
		newSet(task.Options{Ordered: true}).Start(task.Info{}).WaitUntilPostedEventsShown(t.Context()) // shows nothing before the end
	})
}

// When the user stops an agent, the model is notified only after the end of the agent has been shown.
func TestReportStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(task.Options{})
		release := make(chan struct{})
		agent := s.Start(task.Info{Kind: task.KindAgent, Background: true, Description: "work"})
		s.GoDetached(t.Context(), agent, func(ctx context.Context) task.End {
			<-ctx.Done()
			<-release // it reports its end later
			return task.End{Summary: "a reason", Usage: &task.Usage{}}
		})
		s.TakeEvents(task.ConversationPhaseBetweenTurns)
		s.MarkTakenEventsEmitted()
		if s.Stop(agent.ID, task.KilledByUserOrHost) != agent {
			t.Fatal("no agent was stopped")
		}
		done := false
		go func() { agent.WaitUntilPostedEventsShown(t.Context()); done = true }()
		synctest.Wait()
		if done {
			t.Error("WaitShown returned before the end of the agent")
		}
		close(release)
		synctest.Wait()
		if done {
			t.Error("WaitShown returned before the end was shown")
		}
		for _, ev := range s.TakeEvents(task.ConversationPhaseBetweenTurns) {
			if frame, err := json.Marshal(ev); err != nil || strings.Contains(string(frame), "a reason") || strings.Contains(string(frame), "usage") {
				t.Errorf("the end shows its reason: %s (%v)", frame, err)
			}
		}
		s.MarkTakenEventsEmitted()
		synctest.Wait()
		if !done || s.HasPendingNotice() {
			t.Errorf("done %t, notified %t", done, s.HasPendingNotice())
		}
		agent.NotifyModelOfAgentStopByUser()
		if n, ok := s.TakeNextNotice(task.ConversationPhaseInTurn); !ok || !strings.Contains(n.Text, `<summary>Agent "work" was stopped by user</summary>`) || strings.Contains(n.Text, "usage") {
			t.Errorf("%t %s", ok, n.Text)
		}
		command := s.Start(task.Info{Kind: task.KindBash, Background: true})
		if command.NotifyModelOfAgentStopByUser(); s.HasPendingNotice() {
			t.Error("the end of a command causes a turn")
		}
	})
}

func TestClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSet(task.Options{})
		k := s.Start(task.Info{Kind: task.KindBash, Background: true})
		s.GoDetached(t.Context(), k, func(ctx context.Context) task.End { <-ctx.Done(); return task.End{} })
		s.EndAllAndDiscardEvents()
		synctest.Wait()
		if got := s.TakeEvents(task.ConversationPhaseBetweenTurns); got != nil || s.HasRunningBackgroundTask() || s.HasPendingNotice() {
			t.Errorf("after Clear: %v", wireTexts(t, got))
		}
		s.Close()
	})
}

func TestOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tasks")
	s := newSet(task.Options{Dir: func() string { return dir }})
	k := s.Start(task.Info{Kind: task.KindBash, Background: true})
	if out, err := s.Output(k.ID); out != nil || err != nil {
		t.Errorf("output before there is some: %q, %v", out, err)
	}
	for _, text := range []string{"one\n", "two\n"} {
		if _, err := k.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	k.End(task.End{Status: task.StatusCompleted})
	if out, err := s.Output(k.ID); string(out) != "one\ntwo\n" || err != nil {
		t.Errorf("output %q, %v", out, err)
	}
	if info, err := os.Stat(k.OutputFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
	if _, err := s.Output("nosuch"); err == nil {
		t.Error("output of an unknown task")
	}
	if k := newSet(task.Options{}).Start(task.Info{}); k.OutputFile != "" {
		t.Errorf("a file without a directory: %s", k.OutputFile)
	} else if _, err := k.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// An agent counts as running until its end has been shown, and as waiting while it sleeps.
func TestAgentsAreCounted(t *testing.T) {
	s := newSet(task.Options{})
	a := s.Start(task.Info{Kind: task.KindAgent, Background: true})
	var states []string
	note := func(when string) {
		states = append(states, fmt.Sprint(when, " ", s.HasRunningOrUnshownBackgroundAgent(), s.HasNonWaitingBackgroundAgent()))
	}
	note("started")
	_ = a.WhileWaiting(func() error { note("waits"); return nil })
	s.ReleaseEventsOfLaunchedTasks()
	s.TakeEvents(task.ConversationPhaseInTurn)
	s.MarkTakenEventsEmitted()
	a.End(task.End{Status: task.StatusCompleted})
	note("ended")
	s.TakeEvents(task.ConversationPhaseInTurn)
	s.MarkTakenEventsEmitted()
	note("shown")
	want := []string{"started true true", "waits true false", "ended true false", "shown false false"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Error(diff)
	}
}
