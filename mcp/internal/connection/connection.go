// Package connection manages one live connection to an MCP server: its transport, client, handshake and open requests.
//
// The client and its transports are not those of mcp-go, but use its types and its rules for headers. Unlike mcp-go, they
// tolerate lines that are not messages, limit the size of messages, accept all line endings in event streams, reopen streams
// after the pauses of the real CLI, accept responses on any stream, and support servers in an SDK host.
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
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// ProtocolVersion is the MCP revision that the handshake requests; a server may choose an older one.
const ProtocolVersion = wire.LATEST_LEGACY_PROTOCOL_VERSION

// Options configure a connection. Target, Handler, Defects, Tasks and Debug are required.
type Options struct {
	Target      DialTarget
	Handler     Handler
	Defects     func(method string, result json.RawMessage) string // describes what is wrong with a server's result for a method such as "tools/list"; "" means nothing
	Tasks       *sync.WaitGroup                                    // counts the goroutines of the connection
	Debug       DebugLog
	Version     string          // version of the client
	Sampling    bool            // declares that the handler handles sampling/createMessage
	Negotiation NegotiationMode // selects how both sides agree on a revision of MCP
	Timeout     time.Duration   // connect timeout, which also bounds the probe
	// Reopen is the pause before a stream is reopened; it doubles each time. 0 means 1 s.
	Reopen       time.Duration
	TimeoutError *DialError // the error of a connection attempt that took too long
}

// Conn is one live connection to a server. Its methods may be called concurrently after OpenWithHandshake.
type Conn struct {
	transportBase

	// transport is the transport in use: process, remote or host. The other two are nil.
	transport messageTransport
	process   *stdioTransport
	remote    *httpTransport
	host      *hostTransport

	initResult    InitializeResult
	timeoutError  *DialError
	options       Options
	subscription  *subscription // receives the notifications of revision 2026-07-28; nil in older revisions
	stopListening func()
	negotiation   negotiationState
	toolWasCalled atomic.Bool
}

// DialWithoutHandshake creates the transport to a server, and a client that uses the transport. It sends no message yet. The transport
// lasts until the context lifetime is cancelled; the context limit bounds only the time for creating it.
func DialWithoutHandshake(lifetime, limit context.Context, o Options) (*Conn, error) {
	in := &notificationDispatcher{handler: o.Handler, debug: o.Debug, lists: listChanges{signal: make(chan struct{}, 1)}, subscriptionAcknowledged: make(chan struct{}, 1)}
	c := &Conn{
		transportBase: transportBase{
			client: &client{notifications: in, debug: o.Debug, closeReason: &closeReason{lost: make(chan struct{})}}, notifications: in, listChanges: &in.lists,
			debug: o.Debug, goroutines: o.Tasks, reopenPause: cmp.Or(o.Reopen, reopenPause),
		},
		timeoutError: o.TimeoutError, options: o, stopListening: func() {},
	}
	c.closeReason = c.client.closeReason
	c.negotiation.mode, c.client.sampling = o.Negotiation, o.Sampling
	var err error
	if c.transport, err = o.Target.dial(lifetime, limit, &c.transportBase); err != nil {
		return nil, err
	}
	c.client.transport = c.transport
	c.process, _ = c.transport.(*stdioTransport)
	c.remote, _ = c.transport.(*httpTransport)
	c.host, _ = c.transport.(*hostTransport)
	c.client.isLocal, c.client.isRemote = c.process != nil, c.IsRemote()
	c.negotiation.remote = c.IsRemote()
	c.client.requestMetadata = newJSONObject(
		wire.MetaKeyProtocolVersion, ModernVersion,
		wire.MetaKeyClientInfo, wire.Implementation{
			Name: "claude-code", Title: "Claude Code", Version: o.Version, Description: "Anthropic's agentic coding tool",
			WebsiteURL: "https://claude.com/claude-code",
		},
		wire.MetaKeyClientCapabilities, c.capabilities(o.Sampling),
	)
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

// OpenWithHandshake starts the transport and does the handshake. The connection lasts until ctx is cancelled; limit bounds the time to
// connect. If OpenWithHandshake fails, the caller must call [Conn.CloseAfterFailedOpen].
func (c *Conn) OpenWithHandshake(ctx, limit context.Context) error {
	if err := c.transport.StartReading(ctx); err != nil {
		return err
	}
	var err error
	if c.initResult, err = c.probeOrInitialize(limit); err != nil {
		return err
	}
	if c.IsModern() {
		if err := c.openSubscriptionAndWait(ctx, limit); err != nil {
			return err
		}
	}
	if c.usesGETStream() {
		c.goroutines.Go(c.remote.keepGETStreamOpen) // returns when the connection is closed
	}
	return nil
}

// openSubscriptionAndWait opens the notification stream of revision 2026-07-28 and waits
// for the outcome. A refusal is not an error, because subscriptions are optional.
func (c *Conn) openSubscriptionAndWait(ctx, waitLimit context.Context) error {
	s := newSubscription(c.initResult.Capabilities, c.options.Reopen, c.options.Timeout)
	s.acknowledged, s.debug = c.notifications.subscriptionAcknowledged, c.debug
	s.openStream = func(ctx context.Context, filter wire.SubscriptionFilter) error {
		_, err := c.client.requestAnsweringQuestions(ctx, string(wire.MethodSubscriptionsListen), newJSONObject("notifications", filter))
		return err
	}
	s.onResumed = func() { c.notifications.lists.addChange(ListTools) }
	c.subscription = s
	ctx, c.stopListening = context.WithCancel(ctx)
	settled := make(chan bool, 1)
	c.goroutines.Go(func() { s.keepStreamOpen(ctx, func(acknowledged bool) { settled <- acknowledged }) }) // returns when the connection is closed
	if s.currentFilter().IsEmpty() {
		return nil
	}
	select {
	case acknowledged := <-settled:
		if acknowledged && !c.IsRemote() {
			return c.repeatDiscoveryOrRequireLegacy(waitLimit)
		}
	case <-c.Lost():
		return ErrClosed
	case <-waitLimit.Done():
		return waitLimit.Err()
	}
	return nil
}

// repeatDiscoveryOrRequireLegacy sends server/discover to a server process for the second time, as the real CLI does after the
// first subscription. If no answer arrives in time, it returns ErrLegacy. The caller then restarts with the legacy handshake.
func (c *Conn) repeatDiscoveryOrRequireLegacy(limit context.Context) (legacyErrorOnTimeout error) {
	ctx, stop := context.WithTimeout(limit, revisionProbeTimeout(c.options.Timeout, false))
	defer stop()
	if _, err := c.client.requestAnsweringQuestions(ctx, string(wire.MethodServerDiscover), nil); err != nil && ctx.Err() != nil && limit.Err() == nil {
		return ErrLegacy
	}
	return nil
}

// CloseAfterFailedOpen closes a connection after OpenWithHandshake has failed with openError. It returns ErrLegacy or a *DialError.
func (c *Conn) CloseAfterFailedOpen(lifetime, limit context.Context, openError error) (legacyOrDialError error) {
	died := c.options.Negotiation == NegotiateAuto && !c.IsRemote() && errors.Is(c.negotiation.probeError, transport.ErrTransportClosed)
	f := c.dialErrorFor(limit, openError)
	if closeConn := func() { c.Close(context.WithoutCancel(lifetime)) }; f == c.timeoutError {
		c.goroutines.Go(closeConn) // a server that does not answer may not react to the end of stdin either; Close has a time limit
	} else {
		closeConn()
	}
	if died || errors.Is(openError, ErrLegacy) {
		return ErrLegacy
	}
	if answer, ok := errors.AsType[*UnusableHTTPAnswerError](openError); ok {
		f.Status = answer.Status
	}
	f.IsTransient = c.IsRemote() && (isTransientConnectError(openError) || errors.Is(limit.Err(), context.DeadlineExceeded))
	if errors.Is(openError, ErrUnreadable) && c.initResult.ProtocolVersion != "" {
		f.IsLossAfterHandshake, f.IsTransient, f.CLIText = true, true, ClosedAgainText
	}
	return f
}

func (c *Conn) dialErrorFor(limit context.Context, err error) *DialError {
	err = rootCauseOfClientError(err)
	var f *DialError
	var rpc *RPCError
	var answer *UnusableHTTPAnswerError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &answer) && answer.Status == http.StatusNotFound:
		text := fmt.Sprintf("MCP endpoint not found at %s. Check the URL in your MCP config.", c.remote.roundTripper.serverOrigin)
		return &DialError{Reason: text, CLIText: text, CLICode: "ENDPOINT_NOT_FOUND"}
	case c.timeoutError != nil && errors.Is(limit.Err(), context.DeadlineExceeded):
		return c.timeoutError
	case errors.As(err, &rpc):
		return &DialError{Reason: fmt.Sprintf("%s (JSON-RPC error %d)", rpc.Message, rpc.Code), CLIText: rpc.Message, CLICode: strconv.Itoa(rpc.Code)}
	case c.IsRemote() && unreachableErrorOrNil(err) != nil:
		err = unreachableErrorOrNil(err)
	case errors.Is(err, ErrClosed) || c.IsConnectionLostOrClosed():
		reason := c.ProcessExitReason(time.Second) // a process that cannot start exits soon, so this wait is short
		return &DialError{Reason: cmp.Or(reason, "connection closed"), CLIText: ErrClosed.Error(), CLICode: ClosedCode}
	}
	return &DialError{Reason: err.Error(), CLIText: CLIStartErrorText(err), CLICode: CLIErrorCode(err)}
}

// Close closes the connection and its transport. It has a time limit and may be called more than once.
func (c *Conn) Close(ctx context.Context) {
	c.stopListening()
	c.transport.close(ctx)
	c.MarkConnectionLost()
}

// InitializeResult returns the result of the handshake; it is zero before OpenWithHandshake.
func (c *Conn) InitializeResult() InitializeResult { return c.initResult }

// IsModern reports whether the connection uses revision 2026-07-28.
func (c *Conn) IsModern() bool { return c.client.isModern.Load() }

// IsHosted reports whether the server runs inside an SDK host.
func (c *Conn) IsHosted() bool { return c.host != nil }

// IsRemote reports whether the server is reached over HTTP.
func (c *Conn) IsRemote() bool { return c.remote != nil }

// WasAnyToolCalled reports whether a tool was called over the connection.
func (c *Conn) WasAnyToolCalled() bool { return c.toolWasCalled.Load() }

func (c *Conn) usesGETStream() bool {
	return c.IsRemote() && c.remote.legacyEventStream == nil && !c.IsModern()
}

// WaitUpToOneSecondForGETStream waits until the GET stream is open or has failed: requests that the server sends
// earlier are lost. The wait ends after 1 s, because some servers answer the GET request only with their first message.
func (c *Conn) WaitUpToOneSecondForGETStream(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	if c.usesGETStream() {
		select {
		case <-c.remote.getStreamAnswered:
		case <-ctx.Done():
		}
	}
}

// PID returns the process id of a local server; 0 means none.
func (c *Conn) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.PID()
}

// SkippedLines reports how many lines of output were not messages, and the first of them.
func (c *Conn) SkippedLines() (n int, first string) {
	if c.process == nil {
		return 0, ""
	}
	return c.process.messages.droppedNonMessageLines()
}

// RedactedStderrTail returns the last lines of standard error.
func (c *Conn) RedactedStderrTail() []string {
	const most = 5
	if c.process == nil {
		return nil
	}
	text := c.debug.Redact(c.process.StderrTail())
	lines := strings.Split(strings.ToValidUTF8(strings.TrimRight(text, " \t\r\n"), "?"), "\n")
	if lines[0] == "" && len(lines) == 1 {
		return nil
	}
	return lines[max(0, len(lines)-most):]
}

// ProcessExitReason explains a lost connection to a process: "exit status 3: last line of standard error". The pipes may close
// shortly before the process exits, so ProcessExitReason waits up to patience for the exit. It returns "" if the connection has no
// process, or if the process is still running.
func (c *Conn) ProcessExitReason(patience time.Duration) string {
	p := c.process
	if p == nil {
		return ""
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
	}
	exit, ended := p.ExitStatus()
	if !ended {
		return ""
	}
	reason := exit.String()
	if line := lastFailureMessageLine(p.StderrTail()); line != "" {
		reason += ": " + line
	}
	return p.debug.Redact(reason)
}

// DeliverFromHost handles an unsolicited message of an SDK server (see IsHosted).
func (c *Conn) DeliverFromHost(ctx context.Context, message json.RawMessage) error {
	return c.host.dispatchMessageAndAnswer(ctx, message)
}

// NotifyRootsChanged notifies the server that the roots changed.
func (c *Conn) NotifyRootsChanged(ctx context.Context) {
	c.client.sendNotificationIgnoringErrors(ctx, "notifications/roots/list_changed", nil)
}
