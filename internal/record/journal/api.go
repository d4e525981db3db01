package journal

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Request is a request to claudeless serve that was part of a conversation, or was refused.
type Request struct {
	Namespace string `json:"namespace"`         // Namespace is the namespace of the request; empty for the default namespace.
	Session   string `json:"session,omitempty"` // Session is the id of the session, if the client sends it.
	Agent     string `json:"agent,omitempty"`   // Agent is the id of the sub-agent, if the client sends it.
	// Attempt is the number of times that the client has sent this history, including this request. It is 1 if the
	// attempts were not counted.
	Attempt int      `json:"attempt"`
	Path    string   `json:"path"`            // Path is the path of the request.
	Model   string   `json:"model,omitempty"` // Model is the model that the request names.
	Stream  bool     `json:"stream"`          // Stream is true if the request wants a streamed response.
	Betas   []string `json:"betas,omitempty"` // Betas are the values of the anthropic-beta header.
	Tools   []string `json:"tools,omitempty"` // Tools are the names of the offered tools.
	// Messages are the kinds of the parts of the history, in order: `prompt`, `added` (a prompt typed during a turn), `results`, `closed`
	// (results that were not sent in their turn, because it had ended), `context`, `injected`, `retry` and `resumed` (the last three:
	// texts of Claude Code that require a reply, another reply, or the rest of a reply), `notice` (of background work), `interrupt`,
	// `summary` or `answer`.
	Messages []string `json:"messages,omitempty"`
	// Calls are the tool calls whose results arrived with this request for the first time.
	Calls  []ExecutedCall `json:"calls,omitempty"`
	Prompt string         `json:"prompt,omitempty"` // Prompt is the text that was answered, if it was a prompt.
	// WrittenByCLI is true if the client itself wrote the text: feedback of a hook, or a notice.
	WrittenByCLI bool `json:"injected,omitempty"`
	// Added are prompts that the request contains in addition to results, and that no earlier request contained.
	Added []string      `json:"added,omitempty"`
	Rule  string        `json:"rule,omitempty"`  // Rule is the rule that answered.
	File  string        `json:"file,omitempty"`  // File is the file that contains the rule.
	Line  int           `json:"line,omitempty"`  // Line is the number of the rule's first line.
	Unmet []Expectation `json:"unmet,omitempty"` // Unmet lists unmet expectations about results, each once.
	// NextStep is the step of the script that the next request will get; absent if none exists.
	NextStep *Unplayed `json:"left,omitempty"`
	// NotOffered are the tools that the script calls although the request does not offer them. It is absent for Claude
	// Code, because Claude Code can run tools that its request does not offer.
	NotOffered []string `json:"not_offered,omitempty"`
	Status     int      `json:"status"`          // Status is the HTTP status; 0 if the connection ended without one.
	Error      string   `json:"error,omitempty"` // Error is the message of a rejected or failed request.
	MS         float64  `json:"ms"`              // MS is how long the request took, including pauses of the scenario.
	// UnknownKeys are keys of the body that no earlier request of the namespace had.
	UnknownKeys []string `json:"unknown_keys,omitempty"`
	Findings    []string `json:"findings,omitempty"` // Findings are problems of the request.
}

// ExecutedCall is a tool call that the client has executed.
type ExecutedCall struct {
	Tool      string          `json:"tool"`        // Tool is the name of the tool.
	ToolUseID string          `json:"tool_use_id"` // ToolUseID is the id of the call.
	Input     json.RawMessage `json:"input"`       // Input is the input from the model.
	Result    string          `json:"result"`      // Result is the text that the client sent as the result of the call.
	IsError   bool            `json:"is_error"`    // IsError is true if the call failed.
	// EndedTurn is true if the turn ended with this call. The model then gets the result of the call only with the next prompt.
	EndedTurn bool `json:"unasked,omitempty"`
}

// SideRequest is a request outside the conversation, or to another endpoint.
type SideRequest struct {
	Namespace string `json:"namespace"`         // Namespace is the namespace of the request; empty for the default namespace.
	Session   string `json:"session,omitempty"` // Session is the id of the session, if the client sends it.
	// Kind is `title`, `compact`, `probe`, `other`, `count_tokens`, `models`, `telemetry` or `hello`.
	Kind  string `json:"kind"`
	Path  string `json:"path"`            // Path is the path of the request.
	Model string `json:"model,omitempty"` // Model is the model that the request names.
	// Unclassified is true if the request is of an unknown kind: the client may have changed.
	Unclassified bool    `json:"unclassified,omitempty"`
	Status       int     `json:"status"` // Status is the HTTP status.
	MS           float64 `json:"ms"`     // MS is how long the request took.
}

// Exchange is a request that was forwarded to a Messages API, with the response.
type Exchange struct {
	Session string          `json:"session,omitempty"` // Session is the id of the session, if the client sends it.
	Agent   string          `json:"agent,omitempty"`   // Agent is the id of the sub-agent, if the client sends it.
	Client  string          `json:"client,omitempty"`  // Client is the name by which the client identifies itself.
	Path    string          `json:"path"`              // Path is the path of the request.
	Request json.RawMessage `json:"request,omitempty"` // Request is the body as sent; absent if it was not JSON.
	Status  int             `json:"status"`            // Status is the HTTP status.
	// Response is the message, assembled if it was streamed, or the error; absent if there was no response.
	Response json.RawMessage `json:"response,omitempty"`
	MS       float64         `json:"ms"` // MS is how long the request took.
}

func (Exchange) kind() string    { return "exchange" }
func (Request) kind() string     { return "request" }
func (SideRequest) kind() string { return "side_request" }

// OAuth is a request to the authorization server of a fixture, or a request that the fixture refused because a token or
// a scope was missing. The line does not contain the values of tokens.
type OAuth struct {
	// Request is the kind of request: a client registration, an authorization, a token, or access to the server.
	Request       string   `json:"request" enum:"register,authorize,token,access"`
	Grant         string   `json:"grant,omitempty"`          // Grant is the grant type of a token request.
	Client        string   `json:"client,omitempty"`         // Client is the id of the client; absent if unknown.
	Requested     []string `json:"requested,omitempty"`      // Requested are the scopes that the request named.
	Granted       []string `json:"granted,omitempty"`        // Granted are the scopes of the token that was issued or presented.
	Result        string   `json:"result"`                   // Result is `ok` or the error code.
	AccessDigest  string   `json:"access_digest,omitempty"`  // AccessDigest identifies the access token that was issued or presented.
	RefreshDigest string   `json:"refresh_digest,omitempty"` // RefreshDigest identifies the refresh token that was issued or refused.
}

func (OAuth) kind() string { return "oauth" }

func (o OAuth) describe() string {
	what := cmp.Or(o.Grant, o.Request)
	if len(o.Granted) > 0 {
		what += " " + strings.Join(o.Granted, " ")
	}
	return what + " -> " + o.Result
}
