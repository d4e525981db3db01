// Package flags defines the command line of claude: every flag, parsed and checked as the real CLI does, with the
// real CLI's error messages. The result also contains the values of the CLAUDELESS_ environment variables.
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

// Flags is one parsed command line of claude. Strings are unchanged, and "" if the flag is missing. [Flags.WasGiven]
// distinguishes an empty value from a missing flag. Lists hold the values of all occurrences in order.
type Flags struct {
	// Prompt is the first positional word, and HasPrompt reports whether it exists. As in the real CLI, other words are ignored.
	Prompt    string
	HasPrompt bool

	InputOutputFlags
	SessionFlags
	ModelFlags
	SystemPromptFlags
	ToolFlags
	ConfigSourceFlags
	CustomizationFlags
	DebugFlags
	InitializeAnnouncementFlags
	ClaudelessFlags

	Given map[string][]string // holds the values of every given flag by its long name without dashes ("allowedTools")
	// Version and Help request output instead of a run.
	Version, Help bool
	// lastVariadicWord is the last value of a variadic flag. If the prompt is missing, it may be this value; see
	// [Flags.HintThatVariadicFlagTookPrompt].
	lastVariadicWord argv.VariadicWord
}

// InputOutputFlags configure the formats of input and output.
type InputOutputFlags struct {
	Print                                                                                       bool
	Interactive                                                                                 bool   // the run has a terminal and no -p; set by Parse's caller
	OutputFormat                                                                                string // text, json or stream-json; never empty
	InputFormat                                                                                 string // text or stream-json; never empty
	Verbose, IncludePartialMessages, IncludeHookEvents, ReplayUserMessages, ForwardSubagentText bool
	JSONSchema                                                                                  string
}

// SessionFlags select the conversation.
type SessionFlags struct {
	Continue                            bool
	Resume                              string // id, title or path of a transcript
	Worktree                            string // name of the git worktree to work in
	WorktreeDir                         string // directory of the created worktree; empty means the start directory
	ResumeSessionAt, ResumeDropsTurn    string
	ForkSession                         bool
	SessionID                           string
	SessionMirror, NoSessionPersistence bool
	SessionName                         string
}

// ModelFlags configure the model and its limits.
type ModelFlags struct {
	Model, FallbackModel, Effort string
	Betas                        []string
	MaxTurns                     int // 0 means no limit; negative means only one turn
	MaxBudgetUSD                 float64
	MaxThinkingTokens            *int // nil means that the flag is not given
	Thinking, ThinkingDisplay    string
	TaskBudget                   int
	Autocompact                  string // auto, or a number of tokens
}

// SystemPromptFlags configure the system prompt; [Flags.CheckAndNormalize] adds the texts of the files.
type SystemPromptFlags struct {
	SystemPrompt, SystemPromptFile, AppendSystemPrompt, AppendPromptFile string
}

// ToolFlags configure tools and permissions. The tool lists are split at commas and spaces outside parentheses.
type ToolFlags struct {
	Tools, AllowedTools, DisallowedTools                        []string
	PermissionMode                                              string // kebabToCamelCase, "default" for "manual"; "" means not set
	PermissionPromptTool                                        string
	PermissionPrompts                                           string // host or none
	DangerouslySkipPermissions, AllowDangerouslySkipPermissions bool
}

// ConfigSourceFlags configure the environment of the run.
type ConfigSourceFlags struct {
	MCPConfig                          []string
	StrictMCPConfig                    bool
	AddDirs                            []string
	Settings                           []string // at most one value: the last one given
	SettingSources                     []string // user, project, local; empty means none if Has("setting-sources"), otherwise all
	ManagedSettings, ProjectConfigRoot string
	InitSetup, InitOnly, Maintenance   bool
}

// CustomizationFlags configure agents, plugins and other additions of users.
type CustomizationFlags struct {
	Agent                                            string
	Agents                                           string // JSON object
	PluginDirs, PluginDirsNoMCP                      []string
	DisableSlashCommands, Bare, SafeMode, Restricted bool
}

// DebugFlags configure the debug log.
type DebugFlags struct {
	Debug         bool
	DebugFile     string
	DebugToStderr bool
}

// InitializeAnnouncementFlags announce properties of the initialize request that the host will send.
type InitializeAnnouncementFlags struct {
	AwaitInitialize, AwaitClaim bool
	InitializeFields            string
	ManagedSettingsInInitialize bool
}

// ClaudelessFlags are the flags that only claudeless has. A program with the name claude does not accept them, but it
// reads the corresponding environment variables.
type ClaudelessFlags struct {
	Scenario, Failure, Capture string
	MCPDebug, MCPRequire       bool
	ClaudeVersion              string
	DeferVerdict               bool // another process checks the expectations, later
	Strict, Expect             bool
	Debugger, CWD              string
}

// WasGiven reports whether the flag with this long name was given, with any value.
func (f *Flags) WasGiven(name string) bool {
	_, ok := f.Given[name]
	return ok
}

// Parse parses a command line of claude; call [Flags.CheckAndNormalize] before a run. Under the name claude, flags of claudeless
// are unknown, but the corresponding environment variables apply.
func Parse(s *process.System, words []string) (*Flags, error) {
	f := &Flags{InputOutputFlags: InputOutputFlags{OutputFormat: "text", InputFormat: "text"}}
	options := claudeOptions(f)
	mine := claudelessOptions(f)
	if !s.CalledAsClaude() {
		options = append(options, mine...)
	}
	result, err := argv.Parse(parserOptions(options), words)
	f.Given = result.Options
	if errors.Is(err, errStopParsingAtVersionFlag) {
		f.Version = true
		return f, applyClaudeVersionForVersionFlag(s, f, words)
	}
	if err != nil {
		return nil, err
	}
	f.Help, f.lastVariadicWord = result.Help, result.VariadicWord
	if len(result.Operands) > 0 {
		f.Prompt, f.HasPrompt = result.Operands[0], true
	}
	return f, setMissingFlagsFromEnvironment(s, f, mine)
}

// applyClaudeVersionForVersionFlag finds --claude-version before or after -v. The rest of the line is ignored.
func applyClaudeVersionForVersionFlag(s *process.System, f *Flags, words []string) error {
	own := slices.DeleteFunc(claudelessOptions(f), func(o option) bool { return o.Name() != "claude-version" })
	if !s.CalledAsClaude() {
		result, _ := argv.Parse(parserOptions(own), words) // the error is ignored: all other flags are unknown to this parser
		f.Given = result.Options
	}
	return setMissingFlagsFromEnvironment(s, f, own)
}

// setMissingFlagsFromEnvironment sets claudeless flags that the command line does not set. A boolean flag is set unless its
// variable is empty, "0" or "false".
func setMissingFlagsFromEnvironment(s *process.System, f *Flags, ownOptions []option) error {
	for _, o := range ownOptions {
		value := s.Getenv(o.env)
		if isSwitch := !strings.Contains(o.Flags, "<"); value == "" || f.WasGiven(o.Name()) || isSwitch && (value == "0" || value == "false") {
			continue
		}
		if err := o.Set(value); err != nil {
			return err
		}
	}
	return nil
}

func parserOptions(options []option) []argv.OptionDefinition {
	plain := make([]argv.OptionDefinition, len(options))
	for i, o := range options {
		plain[i] = o.OptionDefinition
	}
	return plain
}

// AbsoluteWorkingDirectory returns the absolute working directory of the run: --cwd, or that of the process.
func (f *Flags) AbsoluteWorkingDirectory(s *process.System) (string, error) {
	if filepath.IsAbs(f.CWD) {
		return filepath.Clean(f.CWD), nil
	}
	dir, err := s.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return filepath.Join(dir, f.CWD), nil
}

// Abs returns the absolute form of a path on the command line.
func (f *Flags) Abs(s *process.System, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := f.AbsoluteWorkingDirectory(s)
	return filepath.Join(dir, path), err
}

// HintThatVariadicFlagTookPrompt returns a hint if the prompt is missing and a variadic flag may have taken it as a value;
// otherwise it returns "".
func (f *Flags) HintThatVariadicFlagTookPrompt() (hintOrEmpty string) {
	if f.HasPrompt || f.lastVariadicWord.Option == "" || f.lastVariadicWord.First || !strings.ContainsAny(f.lastVariadicWord.Word, " \t\n") {
		return ""
	}
	return fmt.Sprintf("%q was read as a value of %s, not as a prompt · put a prompt before %[2]s or after --\n", f.lastVariadicWord.Word, f.lastVariadicWord.Option)
}

// RealCLIOptions lists every option of the real CLI, group by group. Those without a Set have no effect.
func RealCLIOptions() []argv.OptionDefinition { return parserOptions(claudeOptions(&Flags{})) }

// ParseAgentsCommand parses the words after the command "agents". Of its options, only --json has an effect.
func ParseAgentsCommand(words []string) (operands []string, asJSON bool, err error) {
	const flags = "--add-dir <directory>; --agent <agent>; --all; --allow-dangerously-skip-permissions; --cwd <path>; --dangerously-skip-permissions; " +
		"--effort <level>; --json; --mcp-config <config>; --model <model>; --permission-mode <mode>; --plugin-dir <path>; --restricted; " +
		"--setting-sources <sources>; --settings <file-or-json>; --strict-mcp-config"
	var options []argv.OptionDefinition
	for flag := range strings.SplitSeq(flags, "; ") {
		options = append(options, argv.OptionDefinition{Flags: flag, Set: func(string) error { return nil }})
	}
	found, err := argv.Parse(options, words)
	return found.Operands, found.Options["json"] != nil, err
}
