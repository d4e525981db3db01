// Package triage asks claude what an issue is.
package triage

import (
	"fmt"
	"os/exec"
	"strings"
)

// Triage returns what claude says about an issue.
func Triage(issue int) (string, error) {
	out, err := exec.Command("claude", "-p", fmt.Sprintf("triage issue %d", issue), "--allowedTools", "Bash").Output()
	if err != nil {
		return "", fmt.Errorf("asking claude about issue %d: %w", issue, err)
	}
	return strings.TrimSpace(string(out)), nil
}
