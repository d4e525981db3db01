// Package triage asks claude to classify an issue.
package triage

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Triage returns the answer of claude about an issue.
func Triage(ctx context.Context, issue int) (string, error) {
	out, err := exec.CommandContext(ctx, "claude", "-p", fmt.Sprintf("triage issue %d", issue), "--allowedTools", "Bash").Output()
	if err != nil {
		return "", fmt.Errorf("asking claude about issue %d: %w", issue, err)
	}
	return strings.TrimSpace(string(out)), nil
}
