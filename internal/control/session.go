package control

import (
	"context"
	"encoding/json"

	"github.com/claudeless/claudeless/mcp"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Session is what the host controls. Its methods may be called from several goroutines; Turn, Idle and Notice never run beside
// each other.
type Session interface {
	Plays
	Changes
	Answers
}

// Plays are what the queue is for.
type Plays interface {
	Player
	Worker
	Greeter
}

// Changes are what requests change.
type Changes interface {
	Parts
	Named
	Settler
}

// Answers are what requests ask for.
type Answers interface {
	Tasks
	Files
	Teller
}

// Player plays prompts.
type Player interface {
	// First is played before the host's prompts: once initialize is answered, and without one as soon as a prompt comes or
	// stdin ends. Nil = nothing.
	First() *protocol.UserMessage
	// Ready waits until a turn may begin; it is called before each. An error ends the process.
	Ready(ctx context.Context) error
	// Turn plays one prompt and writes its events to [Peer.Events]. When interrupt ends, the turn still ends with its result;
	// when ctx ends, it is given up. Completed is what [simulator.Completed] says of its result. An error ends the process.
	Turn(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error)
}

// Worker is work that goes on between turns.
type Worker interface {
	// Busy tells whether work runs or a turn is to follow from it.
	Busy() bool
	// Idle writes what the work shows to [Peer.Events] until a turn is to follow, nothing is left, or until ends. When ctx ends,
	// it is given up.
	Idle(ctx, until context.Context) error
	// Notice takes the prompt of a turn that is to follow; false = there is none.
	Notice() (protocol.UserMessage, bool)
}

// Interrupted is a session that has more to end than its turn when the host interrupts.
type Interrupted interface {
	// Interrupt ends the agents in the background, without waiting for them.
	Interrupt()
}

// Greeter takes the host's first request.
type Greeter interface {
	// Initialize takes the host's settings and describes the session. No turn runs meanwhile unless some have been played.
	Initialize(ctx context.Context, in Initialize) (Description, error)
	// Connect connects the servers that initialize names; the next turn waits for it.
	Connect(ctx context.Context, in Initialize)
}

// Parts are what requests act on.
type Parts interface {
	Policy() *permission.Policy
	// Servers is nil when the session can have none.
	Servers() *mcp.Manager
	// SetServers replaces the servers that the host may change by the given mcpServers object.
	SetServers(ctx context.Context, servers json.RawMessage) (mcp.Change, error)
}

// Named is what of the session has a name that changes.
type Named interface {
	Model() string // the model in force, as the API names it
	SetModel(name string)
	Rename(title string)
}

// Settler changes settings.
type Settler interface {
	// ApplySettings puts settings over those of --settings, key by key; null takes a key away. When some are invalid, it names
	// them and changes nothing.
	ApplySettings(settings map[string]json.RawMessage) (wrong []string)
	// UpdateSettings writes settings to the file of a source, "localSettings" or "userSettings".
	UpdateSettings(source string, settings map[string]string) error
	// RegisterRoot adds a working directory and returns its absolute path; an error is the answer as it stands.
	RegisterRoot(directory string) (abs string, err error)
}

// Tasks are work beside the conversation.
type Tasks interface {
	StopTask(id string)
	// TaskOutput returns what a shell command in the background has written.
	TaskOutput(id string) ([]byte, bool)
	// SideQuestion asks the model something beside the conversation.
	SideQuestion(ctx context.Context, question string) (Aside, error)
}

// Files are what hosts read and put back.
type Files interface {
	// Preview and Rewind restore the files of a prompt, the one as a rehearsal; [ErrNoRewind] says that no copies are kept.
	Preview(promptUUID string) (Rewind, error)
	Rewind(promptUUID string) (Rewind, error)
	// ReadFile returns the contents of a file that tools may read.
	ReadFile(path string) (abs string, contents []byte, err error)
}

// Teller describes the session.
type Teller interface {
	// Tell answers requests that only want to know something, by their subtype; false = it has no answer.
	Tell(subtype string) (reply any, ok bool)
	// Build is the version of the CLI and when it was built.
	Build() (version, built string)
}

// ErrNoRewind says that the session keeps no copies of files.
var ErrNoRewind error = &HostError{Text: "File rewinding is not enabled."}

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
	Begun              bool                              `json:"-"` // some turns have been played; set by the peer
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
