package scenarios

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// Scenario scripts the model: its answers to prompts and its tool calls. All keys are optional; the file may be empty.
type Scenario struct {
	// Schema may name the JSON Schema of the format, for text editors. It has no other effect.
	Schema string `toml:"$schema"`
	// Name is a label for reports.
	Name string `toml:"name"`
	// Description describes the purpose of the scenario.
	Description string `toml:"description"`
	// Seed makes ids, jitter and probabilities repeatable. If several runs use one state directory, their ids differ,
	// but the n-th run always has the same ids. Without a seed, a random seed is used and printed in the report.
	Seed *int64 `toml:"seed"`
	// Templates is true if `{{ expr }}` is evaluated in texts, tool inputs and canned results; false leaves `{{` unchanged.
	Templates *bool `toml:"templates" default:"true"`
	// Include lists scenario files, relative to this one, and adds their rules after the rules of this file. Only
	// their `responses` and `include` are used.
	Include []string `toml:"include"`
	// Unmatched selects what happens if no rule matches a prompt and the scenario has no `default_response`. With
	// `default` the reply is empty. With `error` the run ends with exit code 1 and lists the nearest rules.
	Unmatched string `toml:"unmatched" enum:"default,error" default:"default"`
	// DefaultResponse answers prompts that no rule matches.
	DefaultResponse *Response `toml:"default_response" schema:"string|Response"`
	// Responses are the rules, tried in file order.
	Responses []Rule `toml:"responses" alias:"rule,rules"`
	// ToolExecution configures how tool calls are run.
	ToolExecution *ToolExecution `toml:"tool_execution"`
	// Fault adds a defect to the program's output from the start of the run. The defects were observed with the real
	// CLI. `claudeless exec --faults all` tries every defect.
	Fault string `toml:"fault" enum:"hang-after-result,lying-success,stdout-stall,no-result,json-array,silent-json,late-result,giant-line,split-utf8,u2028,crlf,key-order-shuffled,sigterm-ignored,stderr-flood,half-last-line,duplicate-result,exit-code-wrong,stall-mid-stream,529-storm,ping-silence,tool-json-truncated,usage-in-start-only,dialog-late,draft-back,echo-late,footer-gone,mode-option,numbers-gone,option-order,retry-long,small-pane,title-only"`
	// Stream is the pace of partial messages.
	Stream Stream `toml:"stream"`
	// API sets options of the Messages API server (claudeless serve).
	API API `toml:"api"`
	// MCP adds MCP servers.
	MCP MCP `toml:"mcp"`
	// Parity configures how `claudeless parity` calls claude.
	Parity Parity `toml:"parity"`
	// Breakpoints stop tool calls and make scripted decisions about them, as a person does at the debugger.
	Breakpoints []Breakpoint `toml:"breakpoints"`
	// Expect states what the run must have done; it is checked at the end of the run.
	Expect []Expectation `toml:"expect"`
	// DefaultModel is the model if no flag selects one.
	DefaultModel string `toml:"default_model" empty:"no"`
	// ClaudeVersion is the version of the real CLI to simulate.
	ClaudeVersion string `toml:"claude_version" empty:"no"`
	// UserName is the name of the user on the interactive screen.
	UserName string `toml:"user_name"`
	// SessionID sets the id of a new session: a UUID, with or without hyphens.
	SessionID string `toml:"session_id" empty:"no"`
	// Placeholder is the hint in the empty input field of the interactive screen.
	Placeholder string `toml:"placeholder"`
	// Provider is the name of the provider on the interactive screen.
	Provider string `toml:"provider"`
	// ShowWelcomeBack shows the start panel of the interactive screen.
	ShowWelcomeBack bool `toml:"show_welcome_back"`
	// WelcomeBackRightPanel lists the right-hand lines of the start panel; `---` is a horizontal rule, "" a blank row.
	WelcomeBackRightPanel []string `toml:"welcome_back_right_panel"`
	// ProjectPath is the project directory of saved sessions; default `working_directory`, otherwise the run's directory.
	ProjectPath string `toml:"project_path"`
	// WorkingDirectory is the directory that transcripts and hook inputs report. Tools and hooks still run in the run's directory.
	WorkingDirectory string `toml:"working_directory"`
	// Trusted is true if the directory is trusted; false shows the trust dialog on the interactive screen.
	Trusted *bool `toml:"trusted" default:"true"`
	// LoggedIn is true if a user is logged in; false starts the set-up on the interactive screen.
	LoggedIn *bool `toml:"logged_in" default:"true"`
	// PermissionMode is the initial mode: `default`, `plan`, `acceptEdits`, `bypassPermissions`, `dontAsk`, `auto`
	// or `delegate`; the spellings `accept-edits`, `bypass-permissions` and `dont-ask` are equivalent.
	PermissionMode string `toml:"permission_mode" empty:"no" default:"default"`
	// LaunchTimestamp is the start time of the run (RFC 3339 with a zone); with `seed` it makes output repeatable.
	LaunchTimestamp string `toml:"launch_timestamp" empty:"no"`
	// Pace `real` makes a run take at least as long as the real CLI takes to start and to answer; `exec --pace` takes
	// precedence. With `exec --real`, and for claudeless serve, it has no effect.
	Pace string `toml:"pace" enum:"instant,real" default:"instant"`
	// Timeouts sets timeouts and delays of the CLI.
	Timeouts Timeouts `toml:"timeouts"`
	// Compat keeps behaviour that older scenarios rely on.
	Compat Compat `toml:"compat"`

	compiledScenario
}

// Rule answers the prompts that its pattern matches.
type Rule struct {
	// Pattern is the condition on the text of the prompt.
	Pattern Pattern `toml:"pattern,required"`
	// Source selects the prompts that the rule answers: `user` for prompts of users and programs, `notification` for prompts that
	// the CLI itself writes (the end of a background task, feedback of hooks, reminders), `any` for both. If the pattern contains
	// a text of such CLI prompts (`<task-notification>`, `Stop hook feedback`), `any` is the default instead of `user`.
	Source string `toml:"source" enum:"user,notification,any" default:"user"`
	// When is a condition that must also be true.
	When string `toml:"when" empty:"no"`
	// Response is the answer; without it the reply is empty.
	Response *Response `toml:"response" schema:"string|Response" inside:"text,tool_calls,steps,blocks"`
	// Failure is the failure that happens instead of the response.
	Failure *Failure `toml:"failure"`
	// Fault adds a defect to the program's output after this rule matches. The defects were observed with the real CLI.
	// `claudeless exec --faults all` tries every defect.
	Fault string `toml:"fault" enum:"hang-after-result,lying-success,stdout-stall,no-result,json-array,silent-json,late-result,giant-line,split-utf8,u2028,crlf,key-order-shuffled,sigterm-ignored,stderr-flood,half-last-line,duplicate-result,exit-code-wrong,stall-mid-stream,529-storm,ping-silence,tool-json-truncated,usage-in-start-only,dialog-late,draft-back,echo-late,footer-gone,mode-option,numbers-gone,option-order,retry-long,small-pane,title-only"`
	// MaxMatches limits how often the rule may match. In a run (of `claudeless exec` or one test), the matches of all processes count
	// together. Outside a run, as with claudeless serve, each session counts its own matches. 0 means never; the default is no limit.
	MaxMatches *int `toml:"max_matches" min:"0"`
	// Once limits the rule to one prompt. In a run (of `claudeless exec` or one test), this is one prompt of all
	// processes together. Outside a run, as with claudeless serve, it is one prompt of each session. If the rule
	// answers prompts in several sessions, the verdict reports every one after the first.
	Once bool `toml:"once"`
	// Turns script the answers to the user's next prompts.
	Turns []Turn `toml:"turns"`

	compiledRule
}

// Turn answers the next prompt of a sequence. A prompt that does not match ends the sequence and is matched against the
// rules. Expressions see the named groups of the rule's own pattern and those of `expect`, which take precedence.
type Turn struct {
	// Expect is the pattern that the prompt must match.
	Expect Pattern `toml:"expect,required"`
	// Source selects the prompts that the turn answers, as in a rule. A prompt by the CLI never ends the sequence.
	Source string `toml:"source" enum:"user,notification,any" default:"user"`
	// When is a condition that must also be true.
	When string `toml:"when" empty:"no"`
	// Response is the answer; without it the reply is empty.
	Response *Response `toml:"response" schema:"string|Response" inside:"text,tool_calls,steps,blocks"`
	// Failure is the failure that happens instead of the response.
	Failure *Failure `toml:"failure"`

	compiledRule
}

// Response is one answer of the model: a string, or a table.
type Response struct {
	// Text is the text of the model. With `tool_calls` it is the closing message after their results.
	Text string `toml:"text"`
	// DelayMS is the wait before the answer.
	DelayMS int `toml:"delay_ms" min:"0" max:"31536000000"`
	// ToolCalls are the tool calls of one message; several run in parallel.
	ToolCalls []ToolCall `toml:"tool_calls"`
	// Usage is the reported token count. By default it is estimated.
	Usage *Usage `toml:"usage"`
	// Steps are the messages of the answer. They replace `text` and `tool_calls`. Each message answers its own request to the model.
	Steps []Step `toml:"steps"`
	// StopReason replaces the stop reason. After "max_tokens" and "model_context_window_exceeded", the CLI sends a prompt that begins
	// "Output token limit hit."; the next step or a rule answers this prompt. After "refusal", the CLI asks the model once more.
	StopReason string `toml:"stop_reason"`
	// StructuredOutput is the answer to `--json-schema`.
	StructuredOutput json.RawMessage `toml:"structured_output"`
}

// Step is one message of the model inside a response.
type Step struct {
	// When is a condition; false skips the step. The variable `results` contains the results of all earlier steps.
	When string `toml:"when" empty:"no"`
	// Thinking is the reasoning of the model, shown before the text.
	Thinking string `toml:"thinking"`
	// Text is the text of the model, before its tool calls.
	Text string `toml:"text"`
	// ToolCalls follow the text in the same message.
	ToolCalls []ToolCall `toml:"tool_calls"`
	// Blocks are the content blocks of the message in order, instead of `thinking`, `text` and `tool_calls`.
	Blocks []Block `toml:"blocks"`
	// Gate is the name of a gate: the message waits until `claudeless gates release NAME`. After 30 seconds the step
	// continues, and a finding is reported.
	Gate string `toml:"gate" empty:"no"`
	// After is `gate:NAME`: the message waits until the gate NAME of another step is released.
	After string `toml:"after" empty:"no"`
	// Frames are output to write before the message, for example events that do not come from the model, or invalid
	// output that a host must survive.
	Frames []Frame `toml:"frames"`
	// DelayMS is the wait before the message.
	DelayMS int `toml:"delay_ms" min:"0" max:"31536000000"`
	// Usage is the reported token count. By default it is estimated.
	Usage *Usage `toml:"usage"`
	// StopReason replaces the stop reason. After "max_tokens" and "model_context_window_exceeded", the CLI sends a prompt that begins
	// "Output token limit hit."; the next step or a rule answers this prompt. After "refusal", the CLI asks the model once more.
	StopReason string `toml:"stop_reason"`
	// Failure is the failure that happens instead of the message.
	Failure *Failure `toml:"failure"`
	// Fault adds a defect to the program's output from this message on. The defects were observed with the real CLI.
	// `claudeless exec --faults all` tries every defect.
	Fault string `toml:"fault" enum:"hang-after-result,lying-success,stdout-stall,no-result,json-array,silent-json,late-result,giant-line,split-utf8,u2028,crlf,key-order-shuffled,sigterm-ignored,stderr-flood,half-last-line,duplicate-result,exit-code-wrong,stall-mid-stream,529-storm,ping-silence,tool-json-truncated,usage-in-start-only,dialog-late,draft-back,echo-late,footer-gone,mode-option,numbers-gone,option-order,retry-long,small-pane,title-only"`
	// Stream is the pace of this message.
	Stream *Stream `toml:"stream"`
	// StructuredOutput is the answer to `--json-schema`.
	StructuredOutput json.RawMessage `toml:"structured_output"`
}

// Block is one content block of a message.
type Block struct {
	// Type is the type of the block, which determines the other keys. A `tool_use` block has the keys of a tool call.
	// `server_tool_use` and the types of results are for tools that the API runs.
	Type      BlockType       `toml:"type,required" enum:"text,thinking,tool_use,raw,redacted_thinking,server_tool_use,web_search_tool_result,web_fetch_tool_result,code_execution_tool_result,bash_code_execution_tool_result,text_editor_code_execution_tool_result,tool_search_tool_result"`
	Text      string          `toml:"text"`      // Text of a `text` block.
	Citations json.RawMessage `toml:"citations"` // Citations of a `text` block: a list in the API's format.
	Data      string          `toml:"data"`      // Data of a `redacted_thinking` block.
	Name      string          `toml:"name"`      // Name of the tool of a `server_tool_use` block.
	// ToolUseID is the id of the call to which a server tool's result belongs. Default: the last call of the message.
	ToolUseID string          `toml:"tool_use_id"`
	Content   json.RawMessage `toml:"content"`  // Content of a server tool's result, in the API's format.
	Thinking  string          `toml:"thinking"` // Thinking is the text of a `thinking` block.
	JSON      json.RawMessage `toml:"json"`     // JSON of a `raw` block: any block of the API, as an object with a `type`.

	ToolCall `toml:",inline"`
}

// BlockType is the `type` of a [Block].
type BlockType string

// The block types.
const (
	BlockText          BlockType = "text"
	BlockThinking      BlockType = "thinking"
	BlockToolUse       BlockType = "tool_use"
	BlockRaw           BlockType = "raw"
	BlockRedacted      BlockType = "redacted_thinking"
	BlockServerToolUse BlockType = "server_tool_use"
)

// ToolCall is one tool call.
type ToolCall struct {
	// Tool is the name: a built-in (`Bash`), `mcp__server__tool`, `server/tool` or the bare name of an MCP tool.
	Tool string `toml:"tool,required" empty:"no"`
	// Input is the tool's input. Its strings are templates; `{ "$file" = "path" }` is a file relative to the scenario.
	Input json.RawMessage `toml:"input"`
	// Result is a canned result: the tool does not run. `{ "$file" = "path" }` is that file's text, without templates.
	Result  *Canned `toml:"result" schema:"string|object"`
	IsError bool    `toml:"is_error"`      // IsError makes the canned result an error.
	ID      string  `toml:"id" empty:"no"` // ID is the id of the call; default a new id.
	// Expect is a pattern that the text of the result must match. If the text does not match, the run has an unmet expectation.
	Expect  *Pattern `toml:"expect"`
	DelayMS int      `toml:"delay_ms" min:"0" max:"31536000000"` // DelayMS is the wait before the tool runs.
	// Subagent scripts the agent of an Agent or Task call. By default, rules answer its prompt, in a separate session.
	Subagent *Subagent `toml:"subagent"`

	at diag.Position // position of Expect, or of the block of a server tool call
}

// Canned is the text of a canned result.
type Canned struct {
	Text string // a template
	File string // the file that contains the text; empty means Text is used
}

// Subagent scripts the agent that a tool call starts.
type Subagent struct {
	// Type is the agent type if the call's input sets none.
	Type string `toml:"type"`
	// Steps are the messages with which the agent answers its first prompt; rules answer later prompts of the agent.
	// Expressions see the captures of the prompt that led to the call, the agent's prompt, and the results of the agent's calls.
	Steps []Step `toml:"steps"`
	// Background is false if the call waits for the agent. By default, the agent's definition decides; without
	// a value there, it is true, as in the real CLI. The input's `run_in_background` takes precedence.
	Background *bool `toml:"background"`
}

// Usage counts tokens.
type Usage struct {
	// InputTokens is the number of input tokens of the request.
	InputTokens int `toml:"input_tokens,required" min:"0"`
	// OutputTokens is the number of output tokens of the answer.
	OutputTokens int `toml:"output_tokens,required" min:"0"`
	// CacheReadInputTokens are input tokens read from the prompt cache, which `input_tokens` does not count.
	CacheReadInputTokens int `toml:"cache_read_input_tokens" min:"0"`
	// CacheCreationInputTokens are input tokens written to the five-minute prompt cache, which `input_tokens` does not count.
	CacheCreationInputTokens int `toml:"cache_creation_input_tokens" min:"0"`
}

// Add returns the sum of two usages.
func (u Usage) Add(other Usage) Usage {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.CacheReadInputTokens += other.CacheReadInputTokens
	u.CacheCreationInputTokens += other.CacheCreationInputTokens
	return u
}

// Total returns the tokens of the request and of the answer.
func (u Usage) Total() int {
	return u.InputTokens + u.OutputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
}

// Stream is the pace of partial messages.
type Stream struct {
	// TTFTMS is the time to the first token in milliseconds.
	TTFTMS int `toml:"ttft_ms" min:"0" max:"31536000000"`
	// TokensPerSecond is the speed, at least 0.001. Default: as fast as possible.
	TokensPerSecond float64 `toml:"tokens_per_second" min:"0"`
	// Jitter is the fraction, 0 to 1, by which pauses vary.
	Jitter float64 `toml:"jitter" min:"0" max:"1"`
	// Chunk is the size of a piece: `word`, `token`, `line` or a number of characters.
	Chunk Chunk `toml:"chunk" default:"word" schema:"word,token,line|integer"`
}

// Chunk is the size of the pieces in which a partial message is sent. Chunk{} means one word per piece.
type Chunk struct {
	Unit string // "word", "token" or "line"; "" means word, unless Size is set
	Size int    // characters; 0 means Unit is used
}

// Frame is output of the program; it has exactly one of the keys `json`, `line` and `stderr`. `json` and `line` are
// written to stdout, and only with `--output-format stream-json`.
type Frame struct {
	// JSON is an event: an object with a `type`. If `uuid` or `session_id` is missing, it is added.
	JSON   json.RawMessage `toml:"json"`
	Line   string          `toml:"line"`          // Line is text that is written unchanged, even if it is not JSON.
	Times  int             `toml:"times" min:"1"` // Times is how often the text of `line` is written, all in one line. Default 1.
	Cut    bool            `toml:"cut"`           // Cut omits the newline after `line`.
	Stderr string          `toml:"stderr"`        // Stderr is text for stderr, including its newlines.
}

type compiledScenario struct {
	source  *fill.ScenarioFile
	library *fill.CompiledExpressions
	rules   *lazyRulePatternIndex
	texts   []string // source texts of the scenario and of included files, in the order in which they were read

	excerpts redactingExcerptFormatter
}

// lazyRulePatternIndex finds the rules that may match a prompt. It is built at the second prompt if there are more than
// maxRulesTriedWithoutIndex rules.
type lazyRulePatternIndex struct {
	lookups   atomic.Int32
	buildOnce sync.Once
	index     *match.PatternIndex
}
