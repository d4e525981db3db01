package simulator

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// message is one reply of the model on its way out.
type message struct {
	t           *turn
	id, request string
	name        string // of the model, as the books have it
	model       string // as the API has it
	usage       scenarios.Usage
	thinking    int // tokens of it that are reasoning
	stop        string
	index       *executor.Index
	pace        pace
	due         time.Time // of the chunk before; zero = there was none
	calls       []call
	place       protocol.MessageFinal // of the current block

	text     strings.Builder // what of the open text block has been streamed
	started  bool            // message_start is out
	received int             // characters of all blocks that have been streamed, but for signatures
	at       int             // the open block; -1 = none
	shown    int             // assistant events so far
}

// stream yields the message block by block in the order of the real CLI: the
// assistant event stands before its block's content_block_stop.
func (m *message) stream(blocks []protocol.Block) error {
	if err := m.start(); err != nil {
		return err
	}
	for _, b := range blocks {
		if use, is := b.(protocol.ToolUse); is {
			m.place.Calls = append(m.place.Calls, use.Name)
		}
	}
	for i, b := range blocks {
		m.place.Index, m.place.Left, m.place.InputMS = i, len(blocks)-1-i, nil
		if err := m.block(i, b); err != nil {
			return err
		}
	}
	return m.end(m.stop)
}

func (m *message) start() error {
	m.t.current, m.at = m, -1
	if err := m.t.sleep(m.pace.ttft); err != nil {
		return err
	}
	if m.t.firstToken.IsZero() {
		m.t.firstToken = m.t.s.o.Clock.Now()
	}
	m.started = true
	if !m.t.s.o.Show.Partial {
		return nil
	}
	ttft := ms(m.pace.ttft)
	ev := &protocol.StreamEvent{
		Type: "stream_event", Event: object{{"type", "message_start"}, {"message", object{
			{"id", m.id},
			{"type", "message"},
			{"role", "assistant"},
			{"model", m.model},
			{"content", []string{}},
			{"stop_reason", nil},
			{"stop_sequence", nil},
			{"usage", streamUsage(m.usage)},
		}}},
		SessionID: m.t.s.o.Live.SessionID(), UUID: m.t.s.o.Clock.NewID(), APIMessageID: m.id, TTFTMS: &ttft, ThinkingDisplay: m.t.s.o.Show.thinking(),
	}
	if !m.t.namedBegin && len(m.t.in.UUIDs) > 0 {
		m.t.namedBegin = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = m.t.names()
		ev.OwedRows = &[]string{}
	}
	return m.t.emit(ev)
}

// end yields the end of the message; stop is its stop reason.
func (m *message) end(stop string) error {
	m.t.current, m.t.latest, m.t.stopReason = nil, m, &stop
	m.t.spend(m.name, m.usage, m.thinking)
	if !m.t.s.o.Show.Partial {
		return nil
	}
	usage := object{
		{"input_tokens", m.usage.InputTokens},
		{"cache_creation_input_tokens", 0},
		{"cache_read_input_tokens", 0},
		{"output_tokens", m.usage.OutputTokens},
	}
	err := m.event(object{
		{"type", "message_delta"},
		{"delta", object{{"stop_reason", stop}, {"stop_sequence", nil}}},
		{"usage", usage},
	}, "")
	if err != nil {
		return err
	}
	return m.event(object{{"type", "message_stop"}}, "")
}

func (m *message) block(i int, b protocol.Block) error {
	m.text.Reset()
	switch b := b.(type) {
	case protocol.TextBlock:
		return m.textBlock(i, b)
	case protocol.ThinkingBlock:
		return m.thinkingBlock(i, b)
	case protocol.ToolUse:
		return m.toolBlock(i, b)
	default:
		return m.assistant(b, nil)
	}
}

// keepPace waits for a chunk's turn. What an earlier chunk was late is made up
// for, so that the delays of a busy machine do not add up.
func (m *message) keepPace(chunk string) error {
	wait, now := m.pace.wait(chunk), m.t.s.o.Clock.Now()
	if m.due.IsZero() || now.Sub(m.due) > time.Second { // the host has kept us waiting
		m.due = now
	}
	m.due = m.due.Add(wait)
	return m.t.sleep(min(wait, m.due.Sub(now)))
}

func (m *message) textBlock(i int, b protocol.TextBlock) error {
	if err := m.open(i, protocol.Text(""), ""); err != nil {
		return err
	}
	for _, chunk := range m.pace.split(b.Text) {
		if err := m.keepPace(chunk); err != nil {
			return err
		}
		m.text.WriteString(chunk)
		if err := m.delta(i, "text", chunk, ""); err != nil {
			return err
		}
	}
	if err := m.display(b.Text); err != nil {
		return err
	}
	if err := m.assistant(b, nil); err != nil {
		return err
	}
	m.text.Reset()
	return m.close(i)
}

// display tells the hooks of MessageDisplay about a text, as a whole. The ids
// are made for them: no event has the same.
func (m *message) display(text string) error {
	t := m.t
	if t.displayID == "" {
		t.displayID = t.s.o.Clock.NewID()
	}
	_, err := t.runHooks(protocol.MessageDisplayHook{TurnID: t.displayID, MessageID: t.s.o.Clock.NewID(), Final: true, Delta: text})
	return err
}

func (m *message) thinkingBlock(i int, b protocol.ThinkingBlock) error {
	began, display := m.t.s.o.Clock.Now(), m.t.s.o.Show.thinking()
	if err := m.open(i, protocol.ThinkingBlock{Type: "thinking"}, display); err != nil {
		return err
	}
	thought := 0
	for _, chunk := range m.thoughts(b.Thinking) {
		if err := m.keepPace(chunk); err != nil {
			return err
		}
		n := tokens(len(chunk))
		thought += n
		err := m.t.system("thinking_tokens", protocol.Field{Key: "estimated_tokens", Value: thought}, protocol.Field{Key: "estimated_tokens_delta", Value: n})
		if err != nil {
			return err
		}
		if err := m.delta(i, "thinking", chunk, display); err != nil {
			return err
		}
	}
	if err := m.delta(i, "signature", b.Signature, ""); err != nil {
		return err
	}
	took := ms(m.t.s.o.Clock.Now().Sub(began))
	if err := m.assistant(b, func(ev *protocol.Assistant) {
		ev.ThinkingDurationMS, ev.ThinkingDisplay = &took, display
	}); err != nil {
		return err
	}
	return m.close(i)
}

func (s Show) thinking() string { return cmp.Or(s.Thinking, "updates") }

// thoughts are the pieces in which reasoning comes: those of its pace where it
// can be seen, else one. Each is announced by its tokens.
func (m *message) thoughts(text string) []string {
	if m.t.s.o.Show.Partial || m.pace.perTok > 0 {
		return m.pace.split(text)
	}
	return []string{text}
}

func (m *message) toolBlock(i int, b protocol.ToolUse) error {
	began := m.t.s.o.Clock.Now()
	empty := b
	empty.Input = json.RawMessage("{}")
	if err := m.open(i, empty, ""); err != nil {
		return err
	}
	for _, chunk := range halves(string(b.Input)) {
		if err := m.keepPace(chunk); err != nil {
			return err
		}
		if err := m.delta(i, "partial_json", chunk, ""); err != nil {
			return err
		}
	}
	took := ms(m.t.s.o.Clock.Now().Sub(began))
	m.place.InputMS = &took
	var id string
	err := m.assistant(b, func(ev *protocol.Assistant) {
		id = ev.UUID
		if meta, ok := m.index.Meta(b); ok {
			ev.ToolUseMeta = []protocol.ToolUseMeta{meta}
		}
	})
	if err != nil {
		return err
	}
	prepared := m.t.s.o.Tools.Prepare(b)
	c := call{use: b, event: id, readOnly: prepared.ReadOnly}
	if prepared.Runs != "" {
		c.use.Name, c.alias = prepared.Runs, b.Name
	}
	c.tool, _ = m.index.Tool(c.use.Name)
	m.calls = append(m.calls, c)
	return m.close(i)
}

// assistant yields the complete block.
func (m *message) assistant(b protocol.Block, more func(*protocol.Assistant)) error {
	t := m.t
	final := m.place
	final.StopReason, final.Usage = m.stop, finalUsage(m.usage, 0)
	ev := &protocol.Assistant{
		Type: "assistant",
		Message: protocol.AssistantMessage{
			ID: m.id, Type: "message", Role: "assistant", Model: m.model,
			Content: []protocol.Block{b}, Usage: streamUsage(m.usage),
		},
		SessionID: t.s.o.Live.SessionID(), UUID: t.s.o.Clock.NewID(), Timestamp: t.timestamp(), RequestID: m.request,
		Final: &final,
	}
	t.name(ev)
	if more != nil {
		more(ev)
	}
	m.shown++
	return t.emit(ev)
}

// abort yields what an interrupt leaves of a message: the text so far. What has
// come of it is paid for, at a token for three characters.
func (m *message) abort() error {
	m.t.current = nil
	if m.started {
		m.t.spend(m.name, scenarios.Usage{
			InputTokens: m.usage.InputTokens, OutputTokens: max(min(1, m.usage.OutputTokens), (m.received+1)/3),
		}, 0)
	}
	if m.text.Len() == 0 {
		return nil
	}
	m.stop = ""
	return m.assistant(protocol.Text(m.text.String()), func(ev *protocol.Assistant) { ev.Aborted = true })
}

// abandon yields, in partial mode, the end of an aborted message's stream.
func (m *message) abandon() error {
	if !m.started || !m.t.s.o.Show.Partial {
		return nil
	}
	if m.at >= 0 {
		if err := m.close(m.at); err != nil {
			return err
		}
	}
	err := m.event(object{
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
	if err != nil {
		return err
	}
	stop := m.streamed(object{{"type", "message_stop"}}, "")
	stop.AbandonedBlocks = &protocol.AbandonedBlocks{APIMessageID: m.id, FromBlockIndex: m.shown}
	return m.t.emit(stop)
}

func (m *message) open(i int, b protocol.Block, display string) error {
	m.at = i
	return m.event(object{{"type", "content_block_start"}, {"index", i}, {"content_block", b}}, display)
}

// delta yields a piece of a block; key is where it stands.
func (m *message) delta(i int, key, chunk, display string) error {
	kind := key + "_delta"
	if key == "partial_json" {
		kind = "input_json_delta"
	}
	if key != "signature" {
		m.received += utf8.RuneCountInString(chunk)
	}
	return m.event(object{{"type", "content_block_delta"}, {"index", i}, {"delta", object{{"type", kind}, {key, chunk}}}}, display)
}

func (m *message) close(i int) error {
	m.at = -1
	return m.event(object{{"type", "content_block_stop"}, {"index", i}}, "")
}

func (m *message) event(ev object, display string) error {
	if !m.t.s.o.Show.Partial {
		return nil
	}
	return m.t.emit(m.streamed(ev, display))
}

func (m *message) streamed(ev object, display string) *protocol.StreamEvent {
	return &protocol.StreamEvent{
		Type: "stream_event", Event: ev, SessionID: m.t.s.o.Live.SessionID(), UUID: m.t.s.o.Clock.NewID(),
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

// pace is how fast a message is streamed.
type pace struct {
	ttft   time.Duration
	perTok time.Duration // 0 = as fast as possible
	jitter float64
	chunk  string
	size   int // characters per chunk when chunk is a number
	random func() float64
}

func (t *turn) pace(reply scenarios.Reply) pace {
	st := t.s.o.Show.Stream
	if reply.Stream != nil {
		st = *reply.Stream
	}
	p := pace{ttft: time.Duration(st.TTFTMS) * time.Millisecond, jitter: st.Jitter, chunk: st.Chunk.Unit, size: st.Chunk.Size}
	if st.TokensPerSecond > 0 {
		p.perTok = time.Duration(float64(time.Second) / st.TokensPerSecond)
	}
	if r := t.s.o.Rand; r != nil {
		p.random = r.Float64
	}
	return p
}

// wait is the time a chunk takes, jittered by the seeded source.
func (p pace) wait(chunk string) time.Duration {
	d := time.Duration(tokens(len(chunk))) * p.perTok
	if p.jitter > 0 && p.random != nil {
		d = time.Duration(float64(d) * (1 + p.jitter*(2*p.random()-1)))
	}
	return d
}

// split cuts text into the pieces that go out as deltas. A word keeps the
// white space after it; the empty text is one empty piece.
func (p pace) split(text string) []string {
	if text == "" {
		return []string{""}
	}
	switch {
	case p.size > 0:
		return every(text, p.size)
	case p.chunk == "line":
		return strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	case p.chunk == "token":
		return every(text, 4)
	default:
		return words(text)
	}
}

func words(text string) []string {
	var out []string
	start, space := 0, false
	for i, r := range text {
		if space && !unicode.IsSpace(r) {
			out = append(out, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	return append(out, text[start:])
}

func every(text string, n int) []string {
	var out []string
	runes := []rune(text)
	for len(runes) > n {
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return append(out, string(runes))
}

// halves cuts the input of a call the way the API does at least: in two.
func halves(text string) []string {
	if len(text) < 4 {
		return []string{text}
	}
	cut := len(text) / 2
	for cut < len(text) && text[cut]&0xC0 == 0x80 { // not inside a rune
		cut++
	}
	return []string{text[:cut], text[cut:]}
}
