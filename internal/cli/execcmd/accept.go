package execcmd

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/scaffold"
	"github.com/claudeless/claudeless/internal/exec/verdict"
)

// Accept is the flag that has rules written.
type Accept struct {
	Accept bool `help:"Add a rule with a placeholder answer to the scenario for each prompt that no rule matched"`
}

// write writes rules for the prompts of a report that none answers, and says so.
func (f *Accept) write(ctx context.Context, s *process.System, file string, unmatched []verdict.Unmatched) error {
	if !f.Accept || len(unmatched) == 0 {
		return nil
	}
	var prompts []string
	for _, u := range unmatched {
		prompts = append(prompts, u.Prompt)
	}
	if err := scaffold.Rules(ctx, file, prompts); err != nil {
		return fmt.Errorf("--accept: %w", err)
	}
	for _, prompt := range prompts {
		fmt.Fprintf(s.Stderr, "claudeless: accepted: %s: a rule for %q, whose answer is still to be written\n", file, prompt)
	}
	return nil
}
