package simulator

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// sourceCompact is the source of a session start that follows a compaction.
const sourceCompact = "compact"

// hookPoints are the moments of a turn at which hooks run; those around tool calls
// are a layer of the tools.
type hookPoints struct {
	s       *Simulator
	out     *emitter
	prompts *prompts
	stray   string // id of a session that was not found; empty = that of the session
	display string // id of the turn, for hooks of MessageDisplay; empty = not made yet
}

// base is the common part of hook inputs for events of this turn: what
// precedes the prompt has no id of it, what is not about the model's work has
// no mode, and the effort is told where the model has worked.
func (p *hookPoints) base(in protocol.HookInput) protocol.HookBase {
	base := p.s.sessionBase()
	event, subject := protocol.HookEvent(in)
	if subject == sourceCompact {
		event = "PreCompact"
	}
	if loaded, is := in.(protocol.InstructionsLoadedHook); is && loaded.TriggerFilePath != "" {
		return p.amid(base)
	}
	switch event {
	case "SessionStart", "InstructionsLoaded", "Setup":
		return base
	case "PreCompact", "PostCompact", "MessageDisplay":
		base.PromptID = p.prompts.promptID
		return base
	case "Stop", "PostToolBatch": // the others precede the first request
		base.Effort = p.s.o.Live.Now().HookEffort()
	}
	base.PromptID, base.PermissionMode = p.prompts.promptID, p.s.o.Here.Mode()
	if agent := p.s.o.Agent; agent != nil {
		base.AgentID, base.AgentType, base.PromptID = agent.ID, agent.Type, p.s.o.Live.Now().PromptID
	}
	return base
}

// amid is the common part of hook inputs about what calls led to.
func (p *hookPoints) amid(base protocol.HookBase) protocol.HookBase {
	base.Effort, base.PromptID = p.s.o.Live.Now().HookEffort(), p.prompts.promptID
	if agent := p.s.o.Agent; agent != nil {
		base.AgentID, base.AgentType, base.PromptID = agent.ID, agent.Type, p.s.o.Live.Now().PromptID
	}
	return base
}

// reached tells hooks, transcript and model of the instructions that count from
// now on: after calls, or where an agent's conversation begins.
func (p *hookPoints) reached(ctx context.Context, calls []protocol.ToolUse) error {
	tools, ok := p.s.o.Tools.(InstructionSource)
	if !ok {
		return nil
	}
	for _, in := range tools.Reached(p.s.o.Agent, calls) {
		if in.Hook != nil {
			if _, err := p.run(ctx, *in.Hook); err != nil {
				return err
			}
		}
		p.prompts.beside = append(p.prompts.beside, in.Text)
		p.s.past.nested = append(p.s.past.nested, in.Text)
		if in.Attachment == nil {
			continue
		}
		p.out.emit(&protocol.Attached{Attachment: in.Attachment, Role: "user"})
	}
	return nil
}

// instructAgain tells hooks and the model of all instructions behind a compaction, which
// took them away, and the model of what hooks have said about it: texts are what it
// was to hear before.
func (p *hookPoints) instructAgain(ctx context.Context, texts []string) error {
	said := p.prompts.beside[len(texts):]
	p.prompts.beside = texts
	for _, file := range p.s.main.Start.Instructions {
		if file.ParentFilePath == "" {
			file.LoadReason = "compact"
		}
		if _, err := p.run(ctx, file); err != nil {
			return err
		}
	}
	var before, after []string
	if p.s.main.Said != nil {
		before, after = p.s.main.Said.Beside()
	}
	p.s.past.untold = slices.Concat(before, p.s.past.nested, said, after)
	return nil
}

// run runs the hooks of one event and yields what they show and what
// transcripts keep of them.
func (p *hookPoints) run(ctx context.Context, in protocol.HookInput) (hook.Outcome, error) {
	out, err := p.ask(ctx, in)
	if err == nil {
		p.out.all(out.Attached())
	}
	return out, err
}

// ask runs the hooks of one event and yields what they show.
func (p *hookPoints) ask(ctx context.Context, in protocol.HookInput) (hook.Outcome, error) {
	if err := p.out.gone(); err != nil {
		return hook.Outcome{}, err
	}
	event, _ := protocol.HookEvent(in)
	if p.s.o.Hooks == nil || !p.s.o.Hooks.Has(event) || p.s.o.Agent != nil && event != "PostToolBatch" && event != "InstructionsLoaded" {
		return hook.Outcome{}, nil
	}
	out := p.s.o.Hooks.Run(ctx, hook.Input{Base: p.base(in), Event: in})
	p.prompts.beside = append(p.prompts.beside, out.AdditionalContext...)
	if p.s.o.Show.Hooks && event != "InstructionsLoaded" || event == "SessionStart" || event == "Setup" {
		p.out.all(p.unfound(out.Frames))
	}
	return out, cmp.Or(p.out.gone(), ctx.Err())
}

// displayed tells the hooks of MessageDisplay about a text, as a whole, and
// gives what they want to be shown; nil = the text. The ids are made for them:
// no event has the same.
func (p *hookPoints) displayed(ctx context.Context, text string) (*string, error) {
	if p.display == "" {
		p.display = p.s.o.Clock.NewID()
	}
	out, err := p.run(ctx, protocol.MessageDisplayHook{TurnID: p.display, MessageID: p.s.o.Clock.NewID(), Final: true, Delta: text})
	return out.Specific.DisplayContent, err
}

// take begins the turn of a command of the CLI itself, or of one that it does
// not have here.
func (p *hookPoints) take(ctx context.Context, absent bool) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	prompt := p.prompts.command()
	prompt.Absent = absent
	p.out.emit(prompt)
	return nil
}

// begin names the prompt and yields its coming and the session's start.
func (p *hookPoints) begin(ctx context.Context) error {
	p.prompts.queued()
	p.prompts.promptID = p.s.o.Clock.NewID()
	p.s.o.Live.set(func(n *Snapshot) { n.PromptID = p.prompts.promptID })
	return p.sessionStart(ctx)
}

// sessionStart runs the hooks that come before the session's first turn. They
// never block.
func (p *hookPoints) sessionStart(ctx context.Context) error {
	if p.s.past.begun {
		return nil
	}
	p.s.past.begun = true
	if p.s.o.Agent != nil {
		return p.reached(ctx, nil)
	}
	source := p.s.past.started
	switch {
	case source != "":
	case p.s.main.Start.Forked:
		source = "fork"
	case p.s.past.resumed:
		source = "resume"
	default:
		source = "startup"
	}
	if p.s.main.Start.Sought {
		p.stray = p.s.o.Clock.NewID()
	}
	if p.s.main.Start.Setup != "" {
		if _, err := p.run(ctx, protocol.SetupHook{Trigger: p.s.main.Start.Setup}); err != nil {
			return err
		}
	}
	var after []string
	if said := p.s.main.Said; said != nil && !p.s.past.resumed {
		var before []string
		before, after = said.Beside()
		p.prompts.beside = append(p.prompts.beside, before...)
	}
	out, err := p.greet(ctx, source)
	if err != nil {
		return err
	}
	p.stray = ""
	p.s.past.untold, p.prompts.beside = append(p.prompts.beside, after...), nil
	p.out.all(out.Notices)
	for _, file := range p.s.main.Start.Instructions {
		if _, err := p.run(ctx, file); err != nil {
			return err
		}
	}
	if title := cmp.Or(out.Specific.SessionTitle, p.s.main.Start.Title); title != "" {
		p.out.titled(title)
	}
	if p.s.main.Start.Reduced {
		p.out.system("ui_invalidate", protocol.Field{Key: "event", Value: "ui.render"})
	}
	return p.out.gone()
}

// greet runs the hooks of a session's start. Where a session goes on, the model
// is told nothing of what they say, and transcripts keep nothing of it (observed
// with 2.1.329).
func (p *hookPoints) greet(ctx context.Context, source string) (hook.Outcome, error) {
	if source != "resume" && source != "fork" {
		return p.run(ctx, p.started(source))
	}
	told := p.prompts.beside
	out, err := p.ask(ctx, p.started(source))
	p.prompts.beside = told
	return out, err
}

// How long the API keeps what it has cached, and what writing it costs beside
// reading it anew.
const (
	cacheKept, longCacheKept = 5 * time.Minute, time.Hour
	cacheCosts, longCache    = 1.25, 2
)

// started is what the hooks of a session's start are told.
func (p *hookPoints) started(source string) protocol.SessionStartHook {
	in := protocol.SessionStartHook{Source: source, AgentType: p.s.main.Start.Agent, SessionTitle: p.s.main.Start.Title}
	if heard := p.s.main.Start.Heard; heard != nil && (source == "resume" || source == "fork") {
		heard.tell(&in, p.s.o.Clock.Now())
	}
	return in
}

// tell says how long the last reply is ago, and what asking again would cost
// (observed with 2.1.329).
func (h PreviousReply) tell(in *protocol.SessionStartHook, now time.Time) {
	ago := max(0, now.Sub(h.At))
	kept, factor := cacheKept, float64(cacheCosts)
	if h.Long {
		kept, factor = longCacheKept, longCache
	}
	price := 5. // of a model that nobody knows
	if facts := model.Of(h.Model); facts.Known {
		price = facts.In
	}
	const million, places = 1e6, 1e4
	cost := math.Round(float64(h.Tokens)/million*price*factor*places) / places
	in.SecondsSinceLastResponse, in.ContextTokens = new(math.Floor(ago.Seconds())), &h.Tokens
	in.PromptCacheLikelyExpired, in.EstimatedCacheWriteUSD = new(ago > kept), &cost
}

// unfound gives the frames of a session that is looked for the id that it would
// have had if none were found (observed with 2.1.329).
func (p *hookPoints) unfound(frames []protocol.Event) []protocol.Event {
	if p.stray == "" {
		return frames
	}
	for _, ev := range frames {
		if frame, ok := p.out.stamp(ev).(*protocol.System); ok {
			frame.SessionID = p.stray
		}
	}
	return frames
}

// submission is what the hooks of a prompt say together.
type submission struct {
	notices []protocol.Event // for after init
	end     *turnEndError    // not nil = the prompt is refused
}

// submit runs the hooks of the prompt and of the command that it is, before
// init, and yields the prompt's trace. A hook that ends the session ends the
// turn at once: not even init is shown.
func (p *hookPoints) submit(ctx context.Context, c slash.Call, x *slash.Expansion) (s submission, err error) {
	var out, expansion hook.Outcome
	if p.prompts.in.Source != sourceSystem && !p.prompts.in.NoQuery {
		out, err = p.ask(ctx, protocol.UserPromptSubmitHook{Prompt: submitted(p.prompts.in.Content), SessionTitle: p.s.main.Start.Title})
	}
	switch {
	case err != nil:
		return s, err
	case out.CrashError != "":
		died := &turnEndError{
			subtype: "error_during_execution", isError: true, untouched: true,
			errors: []string{out.CrashError, "[session_crash] the session ended because of a hook"},
		}
		p.prompts.prompted(false)
		return s, died
	case keepsOut(out):
		s.notices, s.end = out.Notices, unasked(strings.Join(out.Texts, "\n"))
		p.turnAway(out, out.Block)
		return s, nil
	case x != nil:
		_, typed, _ := p.prompts.in.Content.Typed()
		expansion, err = p.ask(ctx, protocol.UserPromptExpansionHook{
			ExpansionType: x.Kind, CommandName: c.Name, CommandArgs: c.Args, CommandSource: x.Source, Prompt: typed,
		})
		if err != nil {
			return s, err
		}
		if keepsOut(expansion) {
			s.notices, s.end = expansion.Notices, unasked(strings.Join(expansion.Texts, "\n"))
			s.end.local = "custom"
			p.turnAway(expansion, true)
			return s, nil
		}
	}
	s.notices = append(expansion.Notices, out.Notices...)
	if x == nil {
		p.prompts.prompted(false)
	} else {
		p.expanded(c, x)
	}
	p.out.all(expansion.Attached())
	p.out.all(out.Attached())
	if title := out.Specific.SessionTitle; title != "" {
		p.out.titled(title)
	}
	return s, nil
}

// submitted is a prompt as hooks are told it.
func submitted(c protocol.Content) string {
	if c.Blocks == nil {
		return c.Text
	}
	return strings.TrimSpace(c.Plain())
}

// expanded yields the trace of a command and of its text.
func (p *hookPoints) expanded(c slash.Call, x *slash.Expansion) {
	prompt := p.prompts.prompt()
	prompt.Expansion = &protocol.Expansion{Name: c.Name, Tools: x.Tools}
	p.out.emit(prompt)
	text := p.text(p.prompts.expanded(x))
	text.Expansion = prompt.Expansion
	p.out.emit(text)
}

// keepsOut reports whether hooks of a prompt keep it from the model.
func keepsOut(out hook.Outcome) bool { return out.Block || out.StopTurn }

// turnAway yields the trace of a prompt that hooks keep from the model; dropped
// says that the prompt itself does not stay in the conversation.
func (p *hookPoints) turnAway(out hook.Outcome, dropped bool) {
	p.prompts.prompted(dropped)
	if !out.Block {
		p.out.emit(p.text(protocol.Content{Text: strings.Join(out.Texts, "\n")}))
	}
	p.out.all(out.Attached())
}

// text is the trace of text that the CLI itself puts beside the prompt.
func (p *hookPoints) text(text protocol.Content) *protocol.PromptAccepted {
	return &protocol.PromptAccepted{
		UUID: p.s.o.Clock.NewID(), PromptID: p.prompts.promptID, Timestamp: p.out.timestamp(), Injected: true, Content: text,
	}
}

// absorb makes prompts that came during the tool round part of the turn: the
// model reads them with the results, and they get no result of their own.
func (p *hookPoints) absorb(ctx context.Context) error {
	if p.s.main.Prompts == nil {
		return nil
	}
	var taken []protocol.UserMessage
	for _, in := range p.s.main.Prompts.Absorb() {
		out, err := p.run(ctx, protocol.UserPromptSubmitHook{Prompt: submitted(in.Content)})
		if err != nil {
			return err
		}
		p.out.all(out.Notices)
		if out.Block || out.StopTurn || out.CrashError != "" {
			continue
		}
		taken = append(taken, in)
	}
	for _, in := range taken {
		id := in.UUID
		if id == "" {
			id = p.s.o.Clock.NewID()
		}
		p.prompts.absorbed(in, id)
		p.prompts.waiting = append(p.prompts.waiting, heard(in.Content))
	}
	for _, in := range taken {
		p.prompts.take(in)
	}
	return nil
}
