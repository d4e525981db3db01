package hook

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestOutputForm checks the error texts for invalid hook output (observed with 2.1.330).
func TestOutputForm(t *testing.T) {
	of := func(event, keys string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + event + `",` + keys + `}}`
	}
	decided := func(keys string) string { return of("PermissionRequest", `"decision":`+keys) }
	allowed := func(update string) string {
		return decided(`{"behavior":"allow","updatedPermissions":[` + update + `]}`)
	}
	const in, updated = "hookSpecificOutput.", "hookSpecificOutput.decision.updatedPermissions.0."
	const usage = ` (PermissionRequest decision must be {"behavior": "allow"} or {"behavior": "deny", "message": "..."})`
	const events = `hookSpecificOutput.hookEventName: expected one of "PreToolUse" | "UserPromptSubmit" | "UserPromptExpansion" | ` +
		`"SessionStart" | "Setup" | "PreModelSwitch" | …`
	for output, want := range map[string]string{
		`{"continue":"yes"}`:                                       `continue: expected boolean, received string`,
		`{"continue":null}`:                                        `continue: expected boolean, received null`,
		`{"systemMessage":5,"continue":[]}`:                        `continue: expected boolean, received array`,
		`{"systemMessage":{}}`:                                     `systemMessage: expected string, received object`,
		`{"decision":""}`:                                          `decision: Invalid option: expected one of "approve"|"block"`,
		`{"decision":null}`:                                        `decision: Invalid option: expected one of "approve"|"block"`,
		`{"hookSpecificOutput":5}`:                                 `hookSpecificOutput: expected object, received number`,
		`{"hookSpecificOutput":null}`:                              `hookSpecificOutput: expected object, received null`,
		`{"hookSpecificOutput":{}}`:                                `hookSpecificOutput is missing required field "hookEventName"`,
		`{"hookSpecificOutput":{"hookEventName":5}}`:               events,
		of("Bogus", `"retry":true`):                                events,
		of("PreToolUse", `"permissionDecision":""`):                in + `permissionDecision: Invalid option: expected one of "allow"|"deny"|"ask"|"defer"`,
		of("PreModelSwitch", `"permissionDecision":"x"`):           in + `permissionDecision: Invalid option: expected one of "allow"|"deny"|"ask"`,
		of("PreToolUse", `"updatedInput":[1]`):                     in + `updatedInput: expected record, received array`,
		of("PreToolUse", `"additionalContext":5,"updatedInput":5`): in + `updatedInput: expected record, received number`,
		of("SessionStart", `"watchPaths":["/x",5]`):                in + `watchPaths.1: expected string, received number`,
		of("WorktreeCreate", `"retry":5`):                          in + `worktreePath: expected string, received undefined`,
		of("Elicitation", `"action":5`):                            in + `action: Invalid option: expected one of "accept"|"decline"|"cancel"`,
		of("PermissionRequest", `"retry":5`):                       in + `decision: expected object, received undefined` + usage,
		decided(`[]`):                                              in + `decision: expected object, received array` + usage,
		decided(`{}`):                                              in + `decision.behavior: expected one of "allow" | "deny"`,
		decided(`{"behavior":"deny","message":5}`):                 in + `decision.message: expected string, received number`,
		decided(`{"behavior":"allow","updatedPermissions":5}`):     in + `decision.updatedPermissions: expected array, received number`,
		allowed(`5`):                                               strings.TrimSuffix(updated, ".") + `: expected object, received number`,
		allowed(`{}`):                                              updated + `type: Invalid discriminator value. Expected 'addRules' | 'replaceRules' | 'removeRules' | 'setMode' | 'addDirectories' | 'removeDirectories'`,
		allowed(`{"type":"addRules"}`):                             updated + `behavior: expected one of "allow" | "deny" | "ask"`,
		allowed(`{"type":"addRules","behavior":"ask","rules":[{}],"destination":"session"}`): updated + `rules.0.toolName: expected string, received undefined`,
		allowed(`{"type":"setMode","mode":"plan"}`):                                          updated + `destination: Invalid option: expected one of "userSettings"|"projectSettings"|"localSettings"|"session"|"cliArg"`,
		allowed(`{"type":"setMode","mode":"x","destination":"session"}`):                     updated + `mode: Invalid option: expected one of "acceptEdits"|"auto"|"bypassPermissions"|"default"|"dontAsk"|"plan"`,
		allowed(`{"type":"addDirectories","destination":"session"}`):                         updated + `directories: expected array, received undefined`,
	} {
		a := hookResult{stdout: output, exitCode: new(0), outcome: outcomeSuccess}
		a.interpretSuccessfulOutput("Stop") // the schema is checked before the name of the event
		if got, _, _ := strings.Cut(a.stderr, "\n"); got != "Hook JSON output validation failed — "+want {
			t.Errorf("%s\nsays %s\nwant %s", output, got, want)
		}
		if a.outcome != outcomeError || a.missingVerdictReason != noVerdictBecauseInvalidOutput || *a.exitCode != 0 || a.stdout != output {
			t.Errorf("%s: %+v", output, a)
		}
	}
	for _, output := range []string{
		`{"async":"x"}`, `{"asyncTimeout":"x"}`, `{"async":true,"continue":5}`, `{"unknown":5}`,
		of("Stop", `"retry":5,"decision":7,"permissionDecision":"x"`),
	} {
		if _, err := parseOutput("Stop", json.RawMessage(output)); err != nil {
			t.Errorf("%s: %v", output, err)
		}
	}
}
