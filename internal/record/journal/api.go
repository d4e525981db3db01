package journal

import "encoding/json"

// Request is a request of the Messages API face that was part of a conversation,
// or was refused.
type Request struct {
	// Namespace of the request; empty = the nameless one.
	Namespace string `json:"namespace"`
	// Session and Agent name the conversation, where the client says it.
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Attempt counts how often this very history was sent, from 1; it is 1 as well where
	// nobody looked.
	Attempt int    `json:"attempt"`
	Path    string `json:"path"`
	Model   string `json:"model,omitempty"`
	Stream  bool   `json:"stream"`
	// Betas are those of anthropic-beta.
	Betas []string `json:"betas,omitempty"`
	// Tools are the names of those offered.
	Tools []string `json:"tools,omitempty"`
	// Messages is the history as it was understood: prompt, results, context,
	// added, injected, notice and answer.
	Messages []string `json:"messages,omitempty"`
	// Calls are those whose results came with the request, the first time.
	Calls []Called `json:"calls,omitempty"`
	// Prompt is the text that was answered, when it was one.
	Prompt string `json:"prompt,omitempty"`
	// Injected says that the client itself wrote that text: feedback of a hook, a
	// notice.
	Injected bool `json:"injected,omitempty"`
	// Added are prompts that came beside results, the first time.
	Added []string `json:"added,omitempty"`
	// Rule that answered, with its place.
	Rule string `json:"rule,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Unmet are expectations of results that did not come true, the first time.
	Unmet []Expectation `json:"unmet,omitempty"`
	// Left is the step of the script that the next request is to get; absent = there
	// is none.
	Left *Unplayed `json:"left,omitempty"`
	// NotOffered are tools that the script calls and the request does not offer; absent
	// for Claude Code, which has more than it offers.
	NotOffered []string `json:"not_offered,omitempty"`
	// Status of HTTP; 0 = the connection ended without one.
	Status int `json:"status"`
	// Error is the message of a refusal or a failure.
	Error string `json:"error,omitempty"`
	// MS is how long the request took, pauses of the scenario included.
	MS float64 `json:"ms"`
	// UnknownKeys of the body that no earlier request of the namespace had.
	UnknownKeys []string `json:"unknown_keys,omitempty"`
	// Findings are what is odd about the request.
	Findings []string `json:"findings,omitempty"`
}

// Called is a tool call that the client has run.
type Called struct {
	Tool      string          `json:"tool"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"input"`
	Result    string          `json:"result"`
	IsError   bool            `json:"is_error"`
	// Unasked says that the turn had ended with the call: what came of it was no part of
	// a request before this one, whose prompt is another.
	Unasked bool `json:"unasked,omitempty"`
}

// SideRequest is a request that a client makes beside the conversation, and every
// one to another endpoint.
type SideRequest struct {
	Namespace string `json:"namespace"`
	Session   string `json:"session,omitempty"`
	// Kind is title, compact, probe, other, count_tokens, models, telemetry or hello.
	Kind  string `json:"kind"`
	Path  string `json:"path"`
	Model string `json:"model,omitempty"`
	// Unclassified says that nobody knows the request: clients have changed.
	Unclassified bool    `json:"unclassified,omitempty"`
	Status       int     `json:"status"`
	MS           float64 `json:"ms"`
}

// Exchange is a request that was forwarded to a Messages API, and what came of
// it.
type Exchange struct {
	// Session and Agent name the conversation, where the client says it.
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Client is what it calls itself.
	Client string `json:"client,omitempty"`
	Path   string `json:"path"`
	// Request is the body as it was sent; absent = it was no JSON.
	Request json.RawMessage `json:"request,omitempty"`
	// Status of HTTP.
	Status int `json:"status"`
	// Response is the message, put together if it was streamed, or the error;
	// absent = there was none.
	Response json.RawMessage `json:"response,omitempty"`
	// MS is how long it took.
	MS float64 `json:"ms"`
}

func (Exchange) kind() string    { return "exchange" }
func (Request) kind() string     { return "request" }
func (SideRequest) kind() string { return "side_request" }
