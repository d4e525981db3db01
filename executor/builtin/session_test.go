package builtin

import "testing"

func TestTodoWrite(t *testing.T) {
	const done = "Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. " +
		"Please proceed with the current tasks if applicable"
	tools := newTools(t, Options{})
	r := call(t, tools, "TodoWrite", `{"todos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`)
	wantText(t, r, false, done)
	wantOutput(t, r, `{"oldTodos":[],"newTodos":[{"content":"a","status":"pending","activeForm":"doing a"}]}`)
	r = call(t, tools, "TodoWrite", `{"todos":[{"content":"a","status":"completed","activeForm":"doing a"}]}`)
	wantOutput(t, r, `{"oldTodos":[{"content":"a","status":"pending","activeForm":"doing a"}],"newTodos":[{"content":"a","status":"completed","activeForm":"doing a"}]}`)
	wantOutput(t, call(t, tools, "TodoWrite", `{"todos":[]}`), `{"oldTodos":[],"newTodos":[]}`)
}

func TestTasks(t *testing.T) {
	steps := []struct{ tool, input, text, output string }{
		{"TaskList", `{}`, "No tasks found", `{"tasks":[]}`},
		{"TaskCreate", `{"subject":"one","description":"first"}`, "Task #1 created successfully: one", `{"task":{"id":"1","subject":"one","description":"first"}}`},
		{"TaskCreate", `{"subject":"two","description":"","metadata":{"k":1}}`, "Task #2 created successfully: two", `{"task":{"id":"2","subject":"two","description":""}}`},
		{
			"TaskUpdate", `{"taskId":"2","addBlockedBy":["1","2","9"],"owner":"me"}`, "Updated task #2 owner, blocks",
			`{"success":true,"taskId":"2","updatedFields":["owner","blocks"]}`,
		},
		{
			"TaskList", `{}`, "#1 [pending] one\n#2 [pending] two (me) [blocked by #1]",
			`{"tasks":[{"id":"1","subject":"one","status":"pending","blockedBy":[]},{"id":"2","subject":"two","status":"pending","owner":"me","blockedBy":["1"]}]}`,
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
			"TaskList", `{}`, "#1 [completed] one\n#2 [pending] two (me)",
			`{"tasks":[{"id":"1","subject":"one","status":"completed","blockedBy":[]},{"id":"2","subject":"two","status":"pending","owner":"me","blockedBy":[]}]}`,
		},
		{
			"TaskUpdate", `{"taskId":"1","status":"deleted"}`, "Updated task #1 status",
			`{"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{"from":"completed","to":"deleted"}}`,
		},
		{"TaskGet", `{"taskId":"1"}`, "Task not found", `{"task":null}`},
		{"TaskUpdate", `{"taskId":"1"}`, "Task not found", `{"success":false,"taskId":"1","updatedFields":[],"error":"Task not found"}`},
		{"TaskCreate", `{"subject":"three","description":"d"}`, "Task #3 created successfully: three", `{"task":{"id":"3","subject":"three","description":"d"}}`},
	}
	tools := newTools(t, Options{})
	for _, s := range steps {
		r := call(t, tools, s.tool, s.input)
		wantText(t, r, false, s.text)
		wantOutput(t, r, s.output)
	}
}

// cli-contract 6.3 and scenario-compat 1.6: the call's answers, else the
// scenario's, else the first option.
func TestAskUserQuestion(t *testing.T) {
	const questions = `[{"question":"Colour?","header":"C","options":[{"label":"red","description":""},{"label":"blue","description":""}],"multiSelect":false},` +
		`{"question":"Also?","header":"A","options":[{"label":"x","description":""},{"label":"y","description":""}],"multiSelect":true}]`
	tests := []struct {
		name, answers string
		scenario      map[string]string
		text, output  string
	}{
		{"first option", "", nil, `"Colour?"="red", "Also?"="x"`, `{"Colour?":"red","Also?":"x"}`},
		{"scenario", "", map[string]string{"Also?": "z"}, `"Colour?"="red", "Also?"="z"`, `{"Colour?":"red","Also?":"z"}`},
		{"call", `{"Also?":["x","y"],"Colour?":"blue"}`, map[string]string{"Colour?": "z"}, `"Colour?"="blue", "Also?"="x, y"`, `{"Colour?":"blue","Also?":"x, y"}`},
		{"call answers one", `{"Colour?":"blue"}`, nil, `"Colour?"="blue"`, `{"Colour?":"blue"}`},
		{"call answers more", `{"Colour?":"blue","Z":"1","B":"2"}`, nil, `"Colour?"="blue", "B"="2", "Z"="1"`, `{"Colour?":"blue","B":"2","Z":"1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			input := `{"questions":` + questions
			if tt.answers != "" {
				input += `,"answers":` + tt.answers
			}
			r := call(t, newTools(t, Options{Answers: tt.scenario}), "AskUserQuestion", input+"}")
			wantText(t, r, false, "Your questions have been answered: "+tt.text+". You can now continue with these answers in mind.")
			wantOutput(t, r, `{"questions":`+questions+`,"answers":`+tt.output+`}`)
		})
	}
}

func TestPlanMode(t *testing.T) {
	tools := newTools(t, Options{})
	r := call(t, tools, "ExitPlanMode", `{}`)
	wantOutput(t, r, `{"plan":null,"isAgent":false}`)
	r = call(t, tools, "ExitPlanMode", `{"plan":"do it"}`)
	wantOutput(t, r, `{"plan":"do it","isAgent":false}`)
	r = call(t, tools, "EnterPlanMode", `{}`)
	wantOutput(t, r, `{"message":"`+r.Content.Text+`"}`)
}
