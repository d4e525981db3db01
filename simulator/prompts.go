package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// noContent stands for the empty prompt when it is repeated.
const noContent = "(no content)"

// ErrSignalled as the cause of a turn's end says that a signal asked for it: calls that
// executedCall are told like those that had not begun.
var ErrSignalled = errors.New("a signal has come")

// ErrSuperseded as the cause of a turn's end says that another prompt is to be
// answered at once: the turn ends without telling the model of an interrupt.
var ErrSuperseded = errors.New("another prompt is to be answered now")

// prompts are what a turn answers: the prompt that it began with, what stands
// beside that, and those that became part of it.
type prompts struct {
	s   *Simulator
	out *emitter
	in  protocol.UserMessage

	id       string           // uuid of the prompt; empty = not made yet
	recorded protocol.Content // the prompt as transcripts keep it
	promptID string
	beside   []string // what hooks and mentioned files told the model so far
	told     int      // how many of them a request has said
	waiting  []string // absorbed prompts that no reply has followed up
	taken    []string // ids of the absorbed prompts that have one

	owed            bool // the prompt is to be repeated when the model is asked
	messageLabelled bool // an assistant event has named the prompts
	startLabelled   bool // a message_start has
}

func (p *prompts) queued() {
	p.out.emit(&protocol.Queued{Content: p.in.Content, Timestamp: p.out.timestamp()})
}

// prompted yields the prompt's trace; refused says that a hook kept it out of
// the conversation.
func (p *prompts) prompted(refused bool) {
	prompt := p.prompt()
	prompt.Refused = refused
	p.out.emit(prompt)
}

// command is the trace of a prompt that is a command of the CLI itself.
func (p *prompts) command() *protocol.PromptAccepted {
	prompt := p.prompt()
	prompt.Local = true
	return prompt
}

func (p *prompts) prompt() *protocol.PromptAccepted {
	return &protocol.PromptAccepted{
		UUID: p.uuid(), HostID: p.in.UUID, PromptID: p.promptID, Content: p.recorded, Timestamp: p.out.timestamp(), Merged: p.merged(),
		PermissionMode: p.s.o.Here.Mode(), Source: cmp.Or(p.in.Source, "sdk"), Origin: p.in.Origin,
	}
}

// expanded is the prompt with the text of its command in the place of the call.
func (p *prompts) expanded(x *slash.Expansion) protocol.Content {
	before, _, _ := p.in.Content.Typed()
	return protocol.Content{Blocks: append(slices.Clone(before), protocol.Text(x.Text))}
}

// uuid is that of the prompt: the host's, or a fresh one.
func (p *prompts) uuid() string {
	p.id = cmp.Or(p.id, p.in.UUID)
	if p.id == "" {
		p.id = p.s.o.Clock.NewID()
	}
	return p.id
}

// blank tells whether a prompt is white space only. The empty one is not.
func blank(in protocol.Content) bool {
	return in.Blocks == nil && in.Text != "" && strings.TrimSpace(in.Text) == ""
}

// heard is what the model reads of a prompt: blocks of white space are left out.
func heard(c protocol.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	said := slices.DeleteFunc(slices.Clone(c.Blocks), func(b protocol.Block) bool {
		text, ok := b.(protocol.TextBlock)
		return ok && strings.TrimSpace(text.Text) == ""
	})
	if len(said) == 0 && len(c.Blocks) > 0 {
		return noContent
	}
	return protocol.Content{Blocks: said}.Plain()
}

// init yields the init event.
func (p *prompts) init(ctx context.Context) {
	if p.out.left {
		return
	}
	var init protocol.Init
	if p.s.main.Said != nil {
		init = p.s.main.Said.Init(ctx)
	}
	init.Type, init.Subtype = "system", "init"
	init.SessionID, init.UUID = p.s.o.Live.SessionID(), p.s.o.Clock.NewID()
	init.Model, init.PermissionMode = p.s.resolved(), p.s.o.Here.Mode()
	init.PerTurnEffortActive = model.Of(init.Model).Effort
	init.UserMessageUUIDs = p.in.UUIDs
	p.out.emit(&init)
}

// repeat shows the prompt as it is recorded, once, if it is to be answered by the model and the host
// wants to see it.
func (p *prompts) repeat() {
	if !p.owed {
		return
	}
	p.owed = false
	in := p.in
	in.Content = p.recorded
	p.replay(in, p.uuid())
}

// tell shows what the request says beside the prompt that none before it said.
func (p *prompts) tell() {
	if texts := p.beside[p.told:]; len(texts) > 0 {
		p.told = len(p.beside)
		p.out.emit(&protocol.ContextAdded{Texts: texts})
	}
}

// attach puts the files and resources that the prompt mentions beside it, and
// returns the reads that this stands for.
func (p *prompts) attach(ctx context.Context, text string) (reads []protocol.ToolUse, err error) {
	mentions := p.s.main.Mentions
	if mentions == nil || p.in.Verbatim || p.in.Source == sourceSystem || !strings.Contains(text, "@") {
		return nil, nil
	}
	var all []Mentioned
	for _, m := range mentionsIn(text) {
		found, ok := mentions.Open(ctx, m)
		if !ok {
			continue
		}
		all = append(all, found)
		if input, err := protocol.Marshal(map[string]string{"file_path": m.Path}); err == nil {
			reads = append(reads, protocol.ToolUse{Name: "Read", Input: input})
		}
	}
	for _, found := range append(all, mentions.Read(ctx, text)...) {
		p.beside = append(p.beside, found.Text)
		p.out.emit(&protocol.Attached{Attachment: found.Attachment, Role: "user"})
	}
	return reads, ctx.Err()
}

// absorbed tells transcripts about a prompt and, if asked to, repeats it.
func (p *prompts) absorbed(in protocol.UserMessage, id string) {
	p.out.emit(&protocol.PromptAbsorbed{UUID: id, Content: in.Content, Origin: in.Origin, Timestamp: p.out.timestamp()})
	p.replay(in, id)
}

// Repeats tells whether a host that wants its prompts repeated sees this one
// again: what no person wrote, what answers a call and what is blank are not.
func Repeats(in protocol.UserMessage) bool {
	return !in.Synthetic && !blank(in.Content) && !slices.ContainsFunc(in.Content.Blocks, func(b protocol.Block) bool {
		_, answer := b.(protocol.ToolResultBlock)
		return answer
	})
}

// replay repeats a prompt of the host, if asked to.
func (p *prompts) replay(in protocol.UserMessage, id string) {
	if !p.s.o.Show.Replay || !Repeats(in) {
		return
	}
	yes := true
	if in.Content.Blocks == nil && in.Content.Text == "" {
		in.Content.Text = noContent
	}
	p.out.emit(&protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: in.Content}, Origin: in.Origin,
		SessionID: p.s.o.Live.SessionID(), UUID: id, Timestamp: p.out.timestamp(), IsReplay: &yes,
	})
}

// next takes the first absorbed prompt that no reply has followed up yet.
func (p *prompts) next() (text string, ok bool) {
	if len(p.waiting) == 0 {
		return "", false
	}
	text, p.waiting = p.waiting[0], p.waiting[1:]
	return text, true
}

// take makes a prompt of the host part of the turn.
func (p *prompts) take(in protocol.UserMessage) {
	if in.UUID == "" {
		return
	}
	p.lifecycle(in.UUID, "started")
	p.in.UUIDs = append(p.in.UUIDs, in.UUID)
	p.taken = append(p.taken, in.UUID)
}

// Completed tells whether hosts hear that the prompts of a turn are completed;
// else it ended before its time, and they were cancelled.
func Completed(r *protocol.Result) bool {
	return (!r.IsError || r.TerminalReason == "max_turns") && !strings.HasPrefix(r.TerminalReason, "aborted")
}

// settle tells what has become of the absorbed prompts.
func (p *prompts) settle(r *protocol.Result) {
	state := "completed"
	if !Completed(r) {
		state = "cancelled"
	}
	for _, id := range p.taken {
		p.lifecycle(id, state)
	}
}

// merged are the ids of the prompts that became part of this one before it
// began.
func (p *prompts) merged() []string {
	if n := len(p.in.UUIDs); n > 1 {
		return p.in.UUIDs[:n-1]
	}
	return nil
}

func (p *prompts) lifecycle(id, state string) {
	p.out.emit(p.out.stamp(protocol.Lifecycle(id, state)))
}

// label names the prompts of the turn on its first message of the model.
func (p *prompts) label(ev *protocol.Assistant) {
	if !p.messageLabelled && len(p.in.UUIDs) > 0 {
		p.messageLabelled = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.labels()
	}
}

// labelStart names them on the first beginning of one.
func (p *prompts) labelStart(ev *protocol.StreamEvent) {
	if !p.startLabelled && len(p.in.UUIDs) > 0 {
		p.startLabelled = true
		ev.UserMessageUUID, ev.UserMessageUUIDs = p.labels()
		ev.OwedRows = &[]string{}
	}
}

// labels give what names the prompts of the turn as events do: the turn's own, or
// the last one that became part of it.
func (p *prompts) labels() (uuid string, uuids []string) {
	if p.in.UUID != "" || len(p.in.UUIDs) == 0 {
		return p.in.UUID, p.in.UUIDs
	}
	return p.in.UUIDs[len(p.in.UUIDs)-1], p.in.UUIDs
}

// origin is where the turn's prompt came from, as its result says it.
func (p *prompts) origin() json.RawMessage {
	if p.in.Synthetic {
		return json.RawMessage(`{"kind":"unclassified"}`)
	}
	return p.in.Origin
}

var (
	quotedMention = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@"([^"]+)"`) })
	plainMention  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@([^\s"]*\w)`) })
	lineRange     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#L(\d+)(?:-L?(\d+))?$`) })
)

// mentionsIn lists what a text names with @, each once.
func mentionsIn(text string) []Mention {
	var list []Mention
	seen := map[string]bool{}
	for _, re := range []*regexp.Regexp{quotedMention(), plainMention()} {
		for _, found := range re.FindAllStringSubmatch(text, -1) {
			if !seen[found[1]] {
				seen[found[1]] = true
				list = append(list, readMention(found[1]))
			}
		}
	}
	return list
}

func readMention(s string) Mention {
	found := lineRange().FindStringSubmatch(s)
	if found == nil {
		return Mention{Path: s}
	}
	m := Mention{Path: strings.TrimSuffix(s, found[0]), Lines: 1}
	m.First, _ = strconv.Atoi(found[1]) // digits; too many of them are no line
	if last, err := strconv.Atoi(found[2]); err == nil {
		m.Lines = max(1, last-m.First+1)
	}
	return m
}
