package scenarios

import (
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// ToolExecution says how tool calls are run.
type ToolExecution struct {
	// Mode `live` runs tools that have no canned result, `mock` never does: a
	// call without one is an error.
	Mode string `toml:"mode" enum:"live,mock" default:"live"`
	// Tools are settings by tool name.
	Tools map[string]ToolConfig `toml:"tools"`
}

// ToolConfig is what holds for all calls of one tool.
type ToolConfig struct {
	// AutoApprove allows the tool in every permission mode.
	AutoApprove bool `toml:"auto_approve"`
	// Result is the canned result of calls that have none of their own.
	Result *string `toml:"result"`
	// Error denies the tool with this text.
	Error *string `toml:"error"`
	// Answers are the answers to AskUserQuestion, by question.
	Answers map[string]string `toml:"answers"`
}

// MCP adds MCP servers to the run.
type MCP struct {
	// Servers are started like the entries of `--mcp-config` and have the same
	// keys; `fixture` runs one of our fixture servers instead of a command.
	Servers map[string]map[string]any `toml:"servers"`
	// Elicitation answers what servers ask the user.
	Elicitation *Elicitation `toml:"elicitation"`
	// Sampling answers what servers ask the model; the first that fits counts.
	// Without any, servers are told that there is no sampling.
	Sampling []Sampling `toml:"sampling"`

	names []string // of Servers, in file order
}

// Elicitation answers elicitation requests of MCP servers.
type Elicitation struct {
	// Action is the answer.
	Action string `toml:"action" enum:"accept,decline,cancel" default:"decline"`
	// Content is the form that `accept` sends; what it leaves out is filled
	// from the defaults of the requested schema.
	Content map[string]any `toml:"content"`
}

// Sampling answers a sampling request of an MCP server. It has either `text` or
// `error`. Requests that no answer fits are refused.
type Sampling struct {
	// Server narrows the answer to one server, by its name in the configuration.
	Server string `toml:"server"`
	// Pattern is what the text of the request's last message must match; absent =
	// everything.
	Pattern *Pattern `toml:"pattern"`
	// Text is what the model says; templates see the message as `prompt`.
	Text string `toml:"text"`
	// Model is the name of the model in the answer; default the run's.
	Model string `toml:"model"`
	// StopReason is why the model stopped.
	StopReason string `toml:"stop_reason" default:"endTurn"`
	// Error refuses the request with this text, as a user would.
	Error string `toml:"error"`

	compiledRule
}

// Timeouts override time-outs and delays, in milliseconds. Each wins over its
// environment variable.
type Timeouts struct {
	// ExitHintMS is how long the exit hint stays (CLAUDELESS_EXIT_HINT_TIMEOUT_MS).
	ExitHintMS *int `toml:"exit_hint_ms" min:"0" max:"31536000000" default:"2000"`
	// CompactDelayMS is how long /compact takes (CLAUDELESS_COMPACT_DELAY_MS).
	CompactDelayMS *int `toml:"compact_delay_ms" min:"0" max:"31536000000" default:"20"`
	// HookTimeoutMS bounds hooks that set no time of their own
	// (CLAUDELESS_HOOK_TIMEOUT_MS).
	HookTimeoutMS *int `toml:"hook_timeout_ms" min:"0" max:"31536000000" default:"600000"`
	// MCPTimeoutMS bounds an MCP call (CLAUDELESS_MCP_TIMEOUT_MS); MCP_TOOL_TIMEOUT
	// and the server's own `timeout` come first. Absent = no bound.
	MCPTimeoutMS *int `toml:"mcp_timeout_ms" min:"0" max:"31536000000"`
	// ResponseDelayMS waits before the first message of a turn
	// (CLAUDELESS_RESPONSE_DELAY_MS).
	ResponseDelayMS *int `toml:"response_delay_ms" min:"0" max:"31536000000" default:"0"`
}

// Expectation states what the run must have done. It has one of `tool`, `prompt`,
// `mcp`, `request`, `oauth`, `exit`, `rule` and `unused`. Under `claudeless exec` the run is
// the whole command with all its processes, else one process.
type Expectation struct {
	// Tool is the name, or a glob, of tools that must have been called.
	Tool string `toml:"tool" empty:"no"`
	// Input is the part that the input of such a call must have.
	Input json.RawMessage `toml:"input"`
	// Times is how often: a number, or text such as `>=2` or `<=3`; default at
	// least once.
	Times *Times `toml:"times" schema:"integer|string"`
	// Order puts the first such call after those of expectations with a lower
	// number.
	Order *int `toml:"order"`
	// Prompt is a pattern that a prompt must have matched.
	Prompt *Pattern `toml:"prompt"`
	// MCP is a call that an MCP server must have got, or what it must have said while it worked.
	MCP *ExpectMCP `toml:"mcp"`
	// Request is a request to the model that must have been made.
	Request *ExpectRequest `toml:"request"`
	// OAuth is a request that the authorization server of a fixture must have got. It
	// is judged under `claudeless exec` and by `claudeless verify`, which read what
	// fixtures write.
	OAuth *ExpectOAuth `toml:"oauth"`
	// Exit is the exit code that a claude process must have ended with.
	Exit *int `toml:"exit" min:"0" max:"255"`
	// Rule is the line of this file on which a rule begins that must have answered.
	Rule *int `toml:"rule" min:"1"`
	// Unused says what rules are that have answered no prompt: `warn` mentions them,
	// `error` makes each an unmet expectation.
	Unused string `toml:"unused" enum:"warn,error"`
	// Never turns the expectation round: it must not have happened.
	Never bool `toml:"never"`

	at     diag.Position
	prompt match.Text
	tools  []match.Text
}

// ExpectMCP is a call of an MCP server. With `progress`, `log` or `level` it is a notification that the
// server sent instead.
type ExpectMCP struct {
	// Server is its name in the configuration, or a glob.
	Server string `toml:"server,required" empty:"no"`
	// Tool is the server's own name of the tool, or a glob; absent = any.
	Tool string `toml:"tool" empty:"no"`
	// Progress is a glob for the message of progress of a call; `*` = any progress.
	Progress string `toml:"progress" empty:"no"`
	// Log is a glob for the text of a log message; what is no text is compared as JSON.
	Log string `toml:"log" empty:"no"`
	// Level is that of the log message; absent = any.
	Level string `toml:"level" enum:"debug,info,notice,warning,error,critical,alert,emergency"`
}

// ExpectRequest is a request to the model, in either lane.
type ExpectRequest struct {
	// Model is its full name, or a glob; absent = any.
	Model string `toml:"model" empty:"no"`
	// MaxRetries is how often such a request may at most be made again.
	MaxRetries *int `toml:"max_retries" min:"0"`
	// WithinMS is when the first must at the latest have come, from the beginning of
	// the run.
	WithinMS int `toml:"within_ms" min:"1"`
}

// ExpectOAuth is a request to the authorization server of a fixture, or one that
// the fixture refused.
type ExpectOAuth struct {
	// Request is what was asked for; default `token`.
	Request string `toml:"request" enum:"register,authorize,token,access" default:"token"`
	// Grant is the grant type of a token request; absent = any.
	Grant string `toml:"grant" enum:"authorization_code,refresh_token,client_credentials"`
	// Client is the client_id, or a glob; absent = any.
	Client string `toml:"client" empty:"no"`
	// Scope must be among the scopes that were granted; absent = any.
	Scope string `toml:"scope" empty:"no"`
	// Result is `ok` or the error code; absent = any.
	Result string `toml:"result" empty:"no"`
	// Count is how often, as in `times`.
	Count *Times `toml:"count" schema:"integer|string"`
}

// Times is a number of calls.
type Times struct {
	Min int
	Max int // -1 = no upper bound
}

// API is what only the Messages API face has. Of it the CLI face reads nothing
// but the summary of a compaction (`side`).
type API struct {
	// Strict refuses what the real API refuses and clients seldom notice: a
	// request without `anthropic-version`.
	Strict bool `toml:"strict"`
	// RequireAuth refuses requests without a key; any key will do.
	RequireAuth bool `toml:"require_auth"`
	// Diverged says what happens when a history holds an answer that the scenario
	// would not have given: `follow` goes on with the history and says so in the
	// journal, `error` refuses the request.
	Diverged string `toml:"diverged" enum:"follow,error" default:"follow"`
	// Pad puts spaces before the closing brace of streamed events, as the real
	// API does at times.
	Pad bool `toml:"pad"`
	// Cache counts the tokens of requests as the API does, and gives the prompt cache
	// its share by the marks of the request (`cache_control`): what stood before a mark of
	// an earlier request is read, what a mark asks for is taken. Without it the usage is that of
	// the CLI face: the prompt alone. A scripted `usage` wins.
	Cache bool `toml:"cache"`
	// Headers are sent with every answer, in place of ours of the same name.
	Headers map[string]string `toml:"headers"`
	// Side answers requests that a client makes beside the conversation.
	Side []Side `toml:"side"`
}

// Side answers one kind of request beside the conversation. Such requests touch
// no rule, no count and no expectation.
type Side struct {
	// Kind is the kind of request: `title` names the session, `compact` sums the
	// conversation up, `probe` finds out whether a model is there, `other` is
	// everything else that is none of the conversation.
	Kind string `toml:"kind,required" enum:"title,compact,probe,other"`
	// Text is sent as it stands. Of a summary Claude Code shows what stands between
	// `<summary>` and `</summary>`, and leaves out `<analysis>`.
	Text string `toml:"text,required"`
}

// Parity makes a scenario a case of `claudeless parity`: the double and the real
// claude are called alike, and what they do is compared.
type Parity struct {
	// Argv is the command line, without the program.
	Argv []string `toml:"argv"`
	// Stdin is what claude reads; absent = nothing.
	Stdin string `toml:"stdin"`
	// Refuses says that claude is expected to refuse this command line. Without it a case that neither program starts is
	// not compared.
	Refuses bool `toml:"refuses"`
}

// ServerConfig is what the scenario's servers are for --mcp-config of a claude that
// does not read scenarios: self serves their fixtures. Nil = it brings none along.
// Each fixture records its messages in the directory of its escaped name in
// records; empty = none does.
func (s *Scenario) ServerConfig(self, records string) ([]byte, error) {
	if len(s.MCP.ServerNames()) == 0 {
		return nil, nil
	}
	servers := map[string]any{}
	for _, name := range s.MCP.ServerNames() {
		entry := maps.Clone(s.MCP.Servers[name])
		if fixture, ok := entry["fixture"].(string); ok {
			delete(entry, "fixture")
			if strings.ContainsAny(fixture, "./") {
				fixture = fill.Resolve(s.source.Dir, fixture)
			}
			args := []string{"fixture", "serve", fixture}
			if records != "" {
				args = append(args, "--record-dir", filepath.Join(records, url.PathEscape(name)))
			}
			entry["command"], entry["args"] = self, args
		}
		servers[name] = entry
	}
	return json.Marshal(map[string]any{"mcpServers": servers})
}

// Fixtures are the names of the servers that are our fixtures, in file order.
func (m *MCP) Fixtures() []string {
	var names []string
	for _, name := range m.ServerNames() {
		if m.Servers[name]["fixture"] != nil {
			names = append(names, name)
		}
	}
	return names
}

// SideText is the scripted answer to a kind of side request; false = none. The
// first of a kind counts.
func (a *API) SideText(kind string) (string, bool) {
	for _, s := range a.Side {
		if s.Kind == kind {
			return s.Text, true
		}
	}
	return "", false
}
