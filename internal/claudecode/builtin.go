package claudecode

import (
	"slices"
)

// BuiltinCommand is a built-in slash command of the CLI.
type BuiltinCommand struct {
	Name, Description, ArgumentHint string
	Aliases                         []string
	Skill                           bool                 // init lists the command among the skills
	condition                       environmentCondition // environments that have the command; nil means all
	RunsInAgent                     bool                 // the command runs in a sub-agent if the user types it
}

// BuiltinCommands lists the built-in commands and skills in the order of init. The list does not contain the
// instructions of skills, which belong to the vendor. Therefore a scenario receives the prompt as the user typed it.
func BuiltinCommands() []BuiltinCommand {
	skill := func(name, description, hint string, aliases ...string) BuiltinCommand {
		return BuiltinCommand{name, description, hint, aliases, true, nil, false}
	}
	command := func(name, description, hint string, aliases ...string) BuiltinCommand {
		return BuiltinCommand{name, description, hint, aliases, false, nil, false}
	}
	only := func(offered environmentCondition, b BuiltinCommand) BuiltinCommand {
		b.condition = offered
		return b
	}
	inAgent := func(b BuiltinCommand) BuiltinCommand {
		b.RunsInAgent = true
		return b
	}
	return []BuiltinCommand{
		skill("deep-research", "Research a question in many sources", ""),
		only(hasDesignTools, skill("design", "Design a page or a product", "consent | revoke")),
		only(hasDesignTools, skill("design-sync", "Keep designs and code in sync", `[<project hint, e.g. "Acme DS">]`)),
		skill("dataviz", "Draw charts and dashboards", ""),
		skill("update-config", "Change settings files", ""),
		skill("verify", "Check that a change works", ""),
		skill("debug", "Find the cause of a problem in this session", "[issue description]"),
		inAgent(skill("code-review", "Review the current changes", "[low|medium|high|xhigh|max] [--fix] [--comment] [<pr#>|<branch>|<path>] [--max-findings <n>|all]", "review")),
		skill("simplify", "Make the changed code simpler", "[<target>]"),
		skill("batch", "Make one change in many places", "<instruction>"),
		skill("fewer-permission-prompts", "Propose rules for calls that often need permission", ""),
		skill("doctor", "Check the installation", "[prompt-audit [<path>]]", "checkup"),
		skill("loop", "Run a prompt again and again", "[interval] [prompt]", "proactive"),
		only(hasOAuthCredential, skill("schedule", "Run a prompt at set times", "", "routines")),
		skill("claude-api", "Reference of the API and its SDKs", ""),
		skill("workflow-authoring", "How to write a workflow", ""),
		skill("run", "Start this project's program and use it", ""),
		skill("run-skill-generator", "Write a skill that starts this project's program", ""),
		skill("plugin-authoring", "How to write a plugin", ""),
		command("agents", "Explain how to make sub-agents", ""),
		command("auto-mode-setup", "Tell auto mode about the environment", "[--request-id <uuid>] (--wizard posture=… scope=… depth=… --propose | --expect-sha256 <64-hex> --apply-file <path>)"),
		command("autocompact", "Set when the context is summarized", "[auto|<tokens>]"),
		command("clear", "Begin a new conversation", "[name]", "reset", "new"),
		command("color", "Set the color of the prompt bar", "[red|blue|green|yellow|purple|orange|pink|cyan|default]"),
		command("compact", "Replace the conversation by a summary", "<optional custom summarization instructions>"),
		command("config", "Change a setting", "key=value", "settings"),
		command("output-style", "List output styles or choose one", "[style]"),
		command("context", "Show how full the context is", ""),
		command("effort", "Set the effort of the model", "<low|medium|high|xhigh|max|auto|ultracode [on|off]>"),
		command("fast", "Switch fast mode", "[on|off]"),
		command("focus", "Show prompt, summary and response only", "[on|off]"),
		command("heapdump", "Write the heap to a file", ""),
		command("init", "Write a CLAUDE.md for this project", ""),
		command("mcp", "MCP servers", "[reconnect|enable|disable [<server>|all]]"),
		command("model", "Choose the model", "<model>"),
		command("__remote-workflow", "Run a workflow in a remote session", ""),
		command("workflow-launch-exec", "Run a workflow handed over at launch", ""),
		command("reload-plugins", "Reload plugins", "[--force]"),
		command("reload-skills", "Reload skills", ""),
		command("rename", "Name the conversation", "[name]", "name"),
		command("security-review", "Review the changes of this branch for security", ""),
		command("usage", "Show the cost of the session", "", "cost", "stats"),
		command("insights", "Report on earlier sessions", ""),
		command("recap", "Summarize the work in one line", ""),
		command("goal", "Continue until a condition is met", ""),
		only(hasDesignTools, command("design-consent", "Allow design tools", "")),
		only(hasDesignTools, command("design-revoke", "Disallow design tools", "")),
		command("list-agents", "List the agents that can receive messages", "", "peers"),
		command("team-onboarding", "Write a guide for new team members", ""),
	}
}

// builtinNames lists the names of the commands that the environment offers and for which include returns true.
func (p Profile) builtinNames(include func(BuiltinCommand) bool) []string {
	var list []string
	for _, b := range BuiltinCommands() {
		if include(b) && (b.condition == nil || b.condition(p.env)) {
			list = append(list, b.Name)
		}
	}
	return list
}

// BuiltinCommandNamed finds a command by its name or an alias.
func BuiltinCommandNamed(name string) (BuiltinCommand, bool) {
	all := BuiltinCommands()
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

// TerminalOnlyCommands returns the commands that exist only on a terminal. One of the names, schedule, is also the name
// of a skill of subscriptions.
func TerminalOnlyCommands() []string {
	return []string{
		"add-dir", "advisor", "bashes", "branch", "btw", "bug", "cd", "chrome", "copy", "desktop", "diff", "exit", "export", "extra-usage",
		"feedback", "fork", "help", "hooks", "ide", "install-github-app", "install-slack-app", "keybindings", "login", "logout",
		"memory", "mobile", "passes", "permissions", "plan", "plugin", "powerup", "privacy-settings", "quit", "radio", "rc",
		"release-notes", "remote-control", "remote-env", "resume", "rewind", "sandbox", "schedule", "session", "skills", "status",
		"statusline", "stickers", "tasks", "teleport", "terminal-setup", "theme", "undo", "upgrade", "vim", "voice", "web-setup",
		"workflows",
	}
}

// OutputStyle is a built-in output style of the CLI.
type OutputStyle struct{ Name, Description string }

// OutputStyles lists the built-in output styles, with the descriptions that /output-style shows.
func OutputStyles() []OutputStyle {
	return []OutputStyle{
		{"default", ""},
		{"Proactive", "Claude executes immediately, minimizes interruptions, and prefers action over planning"},
		{"Concise", "Claude responds tersely, leading with results and skipping preamble and narration"},
		{"Explanatory", "Claude explains its implementation choices and codebase patterns"},
		{"Learning", "Claude pauses and asks you to write small pieces of code for hands-on practice"},
	}
}

// BuiltInSkill is one of the CLI's own skills that are always in the context.
type BuiltInSkill struct {
	Name   string
	Tokens int
}

// NamesOfBuiltInSkillsListedForModel returns the names of the built-in skills that the CLI lists for the model. They depend on
// the environment.
func (p Profile) NamesOfBuiltInSkillsListedForModel() []string {
	var names []string
	for _, k := range BuiltInSkills() {
		names = append(names, k.Name)
		if k.Name == "loop" && hasOAuthCredential(p.env) {
			names = append(names, "schedule")
		}
	}
	return names
}

// Tokens that /context shows: for all tools or, with ToolSearch, for the tools that are always loaded and for the deferred
// ones. The first two numbers include the list of built-in skills. CommandListTokens is for the list of commands.
const (
	AllToolsTokens      = 15_094
	SearchedToolsTokens = 7761
	DeferredToolsTokens = 3960
	CommandListTokens   = 461
	// ToolTokensLessInBypassMode is the part of the tools that the mode bypassPermissions leaves out.
	ToolTokensLessInBypassMode = 78
)

// SystemPromptTokens returns how many tokens /context shows for the CLI's system prompt. It is exact for the newest models.
func SystemPromptTokens(model string) int {
	switch model {
	case "claude-sonnet-5-5":
		return 1783
	case "claude-haiku-5-5":
		return 2511
	}
	return 1857
}

// BuiltInSkills lists the built-in skills with the number of tokens that /context shows.
func BuiltInSkills() []BuiltInSkill {
	return []BuiltInSkill{
		{"dataviz", 482},
		{"update-config", 236},
		{"keybindings-help", 83},
		{"code-review", 283},
		{"simplify", 63},
		{"fewer-permission-prompts", 64},
		{"loop", 115},
		{"claude-api", 390},
		{"workflow-authoring", 84},
		{"run", 123},
		{"plugin-authoring", 92},
		{"init", 22},
		{"security-review", 30},
	}
}
