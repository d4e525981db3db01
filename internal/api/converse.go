package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/api/history"
	"github.com/claudeless/claudeless/internal/api/replay"
	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/scenarios"
	"github.com/claudeless/claudeless/simulator/protocol"
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
	f     *replay.Replay
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
	defer x.end() // a connection that is given up may unwind from here
	if strikes {
		x.fail(t)
	} else {
		x.headers(t.id)
		x.send(r, x.script(t, t.m), t.m)
	}
	x.observe(t)
	return nil
}

// beside answers a request beside the conversation. It touches no rule and no
// count.
func (x *exchange) beside(kind string, r *history.Request) {
	last := r.Messages[len(r.Messages)-1]
	text := x.s.sideText(kind, last)
	if kind == "compact" {
		if summary, ok := x.ns.memory.Summary(x.r.Context(), &x.Client); ok {
			text = summary
		}
	}
	key := history.Digest{}.Chain("side", kind, last.FirstText(), r.Model)
	m := &wire.Message{ID: x.s.folder.ID("msg", key), Model: r.Model, Stop: "end_turn", Blocks: []protocol.Block{protocol.Text(text)}}
	m.Usage = scenarios.Estimate(scenarios.Request{Prompt: last.FirstText()}, m.Blocks)
	x.headers(x.s.folder.ID("req", key))
	x.send(r, m.Play(wire.StreamOptions{Pad: x.s.Scenario.API.Pad, Seed: key}), m)
	x.s.write(x.ns, journal.SideRequest{
		Namespace: x.Namespace, Session: x.Session, Kind: kind, Path: x.Path, Model: r.Model, Unclassified: kind == "other", Status: x.status, MS: x.ms(),
	})
}

// fold finds out what the scenario says to a request.
func (x *exchange) fold(r *history.Request) (*turn, error) {
	t := &turn{r: r, f: x.s.folder.Fold(x.ns.memory, r), pace: x.s.Scenario.Stream}
	err := t.f.Run(x.r.Context())
	x.findings = append(x.findings, t.f.Findings()...)
	x.brokenScript(t.f, err)
	var answered bool
	t.asked, t.reply, answered = t.f.Reply()
	x.line.Messages, x.line.Attempt, x.line.Prompt, x.line.Injected = t.f.Kinds(), t.f.Attempt(), t.asked.Prompt, t.asked.Injected
	x.line.Rule, x.line.File, x.line.Line = t.reply.Rule.Name, t.reply.Rule.File, t.reply.Rule.Line
	if err != nil || !answered {
		return nil, err
	}
	if nearest := x.unmatched(t); nearest != nil {
		return nil, &history.RefusalError{Status: http.StatusBadRequest, Message: strings.Join(nearest, "\n"), Final: true}
	}
	if t.reply.Stream != nil {
		t.pace = *t.reply.Stream
	}
	t.m = t.f.Compose(x.began)
	x.line.NotOffered = t.f.NotOffered()
	if text, file, line := t.f.Left(x.r.Context()); text != "" {
		x.line.Left = &journal.Unplayed{Text: text, File: file, Line: line}
	}
	x.findings = append(x.findings, t.f.Findings()...)
	t.id = x.s.folder.ID("req", t.f.Key(), strconv.Itoa(t.f.Attempt()))
	return t, nil
}

// unmatched returns why no rule matches the prompt, where such a prompt is an error;
// nil = it is answered. Text that the client itself has put in needs no rule.
func (x *exchange) unmatched(t *turn) []string {
	switch {
	case !t.reply.Unmatched || t.reply.Rule.Name != "":
		return nil
	case len(t.reply.NearMisses) > 0:
		return t.reply.NearMisses
	case t.asked.Results != nil || t.asked.Injected || !x.s.Strict && !strings.EqualFold(x.Header.Get("X-Claudeless-Strict"), "true"):
		return nil
	}
	return x.s.Scenario.Explain(t.asked.Prompt)
}

// brokenScript writes into the journal what failed or had no value in the templates of an answer.
func (x *exchange) brokenScript(f *replay.Replay, err error) {
	note := func(found journal.Finding) {
		x.findings = append(x.findings, found.Text)
		x.s.write(x.ns, found)
	}
	if broken, ok := errors.AsType[*scenarios.ScriptError](err); ok && x.r.Context().Err() == nil {
		note(journal.BrokenScript(broken.Rule.File, broken.Rule.Line, broken.Err.Error()))
	}
	for _, m := range f.Valueless() {
		note(journal.MissingValue(m.Rule.File, m.Rule.Line, m.Path))
	}
}

// script is a message as events, at the pace of the answer.
func (x *exchange) script(t *turn, m *wire.Message) *wire.EventList {
	return m.Play(wire.StreamOptions{Pace: t.pace, Pad: x.s.Scenario.API.Pad, Seed: t.f.Key()})
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

// hold waits at the gates of an answer: at those of other steps, then at its own.
// The error is the context's: where nobody comes the answer goes on, and the run has a
// finding.
func (x *exchange) hold(held []replay.PendingGate) error {
	for _, h := range held {
		at := h.After
		var err error
		if h.Gate != "" {
			at = h.Gate
			err = x.ns.gates.reach(at)
			x.gate(at, "reached")
		}
		if err == nil {
			err = x.ns.gates.await(x.r.Context(), at)
		}
		if ctx := x.r.Context(); ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			x.gate(at, "released")
			continue
		}
		if errors.Is(err, gate.ErrTimeout) {
			x.gate(at, "timeout")
		}
		x.findings = append(x.findings, "the gate "+at+" was not released: "+err.Error())
		x.s.write(x.ns, journal.Finding{
			ID: "T01", Level: "error", Text: "the gate " + at + " was not released: " + err.Error(),
			Advice: "release it: POST /_claudeless/gates/" + at + "/release", File: h.Rule.File, Line: h.Rule.Line,
		})
	}
	return nil
}

// gate notes what became of an answer at a gate.
func (x *exchange) gate(name, event string) {
	x.ns.mu.Lock()
	i := slices.IndexFunc(x.ns.stood, func(g gateState) bool { return g.Name == name })
	if i < 0 {
		x.ns.stood, i = append(x.ns.stood, gateState{Name: name}), len(x.ns.stood)
	}
	x.ns.stood[i].Reached = x.ns.stood[i].Reached || event == "reached"
	x.ns.stood[i].Waiting = event == "reached"
	x.ns.mu.Unlock()
	x.s.write(x.ns, journal.Gate{Name: name, Event: event})
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
	seen := x.seen()
	seen.Request(scenarios.RequestSeen{Model: t.r.Model, AfterMS: float64(x.began.Sub(x.s.began)) / float64(time.Millisecond)})
	if t.reply.Rule.Name != "" {
		seen.Rule(t.reply.Rule)
	}
	for _, m := range t.f.Misses() {
		x.ns.misses = append(x.ns.misses, m)
		x.line.Unmet = append(x.line.Unmet, journal.Expectation{File: m.At.File, Line: m.At.Line, Text: m.Text, Got: m.Got})
	}
	steps, uses := t.f.Last()
	for _, step := range steps {
		if step.Kind == history.Added {
			x.line.Added = append(x.line.Added, step.Text)
		}
		if step.Kind == history.Prompt || step.Kind == history.Added {
			seen.Prompt(step.Text)
		}
		for _, r := range step.Results {
			x.called(r, uses, seen, step.Kind)
		}
	}
}

// seen is what is told of conversations: nothing is kept where no expectation asks
// for it, so that a server that runs for days does not grow.
func (x *exchange) seen() *scenarios.Seen {
	if len(x.s.Scenario.Expect) == 0 {
		return &scenarios.Seen{}
	}
	return &x.ns.seen
}

// called tells of a call whose result came.
func (x *exchange) called(r *history.Result, uses []history.Use, seen *scenarios.Seen, as history.Kind) {
	for _, u := range uses {
		if u.ID == r.ID {
			seen.Call(u.Name, u.Input)
			x.line.Calls = append(x.line.Calls, journal.Called{
				Tool: u.Name, ToolUseID: u.ID, Input: u.Input, Result: r.Text, IsError: r.IsError, Unasked: as == history.Closed,
			})
		}
	}
}
