package claudecode

import "testing"

func TestParseRuleText(t *testing.T) {
	for text, want := range map[string]ParsedPermissionRule{
		"":                 {},
		"Bash":             {Tool: "Bash"},
		"Bash)":            {Tool: "Bash)"},
		"Bash(":            {Tool: "Bash", HasContent: true},
		"Bash()":           {Tool: "Bash", HasContent: true, IsClosed: true},
		"Bash(git *)":      {Tool: "Bash", Content: "git *", HasContent: true, IsClosed: true},
		"Bash(git":         {Tool: "Bash", Content: "git", HasContent: true},
		"Bash(echo (a) b)": {Tool: "Bash", Content: "echo (a) b", HasContent: true, IsClosed: true},
		`Bash(echo \)`:     {Tool: "Bash", Content: `echo \)`, HasContent: true},
		`Bash(echo \\)`:    {Tool: "Bash", Content: `echo \\`, HasContent: true, IsClosed: true},
		"mcp__s__*":        {Tool: "mcp__s__*"},
	} {
		if got := ParsePermissionRule(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// The rules that plan and auto mode ignore without a user to ask (observed with 2.1.330).
func TestRunsAnyCode(t *testing.T) {
	for content, want := range map[string]bool{
		"python3:*": true, "python3": true, "python *": true, "python3.11:*": true, "python3 -m foo:*": true, "py*": true, "node*": true,
		"npm run:*": true, "bash -c:*": true, "sudo -n:*": true, "yarn dlx:*": true, "cmd:*": true, "timeout:*": true,
		"npm *": false, "npm start:*": false, "python3 script.py": false, "node a.js *": false, "git:*": false, "make:*": false, "awk:*": false,
		"ts-node:*": false, "docker run:*": false, "cargo run:*": false, "pypy:*": false, "": false,
	} {
		if got := PermitsArbitraryCode(content); got != want {
			t.Errorf("RunsAnyCode(%q) = %v, want %v", content, got, want)
		}
	}
}
