// Package control is the SDK control protocol on stdin and stdout: it reads the
// host's frames, answers its requests, queues its prompts and asks it things.
//
// Its one invariant: stdin is read until it ends, whatever a turn, a request or
// a host that no longer reads stdout is doing; every request of the host is
// answered at most once, and every prompt is played in order. It must not know
// how a turn works: it is given a session and plays prompts with it.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Peer]. In, Out and NewID are required.
type Options struct {
	In    io.Reader
	Out   io.Writer
	NewID func() string // uuid v4
	// SessionID is the id on frames that belong to no turn; nil = "".
	SessionID func() string
	// Timestamp is the time now as frames write it; nil = "".
	Timestamp func() string
	// AwaitInitialize holds the first prompt back until initialize was answered
	// or stdin has ended (--await-initialize).
	AwaitInitialize bool
	// Replay repeats prompts that have no turn of their own: those dropped because
	// their uuid was seen before, and those that share the turn of a later one
	// (--replay-user-messages).
	Replay bool
	// OneByOne gives every prompt a turn of its own: none is joined with others
	// that wait, and none becomes part of a running turn.
	OneByOne bool
	// Ceiling is how long work may go on when no more prompts will come.
	Ceiling time.Duration
	// States says whether session_state_changed is shown.
	States StateEvents
}

// StateEvents says who is told about the session's state (spec: cli-contract
// 1.3, 3.4).
type StateEvents int

// The zero value shows no state events; HostOnly marks them as not for users.
const (
	StatesOff StateEvents = iota
	StatesHostOnly
	StatesOn
)

// ErrClosed says that stdin ended before the host had answered.
var ErrClosed = errors.New("stream closed before response received")

// errNotAsked is the [ErrClosed] of a question that came too late to be asked.
var errNotAsked = fmt.Errorf("nothing asked: %w", ErrClosed)

// HostError is a host's answer that it could not do what it was asked.
type HostError struct{ Text string }

func (e *HostError) Error() string { return e.Text }

// InputError ends the process: stdin holds a line that the CLI does not take.
// Its text is the real CLI's (spec: cli-observed 4).
type InputError struct{ Text string }

func (e *InputError) Error() string { return e.Text }

// Peer speaks with one host. Its asking methods may be called from many
// goroutines, before [Peer.Serve] as well: then they fail with [ErrClosed].
type Peer struct {
	o   Options
	out *lines

	manifests manifests

	wake     chan struct{} // cap 1: something that Serve waits for has changed
	handlers sync.WaitGroup

	mu       sync.Mutex
	s        Session
	life     context.Context //nolint:containedctx // of Serve; requests of the host live in it
	fail     context.CancelCauseFunc
	open     bool                          // stdin has not ended
	ended    bool                          // end_session: no more prompts are taken
	pending  map[string]*question          // our requests without an answer
	working  map[string]context.CancelFunc // requests of the host under way
	queue    queue
	greeting int    // initialize requests without an answer: other requests wait
	holds    int    // initialize requests without effect so far: no turn may start
	reached  func() // called when a server of the host is spoken to; nil = nobody waits
	// answered is closed when the initialize request that connects servers of the
	// host has its answer: what they say is heard after it. Nil = there is none.
	answered chan struct{}
	// quiet keeps servers of the host from being connected until it is closed; nil
	// = they may be.
	quiet    chan struct{}
	later    []incoming // requests that came meanwhile
	greeted  bool       // an initialize request has been answered
	turns    int        // turns begun
	first    *prompt    // First of the session until it is played
	current  *prompt
	cut      context.CancelCauseFunc // interrupts the current turn
	bursting bool                    // whole lines wait to be looked at
	calm     *sync.Cond              // bursting has ended
	lastSeen string                  // last session state shown
}

// question is one request of ours.
type question struct {
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

// New makes a peer; nothing is read or written before [Peer.Serve].
func New(o Options) *Peer {
	if o.SessionID == nil {
		o.SessionID = func() string { return "" }
	}
	if o.Timestamp == nil {
		o.Timestamp = func() string { return "" }
	}
	p := &Peer{
		o: o, out: newLines(o.Out), wake: make(chan struct{}, 1),
		pending: map[string]*question{}, working: map[string]context.CancelFunc{},
	}
	p.calm = sync.NewCond(&p.mu)
	return p
}

// Events is where the events of turns are written, each line in one call of
// Write. It slows down a turn whose host does not read.
func (p *Peer) Events() io.Writer { return p.out }

type outgoing struct {
	Type      string `json:"type"` // "control_request"
	RequestID string `json:"request_id"`
	Request   any    `json:"request"`
}

// ask sends a request to the host and waits for its answer. When ctx ends, the
// host is told that nobody waits any more.
func (p *Peer) ask(ctx context.Context, request any, of kind) (json.RawMessage, error) {
	id := p.o.NewID()
	frame, err := protocol.Marshal(outgoing{Type: "control_request", RequestID: id, Request: request})
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q := &question{answer: make(chan reply, 1), frame: frame, kind: of, over: ctx.Done()}
	p.mu.Lock()
	if !p.open {
		p.mu.Unlock()
		return nil, errNotAsked
	}
	p.pending[id] = q
	p.out.put(frame)
	var first <-chan struct{} // what the host is told before
	if of == ofServer && p.reached != nil {
		first = p.answered
		p.reached()
	}
	p.mu.Unlock()
	select {
	case r := <-q.answer:
		if first != nil {
			select {
			case <-first:
			case <-ctx.Done():
			}
		}
		return r.response, r.err
	case <-ctx.Done():
		p.mu.Lock()
		p.withdraw(id)
		p.mu.Unlock()
		return nil, ctx.Err()
	}
}

// unsilenced waits until a server of the host may be spoken to. Those that are
// connected already may be at any time: a turn goes on meanwhile.
func (p *Peer) unsilenced(ctx context.Context, server string) error {
	p.mu.Lock()
	quiet := p.quiet
	p.mu.Unlock()
	if quiet == nil || p.connected(server) {
		return ctx.Err()
	}
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// withdrawEnded gives up what nobody waits for since a turn or a task was
// ended, and what servers ask meanwhile; p.mu is held.
func (p *Peer) withdrawEnded() {
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		q := p.pending[id]
		select {
		case <-q.over:
			if q.kind != ofServer {
				p.withdraw(id)
			}
		default:
			if q.kind == ofElicitation {
				p.withdraw(id)
			}
		}
	}
}

// withdraw gives up a request of ours, once; p.mu is held.
func (p *Peer) withdraw(id string) {
	q, waits := p.pending[id]
	if !waits {
		return
	}
	delete(p.pending, id)
	q.answer <- reply{err: context.Canceled}
	p.write(struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
	}{"control_cancel_request", id})
}

// write puts one frame on stdout without waiting for the host to read it.
func (p *Peer) write(frame any) {
	line, err := protocol.Marshal(frame)
	if err != nil { // of our own types only raw JSON of the host can do this
		return
	}
	p.out.put(line)
}

// show puts an event that belongs to no turn on stdout.
func (p *Peer) show(ev protocol.Event) {
	switch ev := ev.(type) {
	case *protocol.System:
		ev.UUID, ev.SessionID = p.o.NewID(), p.o.SessionID()
	case *protocol.Frame:
		ev.UUID, ev.SessionID = p.o.NewID(), p.o.SessionID()
	case *protocol.User:
		ev.SessionID, ev.Timestamp = p.o.SessionID(), p.o.Timestamp()
	}
	p.write(ev)
}

// state shows the session's state to hosts that want to know it.
func (p *Peer) state(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setState(state)
}

// setState is [Peer.state] for callers that hold p.mu.
func (p *Peer) setState(state string) {
	if p.o.States == StatesOff || p.lastSeen == state {
		return
	}
	p.lastSeen = state
	ev := &protocol.System{Subtype: "session_state_changed", Fields: []protocol.Field{{Key: "state", Value: state}}}
	if p.o.States == StatesHostOnly {
		ev.Fields = append(ev.Fields, protocol.Field{Key: "sdk_host_only", Value: true})
	}
	p.show(ev)
}

func (p *Peer) stir() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
