package flags

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/argv"
)

// option is one flag of claude. If Set is nil, the flag is accepted and ignored.
type option struct {
	argv.OptionDefinition
	help    string   // "" means not in --help
	env     string   // environment variable of a claudeless flag
	choices []string // choices shown in --help and validated by Set
	note    string   // text in --help after the choices
}

// newOption creates a flag that --help shows. hiddenOption creates a flag that only programs use, and newClaudelessOnlyOption
// one that the real CLI does not have.
func newOption(flags, help string, set func(string) error) option {
	return option{OptionDefinition: argv.OptionDefinition{Flags: flags, Set: set}, help: help}
}

func choiceOption(flags, help string, set func(string) error, choices ...string) option {
	return option{OptionDefinition: argv.OptionDefinition{Flags: flags, Set: set, Choices: choices}, help: help}
}

func hiddenOption(flags string, set func(string) error) option {
	return option{OptionDefinition: argv.OptionDefinition{Flags: flags, Set: set, Hidden: true}}
}

func newClaudelessOnlyOption(flagSyntax, environmentVariable, help string, setValue func(string) error) option {
	return option{OptionDefinition: argv.OptionDefinition{Flags: flagSyntax, Set: setValue}, help: help, env: environmentVariable}
}

// HelpLine is one line of --help: the spellings of a flag and its description.
type HelpLine struct{ Flags, Help string }

// HelpLines returns the flags of --help, first those of the real CLI, then those of claudeless.
func HelpLines() (claude, own []HelpLine) {
	f := &Flags{}
	for _, o := range claudeOptions(f) {
		if o.help != "" {
			claude = append(claude, HelpLine{o.Flags, o.help + choicesNote(o)})
		}
	}
	for _, o := range claudelessOptions(f) {
		own = append(own, HelpLine{o.Flags, o.help + " (or " + o.env + ")"})
	}
	return claude, own
}

// choicesNote lists the choices in the format of commander.js, which hosts parse.
func choicesNote(o option) string {
	choices := slices.Concat(o.Choices, o.choices)
	if len(choices) == 0 {
		return ""
	}
	note := ` (choices: "` + strings.Join(choices, `", "`) + `"`
	if o.note != "" {
		note += ", " + o.note
	}
	return note + ")"
}

// errStopParsingAtVersionFlag ends the parsing at -v, because the arguments after -v have no effect.
var errStopParsingAtVersionFlag = argv.ErrStop

func claudeOptions(f *Flags) []option {
	return slices.Concat(outputOptions(f), sessionOptions(f), modelOptions(f), toolOptions(f), mcpSettingsAgentAndPluginOptions(f), remoteOptions(), hostOptions(f))
}

func outputOptions(f *Flags) []option {
	return []option{
		newOption("-v, --version", "Print the version and exit", func(string) error { return errStopParsingAtVersionFlag }),
		newOption("-p, --print", "Print the answer and exit (non-interactive)", setterToTrue(&f.Print)),
		choiceOption("--output-format <format>", "Output format of --print", textSetter(&f.OutputFormat), "text", "json", "stream-json"),
		choiceOption("--input-format <format>", "Input format of --print", textSetter(&f.InputFormat), "text", "stream-json"),
		newOption("--verbose", "Print every event of a turn, not only its result", setterToTrue(&f.Verbose)),
		newOption("--include-partial-messages", "Also print partial messages as they arrive (stream-json)", setterToTrue(&f.IncludePartialMessages)),
		newOption("--include-hook-events", "Also print when each hook starts and ends (stream-json)", setterToTrue(&f.IncludeHookEvents)),
		newOption("--replay-user-messages", "Copy user messages from stdin to stdout (stream-json input and output)", setterToTrue(&f.ReplayUserMessages)),
		newOption("--forward-subagent-text", "Also print the text of sub-agents (stream-json)", setterToTrue(&f.ForwardSubagentText)),
		newOption("--json-schema <schema>", "JSON Schema that the answer must match", textSetter(&f.JSONSchema)),
		newOption("-d, --debug [filter]", "Write debug output; the filter selects categories", setterToTrue(&f.Debug)),
		newOption("--debug-file <path>", "Write debug output to this file", textSetter(&f.DebugFile)),
		hiddenOption("-d2e, --debug-to-stderr", setterToTrue(&f.DebugToStderr)),
		newOption("--ax-screen-reader", "Write output for screen readers", nil),
		newOption("--brief", "Ask for shorter answers", nil),
		{OptionDefinition: argv.OptionDefinition{Flags: "--prompt-suggestions [value]", Choices: []string{"true", "false", "1", "0", "yes", "no", "on", "off"}}, help: "Suggest the next prompt", note: `preset: "true"`},
	}
}

func sessionOptions(f *Flags) []option {
	return []option{
		newOption("-c, --continue", "Continue the latest session of this directory", setterToTrue(&f.Continue)),
		newOption("-r, --resume [value]", "Resume a session by id, title or file", textSetter(&f.Resume)),
		newOption("--fork-session", "Give the resumed session a new id", setterToTrue(&f.ForkSession)),
		newOption("--session-id <uuid>", "Give the session this id", textSetter(&f.SessionID)),
		newOption("--no-session-persistence", "Do not write the session to disk", setterToTrue(&f.NoSessionPersistence)),
		newOption("-n, --name <name>", "Give the session this title", textSetter(&f.SessionName)),
		newOption("--from-pr [value]", "Resume the session of a pull request (number or URL)", nil),
		hiddenOption("--resume-session-at <message-id>", textSetter(&f.ResumeSessionAt)),
		hiddenOption("--resume-drops-turn <prompt-id>", textSetter(&f.ResumeDropsTurn)),
		hiddenOption("--session-mirror", setterToTrue(&f.SessionMirror)),
		hiddenOption("--init", setterToTrue(&f.InitSetup)),
		hiddenOption("--init-only", setterToTrue(&f.InitOnly)),
		hiddenOption("--maintenance", setterToTrue(&f.Maintenance)),
	}
}

func modelOptions(f *Flags) []option {
	return []option{
		newOption("--model <model>", "Model: an alias such as sonnet, or a full name", textSetter(&f.Model)),
		newOption("--fallback-model <model>", "Model to use when the main model is overloaded", textSetter(&f.FallbackModel)),
		newOption("--effort <level>", "Effort level: low, medium, high, xhigh or max", textSetter(&f.Effort)),
		newOption("--betas <betas...>", "Beta headers to send with API requests", valueAppender(&f.Betas)),
		hiddenOption("--max-turns <turns>", integerSetter(&f.MaxTurns)),
		newOption("--max-budget-usd <amount>", "Maximum cost of the run, in US dollars", func(value string) error {
			n, err := parseJavaScriptNumber(value)
			if err != nil || n <= 0 {
				return errors.New("--max-budget-usd must be a number greater than 0")
			}
			f.MaxBudgetUSD = n
			return nil
		}),
		hiddenOption("--max-thinking-tokens <tokens>", func(value string) error {
			f.MaxThinkingTokens = new(0)
			return integerSetter(f.MaxThinkingTokens)(value)
		}),
		hiddenOption("--task-budget <tokens>", positiveIntegerSetter("--task-budget", &f.TaskBudget)),
		{OptionDefinition: argv.OptionDefinition{Flags: "--thinking <mode>", Hidden: true, Choices: []string{"enabled", "adaptive", "disabled"}, Set: textSetter(&f.Thinking)}},
		hiddenOption("--thinking-display <display>", textSetter(&f.ThinkingDisplay)),
		newOption("--system-prompt <prompt>", "System prompt to use instead of the default", textSetter(&f.SystemPrompt)),
		hiddenOption("--system-prompt-file <file>", textSetter(&f.SystemPromptFile)),
		newOption("--append-system-prompt <prompt>", "Text to add to the system prompt", textSetter(&f.AppendSystemPrompt)),
		hiddenOption("--append-system-prompt-file <file>", textSetter(&f.AppendPromptFile)),
		choiceOption("--system-prompt-snapshot <on|off>", "Build the system prompt once per conversation and reuse it", nil, "on", "off"),
		newOption("--exclude-dynamic-system-prompt-sections", "Leave machine-specific parts out of the system prompt", nil),
		newOption("--autocompact <auto|tokens>", "Compact the conversation at this number of tokens; auto: at the model's limit", compactionWindowSetter(&f.Autocompact)),
	}
}

func toolOptions(f *Flags) []option {
	return []option{
		newOption("--allowedTools, --allowed-tools <tools...>", `Tools to allow, e.g. "Bash(git:*) Edit"`, toolListAppender(&f.AllowedTools)),
		newOption("--disallowedTools, --disallowed-tools <tools...>", "Tools to deny", toolListAppender(&f.DisallowedTools)),
		newOption("--tools <tools...>", `Built-in tools to offer: names, "default" (all) or "" (none)`, toolListAppender(&f.Tools)),
		{OptionDefinition: argv.OptionDefinition{Flags: "--permission-mode <mode>", Set: permissionModeSetter(&f.PermissionMode)}, help: "Permission mode of the session", choices: permissionModes()},
		{OptionDefinition: argv.OptionDefinition{Flags: "--permission-prompts <target>", Set: textSetter(&f.PermissionPrompts), Choices: []string{"host", "none"}}, help: "Who answers permission prompts: the host, which is the program that started claude, or no one", note: `default: "host"`},
		hiddenOption("--permission-prompt-tool <tool>", textSetter(&f.PermissionPromptTool)),
		newOption("--dangerously-skip-permissions", "Allow every tool call", setterToTrue(&f.DangerouslySkipPermissions)),
		newOption("--allow-dangerously-skip-permissions", "Let the session switch to bypassPermissions mode later", setterToTrue(&f.AllowDangerouslySkipPermissions)),
	}
}

func mcpSettingsAgentAndPluginOptions(f *Flags) []option {
	return []option{
		newOption("--mcp-config <configs...>", "MCP configuration: files or JSON strings", valueAppender(&f.MCPConfig)),
		newOption("--strict-mcp-config", "Use only the servers of --mcp-config", setterToTrue(&f.StrictMCPConfig)),
		newOption("--add-dir <directories...>", "Additional directories that tools may access", valueAppender(&f.AddDirs)),
		newOption("--settings <file-or-json>", "Additional settings: a file or a JSON string", func(value string) error { f.Settings = []string{value}; return nil }),
		newOption("--setting-sources <sources>", "Setting sources to load: user, project, local", settingSourcesSetter(&f.SettingSources)),
		newOption("--agent <agent>", "Agent to run the session with", textSetter(&f.Agent)),
		newOption("--agents <json-or-file>", "Custom agents: a JSON object, or a file that contains one", textSetter(&f.Agents)),
		newOption("--plugin-dir <path>", "Load a plugin from this directory; can be repeated", valueAppender(&f.PluginDirs)),
		newOption("--plugin-url <url>", "Load a plugin from this address", nil),
		newOption("--disable-slash-commands", "Turn off slash commands and skills", setterToTrue(&f.DisableSlashCommands)),
		newOption("--bare", "Offer only the essential tools and load nothing from disk", setterToTrue(&f.Bare)),
		newOption("--safe-mode", "Do not load customizations (CLAUDE.md, custom agents, skills, plugins)", setterToTrue(&f.SafeMode)),
		newOption("--restricted", "Ignore user and project settings, and do not offer Bash, WebFetch and some other tools", setterToTrue(&f.Restricted)),
		newOption("--file <specs...>", "Files to download at start-up, each as id:path", nil),
		newOption("--ide", "Connect to the editor", nil),
		newOption("--chrome", "Connect to the browser", nil),
		newOption("--no-chrome", "Do not connect to the browser", nil),
		newOption("-w, --worktree [name]", "Run the session in a new git worktree", textSetter(&f.Worktree)),
		newOption("--tmux", "Open the worktree in a tmux session", nil),
	}
}

// remoteOptions returns the flags for the cloud, the desktop application and other programs. claudeless ignores or refuses them.
func remoteOptions() []option {
	return []option{
		newOption("--bg, --background", "Run the session in the background", nil),
		newOption("--cloud [description|session_id|url]", "Run the session in the cloud", nil),
		newOption("--desktop", "Open the session in the desktop application", nil),
		newOption("--environment <environment_id>", "Id of the environment in which the cloud session runs", nil),
		newOption("--remote-control [name]", "Allow the session to be controlled remotely", nil),
		newOption("--remote-control-session-name-prefix <prefix>", "Begin the names of remote-control sessions with this text", nil),
		newOption("--teleport [session]", "Take over a cloud session", nil),
	}
}

// hostOptions are sent by SDK hosts and appear in no help text.
func hostOptions(f *Flags) []option {
	return []option{
		hiddenOption("--await-initialize", setterToTrue(&f.AwaitInitialize)),
		hiddenOption("--await-claim", setterToTrue(&f.AwaitClaim)),
		hiddenOption("--initialize-fields <fields>", textSetter(&f.InitializeFields)),
		hiddenOption("--managed-settings <json>", textSetter(&f.ManagedSettings)),
		hiddenOption("--managed-settings-in-initialize", setterToTrue(&f.ManagedSettingsInInitialize)),
		hiddenOption("--plugin-dir-no-mcp <path>", valueAppender(&f.PluginDirsNoMCP)),
		hiddenOption("--channels <servers...>", nil),
		hiddenOption("--project-config-root <path>", textSetter(&f.ProjectConfigRoot)),
	}
}

// claudelessOptions are the flags that only claudeless has. Each can also be set by an environment variable.
func claudelessOptions(f *Flags) []option {
	return []option{
		newClaudelessOnlyOption("--scenario <file>", "CLAUDELESS_SCENARIO", "Scenario that replaces the model: a file, or the name of a built-in scenario", textSetter(&f.Scenario)),
		newClaudelessOnlyOption("--failure <mode>", "CLAUDELESS_FAILURE", "Make every model request fail this way, e.g. rate-limit", textSetter(&f.Failure)),
		newClaudelessOnlyOption("--capture <file>", "CLAUDELESS_CAPTURE", "Append the journal of the run to this file, one JSON object per line", textSetter(&f.Capture)),
		newClaudelessOnlyOption("--expect", "CLAUDELESS_EXPECT", "Exit with 3 if an expectation of the scenario was not met", func(value string) error {
			f.Expect, f.DeferVerdict = value != "defer", value == "defer" // with "defer", `claudeless exec` or `verify` checks later, from the journal
			return nil
		}),
		newClaudelessOnlyOption("--strict", "CLAUDELESS_STRICT", "Exit with 6 if the test could pass for the wrong reason, for example if no rule answers a prompt", setterToTrue(&f.Strict)),
		newClaudelessOnlyOption("--mcp-debug", "CLAUDELESS_MCP_DEBUG", "Print the MCP messages on stderr", setterToTrue(&f.MCPDebug)),
		newClaudelessOnlyOption("--mcp-require", "CLAUDELESS_MCP_REQUIRE", "Fail the run if an MCP server does not start", setterToTrue(&f.MCPRequire)),
		newClaudelessOnlyOption("--debugger <url>", "CLAUDELESS_DEBUGGER", "URL of the debugger (claudeless debug serve) that pauses tool calls", textSetter(&f.Debugger)),
		newClaudelessOnlyOption("--cwd <dir>", "CLAUDELESS_CWD", "Working directory of the run", textSetter(&f.CWD)),
		newClaudelessOnlyOption("--claude-version <version>", "CLAUDELESS_CLAUDE_VERSION", "Version of claude to simulate", textSetter(&f.ClaudeVersion)),
	}
}

func setterToTrue(target *bool) func(string) error {
	return func(string) error { *target = true; return nil }
}

func textSetter(target *string) func(string) error {
	return func(value string) error { *target = value; return nil }
}

func valueAppender(target *[]string) func(string) error {
	return func(value string) error { *target = append(*target, value); return nil }
}

func toolListAppender(target *[]string) func(string) error {
	return func(value string) error { *target = append(*target, splitToolList(value)...); return nil }
}

// splitToolList splits a list at commas and spaces outside parentheses: "Bash(git log:*),Edit Read".
func splitToolList(value string) []string {
	depth := 0
	return strings.FieldsFunc(value, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (r == ',' || unicode.IsSpace(r))
	})
}

func integerSetter(target *int) func(string) error {
	return func(value string) error {
		n, err := parseJavaScriptNumber(value)
		if err != nil {
			return errors.New("must be a number")
		}
		*target = clampToInt(n)
		return nil
	}
}

// parseJavaScriptNumber parses like JavaScript's Number: an empty string is 0, prefixes select the base, invalid strings fail.
func parseJavaScriptNumber(value string) (float64, error) {
	value = strings.TrimSpace(value)
	digits, base := strings.ToLower(value), 10
	for prefix, of := range map[string]int{"0x": 16, "0o": 8, "0b": 2} {
		if rest, found := strings.CutPrefix(digits, prefix); found {
			digits, base = rest, of
		}
	}
	switch strings.TrimLeft(value, "+-") {
	case "":
		if value == "" {
			return 0, nil
		}
	case "Infinity": // the only word that both ParseFloat and JavaScript accept
		return strconv.ParseFloat(value, 64)
	}
	if base != 10 {
		n, err := strconv.ParseUint(digits, base, 64)
		return float64(n), err
	}
	if strings.Trim(digits, "+-.e0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(value, 64)
	if errors.Is(err, strconv.ErrRange) { // Infinity
		err = nil
	}
	return n, err
}

func clampToInt(n float64) int { return int(max(-1e15, min(n, 1e15))) }

func positiveIntegerSetter(flag string, target *int) func(string) error {
	return func(value string) error {
		n, err := parseJavaScriptNumber(value)
		if err != nil || n <= 0 || n != math.Trunc(n) || math.IsInf(n, 1) {
			return errors.New(flag + " must be a positive integer")
		}
		*target = clampToInt(n)
		return nil
	}
}

// autocompactSizeError reports an invalid size of the context window with the text of the real CLI.
type autocompactSizeError string

func (e autocompactSizeError) Error() (realCLIMessage string) { return string(e) }

// compactionWindowSetter accepts the size at which a conversation is compacted: auto, or at least 100,000 tokens. A number
// up to 1000 counts thousands: 200 means 200,000.
func compactionWindowSetter(target *string) func(string) error {
	return func(value string) error {
		if value != "auto" && ParseContextWindow(value) < 100_000 {
			return autocompactSizeError("It must be 'auto', or at least 100k (e.g. 500k, 200000, or 200 as shorthand)")
		}
		*target = value
		return nil
	}
}

// ParseContextWindow returns the value of --autocompact as a number of tokens; 0 means that the model determines the size.
func ParseContextWindow(value string) int {
	digits := strings.TrimRight(strings.ToLower(value), "km")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n < 1e9) {
		return 0
	}
	switch unit := strings.ToLower(value)[len(digits):]; {
	case unit == "m":
		n *= 1e6
	case unit == "k", n <= 1000:
		n *= 1e3
	}
	return int(n)
}

func permissionModes() []string {
	return []string{"acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan"}
}

// permissionModeSetter accepts spellings such as bypassPermissions (real CLI) and bypass-permissions (older scenarios).
func permissionModeSetter(target *string) func(string) error {
	return func(value string) error {
		mode := kebabToCamelCase(value)
		switch {
		case mode == "manual" || mode == "default":
			*target = "default"
		case slices.Contains(permissionModes(), mode):
			*target = mode
		default:
			return errors.New("Allowed choices are " + strings.Join(permissionModes(), ", ") + ".")
		}
		return nil
	}
}

func kebabToCamelCase(kebab string) string {
	words := strings.Split(kebab, "-")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// settingSourcesSetter only splits the list. [Flags.CheckAndNormalize] validates the names, because the error about a wrong name does
// not look like the errors of other flags.
func settingSourcesSetter(target *[]string) func(string) error {
	return func(value string) error {
		*target = nil
		if value == "" {
			return nil
		}
		for name := range strings.SplitSeq(value, ",") {
			*target = append(*target, strings.TrimSpace(name))
		}
		return nil
	}
}
