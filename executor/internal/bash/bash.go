package bash

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/shellcmd"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Tools returns the Bash, Monitor and TaskStop tools.
func Tools(c *CommandRunner) []tool.Tool { return []tool.Tool{Bash(c), Monitor(c), TaskStop(c)} }

// Bash returns the tool that runs a shell command.
func Bash(c *CommandRunner) tool.Tool {
	t := tool.Tool{
		Name:          "Bash",
		RenameAliases: func(in *tool.OrderedObject) (string, bool) { return "", tool.RenameKey(in, "timeout_ms", "timeout") },
		Check: tool.TypedCheck(c, func(_ context.Context, _ *CommandRunner, in bashInput) *protocol.ToolResult {
			if strings.ContainsFunc(in.Command, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }) {
				return tool.InvalidInputResult("Bash", []tool.Issue{tool.CustomIssue("command contains control characters that would be hidden in the approval dialog", "command")})
			}
			return refuseLongSleep(in)
		}),
		Run: tool.TypedRunWithCall(c, runBash),
	}
	if c.areBackgroundTasksDisabled() {
		t.UnavailableKeys = []string{"run_in_background"}
	}
	t.Prepare = func(in *tool.OrderedObject) bool { return normalizeBashInput(t, in, c.options.Shell.Dir()) }
	return t
}

// normalizeBashInput decodes Unicode escapes. In a valid input, it also removes a leading "cd DIR && " for the current directory,
// replaces `\\;` by `\;` and orders the keys (observed with 2.1.330).
func normalizeBashInput(bash tool.Tool, in *tool.OrderedObject, dir string) (changed bool) {
	decoded := tool.DecodeUnicodeEscapesInStrings(in)
	raw, err := in.MarshalJSON()
	if err != nil || bash.Validate(protocol.ToolUse{Name: bash.Name, Input: raw}) != nil {
		return decoded
	}
	command := strings.TrimPrefix(tool.JSONStringOrConcatenatedList(in.Get("command")), protocol.ChangeDirectoryPrefix(dir))
	ordered := tool.OrderedObject{}.Set("command", tool.Quote(strings.ReplaceAll(command, `\\;`, `\;`)))
	for _, key := range []string{"description", "timeout", "run_in_background", "dangerouslyDisableSandbox"} {
		if value := in.Get(key); value != nil {
			ordered = ordered.Set(key, value)
		}
	}
	*in = ordered
	return true
}

func runBash(ctx context.Context, c *CommandRunner, call protocol.ToolUse, in bashInput) protocol.ToolResult {
	if refusal := refuseLongSleep(in); refusal != nil {
		return *refusal
	}
	r := &runningCommand{commands: c, input: in, keepsDirectory: call.Agent != nil || isSetAndNotFalse(c.options.Shell.Getenv("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR")), info: taskInfoOfCall(call, in), timeout: c.timeoutOfCall(in)}
	if in.RunInBackground {
		return r.startProcessInBackground(ctx)
	}
	return r.runUntilExitOrTimeout(ctx)
}

// IsReadOnly reports whether a Bash call only reads.
func IsReadOnly(input json.RawMessage) bool {
	in, err := tool.Decode[bashInput](input)
	return err == nil && !in.RunInBackground && isReadOnlyCommand(in.Command)
}

func isReadOnlyCommand(command string) bool {
	script, err := shellcmd.Parse(command)
	return err == nil && script.IsReadOnly()
}

func refuseLongSleep(in bashInput) *protocol.ToolResult {
	if in.RunInBackground {
		return nil
	}
	what := tool.DescribeLongSleep(in.Command)
	if what == "" {
		return nil
	}
	return new(tool.Refuse("Blocked: %s. To wait for a condition, use Monitor with an until-loop (e.g. `until <check>; do sleep 2; done`). "+
		"To wait for a command you started, use run_in_background: true. Do not chain shorter sleeps to work around this block.", what))
}
