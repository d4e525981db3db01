package journal

// Start is the first line of a process that was started as claude.
type Start struct {
	// Argv is the command line, the program's name first.
	Argv []string `json:"argv"`
	// CWD is the working directory.
	CWD string `json:"cwd"`
	// PPID is the process that started this one.
	PPID int `json:"ppid"`
	// Parent is the name of that process, as far as the system tells.
	Parent string `json:"parent,omitempty"`
	// Leaks are the variables of another session that were inherited.
	Leaks []string `json:"leaks,omitempty"`
	// Secrets are the arguments that hold a secret, as `argv[N]`.
	Secrets []string `json:"secrets,omitempty"`
	// Unknown are `CLAUDELESS_` variables that mean nothing, with the nearest name.
	Unknown []string `json:"unknown_variables,omitempty"`
	// Meant is the command of ours that the first argument nearly is.
	Meant string `json:"meant,omitempty"`
	// Cache is the directory in which a real claude keeps the logs of its MCP servers.
	Cache string `json:"cache,omitempty"`
	// Fault is the fault of the output that was asked for.
	Fault string `json:"fault,omitempty"`
}

// Run says how the session of a process was set up. Processes that print
// their version or refuse their command line have none.
type Run struct {
	// Argv is the command line, the program's name first.
	Argv []string `json:"argv"`
	// CWD is the working directory of the run.
	CWD string `json:"cwd"`
	// Env are chosen variables.
	Env map[string]string `json:"env"`
	// Settings are the sources of settings that were read.
	Settings []string `json:"settings"`
	// SystemPrompt is the one given by flags; absent = none.
	SystemPrompt *string `json:"system_prompt,omitempty"`
	// AppendPrompt is what flags add to the system prompt.
	AppendPrompt *string `json:"append_system_prompt,omitempty"`
	// Scenario is the scripted model as it was named; absent = none was given.
	Scenario string `json:"scenario,omitempty"`
	// ScenarioFile is the absolute path of its file; absent = no file.
	ScenarioFile string `json:"scenario_file,omitempty"`
	// ScenarioDigest is the SHA-256 of that scenario and the files that it includes.
	ScenarioDigest string `json:"scenario_digest,omitempty"`
	// Model is the full name of the model at the start.
	Model string `json:"model"`
	// PermissionMode is the mode at the start.
	PermissionMode string `json:"permission_mode"`
	// InputFormat is `text` or `stream-json`.
	InputFormat string `json:"input_format,omitempty"`
	// MCPServers are the names of the configured servers.
	MCPServers []string `json:"mcp_servers,omitempty"`
	// SkipsPermissions says that --dangerously-skip-permissions is in force outside
	// of a sandbox (no IS_SANDBOX).
	SkipsPermissions bool `json:"skips_permissions,omitempty"`
}

// Host is something that the program around claude did, seen at the standard
// streams and in the signals of the process.
type Host struct {
	// What happened: `stdout_closed` (nobody reads it any more), `stdout_blocked`
	// (a write waited for more than a second), `stdin_closed`, `signal`,
	// `request_unanswered` (a control_request when stdin ended), `answered_twice`,
	// `answered_late` (long after the request was withdrawn), `late_initialize` (hooks
	// were registered after the first message).
	What string `json:"what" enum:"stdout_closed,stdout_blocked,stdin_closed,signal,request_unanswered,answered_twice,answered_late,late_initialize"`
	// Signal is the name of the signal.
	Signal string `json:"signal,omitempty"`
	// RequestID is the control request.
	RequestID string `json:"request_id,omitempty"`
	// Subtype is the kind of that request, `can_use_tool` say.
	Subtype string `json:"subtype,omitempty"`
	// StdinOpen says that stdin was open still.
	StdinOpen bool `json:"stdin_open,omitempty"`
	// Results is how many results had been written by then.
	Results int `json:"results,omitempty"`
	// MS is how long it took.
	MS float64 `json:"ms,omitempty"`
}

// Exit is the last line of a process that ended in order.
type Exit struct {
	// Code is the exit code; 128 and its number for a signal.
	Code int `json:"code"`
	// Signal is the signal that ended it, or that it ended itself with.
	Signal string `json:"signal,omitempty"`
	// Refused is what was said of a command line that was refused.
	Refused string `json:"refused,omitempty"`
	// MS is how long the process ran.
	MS float64 `json:"ms"`
}

func (Start) kind() string { return "start" }
func (Run) kind() string   { return "run" }
func (Host) kind() string  { return "host" }
func (Exit) kind() string  { return "exit" }
