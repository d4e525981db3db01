package transcript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// TestSlug checks the names of project folders (contract 8.2). The hashes follow the rule of the
// SDK: h*31+c over the UTF-16 units, wrapped to 32 bits, absolute value in base 36.
func TestSlug(t *testing.T) {
	long := "/" + strings.Repeat("abcdefgh_/", 30)
	tests := map[string]string{
		"/work/my.project_1":           "-work-my-project-1",
		"/ünï/x":                       "--n--x",
		"/😀":                           "---",
		"/" + strings.Repeat("a", 199): "-" + strings.Repeat("a", 199),
		long:                           strings.NewReplacer("_", "-", "/", "-").Replace(long)[:200] + "-xxtjjt",
	}
	for path, want := range tests {
		if got := transcript.Slug(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// The name of the project folder comes from the path without symbolic links.
func TestSymbolicLinkToProject(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(filepath.Dir(w.cwd), "link")
	if err := os.Symlink(w.cwd, link); err != nil {
		t.Fatal(err)
	}
	s := w.mustOpen(t, transcript.Options{CWD: link})
	if got := filepath.Base(filepath.Dir(s.Path())); got != transcript.Slug(w.cwd) {
		t.Errorf("folder %s, want %s", got, transcript.Slug(w.cwd))
	}
	if s.ToolResultsDir() != filepath.Join(filepath.Dir(s.Path()), s.ID(), "tool-results") {
		t.Errorf("tool results in %s", s.ToolResultsDir())
	}
}

// Write errors do not end the session, and only the first one is reported (observed).
func TestWriteFailure(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.state, nil, 0o600); err != nil { // a file where a folder should be
		t.Fatal(err)
	}
	s := w.mustOpen(t, transcript.Options{})
	prompt := &protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}}
	if err := s.Record(prompt); err == nil || !strings.HasPrefix(err.Error(), "saving the session: ") {
		t.Errorf("first failure: %v", err)
	}
	if err := s.Record(prompt); err != nil {
		t.Errorf("second failure: %v", err)
	}
	if err := s.SetScenarioState([]byte(`{}`)); err != nil || string(s.ScenarioState()) != `{}` {
		t.Errorf("scenario state %s, %v", s.ScenarioState(), err)
	}
}

// Two runs that continue one session concurrently do not mix their lines.
func TestConcurrentAppend(t *testing.T) {
	w := newWorld(t)
	first := w.mustOpen(t, transcript.Options{})
	w.turn(t, first, "one")
	const runs, prompts = 6, 40
	worlds, sessions := make([]testEnvironment, runs), make([]*transcript.Transcript, runs)
	for i := range runs {
		worlds[i] = *w
		worlds[i].n = 1000 * (i + 1)
		sessions[i] = worlds[i].mustOpen(t, transcript.Options{Resume: first.ID()})
	}
	var wg sync.WaitGroup
	for i, s := range sessions {
		own := &worlds[i]
		wg.Go(func() {
			for range prompts {
				text := strings.Repeat("long ", 4000)
				if err := s.Record(&protocol.PromptAccepted{UUID: own.id(), Content: protocol.Content{Text: text}, Timestamp: "t"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := readLines(t, first.Path()) // fails on a mixed line
	got := 0
	for _, k := range lineKinds(lines) {
		if k == "user" {
			got++
		}
	}
	if got != runs*prompts+1 {
		t.Errorf("%d prompts, want %d", got, runs*prompts+1)
	}
}

// Appending to a transcript with an incomplete last line starts a new line; lines that are not JSON are skipped.
func TestDamagedTranscript(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	ids := w.turn(t, s, "one")
	f, err := os.OpenFile(s.Path(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("garbage\n[1]\nnull\n{\"type\":5,\"uuid\":{}}\n{\"type\":\"user\",\"uuid\":\"cut"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := w.mustOpen(t, transcript.Options{Resume: s.ID()})
	next := w.turn(t, r, "two")
	data, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(data, []byte("\"uuid\":\"cut\n"))
	var l line
	if err := json.Unmarshal(bytes.SplitN(after, []byte("\n"), 2)[0], &l); err != nil || l["type"] != "queue-operation" {
		t.Errorf("line after the damage: %v, %v", l, err)
	}
	history := w.mustOpen(t, transcript.Options{Resume: s.ID()}).ResumedHistory()
	var got []string
	for _, m := range history {
		got = append(got, m.UUID)
	}
	if diff := cmp.Diff(append(ids, next...), got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// Row 38: a mirror receives every written line with its file.
func TestOnLine(t *testing.T) {
	w := newWorld(t)
	source := w.mustOpen(t, transcript.Options{})
	w.turn(t, source, "one")
	seen := map[string][]byte{}
	s := w.mustOpen(t, transcript.Options{Resume: source.ID(), Fork: true, OnLine: func(path string, line []byte) {
		seen[path] = append(append(seen[path], line...), '\n')
	}})
	w.turn(t, s, "two")
	data, err := os.ReadFile(s.Path())
	if err != nil || !bytes.Equal(data, seen[s.Path()]) || len(seen) != 1 {
		t.Errorf("mirrored %d files, equal %v, %v", len(seen), bytes.Equal(data, seen[s.Path()]), err)
	}
}

// Row 39: a sub-agent has its own transcript and a .meta.json.
func TestSubagent(t *testing.T) {
	w := newWorld(t)
	var mirrored []string
	s := w.mustOpen(t, transcript.Options{OnLine: func(path string, line []byte) {
		if strings.Contains(path, "subagents") {
			var l struct{ Type string }
			if err := json.Unmarshal(line, &l); err != nil {
				t.Error(err)
			}
			mirrored = append(mirrored, l.Type)
		}
	}})
	w.turn(t, s, "one")
	main := len(readLines(t, s.Path()))
	parent := "toolu_9"
	prompt, reply := w.id(), w.id()
	for _, ev := range []protocol.Event{
		&protocol.UserEvent{
			UUID: prompt, ParentToolUseID: &parent, AgentID: "a1", SubagentType: "Explore", TaskDescription: "look",
			Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: "task"}},
		},
		&protocol.AssistantEvent{
			UUID: reply, ParentToolUseID: &parent, AgentID: "a1", SubagentType: "Explore", TaskDescription: "look",
			Message: protocol.AssistantMessage{ID: "m", Type: "message", Role: "assistant", Model: "x", Content: []protocol.Block{protocol.Text("done")}},
		},
		&protocol.SystemEvent{Subtype: "task_notification", Fields: []protocol.Field{{Key: "task_id", Value: "a1"}, {Key: "status", Value: "completed"}}},
	} {
		if err := s.Record(ev); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(filepath.Dir(s.Path()), s.ID(), "subagents")
	lines := readLines(t, filepath.Join(dir, "agent-a1.jsonl"))
	want := []string{
		"user", "attachment:environment", "attachment:model", "attachment:session_context", "attachment:date",
		"attachment:remote_session_change", "attachment:prompt_snapshot", "api-request-shape", "api-request-blob", "api-request", "assistant",
		"attachment:prompt_snapshot",
	}
	if diff := cmp.Diff(want, lineKinds(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if said := messageLines(lines); said[0]["uuid"] != prompt || said[0]["parentUuid"] != nil || said[1]["uuid"] != reply || said[1]["agentId"] != "a1" {
		t.Errorf("messages %v", said)
	}
	data, err := os.ReadFile(filepath.Join(dir, "agent-a1.meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta line
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	wantMeta := line{"agentType": "Explore", "isBuiltIn": true, "description": "look", "toolUseId": parent, "spawnDepth": 1.0, "requestShape": "foreground", "requestNonInteractive": true, "finished": true}
	if diff := cmp.Diff(wantMeta, meta); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
	attached := append(slices.Repeat([]string{"attachment"}, 6), "api-request-shape", "api-request-blob", "api-request")
	if diff := cmp.Diff(slices.Concat([]string{"agent_metadata", "user"}, attached, []string{"assistant", "attachment", "agent_metadata"}), mirrored); diff != "" {
		t.Errorf("mirrored (-want +got):\n%s", diff)
	}
	if got := len(readLines(t, s.Path())); got != main {
		t.Errorf("the main transcript grew from %d to %d lines", main, got)
	}
}

// cost-state counts the work of the session's tools.
func TestCostState(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	patch := map[string]any{"structuredPatch": []any{map[string]any{"lines": []string{" a", "-b", "+c", "+d"}}}}
	created := map[string]any{"type": "create", "content": "a\nb\n", "structuredPatch": []any{}}
	for _, ev := range []protocol.Event{
		&protocol.ToolExecuted{Result: protocol.ToolResult{Output: patch}, Duration: 30 * time.Millisecond},
		&protocol.ToolExecuted{Result: protocol.ToolResult{Output: created}, Duration: 10 * time.Millisecond},
		&protocol.ToolExecuted{Result: protocol.ToolResult{Output: patch, IsError: true}},
	} {
		if err := s.Record(ev); err != nil {
			t.Fatal(err)
		}
	}
	w.turn(t, s, "one")
	closeAll(t, s)
	again := w.mustOpen(t, transcript.Options{Resume: s.ID()})
	w.turn(t, again, "two")
	closeAll(t, again)
	lines := readLines(t, s.Path())
	got := lines[len(lines)-1]
	want := line{
		"totalToolDuration": 40.0, "totalLinesAdded": 5.0, "totalLinesRemoved": 1.0, "totalDuration": 40.0,
		"totalAPIDuration": 20.0, "totalCostUSD": 0.5, "startTime": float64(w.now.UnixMilli()), "hasUnknownModelCost": false,
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s = %v, want %v", key, got[key], value)
		}
	}
}

// A RawTranscriptOnlyLine is written as one line, with its JSON unchanged.
func TestCustomLine(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	for _, text := range []string{"{\n \"type\": \"tag\",\n \"tag\": \"x\"}", "no JSON"} {
		if err := s.Record(&protocol.RawTranscriptOnlyLine{Line: json.RawMessage(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(s.Path()); err != nil || string(data) != `{"type":"tag","tag":"x"}`+"\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func FuzzReadTranscript(f *testing.F) {
	const id = "11111111-1111-4111-8111-111111111111"
	f.Add([]byte(`{"type":"user","uuid":"a","parentUuid":null,"sessionId":"` + id + `","message":{"role":"user","content":"x"}}` + "\n"))
	f.Add([]byte(`{"type":"user","uuid":"a","parentUuid":"b"}` + "\n" + `{"type":"assistant","uuid":"b","parentUuid":"a","message":{"content":[{"type":"tool_use"}]}}`))
	f.Add([]byte(`{"type":"cost-state","modelUsage":{"m":{"costUSD":1}}}` + "\n\x00\n{"))
	f.Add([]byte(`{"type":"user","uuid":"a"}` + "\n" + `{"type":"tools-used","tools":[1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "projects", transcript.Slug(dir), id+".jsonl")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		w := &testEnvironment{state: dir, cwd: dir}
		for _, fork := range []bool{false, true} {
			s, err := w.open(transcript.Options{Resume: id, Fork: fork})
			if err != nil {
				continue
			}
			if len(s.ResumedHistory()) == 0 {
				t.Error("a conversation without messages")
			}
			if err := s.Record(&protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "x"}}); err != nil {
				t.Fatal(err)
			}
			again, err := w.open(transcript.Options{Resume: s.ID()})
			if err != nil {
				t.Fatal(err)
			}
			if h := again.ResumedHistory(); h[len(h)-1].Content.Text != "x" {
				t.Errorf("last message %+v", h[len(h)-1])
			}
		}
	})
}

// appendLine adds a line as another program would.
func appendLine(t *testing.T, path, line string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
