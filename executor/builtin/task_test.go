package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

func newTasks(t *testing.T) *task.Set {
	t.Helper()
	n := 0
	dir := t.TempDir()
	set := task.New(task.Options{
		NewID: func() string { n++; return fmt.Sprintf("%08d-0000-4000-8000-00000000%04d", n, n) },
		Now:   time.Now, Dir: func() string { return dir },
	})
	t.Cleanup(set.Close)
	return set
}

// waitFrames waits for n frames and returns the subtype and status of each.
func waitFrames(t *testing.T, set *task.Set, n int) []string {
	t.Helper()
	var out []string
	deadline := time.After(10 * time.Second)
	for len(out) < n {
		for _, ev := range set.Take(task.ConversationPhaseBetweenTurns) {
			out = append(out, frame(ev))
		}
		if len(out) >= n {
			break
		}
		select {
		case <-set.ChangeSignal():
		case <-deadline:
			t.Fatalf("%d frames after 10 s: %q", len(out), out)
		}
	}
	return out
}

func frame(ev protocol.Event) string {
	sys := ev.(*protocol.System)
	var line strings.Builder
	line.WriteString(sys.Subtype)
	for _, f := range sys.Fields {
		switch f.Key {
		case "status", "summary", "task_type", "is_backgrounded":
			fmt.Fprintf(&line, " %v", f.Value)
		}
	}
	return line.String()
}

// A command in the background reports its state in frames. Its call returns immediately, and its
// output goes to a file (golden tool-bash-bg, checklist row 62).
func TestBashInBackground(t *testing.T) {
	set := newTasks(t)
	tools := newTools(t, Options{Tasks: set})
	r := call(t, tools, "Bash", toolInput{"command": "echo bgdone; exit 3", "run_in_background": true})
	id := structuredOutput[commandOutput](t, r).TaskID
	if r.IsError || !r.ShowsIsErrorFalse || !strings.HasPrefix(r.Content.Text, "Command running in background with ID: "+id+". Output is being written to: ") {
		t.Errorf("result %+v", r)
	}
	want := []string{
		"background_tasks_changed", "task_started true local_bash", "task_updated",
		`task_notification failed Background command "echo bgdone; exit 3" failed with exit code 3`, "background_tasks_changed",
	}
	if diff := cmp.Diff(want, waitFrames(t, set, 5)); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if out, err := set.Output(id); string(out) != "bgdone\n\n[exited with code 3]\n" || err != nil {
		t.Errorf("output %q, %v", out, err)
	}
	if _, ok := set.NextNotice(task.ConversationPhaseInTurn); !ok {
		t.Error("the model is not told")
	}
}

func TestTaskStop(t *testing.T) {
	set := newTasks(t)
	tools := newTools(t, Options{Tasks: set})
	id := structuredOutput[commandOutput](t, call(t, tools, "Bash", toolInput{"command": "sleep 100", "run_in_background": true, "description": "wait"})).TaskID
	if r := tools.Precheck(t.Context(), protocol.ToolUse{Name: "KillShell", Input: []byte("{}")}); r == nil ||
		r.Content.Text != "<tool_use_error>Missing required parameter: task_id</tool_use_error>" {
		t.Errorf("KillShell without a task: %+v", r)
	}
	r := call(t, tools, "TaskStop", toolInput{"task_id": id})
	if want := `{"message":"Successfully stopped task: ` + id + ` (sleep 100)","task_id":"` + id + `","task_type":"local_bash","command":"sleep 100"}`; r.IsError || r.Content.Text != want {
		t.Errorf("result %+v", r)
	}
	var got []string // everything is reported before the result
	for _, ev := range set.Take(task.ConversationPhaseBetweenTurns) {
		got = append(got, frame(ev))
	}
	want := []string{"background_tasks_changed", "task_started true local_bash", "task_updated", "task_notification stopped wait", "background_tasks_changed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if _, ok := set.NextNotice(task.ConversationPhaseInTurn); ok {
		t.Error("the model is told of a task that it stopped itself")
	}
	for _, input := range []toolInput{{"task_id": "nosuch"}, {"shell_id": id}, {}} {
		if r := call(t, tools, "TaskStop", input); !r.IsError {
			t.Errorf("%v: %+v", input, r)
		}
	}
}

// Checklist row 66: plan mode begins and ends with a status frame before the
// result, and the plan is in the plan file.
func TestPlanModeSwitches(t *testing.T) {
	m := fakeModes{mode: protocol.ModeDefault}
	file := filepath.Join(t.TempDir(), "plans", "p.md")
	tools := newTools(t, Options{
		Modes: &m, Paths: fakePaths{plan: file},
	})
	exit := protocol.ToolUse{Name: "ExitPlanMode", Input: []byte(`{}`)}
	if r := tools.Precheck(t.Context(), exit); r == nil || !strings.HasPrefix(r.Content.Text, "<tool_use_error>You are not in plan mode. ") {
		t.Errorf("before planning: %+v", r)
	}
	r := call(t, tools, "EnterPlanMode", toolInput{})
	if m.mode != protocol.ModePlan || len(r.EventsBefore) != 1 {
		t.Fatalf("mode %s, %+v", m.mode, r)
	}
	if r = call(t, tools, "EnterPlanMode", toolInput{}); len(r.EventsBefore) != 0 {
		t.Errorf("a mode that is in force is announced: %+v", r)
	}
	if r := tools.Precheck(t.Context(), exit); r != nil {
		t.Errorf("while planning: %+v", r)
	}
	r = call(t, tools, "ExitPlanMode", toolInput{"plan": "1. think"})
	data, err := protocol.Marshal(r.EventsBefore[0])
	if want := `{"type":"system","subtype":"status","status":null,"permissionMode":"default","uuid":"","session_id":""}`; m.mode != protocol.ModeDefault || err != nil || string(data) != want {
		t.Errorf("mode %s, status %s, %v", m.mode, data, err)
	}
	if out, _ := protocol.Marshal(r.Output); string(out) != `{"plan":"1. think","isAgent":false,"filePath":"`+file+`","planWasEdited":true}` {
		t.Errorf("output %s", out)
	}
	if plan, _ := os.ReadFile(file); string(plan) != "1. think" {
		t.Errorf("plan file %q", plan)
	}
	m.mode = protocol.ModeAcceptEdits // a host's choice stays
	if r = call(t, tools, "ExitPlanMode", toolInput{}); len(r.EventsBefore) != 0 || !strings.HasSuffix(r.Content.Text, "## Approved Plan:\n1. think") {
		t.Errorf("mode %s, %+v", m.mode, r)
	}
	tools = newTools(t, Options{Modes: &fakeModes{err: errors.New("no")}})
	if r = call(t, tools, "EnterPlanMode", toolInput{}); len(r.EventsBefore) != 0 {
		t.Errorf("a mode that was not set is announced: %+v", r)
	}
}

// fakeSkills has the skill "known", and one that is reserved.
type fakeSkills struct{}

func (fakeSkills) Skill(_ context.Context, name, args string) (Skill, error) {
	if name != "known" {
		return Skill{}, errors.New("Unknown skill: " + name)
	}
	return Skill{Text: "do " + args, Tools: []string{"Write"}, Model: "claude-haiku-5-5"}, nil
}

func (fakeSkills) Check(name string) error {
	if name == "reserved" {
		return errors.New("not for you")
	}
	return nil
}

func TestSkill(t *testing.T) {
	tools := newTools(t, Options{Skills: fakeSkills{}})
	r := call(t, tools, "Skill", toolInput{"skill": "known", "args": "it"})
	if r.IsError || r.Content.Text != "Launching skill: known" || len(r.EventsAfter) != 1 {
		t.Fatalf("result %+v", r)
	}
	if u := r.EventsAfter[0].(*protocol.User); u.Message.Content.Plain() != "do it" || !u.IsSynthetic {
		t.Errorf("after %+v", u)
	}
	if text, err := protocol.Marshal(r.Output); err != nil || string(text) != `{"success":true,"commandName":"known","allowedTools":["Write"],"model":"claude-haiku-5-5"}` {
		t.Errorf("output %s, %v", text, err)
	}
	for name, refused := range map[string]bool{"reserved": true, "known": false} {
		raw, _ := protocol.Marshal(toolInput{"skill": name})
		if r := tools.Precheck(context.Background(), protocol.ToolUse{Name: "Skill", Input: raw}); (r != nil) != refused {
			t.Errorf("check of %s: %+v", name, r)
		}
	}
	if r = call(t, tools, "Skill", toolInput{"skill": "nosuch"}); r.Content.Text != "<tool_use_error>Unknown skill: nosuch</tool_use_error>" {
		t.Errorf("result %+v", r)
	}
}

func TestTaskStopNeedsTasks(t *testing.T) {
	tools := newTools(t, Options{})
	for name, input := range map[string]toolInput{
		"TaskStop": {"task_id": "x"}, "Bash": {"command": "true", "run_in_background": true},
	} {
		raw, _ := protocol.Marshal(input)
		if r, err := tools.Execute(context.Background(), protocol.ToolUse{Name: name, Input: raw}); err != nil || !r.IsError {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
