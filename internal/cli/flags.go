package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/argv"
)

// Flags is one command line of the claude face, read but not yet checked against the rest of the world. Strings are as
// given, "" when absent; whether a flag with an empty value was given is told by Has. Lists hold all values of all
// occurrences in order.
type Flags struct {
	// Prompt is the first positional word, HasPrompt whether there was one. Further words are dropped, as the real CLI
	// does.
	Prompt    string
	HasPrompt bool

	// Output and input.
	Print                  bool
	OutputFormat           string // text, json or stream-json; never empty
	InputFormat            string // text or stream-json; never empty
	Verbose                bool
	IncludePartialMessages bool
	IncludeHookEvents      bool
	ReplayUserMessages     bool
	ForwardSubagentText    bool
	JSONSchema             string

	// Session.
	Continue             bool
	Resume               string // id, title or path of a transcript
	ResumeSessionAt      string
	ResumeDropsTurn      string
	ForkSession          bool
	SessionID            string
	SessionMirror        bool
	NoSessionPersistence bool
	SessionName          string

	// Model.
	Model              string
	FallbackModel      string
	Effort             string
	Betas              []string
	MaxTurns           int // 0 = no limit, below it the first is the last
	MaxBudgetUSD       float64
	MaxThinkingTokens  int
	Thinking           string
	ThinkingDisplay    string
	TaskBudget         int
	SystemPrompt       string // with the text of SystemPromptFile after check
	SystemPromptFile   string
	AppendSystemPrompt string // with the text of AppendSystemPromptFile after check
	AppendPromptFile   string

	// Tools and permissions. The tool lists are split at commas and blanks outside parentheses.
	Tools                           []string
	AllowedTools                    []string
	DisallowedTools                 []string
	PermissionMode                  string // camelCase, "manual" and "default" both as "default"; "" = not given
	PermissionPromptTool            string
	PermissionPrompts               string // host or none
	DangerouslySkipPermissions      bool
	AllowDangerouslySkipPermissions bool

	// Surroundings.
	MCPConfig            []string
	StrictMCPConfig      bool
	AddDirs              []string
	Settings             []string // at most one: the last given
	SettingSources       []string // user, project, local; empty and Has("setting-sources") = none of them
	ManagedSettings      string
	Agent                string
	InitSetup            bool
	Maintenance          bool
	Agents               string // JSON object
	PluginDirs           []string
	PluginDirsNoMCP      []string
	ProjectConfigRoot    string
	DisableSlashCommands bool
	Bare                 bool
	SafeMode             bool
	Restricted           bool
	Debug                bool
	DebugFile            string
	DebugToStderr        bool

	// What a host says about the initialize request that it will send.
	AwaitInitialize             bool
	AwaitClaim                  bool
	InitializeFields            string
	ManagedSettingsInInitialize bool

	// Ours; unknown under the name claude, where only their environment variables work.
	Scenario      string
	Failure       string
	Capture       string
	MCPDebug      bool
	MCPRequire    bool
	ClaudeVersion string
	Expect        bool
	Debugger      string
	CWD           string

	// Given holds the values of every flag on the command line by its long name without dashes ("allowedTools").
	Given map[string][]string
	// swallowed is the last word that a variadic flag took, for the hint beside a missing prompt.
	swallowed struct {
		Option, Word string
		First        bool
	}
	version, help bool
}

// Has reports whether the flag with this long name was on the command line, with whatever value.
func (f *Flags) Has(name string) bool {
	_, ok := f.Given[name]
	return ok
}

// parseFlags reads a command line of the claude face. Under the name claude our own flags are unknown, but their
// variables still count.
func parseFlags(s *System, words []string) (*Flags, error) {
	f := &Flags{OutputFormat: "text", InputFormat: "text"}
	options := claudeOptions(f)
	mine := ownOptions(f)
	if !s.asClaude() {
		options = append(options, mine...)
	}
	result, err := argv.Parse(grammar(options), words)
	f.Given = result.Given
	if errors.Is(err, errVersion) {
		f.version = true
		return f, versionOverride(s, f, words)
	}
	if err != nil {
		return nil, err
	}
	f.help, f.swallowed = result.Help, result.Swallowed
	if len(result.Operands) > 0 {
		f.Prompt, f.HasPrompt = result.Operands[0], true
	}
	return f, fromEnvironment(s, f, mine)
}

// versionOverride finds --claude-version on either side of -v. Whatever else is on the line no longer matters.
func versionOverride(s *System, f *Flags, words []string) error {
	mine := slices.DeleteFunc(ownOptions(f), func(o option) bool { return o.Name() != "claude-version" })
	if !s.asClaude() {
		result, _ := argv.Parse(grammar(mine), words) // every other flag of the line is unknown here
		f.Given = result.Given
	}
	return fromEnvironment(s, f, mine)
}

// fromEnvironment fills our own flags that the command line leaves open. A switch is on when its variable is neither
// empty, 0 nor false.
func fromEnvironment(s *System, f *Flags, mine []option) error {
	for _, o := range mine {
		value := s.Getenv(o.env)
		isSwitch := !strings.Contains(o.Flags, "<")
		if value == "" || f.Has(o.Name()) || isSwitch && (value == "0" || value == "false") {
			continue
		}
		if err := o.Set(value); err != nil {
			return err
		}
	}
	return nil
}

func grammar(options []option) []argv.Option {
	plain := make([]argv.Option, len(options))
	for i, o := range options {
		plain[i] = o.Option
	}
	return plain
}

// thinkingDisplay is how events of reasoning are marked: of what the flag may say,
// one thing shows.
func (f *Flags) thinkingDisplay() string {
	if f.ThinkingDisplay == "summarized" {
		return f.ThinkingDisplay
	}
	return ""
}
