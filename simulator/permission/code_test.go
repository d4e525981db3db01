package permission_test

import (
	"encoding/json"
	"testing"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// TestReasonCodes checks the reason codes for calls that are refused or need approval (observed with 2.1.330).
func TestReasonCodes(t *testing.T) {
	for _, tt := range []struct{ rule, tool, input, code, source, breaker string }{
		{tool: "Bash", input: "curl a", code: "bashMiss:no-rule-match"},
		{tool: "Bash", input: "curl a; touch b", code: "bashMiss:no-rule-match"},
		{tool: "Bash", input: "touch a; touch b", code: "subcommandResults"},
		{tool: "Bash", input: "touch a", code: "unknown"},
		{tool: "Bash", input: "echo $(curl a)", code: "bashMiss:too-complex"},
		{tool: "Bash", input: "(curl a)", code: "bashMiss:shell-operators"},
		{tool: "Bash", input: "eval ls", code: "bashMiss:semantics"},
		{tool: "Bash", input: "find . -delete", code: "bashMiss:semantics"},
		{tool: "Bash", input: "cd d && cd ..", code: "bashMiss:multi-cd"},
		{tool: "Bash", input: "cd d && git status", code: "bashMiss:cd-git-compound"},
		{tool: "Bash", input: "cd d && echo x > y", code: "bashMiss:cd-compound-redirect"},
		{tool: "Bash", input: "cd d && touch q", code: "bashMiss:cd-compound-write"},
		{tool: "Bash", input: "cp -r a b", code: "bashMiss:flag-validation"},
		{tool: "Bash", input: "rm -rf /", code: "safetyCheck", breaker: "dangerousRemoval"},
		{tool: "Bash", input: "ls &", code: "safetyCheck", breaker: "backgroundOperator"},
		{tool: "Write", input: cwd + "/.claude/settings.json", code: "safetyCheck", breaker: "claudeSettingsFile"},
		{tool: "Write", input: cwd + "/.git/config", code: "safetyCheck"},
		{tool: "Write", input: cwd + "/a", code: "unknown"},
		{tool: "Write", input: "/elsewhere/a", code: "workingDir"},
		{rule: "deny Bash(curl *)", tool: "Bash", input: "curl a", code: "rule:userSettings", source: "userSettings"},
		{rule: "deny Edit(a)", tool: "Write", input: cwd + "/a", code: "rule:userSettings", source: "userSettings"},
		{rule: "ask Bash(touch *)", tool: "Bash", input: "touch a", code: "rule:userSettings", source: "userSettings"},
		{rule: "ask Bash(touch *)", tool: "Bash", input: "npm test; touch q", code: "subcommands:bashMiss:no-rule-match+rule:userSettings", source: "userSettings"},
	} {
		var rules []string
		if tt.rule != "" {
			rules = append(rules, tt.rule)
		}
		p := newPolicy(t, files(permission.Options{}), rules...)
		key := map[string]string{"Bash": "command", "Write": "file_path"}[tt.tool]
		input, err := json.Marshal(map[string]string{key: tt.input, "content": "x"})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Decide(protocol.ToolUse{Name: tt.tool, Input: input}).Decision
		if got.ReasonCode != tt.code || got.RuleSource != tt.source || got.CircuitBreaker != tt.breaker {
			t.Errorf("%s %s %s: code %q, source %q, circuit breaker %q; want %q, %q, %q",
				tt.rule, tt.tool, tt.input, got.ReasonCode, got.RuleSource, got.CircuitBreaker, tt.code, tt.source, tt.breaker)
		}
	}
}
