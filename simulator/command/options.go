// Package command implements the slash commands of a session: those of the CLI, custom commands and skills, and the
// prompts of MCP servers. Commands that change the conversation itself are part of package simulator.
package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Options configure a Set. InstructionFiles are optional; everything else is required.
type Options struct {
	State            *simulator.SessionState
	Catalog          *catalog.Catalog
	Servers          *mcp.Manager
	Rules            RuleGranter
	Session          SessionIDAndTitle
	Models           ModelNameOverrider
	Shell            PermissionCheckedShell
	Agents           SkillRunner
	Context          SystemPromptAndToolUsageSource
	InstructionFiles []catalog.InstructionFile
	Disabled         bool // commands are disabled (--disable-slash-commands)
}

// RuleGranter sets the permission rules that a slash command grants.
type RuleGranter interface {
	// SetGrantedRules grants rules, in place of the rules of the previous call.
	SetGrantedRules(rules []string)
}

// SessionIDAndTitle gives commands the id and the title of the session.
type SessionIDAndTitle interface {
	ID() string
	SetTitle(title string)
}

// SystemPromptAndToolUsageSource provides the part of the model's context that depends on neither files nor MCP servers.
type SystemPromptAndToolUsageSource interface {
	// SystemPromptAndToolTokens returns the tokens of the system prompt and the tools.
	SystemPromptAndToolTokens() slash.LoadedContextTokens
}

// PermissionCheckedShell runs the shell commands of command files.
type PermissionCheckedShell interface {
	// GrantRulesAndRunShellCommand runs a command under the permission rules of the session and the given rules, and returns its output.
	// pattern is the command as written in the file; the error is shown to the user.
	GrantRulesAndRunShellCommand(ctx context.Context, rules []string, command, pattern string) (string, error)
	// ProjectDir returns the directory of the session.
	ProjectDir() string
}

// SkillRunner runs skills in agents.
type SkillRunner interface {
	// RunSkill runs a skill with its text and more context for the model, and returns the answer.
	RunSkill(ctx context.Context, skill catalog.Command, text string, addedContext []string) (string, error)
}

// ModelNameOverrider replaces model names as the environment requires.
type ModelNameOverrider interface {
	// ModelNameAfterOverrides returns the model name that the environment substitutes for a name.
	ModelNameAfterOverrides(name string) string
}

type customCommand struct {
	definition catalog.Command
	options    Options
}

// Run returns the command's text for the model or, for a skill that runs in an agent, an outcome whose Work runs the agent.
func (c customCommand) Run(ctx context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	text, err := ExpandTextRunningShell(ctx, c.options.Shell, c.options.State, c.definition, call.Args)
	if err != nil {
		return &slash.Outcome{Text: err.Error(), Failed: true, Result: "custom", UsedTool: map[bool]string{false: slash.ShellToolOfCommandBody(c.definition.Body)}[strings.HasPrefix(err.Error(), "Shell command permission check failed")]}, nil
	}
	if c.definition.RunsInAgent {
		result := "custom"
		if c.definition.Source == "" { // a built-in skill
			result = call.Name
		}
		return &slash.Outcome{Result: result, Work: &slash.AgentWork{Source: c.definition.Source, Run: func(ctx context.Context, addedContext []string) (string, error) {
			return c.options.Agents.RunSkill(ctx, c.definition, text, addedContext)
		}}}, nil
	}
	if c.definition.Skill {
		c.options.State.RecordSkill(c.definition.Name, text)
	}
	x := &slash.Expansion{Name: c.definition.Name, Text: text, Kind: "slash_command", Source: c.definition.Source, Tools: c.definition.Tools, Effort: c.definition.Effort, UsedTool: slash.ShellToolOfCommandBody(c.definition.Body)}
	if c.definition.Model != "" {
		x.Model = c.options.Models.ModelNameAfterOverrides(c.definition.Model)
	}
	return nil, x
}

// ExpandTextRunningShell returns a command's or skill's text for the model, including shell output. The error is shown to the user.
func ExpandTextRunningShell(ctx context.Context, sh PermissionCheckedShell, state *simulator.SessionState, k catalog.Command, args string) (string, error) {
	text, err := slash.FillArgumentsAndRunShell(expandedCommandBody(k, sh.ProjectDir(), state.SessionStateSnapshot()), args, k.Arguments, func(command, pattern string) (string, error) {
		return sh.GrantRulesAndRunShellCommand(ctx, k.Tools, command, pattern)
	})
	if err == nil && k.Skill {
		text = "Base directory for this skill: " + k.Dir + "\n\n" + text
	}
	return text, err
}

func expandedCommandBody(k catalog.Command, project string, snapshot simulator.SessionStateSnapshot) string {
	values := []string{"${CLAUDE_SESSION_ID}", snapshot.SessionID, "${CLAUDE_EFFORT}", snapshot.Effort, "${CLAUDE_PROJECT_DIR}", project}
	if k.Skill {
		values = append(values, "${CLAUDE_SKILL_DIR}", k.Dir)
	}
	return strings.NewReplacer(values...).Replace(k.Body)
}

type modelOnlySkillCommand struct{ name, nameInResult string }

// Run returns a message that the user cannot invoke the skill.
func (c modelOnlySkillCommand) Run(context.Context, slash.Call) (*slash.Outcome, *slash.Expansion) {
	return &slash.Outcome{Result: c.nameInResult, IsPrompt: true, Text: fmt.Sprintf("This skill can only be invoked by Claude, not directly by users. Ask Claude to use the %q skill for you.", c.name)}, nil
}
