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

// option is one flag of claude. A nil Set marks a flag that is accepted without a
// field.
type option struct {
	argv.Option
	help  string   // "" = not in --help
	env   string   // environment variable of a claudeless flag
	shown []string // choices shown in --help and validated by Set
	note  string   // text in --help after the choices
}

// opt makes a flag that --help shows, hidden one that only clients use, own one
// that the real CLI does not have.
func opt(flags, help string, set func(string) error) option {
	return option{Option: argv.Option{Flags: flags, Set: set}, help: help}
}

func choice(flags, help string, set func(string) error, choices ...string) option {
	return option{Option: argv.Option{Flags: flags, Set: set, Choices: choices}, help: help}
}

func hidden(flags string, set func(string) error) option {
	return option{Option: argv.Option{Flags: flags, Set: set, Hidden: true}}
}

func own(flags, env, help string, set func(string) error) option {
	return option{Option: argv.Option{Flags: flags, Set: set}, help: help, env: env}
}

// Line is a flag in the form of --help.
type Line struct{ Flags, Help string }

// Lines returns the flags in --help, of the real CLI and of claudeless.
func Lines() (claude, own []Line) {
	f := &Flags{}
	for _, o := range claudeOptions(f) {
		if o.help != "" {
			claude = append(claude, Line{o.Flags, o.help + choicesNote(o)})
		}
	}
	for _, o := range ownOptions(f) {
		own = append(own, Line{o.Flags, o.help + " (or " + o.env + ")"})
	}
	return claude, own
}

// choicesNote lists the choices in commander's form, in which hosts look for them.
func choicesNote(o option) string {
	choices := slices.Concat(o.Choices, o.shown)
	if len(choices) == 0 {
		return ""
	}
	note := ` (choices: "` + strings.Join(choices, `", "`) + `"`
	if o.note != "" {
		note += ", " + o.note
	}
	return note + ")"
}

// errVersion ends parsing at -v: nothing after it matters.
var errVersion = argv.ErrStop

// claudeOptions returns the flags of the real CLI, bound to f.
func claudeOptions(f *Flags) []option {
	return slices.Concat(outputOptions(f), sessionOptions(f), modelOptions(f), toolOptions(f), surroundingOptions(f), remoteOptions(), hostOptions(f))
}

func outputOptions(f *Flags) []option {
	return []option{
		opt("-v, --version", "Print the version and exit", func(string) error { return errVersion }),
		opt("-p, --print", "Print the answer and exit (non-interactive)", on(&f.Print)),
		choice("--output-format <format>", "Output format of --print", text(&f.OutputFormat), "text", "json", "stream-json"),
		choice("--input-format <format>", "Input format of --print", text(&f.InputFormat), "text", "stream-json"),
		opt("--verbose", "Print every event of a turn, not only its result", on(&f.Verbose)),
		opt("--include-partial-messages", "Also print partial messages as they arrive (stream-json)", on(&f.IncludePartialMessages)),
		opt("--include-hook-events", "Also print when each hook starts and ends (stream-json)", on(&f.IncludeHookEvents)),
		opt("--replay-user-messages", "Copy user messages from stdin to stdout (stream-json input and output)", on(&f.ReplayUserMessages)),
		opt("--forward-subagent-text", "Also print the text of sub-agents (stream-json)", on(&f.ForwardSubagentText)),
		opt("--json-schema <schema>", "JSON Schema that the answer must match", text(&f.JSONSchema)),
		opt("-d, --debug [filter]", "Debug mode, optionally only for some categories", on(&f.Debug)),
		opt("--debug-file <path>", "Write debug output to this file", text(&f.DebugFile)),
		hidden("-d2e, --debug-to-stderr", on(&f.DebugToStderr)),
		opt("--ax-screen-reader", "Output for screen readers", nil),
		opt("--brief", "Shorter answers", nil),
		{Option: argv.Option{Flags: "--prompt-suggestions [value]", Choices: []string{"true", "false", "1", "0", "yes", "no", "on", "off"}}, help: "Suggest the next prompt", note: `preset: "true"`},
	}
}

func sessionOptions(f *Flags) []option {
	return []option{
		opt("-c, --continue", "Continue the latest session of this directory", on(&f.Continue)),
		opt("-r, --resume [value]", "Resume a session by id, title or file", text(&f.Resume)),
		opt("--fork-session", "Give the resumed session a new id", on(&f.ForkSession)),
		opt("--session-id <uuid>", "Id of the session", text(&f.SessionID)),
		opt("--no-session-persistence", "Do not write the session to disk", on(&f.NoSessionPersistence)),
		opt("-n, --name <name>", "Title of the session", text(&f.SessionName)),
		opt("--from-pr [value]", "Resume the session of a pull request", nil),
		hidden("--resume-session-at <message-id>", text(&f.ResumeSessionAt)),
		hidden("--resume-drops-turn <prompt-id>", text(&f.ResumeDropsTurn)),
		hidden("--session-mirror", on(&f.SessionMirror)),
		hidden("--init", on(&f.InitSetup)),
		hidden("--maintenance", on(&f.Maintenance)),
	}
}

func modelOptions(f *Flags) []option {
	return []option{
		opt("--model <model>", "Model: an alias such as sonnet, or a full name", text(&f.Model)),
		opt("--fallback-model <model>", "Model to use when the main model is overloaded", text(&f.FallbackModel)),
		opt("--effort <level>", "Effort level: low, medium, high, xhigh or max", text(&f.Effort)),
		opt("--betas <betas...>", "Beta headers to send with API requests", list(&f.Betas)),
		hidden("--max-turns <turns>", whole(&f.MaxTurns)),
		opt("--max-budget-usd <amount>", "Largest amount that the run may cost, in US dollars", budget(&f.MaxBudgetUSD)),
		hidden("--max-thinking-tokens <tokens>", whole(&f.MaxThinkingTokens)),
		hidden("--task-budget <tokens>", positive("--task-budget", &f.TaskBudget)),
		{Option: argv.Option{Flags: "--thinking <mode>", Hidden: true, Choices: []string{"enabled", "adaptive", "disabled"}, Set: text(&f.Thinking)}},
		hidden("--thinking-display <display>", text(&f.ThinkingDisplay)),
		opt("--system-prompt <prompt>", "System prompt to use instead of the default", text(&f.SystemPrompt)),
		hidden("--system-prompt-file <file>", text(&f.SystemPromptFile)),
		opt("--append-system-prompt <prompt>", "Text to add to the system prompt", text(&f.AppendSystemPrompt)),
		hidden("--append-system-prompt-file <file>", text(&f.AppendPromptFile)),
		choice("--system-prompt-snapshot <on|off>", "Whether the system prompt is recorded once per conversation", nil, "on", "off"),
		opt("--exclude-dynamic-system-prompt-sections", "Leave machine-specific parts out of the system prompt", nil),
		opt("--autocompact <auto|tokens>", "When to compact the conversation", window(&f.Autocompact)),
	}
}

func toolOptions(f *Flags) []option {
	return []option{
		opt("--allowedTools, --allowed-tools <tools...>", `Tools to allow, e.g. "Bash(git:*) Edit"`, split(&f.AllowedTools)),
		opt("--disallowedTools, --disallowed-tools <tools...>", "Tools to deny", split(&f.DisallowedTools)),
		opt("--tools <tools...>", `Built-in tools to offer: names, "default" or ""`, split(&f.Tools)),
		{Option: argv.Option{Flags: "--permission-mode <mode>", Set: permissionMode(&f.PermissionMode)}, help: "Permission mode of the session", shown: permissionModes()},
		{Option: argv.Option{Flags: "--permission-prompts <target>", Set: text(&f.PermissionPrompts), Choices: []string{"host", "none"}}, help: "Who answers permission questions", note: `default: "host"`},
		hidden("--permission-prompt-tool <tool>", text(&f.PermissionPromptTool)),
		opt("--dangerously-skip-permissions", "Allow every tool call", on(&f.DangerouslySkipPermissions)),
		opt("--allow-dangerously-skip-permissions", "Let the session switch to allowing every tool call", on(&f.AllowDangerouslySkipPermissions)),
	}
}

func surroundingOptions(f *Flags) []option {
	return []option{
		opt("--mcp-config <configs...>", "MCP configuration: files or JSON strings", list(&f.MCPConfig)),
		opt("--strict-mcp-config", "Use only the servers of --mcp-config", on(&f.StrictMCPConfig)),
		opt("--add-dir <directories...>", "Additional directories that tools may access", list(&f.AddDirs)),
		opt("--settings <file-or-json>", "Additional settings: a file or a JSON string", last(&f.Settings)),
		opt("--setting-sources <sources>", "Setting sources to load: user, project, local", sources(&f.SettingSources)),
		opt("--agent <agent>", "Agent to run the session with", text(&f.Agent)),
		opt("--agents <json-or-file>", "Custom agents: a JSON object, or a file that contains one", text(&f.Agents)),
		opt("--plugin-dir <path>", "Load a plugin from this directory; can be repeated", list(&f.PluginDirs)),
		opt("--plugin-url <url>", "Load a plugin from this address", nil),
		opt("--disable-slash-commands", "Disable slash commands", on(&f.DisableSlashCommands)),
		opt("--bare", "Offer only the essential tools and load nothing from disk", on(&f.Bare)),
		opt("--safe-mode", "Do not load customizations", on(&f.SafeMode)),
		opt("--restricted", "Run a restricted session", on(&f.Restricted)),
		opt("--file <specs...>", "Files to download at start-up: id:path", nil),
		opt("--ide", "Connect to the editor", nil),
		opt("--chrome", "Connect to the browser", nil),
		opt("--no-chrome", "Do not connect to the browser", nil),
		opt("-w, --worktree [name]", "Work in a new git worktree", text(&f.Worktree)),
		opt("--tmux", "Open a tmux session for the worktree", nil),
	}
}

// remoteOptions belong to features outside the process.
func remoteOptions() []option {
	return []option{
		opt("--bg, --background", "Run in the background", nil),
		opt("--cloud [description|session_id|url]", "Run in the cloud", nil),
		opt("--desktop", "Open in the desktop application", nil),
		opt("--environment <environment_id>", "Environment of a cloud session", nil),
		opt("--remote-control [name]", "Allow the session to be controlled remotely", nil),
		opt("--remote-control-session-name-prefix <prefix>", "Prefix for the names of remote-control sessions", nil),
		opt("--teleport [session]", "Take over a cloud session", nil),
	}
}

// hostOptions are sent by SDK hosts and appear in no help text.
func hostOptions(f *Flags) []option {
	return []option{
		hidden("--await-initialize", on(&f.AwaitInitialize)),
		hidden("--await-claim", on(&f.AwaitClaim)),
		hidden("--initialize-fields <fields>", text(&f.InitializeFields)),
		hidden("--managed-settings <json>", text(&f.ManagedSettings)),
		hidden("--managed-settings-in-initialize", on(&f.ManagedSettingsInInitialize)),
		hidden("--plugin-dir-no-mcp <path>", list(&f.PluginDirsNoMCP)),
		hidden("--channels <servers...>", nil),
		hidden("--project-config-root <path>", text(&f.ProjectConfigRoot)),
	}
}

// ownOptions are the flags that only claudeless has. Each can also be set by an environment variable.
func ownOptions(f *Flags) []option {
	return []option{
		own("--scenario <file>", "CLAUDELESS_SCENARIO", "Scenario that plays the model: a file, or the name of a library scenario", text(&f.Scenario)),
		own("--failure <mode>", "CLAUDELESS_FAILURE", "Make every model request fail this way, e.g. rate-limit", text(&f.Failure)),
		own("--capture <file>", "CLAUDELESS_CAPTURE", "Append the journal of the run to this file, one JSON object per line", text(&f.Capture)),
		own("--expect", "CLAUDELESS_EXPECT", "Exit with 3 if an expectation of the scenario was not met", expect(f)),
		own("--strict", "CLAUDELESS_STRICT", "Exit with 6 if the set-up could pass for the wrong reason", on(&f.Strict)),
		own("--mcp-debug", "CLAUDELESS_MCP_DEBUG", "Print the MCP messages on stderr", on(&f.MCPDebug)),
		own("--mcp-require", "CLAUDELESS_MCP_REQUIRE", "Fail the run if an MCP server does not start", on(&f.MCPRequire)),
		own("--debugger <url>", "CLAUDELESS_DEBUGGER", "Address of the breakpoint server for tool calls", text(&f.Debugger)),
		own("--cwd <dir>", "CLAUDELESS_CWD", "Working directory of the run", text(&f.CWD)),
		own("--claude-version <version>", "CLAUDELESS_CLAUDE_VERSION", "Version of claude to simulate", text(&f.ClaudeVersion)),
	}
}

// expect enables the check of expectations; "defer" leaves it to a later reader of
// the journal.
func expect(f *Flags) func(string) error {
	return func(value string) error {
		f.Expect, f.Defer = value != "defer", value == "defer"
		return nil
	}
}

func on(target *bool) func(string) error {
	return func(string) error { *target = true; return nil }
}

func text(target *string) func(string) error {
	return func(value string) error { *target = value; return nil }
}

func list(target *[]string) func(string) error {
	return func(value string) error { *target = append(*target, value); return nil }
}

func last(target *[]string) func(string) error {
	return func(value string) error { *target = []string{value}; return nil }
}

func split(target *[]string) func(string) error {
	return func(value string) error { *target = append(*target, splitTools(value)...); return nil }
}

// splitTools splits a list at commas and spaces outside parentheses: "Bash(git
// log:*),Edit Read".
func splitTools(value string) []string {
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

func whole(target *int) func(string) error {
	return func(value string) error {
		n, err := number(value)
		if err != nil {
			return errors.New("must be a number")
		}
		*target = clamp(n)
		return nil
	}
}

// number parses a number as JavaScript's Number does: an empty text is 0, bases
// have prefixes, an invalid text is an error.
func number(value string) (float64, error) {
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
	case "Infinity": // the only word of ParseFloat that is accepted
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

// clamp converts a number to an integer in a safe range.
func clamp(n float64) int { return int(max(-1e15, min(n, 1e15))) }

// positive accepts an integer above 0.
func positive(flag string, target *int) func(string) error {
	return func(value string) error {
		n, err := number(value)
		if err != nil || n <= 0 || n != math.Trunc(n) || math.IsInf(n, 1) {
			return errors.New(flag + " must be a positive integer")
		}
		*target = clamp(n)
		return nil
	}
}

func budget(target *float64) func(string) error {
	return func(value string) error {
		n, err := number(value)
		if err != nil || n <= 0 {
			return errors.New("--max-budget-usd must be a number greater than 0")
		}
		*target = n
		return nil
	}
}

// windowError describes an invalid size, in the words of the real CLI.
type windowError string

func (e windowError) Error() string { return string(e) }

// window accepts the size at which a conversation is compacted: auto, or a number
// of tokens, in thousands if it is small.
func window(target *string) func(string) error {
	return func(value string) error {
		if value != "auto" && Window(value) < 100_000 {
			return windowError("It must be 'auto', or at least 100k (e.g. 500k, 200000, or 200 as shorthand)")
		}
		*target = value
		return nil
	}
}

// Window returns the size, in tokens, of --autocompact; 0 = determined by the
// model.
func Window(value string) int {
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

// permissionMode accepts the modes as the real CLI and older scenarios write them:
// bypass-permissions.
func permissionMode(target *string) func(string) error {
	return func(value string) error {
		mode := camelCase(value)
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

func camelCase(kebab string) string {
	words := strings.Split(kebab, "-")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// sources only splits the list; names are validated with the rest, because the
// error text is of another kind.
func sources(target *[]string) func(string) error {
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
