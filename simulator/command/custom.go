package command

import (
	"context"
	"fmt"

	"github.com/claudeless/claudeless/internal/catalog"
	"github.com/claudeless/claudeless/simulator/slash"
)

// custom is a command or a skill found on disk.
type custom struct {
	k      catalog.Command
	models Models
}

// Run gives the model its text.
func (c custom) Run(_ context.Context, call slash.Call) (*slash.Said, *slash.Expansion) {
	x := &slash.Expansion{Text: Text(c.k, call.Args), Kind: "slash_command", Source: c.k.Source, Tools: c.k.Tools}
	if c.k.Model != "" {
		x.Model = c.models.Name(c.k.Model)
	}
	return nil, x
}

// Text is what the model reads of a custom command or a skill.
func Text(k catalog.Command, args string) string {
	text := slash.Fill(k.Body, args)
	if k.Skill {
		text = "Base directory for this skill: " + k.Dir + "\n\n" + text
	}
	return text
}

// modelsOnly is a skill that users cannot call.
type modelsOnly string

// Run says so.
func (c modelsOnly) Run(context.Context, slash.Call) (*slash.Said, *slash.Expansion) {
	return &slash.Said{
		Text: fmt.Sprintf("This skill can only be invoked by Claude, not directly by users. Ask Claude to use the %q skill for you.", string(c)),
	}, nil
}
