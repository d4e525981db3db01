// Package mcp is the client side of MCP: a set of configured servers, what
// each of them is doing, their tools under canonical names, and calls to them.
//
// Its one invariant: nothing a server does can block, crash or mislead the
// caller beyond the limits given in Options. Definitions and results of
// servers are passed on as they came, as raw JSON. The package must not know
// of scenarios, turns, permissions or output formats.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/trace"
	"github.com/claudeless/claudeless/mcp/record"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Options configure a Manager. The zero value is a manager without servers.
type Options struct {
	Servers       []ServerConfig // in config order
	ClientVersion string         // clientInfo.version
	// Environ is the environment of stdio servers ("K=V"), before their own
	// Env and the CLAUDE variables are added.
	Environ []string
	CWD     string   // their directory, and the default root
	Roots   []string // absolute paths for roots/list; empty = CWD
	// ConnectTimeout bounds one connect: spawn, initialize, first lists. 0 =
	// 30 s (MCP_TIMEOUT).
	ConnectTimeout time.Duration
	// ToolTimeout bounds one call between two signs of life; 0 = 100000000 ms
	// (MCP_TOOL_TIMEOUT).
	ToolTimeout time.Duration
	// LocalBatch and RemoteBatch are how many servers connect at once; 0 = 3
	// and 20 (MCP_SERVER_CONNECTION_BATCH_SIZE and its remote twin).
	LocalBatch, RemoteBatch int
	SessionID               string // CLAUDE_CODE_SESSION_ID of the servers
	// Debug gets one line per message and per warning; nil = off. Values of
	// headers and environment variables are never written.
	Debug io.Writer
	// RetryPause is the pause after the first failure of a first connect to a
	// remote server, or of listing tools; it doubles with each of three
	// retries. 0 = 250 ms.
	RetryPause time.Duration
	// ReconnectPause comes before the first attempt to reconnect; it doubles
	// with each of five. 0 = 1 s.
	ReconnectPause time.Duration
	// PingEvery is the time between pings of an idle server, of which three
	// without an answer count as its loss; 0 = 30 s, negative = never. Servers
	// of an SDK host and of protocol version 2026-07-28 are not pinged.
	PingEvery time.Duration
	// Probe asks servers for protocol version 2026-07-28 before the handshake
	// of the older ones (MCP_PROTOCOL_NEGOTIATION=auto).
	Probe bool
	// Authorize gives headers, say with a token, after a remote server refused
	// a request with 401 or 403; the request is then repeated once. An error,
	// or nil, leaves the server needing authorization. Entries with a
	// headersHelper do not use it.
	Authorize func(ctx context.Context, c Challenge) (headers map[string]string, err error)
	// ResourceUpdated hears of changes to resources subscribed to; changes of
	// one resource that come together are one. nil = nobody does.
	ResourceUpdated func(server, uri string)
	// Records keeps every call; nil = none is kept.
	Records *record.Log
	// Sample answers sampling/createMessage with a result; an error is sent as
	// such. nil = the capability is not declared and requests are refused.
	Sample func(ctx context.Context, server string, params json.RawMessage) (result json.RawMessage, err error)
	// Elicit answers elicitation/create; nil cancels.
	Elicit func(ctx context.Context, r ElicitRequest) ElicitAnswer
	// SaveBlob keeps binary results and returns the path; nil = not kept.
	SaveBlob func(server, mime string, data []byte) (path string, err error)
	// SaveText keeps a result too long to show in a file of that name, empty =
	// one made for the tool, and returns the path; nil = long results are shown
	// whole.
	SaveText func(tool protocol.Tool, name, text string) (path string, err error)
	// MaxOutputTokens is MAX_MCP_OUTPUT_TOKENS; 0 = the real CLI's limit, as far
	// as it goes without counting tokens.
	MaxOutputTokens int
	// SDK carries one JSON-RPC message to a server of type "sdk" and returns
	// its answer (nil for notifications); nil = such servers fail.
	SDK func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
}

// ElicitRequest is a server's question to the user.
type ElicitRequest struct {
	Server  string
	Message string
	Schema  json.RawMessage // requestedSchema; nil = none
	// URL is where the user is sent in place of a form; empty = a form.
	URL, ID string
	Params  json.RawMessage // all parameters as they came
}

// ElicitAnswer is the user's answer. The zero value cancels.
type ElicitAnswer struct {
	Action string // accept, decline, cancel; empty = cancel
	// Content goes with accept; what it leaves out is filled in from the
	// defaults of the requested schema.
	Content json.RawMessage
}

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

// ServerInfo is what a server says about itself.
type ServerInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ServerStatus is one server at one moment.
type ServerStatus struct {
	Name   string
	State  State
	Status string // State.Wire()
	Source string // dynamic, project, user, sdk
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

// Manager is a set of servers. All methods may be called from many goroutines.
type Manager struct {
	o     Options
	debug *trace.Sink   // nil = off
	local chan struct{} // a slot for each local server that connects at once
	far   chan struct{} // the same for remote ones

	tasks   sync.WaitGroup // every goroutine of the manager
	version atomic.Int64   // counts changes of any server

	mu      sync.Mutex
	started bool
	closed  bool
	roots   []string
	news    news
	servers []*server // config order
	names   *catalogue
	namesAt int64 // version that names was built from
}

const (
	defaultConnectTimeout = 30 * time.Second
	defaultToolTimeout    = 100_000_000 * time.Millisecond
	defaultRetryPause     = 250 * time.Millisecond
	defaultReconnectPause = time.Second
	// settleSlack lets an attempt that ran into its own limit report so.
	settleSlack = 300 * time.Millisecond
)

// New checks the options and makes a manager; nothing is started. Two servers
// of one name are an error.
func New(o Options) (*Manager, error) {
	o.ConnectTimeout = orDefault(o.ConnectTimeout, defaultConnectTimeout)
	o.ToolTimeout = orDefault(o.ToolTimeout, defaultToolTimeout)
	o.LocalBatch = orDefault(o.LocalBatch, 3)
	o.RemoteBatch = orDefault(o.RemoteBatch, 20)
	o.RetryPause = orDefault(o.RetryPause, defaultRetryPause)
	o.ReconnectPause = orDefault(o.ReconnectPause, defaultReconnectPause)
	if len(o.Roots) == 0 && o.CWD != "" {
		o.Roots = []string{o.CWD}
	}
	o.Environ = slices.Clone(o.Environ)
	m := &Manager{
		o:     o,
		debug: trace.NewSink(o.Debug),
		local: make(chan struct{}, o.LocalBatch),
		far:   make(chan struct{}, o.RemoteBatch),
		roots: slices.Clone(o.Roots),
	}
	seen := map[string]bool{}
	for _, cfg := range o.Servers {
		if seen[cfg.Name] {
			return nil, fmt.Errorf("duplicate MCP server %q", cfg.Name)
		}
		seen[cfg.Name] = true
		m.servers = append(m.servers, newServer(m, cfg))
	}
	m.o.Servers = nil // from here on the servers themselves tell
	return m, nil
}

func orDefault[T int | time.Duration](v, fallback T) T {
	if v <= 0 {
		return fallback
	}
	return v
}

// Start connects all servers, in parallel, and returns when each is connected
// or has failed, at the latest after ConnectTimeout; what is not ready by then
// goes on connecting. A server that fails is no error: see Servers. ctx bounds
// only the waiting; the servers live until Close.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	if m.closed || m.started {
		m.mu.Unlock()
		return ErrClosed
	}
	m.started = true
	servers := slices.Clone(m.servers)
	for _, s := range servers {
		m.launch(ctx, s)
	}
	m.mu.Unlock()
	return m.settle(ctx, servers)
}

// Settle waits, as [Manager.Start] does, for servers that are connecting now.
func (m *Manager) Settle(ctx context.Context) error { return m.settle(ctx, m.all()) }

// launch begins a server's life; m.mu is held.
func (m *Manager) launch(ctx context.Context, s *server) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	m.tasks.Go(func() { s.run(life) }) // ends with cancel
}

// settle waits for servers to connect or fail, within ConnectTimeout.
func (m *Manager) settle(ctx context.Context, servers []*server) error {
	limit, stop := context.WithTimeout(ctx, m.o.ConnectTimeout+settleSlack)
	defer stop()
	for _, s := range servers {
		if _, err := s.settle(limit); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Close ends all servers, in parallel and within about 1.3 s however stubborn
// they are, and returns when nothing of them is left. It works at any time and
// more than once. The bound is its own: a ctx that has ended, as after a signal,
// does not make it leave servers behind.
func (m *Manager) Close(_ context.Context) error {
	m.mu.Lock()
	m.closed = true
	started, servers := m.started, slices.Clone(m.servers)
	m.mu.Unlock()
	if !started {
		return nil
	}
	for _, s := range servers {
		s.cancel()
	}
	m.tasks.Wait()
	return nil
}

// Servers tells what each server is doing, in config order.
func (m *Manager) Servers() []ServerStatus {
	m.mu.Lock()
	servers := slices.Clone(m.servers)
	given := make([]string, len(servers))
	for i, s := range servers {
		given[i] = s.given
	}
	m.mu.Unlock()
	all := make([]ServerStatus, 0, len(servers))
	for i, s := range servers {
		all = append(all, s.status(given[i]))
	}
	return all
}

func (m *Manager) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// HasResources reports whether any connected server offers resources.
func (m *Manager) HasResources() bool {
	return slices.ContainsFunc(m.all(), func(s *server) bool {
		st, _ := s.look()
		return st.state == StateConnected && st.lists.hasResources
	})
}

func (m *Manager) all() []*server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.servers)
}

func (m *Manager) find(name string) *server {
	for _, s := range m.all() {
		if s.cfg.Name == name {
			return s
		}
	}
	return nil
}

// Connect connects a server that is not connected, whatever the reason, and
// waits for the outcome: nil, or why it failed. Unknown names are
// ErrUnknownServer.
func (m *Manager) Connect(ctx context.Context, name string) error {
	s := m.find(name)
	if s == nil {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	if err := s.send(ctx, StateConnected); err != nil {
		return err
	}
	st, err := s.settle(ctx)
	if err == nil && st.state != StateConnected {
		err = errors.New(st.err)
	}
	return err
}

// Disconnect ends a server's connection and keeps its configuration.
func (m *Manager) Disconnect(ctx context.Context, name string) error {
	return m.order(ctx, name, StateDisconnected)
}

// Enable switches a server on and connects it; see Connect.
func (m *Manager) Enable(ctx context.Context, name string) error { return m.Connect(ctx, name) }

// Disable switches a server off: it is disconnected and its tools are gone
// until Enable.
func (m *Manager) Disable(ctx context.Context, name string) error {
	return m.order(ctx, name, StateDisabled)
}

func (m *Manager) order(ctx context.Context, name string, want State) error {
	s := m.find(name)
	if s == nil {
		return fmt.Errorf("%w: %s", ErrUnknownServer, name)
	}
	return s.send(ctx, want)
}

// Reconnect drops a server's connection, if it has one, and connects anew.
func (m *Manager) Reconnect(ctx context.Context, name string) error {
	if err := m.Disconnect(ctx, name); err != nil {
		return err
	}
	return m.Connect(ctx, name)
}

// Deliver hands over a message that an SDK server sent by itself: a
// notification such as list_changed, or a request, whose answer goes back
// through Options.SDK.
func (m *Manager) Deliver(ctx context.Context, server string, message json.RawMessage) error {
	s := m.find(server)
	if s == nil {
		return fmt.Errorf("%w: %s", ErrUnknownServer, server)
	}
	st, _ := s.look()
	if st.conn == nil || st.conn.deliver == nil {
		return fmt.Errorf("%w: %s", ErrNotConnected, server)
	}
	return st.conn.deliver(ctx, message)
}

// Change is what SetServers did.
type Change struct {
	Added, Removed []string          // names, in order
	Errors         map[string]string // servers that did not connect, with the reason
}

// SetServers makes the servers that were given by a source, and those of an SDK
// host if that is the source, be exactly desired. Configured servers stay, but
// for those of a desired name: they become, for good, servers of the source.
// Servers whose configuration, after expansion, is the same stay as they are,
// process and all. It waits for the new ones as Start does.
func (m *Manager) SetServers(ctx context.Context, source string, desired []ServerConfig) (Change, error) {
	change := Change{Errors: map[string]string{}}
	m.mu.Lock()
	if m.closed || !m.started {
		m.mu.Unlock()
		return change, ErrClosed
	}
	var kept, gone, fresh []*server
	known := map[string]bool{} // kept, of the source
	for _, s := range m.servers {
		own := s.given == source || source == typeSDK && s.cfg.Source == typeSDK
		i := slices.IndexFunc(desired, func(c ServerConfig) bool { return c.Name == s.cfg.Name })
		switch {
		case i < 0 && !own:
			kept = append(kept, s)
		case i >= 0 && m.same(s.cfg, desired[i]):
			kept, known[s.cfg.Name] = append(kept, s), true
			if !own {
				s.given = source
				change.Added = append(change.Added, s.cfg.Name)
			}
		default:
			gone = append(gone, s)
			if own {
				change.Removed = append(change.Removed, s.cfg.Name)
			}
		}
	}
	for _, cfg := range desired {
		if known[cfg.Name] {
			continue
		}
		cfg.Source = source
		s := newServer(m, cfg)
		s.given = source
		kept, fresh = append(kept, s), append(fresh, s)
		change.Added = append(change.Added, cfg.Name)
	}
	m.servers = kept
	m.version.Add(1)
	for _, s := range gone {
		s.cancel()
	}
	for _, s := range fresh {
		m.launch(ctx, s)
	}
	m.mu.Unlock()
	return change, m.await(ctx, fresh, change.Errors)
}

// await waits for servers and notes why some did not connect.
func (m *Manager) await(ctx context.Context, fresh []*server, errs map[string]string) error {
	if err := m.settle(ctx, fresh); err != nil {
		return err
	}
	for _, s := range fresh {
		if st, _ := s.look(); st.state != StateConnected && st.state != StateDisabled {
			errs[s.cfg.Name] = cmp.Or(st.err, "still connecting")
		}
	}
	return nil
}

// same reports whether two entries of one name mean the same server now.
func (m *Manager) same(old, desired ServerConfig) bool {
	desired.Source = old.Source
	lookup := lookupFunc(m.o.Environ, m.o.CWD)
	a, _ := expandConfig(old, lookup)
	b, _ := expandConfig(desired, lookup)
	return reflect.DeepEqual(a, b)
}
