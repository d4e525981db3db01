package connection

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// ToolCall says which tool of the server to call, and with which limits.
type ToolCall struct {
	Tool      string          // name of the tool, without the prefix of the server
	UseID     string          // sent as _meta["claudecode/toolUseId"]; empty means omitted
	Arguments json.RawMessage // an object
	// Idle limits the time between two messages of the server, Total the whole call (0: no limit).
	Idle, Total time.Duration
}

// CallTool runs a tool. The error is an *Error, a *CallTimeoutError, ErrClosed, a *DialError or the cause of the
// cancellation of ctx. Call passes progress notifications to onProgress, in order and on its own goroutine; if
// onProgress is nil, they are ignored. If they arrive faster than onProgress handles them, some are dropped.
func (c *Conn) CallTool(ctx context.Context, k ToolCall, onProgress func(Progress)) (json.RawMessage, error) {
	c.toolWasCalled.Store(true)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expire := func(d time.Duration) *time.Timer {
		return time.AfterFunc(d, func() { cancel(&CallTimeoutError{Limit: d}) })
	}
	idle := expire(k.Idle)
	defer idle.Stop()
	if k.Total > 0 {
		total := expire(k.Total)
		defer total.Stop()
	}
	w := &pendingCall{callsByProgressToken: &c.notifications.callsByProgressToken, idleTimer: idle, idleLimit: k.Idle, tool: k.Tool, useID: k.UseID}
	if onProgress != nil {
		const behind = 1024
		w.progressQueue = make(chan Progress, behind)
	}
	defer func() {
		for _, token := range w.tokens {
			w.callsByProgressToken.Delete(token)
		}
	}()
	send := func() (json.RawMessage, error) {
		return c.requestUncheckedResult(context.WithValue(ctx, pendingCallContextKey{}, w), wire.MethodToolsCall, k.params())
	}
	result, err := runWithProgress(w.progressQueue, onProgress, send)
	if errors.Is(err, transport.ErrSessionTerminated) {
		err = ErrExpired
		c.MarkConnectionLost()
	}
	if rpc, ok := errors.AsType[*RPCError](err); ok && rpc.Code == wire.HEADER_MISMATCH && c.IsModern() { // the tool may have changed, and therefore also the headers of a call
		if _, _, listErr := c.List(ctx, ListTools); listErr == nil {
			result, err = runWithProgress(w.progressQueue, onProgress, send)
		}
	}
	return result, c.markLossAndConvertError(ctx, err)
}

// markLossAndConvertError converts a call's error. It also marks a broken connection as lost. If ctx was cancelled, it returns the cause.
func (c *Conn) markLossAndConvertError(ctx context.Context, err error) error {
	if errors.Is(err, ErrClosed) && !c.IsRemote() {
		c.MarkConnectionLost()
	}
	if c.IsRemote() && ctx.Err() == nil {
		switch {
		case errors.Is(err, context.Canceled) && c.GivenUpReason() == LostUnreadable: // the connection was closed meanwhile
			err = ErrUnreadable
		case errors.Is(err, context.Canceled) && c.IsConnectionLostOrClosed() && c.remote.legacyEventStream != nil:
			err = ErrClosed
		case errors.Is(err, context.Canceled) && c.IsConnectionLostOrClosed():
			err = ErrBroken
		case isConnectionBroken(err) && errors.Is(err, syscall.ECONNREFUSED):
			err = errConnectionRefused
		case isConnectionBroken(err):
			err = errConnectionReset
		}
		switch {
		case errors.Is(err, ErrUnreadable):
			c.markEnded(LostUnreadable)
		case errors.Is(err, ErrBroken), errors.Is(err, errConnectionRefused):
			c.MarkConnectionLost()
		}
	}
	if f := new(DialError); errors.As(err, &f) && f.NeedsAuth {
		c.markEnded(LostNeedsAuth)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return err
}

func isConnectionBroken(err error) bool {
	var unreachable *url.Error
	var network *net.OpError
	return errors.As(err, &unreachable) && (errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

func (k ToolCall) params() plainjson.Object {
	params := newJSONObject("name", k.Tool, "arguments", k.Arguments)
	if k.UseID != "" {
		params = append(params, newJSONObject("_meta", newJSONObject("claudecode/toolUseId", k.UseID))...)
	}
	return params
}

// runWithProgress calls send and meanwhile passes progress to onProgress, which may be nil.
func runWithProgress(queue <-chan Progress, onProgress func(Progress), send func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	if onProgress == nil {
		return send()
	}
	done := make(chan struct{})
	go func() { // returns when the call does
		defer close(done)
		result, err = send()
	}()
	for {
		select {
		case p := <-queue:
			onProgress(p)
		case <-done:
			for len(queue) > 0 {
				onProgress(<-queue)
			}
			return result, err
		}
	}
}
