package journal

// Start is the start of a process that acts as claude. The lines of every process begin with it.
type Start struct {
	Argv   []string `json:"argv"`             // Argv is the command line, the program's name first.
	CWD    string   `json:"cwd"`              // CWD is the working directory.
	PPID   int      `json:"ppid"`             // PPID is the id of the parent process.
	Parent string   `json:"parent,omitempty"` // Parent is the name of the parent process, if the system provides it.
	// InheritedVariables are variables of another claude session that this process has inherited.
	InheritedVariables []string `json:"leaks,omitempty"`
	SecretArguments    []string `json:"secrets,omitempty"` // SecretArguments are the arguments that contain a secret, as `argv[N]`.
	// UnknownVariables are the `CLAUDELESS_` variables that are set but not known, each with the nearest known name.
	UnknownVariables []string `json:"unknown_variables,omitempty"`
	// Subcommand of claude, such as `auth`; absent if the process has a session.
	Subcommand string `json:"subcommand,omitempty"`
	// SuggestedCommand is the claudeless command that the first argument resembles.
	SuggestedCommand string `json:"meant,omitempty"`
	// LogCache is the directory in which a real claude keeps the logs of its MCP servers.
	LogCache string `json:"cache,omitempty"`
	Fault    string `json:"fault,omitempty"` // Fault is the name of the fault that --failure or CLAUDELESS_FAILURE requested.
}

// Run is the configuration of a process's session. Processes that print a version or reject the command line do not write it.
type Run struct {
	Argv     []string          `json:"argv"`     // Argv is the command line, the program's name first.
	CWD      string            `json:"cwd"`      // CWD is the working directory of the run.
	Env      map[string]string `json:"env"`      // Env lists selected environment variables.
	Settings []string          `json:"settings"` // Settings are the settings sources that were read.
	// SystemPrompt is the system prompt that flags set; absent if no flag sets one.
	SystemPrompt *string `json:"system_prompt,omitempty"`
	AppendPrompt *string `json:"append_system_prompt,omitempty"` // AppendPrompt is the text that flags append to the system prompt.
	// Scenario is the scenario as named on the command line; absent if none exists.
	Scenario string `json:"scenario,omitempty"`
	// ScenarioFile is the absolute path of the scenario's file; absent if it has no file.
	ScenarioFile string `json:"scenario_file,omitempty"`
	// ScenarioDigest is the SHA-256 of the scenario and the files that it includes.
	ScenarioDigest string `json:"scenario_digest,omitempty"`
	Model          string `json:"model"`                  // Model is the full name of the initial model.
	PermissionMode string `json:"permission_mode"`        // PermissionMode is the initial mode.
	InputFormat    string `json:"input_format,omitempty"` // InputFormat is `text` or `stream-json`.
	Interactive    bool   `json:"interactive,omitempty"`  // Interactive is true if the session ran on a terminal.
	// IgnoredSettings are the parts of settings files that are not in effect, with the reason.
	IgnoredSettings []string `json:"settings_faults,omitempty"`
	MCPServers      []string `json:"mcp_servers,omitempty"` // MCPServers are the names of the configured servers.
	// SkipsPermissions is true if --dangerously-skip-permissions is active outside a sandbox (no IS_SANDBOX).
	SkipsPermissions bool `json:"skips_permissions,omitempty"`
}

// Host is an action of the host program, as seen in the standard streams and signals of the process.
type Host struct {
	// What happened: `stdout_closed` (the reader has closed it), `stdout_blocked` (a write was blocked for more than a second),
	// `stdin_closed`, `signal`, `request_unanswered` (a control_request was open when stdin ended), `answered_twice`, `answered_late`
	// (long after the request was withdrawn), `late_initialize` (hooks were registered after the first message).
	What      string `json:"what" enum:"stdout_closed,stdout_blocked,stdin_closed,signal,request_unanswered,answered_twice,answered_late,late_initialize"`
	Signal    string `json:"signal,omitempty"`     // Signal is the name of the signal.
	RequestID string `json:"request_id,omitempty"` // RequestID is the id of the control request.
	Subtype   string `json:"subtype,omitempty"`    // Subtype is the kind of the control request, such as `can_use_tool`.
	StdinOpen bool   `json:"stdin_open,omitempty"` // StdinOpen is true if stdin was still open.
	Results   int    `json:"results,omitempty"`    // Results is the number of results that the process had written before this action.
	// MS is the time from the withdrawal of the request to its answer; only for `answered_late`.
	MS float64 `json:"ms,omitempty"`
}

// Output is a piece of the output that the process wrote to a standard stream. The journal has such lines only if
// CLAUDELESS_CAPTURE_OUTPUT is set; `claudeless exec --html` sets this variable. At most 1 MiB of each stream is recorded.
type Output struct {
	Stream    string `json:"stream" enum:"stdout,stderr"` // Stream is `stdout` or `stderr`.
	Text      string `json:"text"`                        // Text is the output.
	Truncated bool   `json:"truncated,omitempty"`         // Truncated is true if later output of this stream is not recorded.
}

// Exit is the exit of a process that was not killed. This line is the last one of the process.
type Exit struct {
	Code      int     `json:"code"`              // Code is the exit code; for a signal, 128 plus its number.
	Signal    string  `json:"signal,omitempty"`  // Signal is the signal that ended the process, even if the process sent it to itself.
	Rejection string  `json:"refused,omitempty"` // Rejection is the error for a command line that was rejected.
	MS        float64 `json:"ms"`                // MS is how long the process ran.
}

func (Start) kind() string  { return "start" }
func (Run) kind() string    { return "run" }
func (Host) kind() string   { return "host" }
func (Output) kind() string { return "output" }
func (Exit) kind() string   { return "exit" }
