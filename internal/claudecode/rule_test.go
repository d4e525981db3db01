package claudecode

import "testing"

func TestParseRuleText(t *testing.T) {
	for text, want := range map[string]RuleText{
		"":                 {},
		"Bash":             {Tool: "Bash"},
		"Bash)":            {Tool: "Bash)"},
		"Bash(":            {Tool: "Bash", HasContent: true},
		"Bash()":           {Tool: "Bash", HasContent: true, IsClosed: true},
		"Bash(git *)":      {Tool: "Bash", Content: "git *", HasContent: true, IsClosed: true},
		"Bash(git":         {Tool: "Bash", Content: "git", HasContent: true},
		"Bash(echo (a) b)": {Tool: "Bash", Content: "echo (a) b", HasContent: true, IsClosed: true},
		"mcp__s__*":        {Tool: "mcp__s__*"},
	} {
		if got := ParseRuleText(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}
