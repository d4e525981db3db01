package launch

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/gitworktree"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/telemetry"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/settings"
	"github.com/claudeless/claudeless/simulator/transcript"
)

// Plan contains all decisions made before the run starts. It does not change; the session holds the changing state.
type Plan struct {
	DirectoriesAndProcess
	VersionAndEntrypoint
	OutputWriters
	Environ []string // environment of the programs that are started
	Clock   *clock.TimeAndIDSource

	Scenario      Scenario
	Settings      Settings
	Catalog       *catalog.Catalog
	Customization ResolvedCustomization
	Servers       MCPServers
	Model         ModelChoice
	Prompt        SystemPromptAndSchema
	Limits        Limits
	Tools         ToolSelection
	Permission    InitialPermissions
	Transcript    transcript.Options // options of the transcript, without callbacks
	Output        OutputOptions
	Records       RecordOptions
	Host          HostModeOptions
	Worktree      *Worktree // worktree that the run has entered; nil means none

	resolver *planResolver // computes the plan again after a host has defined agents
}

// Worktree is the git worktree in which a run with --worktree works.
type Worktree struct {
	gitworktree.Worktree
	Name           string // name as given on the command line
	OriginalDir    string // the directory in which the run was started
	OriginalBranch string
}

// DirectoriesAndProcess are the working directory of the run and the directories where it stores files.
type DirectoriesAndProcess struct {
	CWD        string // absolute
	Start      string // start directory of the program, to which paths in flags are relative; empty means CWD
	State      string // state directory; empty means no state is kept
	Home       string
	Temp       string // directory for sockets
	TaskTemp   string // directory for the output of tasks; empty means a directory that is removed at the end of the run
	Store      mcpcmd.Store
	Executable string // path of this program; empty means unknown
	UID, PID   int
	Started    time.Time
}

// OutputWriters are the outputs of a run other than its events.
type OutputWriters struct {
	Stdout   io.Writer // stdout, for faults that corrupt it
	Stderr   io.Writer // output for warnings
	Progress io.Writer // displays a temporary line about what the run is waiting for; nil means none
}

func (s OutputWriters) warn(text string) { fmt.Fprintf(s.Stderr, "claudeless: warning: %s\n", text) }

// VersionAndEntrypoint identifies the run: ids, version and entry point.
type VersionAndEntrypoint struct {
	Version      string             // version of claude
	Profile      claudecode.Profile // behaviour of the claude version in Version
	Entrypoint   string
	AsClaude     bool   // the program runs under the name claude, without extra features and hints
	RustCompat   bool   // the behaviour of the older Rust tool is kept
	APIKeySource string // "none", or the name of the variable
}

// Scenario is the scripted model.
type Scenario struct {
	*scenarios.Scenario
	Name    string // name of the scenario as given; empty means that the default file was found
	Path    string // path of the scenario file; empty means that the scenario is not from a file
	Engine  scenarios.EngineOptions
	Failure *scenarios.Failure // failure of every request; nil means that the scenario decides
}

// Settings are the settings at the start of the run, and the options with which they were read.
type Settings struct {
	settings.Settings
	Options settings.Options
}

// ResolvedCustomization specifies which of the user's customizations apply.
type ResolvedCustomization struct {
	Agent                      string // agent that the session runs as; empty means none
	UnknownAgent               string // name of --agent that only a host can define; empty means none
	Title                      string // --name
	Setup                      string // trigger of the Setup hooks, "init" or "maintenance"; empty means that none run
	NoCommands                 bool   // --disable-slash-commands
	Bare, Restricted, SafeMode bool
	NoGitInstructions          bool
	InstructionFiles           []catalog.InstructionFile       // instruction files
	InstructionFileOptions     *catalog.InstructionFileOptions // specifies where to find further instruction files; nil means none
}

// MCPServers are the MCP servers of the run.
type MCPServers struct {
	Configs         []mcp.ServerConfig        // servers that are started
	InHost          []mcp.ServerConfig        // servers inside the host; they can be reached only after initialize
	Errors          []protocol.MCPServerError // entries that were skipped
	InitErrors      []protocol.MCPServerError // those of Errors that init lists
	Client          mcp.Options               // options for connecting to the servers, without callbacks
	Required        bool                      // the run fails if a server is missing
	NoPluginServers bool                      // --strict-mcp-config: servers of plugins are not added
}

// ModelChoice says which model the session uses at its start, and what replaces it.
type ModelChoice struct {
	Requested string // name of the model in a flag or in the session's agent, perhaps an alias; empty means none
	Name      string // name of the model at start
	// IsExplicit is true if a flag, agent or the environment selected the model. Otherwise a resumed session keeps its model.
	IsExplicit bool
	Fallbacks  []string // models to try in order if the model is overloaded or not available
	Effort     string
	Betas      []string // known beta headers from the flags
	Thinking   claudecode.Thinking
	Aliases    ModelAliases
	Subagents  string // model of agents without their own; empty means Name
	Notice     string // line about a model that is replaced or retired, for text output; empty means none
}

// ModelAliases are the models that the environment assigns to the default and to opus, sonnet and haiku; empty means none.
type ModelAliases struct {
	Default, Opus, Sonnet, Haiku string
	KeepsLegacyOpus              bool // old models are not replaced by the latest Opus
}

// SystemPromptAndSchema holds the system prompt and the JSON Schema of the answer.
type SystemPromptAndSchema struct {
	System, Append string
	ReplacesSystem bool   // System replaces the default, even if it is empty
	Schema         string // JSON Schema of the answer; empty means none
	SchemaFlag     bool   // the schema was given by a flag
	SchemaAttempts int    // number of invalid answers after which the turn fails; 0 means the default
}

// ReplacesDefaultWithEmpty reports whether an empty text replaces the default system prompt. It is false for the zero value.
func (p SystemPromptAndSchema) ReplacesDefaultWithEmpty() bool {
	return p.ReplacesSystem && p.System == "" && p.Append == ""
}

// Limits bound a run in turns, money, attempts and time. Zero means the default of the package that uses the limit.
type Limits struct {
	MaxTurns                  int
	MaxBudgetUSD              float64
	MaxRetries                int                             // -1 means none
	RetryScale                float64                         // factor for the waits between retries; 1 means as in the real CLI
	ResponseDelay             time.Duration                   // wait before the first reply to every prompt
	Pace                      claudecode.StartAndAnswerDelays // minimum time until a start and until an answer
	StopBlockCap              int
	ContextWindow             int    // tokens to which a conversation may grow; 0 means the model's limit
	NoAutoCompact             bool   // a full conversation is not compacted
	NoCompactCommand          bool   // DISABLE_COMPACT: the command /compact does not compact either
	IsSandbox                 bool   // IS_SANDBOX is set
	GatewayHost               string // host of an API that is not the vendor's; empty means the vendor's API
	HookTimeout, CompactDelay time.Duration
	BackgroundLimit           time.Duration // how long background work may continue after the last prompt
}

// ToolSelection specifies which built-in tools the session has.
type ToolSelection struct {
	Requested       []string // --tools, or the tools of the session's agent
	OfAgent         bool     // Requested comes from the session's agent; init lists the tools in the order of Requested
	Restricted      bool     // only the tools in Requested are available, or none if Requested is empty
	Allowed         []string // --allowedTools; optional tools in this list become available
	Disallowed      []string // --disallowedTools
	AgentDisallowed []string // tools that the session's agent must not use
	NoTasks         bool     // the session has TodoWrite instead of the task list
	NoSearch        bool     // the model receives the definitions of all tools
	SearchFrom      float64  // percentage of the context window from which the definitions of deferred tools are left out; 0 means always
	NoBackground    bool     // true if commands and agents do not run in the background
}

// InitialPermissions has the rules and modes at the start, and the prompter.
type InitialPermissions struct {
	Mode          protocol.PermissionMode
	Rules         []permission.Rule
	Directories   []permission.WorkingDirectory // working directories in addition to CWD
	NoPrompts     bool                          // the run asks no permission questions
	PromptTool    string                        // answers questions: "stdio" (the host) or a tool of an MCP server; empty means none
	BypassAllowed bool
}

// OutputOptions selects the format of the output and the events that it contains.
type OutputOptions struct {
	Format                   string // text, json or stream-json
	Verbose                  bool   // write every event, not only the end of a turn
	PartialMessages          bool   // write the parts of messages as they arrive
	ReplayPrompts            bool   // echo the prompts
	HookEvents               bool
	AgentText                bool   // write what sub-agents say while the turn waits for them
	ThinkingDisplay          string // how thinking is marked in events; empty means that it is not marked
	FailOnMissedExpectations bool   // a missed expectation of the scenario determines the exit code
	DeferVerdict             bool   // another process checks the expectations
	MirrorTranscript         bool   // repeat the transcript lines on stdout
}

// RecordOptions specify what is recorded about a run, and where. They also specify its gates and its debugger.
type RecordOptions struct {
	Capture       string // the journal's file; empty means none
	Gates         string // directory of the gates (steps of the scenario wait at them); empty means none
	Run           journal.Run
	Debug         bool   // a debug log is written
	DebugFile     string // file of the debug log; empty means stderr if DebugToStderr is set, otherwise the state directory
	DebugToStderr bool
	DebuggerURL   string // empty means no debugger
	DebuggerToken string
	Telemetry     telemetry.Config
}

// HostModeOptions are the options for a host on stdin and stdout. The zero value is a run without a host.
type HostModeOptions struct {
	AwaitInitialize     bool
	SeparateTurns       bool // prompts are never merged
	Checkpoints         bool // keep copies of changed files
	StateEvents         bool // the state of the session is reported
	StateEventsHostOnly bool // state events are marked as not meant for users
}

// planResolver fills in a plan step by step. Each step uses only results of earlier steps.
type planResolver struct {
	sys   *process.System // includes the environment from the settings once these are read
	flags *flags.Flags
	plan  *Plan
}

// PlanModeFile returns the file of the plan that the model writes in plan mode. It is "" if the name is empty, or if the session is
// not saved.
func (p *Plan) PlanModeFile(name string) string {
	if p.Transcript.NoPersist || name == "" {
		return ""
	}
	return filepath.Join(p.State, "plans", name+".md")
}

// DirectoryPaths returns the paths of Directories, never nil.
func (p InitialPermissions) DirectoryPaths() []string {
	list := []string{}
	for _, d := range p.Directories {
		list = append(list, d.Path)
	}
	return list
}
