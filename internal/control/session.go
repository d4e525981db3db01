package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Session is what the host controls. Turn, Ready, Initialize, Policy, Model and
// SetModel are required; a request whose function is nil is answered as one
// that is not supported.
type Session struct {
	// Turn plays one prompt and writes its events to [Peer.Events]. When
	// interrupt ends, the turn still ends with its result; when ctx ends, it is
	// given up. It is called from one goroutine. Completed is what
	// [simulator.Completed] says of its result. An error ends the process.
	Turn func(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error)
	// First is played before the host's prompts: once initialize is answered, and
	// without one as soon as a prompt comes or stdin ends. Nil = nothing.
	First *protocol.UserMessage
	// Ready waits until a turn may begin; it is called before each. An error
	// ends the process.
	Ready func(ctx context.Context) error
	// Background is nil when the session has no work beside its turns.
	Background *Background
	// Initialize takes the host's settings and describes the session. No turn
	// runs meanwhile unless begun is set, which says that some have been played.
	Initialize func(ctx context.Context, in Initialize, begun bool) (Description, error)
	// Connect connects the servers that initialize names; the next turn waits for
	// it. Nil = there are none.
	Connect func(ctx context.Context, in Initialize)

	Policy *permission.Policy
	// Servers is nil when the session can have none.
	Servers *mcp.Manager
	// SetServers replaces the servers that the host may change by the given
	// mcpServers object.
	SetServers func(ctx context.Context, servers json.RawMessage) (mcp.Change, error)

	Model    func() string // the model in force, as the API names it
	SetModel func(name string)
	// ApplySettings puts settings over those of --settings, key by key; null takes
	// a key away. When some are invalid, it names them and changes nothing.
	ApplySettings func(settings map[string]json.RawMessage) (wrong []string)
	// UpdateSettings writes settings to the file of a source, "localSettings" or
	// "userSettings".
	UpdateSettings func(source string, settings map[string]string) error
	Rename         func(title string) error
	StopTask       func(id string)
	// SideQuestion asks the model something beside the conversation.
	SideQuestion func(ctx context.Context, question string) (Aside, error)
	// RegisterRoot adds a working directory and returns its absolute path; an
	// error is the answer as it stands.
	RegisterRoot func(directory string) (abs string, err error)
	// TaskOutput returns what a shell command in the background has written.
	TaskOutput func(id string) ([]byte, bool)
	// Rewind restores the files of a prompt; see [Rewind].
	Rewind func(promptUUID string, dryRun bool) (Rewind, error)
	// ReadFile returns the contents of a file that tools may read.
	ReadFile func(path string) (abs string, contents []byte, err error)

	// The rest describes the session; the values are sent as they are.
	ContextUsage, Settings, Usage, Rules      func() any
	Models, Hooks                             func() any
	ReloadSkills, ReloadPlugins, ReloadStyles func() any // what there is; nothing is read again
	Cost                                      func() string
	Version, BuildTime                        string
}

// Background is work that goes on between turns. Its functions never run beside
// each other or a turn.
type Background struct {
	// Busy tells whether work runs or a turn is to follow from it.
	Busy func() bool
	// Idle writes what the work shows to [Peer.Events] until a turn is to follow,
	// nothing is left, or until ends. When ctx ends, it is given up.
	Idle func(ctx, until context.Context) error
	// Notice takes the prompt of a turn that is to follow; false = there is none.
	Notice func() (protocol.UserMessage, bool)
	// Ceiling is how long work may go on when no more prompts will come.
	Ceiling time.Duration
}

// Aside is what the model says to a side question.
type Aside struct {
	Text      string `json:"response"`
	Synthetic bool   `json:"synthetic"` // it is the CLI that says it
}

// Rewind is the outcome of restoring files, or of a rehearsal of it.
type Rewind struct {
	FilesChanged          []string
	Insertions, Deletions int
	SkippedLinks          int // files left alone because a link stands in their place
}

// Initialize is the host's first request (spec: cli-contract 4.2). Absent keys
// are zero.
type Initialize struct {
	Hooks              map[string][]protocol.HookMatcher `json:"hooks"`
	SDKMCPServers      []string                          `json:"sdkMcpServers"`
	SDKMCPConfigs      map[string]SDKServer              `json:"sdkMcpServerConfigs"`
	JSONSchema         json.RawMessage                   `json:"jsonSchema"`
	SystemPrompt       []string                          `json:"systemPrompt"`
	AppendSystemPrompt string                            `json:"appendSystemPrompt"`
	Agents             json.RawMessage                   `json:"agents"`      // an object by name
	ToolAliases        map[string]string                 `json:"toolAliases"` // by the name that the model writes
	Title              string                            `json:"title"`
	Skills             []string                          `json:"skills"` // nil = all
	ForwardSubagent    bool                              `json:"forwardSubagentText"`
	Plugins            []json.RawMessage                 `json:"plugins"`
	MCPServers         json.RawMessage                   `json:"mcpServers"`
}

// SDKServer is what a host says about one of its own servers.
type SDKServer struct {
	TimeoutMS int `json:"timeout"` // of a call; 0 = the default
}

// Description is the answer to initialize. Keys of the SDK types come first in
// their order; those that the peer knows by itself are filled in by it.
type Description struct {
	Commands              []Command `json:"commands"`
	Agents                []Agent   `json:"agents"`
	OutputStyle           string    `json:"output_style"`
	AvailableOutputStyles []string  `json:"available_output_styles"`
	UserOutputStylesDir   string    `json:"user_output_styles_dir,omitempty"`
	Models                any       `json:"models"`
	Account               Account   `json:"account"`
	PID                   int       `json:"pid"`
	ClaudeCodeVersion     string    `json:"claude_code_version"`
	PermissionMode        string    `json:"current_permission_mode"`
	HooksApplied          bool      `json:"hooks_applied,omitempty"`
	PluginsApplied        *bool     `json:"plugins_applied,omitempty"`     // nil = none were named
	MCPServersApplied     *bool     `json:"mcp_servers_applied,omitempty"` // nil = none were named

	// ManifestsParked tells what became of the handshakes that the host has had.
	ManifestsParked map[string]string `json:"sdk_mcp_manifests_parked,omitempty"`

	OnFailureSupported  bool `json:"hook_on_failure_supported"`
	HooksKept           int  `json:"hooks_when_unanswered_kept"`
	AskOutranksHost     bool `json:"other_hook_ask_outranks_host"`
	FeedbackMode        Kind `json:"feedback_mode"`
	AnalyticsDisabled   bool `json:"analytics_disabled"`
	RemoteAutoEnable    bool `json:"remote_control_auto_enable"`
	RemoteAutoConnect   bool `json:"remote_control_auto_connect_default"`
	RemoteAvailable     bool `json:"remote_control_available"`
	RemoteAutoOn        bool `json:"remote_control_auto_on_by_default"`
	IDERemoteAutoEnable bool `json:"ide_rc_auto_enable_gate"`

	FastModeState          string   `json:"fast_mode_state"`
	FastModeDisabledReason string   `json:"fast_mode_disabled_reason"`
	SessionState           string   `json:"session_state"`
	Capabilities           []string `json:"capabilities"`
}

// Command is one slash command.
type Command struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	Builtin      bool     `json:"builtin,omitempty"`
}

// Agent is one kind of sub-agent.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model,omitempty"` // "inherit" or an alias
}

// Account says how the session is paid for.
type Account struct {
	TokenSource  string `json:"tokenSource"`
	APIKeySource string `json:"apiKeySource"`
	APIProvider  string `json:"apiProvider"`
}

// Kind is an object with nothing but a kind.
type Kind struct {
	Kind string `json:"kind"`
}
