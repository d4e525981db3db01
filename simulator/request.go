package simulator

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// call is one tool call of a message with the event that showed it.
type call struct {
	use   protocol.ToolUse // under the name of the tool that runs
	tool  protocol.Tool    // zero when nobody has it
	event string           // uuid of the assistant event
	alias string           // the name that the model wrote if another tool runs
	// readOnly says that the call may run beside its neighbours, whatever its
	// tool says.
	readOnly bool
	refused  *executor.Result // in the place of a run; nil = it may run
}

// request asks the model once and yields its message. It returns the tool calls
// to run, or how the turn ends instead.
func (t *turn) request(req scenarios.Request) ([]call, *finish, error) {
	t.count()
	if err := t.drain(task.InTurn); err != nil {
		return nil, nil, err
	}
	tools, err := t.s.o.Tools.Tools(t.ctx)
	if err != nil {
		return nil, nil, err
	}
	req.Vars = t.s.vars(tools)
	req.Vars.Context = t.beside
	asked := t.s.o.Clock.Now()
	if !t.asked {
		t.firstAsked = asked
	}
	t.asked = true
	reply, err := t.s.o.Model.Next(t.ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if req.Added && reply.Unmatched { // the model has read it and says nothing of it
		return nil, nil, nil
	}
	if err := t.requesting(); err != nil {
		return nil, nil, err
	}
	if end, err := t.matched(req, reply); err != nil || end != nil {
		return nil, end, err
	}
	if err := t.sleep(t.delayOf(req, reply)); err != nil {
		return nil, nil, err
	}
	for _, f := range reply.Frames {
		if err := t.frame(f); err != nil {
			return nil, nil, err
		}
	}
	if f := reply.Failure; f != nil && !t.s.overcome(reply.Rule.Name, f) {
		end, err := t.fail(reply.Rule.Name, f)
		t.apiTime += t.s.o.Clock.Now().Sub(asked)
		if err != nil || end != nil {
			return nil, end, err
		}
	}
	t.more = reply.More
	calls, err := t.message(req, reply, tools)
	if err != nil {
		return nil, nil, err
	}
	t.apiTime += t.s.o.Clock.Now().Sub(asked)
	return calls, nil, nil
}

// frame puts a frame of the scenario on the program's own output.
func (t *turn) frame(f scenarios.Frame) error {
	switch {
	case f.Stderr != "":
		return t.emit(&protocol.Verbatim{Stderr: f.Stderr})
	case f.JSON == nil:
		line := &protocol.Verbatim{Stdout: []byte(f.Line), Times: f.Times}
		if !f.Cut {
			line.End = []byte("\n")
		}
		return t.emit(line)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(f.JSON, &keys); err != nil {
		return fmt.Errorf("a frame of the scenario: %w", err)
	}
	body := strings.TrimRight(string(f.JSON), " \n\t")
	body = body[:len(body)-1]
	for _, id := range []struct{ key, value string }{{"session_id", t.s.o.Live.SessionID()}, {"uuid", t.s.o.Clock.NewID()}} {
		if _, given := keys[id.key]; !given {
			body += fmt.Sprintf(",%q:%q", id.key, id.value)
		}
	}
	return t.emit(&protocol.Verbatim{Stdout: []byte(body + "}\n")})
}

// requesting shows that the model is asked.
func (t *turn) requesting() error {
	if !t.s.o.Show.Partial {
		return nil
	}
	fields := []protocol.Field{{Key: "status", Value: "requesting"}}
	if len(t.in.UUIDs) > 0 {
		fields = append(fields, protocol.Field{Key: "user_message_uuids", Value: slices.Clone(t.in.UUIDs)})
	}
	return t.system("status", fields...)
}

// matched tells the trace which rule answered, and ends the turn when the
// scenario says that a prompt without a rule is an error.
func (t *turn) matched(req scenarios.Request, reply scenarios.Reply) (*finish, error) {
	if req.Results != nil {
		return nil, nil
	}
	err := t.emit(&protocol.Matched{Prompt: req.Prompt, Rule: reply.Rule.Name, File: reply.Rule.File, Line: reply.Rule.Line})
	if err != nil || !reply.Unmatched || len(reply.NearMisses) == 0 {
		return nil, err
	}
	return &finish{subtype: "error_during_execution", isError: true, errors: reply.NearMisses}, nil
}

func (t *turn) delayOf(req scenarios.Request, reply scenarios.Reply) time.Duration {
	d := time.Duration(reply.DelayMS) * time.Millisecond
	if req.Results == nil {
		d += t.s.o.Show.ResponseDelay
	}
	return d
}

// message yields one message of the model, a block an event.
func (t *turn) message(req scenarios.Request, reply scenarios.Reply, tools []protocol.Tool) ([]call, error) {
	blocks := t.structured.add(t.s.main.Schema, reply)
	if len(blocks) == 0 {
		blocks = []protocol.Block{protocol.Text("")}
	}
	index := executor.NewIndex(tools)
	for i, b := range blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			blocks[i] = t.resolve(b, index)
		case protocol.ThinkingBlock:
			blocks[i] = signed(b)
		}
	}
	usage := estimate(promptText(req), blocks)
	if reply.Usage != nil {
		usage = *reply.Usage
	}
	stop := reply.StopReason
	if stop == "" {
		stop = stopReasonOf(blocks)
	}
	name := t.s.resolved()
	m := &message{
		t: t, id: t.apiID("msg"), request: t.apiID("req"), name: name, model: model.Wire(name),
		usage: usage, thinking: thinkingTokens(blocks), stop: stop, index: index, pace: t.pace(reply),
	}
	t.messageID, t.requestID = m.id, m.request
	t.empty = !slices.ContainsFunc(blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
	t.lastText = ""
	for _, b := range slices.Backward(blocks) {
		if text, ok := b.(protocol.TextBlock); ok {
			t.lastText = text.Text
			break
		}
	}
	if _, ok := blocks[len(blocks)-1].(protocol.ToolUse); ok {
		t.lastText = ""
	}
	err := m.stream(blocks)
	return m.calls, err
}

// resolve gives a call its canonical name, an id and a complete input.
func (t *turn) resolve(use protocol.ToolUse, index *executor.Index) protocol.ToolUse {
	use.Type = "tool_use"
	use.Name = index.Canonical(use.Name)
	if use.ID == "" {
		use.ID = t.apiID("toolu")
	}
	if len(use.Input) == 0 {
		use.Input = json.RawMessage("{}")
	}
	if tool, ok := index.Tool(use.Name); ok {
		use.Input = executor.Coerce(use.Input, tool.InputSchema)
	}
	if input := t.s.o.Tools.Prepare(use).Input; input != nil {
		use.Input = input
	}
	return use
}

// signed fills in a thinking block's opaque signature.
func signed(b protocol.ThinkingBlock) protocol.ThinkingBlock {
	b.Type = "thinking"
	if b.Signature == "" {
		sum := sha256.Sum256([]byte(b.Thinking))
		b.Signature = base64.StdEncoding.EncodeToString(sum[:])
	}
	return b
}

func stopReasonOf(blocks []protocol.Block) string {
	for _, b := range blocks {
		if _, ok := b.(protocol.ToolUse); ok {
			return "tool_use"
		}
	}
	return "end_turn"
}

func promptText(req scenarios.Request) string {
	if req.Results == nil {
		return req.Prompt
	}
	texts := make([]string, len(req.Results))
	for i, r := range req.Results {
		texts[i] = r.Text
	}
	return strings.Join(texts, "\n")
}

// system yields a system event of the given subtype.
func (t *turn) system(subtype string, fields ...protocol.Field) error {
	return t.emit(&protocol.System{Subtype: subtype, Fields: fields, SessionID: t.s.o.Live.SessionID(), UUID: t.s.o.Clock.NewID()})
}
