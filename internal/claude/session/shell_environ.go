package session

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/claude/launch"
)

// commandEnviron returns the environment of the commands that the model runs (observed with 2.1.329).
func commandEnviron(plan launch.Plan, effort, sessionID, transcriptPath string) []string {
	env := append(slices.Clone(plan.Environ),
		"AI_AGENT="+aiAgentVariableValue(plan.Version, "agent"),
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_SESSION_ID="+sessionID,
		"CLAUDE_PID="+strconv.Itoa(plan.PID),
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
	)
	env = append(env, variablesOfHooksAndCommands(plan, sessionID, transcriptPath)...)
	if effort != "" {
		env = append(env, "CLAUDE_EFFORT="+effort)
	}
	if plan.Executable != "" {
		env = append(env, "CLAUDE_CODE_EXECPATH="+plan.Executable)
	}
	return env
}

// aiAgentVariableValue returns the value of AI_AGENT in the environment of commands and hooks.
func aiAgentVariableValue(version, agentOrHarness string) string {
	return "claude-code_" + strings.ReplaceAll(version, ".", "-") + "_" + agentOrHarness
}

// RealCLIMessagingSocketPath returns the path of the socket on which the real CLI receives messages, or "" if
// it has none. claudeless does not open the socket. The path contains the process id, or 1 in a repeatable run.
func RealCLIMessagingSocketPath(plan launch.Plan) string {
	if plan.Customization.Bare || plan.Customization.Restricted {
		return ""
	}
	pid := plan.PID
	if plan.Clock.IsReproducible() {
		pid = 1
	}
	return filepath.Join(plan.Temp, "cc-socks", strconv.Itoa(pid)+".sock")
}

// variablesOfHooksAndCommands returns the environment variables that tell hooks and commands a directory for notes, and
// the session's socket and token (observed with 2.1.330).
func variablesOfHooksAndCommands(plan launch.Plan, sessionID, transcriptPath string) (environ []string) {
	if plan.TaskTemp != "" {
		environ = append(environ, "CLAUDE_CODE_CHILD_NOTES_DIR="+filepath.Join(sessionDirBelowTaskTemp(plan, transcriptPath, sessionID), "started"))
	}
	if socket := RealCLIMessagingSocketPath(plan); socket != "" {
		environ = append(environ, "CLAUDE_CODE_MESSAGING_SOCKET="+socket, fmt.Sprintf("CLAUDE_CODE_MESSAGING_TOKEN=%.16x", sha256.Sum256([]byte(sessionID))))
	}
	return environ
}

func sessionDirBelowTaskTemp(plan launch.Plan, transcriptPath, sessionID string) string {
	return filepath.Join(plan.TaskTemp, fmt.Sprintf("claude-%d", plan.UID), filepath.Base(filepath.Dir(transcriptPath)), sessionID)
}

// runAPIKeyHelperReportFailure runs apiKeyHelper of the settings and returns the line that the real CLI prints if it fails (observed
// with 2.1.330). claudeless does not use the key.
func runAPIKeyHelperReportFailure(ctx context.Context, plan launch.Plan) string {
	line, _ := plan.Settings.Merged()["apiKeyHelper"].(string)
	if line == "" {
		return ""
	}
	const limit = 64 << 10 // of the output in bytes
	helper := proc.Command{Path: proc.Shell, Args: []string{"-c", line}, Env: plan.Environ, Dir: plan.CWD}
	res, err := proc.Run(ctx, proc.RunOptions{Command: helper, Limit: limit, Timeout: time.Minute})
	reason := ""
	switch {
	case err != nil:
		reason = err.Error()
	case res.Exit.Signal != "":
		reason = "exited undefined"
	case res.Exit.Code != 0:
		reason = strings.TrimSuffix(fmt.Sprintf("exited %d: %s", res.Exit.Code, strings.TrimSpace(string(res.Stderr))), ": ")
	case strings.TrimSpace(string(res.Stdout)) == "":
		reason = "did not return a value"
	default:
		return ""
	}
	return "apiKeyHelper failed: " + reason + "\n"
}
