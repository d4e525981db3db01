package hook

import (
	"encoding/json"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/google/go-cmp/cmp"
)

// Checklist row 19: matchers, as observed (spec: cli-contract 5.1).
func TestMatcher(t *testing.T) {
	text := func(s string) *string { return &s }
	tests := []struct {
		matcher *string
		subject string
		want    bool
	}{
		{nil, "Bash", true},
		{text(""), "Bash", true},
		{text("*"), "Bash", true},
		{text("*"), "", true},
		{text("Bash"), "Bash", true},
		{text("Bash|Read"), "Read", true},
		{text("Bash|Read"), "ReadMore", false},
		{text("Bas"), "Bash", false},
		{text("Write,Bash"), "Write", true},
		{text("Write, Bash"), "Bash", true},
		{text("Write,Bash"), "WriteMore", false},
		{text("bash"), "Bash", false},
		{text("Bash"), "", false},
		{text("Ba.*"), "Bash", true},
		{text("a.*h"), "Bash", true},
		{text("^B"), "Bash", true},
		{text("^a"), "Bash", false},
		{text("mcp__.*"), "mcp__s__t", true},
		{text("mcp__s__t"), "mcp__s__t", true},
		{text("Bash(echo *)"), "Bash", false},
		{text("^(?!(Glob|Read)$).*"), "Bash", true}, // hosts write JavaScript expressions
		{text("^(?!(Glob|Read)$).*"), "Read", false},
	}
	for _, tt := range tests {
		name := "nil"
		if tt.matcher != nil {
			name = *tt.matcher
		}
		match, err := compileMatcher(tt.matcher)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := match(tt.subject); got != tt.want {
			t.Errorf("matcher %q of %q = %v", name, tt.subject, got)
		}
	}
}

func TestSettingsWarnings(t *testing.T) {
	tests := []struct{ raw, want string }{
		{``, ""},
		{`{}`, ""},
		{`[]`, "s.json: hooks: json: cannot unmarshal array into Go value of type map[string]json.RawMessage"},
		{`{"Stop":{}}`, "s.json: hooks.Stop must be a list"},
		{`{"Stop":[{}]}`, "s.json: hooks.Stop[0]: the key \"hooks\" is missing"},
		{`{"Stop":[{"matcher":"(","hooks":[]}]}`, "s.json: hooks.Stop[0]: matcher: error parsing regexp: missing closing ): `(`"},
		{`{"Stop":[{"hooks":[{"type":"command"}]}]}`, `s.json: hooks.Stop[0]: hooks[0]: a command hook needs "command"`},
		{`{"Stop":[{"hooks":[{"type":"http"}]}]}`, `s.json: hooks.Stop[0]: hooks[0]: a http hook needs "url"`},
		{`{"Stop":[{"hooks":[{"type":"mcp_tool","server":"s"}]}]}`, `s.json: hooks.Stop[0]: hooks[0]: a mcp_tool hook needs "tool"`},
		{`{"Stop":[{"hooks":[{"type":"magic"}]}]}`, `s.json: hooks.Stop[0]: hooks[0]: unknown hook type "magic": expected command, http, mcp_tool, prompt or agent`},
	}
	for _, tt := range tests {
		_, warnings := New(Options{Settings: []SettingsHooks{{Name: "s.json", Raw: json.RawMessage(tt.raw)}}})
		got := ""
		if len(warnings) > 0 {
			got = warnings[0].Text
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.raw, got, tt.want)
		}
	}
}

// A valid hook next to a faulty one is used; sources keep their order.
func TestSettingsOrder(t *testing.T) {
	r, warnings := New(Options{Settings: []SettingsHooks{
		{Name: "user", Raw: json.RawMessage(`{"Stop":[{"hooks":[{"type":"nope"},{"type":"command","command":"a"}]}]}`)},
		{Name: "local", Raw: json.RawMessage(`{"Stop":[{"matcher":null,"hooks":[{"type":"command","command":"b"}]}]}`)},
	}})
	var got []string
	for _, e := range r.claimMatchingHooks("Stop", "", EventInput{Event: protocol.StopHookInput{}}) {
		got = append(got, e.config.Command)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" || len(warnings) != 1 {
		t.Errorf("%v %s", warnings, diff)
	}
}

// Matchers apply only to events with a subject. A matcher for Task also matches Agent (observed with 2.1.329).
func TestMatches(t *testing.T) {
	tests := []struct {
		matcher, event, subject string
		want                    bool
	}{
		{"nothing", "Stop", "", true},
		{"nothing", "UserPromptSubmit", "", true},
		{"nothing", "SessionStart", "startup", false},
		{"resume|startup", "SessionStart", "startup", true},
		{"nothing", "PreToolUse", "Bash", false},
		{"nothing", "PreToolUse", "", false},
		{"Task", "PreToolUse", "Agent", true},
		{"^Task$", "PostToolUse", "Agent", true},
		{"Agent", "PreToolUse", "Agent", true},
		{"Agent", "PreToolUse", "Task", false},
	}
	for _, tt := range tests {
		match, err := compileMatcher(&tt.matcher)
		if err != nil {
			t.Fatal(err)
		}
		if got := (&hookEntry{matchesSubject: match}).matches(tt.event, tt.subject); got != tt.want {
			t.Errorf("%q of %s:%s = %v", tt.matcher, tt.event, tt.subject, got)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add(`{"Stop":[{"matcher":"a.*","hooks":[{"type":"command","command":"x","timeout":1e300}]}]}`, "Stop")
	f.Add(`{"PreToolUse":[{"matcher":null,"hooks":[{"type":"http","url":"u","if":"Bash(a *)"}]}]}`, "Bash")
	f.Add(`[`, "")
	f.Fuzz(func(t *testing.T, raw, subject string) {
		r, _ := New(Options{Settings: []SettingsHooks{{Raw: json.RawMessage(raw)}}})
		for event, entries := range r.hooksByEvent {
			for _, e := range entries {
				if e.timeout <= 0 || validateHookConfig(e.config) != nil {
					t.Errorf("%s: accepted %+v", event, e.config)
				}
				e.matchesSubject(subject)
				r.matchesCondition(e, protocol.PreToolUseHookInput{ToolName: subject, ToolInput: json.RawMessage(raw)})
			}
		}
	})
}

func FuzzOutput(f *testing.F) {
	f.Add("PreToolUse", `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","updatedInput":null}}`)
	f.Add("PostToolUse", `{"continue":false,"decision":"block","hookSpecificOutput":{"hookEventName":"Stop"}}`)
	f.Add("PermissionRequest", `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`)
	f.Add("Stop", "\n{")
	f.Fuzz(func(t *testing.T, event, text string) {
		out, err := parseOutput(event, json.RawMessage(text))
		if err == nil && out.Specific != nil && out.Specific.HookEventName != event {
			t.Errorf("accepted %s for %s", text, event)
		}
		answerAfterAsyncRequest(text)
		a := hookResult{entry: &hookEntry{}, stdout: text, outcome: outcomeSuccess}
		a.interpretSuccessfulOutput(event)
		o := mergeResults(&eventRun{event: event, hookName: event}, []hookResult{a})
		for _, e := range append(o.Frames, o.Notices...) {
			if _, err := protocol.Marshal(e); err != nil {
				t.Error(err)
			}
		}
		if o.Block != (len(o.Texts) > 0) || o.Decision == "deny" != (o.Block && (event == "PreToolUse" || event == "PreModelSwitch")) {
			t.Errorf("inconsistent outcome %+v", o)
		}
	})
}
