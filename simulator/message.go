package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// message is one reply of the model on its way out.
type message struct {
	*turnContext
	messageHead
	index *executor.Index
	pace  scenarios.Pace
	due   time.Time // of the chunk before; zero = there was none
	calls []call
	place protocol.MessageFinal // of the current block

	text     strings.Builder // what of the open text block has been streamed
	started  bool            // message_start is out
	whole    bool            // it does not come as a stream
	silent   bool            // it has one block: if that is an empty text, there is nothing to see
	received int             // characters of all blocks that have been streamed, but for signatures
	at       int             // the open block; -1 = none
	shown    int             // assistant events so far
}

// messageHead is what a message is, before its blocks.
type messageHead struct {
	id, request string
	name        string // of the model, as the books have it
	model       string // as the API has it
	stop        string
	replyUsage
}

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

// stream yields the message block by block in the order of the real CLI: the
// assistant event stands before its block's content_block_stop.
func (m *message) stream(ctx context.Context, blocks []protocol.Block) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	for _, b := range blocks {
		if use, is := b.(protocol.ToolUse); is {
			m.place.Calls = append(m.place.Calls, use.Name)
		}
	}
	m.silent = len(blocks) == 1
	for i, b := range blocks {
		m.place.Index, m.place.Left, m.place.InputMS, m.place.Displayed = i, len(blocks)-1-i, nil, nil
		m.text.Reset()
		if err := cmp.Or(m.block(ctx, i, b), m.out.gone()); err != nil {
			return err
		}
		m.close(i)
	}
	m.end()
	return m.out.gone()
}

func (m *message) start(ctx context.Context) error {
	m.at = -1
	if err := m.behind.sleep(ctx, m.pace.TTFT()); err != nil {
		return err
	}
	if l := m.ledger; l.firstToken.IsZero() {
		l.firstToken = l.clock.Now()
	}
	m.started = true
	if m.unseen() {
		return nil
	}
	ttft := ms(m.pace.TTFT())
	ev := m.streamed(object{{"type", "message_start"}, {"message", object{
		{"id", m.id},
		{"type", "message"},
		{"role", "assistant"},
		{"model", m.model},
		{"content", []string{}},
		{"stop_reason", nil},
		{"stop_sequence", nil},
		{"usage", streamUsage(m.usage)},
	}}}, m.s.o.Show.thinking())
	ev.TTFTMS = &ttft
	m.prompts.labelStart(ev)
	m.ledger.begun = append(m.ledger.begun, m.id)
	m.out.emit(ev)
	return m.out.gone()
}

// end yields the end of the message.
func (m *message) end() {
	if m.out.left {
		return
	}
	m.ledger.latest = &m.replyUsage
	m.ledger.spend(m.name, m.replyUsage)
	usage := object{
		{"input_tokens", m.usage.InputTokens},
		{"cache_creation_input_tokens", 0},
		{"cache_read_input_tokens", 0},
		{"output_tokens", m.usage.OutputTokens},
	}
	if m.thinking > 0 {
		usage = append(usage, pair{"output_tokens_details", protocol.OutputDetails{ThinkingTokens: m.thinking}})
	}
	m.event(object{
		{"type", "message_delta"},
		{"delta", object{{"stop_reason", m.stop}, {"stop_sequence", nil}}},
		{"usage", usage},
	}, "")
	m.event(object{{"type", "message_stop"}}, "")
}

// block yields a block up to its content_block_stop.
func (m *message) block(ctx context.Context, i int, b protocol.Block) error {
	switch b := b.(type) {
	case protocol.TextBlock:
		return m.textBlock(ctx, i, b)
	case protocol.ThinkingBlock:
		return m.thinkingBlock(ctx, i, b)
	case protocol.ToolUse:
		return m.toolBlock(ctx, i, b)
	case protocol.ServerCall: // of a tool that the API runs: nothing here does
		empty := b
		empty.Input = json.RawMessage("{}")
		if err := m.input(ctx, i, empty, b.Input); err != nil {
			return err
		}
	default: // it comes as a whole
		m.open(i, b, "")
	}
	m.assistant(b, nil)
	return nil
}

// keepPace waits for a chunk's turn. What an earlier chunk was late is made up
// for, so that the delays of a busy machine do not add up.
func (m *message) keepPace(ctx context.Context, chunk string) error {
	if chunk == "" {
		return ctx.Err()
	}
	wait, now := m.pace.After(chunk), m.s.o.Clock.Now()
	if m.due.IsZero() || now.Sub(m.due) > time.Second { // the host has kept us waiting
		m.due = now
	}
	m.due = m.due.Add(wait)
	return m.behind.sleep(ctx, min(wait, m.due.Sub(now)))
}

// input opens a call and yields the pieces of its input.
func (m *message) input(ctx context.Context, i int, empty protocol.Block, input json.RawMessage) error {
	m.open(i, empty, "")
	for _, chunk := range m.pace.SplitInput(string(input)) {
		if err := m.keepPace(ctx, chunk); err != nil {
			return err
		}
		m.delta(i, "partial_json", chunk, "")
	}
	return nil
}

func (m *message) textBlock(ctx context.Context, i int, b protocol.TextBlock) error {
	m.open(i, protocol.Text(""), "")
	m.citations(i, b.Citations)
	for _, chunk := range m.pace.Split(b.Text) {
		if err := m.keepPace(ctx, chunk); err != nil {
			return err
		}
		m.text.WriteString(chunk)
		m.delta(i, "text", chunk, "")
	}
	var err error
	if m.place.Displayed, err = m.hooks.displayed(ctx, b.Text); err != nil {
		return err
	}
	switch {
	case b.Text != "":
		m.assistant(b, nil)
	case m.silent: // transcripts keep it, and nobody sees it
		m.out.emit(&protocol.HiddenEvent{Event: m.said(b, nil)})
	}
	return nil
}

// beginning streams a text that is cut before its end.
func (m *message) beginning(ctx context.Context, text string) error {
	m.open(0, protocol.Text(""), "")
	for _, chunk := range m.pace.Split(text) {
		if err := m.behind.sleep(ctx, m.pace.After(chunk)); err != nil {
			return err
		}
		m.delta(0, "text", chunk, "")
	}
	return nil
}

// citations yields where a text comes from, one at a time.
func (m *message) citations(i int, list json.RawMessage) {
	var each []json.RawMessage
	_ = json.Unmarshal(list, &each) // checked when the scenario was loaded; nil = there are none
	for _, c := range each {
		delta := object{{"type", "citations_delta"}, {"citation", c}}
		m.event(object{{"type", "content_block_delta"}, {"index", i}, {"delta", delta}}, "")
	}
}

func (m *message) thinkingBlock(ctx context.Context, i int, b protocol.ThinkingBlock) error {
	began, display := m.s.o.Clock.Now(), m.s.o.Show.thinking()
	m.open(i, protocol.ThinkingBlock{Type: "thinking"}, display)
	thought := 0
	for _, chunk := range m.thoughts(b.Thinking) {
		if err := m.keepPace(ctx, chunk); err != nil {
			return err
		}
		if !m.whole { // else nobody sees it come
			more := scenarios.Tokens(len(chunk))
			thought += more
			m.out.system("thinking_tokens", protocol.Field{Key: "estimated_tokens", Value: thought}, protocol.Field{Key: "estimated_tokens_delta", Value: more})
		}
		m.delta(i, "thinking", chunk, display)
	}
	m.delta(i, "signature", b.Signature, "")
	took := ms(m.s.o.Clock.Now().Sub(began))
	m.assistant(b, func(ev *protocol.Assistant) {
		ev.ThinkingDurationMS, ev.ThinkingDisplay = &took, display
	})
	return nil
}

// thoughts are the pieces in which reasoning comes: those of its pace where it
// can be seen, else one. Each is announced by its tokens.
func (m *message) thoughts(text string) []string {
	if m.s.o.Show.Partial || m.pace.TokensPerSecond > 0 {
		return m.pace.Split(text)
	}
	return []string{text}
}

func (m *message) toolBlock(ctx context.Context, i int, b protocol.ToolUse) error {
	began := m.s.o.Clock.Now()
	empty := b
	empty.Input = json.RawMessage("{}")
	if err := m.input(ctx, i, empty, b.Input); err != nil {
		return err
	}
	m.place.InputMS = new(ms(m.s.o.Clock.Now().Sub(began)))
	var id string
	m.assistant(b, func(ev *protocol.Assistant) {
		id = ev.UUID
		if meta, ok := m.index.Meta(b); ok {
			ev.ToolUseMeta = []protocol.ToolUseMeta{meta}
		}
	})
	if err := m.out.gone(); err != nil {
		return err
	}
	prepared := m.s.o.Tools.Prepare(b)
	c := call{use: b, event: id, readOnly: prepared.ReadOnly}
	if prepared.Runs != "" {
		c.use.Name, c.alias = prepared.Runs, b.Name
	}
	c.tool, _ = m.index.Tool(c.use.Name)
	m.calls = append(m.calls, c)
	return nil
}

// assistant yields the complete block.
func (m *message) assistant(b protocol.Block, more func(*protocol.Assistant)) {
	ev := m.said(b, more)
	m.shown++
	m.out.emit(ev)
}

// said is the complete block as an event.
func (m *message) said(b protocol.Block, more func(*protocol.Assistant)) *protocol.Assistant {
	final := m.place
	final.StopReason, final.Usage = m.stop, finalUsage(m.usage, 0)
	ev := &protocol.Assistant{
		Type: "assistant",
		Message: protocol.AssistantMessage{
			ID: m.id, Type: "message", Role: "assistant", Model: m.model,
			Content: []protocol.Block{b}, Usage: streamUsage(m.usage),
		},
		SessionID: m.s.o.Live.SessionID(), UUID: m.s.o.Clock.NewID(), Timestamp: m.out.timestamp(), RequestID: m.request,
		Final: &final,
	}
	if m.whole {
		ev.Message.StopReason, ev.Message.Usage = &m.stop, finalUsage(m.usage, m.thinking)
	}
	m.prompts.label(ev)
	if more != nil {
		more(ev)
	}
	return ev
}

// abort yields what an interrupt leaves of a message: the text so far. What has
// come of it is paid for, at a token for three characters.
func (m *message) abort() {
	if m.started {
		m.ledger.spend(m.name, replyUsage{usage: scenarios.Usage{
			InputTokens: m.usage.InputTokens, OutputTokens: max(min(1, m.usage.OutputTokens), (m.received+1)/3),
		}})
	}
	if m.text.Len() > 0 {
		m.stop = ""
		m.assistant(protocol.Text(m.text.String()), func(ev *protocol.Assistant) { ev.Aborted = true })
	}
}

// abandon yields, in partial mode, the end of an aborted message's stream.
func (m *message) abandon() {
	if !m.started || !m.s.o.Show.Partial {
		return
	}
	if m.at >= 0 {
		m.close(m.at)
	}
	m.event(object{
		{"type", "message_delta"},
		{"context_management", nil},
		{"delta", object{{"container", nil}, {"stop_details", nil}, {"stop_reason", nil}, {"stop_sequence", nil}}},
		{"usage", object{
			{"output_tokens_details", protocol.OutputDetails{}},
			{"cache_creation_input_tokens", 0},
			{"cache_read_input_tokens", 0},
			{"input_tokens", m.usage.InputTokens},
			{"iterations", []string{}},
			{"output_tokens", min(1, m.usage.OutputTokens)},
			{"server_tool_use", protocol.ServerToolUse{}},
			{"fallback_credit", nil},
		}},
	}, "")
	m.abandoned()
}

// breakOff ends, in partial mode, the stream of a message that was cut.
func (m *message) breakOff() {
	m.ledger.spend(m.name, replyUsage{usage: scenarios.Usage{InputTokens: m.usage.InputTokens, OutputTokens: min(1, m.usage.OutputTokens)}})
	if !m.s.o.Show.Partial {
		return
	}
	if m.at >= 0 {
		m.close(m.at)
	}
	m.abandoned()
}

// abandoned ends a message of which not all blocks have come.
func (m *message) abandoned() {
	stop := m.streamed(object{{"type", "message_stop"}}, "")
	stop.AbandonedBlocks = &protocol.AbandonedBlocks{APIMessageID: m.id, FromBlockIndex: m.shown}
	m.out.emit(stop)
}

func (m *message) open(i int, b protocol.Block, display string) {
	m.at = i
	m.event(object{{"type", "content_block_start"}, {"index", i}, {"content_block", b}}, display)
}

// delta yields a piece of a block; key is where it stands.
func (m *message) delta(i int, key, chunk, display string) {
	kind := key + "_delta"
	if key == "partial_json" {
		kind = "input_json_delta"
	}
	if key != "signature" {
		m.received += utf8.RuneCountInString(chunk)
	}
	m.event(object{{"type", "content_block_delta"}, {"index", i}, {"delta", object{{"type", kind}, {key, chunk}}}}, display)
}

func (m *message) close(i int) {
	m.at = -1
	m.event(object{{"type", "content_block_stop"}, {"index", i}}, "")
}

// unseen tells whether nobody sees the message come.
func (m *message) unseen() bool { return m.whole || !m.s.o.Show.Partial }

func (m *message) event(ev object, display string) {
	if !m.unseen() {
		m.out.emit(m.streamed(ev, display))
	}
}

func (m *message) streamed(ev object, display string) *protocol.StreamEvent {
	return &protocol.StreamEvent{
		Type: "stream_event", Event: ev, SessionID: m.s.o.Live.SessionID(), UUID: m.s.o.Clock.NewID(),
		APIMessageID: m.id, ThinkingDisplay: display,
	}
}

// object is a JSON object with its keys in order.
type object []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, p := range o {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := protocol.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, '"'), p.key...), '"', ':')
		out = append(out, value...)
	}
	return append(out, '}'), nil
}
