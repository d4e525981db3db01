package simulator

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// local answers prompts without the model: commands of the CLI itself, and blank
// ones.
type local struct{ *stage }

// call reads the prompt as a slash command.
func (k *local) call() (slash.Call, bool) {
	if k.prompts.in.Source == sourceSystem || k.prompts.in.NoQuery || k.prompts.in.Verbatim {
		return slash.Call{}, false
	}
	return slash.Parse(k.prompts.in.Content.Plain())
}

// under lets the turn run as its command wants it: what it may do unasked, and
// on which model. The function that is returned ends that.
func (k *local) under(x *slash.Expansion) (undo func()) {
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
func (k *local) find(ctx context.Context, c slash.Call) (*slash.Said, *slash.Expansion) {
	command, ok := k.s.commands.Find(c.Name)
	if !ok {
		return nil, nil
	}
	return command.Run(ctx, c)
}

// run is what a command of the conversation itself does ([OwnCommand]).
func (k *local) run(ctx context.Context, c slash.Call) error {
	switch c.Name {
	case "compact":
		return k.compact(ctx, c)
	case "context":
		usage := k.s.Context()
		return k.say(ctx, c, slash.Said{Text: usage.Text()}, &usage)
	case "usage", "cost", "stats":
		return k.say(ctx, c, slash.Said{Text: k.s.Cost().Text(), Name: "usage"}, nil)
	default:
		return k.clear(ctx, c)
	}
}

// blankText is what the CLI says to a prompt without a text.
const blankText = "Blank prompt — the message was only whitespace, so nothing was sent to the model."

// refuseBlank answers a blank prompt without the model.
func (k *local) refuseBlank(ctx context.Context) error {
	id, err := k.hooks.take(ctx)
	if err != nil {
		return err
	}
	if err := k.prompts.init(ctx, id); err != nil {
		return err
	}
	return unasked(blankText).after(k.out.inform(blankText, "warning"))
}

// say answers a command with text of the CLI's own: init and a message that no
// model wrote.
func (k *local) say(ctx context.Context, c slash.Call, said slash.Said, usage *slash.Context) error {
	k.prompts.recorded = protocol.Content{Text: c.LocalTags(cmp.Or(said.Name, c.Name))}
	id, err := k.hooks.take(ctx)
	if err != nil {
		return err
	}
	if err := k.prompts.init(ctx, id); err != nil {
		return err
	}
	if said.Title != "" {
		if err := k.out.titled(said.Title); err != nil {
			return err
		}
	}
	return k.reply(c, said, usage)
}

func (k *local) reply(c slash.Call, said slash.Said, usage *slash.Context) error {
	ev := k.output(slash.Call{Name: cmp.Or(said.Name, c.Name), Args: c.Args}, said.Text)
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
	if !said.Absent {
		end.local = localName(cmp.Or(said.Result, c.Name))
	}
	return end.after(k.out.emit(ev))
}

// output is what a command of the CLI itself says, as a message.
func (k *local) output(c slash.Call, text string) *protocol.Assistant {
	return &protocol.Assistant{
		Type: "assistant", Message: protocol.Synthetic(k.s.o.Clock.NewID(), text, "end_turn"),
		SessionID: k.s.o.Live.SessionID(), UUID: k.s.o.Clock.NewID(), Timestamp: k.out.timestamp(),
		LocalCommandSource: slash.Output(text), LocalCommandRun: &protocol.LocalCommand{Command: c.Name, Args: c.Args},
	}
}

// localName is a command's name as results write it.
func localName(name string) string { return strings.Trim(strings.ReplaceAll(name, "-", "_"), "_") }

// clear starts a new conversation (spec: cli-contract 9.6).
func (k *local) clear(ctx context.Context, c slash.Call) error {
	s := k.s
	id := k.prompts.uuid()
	if err := k.prompts.queued(); err != nil {
		return err
	}
	if s.o.Hooks != nil && s.past.begun {
		s.o.Hooks.Run(ctx, hook.Input{Base: s.endBase(), Event: protocol.SessionEndHook{Reason: "clear"}})
	}
	conversation := s.o.Clock.NewID()
	err := k.out.emit(&protocol.Frame{
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
	if err != nil {
		return err
	}
	none := []protocol.Field{{Key: "tasks", Value: []string{}}}
	if s.main.Tasks != nil {
		s.main.Tasks.Clear()
	}
	if err := k.out.system("background_tasks_changed", none...); err != nil {
		return err
	}
	if err := k.reset(); err != nil {
		return err
	}
	if err := k.hooks.sessionStart(ctx); err != nil {
		return err
	}
	k.prompts.recorded = protocol.Content{Text: c.LocalTags("clear")}
	if err := k.out.emit(k.prompts.command()); err != nil {
		return err
	}
	if err := k.out.emit(&protocol.Unshown{Event: k.output(slash.Call{Name: "clear", Args: c.Args}, "")}); err != nil {
		return err
	}
	end := unasked("")
	end.local = "clear"
	return end.after(k.prompts.init(ctx, id))
}

// reset forgets the conversation so far, its costs included.
func (k *local) reset() error {
	s := k.s
	s.past.resumed, s.past.begun, s.past.started, s.past.turns = false, false, "clear", 0
	s.books.reset()
	if s.main.Transcript == nil {
		return nil
	}
	id, path, err := s.main.Transcript.Reset()
	s.o.Live.Begin(id, path)
	if err == nil {
		return nil
	}
	return k.out.unsaved(err)
}

// compact replaces the conversation by a summary of it (spec: cli-contract
// 9.6).
func (k *local) compact(ctx context.Context, c slash.Call) error {
	s := k.s
	if s.past.turns == 0 && !s.past.resumed {
		return k.say(ctx, c, slash.Said{Text: "Not enough messages to compact."}, nil)
	}
	if err := k.hooks.begin(ctx); err != nil {
		return err
	}
	k.prompts.recorded = protocol.Content{Text: c.LocalTags(c.Name)}
	began, before := s.o.Clock.Now(), s.Context().TotalTokens
	summary := "This conversation goes on from an earlier part that was compacted. Summary of that part: the user sent " +
		plural(s.past.turns, "prompt") + " and each was answered."
	reports, refused, err := k.compacting(ctx, c, summary)
	if err != nil {
		return err
	}
	if err := k.prompts.init(ctx, k.prompts.uuid()); err != nil {
		return err
	}
	if refused != "" {
		if err := k.out.emit(k.prompts.command()); err != nil {
			return err
		}
		return k.reply(c, slash.Said{Text: "Compaction blocked by a hook: " + refused}, nil)
	}
	after := scenarios.Tokens(len(summary))
	err = k.out.system(
		"compact_boundary",
		protocol.Field{Key: "compact_metadata", Value: protocol.CompactMetadata{
			Trigger: "manual", PreTokens: before, PostTokens: after, DurationMS: ms(s.o.Clock.Now().Sub(began)), Dropped: max(0, before-after),
		}},
		protocol.Field{Key: "logical_parent_uuid", Value: s.past.leaf},
	)
	if err != nil {
		return err
	}
	s.books.said.Store(int64(after))
	return k.compacted(summary, reports)
}

// compacting shows the work of a compaction and runs its hooks, of which it
// returns how they went; a hook's refusal is its reason.
func (k *local) compacting(ctx context.Context, c slash.Call, summary string) (reports []string, refused string, err error) {
	if err := k.out.system("status", protocol.Field{Key: "status", Value: "compacting"}); err != nil {
		return nil, "", err
	}
	in := protocol.PreCompactHook{Trigger: "manual"}
	if c.Args != "" {
		in.CustomInstructions = &c.Args
	}
	out, err := k.hooks.run(ctx, in)
	if err != nil {
		return nil, "", err
	}
	if err := k.out.all(out.Notices); err != nil {
		return nil, "", err
	}
	done := []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: "success"}}
	if out.Block {
		done = []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: "failed"}, {Key: "compact_error", Value: out.Reason}}
		return nil, out.Reason, k.out.system("status", done...)
	}
	if err := k.behind.sleep(ctx, k.s.o.Show.CompactDelay); err != nil {
		return nil, "", err
	}
	if _, err := k.hooks.run(ctx, protocol.SessionStartHook{Source: sourceCompact, Model: k.s.resolved()}); err != nil {
		return nil, "", err
	}
	after, err := k.hooks.run(ctx, protocol.PostCompactHook{Trigger: "manual", CompactSummary: summary})
	if err != nil {
		return nil, "", err
	}
	if err := k.out.all(after.Notices); err != nil {
		return nil, "", err
	}
	return append(out.Reports, after.Reports...), "", k.out.system("status", done...)
}

// compacted shows what stands in the conversation's place.
func (k *local) compacted(summary string, reports []string) error {
	no, yes := false, true
	said := slash.Output("Compacted " + strings.Join(reports, "\n"))
	shown := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: summary}}, IsSynthetic: true, IsReplay: &no}
	told := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: said}}, IsReplay: &yes}
	k.out.stamp(shown)
	k.out.stamp(told)
	for _, ev := range []protocol.Event{&protocol.Compacted{Summary: shown, Command: k.prompts.command(), Output: told}, shown, told} {
		if err := k.out.emit(ev); err != nil {
			return err
		}
	}
	end := unasked("")
	end.local = "compact"
	return end
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
