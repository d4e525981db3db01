package scenarios

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Request is a request to the model: a prompt, or the results of the tool calls in the model's last reply.
type Request struct {
	// Prompt is the text of a new prompt. It is used only if Results is nil.
	Prompt string
	// IsInjected marks a prompt that the CLI wrote. Such a prompt does not end a turn sequence. If IsNotification
	// is false, the prompt requests the rest of a truncated reply, and rules answer it like a prompt of the user.
	IsInjected bool
	// IsNotification marks an injected prompt that reports something: the end of a background task,
	// feedback of a hook, or a reminder. Only rules and turns for notifications answer it.
	IsNotification bool
	// IsInterjected marks a prompt that arrived while another one was being answered. If no rule
	// matches the prompt, the reply has IsUnmatched set, and the caller drops the reply.
	IsInterjected bool
	// Results are the results of the tool calls of the previous reply, in call order. If Results is not nil, the reply
	// is the next step of the response that made these calls.
	Results []ToolCallResult
	// SideKind is the kind of a request outside the conversation, such as `compact`. The answer to such a request does
	// not change the state of the engine. Empty means a request of the conversation.
	SideKind string
	// Vars are additional variables of expressions.
	Vars ExpressionVars
	// Counter replaces the counter of the engine for this request; nil means that the engine's counter is used.
	Counter RuleCounter
}

// ToolCallResult is the outcome of one tool call.
type ToolCallResult struct {
	ToolUseID  string
	Tool       string // canonical name
	Text       string // text for the model
	IsError    bool
	Content    json.RawMessage // content for the model: a JSON string or an array of blocks; nil means unknown
	Structured any             // structured form of the result; nil means none
}

// ExpressionVars is the part of the session state that expressions can use.
type ExpressionVars struct {
	Model, PermissionMode, SystemPrompt string
	CWD                                 string                     // "" means the engine's directory
	Tools                               []string                   // canonical names
	Context                             []string                   // texts that were added for the model in this turn, for example by hooks
	Schemas                             map[string]json.RawMessage // canonical name → input schema
	Session                             SessionVars
	Call                                RequestProperties
}

// RequestProperties contains properties of the request for expressions. Outside claudeless serve, only Attempt is set.
type RequestProperties struct {
	MaxTokens                                    int
	Stream                                       bool
	Attempt                                      int    // counted from 1; 0 also means 1
	Agent                                        string // id of the requesting sub-agent; "" means the main conversation
	Betas                                        []string
	Headers                                      map[string]string // lower case, credentials redacted
	Attachments                                  []string          // media types of the images and documents in the prompt
	ToolChoice, Thinking, OutputConfig, Metadata json.RawMessage
}

func (c RequestProperties) addVariables(variables map[string]any) {
	variables["max_tokens"], variables["stream"], variables["attempt"], variables["agent"] = c.MaxTokens, c.Stream, max(1, c.Attempt), c.Agent
	variables["betas"], variables["headers"], variables["attachments"] = c.Betas, c.Headers, c.Attachments
	for name, raw := range map[string]json.RawMessage{
		"tool_choice": c.ToolChoice, "thinking": c.Thinking, "output_config": c.OutputConfig, "metadata": c.Metadata,
	} {
		variables[name] = plainjson.DecodeForExpressions(raw)
	}
}

// SessionVars is `session` in expressions.
type SessionVars struct {
	ID        string
	IsResumed bool
	Turn      int // number of the prompt in the session, from 1; 0 means that the engine counts prompts
}

// Reply is one message of the model.
type Reply struct {
	// Blocks are the content blocks in order; no blocks mean an empty text. A ToolUse has the tool name as written in the
	// scenario. Its ID is empty unless the scenario sets one. In its input, templates are evaluated and files are inserted.
	Blocks     []protocol.Block
	StopReason string // "" means tool_use if the message has a tool call, otherwise end_turn
	Usage      *Usage // nil means the caller estimates
	DelayMS    int    // wait before the message
	// Failure happens instead of the message; nil means none. If Failure.Times is set, the message follows after this
	// number of failed requests.
	Failure *Failure
	// Gate is the name of the gate at which the session waits before the message. After is the name of another step's
	// gate; the session waits until that gate is released, too. Empty means no gate.
	Gate, After      string
	Fault            string          // the fault that the program's output has from this message on; empty means none
	Frames           []Frame         // written before the message, with templates evaluated
	StructuredOutput json.RawMessage // the scripted answer to a JSON schema; nil means none
	Stream           *Stream         // pace of this message; nil means the pace of the scenario
	Rule             RuleLocation
	// IsUnmatched is true if no rule matched the prompt. NearMisses are lines that explain why; they are set only if
	// the scenario makes an unmatched prompt an error.
	IsUnmatched bool
	// IsEndless is true if the rule was stopped, because it answered too many prompts of the CLI
	// with tool calls before the user's next prompt.
	IsEndless  bool
	NearMisses []string
	HasMore    bool // true if another message of the response follows
	// Missing lists paths in the templates of this message that have no value, such as `results[0].structured.nmae`.
	Missing []string
}

// RuleLocation identifies the part of a scenario that answered.
type RuleLocation struct {
	Name string // "responses[2]", "responses[2].turns[0]", "default_response" or "" for none
	File string // "" means not from a file
	Line int    // 0 means unknown
}

// String returns "FILE:LINE: NAME". It omits unknown parts.
func (r RuleLocation) String() string {
	if at := (diag.Position{File: r.File, Line: r.Line}).String(); at != "" {
		return at + ": " + r.Name
	}
	return r.Name
}

type matchedRule struct {
	ref      RuleLocation
	rule     int // -1 means default_response, or none
	turn     int // -1 means the rule's own response
	response *Response
	failure  *Failure
	scope    *fill.Scope
}

type activeResponse struct {
	rule                 *matchedRule
	steps                []Step
	nextStep             int
	callsAwaitingResults []*ToolCall // the calls of the last reply, in order
	awaitsResults        bool
	hasFailed            bool // a scripted failure ended the response
}

func newActiveResponse(h *matchedRule) *activeResponse {
	return &activeResponse{rule: h, steps: stepsWithTextAfterCalls(h.response)}
}

// stepsWithTextAfterCalls converts a response to steps. A response with tool calls becomes two steps: the calls, and then the text.
func stepsWithTextAfterCalls(r *Response) []Step {
	switch {
	case r == nil:
		return []Step{{}}
	case len(r.Steps) > 0:
		return r.Steps
	case len(r.ToolCalls) == 0:
		return []Step{{Text: r.Text, DelayMS: r.DelayMS, Usage: r.Usage, StopReason: r.StopReason}}
	}
	closing := Step{Text: r.Text, StopReason: r.StopReason}
	if r.Usage != nil {
		closing.Usage = &Usage{} // the first message already reports the usage
	}
	return []Step{{ToolCalls: r.ToolCalls, DelayMS: r.DelayMS, Usage: r.Usage}, closing}
}

// nextReply returns the message of the next step with a true condition, or an empty text after the last step.
func (r *activeResponse) nextReply(ctx context.Context) (Reply, error) {
	r.callsAwaitingResults, r.awaitsResults = nil, false
	i, err := r.findStep(ctx)
	r.nextStep = min(i+1, len(r.steps))
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Rule: r.rule.ref}
	if i == len(r.steps) {
		reply.Blocks = singleEmptyTextBlock()
		return reply, r.setHasMoreAndStructuredOutput(ctx, &reply, &Step{})
	}
	step := &r.steps[i]
	reply.Fault, reply.Gate, reply.After = step.Fault, step.Gate, strings.TrimPrefix(step.After, "gate:")
	reply.StopReason, reply.Usage, reply.DelayMS, reply.Stream = step.StopReason, step.Usage, step.DelayMS, step.Stream
	if err := r.buildBlocks(ctx, &reply, step); err != nil {
		return Reply{}, err
	}
	for _, f := range step.Frames {
		f, err := renderFrame(ctx, r.rule.scope, f)
		if err != nil {
			return Reply{}, err
		}
		reply.Frames = append(reply.Frames, f)
	}
	r.awaitsResults = len(r.callsAwaitingResults) > 0
	if step.Failure != nil {
		r.hasFailed = true
		if reply.Failure, err = renderFailure(ctx, r.rule.scope, step.Failure); err != nil {
			return Reply{}, err
		}
	}
	return reply, r.setHasMoreAndStructuredOutput(ctx, &reply, step)
}

// findStep returns the index of the next step with a true condition, or len(r.steps). If a
// condition cannot be evaluated, the index is that of its step.
func (r *activeResponse) findStep(ctx context.Context) (indexOrStepCount int, err error) {
	for i := r.nextStep; i < len(r.steps); i++ {
		if ok, err := r.rule.scope.EvaluateCondition(ctx, r.steps[i].When); ok || err != nil {
			return i, err
		}
	}
	return len(r.steps), nil
}

// setHasMoreAndStructuredOutput sets HasMore and StructuredOutput of the reply. The structured
// output of the response applies to the last message, unless the step has its own.
func (r *activeResponse) setHasMoreAndStructuredOutput(ctx context.Context, reply *Reply, step *Step) error {
	var err error
	if reply.HasMore, err = r.hasMoreReplies(ctx); err != nil {
		return err
	}
	raw := step.StructuredOutput
	if raw == nil && !reply.HasMore && r.rule.response != nil {
		raw = r.rule.response.StructuredOutput
	}
	reply.StructuredOutput, err = r.rule.scope.RenderJSON(ctx, raw)
	return err
}

// hasMoreReplies reports whether a message follows. After tool calls this is always true, because at least a closing
// message follows. Otherwise a later step must have a true condition.
func (r *activeResponse) hasMoreReplies(ctx context.Context) (bool, error) {
	if len(r.callsAwaitingResults) > 0 {
		return true, nil
	}
	i, err := r.findStep(ctx)
	return i < len(r.steps), err
}

func (r *activeResponse) buildBlocks(ctx context.Context, reply *Reply, step *Step) error {
	parts := step.Blocks
	if parts == nil {
		if step.Thinking != "" {
			parts = append(parts, Block{Type: BlockThinking, Thinking: step.Thinking})
		}
		if step.Text != "" {
			parts = append(parts, Block{Type: BlockText, Text: step.Text})
		}
		for _, c := range step.ToolCalls {
			parts = append(parts, Block{Type: BlockToolUse, ToolCall: c})
		}
	}
	server := "" // the id of the last server tool call
	for i := range parts {
		b, err := r.buildBlockRecordingCall(ctx, &parts[i], server)
		if err != nil {
			return err
		}
		if call, ok := b.(protocol.ServerToolCall); ok {
			server = call.ID
		}
		reply.Blocks = append(reply.Blocks, b)
	}
	if len(reply.Blocks) == 0 {
		reply.Blocks = singleEmptyTextBlock()
	}
	return nil
}

// buildBlockRecordingCall builds one block of a message. serverCallID is the id of the last server tool call before the block; a
// result without tool_use_id belongs to that call.
func (r *activeResponse) buildBlockRecordingCall(ctx context.Context, b *Block, serverCallID string) (protocol.Block, error) {
	sc := r.rule.scope
	switch b.Type {
	case BlockText:
		text, err := sc.RenderText(ctx, b.Text)
		if err != nil || b.Citations == nil {
			return protocol.Text(text), err
		}
		citations, err := sc.RenderJSON(ctx, b.Citations)
		return protocol.TextBlock{Type: "text", Text: text, Citations: citations}, err
	case BlockRedacted, BlockServerToolUse:
		return buildRedactedOrServerCallBlock(ctx, sc, b)
	case BlockThinking:
		text, err := sc.RenderText(ctx, b.Thinking)
		return protocol.ThinkingBlock{Type: "thinking", Thinking: text}, err
	case BlockRaw:
		raw, err := sc.RenderJSON(ctx, b.JSON)
		return protocol.RawBlock{JSON: raw}, err
	case BlockToolUse:
		use, err := r.buildCall(ctx, &b.ToolCall)
		r.callsAwaitingResults = append(r.callsAwaitingResults, &b.ToolCall)
		return use, err
	default:
		return buildServerToolResultBlock(ctx, sc, b, serverCallID)
	}
}

// buildRedactedOrServerCallBlock builds redacted thinking or a server tool call. A missing id is derived from the block's position.
func buildRedactedOrServerCallBlock(ctx context.Context, s *fill.Scope, b *Block) (protocol.Block, error) {
	if b.Type == BlockRedacted {
		raw, err := protocol.Marshal(struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}{string(b.Type), b.Data})
		return protocol.RawBlock{JSON: raw}, err
	}
	call := protocol.ServerToolCall{Type: string(b.Type), ID: b.ID, Name: b.Name, Input: json.RawMessage("{}")}
	if call.ID == "" {
		sum := sha256.Sum256([]byte(b.at.String()))
		call.ID = fmt.Sprintf("srvtoolu_01%.11x", sum)
	}
	input, err := s.RenderJSON(ctx, b.Input)
	if input != nil {
		call.Input = input
	}
	return call, err
}

func buildServerToolResultBlock(ctx context.Context, s *fill.Scope, scriptedResult *Block, defaultCallID string) (protocol.Block, error) {
	content, err := s.RenderJSON(ctx, scriptedResult.Content)
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Marshal(struct {
		Type      BlockType       `json:"type"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}{scriptedResult.Type, cmp.Or(scriptedResult.ToolUseID, defaultCallID), content})
	return protocol.RawBlock{JSON: raw}, err
}

func (r *activeResponse) buildCall(ctx context.Context, c *ToolCall) (protocol.ToolUse, error) {
	s := r.rule.scope
	use := protocol.ToolUse{Type: "tool_use", ID: c.ID, Name: c.Tool, Input: json.RawMessage("{}")}
	input, err := s.RenderJSON(ctx, c.Input)
	if err != nil {
		return use, err
	}
	if input != nil {
		use.Input = input
	}
	if c.Result == nil && c.DelayMS == 0 && !c.IsError && c.Subagent == nil {
		return use, nil
	}
	use.Script = &protocol.CallScript{IsError: c.IsError, DelayMS: c.DelayMS}
	if c.Subagent != nil {
		use.Script.Subagent = r.subagentScript(c.Subagent)
	}
	if c.Result != nil {
		text, err := s.RenderText(ctx, c.Result.Text)
		if err != nil {
			return use, err
		}
		if c.Result.File != "" {
			text = s.LoadedTextFile(c.Result.File)
		}
		use.Script.Result = &text
	}
	return use, nil
}

// subagentScript returns the script of the agent that a call starts. The type of its Steps is *matchedRule.
func (r *activeResponse) subagentScript(s *Subagent) *protocol.SubagentScript {
	scope := r.rule.scope.Fork()
	scope.Results = nil
	steps := &matchedRule{ref: r.rule.ref, rule: -1, turn: -1, response: &Response{Steps: s.Steps}, scope: scope}
	return &protocol.SubagentScript{Type: s.Type, Background: s.Background, Steps: steps}
}

func renderFrame(ctx context.Context, s *fill.Scope, f Frame) (Frame, error) {
	var err error
	if f.JSON, err = s.RenderJSON(ctx, f.JSON); err == nil {
		f.Line, err = s.RenderText(ctx, f.Line)
	}
	if err == nil {
		f.Stderr, err = s.RenderText(ctx, f.Stderr)
	}
	return f, err
}

func renderFailure(ctx context.Context, s *fill.Scope, f *Failure) (*Failure, error) {
	filled := *f
	var err error
	if filled.Message, err = s.RenderText(ctx, f.Message); err != nil {
		return nil, err
	}
	filled.PartialText, err = s.RenderText(ctx, f.PartialText)
	return &filled, err
}

func singleEmptyTextBlock() []protocol.Block { return []protocol.Block{protocol.Text("")} }
