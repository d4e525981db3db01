package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

func TestSchema(t *testing.T) {
	const want = `{"type":"object","properties":{"file_path":{"description":"Path of the file","type":"string"},` +
		`"content":{"description":"The whole new content","type":"string"}},"required":["file_path","content"],"additionalProperties":false}`
	if got := string(Tool{Name: "Write"}.Definition().InputSchema); got != want {
		t.Errorf("schema of Write:\n%s\nwant\n%s", got, want)
	}
}

// Invalid inputs are refused with the texts of the real CLI (spec: cli-observed 7).
func TestInputValidation(t *testing.T) {
	const missing = "The required parameter `file_path` is missing"
	tests := []struct {
		name, tool, input, want string
		list                    string // what hosts see, spaces left out
	}{
		{
			"missing", "Read", `{}`, "Read failed due to the following issue:\n" + missing,
			`[{"expected":"string","code":"invalid_type","path":["file_path"],"message":"Invalid input: expected string, received undefined"}]`,
		},
		{"no input", "Read", ``, "Read failed due to the following issue:\n" + missing, ""},
		{
			"unexpected", "Read", `{"file_path":"a","x":1}`, "Read failed due to the following issue:\nAn unexpected parameter `x` was provided",
			`[{"code":"unrecognized_keys","keys":["x"],"path":[],"message":"Unrecognized key: \"x\""}]`,
		},
		{
			"wrong type", "Read", `{"file_path":1}`, "Read failed due to the following issue:\nThe parameter `file_path` type is expected as `string` but provided as `number`",
			`[{"expected":"string","code":"invalid_type","path":["file_path"],"message":"Invalid input: expected string, received number"}]`,
		},
		{
			"fraction", "Read", `{"file_path":"a","offset":1.5}`, "Read failed due to the following issue:\nThe parameter `offset` type is expected as `int` but provided as `number`",
			`[{"expected":"int","format":"safeint","code":"invalid_type","path":["offset"],"message":"Invalid input: expected int, received number"}]`,
		},
		{"null", "Read", `{"file_path":null}`, "Read failed due to the following issue:\nThe parameter `file_path` type is expected as `string` but provided as `null`", ""},
		{
			"several", "Read", `{"b":1,"a":2}`, "Read failed due to the following issues:\n" + missing +
				"\nAn unexpected parameter `b` was provided\nAn unexpected parameter `a` was provided",
			`[{"expected":"string","code":"invalid_type","path":["file_path"],"message":"Invalid input: expected string, received undefined"},` +
				`{"code":"unrecognized_keys","keys":["b","a"],"path":[],"message":"Unrecognized keys: \"b\", \"a\""}]`,
		},
		{"array", "Read", `[]`, "Read failed due to the following issue:\nThe input is expected as `object` but provided as `array`", ""},
		{
			"nested", "TodoWrite", `{"todos":[{"content":"a","status":"pending"}]}`,
			"TodoWrite failed due to the following issue:\nThe required parameter `todos[0].activeForm` is missing",
			`[{"expected":"string","code":"invalid_type","path":["todos",0,"activeForm"],"message":"Invalid input: expected string, received undefined"}]`,
		},
		{
			"enum", "NotebookEdit", `{"notebook_path":"x","new_source":"","cell_type":"zz"}`, "",
			`[{"code":"invalid_value","values":["code","markdown"],"path":["cell_type"],"message":"Invalid option: expected one of \"code\"|\"markdown\""}]`,
		},
		{
			"address", "WebFetch", `{"url":"nope","prompt":"p"}`, "",
			`[{"code":"invalid_format","format":"url","path":["url"],"message":"Invalid URL"}]`,
		},
		{
			"below zero", "WebFetch", `{"url":"https://a.b","prompt":"p","offset":-1}`, "",
			`[{"origin":"number","code":"too_small","minimum":0,"inclusive":true,"path":["offset"],"message":"Too small: expected number to be >=0"}]`,
		},
		{
			"short text", "WebSearch", `{"query":"a"}`, "",
			`[{"origin":"string","code":"too_small","minimum":2,"inclusive":true,"path":["query"],"message":"Too small: expected string to have >=2 characters"}]`,
		},
		{
			"too many", "ReportFindings", `{"findings":[` + strings.Repeat(`{"file":"a","summary":"s","failure_scenario":"f"},`, 32) +
				`{"file":"a","summary":"s","failure_scenario":"f"}]}`, "",
			`[{"origin":"array","code":"too_big","maximum":32,"inclusive":true,"path":["findings"],"message":"Too big: expected array to have <=32 items"}]`,
		},
		{
			"others beside", "ReportFindings", `{"findings":[{"file":"a","summary":"s","line":1.5,"category":"` + strings.Repeat("x", 41) + `"}]}`,
			"ReportFindings failed due to the following issues:\nThe required parameter `findings[0].failure_scenario` is missing\n" +
				"The parameter `findings[0].line` type is expected as `int` but provided as `number`\n" +
				"The parameter `findings[0].category` is invalid: Too big: expected string to have <=40 characters", "",
		},
		{
			"message of its own", "Monitor", `{"command":"x","description":"d","timeout_ms":99999999}`, "",
			`[{"origin":"number","code":"too_big","maximum":3600000,"inclusive":true,"path":["timeout_ms"],"message":"timeout_ms must be ≤ 3600000"}]`,
		},
		{
			"too few", "AskUserQuestion", `{"questions":[]}`, "",
			`[{"origin":"array","code":"too_small","minimum":1,"inclusive":true,"path":["questions"],"message":"Too small: expected array to have >=1 items"}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Tool{Name: tt.tool}.Validate(protocol.ToolUse{Name: tt.tool, Input: json.RawMessage(tt.input)})
			if r == nil || !r.IsError {
				t.Fatalf("result %+v, want a refusal", r)
			}
			list, ok := strings.CutPrefix(r.Output.(string), "InputValidationError: ")
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(list)); !ok || err != nil {
				t.Fatalf("hosts see %s", r.Output)
			}
			if tt.list != "" {
				if diff := cmp.Diff(tt.list, compact.String()); diff != "" {
					t.Errorf("list (-want +got):\n%s", diff)
				}
			}
			if tt.want == "" { // the model sees the list as well
				tt.want = list
			}
			if diff := cmp.Diff("<tool_use_error>InputValidationError: "+tt.want+"</tool_use_error>", r.Content.Plain()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	const question = `{"question":"q","header":"h","multiSelect":false,"options":[%s]}`
	const option = `{"label":"%s","description":"d"}`
	a, b := fmt.Sprintf(option, "a"), fmt.Sprintf(option, "b")
	for _, tt := range []struct {
		tool        Tool
		input, want string // part of the refusal; "" means that the input is valid
	}{
		{Tool{Name: "Read"}, `{"file_path":"a"}`, ""},
		{Tool{Name: "Read"}, `{"file_path"`, "InputValidationError: Read failed: the input is not valid JSON"},
		{Tool{Name: "CronList"}, " \n", ""},
		{Tool{Name: "Bash"}, `{"command":"x","run_in_background":true}`, ""},
		{
			Tool{Name: "Bash", UnavailableKeys: []string{"run_in_background"}},
			`{"command":"x","run_in_background":true}`, "An unexpected parameter `run_in_background` was provided",
		},
		{Tool{Name: "NotSimulated"}, `{"any":1}`, ""},
		{Tool{Name: "NotSimulated"}, `1`, "The input is expected as `object` but provided as `number`"},
		{Tool{Name: "AskUserQuestion"}, `{"questions":[` + fmt.Sprintf(question, a+","+b) + `]}`, ""},
		{Tool{Name: "AskUserQuestion"}, `{"questions":[` + fmt.Sprintf(question, a) + `]}`, "This call included a question with fewer than 2 options"},
		{Tool{Name: "AskUserQuestion"}, `{"questions":[]}`, "InputValidationError: ["},
	} {
		r := tt.tool.Validate(protocol.ToolUse{Name: tt.tool.Name, Input: json.RawMessage(tt.input)})
		switch {
		case (r != nil) != (tt.want != ""):
			t.Errorf("%s %s: %+v, want %q", tt.tool.Name, tt.input, r, tt.want)
		case r != nil && (!r.IsError || !strings.Contains(r.Content.Text, tt.want)):
			t.Errorf("%s %s: %+v, want the error %q", tt.tool.Name, tt.input, r, tt.want)
		}
	}
}

// At most 20 issues are reported, to the model as well as to hosts.
func TestManyIssues(t *testing.T) {
	var in []string
	for n := range 21 {
		in = append(in, fmt.Sprintf(`{"content":%d,"status":"pending","activeForm":"a"}`, n))
	}
	r := Tool{Name: "TodoWrite"}.Validate(protocol.ToolUse{Name: "TodoWrite", Input: json.RawMessage(`{"todos":[` + strings.Join(in, ",") + `]}`)})
	list, _ := strings.CutPrefix(r.Output.(string), "InputValidationError: ")
	var issues []any
	if err := json.Unmarshal([]byte(list), &issues); err != nil || len(issues) != 20 {
		t.Errorf("%d issues for hosts (%v)", len(issues), err)
	}
	if n := strings.Count(r.Content.Text, "The parameter `todos["); n != 20 {
		t.Errorf("%d issues for the model", n)
	}
}

func TestCustomIssue(t *testing.T) {
	r := InvalidInputResult("Bash", []Issue{CustomIssue("too odd", "command")})
	var got []map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(r.Output.(string), "InputValidationError: ")), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]any{{"code": "custom", "path": []any{"command"}, "message": "too odd"}}, got); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
}

// A tool without an entry in definitions.json takes any object.
func TestDefinition(t *testing.T) {
	d := Tool{Name: "NotSimulated"}.Definition()
	if d.Name != "NotSimulated" || d.ReadOnly || string(d.InputSchema) != `{"type":"object","properties":{},"additionalProperties":true}` {
		t.Errorf("definition %+v", d)
	}
	if d := (Tool{Name: "Read"}).Definition(); !d.ReadOnly {
		t.Error("Read does not only read")
	}
	task, agent := Tool{Name: "Task"}.Definition(), Tool{Name: "Agent"}.Definition()
	if task.Description != agent.Description || task.Description == d.Description {
		t.Errorf("Task is described as %q, not like Agent", task.Description)
	}
}

func TestReduceNestedObjects(t *testing.T) {
	got, _ := Tool{RenameAliases: NormalizeValuesToSchema("TodoWrite")}.ResolveAliases([]byte(`{"x":1,"todos":[{"content":"a","status":"pending","activeForm":"b","more":2}]}`))
	if diff := cmp.Diff(`{"x":1,"todos":[{"content":"a","status":"pending","activeForm":"b"}]}`, string(got)); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	if got, _ := (Tool{RenameAliases: NormalizeValuesToSchema("TodoWrite")}).ResolveAliases([]byte(`{"x": 1}`)); string(got) != `{"x": 1}` {
		t.Errorf("an input without known keys became %s", got)
	}
}
