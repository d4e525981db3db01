package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/internal/proc"
	"github.com/claudeless/claudeless/mcp/internal/carrier"
	"github.com/claudeless/claudeless/mcp/internal/helper"
	"github.com/claudeless/claudeless/mcp/internal/trace"
)

const (
	defaultMaxLine = 16 << 20
	// exitLinger is how long the output of a process that has ended may still
	// come through.
	exitLinger = 50 * time.Millisecond
)

// dialType puts a client on a way to the server.
func (s *server) dialType(life, limit context.Context, cfg ServerConfig, debug *trace.Log, e era) (*conn, error) {
	switch cfg.Type {
	case "", typeStdio:
		return s.dialStdio(limit, cfg, debug, e)
	case typeHTTP:
		return s.dialHTTP(limit, cfg, debug, e)
	case typeSSE:
		return s.dialSSE(life, limit, cfg, debug)
	case typeSDK:
		return s.dialSDK(cfg, debug)
	default:
		return nil, fmt.Errorf("transport %q is not supported", cfg.Type)
	}
}

// dialSDK puts a client on a server of the SDK host.
func (s *server) dialSDK(cfg ServerConfig, debug *trace.Log) (*conn, error) {
	if s.m.o.SDK == nil {
		return nil, errors.New("there is no SDK host")
	}
	t := carrier.NewHost(cfg.Name, s.m.o.SDK)
	c := newConn(s, t, debug, eraLegacy)
	c.deliver = t.Deliver
	return c, nil
}

// dialStdio starts a server's process and puts a client on its pipes.
func (s *server) dialStdio(ctx context.Context, cfg ServerConfig, debug *trace.Log, e era) (*conn, error) {
	o := proc.Options{
		Command: proc.Command{Path: cfg.Command, Args: cfg.Args, Env: s.m.environ(cfg), Dir: cmp.Or(cfg.CWD, s.m.o.CWD)},
		Stderr:  debug.Stderr(), Grace: cfg.ShutdownGrace, TermGrace: cfg.ShutdownGrace,
	}
	p, err := proc.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	var c *conn // nothing is read before the client starts
	filter := carrier.NewFilter(carrier.FilterOptions{
		Source: p.Stdout(), Limit: orDefault(cfg.MaxLineBytes, defaultMaxLine),
		Repair: func(line []byte) []byte { return c.link.repairNullID(line) },
		OnEnd:  func() { c.lose() },
		OnJunk: func(first string) { debug.Printf("not a message, skipped: %s", first) },
		OnLong: func(id []byte, why *carrier.TooLongError) { c.link.tooLong(id, why) },
	})
	pipes := transport.NewIO(filter, stdin{p.Stdin()}, nil)
	transport.WithCommandLogger(silent)(pipes) // it would write to standard error
	c = newConn(s, pipes, debug, e)
	c.pid = p.PID()
	c.closeTransport = p.Stop
	c.why = func(patience time.Duration) string { return exitReason(p, debug, patience) }
	c.tail = func() []string { return lastLines(debug.Redact(p.StderrTail())) }
	c.junk = filter.Skipped
	s.m.tasks.Go(func() { // ends with the process, or when the connection is closed
		select {
		case <-p.Done():
		case <-c.lost:
			return
		}
		select { // descendants may hold the pipe for ever
		case <-time.After(exitLinger):
			_ = c.client.Close() // fails what is in flight
			c.lose()
		case <-c.lost:
		}
	})
	return c, nil
}

// silent is where mcp-go logs to.
var silent = slog.New(slog.DiscardHandler)

// stdin lets the transport close the server's input without dropping what is
// still queued. Writing to a server that is gone is no error here, which the
// transport would log: the end of its output tells.
type stdin struct{ *proc.Queue }

func (s stdin) Write(p []byte) (int, error) {
	n, err := s.Queue.Write(p)
	if errors.Is(err, proc.ErrQueueClosed) {
		return len(p), nil
	}
	return n, err
}

func (s stdin) Close() error {
	s.CloseWhenSent()
	return nil
}

// exitReason is "exit status 3: last line of standard error"; empty when the
// process does not end within patience: its pipes may close a moment before.
func exitReason(p *proc.Process, debug *trace.Log, patience time.Duration) string {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
	}
	exit, ended := p.Exit()
	if !ended {
		return ""
	}
	reason := exit.String()
	if line := lastLine(p.StderrTail()); line != "" {
		reason += ": " + line
	}
	return debug.Redact(reason)
}

// lastLines are the last few lines of a text.
func lastLines(text string) []string {
	const most = 5
	lines := strings.Split(strings.ToValidUTF8(strings.TrimRight(text, " \t\r\n"), "?"), "\n")
	if lines[0] == "" && len(lines) == 1 {
		return nil
	}
	return lines[max(0, len(lines)-most):]
}

func lastLine(text string) string {
	const longest = 500
	text = strings.TrimRight(text, " \t\r\n")
	line := text[strings.LastIndexByte(text, '\n')+1:]
	line = strings.ToValidUTF8(strings.TrimSpace(line), "?")
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return line
}

// environ is the environment of a stdio server. Telemetry settings of the CLI
// are not for its servers.
func (m *Manager) environ(cfg ServerConfig) []string {
	env := slices.DeleteFunc(slices.Clone(m.o.Environ), func(kv string) bool {
		return strings.HasPrefix(kv, "OTEL_")
	})
	if _, ok := lastOf(env, entrypointVar); !ok {
		env = append(env, entrypointVar+"="+defaultEntrypoint)
	}
	env = append(env, "CLAUDECODE=1", "CLAUDE_PROJECT_DIR="+m.o.CWD, "CLAUDE_CODE_SESSION_ID="+m.o.SessionID)
	for _, k := range sortedKeys(cfg.Env) {
		env = append(env, k+"="+cfg.Env[k])
	}
	return env
}

const (
	entrypointVar     = "CLAUDE_CODE_ENTRYPOINT"
	defaultEntrypoint = "sdk-cli"
)

// lastOf is the value of a variable; of equal names the last counts.
func lastOf(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if key, v, _ := strings.Cut(kv, "="); key == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// userAgent is how remote servers are told who asks (observed with 2.1.329).
func (m *Manager) userAgent() string {
	entrypoint, _ := lastOf(m.o.Environ, entrypointVar)
	about := cmp.Or(entrypoint, defaultEntrypoint)
	if sdk, _ := lastOf(m.o.Environ, "CLAUDE_AGENT_SDK_VERSION"); sdk != "" {
		about += ", agent-sdk/" + sdk
	}
	return "claude-code/" + m.o.ClientVersion + " (" + about + ")"
}

// deleteLimit bounds the DELETE that ends a session.
const deleteLimit = time.Second

// dialHTTP puts a client on a streamable HTTP endpoint, in the older era with a
// standing GET stream for what the server sends by itself.
func (s *server) dialHTTP(ctx context.Context, cfg ServerConfig, debug *trace.Log, e era) (*conn, error) {
	if cfg.URL == "" {
		return nil, errors.New("url is empty")
	}
	trip := s.roundTripper(ctx, cfg, debug)
	trip.standing, trip.ready, trip.listening = true, make(chan struct{}), make(chan struct{})
	options := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(&http.Client{Transport: trip}), transport.WithHTTPLogger(silent),
	}
	if e == eraLegacy {
		options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // deprecated for a protocol version that is not asked for here
	}
	inner, err := transport.NewStreamableHTTP(cfg.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("url of MCP server %q cannot be read", cfg.Name) // the parser's text repeats it
	}
	c := newConn(s, inner, debug, e)
	c.remote, c.link.onlyModern = true, e == eraProbe
	c.opened = func() {
		trip.version = c.hello.ProtocolVersion
		close(trip.ready)
	}
	if e == eraLegacy {
		c.listening = trip.listening
	}
	c.refused = func() int { return int(trip.status.Load()) }
	c.closeTransport = func(context.Context) { trip.base.CloseIdleConnections() }
	return c, nil
}

// dialSSE opens the stream and waits for the endpoint. The stream lives as
// long as life; opening ends when limit does.
func (s *server) dialSSE(life, limit context.Context, cfg ServerConfig, debug *trace.Log) (*conn, error) {
	trip := s.roundTripper(limit, cfg, debug)
	var c *conn // nothing is lost before the stream was open
	opened := make(chan struct{})
	t, err := carrier.OpenSSE(life, limit, carrier.SSEOptions{
		URL: cfg.URL, Client: &http.Client{Transport: trip}, Limit: trip.limit,
		OnLong: func(id []byte, why *carrier.TooLongError) {
			<-opened
			if c != nil {
				c.link.tooLong(id, why)
			}
		},
		Lose: func() {
			trip.base.CloseIdleConnections()
			<-opened
			if c != nil {
				c.lose()
			}
		},
	}, s.m.tasks.Go)
	defer close(opened)
	if status := new(carrier.StatusError); errors.As(err, &status) && status.Code < http.StatusInternalServerError {
		return nil, &dialError{Reason: err.Error(), Wire: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	c = newConn(s, t, debug, eraLegacy)
	c.remote = true
	c.closeTransport = func(context.Context) { trip.base.CloseIdleConnections() }
	return c, nil
}

// roundTripper makes the way to one remote server, with the headers a helper
// gives for this connect. A helper that fails leaves the configured ones.
func (s *server) roundTripper(ctx context.Context, cfg ServerConfig, debug *trace.Log) *roundTripper {
	// Connecting to the port may take a part of the time only, so that another
	// try is left.
	dialer := net.Dialer{Timeout: s.connectTimeout() / 4}
	t := &roundTripper{
		base:  &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 16},
		limit: orDefault(cfg.MaxLineBytes, defaultMaxLine), headers: cfg.Headers, agent: s.m.userAgent(),
	}
	if u, err := url.Parse(cfg.URL); err == nil { // else there is nobody to send to
		t.origin = originOf(u)
	}
	switch {
	case cfg.HeadersHelper != "":
		run := func(ctx context.Context) (map[string]string, error) { return s.help(ctx, cfg, debug) }
		if headers, err := run(ctx); err != nil {
			debug.Printf("%v", err)
		} else {
			t.headers = headers
		}
		t.renew = func(ctx context.Context, _ Challenge) (map[string]string, error) {
			if !t.accepted.Load() { // the headers could not be fresher
				return nil, errors.New("refused with fresh headers")
			}
			return run(ctx)
		}
	case s.m.o.Authorize != nil:
		t.renew = func(ctx context.Context, c Challenge) (map[string]string, error) {
			c.Server, c.URL = cfg.Name, cfg.URL
			headers, err := s.m.o.Authorize(ctx, c)
			if err != nil {
				return nil, err
			}
			debug.Hide(headers)
			return merged(cfg.Headers, headers), nil
		}
	}
	return t
}

// help runs a server's headersHelper; what it prints outranks what is
// configured.
func (s *server) help(ctx context.Context, cfg ServerConfig, debug *trace.Log) (map[string]string, error) {
	headers, err := helper.Headers(ctx, helper.Options{
		Command: cfg.HeadersHelper, Dir: s.m.o.CWD, Environ: s.m.o.Environ, Server: cfg.Name, URL: cfg.URL,
	})
	if err != nil {
		return nil, err
	}
	debug.Hide(headers)
	return merged(cfg.Headers, headers), nil
}

// merged puts over in place of the headers of base that have the same name.
func merged(base, over map[string]string) map[string]string {
	all := map[string]string{}
	for _, table := range []map[string]string{base, over} {
		for k, v := range table {
			all[http.CanonicalHeaderKey(k)] = v
		}
	}
	return all
}

// Challenge is a server's refusal, for Options.Authorize.
type Challenge struct {
	Server, URL string
	Status      int    // 401 or 403
	Header      string // WWW-Authenticate; empty = none came
}

// roundTripper puts the configured headers on every request, DELETE included,
// bounds what a server may send at a stretch, and makes refusals errors.
type roundTripper struct {
	base   *http.Transport
	limit  int
	origin string // of the server: headers go nowhere else
	agent  string // User-Agent
	// standing says that GET opens the optional standing stream, which waits
	// for ready. Version is set before ready is closed, after the handshake.
	// Without it GET opens a stream whose reader bounds it.
	standing bool
	ready    chan struct{}
	version  string
	// listening is closed, by listened, when the first GET was answered, however.
	listening chan struct{}
	listened  sync.Once
	// renew gives other headers after a request was refused that matters, once
	// for each; nil = a refusal is final.
	renew    func(context.Context, Challenge) (map[string]string, error)
	accepted atomic.Bool  // some request was not refused
	status   atomic.Int32 // of the last answer

	mu      sync.Mutex // held while headers are renewed
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, stop := req.Context(), context.CancelFunc(func() {})
	switch {
	case req.Method == http.MethodGet && t.standing: // must not overtake the handshake
		select {
		case <-t.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case req.Method == http.MethodDelete:
		ctx, stop = context.WithTimeout(ctx, deleteLimit)
	}
	t.mu.Lock()
	headers := t.headers
	t.mu.Unlock()
	resp, err := t.send(ctx, req, headers)
	optional := req.Method == http.MethodDelete || req.Method == http.MethodGet && t.standing
	if err == nil && unauthorized(resp) && t.renew != nil && !optional {
		resp, err = t.sendAgain(ctx, req, resp, headers)
	}
	if req.Method == http.MethodGet && t.standing {
		t.listened.Do(func() { close(t.listening) })
	}
	if err != nil {
		stop()
		return nil, err
	}
	t.status.Store(int32(resp.StatusCode)) //nolint:gosec // three digits
	limit := t.limit
	if req.Method == http.MethodGet && !t.standing {
		limit = math.MaxInt // who reads the stream bounds it
	}
	carrier.Bound(ctx, resp, limit, stop)
	if !unauthorized(resp) {
		t.accepted.Store(true)
		return resp, nil
	}
	if optional && req.Method == http.MethodGet { // no use in trying again
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	}
	resp.Body.Close()
	text := fmt.Sprintf("HTTP %d: authorization required", resp.StatusCode)
	return nil, &dialError{Reason: text, Wire: text, NeedsAuth: true}
}

func unauthorized(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden
}

func originOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (t *roundTripper) send(ctx context.Context, req *http.Request, headers map[string]string) (*http.Response, error) {
	req = req.Clone(ctx)
	if t.standing && req.Method == http.MethodGet && t.version != "" {
		req.Header.Set(carrier.VersionHeader, t.version)
	}
	req.Header.Set("User-Agent", t.agent)
	req.Header.Set("Accept-Encoding", "identity")
	if req.Method == http.MethodGet {
		req.Header.Del("Content-Type")
	}
	if originOf(req.URL) == t.origin { // a redirect to somebody else does not carry secrets there
		for k, v := range headers {
			req.Header.Set(k, v)
		}
	}
	return t.base.RoundTrip(req)
}

// sendAgain renews the headers that were refused and repeats the request. Of
// several requests refused together one renews. Without new headers the
// refusal stands.
func (t *roundTripper) sendAgain(ctx context.Context, req *http.Request, refusal *http.Response, used map[string]string) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil {
		return refusal, nil
	}
	t.mu.Lock()
	if maps.Equal(used, t.headers) {
		fresh, err := t.renew(ctx, Challenge{Status: refusal.StatusCode, Header: refusal.Header.Get("WWW-Authenticate")})
		if err != nil {
			t.mu.Unlock()
			return refusal, nil //nolint:nilerr // the refusal says more
		}
		t.headers = fresh
	}
	headers := t.headers
	t.mu.Unlock()
	refusal.Body.Close()
	again := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return t.send(ctx, again, headers)
}

// transient reports whether a first connect to a remote server is worth
// another try: it was refused, broke off, or met an error of the server.
func transient(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var d *dialError
	var rpc *RPCError
	return !errors.As(err, &d) && !errors.As(err, &rpc) && !errors.Is(err, transport.ErrLegacySSEServer) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
