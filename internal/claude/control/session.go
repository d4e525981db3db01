package control

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Conn]. In, Out and Stamps are required.
type Options struct {
	In       io.Reader
	Out      io.Writer
	Metadata FrameMetadata
	// AwaitInitialize holds the first prompt back until initialize was answered
	// or stdin has ended (--await-initialize).
	AwaitInitialize bool
	// Replay repeats prompts that have no turn of their own: those dropped because
	// their uuid was seen before, and those that share the turn of a later one; and
	// answers that somebody waits for (--replay-user-messages).
	Replay bool
	// SeparateTurns gives every prompt a turn of its own: none is joined with others
	// that wait, and none becomes part of a running turn.
	SeparateTurns bool
	// BackgroundLimit is how long work may go on when no more prompts will come.
	BackgroundLimit time.Duration
	// StateEvents says whether session_state_changed is shown.
	StateEvents StateEvents
}

// Metadata are what frames are marked with.
type FrameMetadata interface {
	NewID() string     // uuid v4
	SessionID() string // of frames that belong to no turn
	Timestamp() string // the time now
}

// StateEvents says who is told about the session's state (spec: cli-contract
// 1.3, 3.4).
type StateEvents int

// The zero value shows no state events; HostOnly marks them as not for users.
const (
	StateEventsOff StateEvents = iota
	StateEventsHostOnly
	StateEventsOn
)

// Session is what the host drives. Its methods may be called from several goroutines; Turn, Idle and Notice never run beside
// each other.
type Session interface {
	PromptPlayer
	BackgroundWorker
	Requests
}

// Requests are what the host asks.
type Requests interface {
	RequestServer
	Initializer
}

// PromptPlayer plays prompts.
type PromptPlayer interface {
	// FirstPrompt is played before the host's prompts: once initialize is answered, and without one as soon as a prompt comes or
	// stdin ends. Nil = nothing.
	FirstPrompt() *protocol.UserMessage
	// WaitReady waits until a turn may begin; it is called before each. An error ends the process.
	WaitReady(ctx context.Context) error
	// Turn plays one prompt and writes its events to [Conn.Events]. When interrupt ends, the turn still ends with its result;
	// when ctx ends, it is given up. Completed is what [simulator.Completed] says of its result. An error ends the process.
	Turn(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error)
}

// BackgroundWorker is work that goes on between turns.
type BackgroundWorker interface {
	// Busy tells whether work runs or a turn is to follow from it.
	Busy() bool
	// StreamBackground writes what the work shows to [Conn.Events] until a turn is to follow, nothing is left, or until ends. When ctx ends,
	// it is given up.
	StreamBackground(ctx, until context.Context) error
	// TakeNotice takes the prompt of a turn that is to follow; false = there is none.
	TakeNotice() (protocol.UserMessage, bool)
}

// RequestServer answers the host's requests.
type RequestServer interface {
	// Serve answers a request of any subtype but those of [Initializer].
	Serve(ctx context.Context, r Request) (Answer, error)
	// IsSlow tells of a subtype whether its requests may wait for anything. Those that do not are served on the reader of stdin:
	// they are answered before the next line is looked at.
	IsSlow(subtype string) bool
}

// Initializer takes the two requests whose order among frames and turns is the wire's.
type Initializer interface {
	// Initialize takes the host's settings and describes the session. Other requests wait until it is answered, turns until
	// what it connects is connected.
	Initialize(ctx context.Context, g *InitializeRequest) (Answer, error)
	// Interrupt ends what works in the background, without waiting for it.
	Interrupt()
}

// Request is a control request of the host.
type Request struct {
	ID      json.RawMessage // the host's own
	Subtype string          // as the real CLI words it: "undefined" without one
	Body    json.RawMessage // the request as it was sent; it need not be an object
}

// Answer is what a request comes to: the payload of a success (nil = none) and
// what is shown right before and after it.
type Answer struct {
	Payload       any
	Before, After []protocol.Event
	AfterWrite    func() // called when the answer is out, an error as well; nil = nothing
	forInitialize bool   // it also tells what waits for the host
}

// InitializeRequest is an initialize request.
type InitializeRequest struct {
	Request
	TurnStarted bool // some turns have been played
	connect     func(connect func(ctx context.Context))
}

// Connect lets connect run, which connects the servers that the request names, and whose context is that of the whole
// session. Connect returns when a server of the host is spoken to, or when there is nothing more to do: the host may want
// its answer before it serves. It is called at most once.
func (g *InitializeRequest) Connect(connect func(ctx context.Context)) {
	g.connect(connect)
	g.connect = nil
}
