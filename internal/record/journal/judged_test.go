package journal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
)

// judgedLines are the kinds of lines that expectations are about, with the text that explains each.
const judgedLines = `
{"type":"prompt","uuid":"U","prompt":"hi  there"} => hi there
{"type":"match","rule":"responses[0]","file":"s.toml","line":1,"prompt":"hi"} => responses[0]  s.toml:1
{"type":"match","rule":"","prompt":"hi"} => no rule
{"type":"tool","tool":"Bash","tool_use_id":"t","input":{"command":"ls"},"result":"a","ms":1.5} => Bash {"command":"ls"} -> a (1.5 ms)
{"type":"start","argv":["claude","-p"],"cwd":"/w","ppid":9,"parent":"sh"} => claude -p  (started by sh)
{"type":"start","argv":["claude"],"cwd":"/w","ppid":9} => claude
{"type":"screen","state":"permission","kind":"Bash","answer":"yes","option":"Yes"} => permission/Bash yes: Yes
{"type":"oauth","request":"token","grant":"refresh_token","client":"c","granted":["a","b"],"result":"ok"} => refresh_token a b -> ok
{"type":"oauth","request":"access","client":"c","result":"invalid_token"} => access -> invalid_token
{"type":"mcp_call","server":"db","tool":"mcp__db__get","original_name":"get","tool_use_id":"m","input":{},"error":"gone","duration_ms":4} => db/get gone (4 ms)
{"type":"mcp_notification","server":"db","level":"warning","text":"slow"} => db logs warning: slow
{"type":"mcp_notification","server":"db","original_name":"get","progress":1,"total":2,"text":"half"} => db/get at 1 of 2: half
{"type":"telemetry","name":"claude_code.token.usage","count":3} => claude_code.token.usage ×3
{"type":"exit","code":7,"signal":""} => 7
{"type":"expectation","text":"one","met":true,"file":"s.toml","line":2} => met: one  s.toml:2
{"type":"expectation","text":"two","met":false} => unmet: two
{"type":"request","session":"A","attempt":1,"path":"/v1/messages","model":"m","prompt":"asked","rule":"responses[1]","file":"s.toml","line":4,"status":529,"error":"over","ms":1} => prompt "asked" -> responses[1] 529 (1.0 ms)  s.toml:4  over
{"type":"request","session":"A","attempt":2,"path":"/v1/messages","model":"m","prompt":"asked","rule":"responses[1]","status":200,"ms":1} => prompt "asked", attempt 2 -> responses[1] 200 (1.0 ms)
{"type":"request","session":"A","attempt":1,"path":"/v1/messages","model":"m","status":200,"ms":1,"added":["more"],"calls":[{"tool":"Read","tool_use_id":"r","input":{},"result":"x"},{"tool":"mcp__db__get","tool_use_id":"s","input":{},"result":"y"}]} => Read gave "x", mcp__db__get gave "y" -> no rule 200 (1.0 ms)
{"type":"request","session":"A","attempt":1,"path":"/v1/messages","model":"m","status":200,"ms":1,"calls":[{"tool":"mcp__db__get","tool_use_id":"u","input":{},"result":"Error: No such tool available: mcp__db__get","is_error":true},{"tool":"mcp__db__get","tool_use_id":"v","input":{},"result":"Claude requested permissions to use mcp__db__get, but you haven't granted it yet.","is_error":true},{"tool":"mcp__db__get","tool_use_id":"w","input":{},"result":"Claude requested permissions to use it"}]} => mcp__db__get gave "Error: No such tool available: mcp__db__get", mcp__db__get gave "Claude requested permissions to use mcp__db__get, but you haven't granted it yet.", mcp__db__get gave "Claude requested permissions to use it" -> no rule 200 (1.0 ms)
{"type":"request","attempt":1,"path":"/v1/messages","model":"m","prompt":"asked","rule":"responses[1]","status":200,"findings":["aborted: the client disconnected"],"ms":1} => prompt "asked" -> responses[1] 200 (1.0 ms)  aborted: the client disconnected
{"type":"request","attempt":2,"path":"/v1/messages","model":"m","prompt":"asked","rule":"responses[1]","status":200,"ms":1} => prompt "asked", attempt 2 -> responses[1] 200 (1.0 ms)
{"type":"request","attempt":2,"path":"/v1/messages","model":"m","prompt":"asked","rule":"responses[1]","status":200,"ms":1} => prompt "asked", attempt 2 -> responses[1] 200 (1.0 ms)
`

// Every kind of line is explained in one line, and the expectations about it count it.
func TestJudged(t *testing.T) {
	var entries []journal.Entry
	for text := range strings.Lines(judgedLines) {
		line, want, found := strings.Cut(strings.TrimSpace(text), " => ")
		if !found {
			continue
		}
		for e, err := range journal.Read(strings.NewReader(`{"time":"2026-01-02T03:04:05Z","pid":1,"session_id":"S",` + line[1:] + "\n")) {
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Summary(); got != want {
				t.Errorf("%s\nis explained as %s\nwant            %s", line, got, want)
			}
			entries = append(entries, e)
		}
	}
	var scenario strings.Builder
	for _, x := range []string{
		`prompt = { type = "contains", text = "asked" }`, `prompt = { type = "exact", text = "more" }`, `tool = "Bash"`, `tool = "Read"`, `tool = "mcp__db__get"`,
		`mcp = { server = "db", tool = "get" }`, `mcp = { server = "db", log = "*" }`, `mcp = { server = "db", progress = "*" }`, `request = { model = "m" }`,
		`oauth = { request = "token" }`, `otel = "claude_code.token.usage"`, `exit = 7`, `rule = 1`, `rule = 4`, `screen = "permission/Bash"`,
	} {
		scenario.WriteString("[[expect]]\n" + x + "\ntimes = 9\n")
	}
	x, err := scenarios.Parse("s.toml", []byte(strings.Repeat("[[responses]]\npattern = { type = \"any\" }\nresponse = \"x\"\n", 2)+scenario.String()), scenarios.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range journal.Summarize(entries).CheckExpectations(x) {
		got = append(got, r.Actual)
	}
	if diff := cmp.Diff([]string{
		"there were 3", "there was one", "there was one", "there was one", "there were 4", "there were 3", "there was one", "there was one", "there were 5",
		"there was one", "there were 3", "there was one", "there was one", "there was one", "there was one",
	}, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}
