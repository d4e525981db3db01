package command

import (
	"context"
	"slices"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Set holds the commands of one session; it is a [simulator.Commands].
type Set struct {
	o     Options
	color string // color of the prompt bar; empty = none
}

// New makes the commands of a session.
func New(o Options) *Set { return &Set{o: o} }

// Find returns a command: a custom one or a skill, one of the CLI, or an MCP
// prompt.
func (s *Set) Find(name string) (simulator.Command, bool) {
	k, isCustom := s.o.Catalog.Command(name)
	switch {
	case s.o.Disabled:
		return simulator.UnavailableCommand{}, simulator.HandlesCommand(name) || Known(name)
	case isCustom && !k.NoUser:
		return customCommand{k, s.o.Models, s.o.Shell, s.o.Agents, s.o.Live}, true
	case simulator.HandlesCommand(name):
		return nil, false
	case isCustom:
		return modelOnlySkill(k.Name), true
	case slices.Contains(claudecode.Unavailable(), name):
		return simulator.UnavailableCommand{}, true
	}
	if b, ok := claudecode.BuiltinNamed(name); ok && !b.Skill {
		return builtin{s, b.Name}, true
	}
	for _, p := range prompts(s.o.Servers) {
		if p.Command() == name {
			return prompt{p, s.o.Servers}, true
		}
	}
	return nil, false
}

// Loaded returns what occupies the context in addition to the conversation, for
// /context.
func (s *Set) Loaded() slash.LoadedContext { return loaded(s.o) }

// Grant makes rules valid until the next call.
func (s *Set) Grant(rules []string) { s.o.Rules.Grant(rules) }

// Known reports whether a command is built into the CLI, at least on a terminal.
func Known(name string) bool {
	b, ok := claudecode.BuiltinNamed(name)
	return ok && !b.Skill || slices.Contains(claudecode.Unavailable(), name)
}

// builtin is a built-in command of the CLI.
type builtin struct {
	s    *Set
	name string
}

// Run runs the command; a nil outcome means that it becomes a prompt for the model.
// The texts are those of the real CLI.
func (c builtin) Run(_ context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	said, o := slash.Outcome{Name: c.name}, c.s.o
	switch c.name {
	case "model":
		said.Text, said.Model = chooseModel(o, call.Args)
	case "effort":
		said.Text = chooseEffort(o, call.Args)
	case "output-style":
		said.Text = chooseStyle(o, call.Args)
	case "rename":
		said.Text, said.Title = rename(o, call.Args)
	case "mcp":
		said.Text = servers(o, call.Args)
	case "color":
		said.Text = c.s.paint(call.Args)
	case "goal":
		if call.Args == "" {
			said.Text = "No goal set. Usage: `/goal <condition>`"
		}
	default:
		said.Text = fixedText(o, c.name)
	}
	if said.Text == "" {
		return nil, nil
	}
	return &said, nil
}

// paint sets the color of the prompt bar.
func (s *Set) paint(name string) string {
	text, color := paint(s.color, name)
	s.color = color
	return text
}
