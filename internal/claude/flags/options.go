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

// option is one line of the claude grammar. A nil Set marks a flag that is accepted and has no field of its own.
type option struct {
	argv.Option
	help  string   // "" = not in --help
	env   string   // the variable that stands in for one of our own flags
	shown []string // choices that --help names and that Set checks
	note  string   // what --help says behind the choices
}

// opt is a flag that --help shows, hidden one that only clients know, own one that the real CLI does not have.
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

// Line is a flag as --help shows it.
type Line struct{ Flags, Help string }

// Lines are what --help names, of the real CLI's flags and of ours.
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

// choicesNote names the choices in commander's form, in which hosts look for them.
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

// errVersion leaves the parser when -v is met: nothing after it matters.
var errVersion = argv.ErrStop

// claudeOptions is the real CLI's grammar, bound to f.
func claudeOptions(f *Flags) []option {
	return slices.Concat(outputOptions(f), sessionOptions(f), modelOptions(f), toolOptions(f), surroundingOptions(f), remoteOptions(), hostOptions(f))
}

func outputOptions(f *Flags) []option {
	return []option{
		opt("-v, --version", "Print the version and exit", func(string) error { return errVersion }),
		opt("-p, --print", "Answer once and exit instead of opening a session", on(&f.Print)),
		choice("--output-format <format>", "What print mode writes", text(&f.OutputFormat), "text", "json", "stream-json"),
		choice("--input-format <format>", "What print mode reads", text(&f.InputFormat), "text", "stream-json"),
		opt("--verbose", "Show every event of a turn, not only its end", on(&f.Verbose)),
		opt("--include-partial-messages", "Add the pieces of messages as they arrive (stream-json)", on(&f.IncludePartialMessages)),
		opt("--include-hook-events", "Add the start and the end of every hook (stream-json)", on(&f.IncludeHookEvents)),
		opt("--replay-user-messages", "Repeat the messages of stdin on stdout (stream-json both ways)", on(&f.ReplayUserMessages)),
		opt("--forward-subagent-text", "Add the texts of sub-agents (stream-json)", on(&f.ForwardSubagentText)),
		opt("--json-schema <schema>", "JSON Schema that the answer must match", text(&f.JSONSchema)),
		opt("-d, --debug [filter]", "Debug mode, for the named categories if any", on(&f.Debug)),
		opt("--debug-file <path>", "File that debug output goes to", text(&f.DebugFile)),
		hidden("-d2e, --debug-to-stderr", on(&f.DebugToStderr)),
		opt("--ax-screen-reader", "Output for screen readers", nil),
		opt("--brief", "Shorter answers", nil),
		{Option: argv.Option{Flags: "--prompt-suggestions [value]", Choices: []string{"true", "false", "1", "0", "yes", "no", "on", "off"}}, help: "Suggest the next prompt", note: `preset: "true"`},
	}
}

func sessionOptions(f *Flags) []option {
	return []option{
		opt("-c, --continue", "Go on with the latest session of this directory", on(&f.Continue)),
		opt("-r, --resume [value]", "Go on with a session: its id, title or file", text(&f.Resume)),
		opt("--fork-session", "Give the resumed session a new id", on(&f.ForkSession)),
		opt("--session-id <uuid>", "Id of the session", text(&f.SessionID)),
		opt("--no-session-persistence", "Do not write the session to disk", on(&f.NoSessionPersistence)),
		opt("-n, --name <name>", "Title of the session", text(&f.SessionName)),
		opt("--from-pr [value]", "Go on with the session of a pull request", nil),
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
		opt("--fallback-model <model>", "Model to use when the other is overloaded", text(&f.FallbackModel)),
		opt("--effort <level>", "Effort: low, medium, high, xhigh or max", text(&f.Effort)),
		opt("--betas <betas...>", "Beta headers for the requests", list(&f.Betas)),
		hidden("--max-turns <turns>", whole(&f.MaxTurns)),
		opt("--max-budget-usd <amount>", "Most that the run may cost, in dollars", budget(&f.MaxBudgetUSD)),
		hidden("--max-thinking-tokens <tokens>", whole(&f.MaxThinkingTokens)),
		hidden("--task-budget <tokens>", positive("--task-budget", &f.TaskBudget)),
		{Option: argv.Option{Flags: "--thinking <mode>", Hidden: true, Choices: []string{"enabled", "adaptive", "disabled"}, Set: text(&f.Thinking)}},
		hidden("--thinking-display <display>", text(&f.ThinkingDisplay)),
		opt("--system-prompt <prompt>", "System prompt in place of the default one", text(&f.SystemPrompt)),
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
		opt("--tools <tools...>", `Built-in tools there are: names, "default" or ""`, split(&f.Tools)),
		{Option: argv.Option{Flags: "--permission-mode <mode>", Set: permissionMode(&f.PermissionMode)}, help: "Permission mode of the session", shown: permissionModes()},
		{Option: argv.Option{Flags: "--permission-prompts <target>", Set: text(&f.PermissionPrompts), Choices: []string{"host", "none"}}, help: "Who answers permission questions", note: `default: "host"`},
		hidden("--permission-prompt-tool <tool>", text(&f.PermissionPromptTool)),
		opt("--dangerously-skip-permissions", "Allow every tool call", on(&f.DangerouslySkipPermissions)),
		opt("--allow-dangerously-skip-permissions", "Let the session switch to allowing every tool call", on(&f.AllowDangerouslySkipPermissions)),
	}
}

func surroundingOptions(f *Flags) []option {
	return []option{
		opt("--mcp-config <configs...>", "MCP servers: JSON files or JSON texts", list(&f.MCPConfig)),
		opt("--strict-mcp-config", "Use only the servers of --mcp-config", on(&f.StrictMCPConfig)),
		opt("--add-dir <directories...>", "More directories that tools may use", list(&f.AddDirs)),
		opt("--settings <file-or-json>", "More settings: a JSON file or a JSON text", last(&f.Settings)),
		opt("--setting-sources <sources>", "Settings to load: user, project, local", sources(&f.SettingSources)),
		opt("--agent <agent>", "Agent of the session", text(&f.Agent)),
		opt("--agents <json-or-file>", "Agents as a JSON object, or the file that holds one", text(&f.Agents)),
		opt("--plugin-dir <path>", "Directory of a plugin; may be repeated", list(&f.PluginDirs)),
		opt("--plugin-url <url>", "Address of a plugin", nil),
		opt("--disable-slash-commands", "No slash commands", on(&f.DisableSlashCommands)),
		opt("--bare", "Only the essential tools, nothing loaded from disk", on(&f.Bare)),
		opt("--safe-mode", "Load no customisations", on(&f.SafeMode)),
		opt("--restricted", "Restricted session", on(&f.Restricted)),
		opt("--file <specs...>", "Files to fetch at the start: id:path", nil),
		opt("--ide", "Connect to the editor", nil),
		opt("--chrome", "Connect to the browser", nil),
		opt("--no-chrome", "Do not connect to the browser", nil),
		opt("-w, --worktree [name]", "Work in a git worktree of its own", nil),
		opt("--tmux", "Open a tmux session for the worktree", nil),
	}
}

// remoteOptions belong to features that live outside the process.
func remoteOptions() []option {
	return []option{
		opt("--bg, --background", "Run in the background", nil),
		opt("--cloud [description|session_id|url]", "Run in the cloud", nil),
		opt("--desktop", "Open in the desktop application", nil),
		opt("--environment <environment_id>", "Environment of a cloud session", nil),
		opt("--remote-control [name]", "Let the session be controlled from elsewhere", nil),
		opt("--remote-control-session-name-prefix <prefix>", "Prefix of the names of such sessions", nil),
		opt("--teleport [session]", "Take over a cloud session", nil),
	}
}

// hostOptions are sent by SDK hosts and named in no help text.
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

// ownOptions are ours. Each has a variable for callers that cannot change the command line.
func ownOptions(f *Flags) []option {
	return []option{
		own("--scenario <file>", "CLAUDELESS_SCENARIO", "Scenario that plays the model: a file or a name of the library", text(&f.Scenario)),
		own("--failure <mode>", "CLAUDELESS_FAILURE", "Fail every request in this way, e.g. rate-limit", text(&f.Failure)),
		own("--capture <file>", "CLAUDELESS_CAPTURE", "Write what the run did to this file, one JSON object a line", text(&f.Capture)),
		own("--expect", "CLAUDELESS_EXPECT", "Exit with 3 when an expectation of the scenario was missed", expect(f)),
		own("--strict", "CLAUDELESS_STRICT", "Exit with 6 when the set-up would pass for a wrong reason", on(&f.Strict)),
		own("--mcp-debug", "CLAUDELESS_MCP_DEBUG", "Trace the messages of MCP servers on stderr", on(&f.MCPDebug)),
		own("--mcp-require", "CLAUDELESS_MCP_REQUIRE", "End the run when an MCP server fails to start", on(&f.MCPRequire)),
		own("--debugger <url>", "CLAUDELESS_DEBUGGER", "Breakpoint server that every tool call goes through", text(&f.Debugger)),
		own("--cwd <dir>", "CLAUDELESS_CWD", "Working directory of the run", text(&f.CWD)),
		own("--claude-version <version>", "CLAUDELESS_CLAUDE_VERSION", "Version of claude to report", text(&f.ClaudeVersion)),
	}
}

// expect switches the judging on; "defer" leaves it to whoever reads the journal.
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

// splitTools cuts a list at commas and blanks that are not inside parentheses: "Bash(git log:*),Edit Read".
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

// number reads a number as JavaScript's Number does: no text is 0, bases have prefixes, a text that is none is an error.
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
	case "Infinity": // of ParseFloat's words the only one
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

// clamp makes a number whole and small enough to reckon with.
func clamp(n float64) int { return int(max(-1e15, min(n, 1e15))) }

// positive is a whole number above 0.
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

// windowError is what is wrong with a size, in the words of the real CLI.
type windowError string

func (e windowError) Error() string { return string(e) }

// window is the size at which a conversation is compacted: auto, or a number of tokens, in thousands if it is small.
func window(target *string) func(string) error {
	return func(value string) error {
		if value != "auto" && Window(value) < 100_000 {
			return windowError("It must be 'auto', or at least 100k (e.g. 500k, 200000, or 200 as shorthand)")
		}
		*target = value
		return nil
	}
}

// Window is the size, in tokens, that --autocompact gives; 0 = it leaves it to the model.
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

// permissionMode takes the modes as the real CLI writes them and as older scenarios do: bypass-permissions.
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

// sources only splits; which names are good is checked with the rest, because its error text is of another kind.
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
