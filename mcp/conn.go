package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/mcp/internal/trace"
)

const (
	// ProtocolVersion of MCP is asked for; servers may answer with an older one. A
	// newer one would be probed for with a request that some servers ignore,
	// some die of and some answer with nonsense.
	ProtocolVersion = "2025-11-25"
	cancelLimit     = 5 * time.Second
	// A server that says nothing to the probe is taken for an older one after
	// this time or share of the time to connect.
	probeLimit = 3 * time.Second
	// listenLimit is how long the standing stream of a server may take to open
	// before it counts as connected all the same. Servers that answer the GET
	// with their first message only cost it once.
	listenLimit = time.Second
	probeShare  = 0.3
	maxPages    = 1000
)

// conn is one live connection to a server: a transport, the client on it, and
// what the handshake said. It is used up when lost; reconnecting makes another.
type conn struct {
	client *client.Client
	link   *link
	// closeTransport ends what is below the client (the process), within its
	// own bounds.
	closeTransport func(ctx context.Context)
	// why explains a lost connection ("exit status 3: boom"), within patience;
	// nil = unknown.
	why func(patience time.Duration) string
	// tail are the last lines of standard error; nil = there is none.
	tail func() []string
	// junk tells about output that was no message; nil = none is possible.
	junk func() (n int, first string)
	pid  int

	ended      <-chan struct{} // closed when nobody wants the connection any more
	lost       chan struct{}   // closed once when the server went away
	loseOnce   sync.Once
	silence    atomic.Bool // it was given up since it no longer answers
	barred     atomic.Bool // it was given up since it wants authorization
	debug      *trace.Log
	retryPause time.Duration
	updated    func(uri string) // a subscribed resource changed
	// kick has a token when a list_changed came. changes counts them; current
	// is the count the lists in use are good for.
	kick             chan struct{}
	changes, current atomic.Int64

	mu        sync.Mutex
	listeners map[int64]*listener // by progress token

	// opened is called after the handshake; nil = nobody waits for it.
	opened   func()
	greeting wire.InitializeRequest
	hello    handshake

	remote        bool            // over HTTP: there is no process whose end would show
	stopListening func()          // of the newer era; nil = notifications come unasked
	listening     <-chan struct{} // closed when the standing stream is open; nil = there is none
	refused       func() int      // HTTP status of the last answer; nil = not over HTTP
	session       sync.Mutex      // one renewal of the session at a time

	// deliver takes a message the host of an SDK server sent by itself.
	deliver func(ctx context.Context, message json.RawMessage) error
}

// handshake is a server's answer to initialize.
type handshake struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"`
	ServerInfo      ServerInfo      `json:"serverInfo"`
	Instructions    string          `json:"instructions"`
}

// has reports whether the server declared a capability.
func (h handshake) has(capability string) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(h.Capabilities, &all) != nil {
		return false
	}
	v, ok := all[capability]
	return ok && string(v) != "null" && string(v) != "false"
}

// bare reports whether the server declared nothing at all.
func (h handshake) bare() bool {
	var all map[string]json.RawMessage
	return json.Unmarshal(h.Capabilities, &all) != nil || len(all) == 0
}

// era is the family of protocol versions that is tried.
type era int

const (
	eraLegacy era = iota // initialize, up to 2025-11-25
	eraProbe             // server/discover first, 2026-07-28
)

// newConn puts a client on a transport.
func newConn(s *server, inner transport.Interface, debug *trace.Log, e era) *conn {
	c := &conn{
		lost:      make(chan struct{}),
		kick:      make(chan struct{}, 1),
		listeners: map[int64]*listener{},
		debug:     debug, retryPause: s.m.o.RetryPause,
		updated: func(uri string) { s.m.updated(s.cfg.Name, uri) },
	}
	c.link = &link{inner: inner, debug: debug, answer: s.answer, notified: c.notified}
	capabilities := wire.ClientCapabilities{
		Roots: &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{ListChanged: true},
		Elicitation: &wire.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
	}
	if s.m.o.Sample != nil {
		capabilities.Sampling = &wire.SamplingCapability{}
	}
	if s.cfg.Type == typeSDK { // its host asks the user itself
		capabilities = wire.ClientCapabilities{}
	}
	options := []client.ClientOption{client.WithClientCapabilities(capabilities)}
	if e == eraLegacy {
		options = append(options, client.WithProtocolVersion(ProtocolVersion))
	} else {
		patience := time.Duration(float64(s.connectTimeout()) * probeShare)
		options = append(options, client.WithDiscoverTimeout(min(patience, probeLimit)),
			client.WithElicitationHandler(asker{s}), client.WithRootsHandler(asker{s}))
	}
	c.client = client.NewClient(c.link, options...)
	return c
}

// lose marks the connection as gone.
func (c *conn) lose() { c.loseOnce.Do(func() { close(c.lost) }) }

func (c *conn) isLost() bool {
	select {
	case <-c.lost:
		return true
	default:
		return false
	}
}

// stale reports whether the server's lists changed since they were fetched.
func (c *conn) stale() bool { return c.current.Load() < c.changes.Load() }

func (c *conn) skipped() (n int, first string) {
	if c.junk == nil {
		return 0, ""
	}
	return c.junk()
}

// open starts the transport and does the handshake. ctx lives as long as the
// connection; connecting ends when limit does.
func (c *conn) open(ctx, limit context.Context, version string) error {
	c.ended = ctx.Done()
	if err := c.client.Start(ctx); err != nil {
		return err
	}
	ex := &exchange{}
	c.greeting.Params.ClientInfo = wire.Implementation{
		Name: "claude-code", Title: "Claude Code", Version: version, Description: "Anthropic's agentic coding tool",
		WebsiteURL: "https://claude.com/claude-code",
	}
	result, err := c.client.Initialize(context.WithValue(limit, exchangeKey{}, ex), c.greeting)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(ex.result, &c.hello); err != nil {
		return fmt.Errorf("reading the answer to initialize: %w", err)
	}
	if c.link.modern.Load() { // says its name and version elsewhere
		c.hello.ProtocolVersion = result.ProtocolVersion
		c.hello.ServerInfo = ServerInfo{Name: result.ServerInfo.Name, Title: result.ServerInfo.Title, Version: result.ServerInfo.Version}
		c.stopListening, err = c.client.ListenAsync(ctx, wire.SubscriptionFilter{
			ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true,
		}, func(err error) { c.debug.Printf("no notifications: %v", err) })
		if err != nil {
			return err
		}
	}
	if c.opened != nil {
		c.opened()
	}
	return nil
}

// waitListening waits for the standing stream: a server that finds it opened
// in the middle of a call may send the answer there, where it is lost.
func (c *conn) waitListening(ctx context.Context) {
	if c.listening == nil {
		return
	}
	timer := time.NewTimer(listenLimit)
	defer timer.Stop()
	select {
	case <-c.listening:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// close ends the connection and everything below it; it is bounded and may be
// called more than once.
func (c *conn) close(ctx context.Context) {
	if c.stopListening != nil {
		c.stopListening()
	}
	_ = c.client.Close() // a server that is gone already is no error
	if c.closeTransport != nil {
		c.closeTransport(ctx)
	}
	c.lose()
}

// notified runs on the read loop.
func (c *conn) notified(method string, params map[string]any) {
	switch method {
	case string(wire.MethodNotificationToolsListChanged),
		string(wire.MethodNotificationPromptsListChanged),
		string(wire.MethodNotificationResourcesListChanged):
		c.changes.Add(1)
		select {
		case c.kick <- struct{}{}:
		default:
		}
	case string(wire.MethodNotificationProgress):
		c.progress(params)
	case wire.MethodNotificationResourceUpdated:
		if uri, ok := params["uri"].(string); ok {
			c.updated(uri)
		}
	case "notifications/message":
		c.log(params)
	}
}

// log writes what a server logs to the debug log.
func (c *conn) log(params map[string]any) {
	const longest = 2000
	text, err := json.Marshal(params["data"])
	if err != nil || c.debug == nil {
		return
	}
	c.debug.Printf("log %v: %.*s", params["level"], longest, text)
}

// raw runs one request of the client and returns the result as it came.
func raw(ctx context.Context, stub string, send func(context.Context) error) (json.RawMessage, error) {
	ex := &exchange{stub: json.RawMessage(stub)}
	if err := send(context.WithValue(ctx, exchangeKey{}, ex)); err != nil {
		return nil, plainError(err)
	}
	return ex.result, nil
}

// plainError undoes mcp-go's wrapping. The text of a lost connection is the
// one the real CLI shows.
func plainError(err error) error {
	var rpc *RPCError
	if errors.As(err, &rpc) {
		return rpc
	}
	var d *dialError
	if errors.As(err, &d) {
		return d
	}
	if errors.Is(err, transport.ErrTransportClosed) {
		return ErrConnectionClosed
	}
	var unreachable *url.Error
	if errors.As(err, &unreachable) { // it says what was tried; the wrapping repeats it
		return unreachable
	}
	var wrapped *transport.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// connect makes one attempt, of several tries when a remote server fails in a
// way that may pass. The connection it returns lives as long as life; the
// attempt ends with ctx and after the connect time-out.
func (s *server) connect(life, ctx context.Context, retries int) dialResult {
	release, err := s.m.slot(ctx, s.cfg.Type)
	if err != nil {
		return dialResult{err: err}
	}
	defer release()
	limit, stop := context.WithTimeout(ctx, s.connectTimeout())
	defer stop()
	cfg, unset := expandConfig(s.cfg, lookupFunc(s.m.o.Environ, s.m.o.CWD))
	debug := s.m.debug.Log(cfg.Name, cfg.Env, cfg.Headers)
	for _, name := range unset {
		debug.Printf("variable %s is not set", name)
	}
	debug.Printf("connecting (%s)", cmp.Or(cfg.Type, typeStdio))
	var c *conn
	var got lists
	for attempt := range retries + 1 {
		c, got, err = s.shake(life, limit, cfg, debug)
		if err == nil || attempt == retries || !errors.As(err, &transientError{}) ||
			sleep(limit, s.m.o.RetryPause<<attempt) != nil {
			break
		}
	}
	if err != nil {
		debug.Printf("failed: %v", err)
		return dialResult{err: err}
	}
	debug.Printf("connected, %d tools", len(got.tools))
	for _, w := range got.warnings {
		debug.Printf("%s", w)
	}
	return dialResult{conn: c, lists: got}
}

// transientError marks a failure that may pass.
type transientError struct{ error }

func (e transientError) Unwrap() error { return e.error }

// shake connects in the era and over the transport that the server knows.
func (s *server) shake(life, limit context.Context, cfg ServerConfig, debug *trace.Log) (*conn, lists, error) {
	if s.m.o.Probe && (cfg.Type == typeStdio || cfg.Type == typeHTTP) {
		c, got, err := s.try(life, limit, cfg, debug, eraProbe)
		if !errors.Is(err, errLegacyServer) {
			return c, got, err
		}
	}
	c, got, err := s.try(life, limit, cfg, debug, eraLegacy)
	if cfg.OrSSE && errors.Is(err, errNoEndpoint) {
		debug.Printf("no streamable HTTP here, trying sse")
		cfg.Type = typeSSE
		return s.try(life, limit, cfg, debug, eraLegacy)
	}
	return c, got, err
}

var (
	// errLegacyServer says that a server does not know the newer era.
	errLegacyServer = errors.New("server knows initialize only")
	// errNoEndpoint says that there is nothing at the URL, or nothing that
	// takes messages.
	errNoEndpoint = errors.New("no streamable HTTP endpoint")
)

// try dials once, does the handshake and fetches the lists.
func (s *server) try(life, limit context.Context, cfg ServerConfig, debug *trace.Log, e era) (*conn, lists, error) {
	c, err := s.dialType(life, limit, cfg, debug, e)
	if err != nil {
		if cfg.Type == typeSSE && transient(err) {
			err = transientError{err}
		}
		return nil, lists{}, err
	}
	var got lists
	if err = c.open(life, limit, s.m.o.ClientVersion); err == nil {
		got, err = c.fetch(limit, cfg)
	}
	if err == nil {
		c.waitListening(limit)
		return c, got, nil
	}
	died := e == eraProbe && !c.remote && c.isLost() && c.hello.ProtocolVersion == ""
	missing := c.refused != nil && (c.refused() == http.StatusNotFound || c.refused() == http.StatusMethodNotAllowed)
	explained := s.explain(limit, c, err)
	c.close(context.WithoutCancel(life))
	switch {
	case died || errors.Is(err, errLegacyServer):
		explained = errLegacyServer
	case missing && errors.Is(err, transport.ErrLegacySSEServer):
		explained = errors.Join(errNoEndpoint, explained)
	case c.remote && transient(err):
		explained = transientError{explained}
	}
	return nil, lists{}, explained
}

func (s *server) connectTimeout() time.Duration {
	return orDefault(s.cfg.ConnectTimeout, s.m.o.ConnectTimeout)
}

// timeoutSource is where the time to connect can be changed.
func (s *server) timeoutSource() string {
	if s.cfg.ConnectTimeout > 0 {
		return "connectTimeout of its entry"
	}
	return "MCP_TIMEOUT"
}

// slot waits until one more server may connect.
func (m *Manager) slot(ctx context.Context, kind string) (release func(), err error) {
	slots := m.far
	if kind == typeStdio || kind == "" {
		slots = m.local
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dialError says why a connect failed, in our words and the real CLI's.
type dialError struct {
	Reason, Wire string
	NeedsAuth    bool
}

func (e *dialError) Error() string { return e.Reason }

// explain finds the reason behind a failed handshake.
func (s *server) explain(limit context.Context, c *conn, err error) error {
	err = plainError(err)
	var d *dialError
	var rpc *RPCError
	switch {
	case errors.As(err, &d):
		return d
	case errors.Is(limit.Err(), context.DeadlineExceeded):
		text := fmt.Sprintf("connection timed out after %dms", s.connectTimeout().Milliseconds())
		return &dialError{Reason: text + " (" + s.timeoutSource() + ")", Wire: text}
	case errors.As(err, &rpc):
		return &dialError{Reason: fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code), Wire: rpc.Message}
	case errors.Is(err, ErrConnectionClosed) || c.isLost():
		d := &dialError{Reason: "connection closed", Wire: ErrConnectionClosed.Error()}
		if c.why != nil {
			d.Reason = cmp.Or(c.why(time.Second), d.Reason) // nobody waits for a server that did not start
		}
		return d
	}
	return &dialError{Reason: err.Error(), Wire: err.Error()}
}

// again starts a new session for a server that forgot the old one; calls that
// met the loss together share one handshake.
func (c *conn) again(ctx context.Context) error {
	c.session.Lock()
	defer c.session.Unlock()
	if c.link.GetSessionId() != "" {
		return nil
	}
	_, err := c.client.Initialize(ctx, c.greeting)
	return err
}
