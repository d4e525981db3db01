package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/agent"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a model with a list of replies for each prompt. It sends them in order, each after the
// results of the preceding calls.
type script map[string][]scenarios.Reply

type model struct {
	s    script
	rest []scenarios.Reply
}

func (m *model) Next(_ context.Context, r scenarios.Request) (scenarios.Reply, error) {
	if r.Results == nil {
		m.rest = slices.Clone(m.s[r.Prompt])
		if strings.HasPrefix(r.Prompt, "<task-notification>") {
			m.rest = []scenarios.Reply{textReply("told")}
		}
	}
	if len(m.rest) == 0 {
		return textReply("done"), nil
	}
	reply := m.rest[0]
	m.rest = m.rest[1:]
	return reply, nil
}

func textReply(text string) scenarios.Reply {
	return scenarios.Reply{Blocks: []protocol.Block{protocol.Text(text)}}
}

func call(name, input string) scenarios.Reply {
	return scenarios.Reply{Blocks: []protocol.Block{protocol.ToolUse{Name: name, Input: json.RawMessage(input)}}}
}

// tools has Read, which takes a second, and records the agents that call it.
type tools struct{ callers chan string }

func (f *tools) Tools(context.Context) ([]protocol.Tool, error) {
	return []protocol.Tool{{Name: "Agent"}, {Name: "Read", ReadOnly: true}, {Name: "SendMessage"}, {Name: "Write"}}, nil
}

func (f *tools) Execute(ctx context.Context, use protocol.ToolUse) (executor.Result, error) {
	if use.Name != "Read" {
		return executor.Result{}, executor.ErrUnknownTool
	}
	f.callers <- use.Agent.Type
	if err := new(fakeClock).Sleep(ctx, time.Second); err != nil {
		return executor.Result{}, err
	}
	return executor.ResultOf(protocol.ToolResult{Content: protocol.Content{Text: "read"}}), nil
}

// session is a main conversation with agents.
type session struct {
	*simulator.Simulator
	tasks   *task.Set
	callers chan string
}

// fakeClock uses the time of the test and consecutive ids.
type fakeClock struct{ n atomic.Int64 }

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
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", c.n.Load(), c.n.Add(1))
}

// agentTypes are the agent types of the tests; one of them is denied.
type agentTypes struct{}

func (agentTypes) FindAgentEvenIfDenied(name string) (agent.Definition, bool) {
	d, ok := map[string]agent.Definition{
		"general-purpose": {Name: "general-purpose"},
		"banned":          {Name: "banned"},
		"reader":          {Name: "reader", Tools: []string{"Read(*)"}, Model: "haiku", Background: new(bool)},
	}[name]
	return d, ok
}

func (agentTypes) AllAgentTypeNames() []string { return []string{"general-purpose", "reader"} }

func (agentTypes) DenyRuleForAgentType(name string) (rule, source string) {
	if name == "banned" {
		rule, source = "Agent(banned)", "userSettings"
	}
	return rule, source
}

// testSession implements Session with the agents of a test and the scripted model that answers for them.
type testSession struct {
	options simulator.Options
	shown   bool

	isolation error // of Isolate
}

func (a *testSession) Options() simulator.Options     { return a.options }
func (a *testSession) SessionName() string            { return "session" }
func (a *testSession) ShowsTextOfAwaitedAgents() bool { return a.shown }

func (a *testSession) CreateAgentWorktree(_ context.Context, id string) (string, error) {
	return "/trees/" + id, a.isolation
}

func (a *testSession) RemoveAgentWorktreeIfUnchanged(_ context.Context, id string) (path, branch string) {
	return "/trees/" + id, "worktree-" + id
}

// scriptPlayer creates the models of agents. A call without a script uses the scripted model of the test.
type scriptPlayer struct{ s script }

func (scriptPlayer) ModelNameAfterOverrides(name string) string { return name }

func (p scriptPlayer) AgentModel(own *protocol.SubagentScript) simulator.Model {
	if own != nil {
		return &model{s: own.Steps.(script)}
	}
	return &model{s: p.s}
}

func newSession(t *testing.T, s script, shown bool, change func(*simulator.Options)) *session {
	t.Helper()
	clock := &fakeClock{}
	tasks := task.New(task.Options{NewID: clock.NewID, Now: time.Now})
	t.Cleanup(tasks.Close)
	around := &testSession{shown: shown}
	agents := agent.New(agent.Options{Tasks: tasks, Definitions: agentTypes{}, Models: scriptPlayer{s}, Session: around})
	callers := make(chan string, 10)
	live := &simulator.SessionState{}
	live.BeginConversation("S", "")
	options := &around.options
	*options = simulator.Options{
		Model: &model{s: s}, Tools: simulator.NonInspectingExecutor(executor.Composite{agents, &tools{callers}}), Clock: clock, State: live,
		Main: &simulator.MainOptions{Tasks: tasks, Context: emptyContext{}},
	}
	if change != nil {
		change(options)
	}
	sim, err := simulator.New(*options)
	if err != nil {
		t.Fatal(err)
	}
	return &session{sim, tasks, callers}
}

// play runs the prompt "go" and all background work. It returns one short line for each event on stdout; lines that
// only transcripts have are in brackets.
func (s *session) play(t *testing.T) (lines []string, results []*protocol.ResultEvent) {
	t.Helper()
	take := func(ev protocol.Event, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := ev.(*protocol.ResultEvent); ok {
			results = append(results, r)
		}
		if line := eventText(ev); line != "" {
			lines = append(lines, line)
		}
	}
	for ev, err := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
		take(ev, err)
	}
	for ev, err := range s.WaitForBackgroundAndItsTurns(t.Context(), time.Hour) {
		take(ev, err)
	}
	return lines, results
}

func eventText(ev protocol.Event) string {
	from := func(parent *string, kind string) string {
		if parent == nil {
			return ""
		}
		return kind + ": "
	}
	switch ev := ev.(type) {
	case *protocol.InitEvent:
		return "init"
	case *protocol.TranscriptOnlyEvent:
		return "(" + eventText(ev.Event) + ")"
	case *protocol.AssistantEvent:
		line := from(ev.ParentToolUseID, ev.SubagentType) + "assistant "
		if use, ok := ev.Message.Content[0].(protocol.ToolUse); ok {
			return line + use.Name
		}
		return line + ev.Message.Content[0].(protocol.TextBlock).Text
	case *protocol.UserEvent:
		line := from(ev.ParentToolUseID, ev.SubagentType) + "user "
		if len(ev.Message.Content.Blocks) == 0 {
			return line + ev.Message.Content.Text
		}
		if r, ok := ev.Message.Content.Blocks[0].(protocol.ToolResultBlock); ok {
			text := r.Content.Plain()
			if _, report, ok := strings.Cut(text, "The report follows:\n  "); ok {
				text = report
			}
			text, _, _ = strings.Cut(text, "\n")
			return line + "result " + text
		}
		return line + ev.Message.Content.Plain()
	case *protocol.SystemEvent:
		var line strings.Builder
		line.WriteString(ev.Subtype)
		for _, f := range ev.Fields {
			switch f.Key {
			case "is_backgrounded", "spawn_depth", "summary", "status", "description", "last_tool_name":
				fmt.Fprintf(&line, " %v", f.Value)
			}
		}
		return line.String()
	case *protocol.ResultEvent:
		return fmt.Sprintf("result %s turns=%d", *ev.Result, ev.NumTurns)
	}
	return ""
}

const foreground = `{"description":"d","prompt":"sub","subagent_type":"reader","run_in_background":false}`

// TestForeground checks the frames of a foreground agent that calls a tool. Only the transcript
// contains the agent's text (golden subagent-fg, checklist rows 39 and 46).
func TestForeground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {call("Read", `{"file_path":"a"}`), textReply("found")}}, false, nil)
		got, results := s.play(t)
		want := []string{
			"init", "assistant Agent", "task_started d false 1", "reader: user sub",
			"task_progress Reading a Read", "reader: assistant Read", "reader: user result read", "(reader: assistant found)",
			"task_updated", "task_notification completed found", "user result found", "assistant main", "result main turns=2",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if caller := <-s.callers; caller != "reader" {
			t.Errorf("the tool was called by %q", caller)
		}
		r := results[0]
		if m := r.ModelUsage["claude-haiku-5-5"]; m.OutputTokens == 0 || m.CanonicalModel == "" {
			t.Errorf("the agent's use is not in the session's books: %+v", r.ModelUsage)
		}
		if _, main := r.ModelUsage["claude-opus-5-5"]; !main || r.Usage.OutputTokens != r.ModelUsage["claude-opus-5-5"].OutputTokens {
			t.Errorf("usage %+v of %+v", r.Usage, r.ModelUsage)
		}
		wantStats := protocol.SubagentCounts{
			Spawned: 1, Requested: protocol.RequestedSubagentCounts{Foreground: 1}, MaxDepth: 1, Completed: 1, ByType: map[string]int{"reader": 1},
		}
		if diff := cmp.Diff(wantStats, *r.SubagentStats); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// The option forwardSubagentText makes the texts of agents visible (checklist row 46).
func TestForwardedText(t *testing.T) {
	s := newSession(t, script{"go": {call("Task", foreground), textReply("main")}, "sub": {textReply("hello")}}, true, nil)
	got, _ := s.play(t)
	if !slices.Contains(got, "reader: assistant hello") {
		t.Errorf("events %q", got)
	}
}

// TestResult checks the keys of tool_use_result (cli-shapes, Agent).
func TestResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, script{"go": {call("Agent", foreground)}, "sub": {call("Read", `{}`), textReply("found")}}, false, nil)
		var out map[string]any
		for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
			if u, ok := ev.(*protocol.UserEvent); ok && u.ParentToolUseID == nil {
				raw, err := protocol.Marshal(u.ToolUseResult)
				if err != nil {
					t.Fatal(err)
				}
				_ = json.Unmarshal(raw, &out)
			}
		}
		want := map[string]any{
			"status": "completed", "prompt": "sub", "agentType": "reader", "resolvedModel": "claude-haiku-5-5", "totalDurationMs": 1000.0,
			"totalToolUseCount": 1.0, "toolsUsed": []any{"Read"}, "harnessNoteCount": 1.0, "content": []any{
				map[string]any{"type": "text", "text": "<tools-used-before-summary>Read</tools-used-before-summary>\n"},
				map[string]any{"type": "text", "text": "found"},
			},
		}
		for key, value := range want {
			if diff := cmp.Diff(value, out[key]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
		if stats := out["toolStats"].(map[string]any); stats["readCount"] != 1.0 || out["totalTokens"].(float64) <= 0 {
			t.Errorf("%v", out)
		}
	})
}

// The result lists only the tools that the conversation did not know before (observed with 2.1.330).
func TestToolsUsedAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, script{"go": {call("Agent", foreground), call("Agent", foreground), textReply("end")}, "sub": {call("Read", `{}`), textReply("found"), call("Read", `{}`), textReply("found")}}, false, nil)
		var notes []float64
		for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
			if u, ok := ev.(*protocol.UserEvent); ok && u.ParentToolUseID == nil {
				raw, err := protocol.Marshal(u.ToolUseResult)
				if err != nil {
					t.Fatal(err)
				}
				var out struct {
					Notes *float64 `json:"harnessNoteCount"`
				}
				if json.Unmarshal(raw, &out) == nil && out.Notes != nil {
					notes = append(notes, *out.Notes)
				}
			}
		}
		if diff := cmp.Diff([]float64{1, 0}, notes); diff != "" {
			t.Errorf("notes of the results (-want +got):\n%s", diff)
		}
	})
}

// A call in the background returns immediately. The agent's texts are shown, and a separate turn
// reports its end to the model (checklist row 62, cli-contract 9.5).
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		input := `{"description":"d","prompt":"sub"}`
		s := newSession(t, script{"go": {call("Agent", input), textReply("main")}, "sub": {call("Read", `{}`), textReply("found")}}, false, nil)
		got, results := s.play(t)
		want := []string{
			"init", "assistant Agent", "background_tasks_changed", "task_started d true 1", "user result Async agent launched successfully. Its id and file are for internal use: do not mention them in an answer to the user.",
		}
		if diff := cmp.Diff(want, got[:5]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		for _, line := range []string{"(general-purpose: user sub)", "general-purpose: assistant found"} {
			if !slices.Contains(got, line) {
				t.Errorf("%q is missing in %q", line, got)
			}
		}
		if !slices.Contains(got, "result main turns=2") {
			t.Errorf("the first turn waits: %q", got)
		}
		end := []string{
			"task_updated", "task_notification completed found", "background_tasks_changed",
			"init", "assistant told", "result told turns=1",
		}
		if diff := cmp.Diff(end, got[len(got)-6:]); diff != "" {
			t.Errorf("end (-want +got):\n%s", diff)
		}
		if origin := string(results[1].Origin); !strings.HasPrefix(origin, `{"kind":"task-notification"`) || results[0].Origin != nil {
			t.Errorf("origins %s, %s", results[0].Origin, origin)
		}
		if st := results[1].SubagentStats; st.StartedInBackground != 1 || st.Requested.Unset != 1 || st.Completed != 1 {
			t.Errorf("stats %+v", st)
		}
	})
}

// A background agent continues and its events are shown while the main conversation waits for a slow reply.
func TestBackgroundBesideASlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := textReply("main")
		slow.DelayMS = 5000
		s := newSession(t, script{"go": {call("Agent", `{"description":"d","prompt":"sub"}`), slow}, "sub": {call("Read", `{}`), textReply("found")}}, false, nil)
		got, _ := s.play(t)
		found, main := slices.Index(got, "general-purpose: assistant found"), slices.Index(got, "assistant main")
		if found < 0 || main < found {
			t.Errorf("events %q", got)
		}
	})
}

// For the caller's model, the result of an agent contains its notes and its report, indented, and
// then its usage. The number of tokens is that of the agent's last message (observed with 2.1.329).
func TestHandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := textReply("one\ntwo")
		last.Usage = &scenarios.Usage{InputTokens: 10, OutputTokens: 5}
		s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {call("Read", `{"file_path":"a"}`), last}}, false, nil)
		var got, progress string
		for ev := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
			switch ev := ev.(type) {
			case *protocol.UserEvent:
				if r, ok := ev.Message.Content.Blocks[0].(protocol.ToolResultBlock); ok && ev.ParentToolUseID == nil {
					got = r.Content.Plain()
				}
			case *protocol.SystemEvent:
				if ev.Subtype == "task_progress" {
					raw, err := ev.MarshalJSON()
					if err != nil {
						t.Fatal(err)
					}
					progress = string(raw)
				}
			}
		}
		notes, rest, _ := strings.Cut(got, "[Subagent hand-back] ")
		_, report, _ := strings.Cut(rest, "The report follows:\n")
		if want := "  <tools-used-before-summary>Read</tools-used-before-summary>\n  \n"; notes != want {
			t.Errorf("notes %q, want %q", notes, want)
		}
		want := `^  one\n  two\nagentId: (\w+) \(use SendMessage with to: '\w+', summary: '<5-10 word recap>' to continue this agent\)\n` +
			`<usage>subagent_tokens: 15\ntool_uses: 1\nduration_ms: \d+</usage>$`
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("report %q", report)
		}
		if !strings.Contains(progress, `"total_tokens":3`) { // one token for the prompt, and two for the first piece of the call: 9 of 17 bytes, four bytes per token
			t.Errorf("progress %s", progress)
		}
	})
}

// A background agent accepts messages as soon as the call that started it has returned. In a
// repeatable run, the agent itself starts only between turns.
func TestMessageBeforeTheStart(t *testing.T) {
	clock := &fakeClock{}
	tasks := task.New(task.Options{NewID: clock.NewID, Now: time.Now, Ordered: true})
	around := &testSession{}
	around.options = simulator.Options{Tools: simulator.NonInspectingExecutor(&tools{}), Clock: clock, State: &simulator.SessionState{}}
	around.options.State.BeginConversation("S", "")
	agents := agent.New(agent.Options{Tasks: tasks, Definitions: agentTypes{}, Models: scriptPlayer{}, Session: around})
	run := func(ctx context.Context, name, input string) string {
		r, _ := agents.Execute(ctx, protocol.ToolUse{ID: name, Name: name, Input: json.RawMessage(input)}) // an interrupt is not a result
		return r.Content.Plain()
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	run(gone, "Agent", `{"description":"d","prompt":"p","name":"eve"}`)
	run(t.Context(), "Agent", `{"description":"d","prompt":"p","name":"bob"}`)
	for _, tt := range []struct{ to, want string }{{"bob", `"success":true,"message":"Message queued`}, {"eve", `"success":false,"message":"No agent named 'eve'`}} {
		if got := run(t.Context(), "SendMessage", `{"to":"`+tt.to+`","message":"more"}`); !strings.Contains(got, tt.want) {
			t.Errorf("to %s: %s", tt.to, got)
		}
	}
	if list := run(t.Context(), "ListAgents", `{}`); strings.Count(list, "running") != 1 {
		t.Errorf("list %s", list)
	}
	tasks.Close()
}

// The script of a call sets the agent type, the messages, and whether the call waits. If the script
// does not set whether the call waits, the agent type decides. By default, the call does not wait.
func TestScripted(t *testing.T) {
	for _, tt := range []struct {
		agentType  string
		background *bool
		want       bool
	}{
		{"reader", nil, false}, // a type with background: false
		{"reader", new(true), true},
		{"general-purpose", nil, true},
		{"general-purpose", new(false), false},
	} {
		reply := call("Agent", `{"description":"d","prompt":"sub"}`)
		use := reply.Blocks[0].(protocol.ToolUse)
		use.Script = &protocol.CallScript{Subagent: &protocol.SubagentScript{Type: tt.agentType, Background: tt.background, Steps: script{"sub": {textReply("scripted")}}}}
		reply.Blocks[0] = use
		s := newSession(t, script{"go": {reply, textReply("main")}, "sub": {textReply("by the rules")}}, false, nil)
		got, _ := s.play(t)
		if !slices.Contains(got, fmt.Sprintf("task_started d %t 1", tt.want)) || slices.Contains(got, "user result scripted") == tt.want ||
			!slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "scripted") }) {
			t.Errorf("%+v: events %q", tt, got)
		}
	}
}

func TestNested(t *testing.T) {
	inner := `{"description":"inner","prompt":"deep","run_in_background":false}`
	outer := `{"description":"outer","prompt":"sub","run_in_background":false}`
	s := newSession(t, script{"go": {call("Agent", outer), textReply("main")}, "sub": {call("Agent", inner), textReply("up")}, "deep": {textReply("bottom")}}, false, nil)
	got, results := s.play(t)
	want := []string{
		"init", "assistant Agent", "task_started outer false 1", "general-purpose: user sub",
		"task_progress inner Agent", "general-purpose: assistant Agent", "task_started inner false 2", "(general-purpose: user deep)",
		"(general-purpose: assistant bottom)", "task_updated", "task_notification completed bottom",
		"general-purpose: user result bottom", "(general-purpose: assistant up)", "task_updated", "task_notification completed up",
		"user result up", "assistant main", "result main turns=2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if st := results[0].SubagentStats; st.MaxDepth != 2 || st.SpawnedBySubagents != 1 {
		t.Errorf("stats %+v", st)
	}
}

// An agent at the greatest depth has no Agent tool.
func TestDepthLimit(t *testing.T) {
	again := `{"description":"d","prompt":"go","run_in_background":false}`
	s := newSession(t, script{"go": {call("Agent", again), textReply("main")}}, false, nil)
	got, results := s.play(t)
	if st := results[0].SubagentStats; st.Spawned != agent.MaxDepth || st.MaxDepth != agent.MaxDepth {
		t.Errorf("stats %+v, events %q", st, got)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"unknown kind", `{"description":"d","prompt":"p","subagent_type":"nosuch"}`, "user result Agent type 'nosuch' not found. Available agents: general-purpose, reader"},
		{"denied kind", `{"description":"d","prompt":"p","subagent_type":"banned"}`, "user result Agent type 'banned' has been denied by permission rule 'Agent(banned)' from userSettings."},
		{"bad input", `{"prompt":7}`, "user result <tool_use_error>InputValidationError: Agent failed due to the following issue:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSession(t, script{"go": {call("Agent", tt.input), textReply("main")}}, false, nil)
			got, _ := s.play(t)
			if len(got) != 5 || got[2] != tt.want {
				t.Errorf("events %q, want %q", got, tt.want)
			}
		})
	}
}

func TestToolsOfADefinition(t *testing.T) {
	s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {call("Write", `{}`), textReply("no")}}, false, nil)
	got, _ := s.play(t)
	if !slices.Contains(got, "reader: user result <tool_use_error>Error: No such tool available: Write. Write is not among the tools available here. Continue with the tools you have.</tool_use_error>") {
		t.Errorf("events %q", got)
	}
}

// If an agent type lists its tools, they keep that order. An agent with Bash has no search tools, and one without has no Monitor.
func TestOfferedTools(t *testing.T) {
	session := []string{"Agent", "AskUserQuestion", "Bash", "CronList", "Monitor", "Read", "Workflow", "Write"}
	for _, tt := range []struct {
		r    agent.RequestingAgent
		want []string
	}{
		{agent.RequestingAgent{}, session},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x"}}, []string{"Agent", "Bash", "CronList", "Monitor", "Read", "Write"}},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x"}, InBackground: true}, []string{"Agent", "Bash", "Monitor", "Read", "Write"}},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x", DisallowedTools: []string{"Bash", "Task"}}}, []string{"CronList", "Read", "Write"}},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x", Tools: []string{"Write", "Grep", "Read", "Nothing"}}}, []string{"Write", "Grep", "Read"}},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x", Tools: []string{"Grep", "Bash(ls)", "Task"}}}, []string{"Bash", "Agent"}},
		{agent.RequestingAgent{Definition: agent.Definition{Name: "x", Tools: []string{"*"}}}, []string{"Agent", "Bash", "CronList", "Monitor", "Read", "Write"}},
	} {
		if diff := cmp.Diff(tt.want, tt.r.OfferedTools(session, func(string) bool { return true })); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.r, diff)
		}
	}
}

func TestFailedAgent(t *testing.T) {
	fails := scenarios.Reply{Failure: &scenarios.Failure{Type: scenarios.FailAPIError, Status: 400, Message: "bad"}}
	s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {fails}}, false, nil)
	got, results := s.play(t)
	told := func(line string) bool {
		return strings.HasPrefix(line, "user result Agent terminated early due to an API error: API Error: 400 bad (error type unknown, HTTP 400, request id req_")
	}
	if !slices.ContainsFunc(got, told) || results[0].SubagentStats.Failed != 1 {
		t.Errorf("events %q", got)
	}
}

func TestCrashInAnAgent(t *testing.T) {
	crash := scenarios.Reply{Failure: &scenarios.Failure{Type: scenarios.FailCrash, ExitCode: 7}}
	s := newSession(t, script{"go": {call("Agent", foreground)}, "sub": {crash}}, false, nil)
	var got error
	for _, err := range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
		got = err
	}
	if c, ok := got.(*simulator.CrashError); !ok || c.ExitCode != 7 { //nolint:errorlint // the error must not be wrapped
		t.Errorf("error %v", got)
	}
}

// An interrupt ends a foreground agent, but not a background agent.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := scenarios.Reply{Blocks: append(
			call("Agent", `{"description":"bg","prompt":"sub"}`).Blocks,
			call("Agent", `{"description":"fg","prompt":"sub","run_in_background":false}`).Blocks...,
		)}
		s := newSession(t, script{"go": {two}, "sub": {call("Read", `{}`), textReply("found")}}, false, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		var lines []string
		for ev, err := range s.RunTurn(ctx, protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := ev.(*protocol.ResultEvent); !ok {
				lines = append(lines, eventText(ev))
			}
		}
		if !slices.Contains(lines, "task_notification stopped fg") || slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "general-purpose: user result") }) {
			t.Errorf("events %q", lines)
		}
		if !s.HasBackgroundWorkOrNotice() {
			t.Fatal("the background agent is gone")
		}
		var rest []string
		for ev := range s.WaitForBackgroundAndItsTurns(t.Context(), time.Hour) {
			rest = append(rest, eventText(ev))
		}
		if !slices.Contains(rest, "task_notification completed found") || !slices.Contains(rest, "result told turns=1") {
			t.Errorf("afterwards %q", rest)
		}
	})
}

// The wait for background work has a limit.
func TestCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := script{"go": {call("Agent", `{"description":"d","prompt":"sub"}`), textReply("main")}, "sub": slices.Repeat([]scenarios.Reply{call("Read", `{}`)}, 100)}
		s := newSession(t, slow, false, nil)
		for range s.RunTurn(t.Context(), protocol.UserMessage{Content: protocol.Content{Text: "go"}}) {
			continue
		}
		began := time.Now()
		for range s.WaitForBackgroundAndItsTurns(t.Context(), 1500*time.Millisecond) {
			continue
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("waited %s", took)
		}
		go func() { // receives the callers, so that the tools do not block
			for range s.callers {
				continue
			}
		}()
		s.tasks.Close()
		close(s.callers)
	})
}

// SubagentStart hooks run immediately after task_started, and SubagentStop hooks before
// task_updated. A blocked agent continues with the feedback (cli-contract 5.3).
func TestHooks(t *testing.T) {
	var inputs []string
	blocked := false
	runner, _ := hook.New(hook.Options{
		NewID: func() string { return "id" },
		Callback: func(_ context.Context, id string, input json.RawMessage, _ string) (json.RawMessage, error) {
			var in map[string]any
			_ = json.Unmarshal(input, &in)
			inputs = append(inputs, fmt.Sprintf("%v %v active=%v last=%v", in["hook_event_name"], in["agent_type"], in["stop_hook_active"], in["last_assistant_message"]))
			if id == "stop" && !blocked {
				blocked = true
				return json.RawMessage(`{"decision":"block","reason":"more"}`), nil
			}
			return json.RawMessage(`{}`), nil
		},
	})
	runner.AddCallbacks("SubagentStart", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"start"}}})
	runner.AddCallbacks("SubagentStop", []protocol.HookCallbackMatcher{{HookCallbackIDs: []string{"stop"}}})
	s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {textReply("first")}}, false, func(o *simulator.Options) { o.Hooks = runner })
	got, _ := s.play(t)
	want := []string{
		"SubagentStart reader active=<nil> last=<nil>",
		"SubagentStop reader active=false last=first", "SubagentStop reader active=true last=done",
	}
	if diff := cmp.Diff(want, inputs); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	if got[3] != "reader: user sub" || !strings.HasPrefix(got[5], "(reader: user ") || !strings.Contains(got[5], "more") {
		t.Errorf("events %q", got)
	}
	runner.WaitForAsyncHooksAndClose(t.Context())
}

// The events of the session's start are not repeated for agents.
func TestStartIsTheSessions(t *testing.T) {
	s := newSession(t, script{"go": {call("Agent", foreground), textReply("main")}, "sub": {textReply("found")}}, false, func(o *simulator.Options) {
		o.Main.Start = simulator.SessionOrigin{Title: "T", CustomizationsDisabled: true}
	})
	got, _ := s.play(t)
	for _, kind := range []string{"session_title_changed", "ui_invalidate"} {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(line string) bool { return line != kind })); n != 1 {
			t.Errorf("%d times %s in %q", n, kind, got)
		}
	}
}

// emptyContext is a context provider without content.
type emptyContext struct{}

func (emptyContext) InitEventWithModelWarning(context.Context) protocol.InitEvent {
	return protocol.InitEvent{}
}
func (emptyContext) FirstPromptContext(string) (before, after []string) { return nil, nil }
