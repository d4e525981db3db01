// Package connection manages one live connection to an MCP server: its transport, client, handshake and open requests.
//
// The transports are mcp-go's; the package adds features that they lack: it tolerates lines that are not messages,
// limits the size of messages, accepts all line endings of event streams, answers requests of the server over the older
// HTTP transport, and supports servers in an SDK host.
//
// Results and definitions are returned as the server sent them, and all waiting callers are notified as soon as the
// connection ends. A lost connection is not reused; reconnecting creates a new one.
package connection

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// ProtocolVersion is the MCP revision that the handshake requests; a server may choose an older one.
const ProtocolVersion = wire.LATEST_LEGACY_PROTOCOL_VERSION

// Options configure a connection. Target, Handler, Defects, Tasks and Debug are required.
type Options struct {
	Target  Target
	Handler Handler
	// Defects describes what is wrong with a server's result for a method such as "tools/list"; "" means nothing.
	Defects func(method string, result json.RawMessage) string
	Tasks   *sync.WaitGroup // counts the goroutines of the connection
	Debug   DebugLog
	Version string // version of the client
	// Sampling declares that the handler handles sampling/createMessage.
	Sampling bool
	// Negotiation is the way in which both sides agree on a revision of MCP.
	Negotiation Negotiation
	Timeout     time.Duration // connect timeout, which also bounds the probe
	// Reopen is the pause before a notification stream of revision 2026-07-28 is reopened; it doubles with each
	// attempt. 0 means 1 s.
	Reopen time.Duration
	// TimeoutError is the error of a connect that took too long.
	TimeoutError *DialError
}

// Conn is one live connection to a server. Its methods may be called concurrently after Open.
type Conn struct {
	transportBase

	client *client.Client
	// transport is the transport in use: process, endpoint or host. The other two are nil.
	transport messageTransport
	process   *process
	endpoint  *endpoint
	host      *hostTransport

	initialize   wire.InitializeRequest
	initResult   InitializeResult
	timeoutError *DialError
	released     <-chan struct{} // closed when the lifetime of the connection ends
	options      Options
	// subscription receives the notifications of revision 2026-07-28; nil means that notifications need none.
	subscription  *subscription
	stopListening func()
}

// Dial creates the transport to a server, and a client that uses the transport. It sends no message yet. The transport
// lasts until the context lifetime is cancelled; the context limit bounds only the time for creating it.
func Dial(lifetime, limit context.Context, o Options) (*Conn, error) {
	in := &notificationHandler{handler: o.Handler, debug: o.Debug, lists: listChanges{signal: make(chan struct{}, 1)}, acknowledged: make(chan struct{}, 1)}
	c := &Conn{
		transportBase: transportBase{
			interceptor: newInterceptor(in, o.Debug), notifications: in, listChanges: &in.lists,
			debug: o.Debug, tasks: o.Tasks,
		},
		timeoutError: o.TimeoutError, released: lifetime.Done(), options: o, stopListening: func() {},
	}
	c.closeReason = c.interceptor.closeReason
	c.interceptor.negotiation.mode, c.interceptor.sampling, c.interceptor.defects = o.Negotiation, o.Sampling, o.Defects
	c.initialize.Params.ClientInfo = wire.Implementation{
		Name: "claude-code", Title: "Claude Code", Version: o.Version, Description: "Anthropic's agentic coding tool",
		WebsiteURL: "https://claude.com/claude-code",
	}
	var err error
	if c.interceptor.Interface, c.transport, err = o.Target.dial(lifetime, limit, &c.transportBase); err != nil {
		return nil, err
	}
	c.process, _ = c.transport.(*process)
	c.endpoint, _ = c.transport.(*endpoint)
	c.host, _ = c.transport.(*hostTransport)
	c.interceptor.negotiation.remote = c.IsRemote()
	if c.IsRemote() {
		c.interceptor.server, c.interceptor.reopen = c.endpoint, cmp.Or(o.Reopen, reopenPause)
	}
	options := []client.ClientOption{client.WithClientCapabilities(c.capabilities(o.Sampling))}
	if o.Negotiation == NegotiateLegacy {
		options = append(options, client.WithProtocolVersion(ProtocolVersion))
	} else {
		options = append(options, client.WithDiscoverTimeout(probeTimeout(o.Timeout, c.IsRemote())))
	}
	c.client = client.NewClient(c.interceptor, options...)
	return c, nil
}

// capabilities returns the capabilities that the client declares to the server. A server inside an SDK host gets none,
// because it can ask the user through its host.
func (c *Conn) capabilities(sampling bool) wire.ClientCapabilities {
	if c.IsHosted() {
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

// Open starts the transport and does the handshake. The connection lasts until ctx is cancelled; limit bounds the time
// to connect. If Open fails, the caller must call [Conn.CloseAfterFailedOpen].
func (c *Conn) Open(ctx, limit context.Context) error {
	if err := c.client.Start(ctx); err != nil {
		return err
	}
	ex := &rawResultSlot{}
	limited := context.WithValue(limit, rawResultKey{}, ex)
	result, err := c.client.Initialize(limited, c.initialize)
	if c.interceptor.negotiation.canProbeAgain(err) {
		result, err = c.client.Initialize(limited, c.initialize)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(ex.result, &c.initResult); err != nil {
		return fmt.Errorf("reading the answer to initialize: %w", err)
	}
	if c.IsModern() { // revision 2026-07-28 sends name and version with each request
		c.initResult.ProtocolVersion = result.ProtocolVersion
		c.initResult.ServerInfo = ServerInfo{Name: result.ServerInfo.Name, Title: result.ServerInfo.Title, Version: result.ServerInfo.Version}
		if err := c.subscribe(ctx, limit); err != nil {
			return err
		}
	}
	c.endpoint.startListening(c.initResult.ProtocolVersion)
	return nil
}

// subscribe opens the notification stream of a server of revision 2026-07-28 and waits for the outcome. A refusal is
// not an error, because subscriptions are optional.
func (c *Conn) subscribe(ctx, limit context.Context) error {
	s := newSubscription(c.initResult.Capabilities, c.options.Reopen, c.options.Timeout)
	s.listen, s.acknowledged, s.debug = c.client.Listen, c.notifications.acknowledged, c.debug
	s.resumed = func() { c.notifications.lists.add(ListTools) }
	c.subscription = s
	ctx, c.stopListening = context.WithCancel(ctx)
	settled := make(chan bool, 1)
	c.tasks.Go(func() { s.run(ctx, func(acknowledged bool) { settled <- acknowledged }) }) // returns when the connection is closed
	if s.currentFilter().IsEmpty() {
		return nil
	}
	select {
	case acknowledged := <-settled:
		if acknowledged && !c.IsRemote() {
			return c.repeatDiscovery(limit)
		}
	case <-c.Lost():
		return ErrClosed
	case <-limit.Done():
		return limit.Err()
	}
	return nil
}

// repeatDiscovery sends server/discover to a server process for the second time, as the real CLI does after the first
// subscription. If no answer arrives in time, it returns ErrLegacy. The caller then restarts the process and uses the
// legacy handshake.
func (c *Conn) repeatDiscovery(limit context.Context) error {
	ctx, stop := context.WithTimeout(limit, probeTimeout(c.options.Timeout, false))
	defer stop()
	if _, err := c.client.Discover(ctx, wire.DiscoverRequest{}); err != nil && ctx.Err() != nil && limit.Err() == nil {
		return ErrLegacy
	}
	return nil
}

// CloseAfterFailedOpen closes a connection after Open has failed with err. It returns why Open failed: ErrLegacy or a
// *DialError.
func (c *Conn) CloseAfterFailedOpen(life, limit context.Context, err error) error {
	died := c.options.Negotiation == NegotiateAuto && !c.IsRemote() && errors.Is(c.interceptor.negotiation.probeError, transport.ErrTransportClosed)
	f := c.explainFailure(limit, err)
	c.Close(context.WithoutCancel(life))
	if died || errors.Is(err, ErrLegacy) {
		return ErrLegacy
	}
	if answer, ok := errors.AsType[*AnswerError](err); ok {
		f.Status = answer.Status
	}
	f.IsTransient = c.IsRemote() && (isTransient(err) || errors.Is(limit.Err(), context.DeadlineExceeded))
	if errors.Is(err, ErrUnreadable) && c.initResult.ProtocolVersion != "" {
		f.IsLoss, f.IsTransient, f.Wire = true, true, "Connection closed again while reconnecting"
	}
	return f
}

func (c *Conn) explainFailure(limit context.Context, err error) *DialError {
	err = unwrapClientError(err)
	var f *DialError
	var rpc *Error
	var answer *AnswerError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &answer) && answer.Status == http.StatusNotFound:
		text := fmt.Sprintf("MCP endpoint not found at %s. Check the URL in your MCP config.", c.endpoint.roundTripper.origin)
		return &DialError{Reason: text, Wire: text}
	case c.timeoutError != nil && errors.Is(limit.Err(), context.DeadlineExceeded):
		return c.timeoutError
	case errors.As(err, &rpc):
		return &DialError{Reason: fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code), Wire: rpc.Message}
	case c.IsRemote() && nameNetworkError(err) != nil:
		err = nameNetworkError(err)
	case errors.Is(err, ErrClosed) || c.IsLost():
		reason := c.CloseReason(time.Second) // a process that cannot start exits soon, so this wait is short
		return &DialError{Reason: cmp.Or(reason, "connection closed"), Wire: ErrClosed.Error()}
	}
	return &DialError{Reason: err.Error(), Wire: StartErrorText(err)}
}

// StartErrorText returns the text of the real CLI if err means that a command does not exist or must not be executed.
// This text does not contain the command. For any other error, it returns the text of err.
func StartErrorText(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "EACCES: permission denied, posix_spawn 'stdio'"
	case errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "/"):
		return "ENOENT: no such file or directory, posix_spawn 'stdio'"
	case errors.Is(err, fs.ErrNotExist):
		return `Executable not found in $PATH: "stdio"`
	}
	return err.Error()
}

// Close closes the connection and its transport. It has a time limit and may be called more than once.
func (c *Conn) Close(ctx context.Context) {
	c.stopListening()
	_ = c.client.Close() // closing a lost connection is not an error
	c.transport.close(ctx)
	c.MarkLost()
}

// InitializeResult returns the result of the handshake; it is zero before Open.
func (c *Conn) InitializeResult() InitializeResult { return c.initResult }

// IsModern reports whether the connection uses revision 2026-07-28.
func (c *Conn) IsModern() bool { return c.interceptor.modern.Load() }

// IsHosted reports whether the server runs inside an SDK host.
func (c *Conn) IsHosted() bool { return c.host != nil }

// IsRemote reports whether the server is reached over HTTP. No process belongs to such a connection, so no exit shows
// that it was lost.
func (c *Conn) IsRemote() bool { return c.endpoint != nil }

// PID returns the process id of a local server; 0 means none.
func (c *Conn) PID() int { return c.process.pid() }

// CloseReason explains a lost connection ("exit status 3: boom"). It waits at most patience; empty means unknown.
func (c *Conn) CloseReason(patience time.Duration) string { return c.process.exitReason(patience) }

// StderrTail returns the last lines of standard error.
func (c *Conn) StderrTail() []string { return c.process.stderrTail() }

// SkippedLines reports how many lines of output were not messages, and the first of them.
func (c *Conn) SkippedLines() (n int, first string) { return c.process.skipped() }

// Deliver handles an unsolicited message of an SDK server (see IsHosted).
func (c *Conn) Deliver(ctx context.Context, message json.RawMessage) error {
	return c.host.deliver(ctx, message)
}

// RootsChanged notifies the server that the roots changed. For a remote server this happens in the background; it is
// given up if the connection ends before. Errors are ignored, because other requests detect a broken connection.
func (c *Conn) RootsChanged(ctx context.Context) {
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = "notifications/roots/list_changed"
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), notificationTimeout)
	if !c.IsRemote() {
		defer stop()
		_ = c.interceptor.SendNotification(ctx, n) // the message is queued, so this does not block
		return
	}
	c.tasks.Go(func() { // returns within notificationTimeout
		defer stop()
		_ = c.interceptor.SendNotification(ctx, n)
	})
	c.tasks.Go(func() { // returns when the notification was sent, or cancels it
		defer stop()
		select {
		case <-c.released:
		case <-ctx.Done():
		}
	})
}
