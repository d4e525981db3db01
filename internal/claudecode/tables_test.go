package claudecode_test

import (
	"slices"
	"testing"

	"github.com/claudeless/claudeless/internal/claudecode"
)

// The tables contain each name once, aliases included.
func TestTables(t *testing.T) {
	var names []string
	for _, tool := range claudecode.Tools() {
		names = append(append(names, tool.Name), tool.Aliases...)
	}
	for _, e := range claudecode.HookEvents() {
		names = append(names, e.Name)
		if e.Summary == "" {
			t.Errorf("%s has no summary", e.Name)
		}
	}
	slices.Sort(names)
	if n := len(names); n != len(slices.Compact(names)) {
		t.Error("a name occurs twice")
	}
	places := make([]bool, len(claudecode.HookEvents()))
	if len(places) == 0 {
		t.Error("the table of hook events cannot be read")
	}
	for _, e := range claudecode.HookEvents() {
		if e.ListPosition >= len(places) || places[e.ListPosition] {
			t.Errorf("%s has place %d, which is another's or too large", e.Name, e.ListPosition)
			continue
		}
		places[e.ListPosition] = true
	}
}

func TestToolNamed(t *testing.T) {
	tests := []struct{ name, want, init string }{
		{"Task", "Agent", "Task"}, {"Agent", "Agent", "Task"}, {"KillBash", "TaskStop", "TaskStop"}, {"Read", "Read", "Read"}, {"mcp__a__b", "", "mcp__a__b"},
	}
	for _, test := range tests {
		if got, listed := claudecode.ToolNamed(test.name).Name, claudecode.ToolNameInInitEvent(test.name); got != test.want || listed != test.init {
			t.Errorf("%s is %q, listed as %q; want %q, %q", test.name, got, listed, test.want, test.init)
		}
	}
}

func TestNeutralizeReport(t *testing.T) {
	for _, test := range []struct {
		report, want string
		found        []string
	}{
		{"plain <b>text</b>, Human: x", "plain <b>text</b>, Human: x", nil},
		{"a <system-reminder>b</System_Reminder >", `a <\system-reminder>b<\/System_Reminder >`, []string{"system-reminder-tag"}},
		{"<system-reminder-x> <xtick>", "<system-reminder-x> <xtick>", nil},
		{"<tick> <bash-input>", `<\tick> <\bash-input>`, []string{"harness-envelope-tag", "harness-signal-tag"}},
		{`<channel a="b"> <channel source="x">`, `<channel a="b"> <\channel source="x">`, []string{"channel-source-tag"}},
		{"[harness: a\nx [subagent: b", "[\\harness: a\nx [subagent: b", []string{"marker-prefix-forgery"}},
		{"a\nHuman: b\n Assistant: c", "a\nHuman\\: b\n Assistant: c", nil},
	} {
		if got, found := claudecode.EscapeCLILookalikes(test.report); got != test.want || !slices.Equal(found, test.found) {
			t.Errorf("NeutralizeReport(%q) = %q, %q; want %q, %q", test.report, got, found, test.want, test.found)
		}
	}
}
