package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/executor"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/internal/failure"
	"github.com/claudeless/claudeless/simulator/model"
	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/claudeless/claudeless/simulator/task"
)

// exchange asks the model and yields what it answers, be it a failure.
type exchange struct {
	*turnContext
	current *message // the message being streamed; nil between messages
	last    answer
	// unstreamed says that a stream broke off and the next reply comes as a whole.
	unstreamed bool
}

// answer is what is known of the last reply.
type answer struct {
	text    string  // its last text; empty when it ends with a call
	stop    *string // nil = there was none
	message string  // its id
	request string  // that of its request
	shown   *string // in the place of the text; nil = the text
	empty   bool    // it said nothing at all
	more    bool    // another step comes after it
	goesOn  bool    // the next one goes on with it: over the API both are one
}

// note takes down a reply that is about to be streamed.
func (a *answer) note(h messageHead, blocks []protocol.Block) {
	before := *a
	a.message, a.request, a.text, a.shown, a.goesOn = h.id, h.request, "", nil, false
	a.empty = !slices.ContainsFunc(blocks, func(b protocol.Block) bool { text, ok := b.(protocol.TextBlock); return !ok || text.Text != "" })
	if before.goesOn && a.empty {
		a.text, a.shown, a.empty = before.text, before.shown, before.empty
		return
	}
	if _, ok := blocks[len(blocks)-1].(protocol.ToolUse); ok {
		return
	}
	for _, b := range slices.Backward(blocks) {
		if text, ok := b.(protocol.TextBlock); ok {
			a.text = text.Text
			return
		}
	}
}

// request asks the model once and yields its message. It returns the tool calls
// to run; the error may be a [turnEndError] instead.
func (x *exchange) request(ctx context.Context, req scenarios.Request) ([]call, error) {
	x.ledger.count()
	x.behind.drain(task.InTurn)
	if fits, err := (&compaction{x.turnContext}).fit(ctx, req); err != nil {
		return nil, err
	} else if !fits {
		return nil, x.giveUp(failure.API{Class: "invalid_request", Terminal: "blocking_limit", Text: "Prompt is too long"})
	}
	tools, err := x.s.o.Tools.Tools(ctx)
	if err != nil {
		return nil, err
	}
	req.Vars = x.s.vars(tools)
	if untold := x.s.past.untold; untold != nil {
		x.prompts.beside, x.s.past.untold = append(untold, x.prompts.beside...), nil
	}
	req.Vars.Context = x.prompts.beside
	x.prompts.tell()
	if err := x.out.gone(); err != nil {
		return nil, err
	}
	asked := x.s.o.Clock.Now()
	x.ledger.ask(asked)
	reply, err := x.s.o.Model.Next(ctx, req)
	if err != nil {
		return nil, err
	}
	if req.Added && reply.Unmatched { // the model has read it and says nothing of it
		return nil, x.matched(req, reply)
	}
	if err := x.before(ctx, req, reply); err != nil {
		return nil, err
	}
	x.unstreamed = false
	if f := reply.Failure; f != nil && !x.s.overcome(reply.Rule.Name, f) {
		err := x.fail(ctx, reply.Rule.Name, f)
		x.ledger.apiTime += x.s.o.Clock.Now().Sub(asked)
		if err != nil {
			return nil, err
		}
		x.unstreamed = f.Type == scenarios.FailStreamError && !f.Whole
	}
	x.last.more = reply.More
	calls, err := x.message(ctx, req, reply, tools)
	if err != nil {
		return nil, err
	}
	x.ledger.apiTime += x.s.o.Clock.Now().Sub(asked)
	return calls, nil
}

// before is what comes between a request and the first of its reply.
func (x *exchange) before(ctx context.Context, req scenarios.Request, reply scenarios.Reply) error {
	x.requesting()
	if err := x.matched(req, reply); err != nil {
		return err
	}
	if err := x.behind.sleep(ctx, x.delayOf(req, reply)); err != nil {
		return err
	}
	for _, f := range reply.Frames {
		if err := x.frame(f); err != nil {
			return err
		}
	}
	return x.out.gone()
}

// frame puts a frame of the scenario on the program's own output.
func (x *exchange) frame(f scenarios.Frame) error {
	switch {
	case f.Stderr != "":
		x.out.emit(&protocol.Verbatim{Stderr: f.Stderr})
		return nil
	case f.JSON == nil:
		line := &protocol.Verbatim{Stdout: []byte(f.Line), Times: f.Times}
		if !f.Cut {
			line.End = []byte("\n")
		}
		x.out.emit(line)
		return nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(f.JSON, &keys); err != nil {
		return fmt.Errorf("a frame of the scenario: %w", err)
	}
	body := strings.TrimRight(string(f.JSON), " \n\t")
	body = body[:len(body)-1]
	for _, id := range []struct{ key, value string }{{"session_id", x.s.o.Live.SessionID()}, {"uuid", x.s.o.Clock.NewID()}} {
		if _, given := keys[id.key]; !given {
			body += fmt.Sprintf(",%q:%q", id.key, id.value)
		}
	}
	x.out.emit(&protocol.Verbatim{Stdout: []byte(body + "}\n")})
	return nil
}

// requesting shows that the model is asked, and what.
func (x *exchange) requesting() {
	defer x.prompts.repeat()
	if !x.s.o.Show.Partial {
		return
	}
	fields := []protocol.Field{{Key: "status", Value: "requesting"}}
	if len(x.prompts.in.UUIDs) > 0 {
		fields = append(fields, protocol.Field{Key: "user_message_uuids", Value: slices.Clone(x.prompts.in.UUIDs)})
	}
	x.out.system("status", fields...)
}

// matched tells the trace which rule answered, and ends the turn when the
// scenario says that a prompt without a rule is an error.
func (x *exchange) matched(req scenarios.Request, reply scenarios.Reply) error {
	if req.Results != nil {
		return nil
	}
	x.out.emit(&protocol.Matched{Prompt: req.Prompt, Rule: reply.Rule.Name, File: reply.Rule.File, Line: reply.Rule.Line, Injected: req.Injected})
	if !reply.Unmatched || len(reply.NearMisses) == 0 {
		return nil
	}
	return &turnEndError{subtype: "error_during_execution", isError: true, errors: reply.NearMisses}
}

func (x *exchange) delayOf(req scenarios.Request, reply scenarios.Reply) time.Duration {
	d := time.Duration(reply.DelayMS) * time.Millisecond
	if req.Results == nil {
		d += x.s.o.Show.ResponseDelay
	}
	return d
}

// message yields one message of the model, a block an event.
func (x *exchange) message(ctx context.Context, req scenarios.Request, reply scenarios.Reply, tools []protocol.Tool) ([]call, error) {
	blocks := slices.Clone(x.structured.add(reply)) // a model may give the same reply again
	if len(blocks) == 0 {
		blocks = []protocol.Block{protocol.Text("")}
	}
	usage := scenarios.Estimate(req, blocks) // of calls as they were written, before what they leave out is filled in
	if reply.Usage != nil {
		usage = *reply.Usage
	}
	index := executor.NewIndex(tools)
	for i, b := range blocks {
		switch b := b.(type) {
		case protocol.ToolUse:
			blocks[i] = x.resolve(b, index)
		case protocol.ThinkingBlock:
			blocks[i] = scenarios.Signed(b)
		}
	}
	m := x.begin(replyUsage{usage, scenarios.ThinkingTokens(blocks), reply.Usage != nil}, reply.Stream)
	m.index, m.whole = index, x.unstreamed
	m.stop = cmp.Or(reply.StopReason, scenarios.StopReason(blocks))
	m.place.GoesOn, m.place.More = x.last.goesOn, reply.More
	x.last.note(m.messageHead, blocks)
	if err := m.stream(ctx, blocks); err != nil {
		return nil, err
	}
	x.current, x.last.stop = nil, &m.stop
	if m.place.Displayed != nil {
		x.last.shown = m.place.Displayed
	}
	return m.calls, nil
}

// begin makes the message that is streamed from now on.
func (x *exchange) begin(sp replyUsage, stream *scenarios.Stream) *message {
	stream = cmp.Or(stream, &x.s.o.Show.Stream)
	name := x.s.resolved()
	x.current = &message{
		turnContext: x.turnContext, pace: scenarios.NewPace(*stream, x.s.o.Rand),
		messageHead: messageHead{id: x.out.apiID("msg"), request: x.out.apiID("req"), name: name, model: model.Wire(name), replyUsage: sp},
	}
	return x.current
}

// resolve gives a call its canonical name, an id and a complete input.
func (x *exchange) resolve(use protocol.ToolUse, index *executor.Index) protocol.ToolUse {
	use.Type = "tool_use"
	use.Name = index.Canonical(use.Name)
	if use.ID == "" {
		use.ID = x.out.apiID("toolu")
	}
	if len(use.Input) == 0 {
		use.Input = json.RawMessage("{}")
	}
	if tool, ok := index.Tool(use.Name); ok {
		use.Input = executor.Coerce(use.Input, tool.InputSchema)
	}
	if input := x.s.o.Tools.Prepare(use).Input; input != nil {
		use.Input = input
	}
	return use
}

// fail plays a failure: the retries that the real CLI makes, then its last
// words. Nil means that a retry went through and the reply follows.
func (x *exchange) fail(ctx context.Context, rule string, f *scenarios.Failure) error {
	switch f.Type {
	case scenarios.FailHang:
		<-ctx.Done()
		return ctx.Err()
	case scenarios.FailStreamFault: // of the wire, which this face does not have
		return nil
	case scenarios.FailCrash:
		return &CrashError{ExitCode: max(1, f.ExitCode), Signal: f.Signal}
	case scenarios.FailPartialResponse, scenarios.FailStreamError:
		if err := x.partial(ctx, f); err != nil {
			return err
		}
	case scenarios.FailConnectionTimeout:
		if err := x.behind.sleep(ctx, time.Duration(f.AfterMS)*time.Millisecond); err != nil {
			return err
		}
	default: // nothing comes before the failure
	}
	if f.Whole {
		x.s.past.failed[rule]++
		x.out.inject(failure.Severed, true)
		return nil
	}
	api := x.s.describe(f)
	if api.Stderr != "" {
		x.out.emit(&protocol.Verbatim{Stderr: api.Stderr})
	}
	recovered, err := x.retry(ctx, f, api, rule)
	if err != nil || recovered {
		return err
	}
	if trigger := api.Fallback(); trigger != "" && x.s.o.Limits.Fallback != "" && model.Resolve(x.s.o.Limits.Fallback) != x.s.resolved() {
		x.fallBack(trigger)
		return nil
	}
	if api.Terminal == "prompt_too_long" && x.s.past.leaf != "" && !x.s.o.Limits.NoCompact {
		done, err := (&compaction{x.turnContext}).auto(ctx, true)
		if err != nil || done && x.s.overcome(rule, f) {
			return err
		}
	}
	return x.giveUp(api)
}

// overcome tells whether a failure that strikes a number of times has struck
// often enough.
func (s *Simulator) overcome(rule string, f *scenarios.Failure) bool {
	return f.Times > 0 && s.past.failed[rule] >= f.Times
}

// fallBack goes on with another model, which answers (spec: cli-observed 10).
func (x *exchange) fallBack(trigger string) {
	original, name := x.s.resolved(), model.Resolve(x.s.o.Limits.Fallback)
	x.s.o.Live.SetModel(x.s.o.Limits.Fallback)
	content := fmt.Sprintf("Switched to %s due to high demand for %s", model.Display(name), model.Display(original))
	if trigger == "model_not_found" {
		content = fmt.Sprintf("Switched to %s because %s is not available", model.Display(name), model.Display(original))
	}
	x.out.system("model_fallback",
		protocol.Field{Key: "trigger", Value: trigger},
		protocol.Field{Key: "original_model", Value: original},
		protocol.Field{Key: "fallback_model", Value: name},
		protocol.Field{Key: "content", Value: content})
}

// retry asks again as often as the CLI would, and tells whether the request
// went through in the end. What a lesser request may mend is tried first, at
// once and without a word (spec: cli-observed 9).
func (x *exchange) retry(ctx context.Context, f *scenarios.Failure, api failure.API, rule string) (bool, error) {
	x.s.past.failed[rule]++
	for range api.Silent {
		if x.s.overcome(rule, f) {
			return true, nil
		}
		x.s.past.failed[rule]++
	}
	retries := max(0, x.s.o.Limits.Retries)
	tries := retries
	if api.RetryClass == "" {
		tries = 0
	}
	if api.Limit > 0 {
		tries = min(tries, api.Limit)
	}
	for attempt := 1; attempt <= tries; attempt++ {
		wait := x.backoff(attempt, api.After)
		ev := &protocol.APIRetry{
			Type: "system", Subtype: "api_retry", Attempt: attempt, MaxRetries: retries,
			RetryDelayMS: ms(wait), Error: api.RetryClass, SessionID: x.s.o.Live.SessionID(), UUID: x.s.o.Clock.NewID(),
		}
		if api.Status != 0 {
			ev.ErrorStatus = &api.Status
		}
		x.out.emit(ev)
		trace := &protocol.CLIRetry{Status: api.Status, Message: api.Message, Body: api.Message, RetryInMS: ms(wait), Attempt: attempt, MaxRetries: retries}
		if api.Kind != "" {
			trace.RequestID = x.out.apiID("req")
			trace.Body = api.Body(trace.RequestID)
		}
		x.out.emit(trace)
		if err := x.behind.sleep(ctx, time.Duration(float64(wait)*x.s.o.Limits.RetryScale)); err != nil {
			return false, err
		}
		if x.s.overcome(rule, f) {
			return true, nil
		}
		x.s.past.failed[rule]++
		if f.Type == scenarios.FailPartialResponse {
			if err := x.partial(ctx, f); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// backoff is the wait before retry n: 0.5 s doubling, up to a quarter more by
// chance, at most 35 s; a retry-after wins.
func (x *exchange) backoff(n int, after time.Duration) time.Duration {
	if after > 0 {
		return after
	}
	d := min(500*time.Millisecond<<min(n-1, 10), 32*time.Second)
	if x.s.o.Rand != nil {
		d += time.Duration(float64(d) * 0.25 * x.s.o.Rand.Float64())
	}
	return d
}

// giveUp yields the synthetic message that stands for the failed reply, and ends
// the turn.
func (x *exchange) giveUp(api failure.API) error {
	stop, sequence := cmp.Or(api.Stop, "stop_sequence"), ""
	ev := &protocol.Assistant{
		Type: "assistant", Message: protocol.Synthetic(x.s.o.Clock.NewID(), api.Text, stop),
		SessionID: x.s.o.Live.SessionID(), UUID: x.s.o.Clock.NewID(), Timestamp: x.out.timestamp(),
		Error: api.Class, IsAPIErrorMessage: true, APIErrorStatus: api.Status, APIStatus: api.Status, APIErrorType: api.ErrorType(), APIError: api.Connection,
	}
	ev.Message.StopSequence = &sequence
	if api.Status != 0 {
		ev.RequestID = x.out.apiID("req")
	}
	if api.Stop == "refusal" {
		ev.Message.StopDetails = protocol.NullOf(protocol.StopDetails{Type: api.Stop})
	}
	if api.Connection == "prompt_too_long" || api.Terminal == "prompt_too_long" {
		ev.ErrorDetails = api.Body(ev.RequestID)
	}
	if api.Refused != "" {
		ev.RequestID, ev.RefusedMessageID = x.last.request, api.Refused
	}
	if api.Cut != "" {
		ev.APIErrorParams = map[string]string{"cut": api.Cut}
	}
	if api.Connection == failure.MediaRemoved {
		ev.APIErrorParams = map[string]string{"media": "image", "media_reason": "unprocessable"}
	}
	x.prompts.label(ev)
	x.out.emit(ev)
	x.last.text, x.last.shown = api.Text, nil
	return &turnEndError{subtype: "success", terminal: cmp.Or(api.Terminal, "api_error"), isError: true, stop: stop, api: &failureSummary{api.Status, api.ErrorType(), api.Connection}}
}

// partial streams the beginning of a reply that breaks off. Nothing of a block
// that had not ended is kept: what was streamed of it is abandoned.
func (x *exchange) partial(ctx context.Context, f *scenarios.Failure) error {
	if f.PartialText == "" {
		return nil
	}
	usage := scenarios.Estimate(scenarios.Request{Prompt: x.prompts.in.Content.Plain()}, []protocol.Block{protocol.Text(f.PartialText)})
	m := x.begin(replyUsage{usage: usage}, nil)
	if err := m.start(ctx); err != nil {
		return err
	}
	if f.Whole {
		if err := m.textBlock(ctx, 0, protocol.Text(f.PartialText)); err != nil {
			return err
		}
	} else if err := m.beginning(ctx, f.PartialText); err != nil {
		return err
	}
	x.current = nil
	m.breakOff()
	return nil
}
