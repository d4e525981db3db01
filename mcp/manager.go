// Package mcp is the client side of MCP: it manages a set of configured
// servers, their state and their tools under canonical names, and calls the
// tools.
//
// No server can block, crash or mislead the caller beyond the limits in
// [Options]. Definitions and results of servers are passed on as raw JSON.
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

	"github.com/claudeless/claudeless/simulator/protocol"
)

// Manager is a set of servers. All methods may be called from many goroutines.
type Manager struct {
	*shared

	mu      sync.Mutex
	started bool
	closed  bool
	servers []*server  // config order
	names   *catalogue // nil = none was made yet
}

// settleSlack lets an attempt that ran into its own limit report so.
const settleSlack = 300 * time.Millisecond

// New checks the options and makes a manager; nothing is started. Two servers
// of one name are an error.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	m := &Manager{shared: newCommons(o)}
	seen := map[string]bool{}
	for _, cfg := range o.Servers {
		if seen[cfg.Name] {
			return nil, fmt.Errorf("duplicate MCP server %q", cfg.Name)
		}
		seen[cfg.Name] = true
		m.servers = append(m.servers, newServer(m.shared, cfg))
	}
	m.o.Servers = nil // from here on the servers themselves tell
	return m, nil
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
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.tasks.Go(func() { (&loopState{server: s}).run(ctx) }) // ends with cancel
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

// known returns the server of a name.
func (m *Manager) known(name string) (*server, error) {
	for _, s := range m.all() {
		if s.cfg.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownServer, name)
}

// Connect connects a server that is not connected, whatever the reason, and
// waits for the outcome: nil, or why it failed. Unknown names are
// ErrUnknownServer.
func (m *Manager) Connect(ctx context.Context, name string) error {
	s, err := m.known(name)
	if err != nil {
		return err
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
	s, err := m.known(name)
	if err != nil {
		return err
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
	s, err := m.known(server)
	if err != nil {
		return err
	}
	st, _ := s.look()
	if st.conn == nil || !st.conn.Hosted() {
		return fmt.Errorf("%w: %s", ErrNotConnected, server)
	}
	return st.conn.Deliver(ctx, message)
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
		s := newServer(m.shared, cfg)
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

// SetRoots changes the roots, absolute paths, and tells all connected servers
// but those of the SDK host when they are others than before. Telling a remote
// server goes on in the background until it is told or, at the latest, the
// manager is closed.
func (m *Manager) SetRoots(ctx context.Context, roots []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.roots.set(roots) || m.closed {
		return
	}
	for _, s := range m.servers {
		if st, _ := s.look(); st.conn != nil && s.cfg.Type != typeSDK {
			st.conn.RootsChanged(ctx)
		}
	}
}

// catalogue returns the table for the servers as they are now.
func (m *Manager) catalogue() *catalogue {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := m.version.Load()
	if m.names == nil || m.names.version != version {
		fresh := newCatalogue(m.servers, version)
		fresh.report(m.names, m.debug)
		m.names = fresh
	}
	return m.names
}

// Tools lists the callable tools: servers in config order, each server's in
// its own. Of two tools with one canonical name the first is listed.
func (m *Manager) Tools() []protocol.Tool {
	return append([]protocol.Tool(nil), m.catalogue().tools...)
}

// HiddenTools lists the tools that Tools leaves out for their name.
func (m *Manager) HiddenTools() []ShadowedTool {
	return append([]ShadowedTool(nil), m.catalogue().hidden...)
}

// Resolve finds a tool by its canonical name, as server/tool in raw names, or
// by its bare raw name (config order, the first wins). The error is one of
// ErrUnknownServer, ErrUnknownTool, ErrNotConnected and ErrDisabled.
func (m *Manager) Resolve(name string) (protocol.Tool, error) {
	if t, ok := m.catalogue().find(name); ok {
		return t, nil
	}
	return protocol.Tool{}, unresolved(name, m.all())
}

// FreshTools is [Manager.Tools] after a short wait for lists that servers said
// have changed.
func (m *Manager) FreshTools(ctx context.Context) []protocol.Tool {
	m.waitFresh(ctx, freshWait)
	return m.Tools()
}

func (m *Manager) waitFresh(ctx context.Context, most time.Duration) {
	limit, stop := context.WithTimeout(ctx, most)
	defer stop()
	for _, s := range m.all() {
		_, _ = s.wait(limit, func(st status) bool { return st.conn == nil || !st.conn.Stale() }) // old lists are better than none
	}
}

const (
	listWait  = 2 * time.Second
	freshWait = 300 * time.Millisecond
)
