package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

type sessionSet struct {
	order        []string
	byID         map[string]*sessionBuilder
	damaged      []DamagedLineSummary
	keepContents bool // keeps the contents of files that were read
	// requestsOnly is set if a journal of claudeless serve was read. It has the requests, but not the responses.
	requestsOnly bool
}

type sessionBuilder struct {
	Session
	source       string // kind of recording that the prompts come from, see recordingKindsInRisingDetail
	results      map[string]*Result
	calls        map[string]*Call
	byMsg        map[string]*Message
	agents       map[string]*Agent // agents by the id of the call that started them
	rawResults   map[string]json.RawMessage
	idSeen       map[string]bool
	earlyHooks   []HookRun // hooks that ran before the next prompt
	finished     bool      // the last prompt has a result
	keepContents bool
}

func newSessionBuilder(id string) *sessionBuilder {
	return &sessionBuilder{
		Session: Session{ID: id, UnknownLines: map[string]int{}},
		results: map[string]*Result{}, calls: map[string]*Call{}, byMsg: map[string]*Message{},
		agents: map[string]*Agent{}, rawResults: map[string]json.RawMessage{}, idSeen: map[string]bool{},
	}
}

func (s *sessionSet) getOrAddBuilder(sessionID, source string) *sessionBuilder {
	key := sessionID + "\x00" + source
	b := s.byID[key]
	if b == nil {
		b = newSessionBuilder(sessionID)
		b.source, b.keepContents = source, s.keepContents
		s.byID[key] = b
		s.order = append(s.order, key)
	}
	return b
}

func (b *sessionBuilder) addIDs(ids ...string) {
	for _, id := range ids {
		if id != "" && !b.idSeen[id] {
			b.idSeen[id] = true
			b.IDs = append(b.IDs, id)
		}
	}
}

func (b *sessionBuilder) addPrompt(p *Prompt) {
	p.Hooks, b.earlyHooks = b.earlyHooks, nil
	b.Prompts = append(b.Prompts, p)
	b.finished = false
}

// addHookRun adds a hook to the prompt for which the hook ran: the current prompt or, before the first prompt and after the result
// of the current prompt, the next prompt.
func (b *sessionBuilder) addHookRun(h HookRun) {
	if len(b.Prompts) == 0 || b.finished {
		b.earlyHooks = append(b.earlyHooks, h)
		return
	}
	p := b.Prompts[len(b.Prompts)-1]
	p.Hooks = append(p.Hooks, h)
}

func (b *sessionBuilder) ensureCurrentPrompt(at Place) *Prompt {
	if len(b.Prompts) == 0 || b.finished {
		b.addPrompt(&Prompt{At: at, TextMissing: true})
	}
	return b.Prompts[len(b.Prompts)-1]
}

// addBlocks adds the blocks of m to the message with this id, or a new one. agentKey identifies the sub-agent; empty means the main
// conversation.
func (b *sessionBuilder) addBlocks(at Place, m wireMessage, agentKey string) {
	b.addIDs(m.ID)
	key := agentKey + "\x00" + m.ID
	msg := b.byMsg[key]
	if msg == nil || m.ID == "" {
		msg = &Message{At: at}
		b.byMsg[key] = msg
		if agentKey != "" {
			a := b.getOrAddAgent(agentKey)
			a.Messages = append(a.Messages, msg)
		} else {
			p := b.ensureCurrentPrompt(at)
			p.Messages = append(p.Messages, msg)
		}
	}
	if m.StopReason != nil {
		msg.StopReason = *m.StopReason
	}
	for _, raw := range m.Content {
		b.addBlock(at, msg, raw)
	}
}

func (b *sessionBuilder) getOrAddAgent(agentKey string) *Agent {
	a := b.agents[agentKey]
	if a == nil {
		a = &Agent{}
		b.agents[agentKey] = a
	}
	return a
}

func (b *sessionBuilder) addBlock(at Place, msg *Message, raw wireBlock) {
	switch raw.Type {
	case "text":
		msg.Blocks = append(msg.Blocks, Block{Text: raw.Text})
	case "thinking":
		msg.Blocks = append(msg.Blocks, Block{Thinking: true, Text: raw.Thinking})
	case "tool_use":
		if b.calls[raw.ID] != nil {
			return
		}
		c := &Call{At: at, Tool: raw.Name, Input: slices.Clone(raw.Input)}
		if raw.ID != "" {
			b.calls[raw.ID] = c
		}
		b.addIDs(raw.ID)
		msg.Blocks = append(msg.Blocks, Block{Call: c})
	default:
		if raw.Type != "" {
			b.UnknownLines["block "+raw.Type]++
		}
	}
}

func (b *sessionBuilder) addFailure(at Place, f Failure) {
	p := b.ensureCurrentPrompt(at)
	p.Messages = append(p.Messages, &Message{At: at, Failure: &f})
}

type wireMessage struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Model      string     `json:"model"`
	Content    wireBlocks `json:"content"`
	StopReason *string    `json:"stop_reason"`
}

type wireBlocks []wireBlock

// wireBlock is a content block of any type; Type determines which members are set.
type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   *wireBlocks     `json:"content"`
	IsError   bool            `json:"is_error"`
}

// UnmarshalJSON accepts a string as one text block.
func (w *wireBlocks) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*w = wireBlocks{{Type: "text", Text: text}}
		return nil
	}
	var blocks []wireBlock
	if json.Unmarshal(raw, &blocks) == nil { // other values have no text
		*w = blocks
	}
	return nil
}

func (w wireBlocks) plainText() (text string, otherCount int) {
	var texts []string
	for _, b := range w {
		if b.Type == "text" {
			texts = append(texts, b.Text)
			continue
		}
		otherCount++
	}
	return strings.Join(texts, "\n"), otherCount
}

func countPartsOtherThanText(content json.RawMessage) int {
	_, otherCount := plainjson.DecodeIgnoringErrors[wireBlocks](content).plainText()
	return otherCount
}

// setResultOfCall records the result of a call. It replaces an earlier result of the call.
func (b *sessionBuilder) setResultOfCall(at Place, block wireBlock) *Result {
	r := &Result{At: at, IsError: block.IsError}
	if block.Content != nil {
		r.Text, r.OtherParts = block.Content.plainText()
	}
	b.results[block.ToolUseID] = r
	return r
}

func (b *sessionBuilder) attachResultsAndDropEmptyPrompts() {
	for id, c := range b.calls {
		if c.Result = b.results[id]; c.Result != nil && b.rawResults[id] != nil {
			c.Result.Raw = b.rawResults[id]
		}
		if a := b.agents[id]; a != nil {
			c.Agent = a
		}
		if c.Agent != nil {
			c.Agent.addLastMessageFromCallResult(c)
		}
		if c.Agent != nil && len(c.Agent.Messages) == 0 {
			c.Agent = nil
		}
	}
	b.Prompts = slices.DeleteFunc(b.Prompts, func(p *Prompt) bool { return len(p.Messages) == 0 })
}

// mergeAndFinishSessions returns the sessions that have an answered prompt; recordings of the same session are merged.
func (s *sessionSet) mergeAndFinishSessions() ([]*Session, error) {
	var joinedTo []*sessionBuilder
	joined := map[string]*sessionBuilder{}
	for _, key := range s.order {
		b := s.byID[key]
		b.attachResultsAndDropEmptyPrompts()
		if first := joined[b.ID]; first != nil && b.ID != "" {
			first.mergeRecording(b)
			continue
		}
		joined[b.ID] = b
		joinedTo = append(joinedTo, b)
	}
	out := make([]*Session, 0, len(joinedTo))
	for _, b := range joinedTo {
		out = append(out, new(b.Session)) // the session without its builder
	}
	out = slices.DeleteFunc(out, func(one *Session) bool { return len(one.Prompts) == 0 })
	if len(out) == 0 {
		if s.requestsOnly {
			return nil, fmt.Errorf("%w: this journal is from claudeless serve and has only the requests; import the transcript of the claude session, or a journal of `claudeless serve --record`", ErrNoConversation)
		}
		if len(s.damaged) > 0 {
			return nil, fmt.Errorf("%w: %s", ErrNoConversation, &s.damaged[0])
		}
		return nil, ErrNoConversation
	}
	out[0].Damaged = s.damaged
	return out, nil
}

// recordingKindsInRisingDetail lists the kinds of input. A later one describes a session in more detail than an earlier one.
var recordingKindsInRisingDetail = [...]string{"traffic", "stream", "tape", "transcript", "journal"}

func (b *sessionBuilder) mergeRecording(other *sessionBuilder) {
	rich, poor := b, other
	if len(b.Prompts) == 0 || len(other.Prompts) > 0 && slices.Index(recordingKindsInRisingDetail[:], other.source) > slices.Index(recordingKindsInRisingDetail[:], b.source) {
		rich, poor = other, b
	}
	for id, c := range rich.calls {
		from := poor.calls[id]
		if from != nil {
			c.addMissingPartsFrom(from)
		}
	}
	for i, p := range rich.Prompts {
		if p.TextMissing && i < len(poor.Prompts) {
			p.Text, p.TextMissing = poor.Prompts[i].Text, poor.Prompts[i].TextMissing
		}
		if i >= len(poor.Prompts) {
			break
		}
		if len(p.Hooks) == 0 {
			p.Hooks = poor.Prompts[i].Hooks
		}
		for j, m := range p.Messages {
			if j < len(poor.Prompts[i].Messages) && m.StopReason == "" {
				m.StopReason = poor.Prompts[i].Messages[j].StopReason
			}
		}
	}
	merged := rich.Session
	merged.ID = cmp.Or(rich.ID, poor.ID)
	merged.CWD, merged.Version = cmp.Or(rich.CWD, poor.CWD), cmp.Or(rich.Version, poor.Version)
	merged.Mode, merged.Date = cmp.Or(rich.Mode, poor.Mode), cmp.Or(rich.Date, poor.Date)
	merged.Files = slices.Concat(b.Files, other.Files)
	merged.IDs = slices.Concat(b.IDs, other.IDs)
	merged.Environ = slices.Concat(b.Environ, other.Environ)
	if len(merged.Tools) == 0 {
		merged.Tools = poor.Tools
	}
	for k, n := range poor.UnknownLines {
		merged.UnknownLines[k] += n
	}
	b.Session, b.calls, b.source = merged, rich.calls, rich.source
}

func (c *Call) addMissingPartsFrom(otherRecord *Call) {
	if c.Result == nil {
		c.Result = otherRecord.Result
	} else if otherRecord.Result != nil {
		if c.Result.Raw == nil {
			c.Result.Raw = otherRecord.Result.Raw
		}
		c.Result.File = cmp.Or(c.Result.File, otherRecord.Result.File)
		c.Result.Denied = c.Result.Denied || otherRecord.Result.Denied
	}
	c.Agent = cmp.Or(c.Agent, otherRecord.Agent)
}

// ErrNoConversation reports that the files contain no conversation.
var ErrNoConversation = errors.New("the input contains no prompt with an answer")

// addLastMessageFromCallResult adds the last message of a sub-agent if the recording contains only the sub-agent's calls.
// The text is the result of the call that started the sub-agent.
func (a *Agent) addLastMessageFromCallResult(callThatStartedAgent *Call) {
	n := len(a.Messages)
	if n == 0 || callThatStartedAgent.Result == nil || callThatStartedAgent.Result.IsError {
		return
	}
	if last := a.Messages[n-1].Blocks; len(last) > 0 && last[len(last)-1].Call == nil {
		return
	}
	_, text, ok := strings.Cut(callThatStartedAgent.Result.Text, "report follows:\n")
	if !ok {
		return
	}
	text, _, _ = strings.Cut(text, "\nagentId: ")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	a.Messages = append(a.Messages, &Message{At: callThatStartedAgent.Result.At, Blocks: []Block{{Text: strings.Join(lines, "\n")}}})
}
