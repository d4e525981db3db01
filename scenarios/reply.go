package scenarios

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Request is what the model is asked: a prompt, or the results of the tool
// calls of its last reply.
type Request struct {
	// Prompt is the text of a new prompt; used when Results is nil.
	Prompt string
	// Injected marks text that the CLI itself put in (Stop hook, schema
	// reminder, the wish to go on): it is matched against the rules like a prompt
	// but does not advance a turn sequence.
	Injected bool
	// Added marks a prompt that came while another one was being answered: only a
	// rule of its own answers it, else the reply is unmatched and to be left out.
	Added bool
	// Notice marks an injected prompt that begins a turn of its own, because
	// work in the background has ended: the expected turn of a sequence may
	// answer it; one that does not match goes on being expected.
	Notice bool
	// Results answer the tool calls of the previous reply, in call order.
	// Non-nil goes on with the next step of that response.
	Results []Result
	// Side is the kind of a request beside the conversation: `compact`. It touches
	// no rule and no count; empty = it is the conversation.
	Side string
	// Vars are the names that expressions see beside the prompt.
	Vars Vars
}

// Result is the outcome of one tool call.
type Result struct {
	ToolUseID string
	Tool      string // canonical name
	Text      string // what the model sees, as text
	IsError   bool
	// Content is the content as it went to the model: a JSON string or an
	// array of blocks; nil = unknown.
	Content json.RawMessage
	// Structured is the structured form of the result; nil = none.
	Structured any
}

// Vars is the state of the session that expressions may look at.
type Vars struct {
	Model          string
	PermissionMode string
	SystemPrompt   string
	CWD            string                     // "" = the engine's
	Tools          []string                   // canonical names
	Context        []string                   // texts beside the prompt and results of this turn
	Schemas        map[string]json.RawMessage // canonical name → input schema
	Session        Session
	Call           Call
}

// Call is what expressions see of the request itself, in its JSON form where it
// has one. The CLI face leaves all but Attempt at zero.
type Call struct {
	MaxTokens                                    int
	Stream                                       bool
	Attempt                                      int    // from 1; 0 stands for 1
	Agent                                        string // id of the sub-agent that asks; "" = the main conversation
	Betas                                        []string
	Headers                                      map[string]string // lower case, credentials redacted
	Attachments                                  []string          // types of the images and documents of the prompt
	ToolChoice, Thinking, OutputConfig, Metadata json.RawMessage
}

// vars are the call as expressions see it.
func (c Call) vars(into map[string]any) {
	into["max_tokens"], into["stream"], into["attempt"], into["agent"] = c.MaxTokens, c.Stream, max(1, c.Attempt), c.Agent
	into["betas"], into["headers"], into["attachments"] = c.Betas, c.Headers, c.Attachments
	for name, raw := range map[string]json.RawMessage{
		"tool_choice": c.ToolChoice, "thinking": c.Thinking, "output_config": c.OutputConfig, "metadata": c.Metadata,
	} {
		into[name] = fill.Decode(raw)
	}
}

// Session is `session` in expressions.
type Session struct {
	ID      string
	Resumed bool
	Turn    int // number of the prompt in the session, from 1; 0 = the engine counts
}

// Reply is one message of the model.
type Reply struct {
	// Blocks in order. A ToolUse has the name the scenario gave it, an empty
	// ID unless the scenario set one, and its input after templates and $file. No blocks = a message with empty text.
	Blocks     []protocol.Block
	StopReason string // "" = by content: tool_use or end_turn
	Usage      *Usage // nil = the caller estimates
	DelayMS    int    // wait before the message
	// Failure happens instead of the message; when it is overcome (Times),
	// the rest of the reply follows. Nil = none.
	Failure *Failure
	// Gate is where to wait before the message, After the gate of another step to
	// wait for; empty = none.
	Gate, After string
	// Fault spoils the output from here on; empty = it goes on as it did.
	Fault string
	// Frames go out before the message, after templates.
	Frames []Frame
	// StructuredOutput is the scripted answer to a JSON schema; nil = none.
	StructuredOutput json.RawMessage
	Stream           *Stream // pace of this message; nil = the scenario's
	Rule             RuleRef
	// Unmatched says that no rule matched the prompt. NearMisses tell why;
	// they are set when the scenario makes that an error.
	Unmatched  bool
	NearMisses []string
	// More says that another step follows the results of this one.
	More bool
	// Missing are the paths in templates of this message that had no value, such as
	// `results[0].structured.nmae`.
	Missing []string
}

// RuleRef names the part of a scenario that answered.
type RuleRef struct {
	// Name is "responses[2]", "responses[2].turns[0]", "default_response" or
	// "" for none.
	Name string
	File string // "" = not from a file
	Line int    // 0 = unknown
}

// String is "FILE:LINE: NAME", as far as it is known.
func (r RuleRef) String() string {
	if at := (diag.Position{File: r.File, Line: r.Line}).String(); at != "" {
		return at + ": " + r.Name
	}
	return r.Name
}

// matchedRule is what answers a prompt.
type matchedRule struct {
	ref      RuleRef
	rule     int // -1 = default_response, or none
	turn     int // -1 = the rule's own response
	response *Response
	failure  *Failure
	scope    *fill.Scope
}

// response is an answer on its way: the steps of it that are still to come.
type response struct {
	hit      *matchedRule
	steps    []Step
	at       int              // the next step
	expected []expectedResult // of the calls of the last reply, in call order
	waits    bool             // for results
	failed   bool             // as scripted: nothing has to follow
}

// expectedResult is what one call of the last reply should give.
type expectedResult struct {
	at      diag.Position
	tool    string
	pattern *Pattern // nil = anything
}

func newResponse(h *matchedRule) *response { return &response{hit: h, steps: stepsOf(h.response)} }

// stepsOf spells a response out as steps: its calls are one message, its text
// the closing one after their results.
func stepsOf(r *Response) []Step {
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
		closing.Usage = &Usage{} // all of it is counted with the first message
	}
	return []Step{{ToolCalls: r.ToolCalls, DelayMS: r.DelayMS, Usage: r.Usage}, closing}
}

// next makes the message of the next step whose condition holds. After the
// last one it is a message with empty text.
func (r *response) next(ctx context.Context) (Reply, error) {
	r.expected, r.waits = nil, false
	step, err := r.advance(ctx)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Rule: r.hit.ref}
	if step == nil {
		reply.Blocks = emptyText()
		return reply, r.finish(ctx, &reply, nil)
	}
	reply.Fault, reply.Gate, reply.After = step.Fault, step.Gate, strings.TrimPrefix(step.After, "gate:")
	reply.StopReason, reply.Usage, reply.DelayMS, reply.Stream = step.StopReason, step.Usage, step.DelayMS, step.Stream
	if err := r.blocks(ctx, &reply, step); err != nil {
		return Reply{}, err
	}
	for _, f := range step.Frames {
		f, err := frameOf(ctx, r.hit.scope, f)
		if err != nil {
			return Reply{}, err
		}
		reply.Frames = append(reply.Frames, f)
	}
	r.waits = len(r.expected) > 0
	if step.Failure != nil {
		r.failed = true
		if reply.Failure, err = failureOf(ctx, r.hit.scope, step.Failure); err != nil {
			return Reply{}, err
		}
	}
	return reply, r.finish(ctx, &reply, step)
}

// advance takes the next step whose condition holds; nil = there is none.
func (r *response) advance(ctx context.Context) (*Step, error) {
	for r.at < len(r.steps) {
		step := &r.steps[r.at]
		r.at++
		ok, err := r.hit.scope.Condition(ctx, step.When)
		if err != nil {
			return nil, err
		}
		if ok {
			return step, nil
		}
	}
	return nil, nil
}

// finish says whether more follows and adds the structured output: that of the
// step, or on the last message that of the response.
func (r *response) finish(ctx context.Context, reply *Reply, step *Step) error {
	var err error
	if reply.More, err = r.more(ctx); err != nil {
		return err
	}
	var raw json.RawMessage
	if step != nil {
		raw = step.StructuredOutput
	}
	if raw == nil && !reply.More && r.hit.response != nil {
		raw = r.hit.response.StructuredOutput
	}
	if raw != nil {
		reply.StructuredOutput, err = r.hit.scope.JSON(ctx, raw)
	}
	return err
}

// more tells whether a message follows: after tool calls always (the closing
// one at least), else when the condition of a later step holds.
func (r *response) more(ctx context.Context) (bool, error) {
	if len(r.expected) > 0 {
		return true, nil
	}
	for i := r.at; i < len(r.steps); i++ {
		ok, err := r.hit.scope.Condition(ctx, r.steps[i].When)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (r *response) blocks(ctx context.Context, reply *Reply, step *Step) error {
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
	server := "" // the last call of a tool of the API
	for i := range parts {
		b, err := r.block(ctx, &parts[i], server)
		if err != nil {
			return err
		}
		if call, ok := b.(protocol.ServerToolCall); ok {
			server = call.ID
		}
		reply.Blocks = append(reply.Blocks, b)
	}
	if len(reply.Blocks) == 0 {
		reply.Blocks = emptyText()
	}
	return nil
}

// block fills in one block; server is the call that a result without a
// tool_use_id answers.
func (r *response) block(ctx context.Context, b *Block, server string) (protocol.Block, error) {
	sc := r.hit.scope
	switch b.Type {
	case BlockText:
		text, err := sc.Text(ctx, b.Text)
		if err != nil || b.Citations == nil {
			return protocol.Text(text), err
		}
		citations, err := sc.JSON(ctx, b.Citations)
		return protocol.TextBlock{Type: "text", Text: text, Citations: citations}, err
	case BlockRedacted, BlockServer:
		return apiBlockOf(ctx, sc, b)
	case BlockThinking:
		text, err := sc.Text(ctx, b.Thinking)
		return protocol.ThinkingBlock{Type: "thinking", Thinking: text}, err
	case BlockRaw:
		raw, err := sc.JSON(ctx, b.JSON)
		return protocol.RawBlock{JSON: raw}, err
	case BlockToolUse:
		use, err := r.tool(ctx, &b.ToolCall)
		r.expected = append(r.expected, expectedResult{at: b.at, tool: b.Tool, pattern: b.Expect})
		return use, err
	default:
		return serverResultOf(ctx, sc, b, server)
	}
}

// apiBlockOf is a block that only the API makes: reasoning that nobody may read,
// or a call that the API itself runs. A call without an id has none yet.
func apiBlockOf(ctx context.Context, s *fill.Scope, b *Block) (protocol.Block, error) {
	if b.Type == BlockRedacted {
		raw, err := protocol.Marshal(struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}{string(b.Type), b.Data})
		return protocol.RawBlock{JSON: raw}, err
	}
	call := protocol.ServerToolCall{Type: string(b.Type), ID: b.ID, Name: b.Name, Input: json.RawMessage("{}")}
	if call.ID == "" {
		call.ID = serverID(b.at.String())
	}
	if b.Input == nil {
		return call, nil
	}
	input, err := s.JSON(ctx, b.Input)
	call.Input = input
	return call, err
}

// serverID makes the id of a call from its place in the scenario.
func serverID(at string) string {
	sum := sha256.Sum256([]byte(at))
	return fmt.Sprintf("srvtoolu_01%.11x", sum)
}

func serverResultOf(ctx context.Context, s *fill.Scope, b *Block, call string) (protocol.Block, error) {
	content, err := s.JSON(ctx, b.Content)
	if err != nil {
		return nil, err
	}
	raw, err := protocol.Marshal(struct {
		Type      BlockType       `json:"type"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
	}{b.Type, cmp.Or(b.ToolUseID, call), content})
	return protocol.RawBlock{JSON: raw}, err
}

// callOf fills in a tool call.
func callOf(ctx context.Context, s *fill.Scope, c *ToolCall) (protocol.ToolUse, error) {
	use := protocol.ToolUse{Type: "tool_use", ID: c.ID, Name: c.Tool, Input: json.RawMessage("{}")}
	if c.Input != nil {
		input, err := s.JSON(ctx, c.Input)
		if err != nil {
			return use, err
		}
		use.Input = input
	}
	if c.Result == nil && c.DelayMS == 0 && !c.IsError {
		return use, nil
	}
	use.Script = &protocol.CallScript{IsError: c.IsError, DelayMS: c.DelayMS}
	if c.Result != nil {
		text, err := s.Text(ctx, c.Result.Text)
		if err != nil {
			return use, err
		}
		if c.Result.File != "" {
			text = s.TextFile(c.Result.File)
		}
		use.Script.Result = &text
	}
	return use, nil
}

// frameOf fills in the templates of a frame.
func frameOf(ctx context.Context, s *fill.Scope, f Frame) (Frame, error) {
	var err error
	if f.JSON != nil {
		f.JSON, err = s.JSON(ctx, f.JSON)
	}
	if err == nil {
		f.Line, err = s.Text(ctx, f.Line)
	}
	if err == nil {
		f.Stderr, err = s.Text(ctx, f.Stderr)
	}
	return f, err
}

func failureOf(ctx context.Context, s *fill.Scope, f *Failure) (*Failure, error) {
	filled := *f
	var err error
	if filled.Message, err = s.Text(ctx, f.Message); err != nil {
		return nil, err
	}
	filled.PartialText, err = s.Text(ctx, f.PartialText)
	return &filled, err
}

func emptyText() []protocol.Block { return []protocol.Block{protocol.Text("")} }

// script is what the steps of a [protocol.SubagentScript] hold: steps with the
// names that they see.
type script struct {
	ref   RuleRef
	steps []Step
	scope *fill.Scope
}

// subagent is the script of a call's agent; nil = it has none.
func (r *response) subagent(s *Subagent) *protocol.SubagentScript {
	if s == nil {
		return nil
	}
	sc := r.hit.scope.Fork()
	sc.Results = nil
	return &protocol.SubagentScript{
		Type: s.Type, Background: s.Background, Steps: &script{ref: r.hit.ref, steps: s.Steps, scope: sc},
	}
}

// tool fills in one call of a reply.
func (r *response) tool(ctx context.Context, c *ToolCall) (protocol.ToolUse, error) {
	use, err := callOf(ctx, r.hit.scope, c)
	if sub := r.subagent(c.Subagent); sub != nil {
		if use.Script == nil {
			use.Script = &protocol.CallScript{}
		}
		use.Script.Subagent = sub
	}
	return use, err
}
