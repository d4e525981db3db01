// Package mcp is the client side of MCP: it manages configured servers, their state and their tools under canonical names.
//
// A server that hangs, crashes or sends invalid data cannot delay its callers beyond the limits in
// [Options]. Tool definitions and results stay raw JSON.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/mcp/oauth"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// Manager manages a set of servers. Its methods are safe for concurrent use.
type Manager struct {
	*managerState

	mu              sync.Mutex
	started, closed bool
	servers         []*server      // config order
	cachedCatalogue *toolCatalogue // nil means not built yet
}

// extraWaitAfterConnectTimeout is how much longer than ConnectTimeout the manager waits for
// servers, so that an attempt that times out can still report its error.
const extraWaitAfterConnectTimeout = 300 * time.Millisecond

// New checks the options and returns a manager without starting anything. Two servers with the same name are an error.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	m := &Manager{managerState: newManagerState(o)}
	seen := map[string]bool{}
	for _, cfg := range o.Servers {
		if seen[cfg.Name] {
			return nil, fmt.Errorf("duplicate MCP server %q", cfg.Name)
		}
		seen[cfg.Name] = true
		m.servers = append(m.servers, newServer(m.managerState, cfg))
	}
	return m, nil
}

// StartAndWait connects all servers in parallel. It returns when each server is connected or has failed, but at the latest after
// ConnectTimeout. The others continue in the background. A failed server is not an error of StartAndWait; see Servers. ctx limits only how
// long StartAndWait waits, because servers run until Close. Later calls, and calls after Close, return ErrClosed.
func (m *Manager) StartAndWait(ctx context.Context) error {
	m.mu.Lock()
	if m.closed || m.started {
		m.mu.Unlock()
		return ErrClosed
	}
	m.started = true
	servers := slices.Clone(m.servers)
	for _, s := range servers {
		m.startServerLoopLocked(ctx, s)
	}
	m.mu.Unlock()
	return m.waitUntilSettled(ctx, servers)
}

// Settle waits, as [Manager.StartAndWait] does, for servers that are connecting now.
func (m *Manager) Settle(ctx context.Context) error { return m.waitUntilSettled(ctx, m.allServers()) }

// startServerLoopLocked starts the goroutine of a server; the caller holds m.mu.
func (m *Manager) startServerLoopLocked(ctx context.Context, s *server) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.goroutines.Go(func() { (&connectionLoop{server: s}).runUntilCancelled(ctx) }) // returns after cancel is called
}

func (m *Manager) waitUntilSettled(ctx context.Context, servers []*server) error {
	limit, stop := context.WithTimeout(ctx, m.options.ConnectTimeout+extraWaitAfterConnectTimeout)
	defer stop()
	for _, s := range servers {
		if _, err := s.waitWhileConnecting(limit); err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// Close stops all servers in parallel, within about 1.3 s even if they do not cooperate, and returns when all their
// processes and goroutines have ended. It may be called at any time and more than once. It ignores the cancellation of
// its context, so that servers are also stopped after a signal.
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
	m.goroutines.Wait()
	return nil
}

// Servers returns the status of each server, in config order.
func (m *Manager) Servers() []ServerStatus {
	m.mu.Lock()
	servers := slices.Clone(m.servers)
	sources := make([]string, len(servers))
	for i, s := range servers {
		sources[i] = s.configuredBy
	}
	m.mu.Unlock()
	all := make([]ServerStatus, 0, len(servers))
	for i, s := range servers {
		all = append(all, s.statusReport(sources[i]))
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
	return slices.ContainsFunc(m.allServers(), func(s *server) bool {
		st, _ := s.statusAndChangeSignal()
		return st.state == StateConnected && st.lists.hasResources
	})
}

func (m *Manager) allServers() []*server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.servers)
}

func (m *Manager) findServer(name string) (*server, error) {
	for _, s := range m.allServers() {
		if s.cfg.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownServer, name)
}

func (m *Manager) findServerUnlessClosed(server string) (*server, error) {
	if m.isClosed() {
		return nil, ErrClosed
	}
	return m.findServer(server)
}

// Connect connects a server that is not connected, also a disabled or failed one, and waits for the outcome. It returns
// ErrUnknownServer for unknown names.
func (m *Manager) Connect(ctx context.Context, name string) error {
	s, err := m.findServer(name)
	if err != nil {
		return err
	}
	if err := s.sendStateChangeUntilAccepted(ctx, stateChangeRequest{target: StateConnected}); err != nil {
		return err
	}
	st, err := s.waitWhileConnecting(ctx)
	if err == nil && st.state != StateConnected {
		err = errors.New(st.connectError)
	}
	return err
}

// Disconnect closes the connection of a server and keeps its configuration.
func (m *Manager) Disconnect(ctx context.Context, name string) error {
	return requestServerState(ctx, m, name, StateDisconnected)
}

// Disable disconnects a server and hides its tools until Connect is called.
func (m *Manager) Disable(ctx context.Context, name string) error {
	return requestServerState(ctx, m, name, StateDisabled)
}

func requestServerState(ctx context.Context, m *Manager, name string, want ServerState) error {
	s, err := m.findServer(name)
	if err != nil {
		return err
	}
	return s.sendStateChangeUntilAccepted(ctx, stateChangeRequest{target: want})
}

// Reconnect closes the connection of a server, if any, and opens a new one.
func (m *Manager) Reconnect(ctx context.Context, name string) error {
	if err := m.Disconnect(ctx, name); err != nil {
		return err
	}
	return m.Connect(ctx, name)
}

// DeliverSDKServerMessage handles a message of an SDK server: a notification, or a request, which is answered through Options.SDK.
func (m *Manager) DeliverSDKServerMessage(ctx context.Context, server string, message json.RawMessage) error {
	s, err := m.findServer(server)
	if err != nil {
		return err
	}
	st, _ := s.statusAndChangeSignal()
	if st.conn == nil || !st.conn.IsHosted() {
		return notConnectedError{server}
	}
	return st.conn.DeliverFromHost(ctx, message)
}

// ReplaceServersResult is the outcome of ReplaceServersOfSource.
type ReplaceServersResult struct {
	Added, Removed []string          // names, in order
	Errors         map[string]string // servers that did not connect, with the reason in the words of the real CLI
}

// ReplaceServersOfSource replaces the servers of source by desired. It starts new servers, and stops servers that source set earlier and that desired
// lacks. Servers of other sources stay, but a server in desired replaces a server of the same name, which then belongs to source. A server
// whose expanded configuration is unchanged keeps its process and connection. The servers that the SDK host configured belong to the
// source "sdk". ReplaceServersOfSource waits for the new servers as StartAndWait does.
func (m *Manager) ReplaceServersOfSource(ctx context.Context, source string, desired []ServerConfig) (ReplaceServersResult, error) {
	change := ReplaceServersResult{Errors: map[string]string{}}
	m.mu.Lock()
	if m.closed || !m.started {
		m.mu.Unlock()
		return change, ErrClosed
	}
	var kept, gone, fresh []*server
	known := map[string]bool{} // names of the servers that stay
	for _, s := range m.servers {
		own := s.configuredBy == source || source == typeSDK && s.cfg.Source == typeSDK
		i := slices.IndexFunc(desired, func(c ServerConfig) bool { return c.Name == s.cfg.Name })
		switch {
		case i < 0 && !own:
			kept = append(kept, s)
		case i >= 0 && m.equalAfterExpansion(s.cfg, desired[i]):
			kept, known[s.cfg.Name] = append(kept, s), true
			if !own {
				s.configuredBy = source
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
		s := newServer(m.managerState, cfg)
		s.configuredBy = source
		kept, fresh = append(kept, s), append(fresh, s)
		change.Added = append(change.Added, cfg.Name)
	}
	m.servers = kept
	m.changeCount.Add(1)
	for _, s := range gone {
		s.cancel()
	}
	for _, s := range fresh {
		m.startServerLoopLocked(ctx, s)
	}
	m.mu.Unlock()
	return change, m.waitAndCollectConnectErrors(ctx, fresh, change.Errors)
}

// waitAndCollectConnectErrors waits for servers. For each server that did not connect, it stores the reason in errs.
func (m *Manager) waitAndCollectConnectErrors(ctx context.Context, servers []*server, errs map[string]string) error {
	if err := m.waitUntilSettled(ctx, servers); err != nil {
		return err
	}
	for _, s := range servers {
		if st, _ := s.statusAndChangeSignal(); st.state != StateConnected && st.state != StateDisabled {
			errs[s.cfg.Name] = cmp.Or(st.cliErrorText, st.connectError, "still connecting")
		}
	}
	return nil
}

// SetRootsAndNotifyServers changes the roots (absolute paths). Connected servers, except those of the SDK host, are notified of a change.
func (m *Manager) SetRootsAndNotifyServers(ctx context.Context, roots []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.roots.Swap(new(slices.Clone(roots))); slices.Equal(*old, roots) || m.closed {
		return
	}
	for _, s := range m.servers {
		if st, _ := s.statusAndChangeSignal(); st.conn != nil && s.cfg.Type != typeSDK {
			st.conn.NotifyRootsChanged(ctx)
		}
	}
}

func (m *Manager) currentToolCatalogue() *toolCatalogue {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version := m.changeCount.Load(); m.cachedCatalogue == nil || m.cachedCatalogue.changeCount != version {
		fresh := newToolCatalogue(m.servers, version)
		fresh.logShadowedToolsIfChanged(m.cachedCatalogue, m.debug)
		m.cachedCatalogue = fresh
	}
	return m.cachedCatalogue
}

// Tools lists the callable tools. Servers are in config order, and the tools of a server are in the order of the
// server. If two tools have the same canonical name, only the first is listed.
func (m *Manager) Tools() []protocol.Tool {
	return append([]protocol.Tool(nil), m.currentToolCatalogue().tools...)
}

// ShadowedTools lists the tools that Tools leaves out because of a name clash.
func (m *Manager) ShadowedTools() []ShadowedTool {
	return append([]ShadowedTool(nil), m.currentToolCatalogue().shadowedTools...)
}

// Resolve finds a tool by its canonical name (mcp__server__tool), by "server/tool" in raw names, or by its raw name
// alone; if several servers have such a tool, the first in config order is used. The error is one of ErrUnknownServer,
// ErrUnknownTool, ErrNotConnected and ErrDisabled.
func (m *Manager) Resolve(canonicalOrRawName string) (protocol.Tool, error) {
	if t, ok := m.currentToolCatalogue().findTool(canonicalOrRawName); ok {
		return t, nil
	}
	return protocol.Tool{}, unresolvedToolError(canonicalOrRawName, m.allServers())
}

// ToolsAfterPendingListUpdates is like [Manager.Tools], but first waits briefly for changed lists.
func (m *Manager) ToolsAfterPendingListUpdates(ctx context.Context) []protocol.Tool {
	m.waitForPendingListUpdates(ctx, maxListUpdateWaitBeforeListingTools)
	return m.Tools()
}

func (m *Manager) waitForPendingListUpdates(ctx context.Context, maxWait time.Duration) {
	limit, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	for _, s := range m.allServers() {
		_, _ = s.waitForStatus(limit, func(st status) bool { return st.conn == nil || !st.conn.HasUnfetchedChanges() }) // at the time limit, the old lists are used
	}
}

const (
	maxListUpdateWaitBeforeCall         = 2 * time.Second
	maxListUpdateWaitBeforeListingTools = 300 * time.Millisecond
)

// BeginLogin begins a login to a remote server. The login continues in the background until it ends, or until the server or the
// manager is closed. After the user has approved, the browser is redirected to redirectURI. If redirectURI is empty, the manager
// opens a port for the redirect and keeps it open until the login ends. After a successful login, the server is connected again.
func (m *Manager) BeginLogin(ctx context.Context, name, redirectURI string) (*oauth.Login, error) {
	s, err := m.findServerUnlessClosed(name)
	if err != nil {
		return nil, err
	}
	client := s.cfg.ExpandVariables(m.options).NewOAuthClient(m.options)
	var at net.Listener
	if redirectURI == "" {
		if at, redirectURI, err = client.Listen(ctx); err != nil {
			return nil, err
		}
	}
	l, err := client.BeginLogin(ctx, redirectURI, "")
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && (m.closed || !m.started) {
		err = ErrClosed
	}
	if err != nil {
		if at != nil {
			_ = at.Close()
		}
		return nil, err
	}
	s.login.Store(l)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.goroutines.Go(func() { // returns when the login has ended or the server is closed
		select {
		case <-s.done:
		case <-l.Ended():
		}
		stop()
	})
	m.goroutines.Go(func() { // returns soon after ctx is cancelled
		if l.ServeRedirectAndWait(ctx, at, 0) == nil {
			_ = m.Reconnect(context.WithoutCancel(ctx), name) // the status contains the error
		}
	})
	return l, nil
}

// PendingLogin returns the latest login to a server if it still waits for the user; nil means none.
func (m *Manager) PendingLogin(server string) *oauth.Login {
	s, err := m.findServerUnlessClosed(server)
	if err != nil {
		return nil
	}
	l := s.login.Load()
	if l == nil {
		return nil
	}
	select {
	case <-l.Ended():
		return nil
	default:
		return l
	}
}

// RemoveCredentials removes the tokens of a remote server. A connection stays open.
func (m *Manager) RemoveCredentials(server string) error {
	s, err := m.findServerUnlessClosed(server)
	if err != nil {
		return err
	}
	return s.cfg.ExpandVariables(m.options).NewOAuthClient(m.options).ForgetTokensAndRegistration()
}
