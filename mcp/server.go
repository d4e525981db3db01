package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/mcp/internal/health"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// server is one configured server over its whole life. One goroutine, run,
// decides what happens to it; everybody else sends it orders and reads status.
type server struct {
	m      *Manager
	cfg    ServerConfig // fixed: a changed entry is a new server
	given  string       // the source it was given by SetServers; "" = it was configured; of Manager.mu
	orders chan order
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
	attempt  int   // of reconnecting, from 1
	conn     *conn // nil unless connected
	hello    handshake
	lists    lists
	err      string // why it is not connected
	wireErr  string
	tail     []string // of standard error, after a loss
	warnings []string
}

// lists is what a server offers.
type lists struct {
	tools        []protocol.Tool
	raw          []json.RawMessage // the tools' definitions as they came, in the same order
	prompts      []Prompt
	resources    []Resource
	hasResources bool // declared, be there any or not
	warnings     []string
	err          error // the server would not list its tools; nil = it did
}

// order is a wish about a server.
type order struct {
	want State // StateConnected, StateDisconnected or StateDisabled
	ack  chan struct{}
}

func newServer(m *Manager, cfg ServerConfig) *server {
	s := &server{
		m: m, cfg: cfg,
		orders: make(chan order), done: make(chan struct{}), changed: make(chan struct{}),
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
	s.m.version.Add(1)
}

// look returns the status now and a channel that is closed when it changes.
func (s *server) look() (status, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st, s.changed
}

// settle waits until the server is neither waiting to connect nor connecting.
func (s *server) settle(ctx context.Context) (status, error) {
	for {
		st, changed := s.look()
		if st.state != StateConfigured && st.state != StateConnecting {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// send gives an order; it returns when the order was taken.
func (s *server) send(ctx context.Context, want State) error {
	o := order{want: want, ack: make(chan struct{})}
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

// life is what the run goroutine knows beyond the status.
type life struct {
	*server
	conn       *conn // live, or being lost
	stopDial   context.CancelFunc
	dialed     chan dialResult // nil = not connecting
	retry      *time.Timer     // nil = not waiting to reconnect
	refreshed  chan refreshed  // nil = no refresh under way
	nextUpdate *time.Timer     // nil = a refresh may start at once
	attempt    int
}

type dialResult struct {
	conn  *conn
	lists lists
	err   error
}

// run is the life of a server. It ends when ctx does.
func (s *server) run(ctx context.Context) {
	l := &life{server: s}
	defer close(s.done)
	defer l.shutdown(ctx)
	if s.cfg.Disabled {
		l.disable()
	} else {
		l.dial(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-s.orders:
			l.obey(ctx, o.want)
			close(o.ack)
		case r := <-l.dialed:
			l.connected(ctx, r)
		case <-l.lost():
			l.handleLoss(ctx)
		case <-timerC(l.retry):
			l.retry = nil
			l.dial(ctx)
		case <-l.kicked():
			l.refresh(ctx)
		case <-timerC(l.nextUpdate):
			l.nextUpdate = nil
		case fresh := <-l.refreshed:
			l.refreshed = nil
			l.take(fresh)
		}
	}
}

func timerC(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (l *life) lost() <-chan struct{} {
	if l.conn == nil {
		return nil
	}
	return l.conn.lost
}

// kicked is ready when the server's lists changed and a refresh may start.
func (l *life) kicked() <-chan struct{} {
	if l.conn == nil || l.refreshed != nil || l.nextUpdate != nil {
		return nil
	}
	return l.conn.kick
}

func (l *life) obey(ctx context.Context, want State) {
	switch want {
	case StateConnected:
		if l.conn == nil && l.dialed == nil {
			l.attempt = 0
			l.dial(ctx)
		}
	case StateDisabled:
		l.hangUp(ctx)
		l.disable()
	default:
		l.hangUp(ctx)
		l.update(func(st *status) { st.state = StateDisconnected })
	}
}

func (l *life) disable() { l.update(func(st *status) { st.state = StateDisabled }) }

// dial connects in the background; the result comes on dialed.
func (l *life) dial(ctx context.Context) {
	l.stopRetry()
	l.update(func(st *status) {
		if l.attempt == 0 {
			st.state = StateConnecting
		}
	})
	dialCtx, stop := context.WithCancel(ctx)
	result := make(chan dialResult, 1)
	l.dialed, l.stopDial = result, stop
	retries := maxRetries
	if l.attempt > 0 { // the attempts to reconnect are the retries
		retries = 0
	}
	l.m.tasks.Go(func() { // ends with the attempt, which is bounded
		result <- l.connect(ctx, dialCtx, retries)
	})
}

// connected takes the outcome of a connect.
func (l *life) connected(ctx context.Context, r dialResult) {
	l.stopDial()
	l.dialed, l.stopDial = nil, nil
	if r.err != nil {
		l.failed(r.err)
		return
	}
	l.attempt = 0
	l.conn = r.conn
	l.update(func(st *status) {
		st.state, st.conn, st.hello, st.lists = StateConnected, r.conn, r.conn.hello, r.lists
	})
	if r.conn.isLost() {
		l.handleLoss(ctx)
		return
	}
	l.watch(ctx, r.conn)
	l.resubscribe(ctx, r.conn)
}

// watch pings an idle connection as long as it lives.
func (l *life) watch(ctx context.Context, c *conn) {
	if l.m.o.PingEvery < 0 || l.cfg.Type == typeSDK || c.link.modern.Load() {
		return
	}
	o := health.Options{
		Every: l.m.o.PingEvery, Limit: l.m.o.PingEvery / 6,
		Ping: c.client.Ping, //nolint:staticcheck // deprecated for a newer protocol version
		Busy: func() bool { return c.link.inFlight.Load() > 0 },
	}
	ctx, stop := context.WithCancel(ctx)
	l.m.tasks.Go(func() { // ends with the connection
		defer stop()
		if health.Watch(ctx, o) {
			c.silence.Store(true)
			c.lose()
		}
	})
	l.m.tasks.Go(func() { // ends with the connection too
		defer stop()
		select {
		case <-c.lost:
		case <-ctx.Done():
		}
	})
}

// failed decides what comes after a connect that did not work.
func (l *life) failed(err error) {
	var d *dialError
	if !errors.As(err, &d) {
		d = &dialError{Reason: err.Error(), Wire: err.Error()}
	}
	if l.attempt > 0 && l.attempt < maxReconnects && !d.NeedsAuth {
		l.retryLater(d.Reason, d.Wire)
		return
	}
	l.attempt = 0
	l.update(func(st *status) {
		st.state, st.err, st.wireErr = StateFailed, d.Reason, d.Wire
		if d.NeedsAuth {
			st.state = StateNeedsAuth
		}
	})
}

// maxReconnects is how often a lost server is tried again before it has
// failed; the pauses double.
const maxReconnects = 5

func (l *life) retryLater(reason, wireReason string) {
	l.retry = time.NewTimer(l.m.o.ReconnectPause << l.attempt)
	l.attempt++
	l.update(func(st *status) {
		st.state, st.attempt, st.err, st.wireErr = StateReconnecting, l.attempt, reason, wireReason
	})
}

func (l *life) stopRetry() {
	if l.retry != nil {
		l.retry.Stop()
		l.retry = nil
	}
}

// handleLoss takes note that the server went away.
func (l *life) handleLoss(ctx context.Context) {
	c := l.conn
	l.conn = nil
	reason := ""
	switch {
	case c.silence.Load():
		reason = "no answer to pings"
	case c.why != nil:
		reason = c.why(2 * exitLinger)
	}
	reason = cmp.Or(reason, ErrConnectionClosed.Error())
	if c.tail != nil {
		tail := c.tail()
		l.update(func(st *status) { st.tail = tail })
	}
	l.closeLater(ctx, c)
	if c.barred.Load() { // trying again would be refused again
		l.failed(&dialError{Reason: "authorization required", Wire: "authorization required", NeedsAuth: true})
		return
	}
	if l.autoReconnect() {
		l.attempt = 0
		l.retryLater(reason, ErrConnectionClosed.Error())
		return
	}
	l.update(func(st *status) {
		st.state, st.err, st.wireErr = StateFailed, reason, ErrConnectionClosed.Error()
		if l.cfg.Type == typeStdio || l.cfg.Type == "" {
			st.state = StateLost
		}
	})
}

// closeLater ends a connection off the run goroutine.
func (l *life) closeLater(ctx context.Context, c *conn) {
	l.m.tasks.Go(func() { c.close(context.WithoutCancel(ctx)) }) // close is bounded
}

// hangUp ends whatever is connected or connecting.
func (l *life) hangUp(ctx context.Context) {
	l.stopRetry()
	l.attempt = 0
	if l.dialed != nil {
		l.stopDial()
		if r := <-l.dialed; r.conn != nil {
			l.closeLater(ctx, r.conn)
		}
		l.dialed = nil
	}
	if l.conn != nil {
		l.closeLater(ctx, l.conn)
		l.conn = nil
	}
}

// shutdown is the end of run: it returns when nothing of the server lives.
func (l *life) shutdown(ctx context.Context) {
	l.stopRetry()
	if l.nextUpdate != nil {
		l.nextUpdate.Stop()
	}
	if l.dialed != nil { // ctx has ended, so the attempt ends too
		if r := <-l.dialed; r.conn != nil {
			l.conn = r.conn
		}
	}
	if l.conn != nil {
		l.update(func(st *status) { st.state = StateClosing })
		l.conn.close(context.WithoutCancel(ctx))
	}
	l.update(func(st *status) { st.state = StateDisconnected })
}

// refreshed is the outcome of fetching the lists again.
type refreshed struct {
	conn  *conn
	seen  int64 // conn.changes before the fetch began
	lists lists
	err   error
}

// refresh fetches the lists again, at most once in refreshPause.
func (l *life) refresh(ctx context.Context) {
	c := l.conn
	result := make(chan refreshed, 1)
	l.refreshed = result
	l.nextUpdate = time.NewTimer(refreshPause)
	seen := c.changes.Load()
	l.m.tasks.Go(func() { // ends within the connect time-out
		limit, stop := context.WithTimeout(ctx, l.connectTimeout())
		defer stop()
		fresh, err := c.fetch(limit, l.cfg)
		err = cmp.Or(err, fresh.err)
		result <- refreshed{c, seen, fresh, err}
	})
}

// take puts fetched lists in place of the old ones, which stay when fetching
// failed.
func (l *life) take(r refreshed) {
	if r.conn != l.conn {
		return
	}
	l.update(func(st *status) {
		r.conn.current.Store(r.seen)
		if r.err != nil {
			st.warnings = []string{fmt.Sprintf("refreshing the lists failed: %v", r.err)}
			return
		}
		st.lists = r.lists
	})
}

const refreshPause = 100 * time.Millisecond

// status renders a server, which was given by a source, for Manager.Servers.
func (s *server) status(given string) ServerStatus {
	st, _ := s.look()
	out := ServerStatus{
		Name: s.cfg.Name, State: st.state, Status: st.state.Wire(), Source: cmp.Or(given, s.cfg.Source), Config: s.cfg,
		Info: st.hello.ServerInfo, ProtocolVersion: st.hello.ProtocolVersion,
		Capabilities: st.hello.Capabilities, Instructions: st.hello.Instructions,
		Error: st.err, WireError: st.wireErr, Attempt: st.attempt,
		Tools: slices.Clone(st.lists.tools), RawTools: slices.Clone(st.lists.raw), Prompts: slices.Clone(st.lists.prompts),
		Warnings: slices.Concat(st.lists.warnings, st.warnings),
	}
	if st.conn != nil {
		out.PID = st.conn.pid
		if n, first := st.conn.skipped(); n > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("%d lines of output that are no messages, the first: %s", n, first))
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
