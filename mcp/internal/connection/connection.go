// Package connection manages one live connection to an MCP server: its
// transport, its client, the handshake and the requests in progress.
//
// Results and definitions are returned as the server sent them, and all waiting
// callers are notified as soon as the connection ends. A lost connection is not
// reused; reconnecting creates a new one.
package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// ProtocolVersion of MCP is asked for in the handshake; servers may answer with
// an older one.
const ProtocolVersion = wire.LATEST_LEGACY_PROTOCOL_VERSION

// Options describe a connection. Target, Handler, Tasks and Debug are
// required.
type Options struct {
	Target  Target
	Handler Handler
	Tasks   *sync.WaitGroup // counts the goroutines
	Debug   Log
	Version string // of the client
	// Sampling declares that the handler answers sampling/createMessage.
	Sampling bool
	// Negotiation is how the revision of MCP is agreed on.
	Negotiation Negotiation
	Timeout     time.Duration // of connecting, which the probe has a share of
	// Reopen is the pause before notifications of the newer era that ended are
	// opened again; it doubles with each attempt. 0 = 1 s.
	Reopen time.Duration
	// Late is what a connect that took too long failed with.
	Late *DialError
}

// Conn is one live connection to a server. Its methods may be called from many
// goroutines after Open.
type Conn struct {
	transportBase

	client  *client.Client
	way     messageTransport
	session session
	hello   InitializeResult
	late    *DialError
	ended   <-chan struct{} // closed when nobody wants the connection any more
	options Options
	// subscription carries the notifications of the newer era; nil = they come
	// unasked. stopListening ends it.
	subscription  *subscription
	stopListening func()
}

// session is what a server that forgets sessions is greeted with again.
type session struct {
	renewal  sync.Mutex // one at a time
	greeting wire.InitializeRequest
}

// Dial lays the way to a server, which life ends, and puts a client on it;
// nothing is said yet. Laying it ends when limit does.
func Dial(life, limit context.Context, o Options) (*Conn, error) {
	in := &notificationHandler{handler: o.Handler, debug: o.Debug, lists: changes{kick: make(chan struct{}, 1)}, acknowledged: make(chan struct{}, 1)}
	c := &Conn{
		transportBase: transportBase{
			link: newLink(in, o.Debug), fate: &closeReason{lost: make(chan struct{})}, inbox: in,
			debug: o.Debug, tasks: o.Tasks,
		},
		late: o.Late, ended: life.Done(), options: o, stopListening: func() {},
	}
	c.link.negotiation.mode, c.link.sampling = o.Negotiation, o.Sampling
	c.session.greeting.Params.ClientInfo = wire.Implementation{
		Name: "claude-code", Title: "Claude Code", Version: o.Version, Description: "Anthropic's agentic coding tool",
		WebsiteURL: "https://claude.com/claude-code",
	}
	var err error
	if c.link.inner, c.way, err = o.Target.dial(life, limit, &c.transportBase); err != nil {
		return nil, err
	}
	c.link.negotiation.remote = c.Remote()
	options := []client.ClientOption{client.WithClientCapabilities(c.capabilities(o.Sampling))}
	if o.Negotiation == Legacy {
		options = append(options, client.WithProtocolVersion(ProtocolVersion))
	} else {
		options = append(options, client.WithDiscoverTimeout(probeTimeout(o.Timeout, c.Remote())))
	}
	c.client = client.NewClient(c.link, options...)
	return c, nil
}

// capabilities are what the server may ask of us. The host of an SDK asks its
// user itself.
func (c *Conn) capabilities(sampling bool) wire.ClientCapabilities {
	if c.Hosted() {
		return wire.ClientCapabilities{}
	}
	all := wire.ClientCapabilities{
		Roots: &struct {
			ListChanged bool `json:"listChanged,omitempty"`
		}{ListChanged: true},
		Elicitation: &wire.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
	}
	if sampling {
		all.Sampling = &wire.SamplingCapability{}
	}
	return all
}

// Open starts the transport and does the handshake. ctx lives as long as the
// connection; connecting ends when limit does. Why it fails says Abandon.
func (c *Conn) Open(ctx, limit context.Context) error {
	if err := c.client.Start(ctx); err != nil {
		return err
	}
	ex := &exchange{}
	limited := context.WithValue(limit, exchangeKey{}, ex)
	result, err := c.client.Initialize(limited, c.session.greeting)
	if c.link.negotiation.missed(err) {
		result, err = c.client.Initialize(limited, c.session.greeting)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(ex.result, &c.hello); err != nil {
		return fmt.Errorf("reading the answer to initialize: %w", err)
	}
	if c.Modern() { // says its name and version elsewhere
		c.hello.ProtocolVersion = result.ProtocolVersion
		c.hello.ServerInfo = ServerInfo{Name: result.ServerInfo.Name, Title: result.ServerInfo.Title, Version: result.ServerInfo.Version}
		if err := c.subscribe(ctx, limit); err != nil {
			return err
		}
	}
	c.way.opened(c.hello.ProtocolVersion)
	return nil
}

// subscribe opens the notifications of a modern server and waits for the outcome,
// which is not an error: a server may have none.
func (c *Conn) subscribe(ctx, limit context.Context) error {
	s := newSubscription(c.hello.Capabilities, c.options.Reopen, c.options.Timeout)
	s.listen, s.acknowledged, s.debug = c.client.Listen, c.inbox.acknowledged, c.debug
	s.resumed = func() { c.inbox.lists.add(Tools) }
	c.subscription = s
	ctx, c.stopListening = context.WithCancel(ctx)
	settled := make(chan bool, 1)
	c.tasks.Go(func() { s.run(ctx, func(acknowledged bool) { settled <- acknowledged }) }) // ends with the connection
	if s.wanted().IsEmpty() {
		return nil
	}
	select {
	case acknowledged := <-settled:
		if acknowledged && !c.Remote() {
			return c.rediscover(limit)
		}
	case <-c.Lost():
		return ErrClosed
	case <-limit.Done():
		return limit.Err()
	}
	return nil
}

// rediscover asks a process once more who it is, as the real CLI does after the
// first subscription. A process that stays silent is started again and greeted
// the older way.
func (c *Conn) rediscover(limit context.Context) error {
	ctx, stop := context.WithTimeout(limit, probeTimeout(c.options.Timeout, false))
	defer stop()
	if _, err := c.client.Discover(ctx, wire.DiscoverRequest{}); err != nil && ctx.Err() != nil && limit.Err() == nil {
		return ErrLegacy
	}
	return nil
}

// Abandon ends a connection that could not be made, because of err, and returns
// why: ErrLegacy, an error that is ErrNoEndpoint, a TransientError or a
// *DialError.
func (c *Conn) Abandon(life, limit context.Context, err error) error {
	died := c.options.Negotiation == Auto && !c.Remote() && c.link.negotiation.died()
	explained := c.explain(limit, err)
	c.Close(context.WithoutCancel(life))
	switch {
	case died || errors.Is(err, ErrLegacy):
		return ErrLegacy
	case c.missing() && errors.Is(err, transport.ErrLegacySSEServer):
		return errors.Join(ErrNoEndpoint, explained)
	case c.Remote() && transient(err):
		return TransientError{explained}
	}
	return explained
}

// missing reports whether the last answer over HTTP was that there is nothing
// that takes messages.
func (c *Conn) missing() bool {
	e, is := c.way.(*endpoint)
	if !is {
		return false
	}
	status := e.trip.status.Load()
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// explain finds the reason behind a failed handshake.
func (c *Conn) explain(limit context.Context, err error) error {
	err = plain(err)
	var f *DialError
	var rpc *Error
	switch {
	case errors.As(err, &f):
		return f
	case c.late != nil && errors.Is(limit.Err(), context.DeadlineExceeded):
		return c.late
	case errors.As(err, &rpc):
		return &DialError{Reason: fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code), Wire: rpc.Message}
	case errors.Is(err, ErrClosed) || c.IsLost():
		reason := c.Reason(time.Second) // nobody waits for a server that did not start
		return &DialError{Reason: cmp.Or(reason, "connection closed"), Wire: ErrClosed.Error()}
	}
	return &DialError{Reason: err.Error(), Wire: err.Error()}
}

// Close ends the connection and everything below it; it is bounded and may be
// called more than once.
func (c *Conn) Close(ctx context.Context) {
	c.stopListening()
	_ = c.client.Close() // a server that is gone already is no error
	c.way.close(ctx)
	c.Lose()
}

// Hello returns what the handshake said; before it, the zero value.
func (c *Conn) Hello() InitializeResult { return c.hello }

// Modern reports whether the server speaks the newer era of the protocol.
func (c *Conn) Modern() bool { return c.link.modern.Load() }

// Hosted reports whether the server lives in the host of an SDK.
func (c *Conn) Hosted() bool {
	_, is := c.way.(*hostTransport)
	return is
}

// Remote reports whether the server is reached over HTTP: there is no process
// whose end would show.
func (c *Conn) Remote() bool {
	_, is := c.way.(*endpoint)
	return is
}

// process is the process of the server, or nil.
func (c *Conn) process() *process {
	p, _ := c.way.(*process)
	return p
}

// PID is the process of a server on our machine; 0 = there is none.
func (c *Conn) PID() int { return c.process().pid() }

// Reason explains a lost connection ("exit status 3: boom"); empty = unknown,
// or not known within patience.
func (c *Conn) Reason(patience time.Duration) string { return c.process().reason(patience) }

// Tail are the last lines of standard error.
func (c *Conn) Tail() []string { return c.process().tail() }

// Skipped reports how much output was no message, and the first of it.
func (c *Conn) Skipped() (n int, first string) { return c.process().skipped() }

// WaitListening waits for the standing stream of a server over HTTP: one that
// finds it opened in the middle of a call may send the answer there, where it
// is lost.
func (c *Conn) WaitListening(ctx context.Context) {
	if e, is := c.way.(*endpoint); is {
		e.waitListening(ctx)
	}
}

// Deliver takes a message that the host of an SDK server sent by itself; it
// fails with ErrNotHosted where there is no host.
func (c *Conn) Deliver(ctx context.Context, message json.RawMessage) error {
	h, is := c.way.(*hostTransport)
	if !is {
		return ErrNotHosted
	}
	return h.host.Deliver(ctx, message)
}

// RootsChanged tells the server that the roots are others. Telling a remote
// server goes on in the background until it is told or the connection ends; a
// server that does not take it shows elsewhere.
func (c *Conn) RootsChanged(ctx context.Context) {
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = "notifications/roots/list_changed"
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	if !c.Remote() {
		defer stop()
		_ = c.link.SendNotification(ctx, n) // it is queued and cannot block
		return
	}
	c.tasks.Go(func() { // ends within cancelLimit
		defer stop()
		_ = c.link.SendNotification(ctx, n)
	})
	c.tasks.Go(func() { // ends with it, or ends it
		defer stop()
		select {
		case <-c.ended:
		case <-ctx.Done():
		}
	})
}

// again starts a new session for a server that forgot the old one; calls that
// met the loss together share one handshake.
func (c *Conn) again(ctx context.Context) error {
	c.session.renewal.Lock()
	defer c.session.renewal.Unlock()
	if c.link.GetSessionId() != "" {
		return nil
	}
	_, err := c.client.Initialize(ctx, c.session.greeting)
	return err
}
