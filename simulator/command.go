package simulator

import (
	"cmp"
	"context"
	"strings"

	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// localCommands answers prompts without the model: commands of the CLI itself, and blank
// ones.
type localCommands struct{ *turnContext }

// call reads the prompt as a slash command.
func (k *localCommands) call() (slash.Call, bool) {
	if k.prompts.in.Source == sourceSystem || k.prompts.in.NoQuery || k.prompts.in.Verbatim {
		return slash.Call{}, false
	}
	_, typed, _ := k.prompts.in.Content.Typed()
	return slash.Parse(typed)
}

// under lets the turn run as its command wants it: what it may do unasked, and
// on which model. The function that is returned ends that.
func (k *localCommands) under(x *slash.Expansion) (undo func()) {
	commands := k.s.commands
	if x == nil {
		return func() { commands.Grant(nil) }
	}
	commands.Grant(x.Tools)
	before := k.s.o.Live.Model()
	if x.Model != "" && x.Model != "inherit" {
		k.s.o.Live.SetModel(x.Model)
	}
	during := k.s.o.Live.Model()
	return func() {
		commands.Grant(nil)
		if k.s.o.Live.Model() == during { // nobody has set another one
			k.s.o.Live.SetModel(before)
		}
	}
}

// find runs a command of the session.
func (k *localCommands) find(ctx context.Context, c slash.Call) (*slash.Outcome, *slash.Expansion) {
	command, ok := k.s.commands.Find(c.Name)
	if !ok {
		return nil, nil
	}
	return command.Run(ctx, c)
}

// run is what a command of the conversation itself does ([OwnCommand]).
func (k *localCommands) run(ctx context.Context, c slash.Call) error {
	switch c.Name {
	case "compact":
		return k.compact(ctx, c)
	case "context":
		usage := k.s.Context()
		return k.say(ctx, c, slash.Outcome{Text: usage.Text()}, &usage)
	case "usage", "cost", "stats":
		return k.say(ctx, c, slash.Outcome{Text: k.s.Cost().Text(), Name: "usage"}, nil)
	default:
		return k.clear(ctx, c)
	}
}

// blankText is what the CLI says to a prompt without a text.
const blankText = "Blank prompt — the message was only whitespace, so nothing was sent to the model."

// refuseBlank answers a blank prompt without the model.
func (k *localCommands) refuseBlank(ctx context.Context) error {
	if err := k.hooks.take(ctx, false); err != nil {
		return err
	}
	k.prompts.init(ctx)
	k.out.inform(blankText, "warning")
	return unasked(blankText)
}

// say answers a command with text of the CLI's own: init and a message that no
// model wrote.
func (k *localCommands) say(ctx context.Context, c slash.Call, said slash.Outcome, usage *slash.Context) error {
	if !said.Absent {
		k.prompts.recorded = protocol.Content{Text: c.LocalTags(cmp.Or(said.Name, c.Name))}
	}
	if err := k.hooks.take(ctx, said.Absent); err != nil {
		return err
	}
	if said.Title != "" {
		k.out.titled(said.Title)
	}
	k.prompts.init(ctx)
	return k.reply(c, said, usage)
}

func (k *localCommands) reply(c slash.Call, said slash.Outcome, usage *slash.Context) error {
	ev := k.output(slash.Call{Name: cmp.Or(said.Name, c.Name), Args: c.Args}, said.Text)
	if said.Absent {
		ev.LocalCommandRun, ev.LocalCommandOutcome = nil, &protocol.LocalOutcome{Kind: "unavailable_headless"}
	}
	if said.Failed {
		ev.LocalCommandSource = slash.Complaint(said.Text)
		ev.LocalCommandOutcome = &protocol.LocalOutcome{Kind: "failed"}
	}
	if usage != nil {
		raw, err := protocol.Marshal(usage)
		if err != nil {
			return err
		}
		ev.ContextUsage = raw
	}
	end := unasked(said.Text)
	if said.Unsaid {
		end = unasked("")
	}
	if !said.Absent {
		end.local = strings.Trim(strings.ReplaceAll(cmp.Or(said.Result, c.Name), "-", "_"), "_")
	}
	k.out.emit(ev)
	return end
}

// output is what a command of the CLI itself says, as a message.
func (k *localCommands) output(c slash.Call, text string) *protocol.Assistant {
	return &protocol.Assistant{
		Type: "assistant", Message: protocol.Synthetic(k.s.o.Clock.NewID(), text, "end_turn"),
		SessionID: k.s.o.Live.SessionID(), UUID: k.s.o.Clock.NewID(), Timestamp: k.out.timestamp(),
		LocalCommandSource: slash.Output(text), LocalCommandRun: &protocol.LocalCommand{Command: c.Name, Args: c.Args},
	}
}

// clear starts a new conversation (spec: cli-contract 9.6).
func (k *localCommands) clear(ctx context.Context, c slash.Call) error {
	s := k.s
	id := k.prompts.uuid()
	k.prompts.queued()
	if s.o.Hooks != nil && s.past.begun && !k.out.left {
		s.o.Hooks.Run(ctx, hook.Input{Base: s.endBase(), Event: protocol.SessionEndHook{Reason: "clear"}})
	}
	conversation := s.o.Clock.NewID()
	k.out.emit(&protocol.Frame{
		Type: "conversation_reset",
		Fields: []protocol.Field{
			{Key: "new_conversation_id", Value: conversation},
			{Key: "uuid", Value: conversation},
			{Key: "trigger", Value: "clear"},
			{Key: "user_message_uuid", Value: id},
			{Key: "timestamp", Value: k.out.timestamp()},
		},
		SessionID: s.o.Live.SessionID(),
	})
	if err := k.out.gone(); err != nil {
		return err
	}
	if s.main.Tasks != nil {
		s.main.Tasks.Clear()
	}
	k.out.system("background_tasks_changed", protocol.Field{Key: "tasks", Value: []string{}})
	if err := k.out.gone(); err != nil {
		return err
	}
	k.reset()
	if err := k.hooks.sessionStart(ctx); err != nil {
		return err
	}
	k.prompts.recorded = protocol.Content{Text: c.LocalTags("clear")}
	k.out.emit(k.prompts.command())
	k.out.emit(&protocol.HiddenEvent{Event: k.output(slash.Call{Name: "clear", Args: c.Args}, "")})
	k.prompts.init(ctx)
	end := unasked("")
	end.local = "clear"
	return end
}

// reset forgets the conversation so far, its costs included.
func (k *localCommands) reset() {
	s := k.s
	s.past.resumed, s.past.begun, s.past.started, s.past.turns = false, false, "clear", 0
	s.books.reset()
	if s.main.Transcript == nil {
		return
	}
	id, path, err := s.main.Transcript.Reset()
	s.o.Live.Begin(id, path)
	if err != nil {
		k.out.unsaved(err)
	}
}

// compact replaces the conversation by a summary of it (spec: cli-contract
// 9.6).
func (k *localCommands) compact(ctx context.Context, c slash.Call) error {
	if k.s.past.turns == 0 && !k.s.past.resumed {
		return k.say(ctx, c, slash.Outcome{Text: "Error: No messages to compact", Failed: true, Unsaid: true}, nil)
	}
	if err := k.hooks.begin(ctx); err != nil {
		return err
	}
	k.prompts.recorded = protocol.Content{Text: c.LocalTags(c.Name)}
	k.out.system("status", protocol.Field{Key: "status", Value: "compacting"})
	in := protocol.PreCompactHook{Trigger: byHand}
	if c.Args != "" {
		in.CustomInstructions = &c.Args
	}
	work := compaction{k.turnContext}
	sum, err := work.sum(ctx, in)
	if err != nil {
		return err
	}
	switch {
	case sum.failed:
		return k.uncompacted(ctx, c, "exhausted", "Compaction failed: exhausted", work)
	case sum.refused != "":
		reason := "Compaction blocked by PreCompact hook: " + strings.TrimSpace(sum.refused)
		return k.uncompacted(ctx, c, "skipped: "+reason, reason, work)
	}
	k.prompts.init(ctx)
	shown := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: sum.text()}}, IsSynthetic: true, IsReplay: new(false)}
	k.out.stamp(shown)
	work.boundary(sum, shown.UUID)
	return k.compacted(shown, sum.reports)
}

// uncompacted says why a conversation stays as it is: to hosts, and to people.
func (k *localCommands) uncompacted(ctx context.Context, c slash.Call, problem, text string, work compaction) error {
	work.status("failed", problem)
	k.prompts.init(ctx)
	k.out.emit(k.prompts.command())
	return k.reply(c, slash.Outcome{Text: text, Failed: true}, nil)
}

// compacted shows what stands in the conversation's place.
func (k *localCommands) compacted(shown *protocol.User, reports []string) error {
	yes := true
	said := slash.Output("Compacted " + strings.Join(reports, "\n"))
	told := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: said}}, IsReplay: &yes}
	k.out.stamp(told)
	for _, ev := range []protocol.Event{&protocol.Compacted{Summary: shown, Command: k.prompts.command(), Output: told, Reports: len(reports) > 0}, shown, told} {
		k.out.emit(ev)
	}
	end := unasked("")
	end.local = "compact"
	return end
}
