package execcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Accept is the flag --accept, which adds missing rules.
type Accept struct {
	Accept bool `help:"Add a rule with a placeholder answer to the scenario for each prompt that no rule matched"`
}

// addRules adds rules for the unmatched prompts of a report to their scenarios, and prints what it did.
func (f *Accept) addRules(ctx context.Context, s *process.System, unmatched []verdict.Unmatched) error {
	if !f.Accept {
		return nil
	}
	prompts := map[string][]string{} // by file
	for _, u := range unmatched {
		if u.File != "" {
			prompts[u.File] = append(prompts[u.File], u.Prompt)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(prompts)) {
		if err := writeRules(ctx, s, file, prompts[file]); err != nil {
			return err
		}
	}
	return nil
}

// writeRules adds a rule for each prompt to one scenario.
func writeRules(ctx context.Context, s *process.System, file string, prompts []string) error {
	if err := verdict.WriteMissingRules(ctx, file, prompts); err != nil {
		return fmt.Errorf("--accept: %w", err)
	}
	for _, prompt := range prompts {
		fmt.Fprintf(s.Stderr, "claudeless: accepted: %s: added a rule for %q; write its answer\n", file, prompt)
	}
	return nil
}
