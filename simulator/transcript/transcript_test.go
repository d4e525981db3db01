package transcript_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// testEnvironment has a state directory, a working directory and a source of ids.
type testEnvironment struct {
	state, cwd string
	n          int
	now        time.Time
}

func newWorld(t *testing.T) *testEnvironment {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &testEnvironment{state: filepath.Join(dir, "state"), cwd: filepath.Join(dir, "my.project"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if err := os.Mkdir(w.cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *testEnvironment) id() string {
	w.n++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", w.n)
}

func (w *testEnvironment) NewID() string  { return w.id() }
func (w *testEnvironment) Now() time.Time { return w.now }

func (w *testEnvironment) open(o transcript.Options) (*transcript.Transcript, error) {
	o.StateDir = w.state
	if o.CWD == "" {
		o.CWD = w.cwd
	}
	o.Clock = w
	return transcript.Open(o)
}

func (w *testEnvironment) mustOpen(t *testing.T, o transcript.Options) *transcript.Transcript {
	t.Helper()
	s, err := w.open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// turn records a prompt, the blocks of the reply and the result of the turn. It returns the uuids
// of the messages.
func (w *testEnvironment) turn(t *testing.T, s *transcript.Transcript, prompt string, blocks ...protocol.Block) []string {
	t.Helper()
	const at = "2026-01-02T03:04:05.000Z"
	ids := []string{w.id()}
	events := []protocol.Event{
		&protocol.PromptQueued{Content: protocol.Content{Text: prompt}, Timestamp: at},
		&protocol.PromptAccepted{UUID: ids[0], PromptID: "p-" + prompt, Content: protocol.Content{Text: prompt}, Timestamp: at, PermissionMode: "default"},
		&protocol.InitEvent{Type: "system", Subtype: "init", Model: "claude-opus-5-5"},
	}
	stop := "end_turn"
	for _, b := range append(blocks, protocol.Text("answer to "+prompt)) {
		var calls []string
		if use, is := b.(protocol.ToolUse); is {
			calls = []string{use.Name}
		}
		if result, is := b.(protocol.ToolResultBlock); is {
			source := ids[len(ids)-1]
			ids = append(ids, w.id())
			events = append(events, &protocol.UserEvent{
				Type: "user", UUID: ids[len(ids)-1], Timestamp: at, SourceUUID: source, ToolUseResult: map[string]any{"stdout": "x"},
				Message:        protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{result}}},
				ToolResultMeta: []protocol.ToolResultMeta{{ID: result.ToolUseID, PermissionDecision: &protocol.PermissionDecision{Decision: "accept", Source: "config", ReasonType: "rule"}}},
			})
			continue
		}
		ids = append(ids, w.id())
		events = append(events, &protocol.AssistantEvent{
			Type: "assistant", UUID: ids[len(ids)-1], Timestamp: at, RequestID: "req_1",
			Message: protocol.AssistantMessage{ID: "msg_1", Type: "message", Role: "assistant", Model: "claude-opus-5-5", Content: []protocol.Block{b}, Usage: protocol.Usage{OutputTokens: 1}},
			Final:   &protocol.CompletedMessageInfo{StopReason: stop, Calls: calls, Usage: protocol.Usage{InputTokens: 3, OutputTokens: 7}},
		})
	}
	events = append(events, &protocol.ResultEvent{
		Subtype: "success", TotalCostUSD: 0.5, DurationMS: 20, DurationAPIMS: 10,
		ModelUsage: map[string]protocol.ModelUsage{"claude-opus-5-5": {InputTokens: 3, OutputTokens: 7, CostUSD: 0.5, CostBasis: "list"}},
	})
	for _, ev := range events {
		if err := s.Record(ev); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// closeAll ends the sessions as processes do.
func closeAll(t *testing.T, sessions ...*transcript.Transcript) {
	t.Helper()
	for _, s := range sessions {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

type line = map[string]any

func readLines(t *testing.T, path string) []line {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []line
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("line %q: %v", lines.Text(), err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, lines.Bytes()); err != nil || compact.Len() != len(lines.Bytes()) {
			t.Errorf("line is not compact: %s", lines.Text())
		}
		out = append(out, l)
	}
	return out
}

// lineKinds abbreviates lines: type, or type and subtype or attachment.
func lineKinds(lines []line) []string {
	var out []string
	for _, l := range lines {
		kind, _ := l["type"].(string)
		if sub, ok := l["subtype"].(string); ok {
			kind += "/" + sub
		}
		if a, ok := l["attachment"].(line); ok {
			kind += ":" + a["type"].(string)
		}
		if op, ok := l["operation"].(string); ok {
			kind += ":" + op
		}
		out = append(out, kind)
	}
	return out
}

func messageLines(lines []line) []line {
	return slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l["type"] != "user" && l["type"] != "assistant" })
}

func call(id string) protocol.ToolUse {
	return protocol.ToolUse{Type: "tool_use", ID: id, Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}
}

func toolResult(id string) protocol.ToolResultBlock {
	return protocol.ToolResultBlock{ToolUseID: id, Type: "tool_result", Content: protocol.Content{Text: "x"}}
}

// lowEffortContext is the environment description for a model with low effort.
type lowEffortContext transcript.SessionContext

func (t lowEffortContext) SessionContext(string) transcript.SessionContext {
	return transcript.SessionContext(t)
}

func (t lowEffortContext) CurrentModel(string) transcript.CurrentModel {
	return transcript.CurrentModel{Name: t.ModelName, Effort: "low", PerTurnEffort: true}
}

func (lowEffortContext) GitStatus(string) string { return "" }

func (lowEffortContext) RequestContext(string) transcript.RequestContext {
	return transcript.RequestContext{}
}
func (lowEffortContext) AgentWorktreeOrChangedDir(string) string { return "" }

// movedContext returns the directory to which a command has changed.
type movedContext struct {
	lowEffortContext
	dir, agentDir string
}

func (e *movedContext) RequestContext(string) transcript.RequestContext {
	return transcript.RequestContext{}
}

func (e *movedContext) AgentWorktreeOrChangedDir(id string) string {
	if id == "" {
		return e.dir
	}
	return e.agentDir
}

// TestTranscript checks the path, the file mode, and the order, parents and uuids of the lines (row
// 35). A prompt that is a string stays a string.
func TestTranscript(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{
		Machine: transcript.SessionEnvironment{GitBranch: "main"},
		Context: lowEffortContext{
			Model: "claude-opus-5-5", ModelName: "Opus 5.5", Deferred: []string{"WebFetch"},
			Agents: []transcript.ListedItem{{Name: "Explore", Text: "- Explore: looks", BuiltIn: true}, {Name: "mine", Text: "- mine: works"}},
			Skills: []transcript.ListedItem{{Name: "loop", Text: "- loop"}, {Name: "run", Text: "- run"}},
		},
	})
	if want := filepath.Join(w.state, "projects", transcript.Slug(w.cwd), s.ID()+".jsonl"); s.Path() != want {
		t.Errorf("path %s, want %s", s.Path(), want)
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("something is written before the first record")
	}
	ids := w.turn(t, s, "one", call("toolu_1"), toolResult("toolu_1"))
	ids = append(ids, w.turn(t, s, "two")...)
	closeAll(t, s, s)

	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	lines := readLines(t, s.Path())
	want := []string{
		"queue-operation:enqueue", "queue-operation:dequeue", "user", "attachment:environment", "attachment:model",
		"attachment:deferred_tools_delta", "attachment:agent_listing_delta", "attachment:skill_listing", "atis-latch",
		"attachment:session_context", "attachment:date", "attachment:remote_session_change",
		"attachment:prompt_snapshot", "api-request-shape", "api-request-blob", "api-request",
		"tools-used", "assistant", "last-prompt", "atis-latch", "user", "assistant", "attachment:prompt_snapshot",
		"queue-operation:enqueue", "queue-operation:dequeue", "user", "assistant", "last-prompt", "atis-latch", "cost-state",
	}
	if diff := cmp.Diff(want, lineKinds(lines)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	var parent any
	for i, l := range lines {
		if l["uuid"] != nil && l["parentUuid"] != parent {
			t.Errorf("line %d: %v after %v, want it after %v", i, l["uuid"], l["parentUuid"], parent)
		}
		if l["uuid"] != nil {
			parent = l["uuid"]
		}
	}
	for i, l := range messageLines(lines) {
		if l["uuid"] != ids[i] {
			t.Errorf("message %d: uuid %v, want %s", i, l["uuid"], ids[i])
		}
		if l["sessionId"] != s.ID() || l["cwd"] != w.cwd || l["gitBranch"] != "main" || l["version"] != "2.1.330" || l["isSidechain"] != false {
			t.Errorf("message %d: envelope %v", i, l)
		}
	}
	prompt, position := messageLines(lines)[0], line{"promptIndex": 0.0, "turnIndex": 2.0}
	if diff := cmp.Diff(position, messageLines(lines)[4]["turnPosition"]); diff != "" {
		t.Errorf("position of the second prompt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(line{"role": "user", "content": "one"}, prompt["message"]); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
	first := messageLines(lines)[1]["message"].(line)
	if first["stop_reason"] != "end_turn" || first["usage"].(line)["output_tokens"] != 7.0 {
		t.Errorf("assistant line without the final values: %v", first)
	}
	if l := messageLines(lines)[1]; l["effort"] != "low" || l["requestedModel"] != "claude-opus-5-5" {
		t.Errorf("assistant line: %v", l)
	}
	result := messageLines(lines)[2]
	if result["sourceToolAssistantUUID"] != ids[1] || !cmp.Equal(result["toolUseResult"], any(line{"stdout": "x"})) ||
		!cmp.Equal(result["permissionDecision"], any(line{"decision": "accept", "source": "config", "reasonType": "rule"})) {
		t.Errorf("tool result line: %v", result)
	}
}

// Row 35: every line has exactly the keys that the real CLI writes (testdata/transcript_lines.json).
func TestLineShapes(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	w.turn(t, s, "one", protocol.ThinkingBlock{Type: "thinking", Thinking: "hm", Signature: "s"}, call("toolu_1"), toolResult("toolu_1"))
	for _, ev := range []protocol.Event{
		&protocol.FailedAPIRequestBeforeRetry{Status: 529, Message: "Overloaded", RetryInMS: 500, Attempt: 1, MaxRetries: 10},
		&protocol.FailedAPIRequestBeforeRetry{Message: "Connection refused (ECONNREFUSED)", RetryInMS: 500, Attempt: 1, MaxRetries: 10},
		&protocol.AssistantEvent{
			UUID: w.id(), Error: "server_error", IsAPIErrorMessage: true, APIErrorStatus: 529, APIErrorType: "overloaded_error",
			Message: protocol.AssistantMessage{ID: "m", Type: "message", Role: "assistant", Model: "<synthetic>", Content: []protocol.Block{protocol.Text("API Error")}},
		},
		&protocol.SystemEvent{Subtype: "session_title_changed", Fields: []protocol.Field{{Key: "title", Value: "my title"}}},
		&protocol.SystemEvent{Subtype: "informational", Fields: []protocol.Field{{Key: "content", Value: "c"}, {Key: "level", Value: "warning"}, {Key: "prevent_continuation", Value: true}}},
		&protocol.PromptAccepted{UUID: w.id(), Content: protocol.Content{Text: "go on"}, WrittenByCLI: true},
		&protocol.UserEvent{UUID: w.id(), IsSynthetic: true, Message: protocol.UserContent{Role: "user", Content: protocol.Content{Blocks: []protocol.Block{protocol.Text("feedback")}}}},
		&protocol.ResultEvent{Subtype: "error_max_turns", NumTurns: 3, Errors: []string{"Reached maximum number of turns (2)"}},
	} {
		if err := s.Record(ev); err != nil {
			t.Fatal(err)
		}
	}
	closeAll(t, s)
	again := w.mustOpen(t, transcript.Options{Resume: s.ID()})
	w.turn(t, again, "two")
	closeAll(t, again)

	data, err := os.ReadFile("testdata/transcript_lines.json")
	if err != nil {
		t.Fatal(err)
	}
	var shapes map[string]struct{ Shape line }
	if err := json.Unmarshal(data, &shapes); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	lines := readLines(t, s.Path())
	for i, kind := range lineKinds(lines) {
		name := strings.TrimSuffix(strings.TrimSuffix(kind, ":enqueue"), ":dequeue")
		shape, known := shapes[name]
		if !known {
			t.Errorf("the real CLI writes no %s line", name)
			continue
		}
		seen[name] = true
		compareShape(t, name, shape.Shape, lines[i])
	}
	for _, name := range []string{"mode", "custom-title", "agent-name", "system/api_error", "system/informational", "attachment:max_turns_reached"} {
		if !seen[name] {
			t.Errorf("no %s line", name)
		}
	}
}

// lastLine returns the uuid of the last line that later lines may follow.
func lastLine(t *testing.T, path string) any {
	t.Helper()
	for _, l := range slices.Backward(readLines(t, path)) {
		if l["uuid"] != nil && l["parentUuid"] != nil {
			return l["uuid"]
		}
	}
	t.Fatal("no line has a parent")
	return nil
}

// compareShape compares the keys of a line with a shape. In the shape, `key?` is optional and "*" matches any key.
func compareShape(t *testing.T, at string, shape, got line) {
	t.Helper()
	if _, free := shape["*"]; free {
		return
	}
	for key, sub := range shape {
		name := strings.TrimSuffix(key, "?")
		value, found := got[name]
		if !found {
			if name == key {
				t.Errorf("%s: %s is missing", at, key)
			}
			continue
		}
		sub, isObject := sub.(line)
		value2, isValue := value.(line)
		if isObject && isValue && sub["oneOf"] == nil {
			compareShape(t, at+"."+name, sub, value2)
		}
	}
	for key := range got {
		if shape[key] == nil && shape[key+"?"] == nil {
			t.Errorf("%s: key %s is unknown", at, key)
		}
	}
}

// A session can be resumed by id, even from another directory, by path and by title. It keeps its
// id, its file, its chain of parents and its costs (rows 36 and 40).
func TestResume(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	w.turn(t, s, "one")
	if err := s.Record(&protocol.SystemEvent{Subtype: "session_title_changed", Fields: []protocol.Field{{Key: "title", Value: "My Title"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetScenarioState([]byte(`{"n":1}`)); err != nil {
		t.Fatal(err)
	}
	closeAll(t, s)
	appendLine(t, s.Path(), `{"type":"tag","tag":"t","sessionId":"`+s.ID()+`","uuid":"6f0b2f9e-0000-4000-8000-00000000000d"}`) // as the SDKs do
	last := lastLine(t, s.Path())
	runs := map[string]transcript.Options{
		"id":                {Resume: s.ID()},
		"upper case":        {Resume: strings.ToUpper(s.ID())},
		"another directory": {Resume: s.ID(), CWD: t.TempDir()},
		"path":              {Resume: s.Path()},
		"title":             {Resume: "my title"},
		"continue":          {Continue: true},
	}
	for _, name := range slices.Sorted(maps.Keys(runs)) { // the run in another directory is the first
		o := runs[name]
		t.Run(name, func(t *testing.T) {
			r := w.mustOpen(t, o)
			if r.ID() != s.ID() || r.Path() != s.Path() || !r.Resumed() {
				t.Fatalf("id %s, path %s, resumed %v", r.ID(), r.Path(), r.Resumed())
			}
			if got := r.PreviousModelUsage()["claude-opus-5-5"]; got.InputTokens != 3 || got.OutputTokens != 7 || got.CostUSD != 0.5 {
				t.Errorf("costs %+v", got)
			}
			if string(r.ScenarioState()) != `{"n":1}` {
				t.Errorf("scenario state %s", r.ScenarioState())
			}
			history := r.ResumedHistory()
			if len(history) < 2 || history[0].Content.Text != "one" || history[0].Role != "user" {
				t.Errorf("history %+v", history)
			}
			next := w.turn(t, r, "again")
			lines := messageLines(readLines(t, s.Path()))
			prompt := lines[len(lines)-2]
			if prompt["uuid"] != next[0] || prompt["parentUuid"] != last {
				t.Errorf("prompt %v follows %v, want %s", prompt["uuid"], prompt["parentUuid"], last)
			}
			closeAll(t, r)
			last = lastLine(t, s.Path())
		})
	}
	if got := lineKinds(readLines(t, s.Path())); slices.Index(got, "mode") < 0 || strings.Count(strings.Join(got, " "), "attachment:environment") != 3 { // one at the start, one for the run in another directory and one for the run after it
		t.Errorf("lines of resumed runs: %q", got)
	}
}

func TestContinue(t *testing.T) {
	w := newWorld(t)
	if s := w.mustOpen(t, transcript.Options{Continue: true}); s.Resumed() || s.PreviousModelUsage() != nil {
		t.Error("nothing to continue, yet resumed")
	}
	older, newer := w.mustOpen(t, transcript.Options{}), w.mustOpen(t, transcript.Options{})
	w.turn(t, newer, "newer")
	w.turn(t, older, "older")
	closeAll(t, newer, older)
	for i, s := range []*transcript.Transcript{older, newer} {
		at := w.now.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(s.Path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	empty := filepath.Join(filepath.Dir(newer.Path()), w.id()+".jsonl")
	if err := os.WriteFile(empty, []byte("garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := w.mustOpen(t, transcript.Options{Continue: true}); s.ID() != newer.ID() {
		t.Errorf("continued %s, want %s", s.ID(), newer.ID())
	}
	if s := w.mustOpen(t, transcript.Options{Continue: true, CWD: t.TempDir()}); s.Resumed() {
		t.Error("continued a session of another directory")
	}
}

// TestOpenErrors checks the errors and their texts (row 36, golden resume-missing).
func TestOpenErrors(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	ids := w.turn(t, s, "one")
	w.turn(t, s, "two")
	second := w.mustOpen(t, transcript.Options{})
	w.turn(t, second, "three")
	closeAll(t, s, second)
	missing := w.id()
	none, other := "", w.id()
	tests := []struct {
		name string
		o    transcript.Options
		want string
	}{
		{"unknown id", transcript.Options{Resume: missing}, "No conversation found with session ID: " + missing},
		{"unknown path", transcript.Options{Resume: "/nosuch.jsonl"}, "No conversation found with session ID: 00000000-0000-4000-8000-"},
		{"unknown title", transcript.Options{Resume: "no such"}, "Error: --resume requires a valid session ID or session title when used with --print. "},
		{"in use", transcript.Options{ID: s.ID()}, "Session ID " + s.ID() + " is already in use."},
		{"fork into one in use", transcript.Options{Resume: s.ID(), Fork: true, ID: second.ID()}, "Session ID " + second.ID() + " is already in use."},
		{"unknown message", transcript.Options{Resume: s.ID(), ResumeAt: missing}, "No message found with message.uuid of: " + missing},
		// Row 37.
		{"drops another turn", transcript.Options{Resume: s.ID(), ResumeAt: ids[1], DropsTurn: &other}, "Resume rejected by --resume-drops-turn: "},
		{"drops none", transcript.Options{Resume: s.ID(), ResumeAt: ids[1], DropsTurn: &none}, "Resume rejected by --resume-drops-turn: "},
		{"path in place of an id", transcript.Options{Resume: "../../etc/passwd"}, "Error: --resume requires a valid session ID"},
	}
	before := readLines(t, s.Path())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := w.open(tt.o); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if diff := cmp.Diff(before, readLines(t, s.Path())); diff != "" {
		t.Errorf("a refusal wrote:\n%s", diff)
	}
	_, err := w.open(transcript.Options{Resume: s.ID(), ResumeAt: missing})
	if refused, ok := errors.AsType[*transcript.ResumeAtRefusedError](err); !ok || refused.SessionID != s.ID() {
		t.Errorf("%#v", err)
	}
	// The id of a scenario may be used again.
	again := w.mustOpen(t, transcript.Options{DefaultID: s.ID()})
	if again.ID() != s.ID() || again.Resumed() {
		t.Errorf("id %s, resumed %v", again.ID(), again.Resumed())
	}
	if _, err := transcript.Open(transcript.Options{}); err == nil {
		t.Error("Open without a clock")
	}
}

// A conversation is cut only at a message of its current branch, not at one that an earlier cut has left (observed with 2.1.330).
func TestResumeAtAbandonedMessage(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	one, two := w.turn(t, s, "one"), w.turn(t, s, "two")
	closeAll(t, s)
	again := w.mustOpen(t, transcript.Options{Resume: s.ID(), ResumeAt: one[1]})
	w.turn(t, again, "three")
	closeAll(t, again)
	_, err := w.open(transcript.Options{Resume: s.ID(), ResumeAt: two[1]})
	if want := "No message found with message.uuid of: " + two[1]; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// A fork has a copy of the history, and its source is unchanged. With --resume-session-at, the
// history is cut: the remaining prompts are one and three (row 36, e2e test_truncating_resume).
func TestFork(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	one := w.turn(t, s, "one")
	two := w.turn(t, s, "two")
	closeAll(t, s)
	if err := s.SetScenarioState([]byte(`{"n":2}`)); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		o    transcript.Options
		want []string
	}{
		{"whole", transcript.Options{}, []string{"one", "two", "three"}},
		{"own id", transcript.Options{ID: "11111111-1111-4111-8111-111111111111"}, []string{"one", "two", "three"}},
		{"cut", transcript.Options{ResumeAt: one[1], DropsTurn: &two[0]}, []string{"one", "three"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Resume, tt.o.Fork = s.ID(), true
			f := w.mustOpen(t, tt.o)
			if f.ID() == s.ID() || tt.o.ID != "" && f.ID() != tt.o.ID || !f.Resumed() {
				t.Fatalf("id %s, resumed %v", f.ID(), f.Resumed())
			}
			if string(f.ScenarioState()) != `{"n":2}` || f.PreviousModelUsage()["claude-opus-5-5"].CostUSD != 0.5 {
				t.Errorf("scenario state %s, costs %v", f.ScenarioState(), f.PreviousModelUsage())
			}
			if _, err := os.Stat(f.Path()); err == nil {
				t.Error("the copy is written before the first record")
			}
			w.turn(t, f, "three")
			if err := f.SetScenarioState([]byte(`{"n":3}`)); err != nil {
				t.Fatal(err)
			}
			var prompts []string
			var parent any
			for _, l := range readLines(t, f.Path()) {
				if l["sessionId"] != f.ID() {
					t.Errorf("line %v: session %v", l["uuid"], l["sessionId"])
				}
				if l["uuid"] == nil {
					continue
				}
				if l["parentUuid"] != parent {
					t.Errorf("line %v follows %v, want %v", l["uuid"], l["parentUuid"], parent)
				}
				parent = l["uuid"]
				if l["type"] == "user" {
					if l["promptId"] != "p-three" {
						t.Errorf("prompt id of the copy: %v", l)
					}
					prompts = append(prompts, l["message"].(line)["content"].(string))
				}
			}
			if diff := cmp.Diff(tt.want, prompts); diff != "" {
				t.Errorf("prompts (-want +got):\n%s", diff)
			}
			if last := lastPrompt(t, f); last != "one" {
				t.Errorf("the fork is shown as %q", last)
			}
			// The fork can be resumed, with the scenario state that it had at its end.
			if again := w.mustOpen(t, transcript.Options{Resume: f.ID()}); string(again.ScenarioState()) != `{"n":3}` || len(again.ResumedHistory()) != 2*len(tt.want) {
				t.Errorf("state %s, %d messages", again.ScenarioState(), len(again.ResumedHistory()))
			}
		})
	}
	after, err := os.ReadFile(s.Path())
	if err != nil || !bytes.Equal(source, after) {
		t.Errorf("the source has changed, %v", err)
	}
	if r := w.mustOpen(t, transcript.Options{Resume: s.ID()}); string(r.ScenarioState()) != `{"n":2}` {
		t.Errorf("the source's state is %s", r.ScenarioState())
	}
}

// lastPrompt returns the text that lists of sessions show.
func lastPrompt(t *testing.T, s *transcript.Transcript) (last any) {
	t.Helper()
	for _, l := range readLines(t, s.Path()) {
		if l["type"] == "last-prompt" {
			last = l["lastPrompt"]
		}
	}
	return last
}

// Session lists show the first text of the last prompt in one line. A command is shown as it was
// typed, and texts of the CLI are not shown.
func TestLastPrompt(t *testing.T) {
	long := strings.Repeat("x", 250)
	blocks := protocol.Content{Blocks: []protocol.Block{protocol.Image("image/png", "AA=="), protocol.Text("a\nb "), protocol.Text("c")}}
	for want, events := range map[string][]protocol.Event{
		"a b":                          {&protocol.PromptAccepted{Content: blocks}},
		strings.Repeat("x", 200) + "…": {&protocol.PromptAccepted{Content: protocol.Content{Text: long}}},
		"/do it":                       {&protocol.PromptQueued{Content: protocol.Content{Text: "/do it"}}, &protocol.PromptAccepted{Content: protocol.Content{Text: "<tags>"}}},
		"first":                        {&protocol.PromptAccepted{Content: protocol.Content{Text: "first"}}, &protocol.PromptAccepted{Content: protocol.Content{Text: "ended"}, Source: "system"}},
	} {
		w := newWorld(t)
		s := w.mustOpen(t, transcript.Options{})
		record(t, s, events...)
		closeAll(t, s)
		if got := lastPrompt(t, s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Without --fork-session the cut creates a branch in the same file.
func TestResumeAtWithoutFork(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	one := w.turn(t, s, "one")
	w.turn(t, s, "two")
	r := w.mustOpen(t, transcript.Options{Resume: s.ID(), ResumeAt: one[1]})
	if len(r.ResumedHistory()) != 2 {
		t.Errorf("history %+v", r.ResumedHistory())
	}
	w.turn(t, r, "three")
	var got []string
	for _, m := range w.mustOpen(t, transcript.Options{Resume: s.ID()}).ResumedHistory() {
		if m.Role == "user" {
			got = append(got, m.Content.Text)
		}
	}
	if diff := cmp.Diff([]string{"one", "three"}, got); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
}

func TestReset(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{})
	w.turn(t, s, "one")
	old, oldPath := s.ID(), s.Path()
	if id, path, err := s.Reset(); err != nil || id == old || s.ID() != id || s.Path() != path || path == oldPath { // row 47
		t.Errorf("id %s after %s, %v", id, old, err)
	}
	before := readLines(t, oldPath)
	if last := before[len(before)-1]; last["type"] != "cost-state" {
		t.Errorf("the old transcript ends with %v", last)
	}
	w.turn(t, s, "two")
	if lines := readLines(t, s.Path()); messageLines(lines)[0]["parentUuid"] != nil || len(messageLines(lines)) != 2 || lines[0]["type"] != "mode" {
		t.Errorf("new transcript %q", lineKinds(lines))
	}
	if after := readLines(t, oldPath); len(after) != len(before) {
		t.Errorf("old transcript grew from %d to %d lines", len(before), len(after))
	}
}

func TestNoPersistence(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{NoPersist: true, OnLine: func(string, []byte) { t.Error("a line") }})
	w.turn(t, s, "one")
	if err := s.SetScenarioState([]byte(`{}`)); err != nil || string(s.ScenarioState()) != `{}` {
		t.Errorf("scenario state %s, %v", s.ScenarioState(), err)
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("something is written")
	}
}

// checkingContext is the context of a session in a mode in which a server checks calls.
type checkingContext struct{ lowEffortContext }

func (checkingContext) RequestContext(string) transcript.RequestContext {
	return transcript.RequestContext{ChecksCalls: true}
}

// All lines of a message contain the same id of the check of its calls. Each message has a different id.
func TestCheckOfMessage(t *testing.T) {
	w := newWorld(t)
	s := w.mustOpen(t, transcript.Options{Context: checkingContext{}})
	for i, id := range []string{"msg_1", "msg_1", "msg_2"} {
		if err := s.Record(&protocol.AssistantEvent{UUID: strconv.Itoa(i), Message: protocol.AssistantMessage{ID: id, Content: []protocol.Block{protocol.Text("x")}}}); err != nil {
			t.Fatal(err)
		}
	}
	closeAll(t, s, s)
	var checks []any
	for _, l := range messageLines(readLines(t, s.Path())) {
		checks = append(checks, l["serverClassifierRequest"])
	}
	if len(checks) != 3 || checks[0] == nil || checks[0] != checks[1] || checks[1] == checks[2] {
		t.Errorf("ids of checks: %v", checks)
	}
}
