package command

import (
	"context"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Set is the commands of one session. It implements [simulator.Commands].
type Set struct {
	options        Options
	promptBarColor string // color of the prompt bar; empty means none
}

// New returns the commands of a session.
func New(o Options) *Set { return &Set{options: o} }

// Find returns the command with a name: a custom command, a skill, a built-in command or an MCP prompt. It returns
// false for unknown names, and for commands that the conversation itself runs (see [simulator.HandlesCommand]).
func (s *Set) Find(name string) (simulator.Command, bool) {
	k, isCustom := s.options.Catalog.Command(name)
	switch {
	case s.options.Disabled:
		return simulator.UnavailableSlashCommand{}, simulator.HandlesCommand(name) || IsKnown(name)
	case isCustom && !k.HiddenFromUser:
		return customCommand{k, s.options}, true
	case simulator.HandlesCommand(name):
		return nil, false
	case isCustom:
		return modelOnlySkillCommand(k.Name), true
	case slices.Contains(claudecode.TerminalOnlyCommands(), name):
		return simulator.UnavailableSlashCommand{}, true
	}
	b, isBuiltin := claudecode.BuiltinCommandNamed(name)
	switch {
	case isBuiltin && !b.Skill:
		return builtinCommand{s, b.Name}, true
	case b.RunsInAgent:
		return customCommand{catalog.Command{Name: b.Name, Description: b.Description, Body: strings.TrimSpace("/" + name + " $ARGUMENTS"), RunsInAgent: true}, s.options}, true
	}
	if s.options.Servers == nil {
		return nil, false
	}
	for _, st := range s.options.Servers.Servers() {
		for _, p := range st.Prompts {
			if p.Command() == name {
				return promptCommand{p, s.options.Servers}, true
			}
		}
	}
	return nil, false
}

// Loaded returns the parts of the context other than the conversation, for /context.
func (s *Set) Loaded() slash.LoadedContext { return loadedContext(s.options) }

// Grant makes rules apply until the next call of Grant.
func (s *Set) Grant(rules []string) { s.options.Rules.Grant(rules) }

// IsKnown reports whether the real CLI has a built-in command with this name, even if it works only on a terminal.
func IsKnown(name string) bool {
	b, ok := claudecode.BuiltinCommandNamed(name)
	return ok && !b.Skill || slices.Contains(claudecode.TerminalOnlyCommands(), name)
}

type builtinCommand struct {
	set  *Set
	name string
}

// Run runs the command. A nil outcome means that the model gets a prompt. The output has the wording of the real CLI.
func (c builtinCommand) Run(_ context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	said, o := slash.Outcome{Name: c.name}, c.set.options
	switch c.name {
	case "model":
		said.Text, said.Model = answerModel(o, call.Args)
	case "effort":
		said.Text = answerEffort(o, call.Args)
	case "output-style":
		said.Text = answerOutputStyle(o, call.Args)
	case "rename":
		said.Text, said.Title = renameSession(o, call.Args)
	case "mcp":
		said.Text = serversText(o, call.Args)
	case "color":
		said.Text, c.set.promptBarColor = answerColor(c.set.promptBarColor, call.Args)
	case "goal":
		if call.Args == "" {
			said.Text = "No goal set. Usage: `/goal <condition>`"
		}
	default:
		said.Text = fixedBuiltinCommandAnswer(o, c.name)
	}
	if said.Text == "" {
		return nil, nil
	}
	return &said, nil
}
