package messages

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/messages/fold"
	"github.com/claudeless/claudeless/internal/messages/history"
	"github.com/claudeless/claudeless/internal/messages/wire"
	"github.com/claudeless/claudeless/scenarios"
)

// messages answers POST /v1/messages.
func (x *exchange) messages() {
	if err := x.converse(); err != nil {
		x.failed(err)
	}
}

// turn is the answer to a request of a conversation on its way.
type turn struct {
	r     *history.Request
	f     *fold.Fold
	asked scenarios.Request
	reply scenarios.Reply
	pace  scenarios.Stream
	m     *wire.Message
	id    string // of the answer
}

// converse answers a request that is part of a conversation, or one beside it. An
// error is one that came before the answer.
func (x *exchange) converse() error {
	r, err := x.read()
	if err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if kind := r.Side(); kind != "" {
		x.beside(kind, r)
		return nil
	}
	t, err := x.fold(r)
	if err != nil {
		return err
	}
	strikes := t.f.Strikes()
	if strikes && t.reply.Failure.Type != scenarios.FailStreamFault {
		t.f.Failed()
	} else {
		t.f.Answered()
	}
	if err := x.hold(t.f.Held()); err != nil {
		return err
	}
	if err := x.wait(t); err != nil {
		return err
	}
	if strikes {
		x.fail(t)
	} else {
		x.headers(t.id)
		x.send(r, x.script(t, t.m), t.m)
	}
	x.observe(t)
	x.end()
	return nil
}

// fold finds out what the scenario says to a request.
func (x *exchange) fold(r *history.Request) (*turn, error) {
	t := &turn{r: r, f: x.s.folder.Fold(x.ns.memory, r), pace: x.s.Scenario.Stream}
	err := t.f.Run(x.r.Context())
	x.findings = append(x.findings, t.f.Findings()...)
	var answered bool
	t.asked, t.reply, answered = t.f.Reply()
	x.line.Messages, x.line.Attempt, x.line.Prompt = t.f.Kinds(), t.f.Attempt(), t.asked.Prompt
	x.line.Rule, x.line.File, x.line.Line = t.reply.Rule.Name, t.reply.Rule.File, t.reply.Rule.Line
	if err != nil || !answered {
		return nil, err
	}
	if t.reply.Unmatched && len(t.reply.NearMisses) > 0 {
		return nil, &history.RefusalError{Status: http.StatusBadRequest, Message: strings.Join(t.reply.NearMisses, "\n"), Final: true}
	}
	if t.reply.Stream != nil {
		t.pace = *t.reply.Stream
	}
	t.m = t.f.Compose(x.began)
	x.findings = append(x.findings, t.f.Findings()...)
	t.id = x.s.folder.ID("req", t.f.Key(), strconv.Itoa(t.f.Attempt()))
	return t, nil
}

// script is a message as events, at the pace of the answer.
func (x *exchange) script(t *turn, m *wire.Message) *wire.Script {
	return m.Play(wire.Manner{Pace: t.pace, Pad: x.s.Scenario.API.Pad, Seed: t.f.Key()})
}

// wait is the scripted delay of the answer.
func (x *exchange) wait(t *turn) error {
	d := time.Duration(t.reply.DelayMS) * time.Millisecond
	if ms := x.s.Scenario.Timeouts.ResponseDelayMS; ms != nil && t.asked.Results == nil {
		d += time.Duration(*ms) * time.Millisecond
	}
	if d <= 0 {
		return x.r.Context().Err()
	}
	return x.s.Clock.Sleep(x.r.Context(), d)
}

// observe tells the namespace what a conversation did, for expectations; what is
// sent again has been told.
func (x *exchange) observe(t *turn) {
	x.ns.mu.Lock()
	defer x.ns.mu.Unlock()
	x.ns.requests++
	if t.f.Attempt() > 1 {
		return
	}
	x.ns.seen.Request(scenarios.RequestSeen{Model: t.r.Model, AfterMS: float64(x.began.Sub(x.s.began)) / float64(time.Millisecond)})
	if t.reply.Rule.Name != "" {
		x.ns.seen.Rule(t.reply.Rule)
	}
	x.ns.misses = append(x.ns.misses, t.f.Misses()...)
	steps, uses := t.f.Last()
	for _, step := range steps {
		if step.Kind == history.Prompt || step.Kind == history.Added {
			x.ns.seen.Prompt(step.Text)
		}
		for _, r := range step.Results {
			x.called(r, uses)
		}
	}
}

// called tells of a call whose result came.
func (x *exchange) called(r *history.Result, uses []history.Use) {
	for _, u := range uses {
		if u.ID == r.ID {
			x.ns.seen.Call(u.Name, u.Input)
			x.line.Calls = append(x.line.Calls, journal.Called{Tool: u.Name, ToolUseID: u.ID, Input: u.Input, Result: r.Text, IsError: r.IsError})
		}
	}
}
