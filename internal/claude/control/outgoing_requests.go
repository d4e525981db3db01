package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// outgoingRequests tracks our control requests to the host. Each gets exactly one answer: the host's, or an error.
type outgoingRequests struct {
	out *frameWriter

	mu        sync.Mutex
	stdinOpen bool // stdin is open, so that the host can answer
	pending   map[string]*outgoingRequest
}

type outgoingRequest struct {
	id        string
	answer    chan hostReply // cap 1
	frame     json.RawMessage
	kind      requestKind
	abandoned <-chan struct{} // closed when the caller no longer waits
}

// requestKind says what a control request belongs to, which determines when the request is withdrawn.
type requestKind int

const (
	requestKindServerMessage requestKind = iota // a message to an MCP server; never withdrawn by an interrupt
	requestKindHookCallback                     // belongs to a turn or task; withdrawn if this turn or task is interrupted
	requestKindPermission                       // like requestKindHookCallback, but the answer to an initialize request repeats it
	requestKindElicitation                      // withdrawn if any turn is interrupted
)

type hostReply struct {
	response json.RawMessage
	err      error
}

func (qs *outgoingRequests) markStdinOpen() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.stdinOpen = true
}

func (qs *outgoingRequests) sendAndAwaitAnswer(ctx context.Context, request any, kind requestKind) (json.RawMessage, error) {
	q, err := qs.sendRequest(ctx, request, kind)
	if err != nil {
		return nil, err
	}
	return qs.awaitAnswerOrWithdraw(ctx, q)
}

func (qs *outgoingRequests) sendRequest(ctx context.Context, request any, kind requestKind) (*outgoingRequest, error) {
	id := qs.out.metadata.NewID()
	frame, err := protocol.MarshalFields([]protocol.Field{{Key: "type", Value: "control_request"}, {Key: "request_id", Value: id}, {Key: "request", Value: request}})
	if err != nil {
		return nil, fmt.Errorf("encoding a control request: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := &outgoingRequest{id: id, answer: make(chan hostReply, 1), frame: frame, kind: kind, abandoned: ctx.Done()}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if !qs.stdinOpen {
		return nil, errRequestNotSent
	}
	qs.pending[id] = q
	qs.out.lines.queueLine(frame)
	protocol.NoteRequestSent(ctx)
	return q, nil
}

// awaitAnswerOrWithdraw waits for an answer. If ctx is cancelled first, it withdraws the request.
func (qs *outgoingRequests) awaitAnswerOrWithdraw(ctx context.Context, q *outgoingRequest) (json.RawMessage, error) {
	select {
	case r := <-q.answer:
		return r.response, r.err
	case <-ctx.Done():
		qs.mu.Lock()
		defer qs.mu.Unlock()
		qs.withdrawLocked(q.id)
		return nil, ctx.Err()
	}
}

// withdrawLocked cancels a request to the host, at most once. The caller holds qs.mu.
func (qs *outgoingRequests) withdrawLocked(id string) {
	q, waits := qs.pending[id]
	if !waits {
		return
	}
	delete(qs.pending, id)
	q.answer <- hostReply{err: context.Canceled}
	qs.out.writeFrame(&protocol.Frame{Type: "control_cancel_request", Fields: []protocol.Field{{Key: "request_id", Value: id}}})
}

// withdrawAbandonedAndElicitations withdraws the requests of turns and tasks that have ended, and all elicitations.
func (qs *outgoingRequests) withdrawAbandonedAndElicitations() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(qs.pending)) {
		q := qs.pending[id]
		select {
		case <-q.abandoned:
			if q.kind != requestKindServerMessage {
				qs.withdrawLocked(id)
			}
		default:
			if q.kind == requestKindElicitation {
				qs.withdrawLocked(id)
			}
		}
	}
}

// deliverResponse gives a response to its request, and echoes its frame if Options.Replay is set. Without a waiting request, it drops the
// response.
func (qs *outgoingRequests) deliverResponse(frame, raw json.RawMessage) {
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
	if qs.out.echoesPromptsAndResponses {
		qs.out.writeFrame(frame)
	}
	if r.Subtype == "error" {
		text := ""
		if len(r.Error) > 0 {
			text = plainjson.JSString(r.Error)
		}
		q.answer <- hostReply{err: &ResponseError{Text: text}}
		return
	}
	q.answer <- hostReply{response: r.Response}
}

// pendingPermissions returns the unanswered permission requests as they were sent; never nil.
func (qs *outgoingRequests) pendingPermissions() []json.RawMessage {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	frames := []json.RawMessage{}
	for _, id := range slices.Sorted(maps.Keys(qs.pending)) {
		if q := qs.pending[id]; q.kind == requestKindPermission {
			frames = append(frames, q.frame)
		}
	}
	return frames
}

// rejectPendingAndLaterRequests makes pending and later requests fail with ErrClosed, because stdin is at EOF.
func (qs *outgoingRequests) rejectPendingAndLaterRequests() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.stdinOpen = false
	for id, q := range qs.pending {
		delete(qs.pending, id)
		q.answer <- hostReply{err: ErrClosed}
	}
}

type incomingRequests struct {
	group sync.WaitGroup

	mu         sync.Mutex
	acceptsNew bool // new requests are accepted
	cancels    map[string]context.CancelFunc
}

func (e *incomingRequests) setAcceptsNew(acceptsNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.acceptsNew = acceptsNew
}

// startHandlerIfAccepting runs a request handler in a goroutine. It does nothing unless new requests are allowed.
func (e *incomingRequests) startHandlerIfAccepting(ctx context.Context, id string, run func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.acceptsNew {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e.cancels[id] = cancel
	e.group.Go(func() { // this goroutine ends when run returns; cancelling ctx stops it
		defer cancel()
		run(ctx)
	})
}

func (e *incomingRequests) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancels, id)
}

func (e *incomingRequests) cancelRequest(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.cancels[id]; cancel != nil {
		cancel()
	}
}

func (e *incomingRequests) hasActive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.cancels) > 0
}

func (e *incomingRequests) cancelAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.cancels {
		cancel()
	}
}
