package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Routing errors of Resolve and Call; no byte was sent. Test with errors.Is.
var (
	ErrUnknownServer = errors.New("unknown MCP server")
	ErrUnknownTool   = errors.New("unknown MCP tool")
	ErrNotConnected  = errors.New("MCP server is not connected")
	ErrDisabled      = errors.New("MCP server is disabled")
	ErrClosed        = errors.New("MCP manager is closed") // for ever
)

// State is where a server is in its life.
type State string

// The states: configured → connecting → connected → reconnecting → … . Lost is
// a stdio server whose process ended and which the next call starts again.
const (
	StateConfigured   State = "configured"
	StateConnecting   State = "connecting"
	StateConnected    State = "connected"
	StateReconnecting State = "reconnecting"
	StateLost         State = "lost"
	StateFailed       State = "failed"
	StateNeedsAuth    State = "needs-auth"
	StateDisabled     State = "disabled"
	StateDisconnected State = "disconnected"
	StateClosing      State = "closing"
)

// Wire is the word for a state in init and mcp_status: connected, failed,
// needs-auth, pending or disabled.
func (s State) Wire() string {
	switch s {
	case StateConnected, StateNeedsAuth, StateDisabled:
		return string(s)
	case StateConfigured, StateConnecting, StateReconnecting:
		return "pending"
	default:
		return "failed"
	}
}

// ServerInfo is what a server says about itself in the handshake: the strings Name,
// Title (empty = none) and Version. The zero value is that of a server that said nothing.
type ServerInfo = connection.ServerInfo

// ServerStatus is one server at one moment.
type ServerStatus struct {
	Name   string
	State  State
	Status string // State.Wire()
	Source string // as in [ServerConfig]
	Config ServerConfig
	// Info, ProtocolVersion, Capabilities (raw JSON) and Instructions are what
	// the last successful handshake gave.
	Info            ServerInfo
	ProtocolVersion string
	Capabilities    json.RawMessage
	Instructions    string
	// Error says why the server is not connected, with exit status and last
	// line of standard error where there are some. Empty = no error.
	Error string
	// WireError is the same in the words of the real CLI ("Connection
	// closed").
	WireError string
	PID       int // of a stdio server; 0 = none runs
	Attempt   int // of reconnecting, from 1
	Tools     []protocol.Tool
	RawTools  []json.RawMessage // definitions as they came, in the order of Tools
	Prompts   []Prompt
	// Warnings are oddities that did not stop the server: tools left out,
	// repeated cursors, output that is not JSON.
	Warnings []string
}

// server is one configured server over its whole life. One goroutine, run,
// decides what happens to it; everybody else sends it orders and reads status.
type server struct {
	*shared
	cfg    ServerConfig // fixed: a changed entry is a new server
	given  string       // the source it was given by SetServers; "" = it was configured; of Manager.mu
	orders chan serverRequest
	cancel context.CancelFunc // ends run
	done   chan struct{}      // closed when run has ended and all is shut down

	mu      sync.Mutex
	st      status
	changed chan struct{}   // closed and replaced at every change
	watched map[string]bool // URIs of resources subscribed to
}

// status is what a server is doing. It is changed in server.update only.
type status struct {
	state    State
	attempt  int              // of reconnecting, from 1
	conn     *connection.Conn // nil unless connected
	hello    connection.InitializeResult
	lists    lists
	err      string // why it is not connected
	wireErr  string
	tail     []string // of standard error, after a loss
	warnings []string
}

// serverRequest is a wish about a server.
type serverRequest struct {
	want State // StateConnected, StateDisconnected or StateDisabled
	ack  chan struct{}
}

func newServer(c *shared, cfg ServerConfig) *server {
	s := &server{
		shared: c, cfg: cfg,
		orders: make(chan serverRequest), done: make(chan struct{}), changed: make(chan struct{}),
		cancel: func() {}, watched: map[string]bool{},
		st: status{state: StateConfigured},
	}
	if cfg.Disabled {
		s.st.state = StateDisabled
	}
	return s
}

// update is the only place where a server's status changes.
func (s *server) update(change func(st *status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.st)
	switch s.st.state {
	case StateConnected:
		s.st.err, s.st.wireErr, s.st.attempt = "", "", 0
	case StateFailed, StateNeedsAuth, StateDisabled, StateDisconnected:
		s.st.conn, s.st.lists = nil, lists{}
	default:
		s.st.conn = nil
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.version.Add(1)
}

// look returns the status now and a channel that is closed when it changes.
func (s *server) look() (status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st, s.changed
}

// wait waits for a status; the last thing that happens to a server is that it has
// no connection.
func (s *server) wait(ctx context.Context, is func(st status) bool) (status, error) {
	for {
		st, changed := s.look()
		if is(st) {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// settle waits until the server is neither waiting to connect nor connecting.
func (s *server) settle(ctx context.Context) (status, error) {
	return s.wait(ctx, func(st status) bool { return st.state != StateConfigured && st.state != StateConnecting })
}

// send gives an order; it returns when the order was taken.
func (s *server) send(ctx context.Context, want State) error {
	o := serverRequest{want: want, ack: make(chan struct{})}
	select {
	case s.orders <- o:
		<-o.ack
		return nil
	case <-s.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// autoReconnect reports whether a lost server is brought back unasked.
func (s *server) autoReconnect() bool {
	if s.cfg.AutoReconnect != nil {
		return *s.cfg.AutoReconnect
	}
	return s.cfg.Type == typeHTTP || s.cfg.Type == typeSSE
}

// connectTimeout bounds one connect.
func (s *server) connectTimeout() time.Duration {
	return orDefault(s.cfg.ConnectTimeout, s.o.ConnectTimeout)
}

// acquire returns the server's connection, and starts a lost server again.
func (s *server) acquire(ctx context.Context) (*connection.Conn, error) {
	st, err := s.known(ctx)
	if err != nil {
		return nil, err
	}
	if st.state == StateLost {
		if err := s.send(ctx, StateConnected); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", ErrNotConnected, s.cfg.Name, err)
		}
		if st, err = s.settle(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case st.state == StateDisabled:
		return nil, fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
	case st.conn == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotConnected, s.cfg.Name)
	}
	return st.conn, nil
}

// known returns the status once it no longer speaks of a connection that is
// gone: noticing the loss and saying why takes a moment, and a call right after
// a crash must not meet the dead connection again.
func (s *server) known(ctx context.Context) (status, error) {
	return s.wait(ctx, func(st status) bool { return st.conn == nil || !st.conn.IsLost() })
}

// wish remembers, or forgets, a subscription; it reports whether there was one.
func (s *server) wish(uri string, want bool) (was bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was = s.watched[uri]
	delete(s.watched, uri)
	if want {
		s.watched[uri] = true
	}
	return was
}

// status renders a server, which was given by a source, for Manager.Servers.
func (s *server) status(given string) ServerStatus {
	st, _ := s.look()
	out := ServerStatus{
		Name: s.cfg.Name, State: st.state, Status: st.state.Wire(), Source: cmp.Or(given, s.cfg.Source), Config: s.cfg,
		Info: st.hello.ServerInfo, ProtocolVersion: st.hello.ProtocolVersion,
		Capabilities: st.hello.Capabilities, Instructions: st.hello.Instructions,
		Error: st.err, WireError: st.wireErr, Attempt: st.attempt,
		Tools: slices.Clone(st.lists.tools), RawTools: slices.Clone(st.lists.raw), Prompts: slices.Clone(st.lists.prompts),
		Warnings: slices.Concat(st.lists.allWarnings(), st.warnings),
	}
	if st.conn != nil {
		out.PID = st.conn.PID()
		if n, first := st.conn.Skipped(); n > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%d lines of output that are no messages, the first: %s", n, first))
		}
	}
	return out
}
