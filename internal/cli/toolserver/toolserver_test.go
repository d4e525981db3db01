package toolserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/toolserver"
)

// TestServe compares the answer to each request with that of 2.1.330. Each request uses a separate
// connection in the same directory, because calls of one connection run in parallel.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, _ := json.Marshal(filepath.Join(dir, "f"))
	file := string(path)
	for _, tt := range []struct{ name, method, params, want string }{
		{"initialize", "initialize", `{"protocolVersion":"2025-06-18"}`, `"result":{"capabilities":{"tools":{"listChanged":true}},"protocolVersion":"2025-06-18","serverInfo":{"name":"claude/tengu","version":"2.1.330"}}`},
		{"another revision", "initialize", `{"protocolVersion":"2099-01-01"}`, `"result":{"capabilities":{"tools":{"listChanged":true}},"protocolVersion":"2025-11-25","serverInfo":{"name":"claude/tengu","version":"2.1.330"}}`},
		{"params", "initialize", `[]`, `"error":{"code":-32602,"message":"Invalid params"}`},
		{"ping", "ping", `{}`, `"result":{}`},
		{"unknown method", "prompts/list", `{}`, `"error":{"code":-32601,"message":"Method not found"}`},
		{"unknown tool", "tools/call", `{"name":"Nope"}`, `"error":{"code":-32603,"message":"Tool Nope not found"}`},
		{"tool that init does not list", "tools/call", `{"name":"Glob","arguments":{"pattern":"*"}}`, `"error":{"code":-32603,"message":"Tool Glob not found"}`},
		{"Write", "tools/call", `{"name":"Write","arguments":{"file_path":` + file + `,"content":"one\n"}}`, `"result":{"content":[{"type":"text","text":"{\"type\":\"create\",\"filePath\":FILE,\"content\":\"one\\n\",\"structuredPatch\":[],\"originalFile\":null,\"userModified\":false}"}]}`},
		{"Bash without permission checks", "tools/call", `{"name":"Bash","arguments":{"command":"printf two >> f; cat f"}}`, `"result":{"content":[{"type":"text","text":"{\"stdout\":\"one\\ntwo\",\"stderr\":\"\",\"interrupted\":false,\"isImage\":false,\"noOutputExpected\":false}"}]}`},
		{"failed command", "tools/call", `{"name":"Bash","arguments":{"command":"exit 3"}}`, `"result":{"content":[{"type":"text","text":"Exit code 3"}],"isError":true}`},
		{"refused call", "tools/call", `{"name":"Read","arguments":{"file_path":"nope"}}`, `"result":{"content":[{"type":"text","text":"File does not exist. Note: your current working directory is DIR."}],"isError":true}`},
		{"wrong input", "tools/call", `{"name":"Bash","arguments":{}}`, `"result":{"content":[{"type":"text","text":"Tool Bash arguments failed schema validation: [\n  {\n    \"expected\": \"string\",\n    \"code\": \"invalid_type\",\n    \"path\": [\n      \"command\"\n    ],\n    \"message\": \"Invalid input: expected string, received undefined\"\n  }\n]"}],"isError":true}`},
	} {
		answer := serve(t, dir, tt.method, tt.params)
		escaped := strings.ReplaceAll(strings.ReplaceAll(answer, strings.ReplaceAll(file, `"`, `\"`), "FILE"), dir, "DIR")
		if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,`+tt.want+"}\n", escaped); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestServedTools checks that the server offers the tools that init always lists in the environment
// of the profile, except ToolSearch, which is not needed because every tool is listed.
func TestServedTools(t *testing.T) {
	t.Parallel()
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(serve(t, t.TempDir(), "tools/list", "{}")), &answer); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range answer.Result.Tools {
		names = append(names, tool.Name)
	}
	want := "Agent Bash CronCreate CronDelete CronList Edit EnterWorktree ExitWorktree ListAgents Monitor NotebookEdit Read ReportFindings ScheduleWakeup SendMessage Skill TaskStop WebFetch WebSearch Workflow Write"
	if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func serve(t *testing.T, dir, method, params string) string {
	t.Helper()
	var out bytes.Buffer
	err := toolserver.Serve(t.Context(), toolserver.Options{
		CWD: dir, Environ: []string{"PATH=/usr/bin:/bin"}, Profile: claudecode.ProfileForExactVersion("2.1.330"),
		In: strings.NewReader(fmt.Sprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":%q,\"params\":%s}\n", method, params)), Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
