package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/internal/base/jsvalue"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// questions are our requests to the host. Each has one answer: the host's, or
// the reason why there is none.
type questions struct {
	out *frameWriter

	mu      sync.Mutex
	open    bool // the host can answer
	pending map[string]*question
}

// question is one request of ours.
type question struct {
	id     string
	answer chan reply // cap 1
	frame  json.RawMessage
	kind   kind
	over   <-chan struct{} // closed when nobody waits any more
}

// kind says what a question is part of.
type kind int

const (
	ofServer      kind = iota // a message to an MCP server, of a turn or not
	ofWork                    // of a turn or a task: withdrawn when that is interrupted
	ofPermission              // the same, and shown to a host that connects anew
	ofElicitation             // withdrawn when any turn is interrupted
)

type reply struct {
	response json.RawMessage
	err      error
}

func (qs *questions) begin() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.open = true
}

// ask sends a request to the host and waits for its answer.
func (qs *questions) ask(ctx context.Context, request any, of kind) (json.RawMessage, error) {
	q, err := qs.put(ctx, request, of)
	if err != nil {
		return nil, err
	}
	return qs.await(ctx, q)
}

// put sends a request to the host.
func (qs *questions) put(ctx context.Context, request any, of kind) (*question, error) {
	id := qs.out.stamps.NewID()
	frame, err := protocol.Marshal(outgoing{Type: "control_request", RequestID: id, Request: request})
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := &question{id: id, answer: make(chan reply, 1), frame: frame, kind: of, over: ctx.Done()}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.open {
		return nil, errNotAsked
	}
	qs.pending[id] = q
	qs.out.lines.put(frame)
	return q, nil
}

// await waits for an answer. When ctx ends, the host is told that nobody waits
// any more.
func (qs *questions) await(ctx context.Context, q *question) (json.RawMessage, error) {
	select {
	case r := <-q.answer:
		return r.response, r.err
	case <-ctx.Done():
		qs.mu.Lock()
		defer qs.mu.Unlock()
		qs.withdraw(q.id)
		return nil, ctx.Err()
	}
}

// withdraw gives up a question, once; qs.mu is held.
func (qs *questions) withdraw(id string) {
	q, waits := qs.pending[id]
	if !waits {
		return
	}
	delete(qs.pending, id)
	q.answer <- reply{err: context.Canceled}
	qs.out.write(withdrawal{"control_cancel_request", id})
}

// withdrawEnded gives up what nobody waits for since a turn or a task was
// ended, and what servers ask meanwhile.
func (qs *questions) withdrawEnded() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(qs.pending)) {
		q := qs.pending[id]
		select {
		case <-q.over:
			if q.kind != ofServer {
				qs.withdraw(id)
			}
		default:
			if q.kind == ofElicitation {
				qs.withdraw(id)
			}
		}
	}
}

// settle takes an answer of the host, whose frame is repeated to hosts that want
// to see what they send. Those that nobody waits for, late and second ones among
// them, are dropped.
func (qs *questions) settle(frame, raw json.RawMessage) {
	var r struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     json.RawMessage `json:"error"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	qs.mu.Lock()
	q := qs.pending[r.RequestID]
	delete(qs.pending, r.RequestID)
	qs.mu.Unlock()
	if q == nil {
		return
	}
	if qs.out.replay {
		qs.out.write(frame)
	}
	if r.Subtype == "error" {
		q.answer <- reply{err: &HostError{Text: hostText(r.Error)}}
		return
	}
	q.answer <- reply{response: r.Response}
}

// hostText words an error of the host; empty = it sent none.
func hostText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	return jsvalue.Word(raw)
}

// permissions are the permission questions without an answer, as they were
// sent; never nil.
func (qs *questions) permissions() []json.RawMessage {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	frames := []json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(qs.pending)) {
		if q := qs.pending[id]; q.kind == ofPermission {
			frames = append(frames, q.frame)
		}
	}
	return frames
}

// close is the end of stdin: nobody answers any more.
func (qs *questions) close() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.open = false
	for id, q := range qs.pending {
		delete(qs.pending, id)
		q.answer <- reply{err: ErrClosed}
	}
}
