package journal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/simulator/protocol"
)

func fixedNow() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestLines(t *testing.T) {
	var out strings.Builder
	j := journal.New(journal.Options{W: &out, Now: fixedNow, PID: 42, SessionID: "S", Environ: []string{"MY_TOKEN=hunter22hunter", "USER=somebody"}})
	j.Write(journal.Run{Argv: []string{"claude", "-p", "hunter22hunter"}, CWD: "/w", Env: map[string]string{"A": "b"}, Settings: []string{}, Model: "m", PermissionMode: "default"})
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.PromptAccepted{UUID: "U", Content: protocol.Content{Text: "hi somebody"}}))
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.AttachmentAdded{Attachment: map[string]any{"type": "mcp_resource", "uri": "a:b", "content": "hunter22hunter"}, Role: "user"}))
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.RuleMatchOutcome{Rule: "responses[2]", File: "s.toml", Line: 7}))
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.InitEvent{}))
	j.Write(journal.MCPCall{Source: "mcp_client", Server: "s", Tool: "mcp__s__t", RawTool: "t", Error: "no hunter22hunter"})
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.ToolExecuted{
		Use: protocol.ToolUse{ID: "T", Name: "mcp__s__t", Input: json.RawMessage(`{"api_key":"abc","n":1,"h":"Bearer abcdefghij"}`)},
		Result: protocol.ToolResult{
			Content: protocol.Content{Text: "ok sk-ant-12345678"}, Server: "s",
			Decision: &protocol.PermissionDecision{Decision: "accept", Source: "config", ReasonType: "rule"},
		},
		Breakpoints: []protocol.BreakpointDecision{
			{Phase: "before", Action: "modify", Breakpoint: "s.toml:9", Input: json.RawMessage(`{"token":"abc"}`)},
			{Phase: "after", Action: "fail", Pause: "P"},
		},
		Duration: 1500 * time.Microsecond,
	}))
	text := "done"
	j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.ResultEvent{Subtype: "success", Result: &text, NumTurns: 2, PermissionDenials: []protocol.PermissionDenial{}}))
	const head = `{"time":"2026-01-02T03:04:05Z","pid":42,"session_id":"S",`
	want := head + `"type":"run","argv":["claude","-p","[redacted]"],"cwd":"/w","env":{"A":"b"},"settings":[],"model":"m","permission_mode":"default"}
` + head + `"type":"prompt","uuid":"U","prompt":"hi somebody"}
` + head + `"type":"attachment","attachment":{"content":"[redacted]","type":"mcp_resource","uri":"a:b"}}
` + head + `"type":"match","rule":"responses[2]","file":"s.toml","line":7}
` + head + `"type":"mcp_call","source":"mcp_client","server":"s","tool":"mcp__s__t","original_name":"t","error":"no [redacted]","duration_ms":0}
` + head + `"type":"permission","tool":"mcp__s__t","tool_use_id":"T","decision":"accept","source":"config","reason_type":"rule"}
` + head + `"type":"breakpoint","tool":"mcp__s__t","tool_use_id":"T","phase":"before","action":"modify","breakpoint":"s.toml:9","input":{"token":"[redacted]"}}
` + head + `"type":"breakpoint","tool":"mcp__s__t","tool_use_id":"T","phase":"after","action":"fail","pause_id":"P"}
` + head + `"type":"tool","tool":"mcp__s__t","tool_use_id":"T","server":"s","input":{"api_key":"[redacted]","n":1,"h":"Bearer [redacted]"},"result":"ok [redacted]","is_error":false,"executed":true,"ms":1.5}
` + head + `"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0,"permission_denials":[]}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if err := j.Err(); err != nil {
		t.Error(err)
	}
}

// Several processes may share a file, because every line is written with one append.
func TestSharedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	const writers, lines = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Error(err)
				return
			}
			defer file.Close()
			j := journal.New(journal.Options{W: file, Now: fixedNow, PID: i})
			for n := range lines {
				j.WriteLinesAndKeepError(journal.LinesOfEvent(&protocol.RuleMatchOutcome{Rule: strings.Repeat(fmt.Sprint(n), 3000)}))
			}
			if err := j.Err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(got) != writers*lines {
		t.Errorf("%d lines, want %d", len(got), writers*lines)
	}
	for i, line := range got {
		if !json.Valid([]byte(line)) {
			t.Fatalf("line %d is torn", i+1)
		}
	}
}
