package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Observed with 2.1.329: the order of events, matchers and files, and how each
// kind of hook is shown.
func TestList(t *testing.T) {
	sources := []SettingsHooks{
		{Name: "userSettings", Raw: json.RawMessage(`{"Stop":[{"matcher":"x","hooks":[{"type":"command","command":"user"}]}]}`)},
		{Name: "projectSettings", Raw: json.RawMessage(`{
			"SessionEnd":[{"hooks":[{"type":"agent","prompt":"look"}]}],
			"Nosuch":[{"hooks":[{"type":"command","command":"z"}]}],
			"Stop":[{"hooks":[{"type":"http","url":"http://h/","headers":{"A":"secret"}},{"type":"mcp_tool","server":"s","tool":"t"}]}],
			"PreToolUse":[
				{"matcher":"Bash","hooks":[{"type":"command","command":"a\nb","timeout":5,"async":true,"once":true,"statusMessage":"busy"}]},
				{"matcher":"*","hooks":[{"type":"prompt","prompt":"ok?","if":"Bash(git *)"}]}]}`)},
		{Name: "flagSettings", Raw: json.RawMessage(`{"Stop":[{"hooks":[{"type":"command","command":"flag"}]}]}`)},
	}
	l := List(sources, Policy{AllDisabled: true})
	var got []string
	for _, e := range l.Events {
		got = append(got, fmt.Sprintf("%s %d %v", e.Name, e.Count, e.SupportsMatcher))
	}
	for _, h := range l.Hooks {
		line := fmt.Sprintf("%s %q %s %s %q %q %s", h.Event, h.Matcher, h.Source, h.Type, h.DisplayText, h.CommandText, h.ContentLabel)
		if h.EditableHook != nil {
			line += fmt.Sprintf(" editable %v", h.EditableHook.Redacted)
		}
		if !h.Disabled || strings.Contains(line, "secret") {
			t.Errorf("%+v", h)
		}
		got = append(got, line)
	}
	want := []string{
		"PreToolUse 2 true", "Stop 4 true", "SessionEnd 1 true",
		`PreToolUse "*" projectSettings prompt "ok?" "ok?" Prompt editable false`,
		`PreToolUse "Bash" projectSettings command "busy" "a\nb" Command editable false`,
		`Stop "x" userSettings command "user" "user" Command editable false`,
		`Stop "" projectSettings http "http://h/" "http://h/" URL editable true`,
		`Stop "" projectSettings mcp_tool "s/t" "s/t" MCP tool editable false`,
		`Stop "" flagSettings command "flag" "flag" Command`,
		`SessionEnd "" projectSettings agent "look" "look" Prompt editable false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := l.Hooks[1]; h.Timeout != 5 || !h.Once || !h.Background || len(l.Catalog) != 33 {
		t.Errorf("%+v, %d events in the catalog", h, len(l.Catalog))
	}
}
