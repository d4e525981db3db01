package scenarios

import (
	"encoding/json"
	"slices"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
)

// ToolExecution configures the execution of tool calls.
type ToolExecution struct {
	// Mode selects what happens to a call without a canned result: `live` runs the tool, `mock` returns an error.
	Mode string `toml:"mode" enum:"live,mock" default:"live"`
	// Tools are settings by tool name.
	Tools map[string]ToolConfig `toml:"tools"`
}

// ToolConfig sets options for all calls of one tool.
type ToolConfig struct {
	AutoApprove bool              `toml:"auto_approve"` // AutoApprove allows the tool in every permission mode.
	Result      *string           `toml:"result"`       // Result is the canned result of calls that define none.
	Error       *string           `toml:"error"`        // Error is the text with which calls of the tool are denied.
	Answers     map[string]string `toml:"answers"`      // Answers are the answers to AskUserQuestion, by question.
}

// MCP adds MCP servers to the run.
type MCP struct {
	// Servers are the servers to start, with the keys of the entries of `--mcp-config`; `fixture` runs a claudeless
	// fixture server instead of a command.
	Servers     map[string]map[string]any `toml:"servers"`
	Elicitation *Elicitation              `toml:"elicitation"` // Elicitation answers elicitation requests of servers.
	// Sampling answers sampling requests of servers; the first matching entry is used. Without entries, the run
	// does not offer sampling to servers.
	Sampling []Sampling `toml:"sampling"`

	names []string // the keys of Servers in file order
}

// Elicitation answers elicitation requests of MCP servers.
type Elicitation struct {
	// Action is the answer.
	Action string `toml:"action" enum:"accept,decline,cancel" default:"decline"`
	// Content is the form that `accept` sends; missing fields are set to the defaults of the requested schema.
	Content map[string]any `toml:"content"`
}

// Sampling answers a sampling request of an MCP server with `text` or `error`. If no entry matches a request, the request is refused.
type Sampling struct {
	Server string `toml:"server"` // Server restricts the answer to one server, by its name in the configuration.
	// Pattern matches the text of the request's last message. Default: every text.
	Pattern *Pattern `toml:"pattern"`
	// Text is the answer of the model; templates see the message as `prompt`.
	Text       string `toml:"text"`
	Model      string `toml:"model"`                         // Model is the model name in the answer; default the model of the run.
	StopReason string `toml:"stop_reason" default:"endTurn"` // StopReason is the stop reason of the answer.
	Error      string `toml:"error"`                         // Error refuses the request with this text, as a user would.

	compiledRule
}

// Timeouts sets timeouts and delays of the CLI, in milliseconds. Each takes precedence over its environment variable.
type Timeouts struct {
	// ExitHintMS is how long the exit hint is shown (CLAUDELESS_EXIT_HINT_TIMEOUT_MS).
	ExitHintMS *int `toml:"exit_hint_ms" min:"0" max:"31536000000" default:"2000"`
	// CompactDelayMS is how long /compact takes (CLAUDELESS_COMPACT_DELAY_MS).
	CompactDelayMS *int `toml:"compact_delay_ms" min:"0" max:"31536000000" default:"20"`
	// HookTimeoutMS limits hooks without their own timeout (CLAUDELESS_HOOK_TIMEOUT_MS).
	HookTimeoutMS *int `toml:"hook_timeout_ms" min:"0" max:"31536000000" default:"600000"`
	// MCPTimeoutMS limits an MCP call (CLAUDELESS_MCP_TIMEOUT_MS); MCP_TOOL_TIMEOUT and the server's own `timeout`
	// take precedence. Without any of them, a call has no limit.
	MCPTimeoutMS *int `toml:"mcp_timeout_ms" min:"0" max:"31536000000"`
	// ResponseDelayMS is the wait before the first message of a turn (CLAUDELESS_RESPONSE_DELAY_MS).
	ResponseDelayMS *int `toml:"response_delay_ms" min:"0" max:"31536000000" default:"0"`
}

// Expectation states what the run must have done. An expectation has one of `tool`, `prompt`, `mcp`, `request`, `oauth`, `otel`, `exit`,
// `rule`, `screen` and `unused`. With `claudeless exec` the run is the whole command with all its processes; otherwise it is one process.
type Expectation struct {
	// Tool expects a call of this tool; the value is a name or a glob.
	Tool string `toml:"tool" empty:"no"`
	// Input expects that the input of the tool call contains this part.
	Input json.RawMessage `toml:"input"`
	// Times is how often this must have happened: a number, or text such as `>=2` or `<=3`; default at least once.
	Times *Times `toml:"times" schema:"integer|string"`
	// Order is a number. The first call that this expectation matches must come after the first call of each
	// expectation with a lower number.
	Order *int `toml:"order"`
	// Prompt expects a prompt that matches this pattern.
	Prompt *Pattern `toml:"prompt"`
	// MCP expects a call to an MCP server, or a notification from it.
	MCP *ExpectMCP `toml:"mcp"`
	// Request expects a request to the model.
	Request *ExpectRequest `toml:"request"`
	// OAuth expects a request to the authorization server of a fixture. Only `claudeless exec` and `claudeless verify`
	// check this expectation, because they read the journal lines of fixtures.
	OAuth *ExpectOAuth `toml:"oauth"`
	// Otel expects that an OpenTelemetry collector accepted a metric, an event or a span of this name, which may be a
	// glob; `times` counts data points, events and spans. With --real, the expectation is not checked.
	Otel string `toml:"otel" empty:"no"`
	// Exit expects that a claude process exited with this exit code.
	Exit *int `toml:"exit" min:"0" max:"255"`
	// Rule expects that the rule that begins at this line of the file answered a prompt.
	Rule *int `toml:"rule" min:"1"`
	// Screen expects that the interactive screen waited for an answer in this state: `permission`, `question`, `plan`
	// or `dialog`, optionally with a kind, as in `permission/bash`. With --real, the expectation is not checked.
	Screen string `toml:"screen" empty:"no"`
	// Answered is the expected answer on the screen that `screen` selects. Default: any answer.
	Answered string `toml:"answered" enum:"yes,no"`
	// Unused reports rules that answered no prompt: `warn` mentions them, `error` makes each an unmet expectation.
	Unused string `toml:"unused" enum:"warn,error"`
	// Never inverts the expectation: the event must not have happened.
	Never bool `toml:"never"`

	at     diag.Position
	prompt match.Pattern
	tools  []match.Pattern
}

// ExpectMCP expects a call to an MCP server. With `progress`, `log` or `level`, it expects a notification from the server instead.
type ExpectMCP struct {
	// Server is the name of the server in the configuration, or a glob.
	Server string `toml:"server,required" empty:"no"`
	// Tool is the name of the tool as the server calls it, or a glob. Default: any.
	Tool string `toml:"tool" empty:"no"`
	// Progress is a glob for a progress message of a call; `*` matches any progress.
	Progress string `toml:"progress" empty:"no"`
	// Log is a glob for the text of a log message. A message that is not a string is compared as JSON.
	Log string `toml:"log" empty:"no"`
	// Level is the level of the log message. Default: any.
	Level string `toml:"level" enum:"debug,info,notice,warning,error,critical,alert,emergency"`
}

// ExpectRequest expects a request to the model, made by claudeless or by the real CLI.
type ExpectRequest struct {
	Model      string `toml:"model" empty:"no"`    // Model is the full name of the model, or a glob. Default: any.
	MaxRetries *int   `toml:"max_retries" min:"0"` // MaxRetries is the maximum number of retries of the expected request.
	// WithinMS is the time, in milliseconds from the beginning of the run, within which the first expected request must arrive.
	WithinMS int `toml:"within_ms" min:"1"`
}

// ExpectOAuth expects a request to the authorization server of a fixture, or a request that the fixture itself refused.
type ExpectOAuth struct {
	Request string `toml:"request" enum:"register,authorize,token,access" default:"token"` // Request is the kind of request.
	// Grant is the grant type of a token request. Default: any.
	Grant  string `toml:"grant" enum:"authorization_code,refresh_token,client_credentials"`
	Client string `toml:"client" empty:"no"`             // Client is the client_id, or a glob. Default: any.
	Scope  string `toml:"scope" empty:"no"`              // Scope expects that this scope was granted. Default: any.
	Result string `toml:"result" empty:"no"`             // Result is `ok` or the error code. Default: any.
	Count  *Times `toml:"count" schema:"integer|string"` // Count is the number of expected requests, in the form of `times`.
}

// Times is a number of calls.
type Times struct {
	Min int
	Max int // -1 means no upper bound
}

// API sets options of claudeless serve. claude itself uses only `side`, for compactions and prompt hooks.
type API struct {
	// Strict refuses requests without the header `anthropic-version`. The real API refuses such a request; test servers usually accept it.
	Strict bool `toml:"strict"`
	// RequireAuth refuses requests without a key; any key is accepted.
	RequireAuth bool `toml:"require_auth"`
	// Diverged selects what happens if a request's history contains an answer that the scenario does not give at this point:
	// `follow` continues with the history and reports the difference in the journal, `error` refuses the request.
	Diverged string `toml:"diverged" enum:"follow,error" default:"follow"`
	// Pad adds spaces before the closing brace of streamed events, as the real API sometimes does.
	Pad bool `toml:"pad"`
	// Cache includes all tokens of a request in the reported usage and simulates the prompt cache. The part of a request up to a
	// `cache_control` mark counts as read from the cache if an earlier request had the same mark. Otherwise it counts as written to the
	// cache. By default, the usage counts only the prompt. A scripted `usage` takes precedence.
	Cache bool `toml:"cache"`
	// Headers are sent with every response, replacing default headers of the same name.
	Headers map[string]string `toml:"headers"`
	// Side answers requests outside the conversation.
	Side []Side `toml:"side"`
}

// Side answers one kind of request outside the conversation. Such a request uses no rule, and affects no count or expectation.
type Side struct {
	// Kind is the kind of request: `title` requests a session title, `compact` a summary of the conversation,
	// `probe` checks whether a model is available, `other` is any other request outside the conversation.
	Kind string `toml:"kind,required" enum:"title,compact,probe,other"`
	// Text is the answer, which is sent unchanged. Claude Code shows only the `<summary>` element of an answer to
	// `compact`, without `<analysis>`.
	Text string `toml:"text,required"`
}

// Compat keeps behaviour of claudeless that the real CLI does not have.
type Compat struct {
	// HiddenTools runs built-in tools that the session does not list, such as TodoWrite. The real CLI refuses them.
	HiddenTools bool `toml:"hidden_tools"`
}

// Parity makes a scenario a case of `claudeless parity`, which calls claudeless and the real claude and compares them.
type Parity struct {
	Argv  []string `toml:"argv"`  // Argv is the command line, without the program.
	Stdin string   `toml:"stdin"` // Stdin is the input of claude; default empty.
	// Refuses is true if claude should reject this command line. Without it, a command line that claudeless and the
	// real claude both reject is not compared.
	Refuses bool `toml:"refuses"`
}

// FixtureServerNames returns the names of the servers that are fixtures, in file order.
func (m *MCP) FixtureServerNames() []string {
	return slices.DeleteFunc(m.ServerNames(), func(name string) bool { return m.Servers[name]["fixture"] == nil })
}

// SideRequestAnswer returns the first scripted answer to a kind of side request. isScripted is false if none exists.
func (a *API) SideRequestAnswer(sideRequestKind string) (answer string, isScripted bool) {
	for _, s := range a.Side {
		if s.Kind == sideRequestKind {
			return s.Text, true
		}
	}
	return "", false
}
