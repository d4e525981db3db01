package protocol

import (
	"context"
	"encoding/json"
	"time"
)

// HTTPHookLimits lists the allowed URLs of HTTP hooks ("*" is any text) and variables in headers. Nil allows all.
type HTTPHookLimits struct{ URLs, EnvVars []string }

// HookCallbackMatcher registers callbacks of the host for an event (initialize.hooks).
type HookCallbackMatcher struct {
	Matcher         *string  `json:"matcher,omitempty"` // compared with the event's subject; nil, "" and "*" match everything
	HookCallbackIDs []string `json:"hookCallbackIds"`
	Timeout         float64  `json:"timeout,omitempty"`   // in seconds; 0 means the default
	OnFailure       string   `json:"onFailure,omitempty"` // "continue" (default) or "block"
}

// HookConfig is one hook in a settings file. Type determines which keys apply.
type HookConfig struct {
	Type          string  `json:"type"`              // command, http, mcp_tool, prompt, agent
	If            string  `json:"if,omitempty"`      // permission rule; tool events only
	Timeout       float64 `json:"timeout,omitempty"` // in seconds; 0 means the default
	OnFailure     string  `json:"onFailure,omitempty"`
	StatusMessage string  `json:"statusMessage,omitempty"`
	Once          bool    `json:"once,omitempty"`

	Command     string   `json:"command,omitempty"`
	Args        []string `json:"args,omitempty"` // if not nil, the command runs without a shell
	Shell       string   `json:"shell,omitempty"`
	Async       bool     `json:"async,omitempty"`
	AsyncRewake bool     `json:"asyncRewake,omitempty"`

	URL            string            `json:"url,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	AllowedEnvVars []string          `json:"allowedEnvVars,omitempty"`

	Server string          `json:"server,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`

	Prompt          string `json:"prompt,omitempty"`
	Model           string `json:"model,omitempty"`
	ContinueOnBlock bool   `json:"continueOnBlock,omitempty"`
}

// HookOutput is the output of a hook (spec: cli-contract 5.3).
type HookOutput struct {
	Async            bool                `json:"async,omitempty"`        // the CLI does not wait for the hook's verdict
	AsyncTimeout     float64             `json:"asyncTimeout,omitempty"` // milliseconds
	Continue         *bool               `json:"continue,omitempty"`     // false ends the turn
	SuppressOutput   bool                `json:"suppressOutput,omitempty"`
	StopReason       string              `json:"stopReason,omitempty"`
	Decision         string              `json:"decision,omitempty"` // approve, block
	Reason           string              `json:"reason,omitempty"`
	SystemMessage    string              `json:"systemMessage,omitempty"`
	TerminalSequence string              `json:"terminalSequence,omitempty"`
	Specific         *HookSpecificOutput `json:"hookSpecificOutput,omitempty"`
}

// HookSpecificOutput contains the keys that only some events have. HookEventName determines which of them apply.
type HookSpecificOutput struct {
	HookEventName            string                     `json:"hookEventName"`
	PermissionDecision       string                     `json:"permissionDecision,omitempty"` // allow, deny, ask, defer
	PermissionDecisionReason string                     `json:"permissionDecisionReason,omitempty"`
	UpdatedInput             json.RawMessage            `json:"updatedInput,omitempty"`
	AdditionalContext        string                     `json:"additionalContext,omitempty"`
	UpdatedToolOutput        json.RawMessage            `json:"updatedToolOutput,omitempty"`
	UpdatedMCPToolOutput     json.RawMessage            `json:"updatedMCPToolOutput,omitempty"`
	ClassifierContext        string                     `json:"classifierContext,omitempty"`
	SessionTitle             string                     `json:"sessionTitle,omitempty"`
	SuppressOriginalPrompt   bool                       `json:"suppressOriginalPrompt,omitempty"`
	InitialUserMessage       string                     `json:"initialUserMessage,omitempty"`
	WatchPaths               []string                   `json:"watchPaths,omitempty"`
	ReloadSkills             bool                       `json:"reloadSkills,omitempty"`
	Decision                 *PermissionRequestDecision `json:"decision,omitempty"` // only for PermissionRequest
	Retry                    bool                       `json:"retry,omitempty"`    // only for PermissionDeniedEvent
	Action                   string                     `json:"action,omitempty"`   // only for Elicitation and ElicitationResult
	Content                  json.RawMessage            `json:"content,omitempty"`
	WorktreePath             string                     `json:"worktreePath,omitempty"`
	DisplayContent           *string                    `json:"displayContent,omitempty"`
}

// PermissionRequestDecision is the decision of a PermissionRequest hook.
type PermissionRequestDecision struct {
	Behavior           string             `json:"behavior"` // allow, deny
	UpdatedInput       json.RawMessage    `json:"updatedInput,omitempty"`
	UpdatedPermissions []PermissionUpdate `json:"updatedPermissions,omitempty"`
	Message            string             `json:"message,omitempty"`
	Interrupt          bool               `json:"interrupt,omitempty"`
}

// HookAttachment records one hook in the transcript. It is the value of the key "attachment" of a line.
type HookAttachment struct {
	Type     string // hook_success, hook_blocking_error, hook_non_blocking_error, hook_cancelled, …
	Fields   []Field
	Rendered string       // text for the model; empty means none
	Notice   *SystemEvent // event that shows the text to the user and has the same uuid as the line; nil means none
}

// MarshalJSON writes the attachment as one object.
func (a HookAttachment) MarshalJSON() ([]byte, error) {
	return MarshalFields([]Field{{"type", a.Type}}, a.Fields)
}

// PromptSubmitOutcome describes the effect of hooks on a prompt: blocked_by_hook, stopped_by_hook or no_verdict.
type PromptSubmitOutcome struct {
	Kind      string `json:"kind"`
	IsKept    bool   `json:"prompt_kept"`
	NoVerdict string `json:"no_verdict_kind,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

type requestSentCallbackContextKey struct{}

// WithRequestSentCallback returns a context for a request to the SDK host. sent is called when the request has been written.
func WithRequestSentCallback(ctx context.Context, sent func()) context.Context {
	return context.WithValue(ctx, requestSentCallbackContextKey{}, sent)
}

// NoteRequestSent calls the function that [WithRequestSentCallback] stored in ctx, if there is one.
func NoteRequestSent(ctx context.Context) {
	if sent, ok := ctx.Value(requestSentCallbackContextKey{}).(func()); ok {
		sent()
	}
}

// HookEventStats counts the hooks that ran for one event.
type HookEventStats struct {
	Event, Name    string // Name includes the matched subject, such as "PreToolUse:Read"
	Hooks, Blocked int
	Failed         int // hooks that failed without blocking
	Cancelled      int
	Duration       time.Duration // duration of the slowest hook
	OutputBytes    int           // length of standard output
	ContextBytes   int           // length of the additional context
}
