package command

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/simulator/slash"
)

// custom is a command or a skill found on disk.
type custom struct {
	k      catalog.Command
	models Models
	shell  Shell
}

// Run gives the model its text.
func (c custom) Run(ctx context.Context, call slash.Call) (*slash.Said, *slash.Expansion) {
	text, err := Text(ctx, c.shell, c.k, call.Args)
	if err != nil {
		return &slash.Said{Text: err.Error(), Failed: true, Result: "custom"}, nil
	}
	x := &slash.Expansion{Text: text, Kind: "slash_command", Source: c.k.Source, Tools: c.k.Tools}
	if c.k.Model != "" {
		x.Model = c.models.Name(c.k.Model)
	}
	return nil, x
}

// Text is what the model reads of a custom command or a skill, with what its
// shell commands print. The error is for the user.
func Text(ctx context.Context, sh Shell, k catalog.Command, args string) (string, error) {
	text, err := slash.Run(k.Body, args, k.Arguments, func(command, pattern string) (string, error) {
		return sh.Print(ctx, k.Tools, command, pattern)
	})
	if err == nil && k.Skill {
		text = "Base directory for this skill: " + k.Dir + "\n\n" + text
	}
	return text, err
}

// modelsOnly is a skill that users cannot call.
type modelsOnly string

// Run says so.
func (c modelsOnly) Run(context.Context, slash.Call) (*slash.Said, *slash.Expansion) {
	return &slash.Said{
		Text: fmt.Sprintf("This skill can only be invoked by Claude, not directly by users. Ask Claude to use the %q skill for you.", string(c)),
	}, nil
}
