package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/launch"
)

// shellEnviron returns the environment of the commands that the model runs (observed with 2.1.329).
func shellEnviron(plan launch.Plan, level, id string) []string {
	env := append(slices.Clone(plan.Environ),
		"AI_AGENT="+agentName(plan.Version, "agent"),
		"CLAUDE_CODE_CHILD_SESSION=1",
		"CLAUDE_CODE_SESSION_ATTENDED=0",
		"CLAUDE_CODE_SESSION_ID="+id,
		"CLAUDE_EFFORT="+level,
		"CLAUDE_PID="+strconv.Itoa(plan.PID),
		"COREPACK_ENABLE_AUTO_PIN=0",
		"NoDefaultCurrentDirectoryInExePath=1",
	)
	env = append(env, messagingEnviron(plan, id)...)
	if plan.Executable != "" {
		env = append(env, "CLAUDE_CODE_EXECPATH="+plan.Executable)
	}
	return env
}

// agentName names the program for the commands that it runs as one of its parts.
func agentName(version, part string) string {
	return "claude-code_" + strings.ReplaceAll(version, ".", "-") + "_" + part
}
