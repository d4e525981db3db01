// Package flags defines the command line of claude: every flag, parsed and
// checked as the real CLI does, with the real CLI's error messages. The result
// also contains the values of the CLAUDELESS_ environment variables.
package flags

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/argv"
	"github.com/claudeless/claudeless/internal/base/process"
)

// Flags is one command line of the claude face. Strings are as given, "" when absent; whether a flag with an empty value
// was given is told by Has. Lists hold all values of all occurrences in order.
type Flags struct {
	// Prompt is the first positional word, HasPrompt whether there was one. Further words are dropped, as the real CLI
	// does.
	Prompt    string
	HasPrompt bool

	OutputFlags
	SessionFlags
	ModelFlags
	PromptFlags
	ToolFlags
	SurroundingFlags
	CustomFlags
	DebugFlags
	HostFlags
	OwnFlags

	// Given holds the values of every flag on the command line by its long name without dashes ("allowedTools").
	Given map[string][]string
	// Version and Help say what was asked for in the place of a run.
	Version, Help bool
	// swallowed is the last word that a variadic flag took, for the hint beside a missing prompt.
	swallowed argv.VariadicWord
}

// OutputFlags are about what is read and written.
type OutputFlags struct {
	Print                  bool
	OutputFormat           string // text, json or stream-json; never empty
	InputFormat            string // text or stream-json; never empty
	Verbose                bool
	IncludePartialMessages bool
	IncludeHookEvents      bool
	ReplayUserMessages     bool
	ForwardSubagentText    bool
	JSONSchema             string
}

// SessionFlags say which conversation it is.
type SessionFlags struct {
	Continue             bool
	Resume               string // id, title or path of a transcript
	ResumeSessionAt      string
	ResumeDropsTurn      string
	ForkSession          bool
	SessionID            string
	SessionMirror        bool
	NoSessionPersistence bool
	SessionName          string
}

// ModelFlags are about the model and its limits.
type ModelFlags struct {
	Model             string
	FallbackModel     string
	Effort            string
	Betas             []string
	MaxTurns          int // 0 = no limit, below it the first is the last
	MaxBudgetUSD      float64
	MaxThinkingTokens int
	Thinking          string
	ThinkingDisplay   string
	TaskBudget        int
	Autocompact       string // auto, or a number of tokens
}

// PromptFlags are the system prompt; [Flags.Check] puts the texts of the files into the prompts.
type PromptFlags struct {
	SystemPrompt       string
	SystemPromptFile   string
	AppendSystemPrompt string
	AppendPromptFile   string
}

// ToolFlags are about tools and permissions. The tool lists are split at commas and blanks outside parentheses.
type ToolFlags struct {
	Tools                           []string
	AllowedTools                    []string
	DisallowedTools                 []string
	PermissionMode                  string // camelCase, "manual" and "default" both as "default"; "" = not given
	PermissionPromptTool            string
	PermissionPrompts               string // host or none
	DangerouslySkipPermissions      bool
	AllowDangerouslySkipPermissions bool
}

// SurroundingFlags say what the run finds around it.
type SurroundingFlags struct {
	MCPConfig         []string
	StrictMCPConfig   bool
	AddDirs           []string
	Settings          []string // at most one: the last given
	SettingSources    []string // user, project, local; empty and Has("setting-sources") = none of them
	ManagedSettings   string
	ProjectConfigRoot string
	InitSetup         bool
	Maintenance       bool
}

// CustomFlags are about agents, plugins and what else users add.
type CustomFlags struct {
	Agent                string
	Agents               string // JSON object
	PluginDirs           []string
	PluginDirsNoMCP      []string
	DisableSlashCommands bool
	Bare                 bool
	SafeMode             bool
	Restricted           bool
}

// DebugFlags are about the debug log.
type DebugFlags struct {
	Debug         bool
	DebugFile     string
	DebugToStderr bool
}

// HostFlags are what a host says about the initialize request that it will send.
type HostFlags struct {
	AwaitInitialize             bool
	AwaitClaim                  bool
	InitializeFields            string
	ManagedSettingsInInitialize bool
}

// OwnFlags are ours; unknown under the name claude, where only their environment variables work.
type OwnFlags struct {
	Scenario      string
	Failure       string
	Capture       string
	MCPDebug      bool
	MCPRequire    bool
	ClaudeVersion string
	Defer         bool // expectations are judged by others
	Strict        bool
	Expect        bool
	Debugger      string
	CWD           string
}

// Has reports whether the flag with this long name was on the command line, with whatever value.
func (f *Flags) Has(name string) bool {
	_, ok := f.Given[name]
	return ok
}

// Parse reads a command line of the claude face; [Flags.Check] is for those that are to be run. Under the name claude our own flags are unknown, but their
// variables still count.
func Parse(s *process.System, words []string) (*Flags, error) {
	f := &Flags{OutputFlags: OutputFlags{OutputFormat: "text", InputFormat: "text"}}
	options := claudeOptions(f)
	mine := ownOptions(f)
	if !s.CalledAsClaude() {
		options = append(options, mine...)
	}
	result, err := argv.Parse(grammar(options), words)
	f.Given = result.Given
	if errors.Is(err, errVersion) {
		f.Version = true
		return f, versionOverride(s, f, words)
	}
	if err != nil {
		return nil, err
	}
	f.Help, f.swallowed = result.Help, result.Swallowed
	if len(result.Operands) > 0 {
		f.Prompt, f.HasPrompt = result.Operands[0], true
	}
	return f, fromEnvironment(s, f, mine)
}

// versionOverride finds --claude-version on either side of -v. Whatever else is on the line no longer matters.
func versionOverride(s *process.System, f *Flags, words []string) error {
	mine := slices.DeleteFunc(ownOptions(f), func(o option) bool { return o.Name() != "claude-version" })
	if !s.CalledAsClaude() {
		result, _ := argv.Parse(grammar(mine), words) // every other flag of the line is unknown here
		f.Given = result.Given
	}
	return fromEnvironment(s, f, mine)
}

// fromEnvironment fills our own flags that the command line leaves open. A switch is on when its variable is neither
// empty, 0 nor false.
func fromEnvironment(s *process.System, f *Flags, mine []option) error {
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

// Dir is the absolute working directory of the run: --cwd, or that of the process.
func (f *Flags) Dir(s *process.System) (string, error) {
	if filepath.IsAbs(f.CWD) {
		return filepath.Clean(f.CWD), nil
	}
	dir, err := s.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return filepath.Join(dir, f.CWD), nil
}

// Abs makes a path of the command line absolute.
func (f *Flags) Abs(s *process.System, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := f.Dir(s)
	return filepath.Join(dir, path), err
}

// SwallowedHint explains a missing prompt that a variadic flag may have taken; "" = none was.
func (f *Flags) SwallowedHint() string {
	if f.HasPrompt || f.swallowed.Option == "" {
		return ""
	}
	if f.swallowed.First || !strings.ContainsAny(f.swallowed.Word, " \t\n") {
		return ""
	}
	return fmt.Sprintf("%q was read as a value of %s, not as a prompt · put a prompt before %[2]s or after --\n", f.swallowed.Word, f.swallowed.Option)
}
