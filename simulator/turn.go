package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/slash"
)

// errStopped unwinds a turn whose consumer has left the loop.
var errStopped = errors.New("the consumer stopped")

// Turn runs one prompt and yields its events in order, ending with exactly one
// result. Cancelling ctx interrupts the turn as the real CLI does: it still
// ends with a result (spec: cli-contract 4.4). Breaking out of the loop abandons
// it. The error is non-nil only as the last pair: a [*CrashError] of the scenario, or
// a failure of this program. Turns of one simulator must not overlap.
func (s *Simulator) Turn(ctx context.Context, in protocol.UserMessage) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		t := &turn{s: s, ctx: ctx, yield: yield, in: in, started: s.o.Clock.Now()}
		if in.UUIDs == nil && in.UUID != "" {
			t.in.UUIDs = []string{in.UUID}
		}
		err := t.run()
		s.turnIndex++
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// turn is the state of one prompt, from its first event to its result.
type turn struct {
	s       *Simulator
	ctx     context.Context //nolint:containedctx // a turn is one call; its ctx is that call's
	yield   func(protocol.Event, error) bool
	in      protocol.UserMessage
	started time.Time

	usage    scenarios.Usage
	thinking int
	denials  []protocol.PermissionDenial
	users    int // top-level user events so far
	rounds   int // tool rounds so far

	lastText   string
	stopReason *string
	asked      bool          // the model has been asked at least once
	apiTime    time.Duration // spent waiting for the model
	firstAsked time.Time
	firstInput *int // tokens of the turn's first request; nil = none was answered
	firstToken time.Time

	id          string           // uuid of the prompt; empty = not made yet
	recorded    protocol.Content // the prompt as transcripts keep it
	promptID    string
	displayID   string   // of the turn, for hooks of MessageDisplay; empty = not made yet
	beside      []string // what hooks and mentioned files told the model so far
	stopBlocks  int      // Stop hooks that kept this turn going so far
	prevented   bool     // a Stop hook has answered continue: false
	cuts        int      // replies cut short so far
	safetyStops int      // refusals so far
	messageID   string   // of the last reply
	requestID   string   // of its request
	prodded     bool     // an empty reply was asked about
	empty       bool     // the last reply said nothing at all
	structured  structuredState
	left        bool     // the consumer has left the loop
	current     *message // the message being streamed; nil between messages
	latest      *message // the last one, if it is not part of the turn's usage yet
	inTools     bool     // calls are running or have been refused
	more        bool     // the last reply has another step after it
	named       bool     // an assistant event has named the prompts
	namedBegin  bool     // a message_start has
	waiting     []string // absorbed prompts that no reply has followed up
	taken       []string // ids of the absorbed prompts that have one
}

// finish is how a turn ends.
type finish struct {
	subtype    string // "success" or one of the error subtypes
	terminal   string // terminal_reason; empty = left out
	isError    bool
	errors     []string
	api        *apiFailure
	structured json.RawMessage
	deferred   *protocol.ToolUse
	result     *string // nil = the last assistant text
	stop       string  // stop_reason; empty = the last reply's
	untouched  bool    // the model loop never ran
	exhausted  bool    // the last reply is one too many: it is no part of the turn's usage
	local      string  // the slash command that ran; empty = none
}

func (t *turn) run() error {
	end, err := t.play()
	if err != nil {
		if t.ctx.Err() == nil || errors.Is(err, errStopped) {
			return err
		}
		if end, err = t.interrupted(); err != nil {
			return err
		}
	}
	return t.close(end)
}

// play yields everything of the turn but its result.
func (t *turn) play() (finish, error) {
	if t.in.Source == sourceDeferred {
		return t.answerDeferred()
	}
	t.recorded = t.in.Content
	if blank(t.in.Content) {
		return t.refuseBlank()
	}
	var command *slash.Expansion
	call, isCall := t.call()
	if isCall {
		said, expansion := t.find(call)
		if said != nil {
			return t.say(call, *said, nil)
		}
		if run := t.own(call); run != nil && expansion == nil {
			return run(call)
		}
		command = expansion
	}
	defer t.under(command)()
	if command != nil {
		t.recorded = protocol.Content{Text: call.Tags()}
	}
	if err := t.begin(); err != nil {
		return finish{}, err
	}
	sub, err := t.submit(call, command)
	if err != nil || sub.died {
		return deref(sub.end), err
	}
	if err := t.init(t.uuid()); err != nil {
		return finish{}, err
	}
	if err := t.emitAll(sub.notices); err != nil || sub.end != nil {
		return deref(sub.end), err
	}
	if t.in.NoQuery {
		empty := ""
		return finish{subtype: "success", untouched: true, result: &empty}, nil
	}
	req := scenarios.Request{Prompt: t.in.Content.Plain(), Injected: t.in.Source == sourceSystem, Notice: t.in.Source == sourceSystem}
	if command != nil {
		req = scenarios.Request{Prompt: command.Text}
	}
	if err := t.attach(req.Prompt); err != nil {
		return finish{}, err
	}
	return t.converse(req)
}

// take begins the turn of a command of the CLI itself; it returns the uuid of
// the prompt.
func (t *turn) take() (string, error) {
	if err := t.begin(); err != nil {
		return "", err
	}
	return t.uuid(), t.emit(t.command())
}

// begin names the prompt and yields its coming and the session's start.
func (t *turn) begin() error {
	if err := t.queued(); err != nil {
		return err
	}
	t.promptID = t.s.o.Clock.NewID()
	t.s.o.Live.prompt(t.promptID)
	return t.sessionStart()
}

func (t *turn) queued() error {
	return t.emit(&protocol.Queued{Content: t.in.Content, Timestamp: t.timestamp()})
}

// prompted yields the prompt's trace; refused says that a hook kept it out of
// the conversation.
func (t *turn) prompted(refused bool) error {
	prompt := t.prompt()
	prompt.Refused = refused
	return t.emit(prompt)
}

// command is the trace of a prompt that is a command of the CLI itself.
func (t *turn) command() *protocol.Prompted {
	prompt := t.prompt()
	prompt.Local = true
	return prompt
}

func (t *turn) prompt() *protocol.Prompted {
	return &protocol.Prompted{
		UUID: t.uuid(), HostID: t.in.UUID, PromptID: t.promptID, Content: t.recorded, Timestamp: t.timestamp(), Merged: t.merged(),
		PermissionMode: t.s.o.Here.Mode(), Source: cmp.Or(t.in.Source, "sdk"), Origin: t.in.Origin,
	}
}

// uuid is that of the prompt: the host's, or a fresh one.
func (t *turn) uuid() string {
	if t.id == "" {
		t.id = t.in.UUID
	}
	if t.id == "" {
		t.id = t.s.o.Clock.NewID()
	}
	return t.id
}

// init yields the init event and, if asked to, the prompt itself.
func (t *turn) init(id string) error {
	var init protocol.Init
	if t.s.main.Init != nil {
		init = t.s.main.Init(t.ctx)
	}
	init.Type, init.Subtype = "system", "init"
	init.SessionID, init.UUID = t.s.o.Live.SessionID(), t.s.o.Clock.NewID()
	init.Model, init.PermissionMode = t.s.resolved(), t.s.o.Here.Mode()
	init.PerTurnEffortActive = model.Of(init.Model).Effort
	init.UserMessageUUIDs = t.in.UUIDs
	if err := t.emit(&init); err != nil || t.in.Source == sourceDeferred {
		return err
	}
	return t.replay(t.in, id)
}

// converse asks the model until it has nothing more to run.
func (t *turn) converse(req scenarios.Request) (finish, error) {
	if t.s.exhausted {
		return t.budgetSpent(), nil
	}
	for {
		calls, end, err := t.request(req)
		if err != nil || end != nil {
			return deref(end), err
		}
		if t.overBudget() {
			return t.budgetSpent(), nil
		}
		next, end, err := t.after(calls)
		if err != nil || end != nil {
			return deref(end), err
		}
		if next == nil {
			return t.ended(), nil
		}
		req = *next
	}
}

// after is what follows a reply: the next request, an end that is none of the
// usual, or nil and nil when the turn is over.
func (t *turn) after(calls []call) (*scenarios.Request, *finish, error) {
	if len(calls) == 0 {
		return t.answered()
	}
	results, end, err := t.toolRound(calls)
	if err != nil || end != nil {
		return nil, end, err
	}
	if end, err := t.batchDone(calls, results); err != nil || end != nil {
		return nil, end, err
	}
	if t.rounds++; t.s.o.Limits.Turns != 0 && t.rounds >= t.s.o.Limits.Turns {
		spent := t.turnsSpent()
		return nil, &spent, nil
	}
	if err := t.absorb(); err != nil {
		return nil, nil, err
	}
	return &scenarios.Request{Results: results}, nil, nil
}

// answered is [turn.after] for a reply that has nothing to run.
func (t *turn) answered() (*scenarios.Request, *finish, error) {
	text, end, err := t.cutShort()
	if err != nil || end != nil {
		return nil, end, err
	}
	if t.more {
		return &scenarios.Request{Results: []scenarios.Result{}}, nil, nil
	}
	if text == "" {
		if prompt, ok := t.unanswered(); ok {
			return &scenarios.Request{Prompt: prompt, Added: true}, nil, nil
		}
		again := false
		if text, again, err = t.goOn(); err != nil || !again {
			return nil, nil, err
		}
	}
	return &scenarios.Request{Prompt: text, Injected: true}, nil, nil
}

// ended is how a turn ends that has nothing more to do.
func (t *turn) ended() finish {
	if t.prevented {
		return finish{subtype: "success", terminal: "stop_hook_prevented"}
	}
	return finish{subtype: "success", terminal: "completed"}
}

// goOn tells whether the CLI itself asks the model again although it has
// nothing more to run: for a structured output, or because of a Stop hook.
func (t *turn) goOn() (text string, again bool, err error) {
	if text, again = t.structured.reminder(t.s.main.Schema); again {
		return text, true, t.inject(text, true)
	}
	return t.keepGoing()
}

// inject yields text that the CLI itself puts into the conversation.
func (t *turn) inject(text string, synthetic bool) error {
	return t.emit(t.injected(text, synthetic))
}

func (t *turn) injected(text string, synthetic bool) *protocol.User {
	content := protocol.Content{Blocks: []protocol.Block{protocol.Text(text)}}
	return &protocol.User{
		Type: "user", Message: protocol.UserContent{Role: "user", Content: content},
		SessionID: t.s.o.Live.SessionID(), UUID: t.s.o.Clock.NewID(), Timestamp: t.timestamp(), IsSynthetic: synthetic,
	}
}

// close yields the result.
func (t *turn) close(end finish) error {
	if !end.exhausted {
		t.count()
	}
	s := t.s
	r := &protocol.Result{
		Type: "result", Subtype: end.subtype, IsError: end.isError,
		DurationMS: ms(s.o.Clock.Now().Sub(t.started)), DurationAPIMS: ms(t.apiTime),
		SessionID: s.o.Live.SessionID(), UUID: s.o.Clock.NewID(), NumTurns: t.numTurns(end),
		StopReason: t.stopReason, TotalCostUSD: s.totalCost(),
		Usage: finalUsage(t.usage, t.thinking), ModelUsage: s.modelUsage(),
		PermissionDenials: append([]protocol.PermissionDenial{}, t.denials...),
		TerminalReason:    end.terminal,
		FastModeState:     "off", FastModeDisabledReason: "sdk_opt_in_required",
		SubagentStats: s.subagents(),
		SafetyStops:   &t.safetyStops, QueuedTurnCount: new(int),
		ResultIndex: s.resultIndex, Errors: end.errors, Origin: t.origin(),
		StructuredOutput: end.structured, LocalCommand: end.local,
	}
	s.apiTime += t.apiTime
	s.wallTime += s.o.Clock.Now().Sub(t.started)
	r.UserMessageUUID, r.UserMessageUUIDs = t.names()
	if s.main.Prompts != nil {
		*r.QueuedTurnCount = s.main.Prompts.Waiting()
	}
	if end.stop != "" {
		r.StopReason = &end.stop
	}
	if end.deferred != nil {
		r.DeferredToolUse = &protocol.DeferredToolUse{ID: end.deferred.ID, Name: end.deferred.Name, Input: end.deferred.Input}
	}
	if end.subtype == "success" {
		t.closeSuccess(r, end)
	}
	if s.o.Show.Compat {
		r.CostUSD = &r.TotalCostUSD
	}
	since := s.takeSince()
	r.ModelUsageSince = &since
	s.resultIndex++
	if err := t.settle(r); err != nil {
		return err
	}
	return t.emit(r)
}

// origin is where the turn's prompt came from, as its result says it.
func (t *turn) origin() json.RawMessage {
	if t.in.Synthetic {
		return json.RawMessage(`{"kind":"unclassified"}`)
	}
	return t.in.Origin
}

// numTurns counts the user events of the turn and the prompt itself; a turn
// that never reached the model has none.
func (t *turn) numTurns(end finish) int {
	if end.untouched {
		return 0
	}
	return 1 + t.users
}

// closeSuccess fills what only the success subtype has, API errors included.
func (t *turn) closeSuccess(r *protocol.Result, end finish) {
	r.Result = end.result
	if r.Result == nil {
		r.Result = &t.lastText
	}
	if end.deferred != nil {
		return
	}
	if t.asked {
		r.APIErrorStatus = protocol.NullNow[int]()
	}
	if f := end.api; f != nil {
		if f.status != 0 {
			r.APIErrorStatus = protocol.NullOf(f.status)
		}
		r.APIErrorType, r.APIError = f.kind, f.connection
		return
	}
	if !t.firstToken.IsZero() {
		toRequest, ttft := ms(t.firstAsked.Sub(t.started)), ms(t.firstToken.Sub(t.firstAsked))
		frame := ms(t.firstToken.Sub(t.started))
		stream := ttft
		r.TTFTMS, r.TTFTStreamMS, r.TimeToRequestMS, r.FirstContentFrameMS = &ttft, &stream, &toRequest, &frame
		if t.in.UUID != "" {
			r.RequestSentWallMS, r.FirstInputTokens, r.FirstCacheReadTokens = t.firstAsked.UnixMilli(), t.firstInput, new(int)
		}
	}
}

// emit records an event and hands it to the consumer.
func (t *turn) emit(ev protocol.Event) error {
	if u, ok := ev.(*protocol.User); ok && u.ParentToolUseID == nil && u.IsReplay == nil {
		t.users++
	}
	if a, ok := ev.(*protocol.Assistant); ok && a.ParentToolUseID == nil {
		t.s.leaf = a.UUID
	}
	if tr := t.s.main.Transcript; tr != nil && !t.s.warned {
		if err := tr.Record(ev); err != nil {
			t.s.warned = true
			if err := t.emit(&protocol.Warning{Text: "the session is not saved: " + err.Error()}); err != nil {
				return err
			}
		}
	}
	if !t.yield(ev, nil) {
		return errStopped
	}
	return nil
}

// sleep waits; a cancelled turn gives the ctx's error.
func (t *turn) sleep(d time.Duration) error {
	if d <= 0 {
		return t.ctx.Err()
	}
	return t.wait(d)
}

// timestampFormat is that of all timestamps on the stream.
const timestampFormat = "2006-01-02T15:04:05.000Z"

func (t *turn) timestamp() string { return t.s.o.Clock.Now().UTC().Format(timestampFormat) }

// apiID makes an id as the API writes them: msg_01…, toolu_01…, req_01….
func (t *turn) apiID(prefix string) string {
	return prefix + "_01" + strings.ReplaceAll(t.s.o.Clock.NewID(), "-", "")[:22]
}

func ms(d time.Duration) int { return int(d / time.Millisecond) }

func deref(f *finish) finish {
	if f == nil {
		return finish{}
	}
	return *f
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
