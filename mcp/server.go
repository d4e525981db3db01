package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/mcp/oauth"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Routing errors of Resolve and Call; they mean that no request was sent. Test with errors.Is.
var (
	ErrUnknownServer = errors.New("unknown MCP server")
	ErrUnknownTool   = errors.New("unknown MCP tool")
	ErrNotConnected  = errors.New("MCP server is not connected")
	ErrDisabled      = errors.New("MCP server is disabled")
	ErrClosed        = errors.New("MCP manager is closed") // permanent: a closed manager stays closed
)

// notConnectedError reports in the words of the real CLI which server is not connected. It wraps ErrNotConnected.
type notConnectedError struct{ server string }

func (e notConnectedError) Error() string {
	return fmt.Sprintf("MCP server %q is not connected", e.server)
}

func (notConnectedError) Unwrap() error { return ErrNotConnected }

func mcpSessionExpiredText(serverName string) string {
	return fmt.Sprintf("MCP server %q session expired", serverName)
}

// ServerState is the connection state of a server.
type ServerState string

// The states: configured → connecting → connected → reconnecting → … . Lost is the state of a stdio server whose
// process exited; the next call connects again.
const (
	StateConfigured   ServerState = "configured"
	StateConnecting   ServerState = "connecting"
	StateConnected    ServerState = "connected"
	StateReconnecting ServerState = "reconnecting"
	StateLost         ServerState = "lost"
	StateFailed       ServerState = "failed"
	StateNeedsAuth    ServerState = "needs-auth"
	StateDisabled     ServerState = "disabled"
	StateDisconnected ServerState = "disconnected"
	StateClosing      ServerState = "closing"
)

// CLIStatus returns the state as init and mcp_status report it: connected, failed, needs-auth, pending or disabled.
func (s ServerState) CLIStatus() string {
	switch s {
	case StateConnected, StateNeedsAuth, StateDisabled:
		return string(s)
	case StateConfigured, StateConnecting, StateReconnecting:
		return "pending"
	default:
		return "failed"
	}
}

// ServerInfo is the serverInfo of the handshake: Name, Title (empty means none) and Version.
type ServerInfo = connection.ServerInfo

// ServerStatus is the status of one server at one moment.
type ServerStatus struct {
	Name   string
	State  ServerState
	Status string // State.CLIStatus()
	Source string // as in [ServerConfig]
	Config ServerConfig
	// Info, ProtocolVersion, Capabilities (raw JSON) and Instructions come from the last successful handshake.
	Info            ServerInfo
	ProtocolVersion string
	Capabilities    json.RawMessage
	Instructions    string
	// Error tells why the server is not connected; empty means no error. If a process has exited, Error contains its
	// exit status and its last line on stderr.
	Error         string
	WireError     string // the text of the real CLI for this error, such as "Connection closed"
	WireErrorCode string // the code of the real CLI for this error, such as "CONNECTION_CLOSED" or "HTTP 405"; empty means none
	ToolsError    string // tells why a connected server did not list its tools, in the words of the real CLI; empty means no error
	PID           int    // process id of a stdio server; 0 means not running
	Attempt       int    // number of the attempt to reconnect, from 1
	Tools         []protocol.Tool
	RawTools      []json.RawMessage // definitions as the server sent them, in the order of Tools
	Prompts       []Prompt
	Warnings      []string // defects of a server that is still used: omitted tools, repeated cursors, output that is not JSON
}

// server is a configured server. Only its connectionLoop changes its state. Others send it state changes and read the status.
type server struct {
	*managerState
	cfg          ServerConfig // immutable: a changed configuration is a new server
	configuredBy string       // the source that has set this server with ReplaceServersOfSource; "" if none has; guarded by Manager.mu
	stateChanges chan stateChangeRequest
	cancel       context.CancelFunc
	done         chan struct{}               // closed when the connectionLoop has ended and everything is shut down
	login        atomic.Pointer[oauth.Login] // the latest login; nil means none

	mu             sync.Mutex
	current        status
	statusChanged  chan struct{}   // closed and replaced at every change
	subscriptions  map[string]bool // URIs of subscribed resources
	attemptForCall callConnectAttempt
}

// status is the current state of a server. Only updateStatusAndNotify changes it.
type status struct {
	state          ServerState
	attempt        int              // number of the attempt to reconnect, from 1
	conn           *connection.Conn // nil unless connected
	initResult     connection.InitializeResult
	lists          serverLists
	connectError   string // why the server is not connected
	cliErrorText   string
	cliErrorCode   string
	stderrTail     []string // last lines of standard error, after a loss
	isRetried      bool     // the attempt to connect failed and will be repeated soon
	isFinal        bool     // the last attempt to connect failed, and calls must not try again
	cannotLogIn    bool     // the server asks for a login, but refuses to register clients; single attempts skip the login
	failedAttempts int
	warnings       []string
}

type stateChangeRequest struct {
	target        ServerState // StateConnected, StateDisconnected or StateDisabled
	singleAttempt bool
	accepted      chan struct{}
}

func newServer(c *managerState, cfg ServerConfig) *server {
	s := &server{
		managerState: c, cfg: cfg,
		stateChanges: make(chan stateChangeRequest), done: make(chan struct{}), statusChanged: make(chan struct{}),
		cancel: func() {}, subscriptions: map[string]bool{},
		current: status{state: StateConfigured},
	}
	if cfg.Disabled {
		s.current.state = StateDisabled
	}
	return s
}

// updateStatusAndNotify calls change with the status, and wakes the goroutines that wait for a change. It also clears fields that make no
// sense in the new state, such as the connection of a failed server.
func (s *server) updateStatusAndNotify(change func(st *status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.current)
	switch s.current.state {
	case StateConnected:
		s.current.connectError, s.current.cliErrorText, s.current.cliErrorCode, s.current.attempt = "", "", "", 0
	case StateFailed, StateNeedsAuth, StateDisabled, StateDisconnected:
		s.current.conn, s.current.lists = nil, serverLists{}
	default:
		s.current.conn = nil
	}
	close(s.statusChanged)
	s.statusChanged = make(chan struct{})
	s.changeCount.Add(1)
}

func (s *server) statusAndChangeSignal() (statusNow status, changeSignal <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.statusChanged
}

// waitForStatus waits until isReached is true for the status of the server or ctx ends, and returns the last status.
func (s *server) waitForStatus(ctx context.Context, isReached func(st status) bool) (status, error) {
	for {
		st, changed := s.statusAndChangeSignal()
		if isReached(st) {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

func (s *server) waitWhileConnecting(ctx context.Context) (status, error) {
	return s.waitForStatus(ctx, func(st status) bool { return st.state != StateConfigured && st.state != StateConnecting })
}

func (s *server) sendStateChangeUntilAccepted(ctx context.Context, r stateChangeRequest) error {
	r.accepted = make(chan struct{})
	select {
	case s.stateChanges <- r:
		<-r.accepted
		return nil
	case <-s.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) isHTTPOrSSE() bool { return s.cfg.Type == typeHTTP || s.cfg.Type == typeSSE }

func (s *server) connectTimeout() time.Duration {
	return positiveOr(s.cfg.ConnectTimeout, s.options.ConnectTimeout)
}

func (s *server) connectionReconnectingIfLost(ctx context.Context) (*connection.Conn, error) {
	st, err := s.statusAfterRecordedLoss(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case st.state == StateLost, st.state == StateConnected && st.conn == nil:
		st, err = s.connectOnceAndWait(ctx)
	case st.state == StateConnecting:
		st, err = s.waitWhileConnecting(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case st.state == StateDisabled:
		return nil, fmt.Errorf("%w: %s", ErrDisabled, s.cfg.Name)
	case st.conn == nil:
		return nil, notConnectedError{s.cfg.Name}
	}
	return st.conn, nil
}

func (s *server) connectOnceAndWait(ctx context.Context) (status, error) {
	if err := s.sendStateChangeUntilAccepted(ctx, stateChangeRequest{target: StateConnected, singleAttempt: true}); err != nil {
		return status{}, fmt.Errorf("%w: %v", notConnectedError{s.cfg.Name}, err)
	}
	return s.waitWhileConnecting(ctx)
}

// callConnectAttempt records the latest attempt that a tool call made to connect a failed server.
type callConnectAttempt struct {
	mu       sync.Mutex // locked during an attempt to connect
	useID    string     // tool use id of the latest call after which the server was still not connected
	note     string     // why the latest call did not connect the server
	failures int        // failed attempts in a row
	next     time.Time  // time before which no attempt is made
}

// pauseAfterFirstFailedConnectForCall is the pause after the first attempt that fails. It doubles
// with each further failure (observed with 2.1.330: up to 160 s).
const pauseAfterFirstFailedConnectForCall = 10 * time.Second

// tryConnectForCall tries once to connect a failed server, or waits for the attempt that is scheduled, unless the last attempt was too
// recent. failureNote is "" if the server is connected, or if a wait was the last attempt.
func (s *server) tryConnectForCall(ctx context.Context, useID string, before status) (failureNote string, err error) {
	a := &s.attemptForCall
	a.mu.Lock()
	defer a.mu.Unlock()
	now := s.options.Credentials.Now()
	switch {
	case useID != "" && useID == a.useID:
		return a.note, nil
	case now.Before(a.next) && !now.IsZero():
		if a.note != "" {
			a.note = fmt.Sprintf("MCP server %q did not connect when it was last tried, and is not tried again for %.0f s.", s.cfg.Name, math.Ceil(a.next.Sub(now).Seconds()))
		}
	case before.isRetried:
		st, err := s.waitForStatus(ctx, func(now status) bool { return now.failedAttempts != before.failedAttempts || now.state != StateFailed })
		if err != nil || st.state == StateConnected {
			return "", err
		}
		a.note, a.next = "", s.options.Credentials.Now().Add(pauseAfterFirstFailedConnectForCall)
	default:
		st, err := s.connectOnceAndWait(ctx)
		if st.state == StateNeedsAuth {
			st, err = s.connectOnceAndWait(ctx) // like the real CLI
		}
		if err != nil || st.state == StateConnected {
			a.failures, a.next = 0, time.Time{}
			return "", err
		}
		pause := pauseAfterFirstFailedConnectForCall << min(a.failures, 16)
		a.failures, a.next = a.failures+1, s.options.Credentials.Now().Add(pause)
		a.note = fmt.Sprintf("Claude Code tried to connect to MCP server %q again and could not. It can be tried again in %.0f s.", s.cfg.Name, pause.Seconds())
		if st.state == StateNeedsAuth {
			a.note = fmt.Sprintf("Claude Code connected to MCP server %q again, and it asks for a sign-in. The user needs to sign in. "+
				"Continue without this server, and tell them if the task depends on it.", s.cfg.Name)
		}
	}
	a.useID = useID
	return a.note, nil
}

// statusAfterRecordedLoss returns the status. If the connection was just lost, it first waits until the loss
// is recorded. Otherwise, a call right after a crash would use the dead connection.
func (s *server) statusAfterRecordedLoss(ctx context.Context) (status, error) {
	return s.waitForStatus(ctx, func(st status) bool { return st.conn == nil || !st.conn.IsConnectionLostOrClosed() })
}

// statusReport builds the ServerStatus of a server. configuredBy is the source that set it with ReplaceServersOfSource, or empty.
func (s *server) statusReport(configuredBy string) ServerStatus {
	st, _ := s.statusAndChangeSignal()
	out := ServerStatus{
		Name: s.cfg.Name, State: st.state, Status: st.state.CLIStatus(), Source: cmp.Or(configuredBy, s.cfg.Source), Config: s.cfg,
		Info: st.initResult.ServerInfo, ProtocolVersion: st.initResult.ProtocolVersion,
		Capabilities: st.initResult.Capabilities, Instructions: st.initResult.Instructions,
		Error: st.connectError, WireError: st.cliErrorText, WireErrorCode: st.cliErrorCode, Attempt: st.attempt,
		Tools: slices.Clone(st.lists.tools), RawTools: slices.Clone(st.lists.rawTools), Prompts: slices.Clone(st.lists.prompts),
		Warnings: slices.Concat(st.lists.toolPromptAndResourceWarnings(), st.warnings),
	}
	if st.lists.err != nil {
		out.ToolsError = strings.TrimPrefix(st.lists.err.Error(), connection.MalformedResultTextPrefix)
	}
	if st.conn != nil {
		out.PID = st.conn.PID()
		if n, first := st.conn.SkippedLines(); n > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%d lines of output are not MCP messages; the first is: %s", n, first))
		}
	}
	return out
}
