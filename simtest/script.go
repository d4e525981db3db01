package simtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claudeless/claudeless/internal/exec/verdict"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// scenarioScript is the scenario of a test, with its own directory.
type scenarioScript struct {
	tb       testing.TB
	dir      string
	file     string // path of the scenario file of the test; empty means that rules is the scenario
	position string

	mu        sync.Mutex
	rules     []*rule
	holdCount int
}

type rule struct {
	pattern  map[string]any
	steps    []map[string]any
	limit    ruleLimit
	position string // file and line of the test that defined the rule
}

type ruleLimit int

const (
	unlimited ruleLimit = iota
	onlyOnce            // one prompt in the whole test
)

func newScript(tb testing.TB, place, file string) *scenarioScript {
	tb.Helper()
	return &scenarioScript{tb: tb, dir: tb.TempDir(), file: file, position: place}
}

// runID returns the value of CLAUDELESS_RUN.
func (s *scenarioScript) runID() string       { return s.dir }
func (s *scenarioScript) journalPath() string { return filepath.Join(s.dir, "journal.jsonl") }
func (s *scenarioScript) scenarioPath() string {
	return cmp.Or(s.file, filepath.Join(s.dir, "scenario.json"))
}

func (s *scenarioScript) addSteps(prompt any, script []any, place string) {
	s.tb.Helper()
	if s.file != "" {
		s.tb.Fatalf("simtest: On: the script of this test is the file %s; a second scenario in one test is not possible", s.file)
	}
	if pattern := s.pattern(prompt); pattern != nil {
		s.addRule(pattern, script, unlimited, place)
	}
}

// pattern returns the scenario pattern of a prompt, which is a string or a *regexp.Regexp.
func (s *scenarioScript) pattern(prompt any) map[string]any {
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

func (s *scenarioScript) addRule(pattern map[string]any, script []any, limit ruleLimit, place string) {
	s.tb.Helper()
	list, err := scenarioSteps(script)
	if err == nil && len(list) == 0 {
		err = errors.New("the rule has no answer: pass at least one step")
	}
	if err != nil {
		s.tb.Fatalf("simtest: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, &rule{pattern: pattern, steps: list, limit: limit, position: place})
}

// writeScenario writes the scenario. It writes a temporary file and renames it, because a claude may read the scenario
// at the same time.
func (s *scenarioScript) writeScenario() {
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

// entries returns the journal entries so far. It omits an incomplete last line.
func (s *scenarioScript) entries() []journal.Entry {
	s.tb.Helper()
	var in verdict.Input
	err := in.ReadFiles([]string{s.journalPath()}, s.scenarioPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.tb.Errorf("simtest: %v", err)
	}
	return in.Entries
}

func (s *scenarioScript) prompts() []Prompt {
	var all []Prompt
	for _, e := range s.entries() {
		switch {
		case e.Prompt != nil && !e.Prompt.Injected:
			all = append(all, Prompt{Text: e.Prompt.Prompt, SessionID: e.SessionID, PID: e.PID})
		case e.Request != nil && e.Request.Prompt != "" && e.Request.Attempt <= 1:
			all = append(all, Prompt{Text: e.Request.Prompt, SessionID: e.Request.Session, PID: e.PID})
		}
	}
	return all
}

func (s *scenarioScript) tools() []Tool {
	type call struct {
		id string
		Tool
	}
	var all []call
	var order []string // ids of the model's calls, in the order of its messages
	for _, e := range s.entries() {
		switch {
		case e.Model != nil:
			var blocks []struct{ ID string }
			_ = json.Unmarshal(e.Model.Blocks, &blocks) // a value of another type contains no calls
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
	// The calls of one message run at the same time, so the journal may list them in another order.
	slices.SortStableFunc(all, func(a, b call) int { return slices.Index(order, a.id) - slices.Index(order, b.id) })
	var tools []Tool
	for _, c := range all {
		tools = append(tools, c.Tool)
	}
	return tools
}

// scenarioJSON returns the script as a scenario, with one rule per line from firstRuleLine on.
func scenarioJSON(rules []*rule) ([]byte, error) {
	var b strings.Builder
	b.WriteString("{\"expect\": [{\"unused\": \"error\"}],\n\"responses\": [\n")
	for i, r := range rules {
		entry := map[string]any{"pattern": r.pattern, "response": map[string]any{"steps": r.steps}}
		if r.limit == onlyOnce {
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

// firstRuleLine is the line of the first rule in the result of [scenarioJSON].
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
