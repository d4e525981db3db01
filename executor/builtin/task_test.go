package builtin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

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
	r := call(t, tools, "EnterPlanMode", tooltest.Input{})
	if m.mode != protocol.ModePlan || len(r.EventsBefore) != 1 {
		t.Fatalf("mode %s, %+v", m.mode, r)
	}
	if r = call(t, tools, "EnterPlanMode", tooltest.Input{}); len(r.EventsBefore) != 0 {
		t.Errorf("a mode that is in force is announced: %+v", r)
	}
	if r := tools.Precheck(t.Context(), exit); r != nil {
		t.Errorf("while planning: %+v", r)
	}
	r = call(t, tools, "ExitPlanMode", tooltest.Input{"plan": "1. think"})
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
	if r = call(t, tools, "ExitPlanMode", tooltest.Input{}); len(r.EventsBefore) != 0 || !strings.HasSuffix(r.Content.Text, "## Approved Plan:\n1. think") {
		t.Errorf("mode %s, %+v", m.mode, r)
	}
	tools = newTools(t, Options{Modes: &fakeModes{err: errors.New("no")}})
	if r = call(t, tools, "EnterPlanMode", tooltest.Input{}); len(r.EventsBefore) != 0 {
		t.Errorf("a mode that was not set is announced: %+v", r)
	}
}

// fakeSkills has the skill "known", and one that is reserved.
type fakeSkills struct{}

func (fakeSkills) ActivateSkill(_ context.Context, name, args string) (Skill, error) {
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
	r := call(t, tools, "Skill", tooltest.Input{"skill": "known", "args": "it"})
	if r.IsError || r.Content.Text != "Launching skill: known" || len(r.EventsAfter) != 1 {
		t.Fatalf("result %+v", r)
	}
	if u := r.EventsAfter[0].(*protocol.UserEvent); u.Message.Content.Plain() != "do it" || !u.IsSynthetic {
		t.Errorf("after %+v", u)
	}
	if text, err := protocol.Marshal(r.Output); err != nil || string(text) != `{"success":true,"commandName":"known","allowedTools":["Write"],"model":"claude-haiku-5-5"}` {
		t.Errorf("output %s, %v", text, err)
	}
	for name, refused := range map[string]bool{"reserved": true, "known": false} {
		raw, _ := protocol.Marshal(tooltest.Input{"skill": name})
		if r := tools.Precheck(context.Background(), protocol.ToolUse{Name: "Skill", Input: raw}); (r != nil) != refused {
			t.Errorf("check of %s: %+v", name, r)
		}
	}
	if r = call(t, tools, "Skill", tooltest.Input{"skill": "nosuch"}); r.Content.Text != "<tool_use_error>Unknown skill: nosuch</tool_use_error>" {
		t.Errorf("result %+v", r)
	}
}

func TestTaskStopNeedsTasks(t *testing.T) {
	tools := newTools(t, Options{})
	for name, input := range map[string]tooltest.Input{
		"TaskStop": {"task_id": "x"}, "Bash": {"command": "true", "run_in_background": true},
	} {
		raw, _ := protocol.Marshal(input)
		if r, err := tools.Execute(context.Background(), protocol.ToolUse{Name: name, Input: raw}); err != nil || !r.IsError {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The older names of TaskStop are still accepted.
func TestTaskStopAlias(t *testing.T) {
	r := newTools(t, Options{}).Precheck(t.Context(), protocol.ToolUse{Name: "KillShell", Input: []byte("{}")})
	if r == nil || r.Content.Text != "<tool_use_error>Missing required parameter: task_id</tool_use_error>" {
		t.Errorf("KillShell without a task: %+v", r)
	}
}
