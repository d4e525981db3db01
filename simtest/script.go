package simtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/exec/runner"
	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

type testRun struct {
	tb       testing.TB
	dir      string // directory with the files of the run, such as the journal
	file     string // path of the scenario file of the test; empty means that rules is the scenario
	position string // file and line of the test that created the script

	mu        sync.Mutex
	rules     []*rule
	holdCount int
}

type rule struct {
	pattern  map[string]any
	steps    []map[string]any
	once     bool   // the rule answers one prompt in the whole test
	position string // file and line of the test that defined the rule
}

func newTestRun(tb testing.TB, testPosition, scenarioFile string) *testRun {
	tb.Helper()
	return &testRun{tb: tb, dir: tb.TempDir(), file: scenarioFile, position: testPosition}
}

func (s *testRun) claudelessRunID() string { return s.dir }
func (s *testRun) journalPath() string     { return filepath.Join(s.dir, "journal.jsonl") }
func (s *testRun) scenarioPath() string    { return cmp.Or(s.file, filepath.Join(s.dir, "scenario.json")) }

func (s *testRun) addRuleForPrompt(prompt any, script []any, testPosition string) {
	s.tb.Helper()
	if s.file != "" {
		s.tb.Fatalf("simtest: On: this test already has the scenario file %s; a test can have only one scenario", s.file)
	}
	if pattern := s.stringOrRegexpPattern(prompt); pattern != nil {
		s.addRuleWithSteps(rule{pattern: pattern, position: testPosition}, script)
	}
}

// stringOrRegexpPattern returns the scenario pattern of a prompt, which is a string or a *regexp.Regexp.
func (s *testRun) stringOrRegexpPattern(prompt any) map[string]any {
	s.tb.Helper()
	switch p := prompt.(type) {
	case string:
		return map[string]any{"type": "contains", "text": p}
	case *regexp.Regexp:
		return map[string]any{"type": "regex", "pattern": p.String()}
	}
	s.tb.Fatalf("simtest: a prompt is a string or a *regexp.Regexp, not %#v", prompt)
	return nil
}

func (s *testRun) addRuleWithSteps(r rule, scriptSteps []any) {
	s.tb.Helper()
	list, err := convertScriptToScenarioSteps(scriptSteps)
	if err == nil && len(list) == 0 {
		err = errors.New("the rule has no answer: pass at least one step")
	}
	if err != nil {
		s.tb.Fatalf("simtest: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.steps = list
	s.rules = append(s.rules, &r)
}

// writeScenario writes a temporary file and renames it, because a claude process may read the scenario at the same time.
func (s *testRun) writeScenario() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := scenarioJSON(s.rules)
	if err == nil {
		err = os.WriteFile(s.scenarioPath()+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.scenarioPath()+".new", s.scenarioPath())
	}
	if err != nil {
		s.tb.Fatalf("simtest: writing the scenario: %v", err)
	}
}

// readJournalEntries returns the journal entries so far. It omits an incomplete last line.
func (s *testRun) readJournalEntries() []journal.Entry {
	s.tb.Helper()
	var in verdict.Input
	err := in.ReadJournalsAndLoadScenarios([]string{s.journalPath()}, s.scenarioPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.tb.Errorf("simtest: %v", err)
	}
	return in.Entries
}

func (s *testRun) prompts() []Prompt {
	var all []Prompt
	for _, e := range s.readJournalEntries() {
		switch {
		case e.Prompt != nil && !e.Prompt.WrittenByCLI:
			all = append(all, Prompt{Text: e.Prompt.Prompt, SessionID: e.SessionID, PID: e.PID})
		case e.Request != nil && e.Request.Prompt != "" && e.Request.Attempt <= 1:
			all = append(all, Prompt{Text: e.Request.Prompt, SessionID: e.Request.Session, PID: e.PID})
		}
	}
	return all
}

func (s *testRun) executedCalls() []Tool {
	type call struct {
		id string
		Tool
	}
	var all []call
	var order []string // ids of the model's calls, in the order of its messages
	for _, e := range s.readJournalEntries() {
		switch {
		case e.Model != nil:
			var blocks []struct{ ID string }
			_ = json.Unmarshal(e.Model.Blocks, &blocks) // blocks that cannot be decoded contain no calls
			for _, b := range blocks {
				order = append(order, b.ID)
			}
		case e.Tool != nil:
			all = append(all, call{e.Tool.ToolUseID, Tool{Name: e.Tool.Tool, Input: e.Tool.Input}})
		case e.Request != nil:
			for _, c := range e.Request.Calls {
				all = append(all, call{c.ToolUseID, Tool{Name: c.Tool, Input: c.Input}})
			}
		}
	}
	// The calls of one message run at the same time, so their order in the journal may differ from that in the message.
	slices.SortStableFunc(all, func(a, b call) int { return slices.Index(order, a.id) - slices.Index(order, b.id) })
	var tools []Tool
	for _, c := range all {
		tools = append(tools, c.Tool)
	}
	return tools
}

// scenarioJSON returns the rules as a scenario. The line of the first rule is firstRuleLine; each rule has one line.
func scenarioJSON(rules []*rule) ([]byte, error) {
	var b strings.Builder
	b.WriteString("{\"expect\": [{\"unused\": \"error\"}],\n\"responses\": [\n")
	for i, r := range rules {
		entry := map[string]any{"pattern": r.pattern, "response": map[string]any{"steps": r.steps}}
		if r.once {
			entry["once"] = true
		}
		line, err := json.Marshal(entry)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.position, err)
		}
		b.Write(line)
		if i < len(rules)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]}\n")
	return []byte(b.String()), nil
}

const firstRuleLine = 3

// callerPosition returns the file and line of the first caller outside of this package.
func callerPosition() string {
	_, here, _, _ := runtime.Caller(0)
	for depth := 1; ; depth++ {
		_, file, line, ok := runtime.Caller(depth)
		if !ok {
			return "simtest"
		}
		if filepath.Dir(file) != filepath.Dir(here) || strings.HasSuffix(file, "_test.go") {
			return fmt.Sprintf("%s:%d", filepath.Base(file), line)
		}
	}
}

// ToolCall is one call of a tool in a scripted answer; [Call] creates it.
type ToolCall struct {
	Tool  string `json:"tool"`
	Input any    `json:"input"` // an object
}

// Call makes the model call a tool: a built-in such as "Bash", "server/tool", or "mcp__server__tool". The input is a
// map or a struct with JSON tags; nil means {}.
func Call(tool string, input any) ToolCall {
	if input == nil {
		input = map[string]any{}
	}
	return ToolCall{Tool: tool, Input: input}
}

// Failure is a failed request to the model; see [Fail].
type Failure struct {
	modelFailureType string
	scenarioKeys     map[string]any
}

// Fail makes the request to the model fail. kind is a failure type of scenarios, such as "rate_limit" or "overloaded".
// All requests fail unless Times limits their number.
func Fail(kind string) Failure {
	return Failure{modelFailureType: kind, scenarioKeys: defaultFailureKeys(kind)}
}

// Times sets how many requests fail before one succeeds.
func (f Failure) Times(n int) Failure { return f.With("times", n) }

// With sets another key of the failure, such as status, retry_after or message.
func (f Failure) With(key string, value any) Failure {
	keys := map[string]any{key: value}
	for k, v := range f.scenarioKeys {
		if k != key {
			keys[k] = v
		}
	}
	return Failure{modelFailureType: f.modelFailureType, scenarioKeys: keys}
}

// defaultFailureKeys returns default values of the keys that a failure requires.
func defaultFailureKeys(kind string) map[string]any {
	return map[string]map[string]any{
		"rate_limit": {"retry_after": 1}, "auth_error": {"message": "Invalid API key"}, "connection_timeout": {"after_ms": 5000},
		"partial_response": {"partial_text": ""}, "malformed_json": {"raw": "{"}, "api_error": {"status": 500},
	}[kind]
}

// Message is one message of the model; see [Say].
type Message []any

// Say combines texts and calls into one message. The calls must follow the texts.
func Say(parts ...any) Message { return parts }

// convertScriptToScenarioSteps converts a script to scenario steps, one per message. A failure belongs to the next message.
func convertScriptToScenarioSteps(script []any) ([]map[string]any, error) {
	var out []map[string]any
	var failure map[string]any
	for i, step := range script {
		if f, ok := step.(Failure); ok {
			if failure != nil {
				out = append(out, map[string]any{"failure": failure})
			}
			failure = map[string]any{"type": f.modelFailureType}
			maps.Copy(failure, f.scenarioKeys)
			continue
		}
		m, err := messageStep(step)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
		if failure != nil {
			m["failure"], failure = failure, nil
		}
		out = append(out, m)
	}
	if failure != nil {
		out = append(out, map[string]any{"failure": failure})
	}
	return out, nil
}

func messageStep(step any) (map[string]any, error) {
	parts, ok := step.(Message)
	if !ok {
		parts = Message{step}
	}
	var texts []string
	var calls []ToolCall
	for _, part := range parts {
		switch part := part.(type) {
		case ToolCall:
			calls = append(calls, part)
		case string:
			if calls != nil {
				return nil, fmt.Errorf("the text %q comes after a call in the same step; put it into a separate step", part)
			}
			texts = append(texts, part)
		default:
			return nil, fmt.Errorf("%#v is not a step: use a string, a Call, a Say or a Fail", part)
		}
	}
	m := map[string]any{}
	if texts != nil {
		m["text"] = strings.Join(texts, "\n")
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return m, nil
}

// refusalAdvice is the advice for a request from a claude that the test did not create.
const refusalAdvice = "start claude.Path, or \"claude\" with the variables of claude.Env(), and set the host's option for the executable to claude.Path; " +
	"give a client of the Messages API the URL of simtest.Server"

// newBypassRefusalServer starts the server whose URL a Claude sets as ANTHROPIC_BASE_URL. The scripted claude sends no requests, so a
// request comes from another program. The server refuses it at once and adds finding G01 to the journal. The caller closes the server.
func newBypassRefusalServer(s *testRun) *httptest.Server {
	var mu sync.Mutex
	var seen []string // texts of the findings that are already in the journal
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found := runner.RefuseForeignClient(w, r, refusalAdvice)
		mu.Lock()
		defer mu.Unlock()
		// The real CLI first sends HEAD, and other requests follow.
		if r.Method != http.MethodHead && !slices.Contains(seen, found.Text) {
			seen = append(seen, found.Text)
			s.appendFindingToJournal(journal.Finding{ID: found.ID, Level: "error", Text: found.Text, Advice: found.Advice})
		}
	}))
}

func (s *testRun) appendFindingToJournal(f journal.Finding) {
	out, err := os.OpenFile(s.journalPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.tb.Errorf("simtest: %v", err)
		return
	}
	lines := journal.New(journal.Options{W: out, Now: time.Now, Environ: os.Environ()})
	lines.Write(f)
	if err := cmp.Or(lines.Err(), out.Close()); err != nil {
		s.tb.Errorf("simtest: %v", err)
	}
}
