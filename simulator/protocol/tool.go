package protocol

import "encoding/json"

// Tool is one callable tool.
type Tool struct {
	// Name is the canonical name: "Bash", "mcp__server__tool". Unique in a list.
	Name        string
	Title       string // human title; empty = none declared
	Description string
	// InputSchema is the schema exactly as its owner sent it; nil = none.
	InputSchema json.RawMessage
	// Annotations as the server sent them; nil = none.
	Annotations json.RawMessage
	// ReadOnly tools may run beside their neighbours (MCP: readOnlyHint).
	ReadOnly bool

	// The rest is set for MCP tools only.
	Server       string // raw server name as configured
	ServerTitle  string // serverInfo.name
	RawName      string // tool name as the server calls it
	ServerSource string // "dynamic", "project", "user", "sdk"
}

// ToolResult is what one tool call gave: the tool failing is IsError, not a Go
// error.
type ToolResult struct {
	Content Content // what the model sees
	IsError bool
	// ExplicitOK writes is_error:false on success (Bash does, others do not).
	ExplicitOK bool
	// Output is the structured tool_use_result; nil = for errors the string
	// "Error: <text>", else the content.
	Output any
	// Server is the raw name of the MCP server that answered; empty = none.
	Server string
	// MCP is what transcripts keep of the result of a server, in the place of
	// Output; nil = the same.
	MCP *MCPResult

	// How the call was permitted, as tool_result_meta shows it.
	Decision         *PermissionDecision // nil = permission checks were not reached
	NonExecutionKind string              // "" = the tool ran
	Unknown          bool                // there is no such tool, or its server is gone
}

// MCPResult is what an MCP server answered beside its content.
type MCPResult struct {
	Content    any             `json:"-"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
}

// MCPCall is a call of an MCP server as transcripts keep it.
type MCPCall struct {
	Server, Tool string     // as the server calls them
	Result       *MCPResult // nil = nothing beside the content
	// NotReadOnly says why the tool may change something: "no_hint", "declared";
	// empty = it does not, or it failed.
	NotReadOnly string
}

// ErrorResult is a tool error whose text is shown as it is.
func ErrorResult(text string) ToolResult {
	return ToolResult{Content: Content{Text: text}, IsError: true}
}

// UsageError is an error the CLI itself raises about a call (unknown tool, bad
// input): the model sees it in <tool_use_error> tags.
func UsageError(text string) ToolResult {
	return ToolResult{
		Content: Content{Text: "<tool_use_error>" + text + "</tool_use_error>"},
		IsError: true,
		Output:  text,
	}
}

// PermissionDecision is the verdict on one tool call as shown in
// tool_result_meta.
type PermissionDecision struct {
	Decision   string `json:"decision"` // "accept" or "reject"
	Source     string `json:"source"`   // "config", "hook", "user_temporary", "user_permanent", "user_reject"
	ReasonType string `json:"reason_type,omitempty"`
	RuleSource string `json:"-"` // of the rule that decided; only transcripts have it
}

// PermissionMode is the session's permission mode in the real CLI's spelling.
type PermissionMode string

// The permission modes; ModeDefault is also what "manual" means.
const (
	ModeDefault     PermissionMode = "default"
	ModeAcceptEdits PermissionMode = "acceptEdits"
	ModeAuto        PermissionMode = "auto"
	ModeBypass      PermissionMode = "bypassPermissions"
	ModeDontAsk     PermissionMode = "dontAsk"
	ModePlan        PermissionMode = "plan"
)

// Safety says what a safety check found.
type Safety string

// The first may be approved for good by a classifier or a rule, the second
// only one call at a time.
const (
	SafetySensitive Safety = "sensitive"
	SafetyDangerous Safety = "dangerous"
)

// PermissionRequest asks someone outside for a verdict on one call.
type PermissionRequest struct {
	Use         ToolUse
	DisplayName string
	Description string
	// Suggestions are the updates a host may hand back; nil = none.
	Suggestions        []PermissionUpdate
	BlockedPath        string
	Safety             Safety // set when DecisionReasonType is "safetyCheck"
	DecisionReason     string
	DecisionReasonType string
	RuleSource         string       // of the rule that wants the question; empty = none does
	Hook               *HookVerdict // that wants it; nil = none does
	Server             *ServerRef
	// ServerAskOnly is server_policy_ask_only: of MCP tools, that no rule wants the
	// question. Nil = not told.
	ServerAskOnly *bool
	RequiresUser  bool // requires_user_interaction
}

// ServerRef names an MCP server and where its entry came from.
type ServerRef struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// PermissionAnswer is the verdict of an asker.
type PermissionAnswer struct {
	Allow              bool
	UpdatedInput       json.RawMessage // nil = the original
	UpdatedPermissions []PermissionUpdate
	Message            string // reason of a denial
	Interrupt          bool   // a denial that also ends the turn
	// Undecided says that nobody gave a verdict: the question becomes a denial.
	Undecided bool
	// Failure is set when the asker could not give a verdict; the text is the
	// tool result (spec: cli-contract 6.3).
	Failure string
	// Broken says that with a Failure the call itself has failed: nobody refused it.
	Broken bool
	// Source overrides the decision source shown; empty = user_temporary or
	// user_reject.
	Source string
	// Before are events to show before the call's result: those of the hooks
	// that were asked.
	Before []Event
}

// PermissionUpdate changes the session's rules, mode or directories (SDK type
// of the same name).
type PermissionUpdate struct {
	Type        string           `json:"type"` // addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories
	Rules       []PermissionRule `json:"rules,omitempty"`
	Behavior    string           `json:"behavior,omitempty"` // allow, deny, ask
	Mode        PermissionMode   `json:"mode,omitempty"`
	Directories []string         `json:"directories,omitempty"`
	Destination string           `json:"destination,omitempty"`
}

// PermissionRule is a rule in its two parts: Bash + "npm run *".
type PermissionRule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// BreakpointDecision is what was decided about a call at a breakpoint.
type BreakpointDecision struct {
	Phase       string          // "before", "after"
	Action      string          // "continue", "modify", "skip", "fail", "replace"
	Breakpoint  string          // which one; empty = unknown
	Pause       string          // id of the pause at a debugger; empty = there was none to look at
	Input       json.RawMessage // the new one of "modify" before the call
	Replacement string          // the tool of "replace"
}
