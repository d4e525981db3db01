package builtin

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/tests/tooltest"
)

func TestTodoWrite(t *testing.T) {
	const done = "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. " +
		"Please proceed with the current tasks if applicable"
	tools := newTools(t, Options{})
	r := call(t, tools, "TodoWrite", `{"todos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`)
	tooltest.WantText(t, r.ToolResult, done)
	tooltest.WantOutput(t, r.ToolResult, `{"oldTodos":[],"newTodos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`)
	r = call(t, tools, "TodoWrite", `{"todos":[{"content":"a","status":"completed","activeForm":"doing a"}]}`)
	tooltest.WantOutput(t, r.ToolResult, `{"oldTodos":[{"content":"a","status":"pending","activeForm":"doing a"}],"newTodos":[{"content":"a","status":"completed","activeForm":"doing a"}]}`)
	tooltest.WantOutput(t, call(t, tools, "TodoWrite", `{"todos":[]}`).ToolResult, `{"oldTodos":[],"newTodos":[]}`)
}

// Texts observed with 2.1.329, including tasks that depend on themselves and on unknown tasks.
func TestTasks(t *testing.T) {
	steps := []struct{ tool, input, text, output string }{
		{"TaskList", `{}`, "No tasks found", `{"tasks":[]}`},
		{"TaskCreate", `{"subject":"one","description":"first"}`, "Task #1 created successfully: one", `{"task":{"id":"1","subject":"one","description":"first"}}`},
		{"TaskCreate", `{"subject":"two","description":"","metadata":{"k":1}}`, "Task #2 created successfully: two", `{"task":{"id":"2","subject":"two","description":""}}`},
		{
			"TaskUpdate", `{"taskId":"2","addBlockedBy":["1","2","9"],"owner":"me"}`, "Updated task #2 owner, blockedBy",
			`{"success":true,"taskId":"2","updatedFields":["owner","blockedBy"]}`,
		},
		{
			"TaskList", `{}`, "#1 [pending] one\n#2 [pending] two (me) [blocked by #1, #2]",
			`{"tasks":[{"id":"1","subject":"one","status":"pending","blockedBy":[]},{"id":"2","subject":"two","status":"pending","owner":"me","blockedBy":["1","2"]}]}`,
		},
		{
			"TaskGet", `{"taskId":"1"}`, "Task #1: one\nStatus: pending\nDescription: first\nBlocks: #2",
			`{"task":{"id":"1","subject":"one","description":"first","status":"pending","blocks":["2"],"blockedBy":[]}}`,
		},
		{
			"TaskUpdate", `{"taskId":"1","status":"completed","subject":"one"}`, "Updated task #1 status",
			`{"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"pending","to":"completed"}}`,
		},
		{
			"TaskList", `{}`, "#1 [completed] one\n#2 [pending] two (me) [blocked by #2]",
			`{"tasks":[{"id":"1","subject":"one","status":"completed","blockedBy":[]},{"id":"2","subject":"two","status":"pending","owner":"me","blockedBy":["2"]}]}`,
		},
		{
			"TaskUpdate", `{"taskId":"1","addBlocks":["2","9"],"addBlockedBy":[]}`, "Updated task #1 blocks",
			`{"success":true,"taskId":"1","updatedFields":["blocks"]}`,
		},
		{
			"TaskUpdate", `{"taskId":"1","status":"deleted","subject":"x"}`, "Updated task #1 deleted",
			`{"success":true,"taskId":"1","updatedFields":["deleted"],"statusChange":{"from":"completed","to":"deleted"}}`,
		},
		{"TaskGet", `{"taskId":"1"}`, "Task not found", `{"task":null}`},
		{"TaskUpdate", `{"taskId":"1"}`, "Task not found", `{"success":false,"taskId":"1","updatedFields":[],"error":"Task not found"}`},
		{"TaskCreate", `{"subject":"three","description":"d"}`, "Task #3 created successfully: three", `{"task":{"id":"3","subject":"three","description":"d"}}`},
	}
	tools := newTools(t, Options{})
	for _, s := range steps {
		r := call(t, tools, s.tool, s.input)
		tooltest.WantText(t, r.ToolResult, s.text)
		tooltest.WantOutput(t, r.ToolResult, s.output)
	}
}

// The answers in the call have precedence over those of the scenario. A question without an answer
// stays unanswered (spec: cli-contract 6.3; also scenario-compat 1.6).
func TestAskUserQuestion(t *testing.T) {
	const questions = `[{"question":"Colour?","header":"C","options":[{"label":"red","description":""},{"label":"blue","description":""}],"multiSelect":false},` +
		`{"question":"Also?","header":"A","options":[{"label":"x","description":""},{"label":"y","description":""}],"multiSelect":true}]`
	const (
		chosen  = "Your questions have been answered: %s. You can now continue with these answers in mind."
		own     = "The user answered: %s. Read the answers carefully — they may request clarification, changes, or that you not proceed — and follow what they actually say."
		silence = "The user did not answer the questions."
	)
	tests := []struct {
		name, answers string
		scenario      map[string]string
		format, text  string
		output        string // the answers, and the text after them
	}{
		{"nobody", "", nil, silence, "", `{}`},
		{"empty", `{"Colour?":""}`, nil, silence, "", `{"Colour?":""}`},
		{"another question", `{"Z":"1"}`, nil, silence, "", `{"Z":"1"}`},
		{"scenario", "", map[string]string{"Also?": "y"}, chosen, `"Also?"="y"`, `{"Also?":"y"}`},
		{"call", `{"Also?":"x, y","Colour?":"blue"}`, map[string]string{"Colour?": "z"}, chosen, `"Colour?"="blue", "Also?"="x, y"`, `{"Also?":"x, y","Colour?":"blue"}`},
		{"call answers one", `{"Colour?":"blue"}`, map[string]string{"Also?": "x"}, chosen, `"Colour?"="blue"`, `{"Colour?":"blue"}`},
		{"call answers more", `{"Colour?":"blue","Z":"1"}`, nil, chosen, `"Colour?"="blue"`, `{"Colour?":"blue","Z":"1"}`},
		{"own words", `{"Colour?":"Blue"}`, nil, own, `"Colour?"="Blue"`, `{"Colour?":"Blue"}`},
		{"own words beside an option", `{"Also?":"x, z"}`, nil, own, `"Also?"="x, z"`, `{"Also?":"x, z"}`},
		{"list of options", `{"Also?":["x","y"]}`, nil, chosen, `"Also?"="x,y"`, `{"Also?":["x","y"]}`},
		{"list with own words", `{"Also?":["x","z"]}`, nil, own, `"Also?"="x,z"`, `{"Also?":["x","z"]}`},
		{"list for one option", `{"Colour?":["red","blue"]}`, nil, own, `"Colour?"="red,blue"`, `{"Colour?":["red","blue"]}`},
		{
			"preview", `{"Colour?":"red"},"annotations":{"Colour?":{"preview":"p"}}`, nil, chosen, "\"Colour?\"=\"red\" selected preview:\np",
			`{"Colour?":"red"},"annotations":{"Colour?":{"preview":"p"}}`,
		},
		{
			"notes", `{"Colour?":"red"},"annotations":{"Colour?":{"notes":"n"}}`, nil, own, `"Colour?"="red" notes: n`,
			`{"Colour?":"red"},"annotations":{"Colour?":{"notes":"n"}}`,
		},
		{"no notes", `{"Colour?":"red"},"annotations":{}`, nil, chosen, `"Colour?"="red"`, `{"Colour?":"red"},"annotations":{}`},
		{"response", `{"Colour?":"red"},"response":"hm"`, nil, "The user responded: %s", "hm", `{"Colour?":"red"},"response":"hm"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			input := `{"questions":` + questions
			if tt.answers != "" {
				input += `,"answers":` + tt.answers
			}
			r := call(t, newTools(t, Options{Answers: tt.scenario}), "AskUserQuestion", input+"}")
			want := tt.format
			if tt.text != "" {
				want = fmt.Sprintf(tt.format, tt.text)
			}
			tooltest.WantText(t, r.ToolResult, want)
			tooltest.WantOutput(t, r.ToolResult, `{"questions":`+questions+`,"answers":`+tt.output+`}`)
		})
	}
}

func TestPlanMode(t *testing.T) {
	mode := fakeModes{mode: protocol.ModeDefault}
	file := filepath.Join(t.TempDir(), "plan.md")
	tools := newTools(t, Options{
		Modes: &mode,
		Paths: fakePaths{plan: file},
	})
	leave := func(input string) protocol.ToolUse {
		return protocol.ToolUse{Name: "ExitPlanMode", Input: []byte(input)}
	}
	if r := tools.Precheck(t.Context(), leave(`{}`)); r == nil || !strings.Contains(r.Content.Text, "You are not in plan mode.") {
		t.Errorf("outside of plan mode: %+v", r)
	}
	r := call(t, tools, "EnterPlanMode", `{}`)
	tooltest.WantOutput(t, r.ToolResult, `{"message":"`+r.Content.Text+`"}`)
	if r := tools.Precheck(t.Context(), leave(`{}`)); r != nil {
		t.Errorf("in plan mode: %+v", r)
	}
	r = call(t, tools, "ExitPlanMode", `{}`)
	tooltest.WantText(t, r.ToolResult, "User has approved exiting plan mode. You can now proceed.")
	tooltest.WantOutput(t, r.ToolResult, `{"plan":null,"isAgent":false,"filePath":"`+file+`"}`)
	// A plan that the model writes in its call is neither shown nor used. A plan that a host has
	// put there is both.
	own := leave(`{"other":1,"plan":"do it"}`)
	if seen := tools.ObservedInput(own); string(seen) != `{"other":1}` {
		t.Errorf("a host sees %s", seen)
	}
	own.ObservedInput = tools.ObservedInput(own)
	if r, err := tools.Execute(t.Context(), own); err != nil || r.Content.Text != "User has approved exiting plan mode. You can now proceed." {
		t.Errorf("%+v, %v", r, err)
	}
	const approved = "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n" +
		"Your plan has been saved to: %s\nYou can refer back to it if needed during implementation.\n\n## Approved Plan%s:\ndo it"
	r = call(t, tools, "ExitPlanMode", `{"plan":"do it"}`)
	tooltest.WantText(t, r.ToolResult, fmt.Sprintf(approved, file, " (edited by user)"))
	tooltest.WantOutput(t, r.ToolResult, `{"plan":"do it","isAgent":false,"filePath":"`+file+`","planWasEdited":true}`)
	// Now the file exists: the call shows its plan.
	whole := leave(`{"plan":"mine"}`)
	whole.Input = tools.PrepareInput(whole)
	if want := `{"plan":"do it","planFilePath":"` + file + `"}`; string(whole.Input) != want || tools.ObservedInput(whole) != nil {
		t.Errorf("shown as %s, seen as %s, want %s", whole.Input, tools.ObservedInput(whole), want)
	}
	r = call(t, tools, "ExitPlanMode", string(whole.Input))
	tooltest.WantText(t, r.ToolResult, fmt.Sprintf(approved, file, ""))
	tooltest.WantOutput(t, r.ToolResult, `{"plan":"do it","isAgent":false,"filePath":"`+file+`"}`)
}

// A repository that the session creates has no known state. The result of the next command reports
// this, and later results report nothing.
func TestBashInNewRepository(t *testing.T) {
	dir := t.TempDir()
	tools := newTools(t, Options{CWD: dir, Modes: &fakeModes{mode: protocol.ModeBypass}})
	for i, command := range []string{"git init -q .", "echo 1 > a.txt", "echo 2 > a.txt"} {
		r := call(t, tools, "Bash", tooltest.Input{"command": command})
		raw, err := protocol.Marshal(r.Output)
		if err != nil || strings.Contains(string(raw), `"bashEditDiff":{"files":[],"moreFiles":0,"unavailable":true}`) != (i == 1) || i != 1 && strings.Contains(string(raw), "bashEditDiff") {
			t.Errorf("%s: %s (%v)", command, raw, err)
		}
	}
}
