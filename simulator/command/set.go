package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Set contains the slash commands of one session. It implements [simulator.SlashCommands].
type Set struct {
	options        Options
	promptBarColor string // color of the prompt bar; empty means none
}

// New returns the commands of a session.
func New(o Options) *Set { return &Set{options: o} }

// Find returns the command with a name: a custom command, a skill, a built-in command or an MCP prompt. It returns
// false for unknown names, and for commands that the conversation itself runs (see [simulator.IsConversationCommand]).
func (s *Set) Find(name string) (sessionCommand simulator.SlashCommand, found bool) {
	k, isCustom := s.options.Catalog.Command(name)
	switch {
	case s.options.Disabled:
		return simulator.SlashCommandAnsweringUnavailable{}, simulator.IsConversationCommand(name) || IsKnownBuiltin(name)
	case isCustom && !k.HiddenFromUser:
		return customCommand{k, s.options}, true
	case simulator.IsConversationCommand(name):
		return nil, false
	case isCustom:
		return modelOnlySkillCommand{k.Name, "custom"}, true
	case slices.Contains(claudecode.TerminalOnlyCommands(), name):
		return simulator.SlashCommandAnsweringUnavailable{}, true
	}
	b, isBuiltin := claudecode.PrintModeCommandNamed(name)
	prompt, isPrompt := catalog.BuiltInSkill(name)
	switch {
	case isBuiltin && !b.Skill:
		return builtinCommand{s, b.Name}, true
	case !isBuiltin && isPrompt:
		return modelOnlySkillCommand{name, name}, true
	case b.RunsInAgent:
		return customCommand{prompt, s.options}, true
	}
	for _, st := range s.options.Servers.Servers() {
		for _, p := range st.Prompts {
			if p.SlashCommand() == name || mcpPromptTitle(p) == name {
				return mcpPromptCommand{p, s.options.Servers}, true
			}
		}
	}
	return nil, false
}

// LooksLikePath reports whether text that begins with a slash, and calls no command, is a path: a file with this path exists, or the text
// contains a dot.
func (*Set) LooksLikePath(text string) bool {
	_, err := os.Lstat(text)
	return err == nil || strings.Contains(text, ".")
}

// LoadedContext returns the parts of the context other than the conversation, for /context.
func (s *Set) LoadedContext() slash.LoadedContextTokens { return loadedContext(s.options) }

// SetGrantedRules makes rules apply until its next call.
func (s *Set) SetGrantedRules(rules []string) { s.options.Rules.SetGrantedRules(rules) }

// IsKnownBuiltin reports whether the real CLI has a built-in command with this name, even if it works only on a terminal.
func IsKnownBuiltin(name string) bool {
	b, ok := claudecode.PrintModeCommandNamed(name)
	return ok && !b.Skill || slices.Contains(claudecode.TerminalOnlyCommands(), name)
}

type builtinCommand struct {
	set  *Set
	name string
}

// Run runs the command. A nil outcome means that the model gets a prompt. The output has the wording of the real CLI.
func (c builtinCommand) Run(ctx context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	said, o := slash.Outcome{Name: c.name}, c.set.options
	switch c.name {
	case "model":
		said.Text, said.Model = answerAndModelToSet(o, call.Args)
	case "effort":
		said.Text = setEffortAndAnswer(o, call.Args)
	case "output-style":
		said.Text = setOutputStyleAndAnswer(o, call.Args)
	case "rename":
		said.Text, said.Title = setTitleAndAnswer(o, call.Args)
	case "mcp":
		said.Text = mcpCommandAnswer(o, call.Args)
	case "color":
		said.Text, c.set.promptBarColor = answerAndPromptBarColor(c.set.promptBarColor, call.Args)
	case "security-review": // its text begins with the changes of the branch
		review := catalog.Command{Body: "!`git diff --name-only origin/HEAD...`", Tools: []string{"Bash(git diff:*)"}}
		if _, err := ExpandTextRunningShell(ctx, o.Shell, o.State, review, ""); err != nil && !strings.Contains(err.Error(), "not a git repository") {
			said.Text, said.Failed = err.Error(), true
		}
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

// fixedBuiltinCommandAnswer returns the answer to a built-in command that changes nothing; empty means the model answers.
func fixedBuiltinCommandAnswer(o Options, commandName string) string {
	switch commandName {
	case "agents":
		return "The /agents wizard has been removed.\n\n" + "Ask Claude to create or update subagents for you (e.g. \"create a code-reviewer subagent that ...\"),\n" +
			"or edit the files directly:\n  • .claude/agents/       (this project)\n  • ~/.claude/agents/     (all projects)\n\n" +
			"Docs: https://code.claude.com/docs/en/sub-agents"
	case "autocompact":
		return "Auto-compact window for " + claudecode.ModelDisplayName(claudecode.ResolveModel(o.State.NextRequestModel())) + ": 1m tokens (default for this model)"
	case "reload-plugins":
		plugins, skills := o.Catalog.Counts()
		return fmt.Sprintf("Reloaded: %s · %s · %s · 0 hooks · 0 plugin LSP servers",
			diag.FormatCount(plugins, "plugin"), diag.FormatCount(skills, "skill"), diag.FormatCount(len(o.Catalog.Agents()), "agent"))
	case "reload-skills":
		_, skills := o.Catalog.Counts()
		return fmt.Sprintf("Reloaded skills: %s available (none added or removed).", diag.FormatCount(skills+len(claudecode.BuiltInSkillsInContext()), "skill"))
	case "list-agents":
		return "This session: " + SessionName(o.State.SessionStateSnapshot().Title, o.Session.ID()) + " (the name other sessions use to message it)\n\n" +
			"No subagents, teammates or other Claude sessions — no other session is running on this machine right now; peer messaging itself is available."
	}
	b, _ := claudecode.PrintModeCommandNamed(commandName)
	return b.Answer
}

func mcpCommandAnswer(o Options, args string) string {
	const usage = "Usage: /mcp [reconnect|enable|disable [<server>|all]]. With no server name, applies to all."
	statuses := o.Servers.Servers()
	if words := strings.Fields(args); len(words) > 1 && words[1] != "all" {
		if slices.ContainsFunc(statuses, func(st mcp.ServerStatus) bool { return st.Name == words[1] }) {
			return usage
		}
		return fmt.Sprintf("There's no MCP server named %q. Run `/mcp` in the terminal to see configured servers.", words[1])
	}
	if len(statuses) == 0 {
		return "No MCP servers are configured. Add one with `claude mcp add`.\n" + usage
	}
	count := map[string]int{}
	for _, st := range statuses {
		count[st.Status]++
	}
	return fmt.Sprintf("%s: %d connected, %d not connected, %d disabled. Use `/mcp` in the terminal for details.",
		diag.FormatCount(len(statuses), "MCP server"), count["connected"], len(statuses)-count["connected"]-count["disabled"], count["disabled"])
}

// loadedContext lists the parts of the context other than the conversation.
func loadedContext(o Options) slash.LoadedContextTokens {
	l := o.Context.SystemPromptAndToolTokens()
	for _, st := range o.Servers.Servers() {
		if st.Instructions != "" {
			l.MCPInstructions = append(l.MCPInstructions, slash.UsageItem{Name: st.Name, Tokens: slash.EstimateTokensOfPart("## " + st.Name + "\n" + st.Instructions)})
		}
	}
	for _, t := range o.Servers.Tools() {
		l.MCPTools = append(l.MCPTools, slash.UsageItem{Name: t.Name, Server: t.Server})
	}
	for _, a := range o.Catalog.Agents() {
		if a.Source != "built-in" {
			l.Agents = append(l.Agents, slash.UsageItem{Type: a.Name, Source: a.Source, Path: a.Path, Tokens: slash.EstimateTokensOfPart(a.Name + a.Description)})
		}
	}
	for _, m := range o.InstructionFiles {
		l.MemoryFiles = append(l.MemoryFiles, slash.MemoryFile{Path: m.Path, Type: m.Type, Tokens: slash.EstimateTokensOfPart(cmp.Or(m.Raw, m.Text))})
	}
	if l.SystemTools == 0 {
		return l
	}
	model := claudecode.FactsOfModel(claudecode.ResolveModel(o.State.NextRequestModel()))
	for _, k := range o.Catalog.Commands() {
		if k.IsListedForModel() {
			l.Skills = append(l.Skills, slash.UsageItem{Name: k.Name, DisplayName: k.DisplayName(), Source: k.Source, Path: k.Path, Tokens: model.Context.SkillTokens(len(k.LineInModelContext()))})
		}
	}
	for _, k := range claudecode.BuiltInSkillsInContext() {
		l.Skills = append(l.Skills, slash.UsageItem{Name: k.Name, Source: "built-in", Tokens: model.Context.SkillTokens(k.Chars)})
	}
	return l
}

type mcpPromptCommand struct {
	definition mcp.Prompt
	servers    *mcp.Manager
}

// Run lets the server evaluate the prompt.
func (c mcpPromptCommand) Run(ctx context.Context, call slash.Call) (*slash.Outcome, *slash.Expansion) {
	text, err := c.fetchPromptText(ctx, call.Args)
	if err != nil {
		return &slash.Outcome{Text: err.Error(), Name: mcpPromptTitle(c.definition), Result: "mcp", Failed: true}, nil
	}
	return nil, &slash.Expansion{Text: text, Kind: "mcp_prompt", Source: "mcp", UsedTool: c.definition.SlashCommand()}
}

func mcpPromptTitle(p mcp.Prompt) string { return p.Server + ":" + p.Name + slash.MCPPromptSuffix }

// fetchPromptText lets the server evaluate the prompt. Words become arguments in order. Quotes have no meaning, and words without
// an argument are dropped, as in the real CLI.
func (c mcpPromptCommand) fetchPromptText(ctx context.Context, args string) (string, error) {
	words := strings.Fields(args)
	usage, missing := ". Usage: /"+c.definition.SlashCommand(), ""
	for i, a := range c.definition.Arguments {
		usage += " " + a.Name
		if i >= len(words) && a.Required {
			missing = cmp.Or(missing, a.Name)
		}
	}
	if missing != "" {
		return "", errors.New("Error: Missing required argument: " + missing + usage)
	}
	text, err := c.servers.FetchPromptText(ctx, c.definition, words)
	if err != nil {
		return "", fmt.Errorf("%s: %w", mcpErrorClassName(err), err)
	}
	return text, nil
}

func mcpErrorClassName(err error) string {
	if _, answered := errors.AsType[*mcp.RPCError](err); answered {
		return "ProtocolError"
	}
	return "SdkError"
}
