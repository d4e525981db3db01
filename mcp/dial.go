package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/claudeless/claudeless/mcp/internal/connection"
	"github.com/claudeless/claudeless/mcp/internal/helper"
	"github.com/claudeless/claudeless/mcp/internal/trace"
)

const defaultMaxLine = 16 << 20

// dialResult is the outcome of a connect.
type dialResult struct {
	conn  *connection.Conn
	lists lists
	err   error
}

// connect makes one attempt, of several tries when a remote server fails in a
// way that may pass. The connection it returns lives as long as life; the
// attempt ends with ctx and after the connect time-out.
func (s *server) connect(life, ctx context.Context, retries int) dialResult {
	release, err := s.slot(ctx, s.cfg.Type)
	if err != nil {
		return dialResult{err: err}
	}
	defer release()
	limit, stop := context.WithTimeout(ctx, s.connectTimeout())
	defer stop()
	cfg, unset := expandConfig(s.cfg, s.variables())
	log := s.debug.Log(cfg.Name, cfg.Env, cfg.Headers)
	for _, name := range unset {
		log.Printf("variable %s is not set", name)
	}
	log.Printf("connecting (%s)", cmp.Or(cfg.Type, typeStdio))
	d := dialer{server: s, cfg: cfg, log: log}
	var r dialResult
	for attempt := range retries + 1 {
		r = d.shake(life, limit)
		if r.err == nil || attempt == retries || !errors.As(r.err, &connection.TransientError{}) ||
			sleep(limit, s.o.Pauses.Retry<<attempt) != nil {
			break
		}
	}
	if r.err != nil {
		log.Printf("failed: %v", r.err)
		return r
	}
	log.Printf("connected, %d tools", len(r.lists.tools))
	for _, w := range r.lists.allWarnings() {
		log.Printf("%s", w)
	}
	return r
}

// dialer is one attempt to connect a server.
type dialer struct {
	*server
	cfg ServerConfig // expanded
	log *trace.Log
}

// shake connects in the era and over the transport that the server knows.
func (d dialer) shake(life, limit context.Context) dialResult {
	if n := d.negotiation(); n != connection.Legacy {
		r := d.try(life, limit, n)
		if !errors.Is(r.err, connection.ErrLegacy) {
			return r
		}
	}
	r := d.try(life, limit, connection.Legacy)
	if d.cfg.OrSSE && errors.Is(r.err, connection.ErrNoEndpoint) {
		d.log.Printf("no streamable HTTP here, trying sse")
		d.cfg.Type = typeSSE
		return d.try(life, limit, connection.Legacy)
	}
	return r
}

// negotiation is that of the manager, for transports that have more than one.
func (d dialer) negotiation() connection.Negotiation {
	switch {
	case d.cfg.Type == typeSDK, d.cfg.Type == typeSSE:
		return connection.Legacy
	case d.o.Negotiation == NegotiateAuto:
		return connection.Auto
	case d.o.Negotiation == NegotiateModern:
		return connection.Modern
	}
	return connection.Legacy
}

// try dials once, does the handshake and fetches the lists.
func (d dialer) try(life, limit context.Context, n connection.Negotiation) dialResult {
	target, err := d.target(limit)
	if err != nil {
		return dialResult{err: err}
	}
	c, err := connection.Dial(life, limit, connection.Options{
		Target: target, Handler: clientRequests{d.shared, d.cfg.Name}, Tasks: &d.tasks, Debug: d.log,
		Version: d.o.ClientVersion, Sampling: d.o.Sample != nil,
		Negotiation: n, Timeout: d.connectTimeout(), Late: d.late(), Reopen: d.o.Pauses.Reopen,
	})
	if err != nil {
		return dialResult{err: err}
	}
	var got lists
	if err = c.Open(life, limit); err == nil {
		got, err = listFetcher{c, d.cfg, d.o.Pauses.Retry}.fetch(limit, lists{}, nil)
	}
	if err != nil {
		return dialResult{err: c.Abandon(life, limit, err)}
	}
	c.WaitListening(limit)
	return dialResult{conn: c, lists: got}
}

// late is what a connect that took too long fails with; it names where the time
// can be changed.
func (d dialer) late() *connection.DialError {
	source := "MCP_TIMEOUT"
	if d.cfg.ConnectTimeout > 0 {
		source = "connectTimeout of its entry"
	}
	text := fmt.Sprintf("connection timed out after %dms", d.connectTimeout().Milliseconds())
	return &connection.DialError{Reason: text + " (" + source + ")", Wire: text}
}

// target is the server and how it is reached.
func (d dialer) target(ctx context.Context) (connection.Target, error) {
	switch d.cfg.Type {
	case "", typeStdio:
		return connection.Process{
			Command: d.cfg.Command, Args: d.cfg.Args, Env: d.environ(d.cfg), Dir: cmp.Or(d.cfg.CWD, d.o.CWD),
			Grace: d.cfg.ShutdownGrace, MaxLine: orDefault(d.cfg.MaxLineBytes, defaultMaxLine),
			Stderr: d.log.Stderr(), Hider: d.log,
		}, nil
	case typeHTTP, typeSSE:
		if d.cfg.URL == "" && d.cfg.Type == typeHTTP {
			return nil, errors.New("url is empty")
		}
		return d.remote(ctx), nil
	case typeSDK:
		return connection.Hosted{Server: d.cfg.Name, Send: d.o.SDK}, nil
	default:
		return nil, fmt.Errorf("transport %q is not supported", d.cfg.Type)
	}
}

// remote is a server at a URL, with the headers a helper gives for this
// connect. A helper that fails leaves the configured ones.
func (d dialer) remote(ctx context.Context) connection.Remote {
	t := connection.Remote{
		Server: d.cfg.Name, URL: d.cfg.URL, SSE: d.cfg.Type == typeSSE, Agent: d.userAgent(), Headers: d.cfg.Headers,
		// Connecting to the port may take a part of the time only, so that
		// another try is left.
		DialTimeout: d.connectTimeout() / 4, MaxMessage: orDefault(d.cfg.MaxLineBytes, defaultMaxLine),
	}
	switch {
	case d.cfg.HeadersHelper != "":
		if headers, err := (helperHeaders{d}).headers(ctx); err != nil {
			d.log.Printf("%v", err)
		} else {
			t.Headers = headers
		}
		t.Renewer = helperHeaders{d}
	case d.o.Authorize != nil:
		t.Renewer = oauthHeaders{d}
	}
	return t
}

// helperHeaders are the headers of a server with a headersHelper.
type helperHeaders struct{ dialer }

// Renew implements connection.Renewer.
func (h helperHeaders) Renew(ctx context.Context, r connection.Refusal) (map[string]string, error) {
	if !r.Accepted { // the headers could not be fresher
		return nil, errors.New("refused with fresh headers")
	}
	return h.headers(ctx)
}

// headers runs the helper; what it prints outranks what is configured.
func (h helperHeaders) headers(ctx context.Context) (map[string]string, error) {
	headers, err := helper.Headers(ctx, helper.Options{
		Command: h.cfg.HeadersHelper, Dir: h.o.CWD, Environ: h.o.Environ, Server: h.cfg.Name, URL: h.cfg.URL,
	})
	if err != nil {
		return nil, err
	}
	h.log.Hide(headers)
	return merged(h.cfg.Headers, headers), nil
}

// oauthHeaders are the headers of a server that somebody authorizes for.
type oauthHeaders struct{ dialer }

// Renew implements connection.Renewer.
func (a oauthHeaders) Renew(ctx context.Context, r connection.Refusal) (map[string]string, error) {
	headers, err := a.o.Authorize(ctx, Challenge{Server: a.cfg.Name, URL: a.cfg.URL, Status: r.Status, Header: r.Header})
	if err != nil {
		return nil, err
	}
	a.log.Hide(headers)
	return merged(a.cfg.Headers, headers), nil
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
