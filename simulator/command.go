package simulator

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/simulator/hook"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// Commands are the slash commands of a session beside those that a conversation
// answers itself ([OwnCommand]).
type Commands interface {
	// Find returns the command of a name. One that is found comes before the
	// conversation's own of that name; false = there is none.
	Find(name string) (Command, bool)
	// Loaded tells /context what the session has loaded.
	Loaded() slash.Loaded
	// Grant lets permission rules count until the next call.
	Grant(rules []string)
}

// Command is one slash command.
type Command interface {
	// Run answers the command, or gives the text that the model reads in its
	// place; nil and nil = it is none after all.
	Run(ctx context.Context, c slash.Call) (*slash.Said, *slash.Expansion)
}

// OwnCommand tells whether a conversation answers a command itself: those are
// about its messages and what they cost.
func OwnCommand(name string) bool {
	switch name {
	case "clear", "reset", "new", "compact", "context", "usage", "cost", "stats":
		return true
	}
	return false
}

// noCommands are those of a session without any.
type noCommands struct{}

func (noCommands) Find(string) (Command, bool) { return nil, false }
func (noCommands) Loaded() slash.Loaded        { return slash.Loaded{} }
func (noCommands) Grant([]string)              {}

// agentCommands are those of an agent, which may not run what is the session's.
type agentCommands struct{ noCommands }

func (agentCommands) Find(name string) (Command, bool) { return Unavailable{}, OwnCommand(name) }

// Unavailable is a command that there is elsewhere only.
type Unavailable struct{}

// Run says so.
func (Unavailable) Run(_ context.Context, c slash.Call) (*slash.Said, *slash.Expansion) {
	said := slash.Unavailable(c.Name)
	return &said, nil
}

// find runs a command of the session.
func (t *turn) find(c slash.Call) (*slash.Said, *slash.Expansion) {
	command, ok := t.s.commands.Find(c.Name)
	if !ok {
		return nil, nil
	}
	return command.Run(t.ctx, c)
}

// own is what a command of the conversation itself does; nil = it is none.
func (t *turn) own(c slash.Call) func(slash.Call) (finish, error) {
	switch c.Name {
	case "clear", "reset", "new":
		return t.clear
	case "compact":
		return t.compact
	case "context":
		return t.context
	case "usage", "cost", "stats":
		return t.cost
	}
	return nil
}

// call reads the prompt as a slash command.
func (t *turn) call() (slash.Call, bool) {
	if t.in.Source == sourceSystem || t.in.NoQuery || t.in.Verbatim {
		return slash.Call{}, false
	}
	return slash.Parse(t.in.Content.Plain())
}

// under lets the turn run as its command wants it: what it may do unasked, and
// on which model. The function that is returned ends that.
func (t *turn) under(x *slash.Expansion) (undo func()) {
	commands := t.s.commands
	if x == nil {
		return func() { commands.Grant(nil) }
	}
	commands.Grant(x.Tools)
	before := t.s.o.Live.Model()
	if x.Model != "" && x.Model != "inherit" {
		t.s.o.Live.SetModel(x.Model)
	}
	during := t.s.o.Live.Model()
	return func() {
		commands.Grant(nil)
		if t.s.o.Live.Model() == during { // nobody has set another one
			t.s.o.Live.SetModel(before)
		}
	}
}

// blankText is what the CLI says to a prompt without a text.
const blankText = "Blank prompt — the message was only whitespace, so nothing was sent to the model."

// blank tells whether a prompt is white space only. The empty one is not.
func blank(in protocol.Content) bool {
	return in.Blocks == nil && in.Text != "" && strings.TrimSpace(in.Text) == ""
}

// refuseBlank answers a blank prompt without the model.
func (t *turn) refuseBlank() (finish, error) {
	id, err := t.take()
	if err != nil {
		return finish{}, err
	}
	if err := t.init(id); err != nil {
		return finish{}, err
	}
	text := blankText
	return finish{subtype: "success", untouched: true, result: &text}, t.system("informational",
		protocol.Field{Key: "content", Value: text}, protocol.Field{Key: "level", Value: "warning"})
}

// say answers a command with text of the CLI's own: init and a message that no
// model wrote.
func (t *turn) say(c slash.Call, said slash.Said, usage *slash.Context) (finish, error) {
	t.recorded = protocol.Content{Text: c.LocalTags(cmp.Or(said.Name, c.Name))}
	id, err := t.take()
	if err != nil {
		return finish{}, err
	}
	if err := t.init(id); err != nil {
		return finish{}, err
	}
	if said.Title != "" {
		if err := t.system("session_title_changed", protocol.Field{Key: "title", Value: said.Title}); err != nil {
			return finish{}, err
		}
	}
	end, err := t.reply(c, said, usage)
	if said.Absent {
		end.local = ""
	}
	return end, err
}

func (t *turn) reply(c slash.Call, said slash.Said, usage *slash.Context) (finish, error) {
	ev := t.output(slash.Call{Name: cmp.Or(said.Name, c.Name), Args: c.Args}, said.Text)
	if said.Failed {
		ev.LocalCommandSource = slash.Complaint(said.Text)
		ev.LocalCommandOutcome = &protocol.LocalOutcome{Kind: "failed"}
	}
	if usage != nil {
		raw, err := protocol.Marshal(usage)
		if err != nil {
			return finish{}, err
		}
		ev.ContextUsage = raw
	}
	return finish{subtype: "success", untouched: true, result: &said.Text, local: localName(cmp.Or(said.Result, c.Name))}, t.emit(ev)
}

// output is what a command of the CLI itself says, as a message.
func (t *turn) output(c slash.Call, text string) *protocol.Assistant {
	return &protocol.Assistant{
		Type: "assistant", Message: protocol.Synthetic(t.s.o.Clock.NewID(), text, "end_turn"),
		SessionID: t.s.o.Live.SessionID(), UUID: t.s.o.Clock.NewID(), Timestamp: t.timestamp(),
		LocalCommandSource: slash.Output(text), LocalCommandRun: &protocol.LocalCommand{Command: c.Name, Args: c.Args},
	}
}

// localName is a command's name as results write it.
func localName(name string) string { return strings.Trim(strings.ReplaceAll(name, "-", "_"), "_") }

func (t *turn) context(c slash.Call) (finish, error) {
	usage := t.s.Context()
	return t.say(c, slash.Said{Text: usage.Text()}, &usage)
}

// Context is how much of the model's context the session uses. It may be
// called while a turn runs.
func (s *Simulator) Context() slash.Context {
	name := s.resolved()
	return slash.NewContext(name, model.Of(name).ContextWindow, int(s.said.Load()), s.commands.Loaded())
}

func (t *turn) cost(c slash.Call) (finish, error) {
	return t.say(c, slash.Said{Text: t.s.Cost().Text(), Name: "usage"}, nil)
}

// Cost is what the session has cost so far. It must not be called while a turn
// runs.
func (s *Simulator) Cost() slash.Cost {
	cost := slash.Cost{USD: s.totalCost(), APIMS: ms(s.apiTime), WallMS: ms(s.wallTime), Requests: s.requests}
	if s.main.Transcript != nil {
		cost.Added, cost.Removed = s.main.Transcript.Lines()
	}
	for _, name := range sortedKeys(s.costs) {
		m := s.costs[name]
		cost.Models = append(cost.Models, slash.Model{
			Name: name, Input: m.InputTokens, Output: m.OutputTokens, CacheRead: m.CacheReadInputTokens,
			CacheNew: m.CacheCreationInputTokens, USD: m.CostUSD,
		})
	}
	return cost
}

// clear starts a new conversation (spec: cli-contract 9.6).
func (t *turn) clear(c slash.Call) (finish, error) {
	s := t.s
	id := t.uuid()
	if err := t.queued(); err != nil {
		return finish{}, err
	}
	if s.o.Hooks != nil && s.begun {
		s.o.Hooks.Run(t.ctx, hook.Input{Base: s.endBase(), Event: protocol.SessionEndHook{Reason: "clear"}})
	}
	conversation := s.o.Clock.NewID()
	err := t.emit(&protocol.Frame{
		Type: "conversation_reset",
		Fields: []protocol.Field{
			{Key: "new_conversation_id", Value: conversation},
			{Key: "uuid", Value: conversation},
			{Key: "trigger", Value: "clear"},
			{Key: "user_message_uuid", Value: id},
			{Key: "timestamp", Value: t.timestamp()},
		},
		SessionID: s.o.Live.SessionID(),
	})
	if err != nil {
		return finish{}, err
	}
	none := []protocol.Field{{Key: "tasks", Value: []string{}}}
	if s.main.Tasks != nil {
		s.main.Tasks.Clear()
	}
	if err := t.system("background_tasks_changed", none...); err != nil {
		return finish{}, err
	}
	if err := t.reset(); err != nil {
		return finish{}, err
	}
	if err := t.sessionStart(); err != nil {
		return finish{}, err
	}
	t.recorded = protocol.Content{Text: c.LocalTags("clear")}
	if err := t.emit(t.command()); err != nil {
		return finish{}, err
	}
	if err := t.emit(&protocol.Unshown{Event: t.output(slash.Call{Name: "clear", Args: c.Args}, "")}); err != nil {
		return finish{}, err
	}
	empty := ""
	return finish{subtype: "success", untouched: true, result: &empty, local: "clear"}, t.init(id)
}

// reset forgets the conversation so far, its costs included.
func (t *turn) reset() error {
	s := t.s
	s.resumed, s.begun, s.started = false, false, "clear"
	s.turnIndex, s.exhausted = 0, false
	s.said.Store(0)
	clear(s.costs)
	clear(s.since)
	if s.main.Transcript == nil {
		return nil
	}
	id, path, err := s.main.Transcript.Reset()
	s.o.Live.Begin(id, path)
	if err == nil {
		return nil
	}
	return t.emit(&protocol.Warning{Text: "the session is not saved: " + err.Error()})
}

// compact replaces the conversation by a summary of it (spec: cli-contract
// 9.6).
func (t *turn) compact(c slash.Call) (finish, error) {
	s := t.s
	if s.turnIndex == 0 && !s.resumed {
		return t.say(c, slash.Said{Text: "Not enough messages to compact."}, nil)
	}
	if err := t.begin(); err != nil {
		return finish{}, err
	}
	t.recorded = protocol.Content{Text: c.LocalTags(c.Name)}
	began, before := s.o.Clock.Now(), s.Context().TotalTokens
	summary := "This conversation goes on from an earlier part that was compacted. Summary of that part: the user sent " +
		plural(s.turnIndex, "prompt") + " and each was answered."
	reports, refused, err := t.compacting(c, summary)
	if err != nil {
		return finish{}, err
	}
	if err := t.init(t.uuid()); err != nil {
		return finish{}, err
	}
	if refused != "" {
		if err := t.emit(t.command()); err != nil {
			return finish{}, err
		}
		return t.reply(c, slash.Said{Text: "Compaction blocked by a hook: " + refused}, nil)
	}
	after := tokens(len(summary))
	err = t.system(
		"compact_boundary",
		protocol.Field{Key: "compact_metadata", Value: protocol.CompactMetadata{
			Trigger: "manual", PreTokens: before, PostTokens: after, DurationMS: ms(s.o.Clock.Now().Sub(began)), Dropped: max(0, before-after),
		}},
		protocol.Field{Key: "logical_parent_uuid", Value: s.leaf},
	)
	if err != nil {
		return finish{}, err
	}
	s.said.Store(int64(after))
	return t.compacted(summary, reports)
}

// compacting shows the work of a compaction and runs its hooks, of which it
// returns how they went; a hook's refusal is its reason.
func (t *turn) compacting(c slash.Call, summary string) (reports []string, refused string, err error) {
	if err := t.system("status", protocol.Field{Key: "status", Value: "compacting"}); err != nil {
		return nil, "", err
	}
	in := protocol.PreCompactHook{Trigger: "manual"}
	if c.Args != "" {
		in.CustomInstructions = &c.Args
	}
	out, err := t.runHooks(in)
	if err != nil {
		return nil, "", err
	}
	if err := t.emitAll(out.Notices); err != nil {
		return nil, "", err
	}
	done := []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: "success"}}
	if out.Block {
		done = []protocol.Field{{Key: "status", Value: nil}, {Key: "compact_result", Value: "failed"}, {Key: "compact_error", Value: out.Reason}}
		return nil, out.Reason, t.system("status", done...)
	}
	if err := t.sleep(t.s.o.Show.CompactDelay); err != nil {
		return nil, "", err
	}
	if _, err := t.runHooks(protocol.SessionStartHook{Source: sourceCompact, Model: t.s.resolved()}); err != nil {
		return nil, "", err
	}
	after, err := t.runHooks(protocol.PostCompactHook{Trigger: "manual", CompactSummary: summary})
	if err != nil {
		return nil, "", err
	}
	if err := t.emitAll(after.Notices); err != nil {
		return nil, "", err
	}
	return append(out.Reports, after.Reports...), "", t.system("status", done...)
}

// compacted shows what stands in the conversation's place.
func (t *turn) compacted(summary string, reports []string) (finish, error) {
	no, yes := false, true
	said := slash.Output("Compacted " + strings.Join(reports, "\n"))
	shown := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: summary}}, IsSynthetic: true, IsReplay: &no}
	told := &protocol.User{Message: protocol.UserContent{Role: "user", Content: protocol.Content{Text: said}}, IsReplay: &yes}
	t.stamp(shown)
	t.stamp(told)
	for _, ev := range []protocol.Event{&protocol.Compacted{Summary: shown, Command: t.command(), Output: told}, shown, told} {
		if err := t.emit(ev); err != nil {
			return finish{}, err
		}
	}
	empty := ""
	return finish{subtype: "success", untouched: true, result: &empty, local: "compact"}, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
