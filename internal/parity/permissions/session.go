package permissions

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/parity"
)

// SessionAsParityCase returns the session of the group as a case. scenarioFile is the file with [CallGroup.ScenarioJSON]; cwd and
// home are the directories of the session. Permissions of Bash commands are decided, but the commands do not run.
func (g *CallGroup) SessionAsParityCase(scenarioFile, cwd, home string) (*parity.Case, error) {
	insert := strings.NewReplacer("{cwd}", cwd, "{home}", home).Replace
	settings, err := json.Marshal(map[string]any{
		"permissions": map[string]any{"allow": mapEach(g.Allow, insert), "ask": mapEach(g.Ask, insert), "deny": mapEach(g.Deny, insert), "additionalDirectories": mapEach(g.Directories, insert)},
		// With these settings, claude asks no second model and does not resolve the address of a WebFetch.
		"useAutoModeDuringPlan": false, "skipWebFetchPreflight": true,
	})
	if err != nil {
		return nil, err
	}
	c := &parity.Case{
		Name: g.Name, File: scenarioFile, Dir: filepath.Dir(scenarioFile), ScenarioLine: 1,
		Settings: settings, Files: contents(g.file.Files), Home: contents(g.file.Home), InertShell: true,
		Runs: []parity.CaseRun{{
			Args:  []string{"-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose", "--permission-prompt-tool=stdio"},
			Steps: []parity.CaseStep{{Verb: "prompt", Text: "go"}, {Verb: "refuse"}, {Verb: "close"}},
		}},
	}
	if g.Mode != "" {
		c.Runs[0].Args = append(c.Runs[0].Args, "--permission-mode="+g.Mode)
	}
	c.Runs[0].Args = append(c.Runs[0].Args, g.Arguments...)
	if g.Servers != nil {
		if c.MCP, err = json.Marshal(map[string]any{"mcpServers": g.Servers}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// callsPerMessage is the number of calls in one message of the model. Each message needs a request, which takes time.
const callsPerMessage = 40

// ScenarioJSON returns a scenario, as JSON, in which the model makes all calls in order, several in each message.
func (g *CallGroup) ScenarioJSON(cwd, home string) ([]byte, error) {
	insert := strings.NewReplacer("{cwd}", cwd, "{home}", home).Replace
	type call struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}
	steps := []any{}
	for message := range slices.Chunk(g.Calls, callsPerMessage) {
		var calls []call
		for _, c := range message {
			calls = append(calls, call{c.Tool, json.RawMessage(insert(string(c.Input)))})
		}
		steps = append(steps, map[string]any{"tool_calls": calls})
	}
	steps = append(steps, map[string]string{"text": "done"})
	return json.Marshal(map[string]any{"templates": false, "responses": []any{map[string]any{"pattern": map[string]string{"type": "any"}, "response": map[string]any{"steps": steps}}}})
}

func mapEach(list []string, change func(string) string) []string {
	changed := []string{}
	for _, s := range list {
		changed = append(changed, change(s))
	}
	return changed
}

func contents(files map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range files {
		all[name] = []byte(text)
	}
	return all
}

// Decision is the decision of a program about a call.
type Decision string

// The decisions, from the loosest to the strictest.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// CallOutcome is the decision about a call, or the reason why there is none: the tool rejected the input before permission
// was asked, or the session ended before the call.
type CallOutcome struct {
	Decision Decision `json:"decision,omitempty"`
	Reason   string   `json:"reason,omitempty"`  // the kind of rule that decided, as the program names it
	Missing  string   `json:"missing,omitempty"` // explains why no decision is known
}

type event struct {
	Type    string                            `json:"type"`
	Message struct{ Content json.RawMessage } `json:"message"`
	Request struct {
		Subtype   string `json:"subtype"`
		ToolUseID string `json:"tool_use_id"`
	} `json:"request"`
	Meta []struct {
		ID       string `json:"id"`
		Decision *struct {
			Decision   string `json:"decision"`
			ReasonType string `json:"reason_type"`
		} `json:"permission_decision"`
	} `json:"tool_result_meta"`
}

type toolContentBlock struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// ReadOutcomes returns the outcomes of the first callCount calls of a session, in order.
func ReadOutcomes(rec *parity.Recording, callCount int) []CallOutcome {
	var order []string
	found := map[string]CallOutcome{}
	if len(rec.Runs) > 0 {
		for line := range strings.Lines(rec.Runs[0].Stdout) {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				order = append(order, e.addOutcomesReturnNewCalls(found)...)
			}
		}
	}
	all := make([]CallOutcome, callCount)
	for i := range all {
		all[i] = CallOutcome{Missing: whyDecisionIsMissing(rec)}
		if i < len(order) {
			if o, ok := found[order[i]]; ok {
				all[i] = o
			}
		}
	}
	return all
}

// addOutcomesReturnNewCalls stores in found the decisions and rejected inputs that an event reports. begun lists the calls that it starts.
func (e *event) addOutcomesReturnNewCalls(found map[string]CallOutcome) (begun []string) {
	var blocks []toolContentBlock
	_ = json.Unmarshal(e.Message.Content, &blocks) // a string contains no calls
	for _, b := range blocks {
		switch {
		case e.Type == "assistant" && b.Type == "tool_use":
			begun = append(begun, b.ID)
		case e.Type == "user" && b.Type == "tool_result" && found[b.ToolUseID].Decision == "":
			found[b.ToolUseID] = CallOutcome{Missing: "the tool rejects the input: " + firstLineOfToolError(b.Content)}
		}
	}
	if e.Type == "control_request" && e.Request.Subtype == "can_use_tool" {
		found[e.Request.ToolUseID] = CallOutcome{Decision: Ask}
	}
	for _, m := range e.Meta {
		if m.Decision == nil || found[m.ID].Decision == Ask {
			continue
		}
		o := CallOutcome{Decision: Deny, Reason: m.Decision.ReasonType}
		if m.Decision.Decision == "accept" {
			o.Decision = Allow
		}
		found[m.ID] = o
	}
	return begun
}

func firstLineOfToolError(contentJSON json.RawMessage) string {
	var s string
	if json.Unmarshal(contentJSON, &s) != nil {
		s = string(contentJSON)
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(s, "<tool_use_error>"), "\n")
	return strings.TrimSuffix(first, "</tool_use_error>")
}

func whyDecisionIsMissing(rec *parity.Recording) string {
	for _, p := range rec.Problems {
		if p.Kind != "dialogue" { // a problem with the dialogue only means that there was no result
			return p.Text
		}
	}
	if len(rec.Runs) == 0 {
		return "the session did not start"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(rec.Runs[0].Stderr), "\n")
	return strings.TrimSuffix(fmt.Sprintf("the session ended before the call, with exit code %d: %s", rec.Runs[0].Code, first), ": ")
}
