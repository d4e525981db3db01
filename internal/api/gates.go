package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/api/wire"
	"github.com/claudeless/claudeless/internal/exec/gate"
)

// gates are points at which answers wait until they are released. A gate stays reached or released.
type gates interface {
	markReached(name string) error
	waitUntilReleased(ctx context.Context, name string) error // returns the error of ctx, or [gate.ErrGateWaitTimedOut]
	release(name string) error
}

// gatesInSharedDirectory are the gates of a directory, which other processes share.
type gatesInSharedDirectory string

func (d gatesInSharedDirectory) markReached(name string) error {
	return gate.MarkGateReached(string(d), name)
}

func (d gatesInSharedDirectory) release(name string) error { return gate.Release(string(d), name) }

func (d gatesInSharedDirectory) waitUntilReleased(ctx context.Context, name string) error {
	return gate.AwaitReleased(ctx, string(d), name, gate.DefaultMaxWaitAtGate)
}

// localGates are the gates of one namespace. The zero value is ready to use.
type localGates struct {
	mu       sync.Mutex
	released map[string]chan struct{} // the channel of each gate, which is closed when the gate is released
}

// gateChannel returns the channel that is closed when a gate is released. The mutex must be held.
func (o *localGates) gateChannel(name string) chan struct{} {
	if o.released == nil {
		o.released = map[string]chan struct{}{}
	}
	if o.released[name] == nil {
		o.released[name] = make(chan struct{})
	}
	return o.released[name]
}

func (o *localGates) markReached(name string) error { return gate.CheckName(name) }

func (o *localGates) release(name string) error {
	if err := gate.CheckName(name); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	opens := o.gateChannel(name)
	select {
	case <-opens:
	default:
		close(opens)
	}
	return nil
}

func (o *localGates) waitUntilReleased(ctx context.Context, name string) error {
	o.mu.Lock()
	opens := o.gateChannel(name)
	o.mu.Unlock()
	select {
	case <-opens:
		return nil
	case <-time.After(gate.DefaultMaxWaitAtGate):
		return gate.ErrGateWaitTimedOut
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) serveGate(w http.ResponseWriter, ns *requestNamespace, route string) {
	name, ok := strings.CutSuffix(route, "/release")
	if !ok {
		answerJSON(w, http.StatusNotFound, wire.ErrorBody{Type: "not_found_error", Message: "POST /_claudeless/gates/NAME/release opens a gate"})
		return
	}
	if err := ns.gates.release(name); err != nil {
		answerJSON(w, http.StatusBadRequest, wire.ErrorBody{Type: "invalid_request_error", Message: err.Error()})
		return
	}
	answerJSON(w, http.StatusOK, healthAnswer{OK: true})
}
