package session

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// RunShell runs a shell command that the user typed, without permission. If it fails, stderr contains all its output.
func RunShell(ctx context.Context, s *Session, command string) (stdout, stderr string) {
	if strings.HasPrefix(strings.TrimSpace(command), "sleep ") {
		command = ":\n" + command // the tool refuses commands that begin with a long sleep, but users may run them
	}
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return "", err.Error()
	}
	shell := executor.Chain(builtinExecutor{s.tools}, executor.Canned(s.policy.canned))
	result, err := shell.Execute(ctx, protocol.ToolUse{Type: "tool_use", Name: "Bash", Input: input})
	if err != nil {
		return "", err.Error()
	}
	text := result.Content.Plain()
	if result.IsError {
		if status, output, _ := strings.Cut(text, "\n"); strings.HasPrefix(status, "Exit code ") {
			text = output
		}
		return "", text
	}
	if at := strings.LastIndex(text, "\nShell cwd was reset to "); at >= 0 {
		return text[:at], text[at:]
	}
	return text, ""
}
