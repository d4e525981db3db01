package control

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configures a [Conn]. In, Out and Metadata are required.
type Options struct {
	In              io.Reader
	Out             io.Writer
	Metadata        FrameMetadata
	AwaitInitialize bool // delays the first prompt until initialize was answered or stdin is at EOF (--await-initialize)
	// Replay echoes the host's responses to our requests, and the prompts that get no separate turn
	// (--replay-user-messages). These are prompts with a known uuid, and prompts that share the turn of a later prompt.
	Replay          bool
	SeparateTurns   bool                  // gives every prompt its own turn: prompts are neither merged nor added to a running turn
	BackgroundLimit time.Duration         // how long background work may run after the last prompt
	StateEvents     SessionStateEventMode // specifies whether session_state_changed events are written
}

// FrameMetadata provides the ids and times that frames carry.
type FrameMetadata interface {
	NewID() string               // uuid v4
	SessionID() string           // session id of frames that do not belong to a turn
	CurrentUTCTimestamp() string // current time
}

// SessionStateEventMode specifies whether the stream contains state events (spec: cli-contract 1.3, 3.4).
type SessionStateEventMode int

// The zero value writes no state events. With SessionStateEventsMarkedHostOnly, each event says that it is not meant for users.
const (
	SessionStateEventsOff SessionStateEventMode = iota
	SessionStateEventsMarkedHostOnly
	SessionStateEventsUnmarked
)

// Session is the session that the host controls. Its methods may be called from several goroutines.
// Turn, StreamBackgroundEvents and TakePromptAboutBackgroundWork are never called at the same time.
type Session interface {
	TurnRunner
	BackgroundWork
	RequestHandler
}

// RequestHandler handles the control requests of the host.
type RequestHandler interface {
	RequestServer
	InitializeAndInterruptHandler
}

// TurnRunner runs the prompts that a host sends, one turn at a time.
type TurnRunner interface {
	// PromptForDeferredCall returns a prompt to run before the host's prompts, or nil. If the host sends initialize, the prompt
	// runs after the answer. Otherwise it runs when a prompt arrives or stdin is at EOF.
	PromptForDeferredCall() *protocol.UserMessage
	// WaitUntilTurnMayStart waits until a turn may start; it is called before each turn. An error makes the process exit.
	WaitUntilTurnMayStart(ctx context.Context) error
	// Turn runs one prompt and writes its events to [Conn.EventWriter]. If interrupt is cancelled, the turn ends early with a
	// result; if ctx is cancelled, the turn is abandoned. completed is true if the host is to be told that the prompt was
	// completed; see [simulator.CountsPromptsAsCompleted]. An error makes the process exit.
	Turn(ctx, interrupt context.Context, in protocol.UserMessage) (completed bool, err error)
}

// BackgroundWork gives access to work that continues between turns.
type BackgroundWork interface {
	// BackgroundState returns the state of background work. busy means that work is running or needs a turn. anotherTurnFollows means
	// that another turn will certainly follow; until this turn, the idle state is not reported to the host.
	BackgroundState() (busy, anotherTurnFollows bool)
	// AsyncHookFrameAdded signals that an asynchronous hook has an event, which StreamBackgroundEvents writes.
	AsyncHookFrameAdded() <-chan struct{}
	// StreamBackgroundEvents writes the events of background work to [Conn.EventWriter]. It returns when the work needs a turn, when no
	// work is left, or when the context until is cancelled. Cancelling ctx also cancels until.
	StreamBackgroundEvents(ctx, until context.Context) error
	// TakePromptAboutBackgroundWork returns the prompt of a turn that background work needs, or false if it needs none.
	TakePromptAboutBackgroundWork() (protocol.UserMessage, bool)
}

// RequestServer handles the host's control requests.
type RequestServer interface {
	// Serve handles a request of every subtype except the requests of [InitializeAndInterruptHandler]. With an error, the payload is ignored.
	Serve(ctx context.Context, r HostRequest) (ResponseWithEvents, error)
	// IsSlow reports whether requests of a subtype may block. All other requests are handled by the goroutine that reads
	// stdin and are answered before it reads the next line.
	IsSlow(subtype string) bool
}

// InitializeAndInterruptHandler handles the requests initialize and interrupt, which also affect the order of frames and turns.
type InitializeAndInterruptHandler interface {
	// Initialize applies the host's settings and describes the session. Other requests wait until initialize is
	// answered; turns wait until the servers are connected.
	Initialize(ctx context.Context, g *InitializeRequest) (ResponseWithEvents, error)
	// StopBackgroundAgents stops background work without waiting for it.
	StopBackgroundAgents()
}

// HostRequest is a control request of the host.
type HostRequest struct {
	ID             json.RawMessage // chosen by the host
	Subtype        string          // "undefined" if it is missing, as in the real CLI
	Body           json.RawMessage // the request as it was sent; it may not be an object
	IsBehindPrompt bool            // the turn of a prompt that arrived before the request had not started when the request arrived
}

// ResponseWithEvents is the result of a request: the payload of the success response (nil means none), and the events to write
// directly before and after the response.
type ResponseWithEvents struct {
	Payload                   any
	EventsBefore, EventsAfter []protocol.Event
	AfterWrite                func() // called after the answer was written, even after an error; may be nil
	forInitialize             bool   // the response also lists the unanswered questions to the host
}

// InitializeRequest is an initialize request, with the means to connect its servers.
type InitializeRequest struct {
	HostRequest
	RepeatedOrLate bool   // follows a turn or an initialize request that did not fail
	FirstPrompt    string // set by the session: a prompt to run before those of the host
	connect        func(connect func(ctx context.Context))
}

// ConnectUntilHostServerMessage calls connectServers, which connects the servers of the request, with the context of the session. It
// returns when connectServers has returned or a message is sent to one of the host's servers. The host may handle this message only after
// the response to initialize. With a repeated request, connectServers is called after the response. The method may be called only once.
func (g *InitializeRequest) ConnectUntilHostServerMessage(connectServers func(ctx context.Context)) {
	g.connect(connectServers)
	g.connect = nil
}
