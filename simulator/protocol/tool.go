package protocol

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// Tool is one callable tool.
type Tool struct {
	Name        string // canonical name, unique in a list: "Bash", "mcp__server__tool"
	Title       string // title for users; empty means none
	Description string
	InputSchema json.RawMessage // schema, unchanged, as the tool's provider sent it; may be nil
	Annotations json.RawMessage // annotations, unchanged, as the server sent them; may be nil
	ReadOnly    bool            // the tool changes nothing and may run in parallel (MCP: readOnlyHint)

	// The rest is set for MCP tools only.
	Server       string // raw server name as configured
	ServerTitle  string // serverInfo.name
	RawName      string // tool name as the server calls it
	ServerSource string // "dynamic", "project", "user", "sdk"
}

// InputKeys returns the keys of the input schema, in its order.
func (t Tool) InputKeys() (names []string) {
	schema := plainjson.DecodeIgnoringErrors[struct{ Properties plainjson.Object }](t.InputSchema)
	for _, property := range schema.Properties {
		names = append(names, property.Key)
	}
	return names
}

// ToolResult is the result of one tool call. A tool reports its failure by IsError, not by a Go error.
type ToolResult struct {
	Content           Content // content that the model sees
	IsError           bool
	ShowsIsErrorFalse bool // writes is_error:false on success, as Bash does and other tools do not
	// Output is the structured tool_use_result. If it is nil, the tool_use_result of an error is the text "Error:
	// <text>", and that of a success is Content.
	Output       any
	Server       string          // configured name of the MCP server that ran the call; may be empty
	Feedback     string          // what a person typed when permitting the call; the model receives it as a prompt with the result
	UnsentSchema json.RawMessage // input schema of the tool, if the call failed and the model may not have had the schema; otherwise nil
	ForbiddenDir string          // disallowed directory to which a shell command changed and which the shell then left; empty means none
	MCP          *MCPResult      // the form of an MCP result in transcripts; nil means the transcript contains Output

	// The permission decision about the call, as tool_result_meta shows it.
	Decision         *PermissionDecision // nil if the permission check was not reached
	NonExecutionKind string              // empty if the tool ran
	DeniedBeforeRun  bool                // the user interrupted the turn while the question about the call was open
	UnknownTool      bool                // the tool does not exist, or its server has disconnected
	Screened         bool                // a file was written, and a hook receives the results of tools that can show the file
}

// MCPResult contains the parts of an MCP server's response other than the content.
type MCPResult struct {
	Content    any             `json:"-"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`

	ResourceLinks []ResourceLink `json:"resourceLinks,omitempty"`
}

// ResourceLink is a link to a resource in the content of an MCP result.
type ResourceLink struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// MCPCall describes a call of an MCP tool, for transcripts.
type MCPCall struct {
	Server, Tool string     // names as the server uses them
	Result       *MCPResult // nil if the server's response has only content
	// NotReadOnly is why the tool may have changed something: "declared" or "no_hint". It is empty if the tool is
	// read-only or the call failed.
	NotReadOnly string
}

// TrimWhiteSpaceAroundPath removes white space, as JavaScript defines it, from both ends of a path, as tools do with their input.
func TrimWhiteSpaceAroundPath(path string) string {
	return strings.TrimFunc(path, func(r rune) bool { return r == '\ufeff' || r != '\u0085' && unicode.IsSpace(r) })
}

// ErrorResult returns the result of a tool that failed. Hosts and the model see the text unchanged.
func ErrorResult(text string) ToolResult {
	return ToolResult{Content: Content{Text: text}, IsError: true}
}

// UsageErrorResult is the error of a wrong call (unknown tool, invalid input). The model sees it in <tool_use_error> tags.
func UsageErrorResult(text string) (resultInToolUseErrorTags ToolResult) {
	return ToolResult{Content: Content{Text: "<tool_use_error>" + text + "</tool_use_error>"}, IsError: true, Output: text}
}

// PermissionDecision is the decision about one tool call, as shown in tool_result_meta.
type PermissionDecision struct {
	Decision   string `json:"decision"` // "accept" or "reject"
	Source     string `json:"source"`   // "config", "hook", "user_temporary", "user_permanent", "user_reject"
	ReasonType string `json:"reason_type,omitempty"`
	// The following fields are recorded only in transcripts.
	RuleSource     string `json:"-"` // source of the deciding rule
	ReasonCode     string `json:"-"` // reason of the refusal or the question, such as "rule:userSettings", "bashMiss:no-rule-match"…
	GrantScope     string `json:"-"` // how long a permission from a host applies: "once" or "session"; empty means that it is saved in a file
	CircuitBreaker string `json:"-"` // name of a check that no rule or mode can override, such as "dangerousRemoval"
}

// PermissionMode is the session's permission mode in the real CLI's spelling.
type PermissionMode string

// The permission modes. "manual" is another name of ModeDefault.
const (
	ModeDefault     PermissionMode = "default"
	ModeAcceptEdits PermissionMode = "acceptEdits"
	ModeAuto        PermissionMode = "auto"
	ModeBypass      PermissionMode = "bypassPermissions"
	ModeDontAsk     PermissionMode = "dontAsk"
	ModePlan        PermissionMode = "plan"
)

// SafetyApprovalReason says why a call needs an approval for safety.
type SafetyApprovalReason string

// A call with SafetyApprovableByRuleOrClassifier may be approved by a classifier or a rule, and the approval may be
// permanent. Each call with SafetyNeedsApprovalOfEachCall needs its own approval.
const (
	SafetyApprovableByRuleOrClassifier SafetyApprovalReason = "sensitive"
	SafetyNeedsApprovalOfEachCall      SafetyApprovalReason = "dangerous"
)

// PermissionRequest asks a host for a decision about one call.
type PermissionRequest struct {
	Use                                ToolUse
	DisplayName, Description           string
	Suggestions                        []PermissionUpdate // the updates that a host may return; they may be nil
	BlockedPath                        string
	Safety                             SafetyApprovalReason // set when DecisionReasonType is "safetyCheck"
	DecisionReason, DecisionReasonType string
	RuleSource                         string       // source of the rule that requires the question; may be empty
	Hook                               *HookVerdict // the hook's decision that requires the question; may be nil
	Server                             *ServerNameAndSource
	// ServerAskOnly is the value of server_policy_ask_only. For an MCP tool, it is false if a rule requires the question, true if
	// no rule does, and nil in plan mode. It is nil for all other tools. Nil omits the key.
	ServerAskOnly *bool
	RequiresUser  bool // requires_user_interaction
}

// ServerNameAndSource names an MCP server and the source of its configuration.
type ServerNameAndSource struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// PermissionAnswer is the answer to a [PermissionRequest].
type PermissionAnswer struct {
	Allow              bool
	UpdatedInput       json.RawMessage // nil means the original
	UpdatedPermissions []PermissionUpdate
	Message            string // reason of a denial
	Feedback           string // what a person typed for the model: the reason of a denial, or a text next to the result
	Interrupt          bool   // the denial also ends the turn
	Undecided          bool   // true if no decision was made; the call is denied
	AskFailure         string // the text of the tool result if asking failed (spec: cli-contract 6.3)
	// CallFailed is true if a call with an AskFailure counts as failed. Otherwise the call counts as denied.
	CallFailed bool
	Source     string // overrides the displayed decision source; empty means user_temporary or user_reject
	// HasPrompter is true if a hook decided while a prompter was asked too. Then no event reports a denial.
	HasPrompter bool
	Before      []Event // contains events of the hooks that were asked; they are shown before the call's result
}

// PermissionUpdate changes the session's rules, mode or directories (SDK type of the same name).
type PermissionUpdate struct {
	Type        string           `json:"type"` // addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories
	Rules       []PermissionRule `json:"rules,omitempty"`
	Behavior    string           `json:"behavior,omitempty"` // allow, deny, ask
	Mode        PermissionMode   `json:"mode,omitempty"`
	Directories []string         `json:"directories,omitempty"`
	Destination string           `json:"destination,omitempty"`
}

// PermissionRule is a rule in two parts, such as Bash and "npm run *".
type PermissionRule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// BreakpointDecision records what the scenario or the debugger decided about a paused tool call.
type BreakpointDecision struct {
	Phase       string          // "before", "after"
	Action      string          // "continue", "modify", "skip", "fail", "replace"
	Breakpoint  string          // name; empty if unknown
	Pause       string          // id of the debugger's pause; empty if there was none
	Input       json.RawMessage // new input; only for "modify" before the call
	Replacement string          // name of the tool that runs instead, for "replace"
}

// NormalizeMCPNamePart returns the name of a server or tool as the full names of MCP tools contain it: any character outside
// [a-zA-Z0-9_-] becomes an underscore (spec: cli-contract 7).
func NormalizeMCPNamePart(serverOrToolName string) string {
	const beyondUTF16 = 0xFFFF
	var b strings.Builder
	for _, r := range serverOrToolName {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r > beyondUTF16: // two UTF-16 code units in the real CLI
			b.WriteString("__")
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// AbridgedResult is a structured tool result that transcripts record in a shorter form.
type AbridgedResult interface {
	// Abridged returns the shorter form. It does not change the result.
	Abridged() any
}

// ShownCommand describes a slash command to the host.
type ShownCommand struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
	Builtin      bool     `json:"builtin,omitempty"`
	RunsForHost  bool     `json:"hostLineRunsOwn,omitempty"` // claude runs the command of a host even if a custom command has the same name
}
