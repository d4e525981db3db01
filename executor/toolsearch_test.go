package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestToolSearch checks the search for deferred tools (spec: cli-observed 6) and its
// tool_use_result (cli-shapes tool_use_result_by_tool).
func TestToolSearch(t *testing.T) {
	catalogue := []protocol.Tool{
		{Name: "Bash"},
		{Name: "Task", Description: "Starts an agent"},
		{Name: "TaskStop"},
		{Name: "NotebookEdit", Description: "Edits a notebook"},
		{Name: "WebFetch"},
		{Name: "WebSearch"},
		{Name: "mcp__db__run_query", Server: "db", RawName: "run_query", Description: "Runs SQL"},
		{Name: "mcp__db__list_tables", Server: "db", RawName: "list_tables", Description: "Tables for a query"},
		{Name: "mcp__mail__send", Server: "mail", RawName: "send", Description: "Sends mail"},
	}
	search := executor.ToolSearch{Catalogue: func(context.Context) ([]protocol.Tool, error) { return catalogue, nil }}
	tests := []struct {
		input string
		want  []string
	}{
		{`{"query":"select:mcp__mail__send,mcp__db__run_query"}`, []string{"mcp__mail__send", "mcp__db__run_query"}},
		{`{"query":"select: Bash , nope,bash"}`, []string{"Bash"}},
		{`{"query":"select:"}`, []string{}},
		{`{"query":"query"}`, []string{"mcp__db__run_query", "mcp__db__list_tables"}},
		{`{"query":"query","max_results":1}`, []string{"mcp__db__run_query"}},
		{`{"query":"+db tables"}`, []string{"mcp__db__list_tables", "mcp__db__run_query"}},
		{`{"query":"notebook"}`, []string{"NotebookEdit"}},
		{`{"query":"bash"}`, []string{"Bash"}},
		{`{"query":"task"}`, []string{"TaskStop"}}, // the name of the tool that init lists as Task is Agent
		{`{"query":"agent"}`, []string{"Agent"}},
		{`{"query":"select:Task,KillShell,webfetch"}`, []string{"Agent", "TaskStop"}},
		{`{"query":"SELECT:run_query"}`, []string{"mcp__db__run_query"}},
		{`{"query":"mcp__db__l"}`, []string{"mcp__db__list_tables"}},
		{`{"query":"web"}`, []string{"WebSearch", "WebFetch"}}, // the search hint of WebSearch has the word
		{`{"query":"web","max_results":-1}`, []string{"WebSearch"}},
		{`{"query":"web","max_results":0}`, []string{}},
		{`{"query":"+page web"}`, []string{"WebFetch"}}, // only the description of WebFetch has the word
		{`{"query":"run sql"}`, []string{"mcp__db__run_query"}},
		{`{"query":"+zzz mail"}`, []string{}},
		{`{"query":""}`, []string{}},
	}
	for _, tt := range tests {
		got, err := search.Execute(t.Context(), protocol.ToolUse{Name: "ToolSearch", Input: json.RawMessage(tt.input)})
		if err != nil {
			t.Fatal(err)
		}
		var in struct{ Query string }
		if err := json.Unmarshal([]byte(tt.input), &in); err != nil {
			t.Fatal(err)
		}
		want := executor.ToolSearchOutput{Matches: tt.want, Query: in.Query, Total: 7}
		if diff := cmp.Diff(any(want), got.Output); diff != "" || got.IsError {
			t.Errorf("%s: is_error %v, tool_use_result (-want +got):\n%s", tt.input, got.IsError, diff)
		}
		content, err := protocol.Marshal(got.Content)
		wantContent := `"No matching deferred tools found"`
		if len(tt.want) > 0 {
			wantContent = ""
			for _, name := range tt.want {
				wantContent += `,{"type":"tool_reference","tool_name":"` + name + `"}`
			}
			wantContent = "[" + wantContent[1:] + "]"
		}
		if diff := cmp.Diff(wantContent, string(content)); diff != "" || err != nil {
			t.Errorf("%s: %v, content (-want +got):\n%s", tt.input, err, diff)
		}
	}
}

func TestToolSearchRefuses(t *testing.T) {
	broken := errors.New("broken")
	search := executor.ToolSearch{Catalogue: func(context.Context) ([]protocol.Tool, error) { return nil, broken }}
	for input, want := range map[string]string{
		`{}`:                             "<tool_use_error>InputValidationError: ToolSearch failed due to the following issue:\nThe required parameter `query` is missing</tool_use_error>",
		`{"query":1}`:                    "<tool_use_error>InputValidationError: ToolSearch failed due to the following issue:\nThe parameter `query` type is expected as `string` but provided as `number`</tool_use_error>",
		`[]`:                             "<tool_use_error>InputValidationError: ToolSearch failed due to the following issue:\nThe input is expected as `object` but provided as `array`</tool_use_error>",
		`{"query":"","max_results":"x"}`: "<tool_use_error>InputValidationError: ToolSearch failed due to the following issue:\nThe parameter `max_results` type is expected as `number` but provided as `string`</tool_use_error>",
	} {
		got, err := search.Execute(t.Context(), protocol.ToolUse{Name: "ToolSearch", Input: json.RawMessage(input)})
		if diff := cmp.Diff(want, got.Content.Plain()); diff != "" || err != nil || !got.IsError {
			t.Errorf("%s: %v, content (-want +got):\n%s", input, err, diff)
		}
	}
	if _, err := search.Execute(t.Context(), protocol.ToolUse{Name: "ToolSearch", Input: json.RawMessage(`{"query":"x"}`)}); !errors.Is(err, broken) {
		t.Errorf("err = %v, want the catalogue's", err)
	}
	if _, err := search.Execute(t.Context(), protocol.ToolUse{Name: "Read"}); !errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("err = %v, want ErrUnknownTool", err)
	}
}
