package messages

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/gate"
	"github.com/claudeless/claudeless/internal/journal"
	"github.com/claudeless/claudeless/internal/messages/fold"
	"github.com/claudeless/claudeless/internal/messages/wire"
)

// gates are where answers wait until somebody lets them go on. What was reached or
// released stays so.
type gates interface {
	reach(name string) error
	await(ctx context.Context, name string) error // the error is ctx's, or [gate.ErrTimeout]
	release(name string) error
}

// shared are the gates of a directory, which other processes use as well.
type shared string

func (d shared) reach(name string) error   { return gate.Reach(string(d), name) }
func (d shared) release(name string) error { return gate.Release(string(d), name) }
func (d shared) await(ctx context.Context, name string) error {
	return gate.AwaitReleased(ctx, string(d), name, gate.Patience)
}

// own are the gates of one namespace. The zero value is ready.
type own struct {
	mu   sync.Mutex
	open map[string]chan struct{} // closed = it is released
}

// of is what opens when a gate is released. The mutex is held.
func (o *own) of(name string) chan struct{} {
	if o.open == nil {
		o.open = map[string]chan struct{}{}
	}
	if o.open[name] == nil {
		o.open[name] = make(chan struct{})
	}
	return o.open[name]
}

func (o *own) reach(name string) error { return gate.Check(name) }

func (o *own) release(name string) error {
	if err := gate.Check(name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	opens := o.of(name)
	select {
	case <-opens:
	default:
		close(opens)
	}
	return nil
}

func (o *own) await(ctx context.Context, name string) error {
	o.mu.Lock()
	opens := o.of(name)
	o.mu.Unlock()
	over := time.NewTimer(gate.Patience)
	defer over.Stop()
	select {
	case <-opens:
		return nil
	case <-over.C:
		return gate.ErrTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold waits at the gates of an answer: at those of other steps, then at its own.
// The error is the context's: where nobody comes the answer goes on, and the run has a
// finding.
func (x *exchange) hold(held []fold.Held) error {
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

// gateState is a gate in the state of a namespace.
type gateState struct {
	Name    string `json:"name"`
	Reached bool   `json:"reached"`
	Waiting bool   `json:"waiting"`
}

// release answers the control route of a gate.
func (s *service) release(w http.ResponseWriter, ns *namespace, route string) {
	name, ok := strings.CutSuffix(route, "/release")
	if !ok {
		answerJSON(w, http.StatusNotFound, wire.ErrorBody{Type: "not_found_error", Message: "POST /_claudeless/gates/NAME/release opens a gate"})
		return
	}
	if err := ns.gates.release(name); err != nil {
		answerJSON(w, http.StatusBadRequest, wire.ErrorBody{Type: "invalid_request_error", Message: err.Error()})
		return
	}
	answerJSON(w, http.StatusOK, health{OK: true})
}
