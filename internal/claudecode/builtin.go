package claudecode

import (
	_ "embed" // the tables of commands and output styles
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// BuiltinCommand is a built-in slash command of the CLI.
type BuiltinCommand struct {
	Name, Description, ArgumentHint string
	Answer                          string // answer that never changes; empty means another answer
	Aliases                         []string
	Skill                           bool                 // init lists the command among the skills
	condition                       environmentCondition // environments that have the command; nil means all
	RunsInAgent                     bool                 // the command runs in a sub-agent if the user types it
	TerminalOnly                    bool                 // print mode does not have the command
	// HiddenInMenu reports that the menu of all commands does not list the command: it was removed, needs another account or
	// is another name of a command.
	HiddenInMenu   bool
	FullscreenOnly bool     // reports that the inline renderer does not have the command
	PromptInMenu   bool     // the menu of all commands lists the command at the end, among the skills
	Chars          int      // length of the description of a skill that is always in the context; 0 means another command
	forModelOnly   bool     // users cannot type the name
	RunsForHost    bool     // claude runs the command of a host even if a custom command has the same name
	Tools          []string // tools that the skill may use without permission questions
}

// commandTable has a line for each command, with columns for its name, kind, aliases, hint about arguments, description and fixed
// answer. Tabs separate the columns, spaces the words of kind and aliases. The built-in commands and skills have the order of init.
// The instructions of skills, which belong to the vendor, are missing. A scenario receives the prompt as the user typed it.
//
//go:embed commands.txt
var commandTable string

var allCommands = sync.OnceValue(func() (all []BuiltinCommand) {
	const columns = 6
	for line := range strings.Lines(commandTable) {
		column := append(strings.Split(strings.TrimSuffix(line, "\n"), "\t"), make([]string, columns)...)
		is, chars, tools := map[string]bool{}, 0, []string(nil)
		for word := range strings.FieldsSeq(column[1]) {
			if tool, ok := strings.CutPrefix(word, "tool:"); ok {
				tools = append(tools, tool)
			}
			is[word] = true
			_, _ = fmt.Sscan(word, &chars) // most words are not numbers
		}
		conditions := map[bool]environmentCondition{is["design"]: hasDesignTools, is["oauth"]: hasOAuthCredential}
		all = append(all, BuiltinCommand{
			Name: column[0], Aliases: strings.Fields(column[2]), ArgumentHint: column[3], Description: column[4], Answer: column[5], condition: conditions[true],
			Skill: is["skill"], RunsInAgent: is["agent"], TerminalOnly: is["terminal"], HiddenInMenu: is["hidden"], FullscreenOnly: is["fullscreen"], PromptInMenu: is["skill"] || is["prompt"],
			Chars: chars, forModelOnly: is["model"], RunsForHost: is["host-line"], Tools: tools,
		})
	}
	return all
})

// PrintModeCommands lists the built-in commands and skills that users can call in print mode, in the order of init.
func PrintModeCommands() []BuiltinCommand {
	return slices.DeleteFunc(slices.Clone(allCommands()), func(b BuiltinCommand) bool { return b.TerminalOnly || b.forModelOnly })
}

// availableCommandNames lists the names of the print-mode commands that the environment offers and for which include returns true.
func (p Profile) availableCommandNames(include func(BuiltinCommand) bool) []string {
	var list []string
	for _, b := range PrintModeCommands() {
		if include(b) && (b.condition == nil || b.condition(p.env)) {
			list = append(list, b.Name)
		}
	}
	return list
}

// PrintModeCommandNamed finds a print-mode command by its name or an alias.
func PrintModeCommandNamed(name string) (BuiltinCommand, bool) {
	return commandNamed(PrintModeCommands(), name)
}

// PromptCommandNamed finds a built-in skill that every account has, or a command that is a prompt for the model, by its name or an alias.
func PromptCommandNamed(name string) (BuiltinCommand, bool) {
	b, _ := commandNamed(allCommands(), name)
	return b, (b.PromptInMenu || b.forModelOnly) && b.condition == nil
}

func commandNamed(all []BuiltinCommand, name string) (BuiltinCommand, bool) {
	i := slices.IndexFunc(all, func(b BuiltinCommand) bool { return b.Name == name || slices.Contains(b.Aliases, name) })
	if i < 0 {
		return BuiltinCommand{}, false
	}
	return all[i], true
}

// Subcommands returns the words after `claude` that do not start a session.
func Subcommands() []string {
	return []string{
		"agents", "attach", "auth", "auto-mode", "doctor", "gateway", "install", "kill", "logs", "mcp", "plugin", "plugins", "project",
		"respawn", "rm", "setup-token", "stop", "update", "upgrade",
	}
}

// TerminalOnlyCommands returns the commands that exist only on a terminal. One of them, schedule, has the same name as a
// skill that only users with a Claude subscription have.
func TerminalOnlyCommands() (names []string) {
	for _, b := range allCommands() {
		if b.TerminalOnly {
			names = append(names, b.Name)
		}
	}
	return names
}

// MenuCommandNamed returns the built-in command with a name, as the menu of a terminal lists it. For an unknown name, the
// result has only HiddenInMenu set.
func MenuCommandNamed(name string) BuiltinCommand {
	all := allCommands()
	if i := slices.IndexFunc(all, func(b BuiltinCommand) bool { return b.Name == name }); i >= 0 {
		return all[i]
	}
	return BuiltinCommand{HiddenInMenu: true}
}

// OutputStyle is a built-in output style of the CLI.
type OutputStyle struct{ Name, Description string }

//go:embed output_styles.json
var outputStyleTable string

// OutputStyles lists the built-in output styles, with the descriptions that /output-style shows.
func OutputStyles() []OutputStyle { return outputStyles() }

var outputStyles = tableFromJSON[OutputStyle](outputStyleTable)

// BuiltInSkillsListedForModel returns the built-in skills that the CLI lists for the model. They depend on the environment.
func (p Profile) BuiltInSkillsListedForModel() (list []BuiltinCommand) {
	for _, b := range allCommands() {
		if b.Chars > 0 || b.Name == "schedule" && b.Skill && hasOAuthCredential(p.env) {
			list = append(list, b)
		}
	}
	return list
}

// Tokens that /context shows in addition to those of [ModelFacts].
const (
	AskUserQuestionTokens            = 1126
	DeferredPlanToolsTokens          = 706 // EnterPlanMode and ExitPlanMode
	AdditionalPromptTokensOnTerminal = 42  // about
	CommandListTokens                = 461
)

// BuiltInSkillsInContext lists the built-in skills that are always in the context.
func BuiltInSkillsInContext() []BuiltinCommand {
	return slices.DeleteFunc(slices.Clone(allCommands()), func(b BuiltinCommand) bool { return b.Chars == 0 })
}

// reportShapes has a row for each shape of text with which the report of an agent could pretend to be a message of the CLI: its name,
// which is empty if it is not reported, and an expression. A backslash between its two groups makes the text harmless.
//
//go:embed report_shapes.txt
var reportShapes string

// EscapeCLILookalikes neutralizes texts in the report of an agent that look like messages of the CLI, and returns the names of their shapes.
func EscapeCLILookalikes(report string) (neutralized string, found []string) {
	for row := range strings.Lines(reportShapes) {
		name, pattern, _ := strings.Cut(strings.TrimSuffix(row, "\n"), "\t")
		changed := regexp.MustCompile(pattern).ReplaceAllString(report, `${1}\${2}`)
		if changed != report && name != "" {
			found = append(found, name)
		}
		report = changed
	}
	return report, found
}
