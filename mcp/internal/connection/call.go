package connection

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// Call is one call of a tool.
type Call struct {
	Tool      string          // raw name
	UseID     string          // sent as _meta["claudecode/toolUseId"]; empty = left out
	Arguments json.RawMessage // an object
	// Idle bounds the time between two signs of life, Total all of it; a Total
	// of 0 is no bound.
	Idle, Total time.Duration
}

// Call runs a tool. The error is an *Error, an *ExpiredError, ErrClosed, a
// *DialError or the cause of ctx's end. Progress goes to on, in order, on the
// goroutine of Call; nil = it is not wanted. Of progress that comes faster than
// it is taken some is left out.
func (c *Conn) Call(ctx context.Context, k Call, on func(Progress)) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	expire := func(d time.Duration) *time.Timer {
		return time.AfterFunc(d, func() { cancel(&ExpiredError{Limit: d}) })
	}
	idle := expire(k.Idle)
	defer idle.Stop()
	if k.Total > 0 {
		total := expire(k.Total)
		defer total.Stop()
	}
	req := k.request()
	w := &waiter{all: &c.inbox.waiters, meta: req.Params.Meta, idle: idle, limit: k.Idle}
	if on != nil {
		const behind = 1024
		w.queue = make(chan Progress, behind)
	}
	defer w.leave()
	send := func() (json.RawMessage, error) {
		return raw(context.WithValue(ctx, waiterKey{}, w), `{"content":[]}`, func(ctx context.Context) error {
			_, err := c.client.CallTool(ctx, req)
			return err
		})
	}
	result, err := withProgress(w.queue, on, send)
	if errors.Is(err, transport.ErrSessionTerminated) {
		if err = c.again(ctx); err == nil {
			result, err = withProgress(w.queue, on, send)
		}
	}
	err = c.outcome(ctx, err)
	return result, err
}

// outcome loses the connection when a call says that it is gone, and makes the
// cause of an end the error.
func (c *Conn) outcome(ctx context.Context, err error) error {
	if errors.Is(err, ErrClosed) && !c.Remote() {
		c.Lose()
	}
	if c.Remote() && ctx.Err() == nil && brokeOff(err) {
		c.Lose()
		err = ErrClosed
	}
	if f := new(DialError); errors.As(err, &f) && f.NeedsAuth {
		c.fate.barred.Store(true)
		c.Lose()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return err
}

// brokeOff reports whether a request over HTTP failed because nobody is there,
// or is there any more.
func brokeOff(err error) bool {
	var unreachable *url.Error
	var network *net.OpError
	return errors.As(err, &unreachable) && (errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

func (k Call) request() wire.CallToolRequest {
	var req wire.CallToolRequest
	req.Params.Name = k.Tool
	req.Params.Arguments = k.Arguments
	req.Params.Meta = &wire.Meta{}
	if k.UseID != "" {
		req.Params.Meta.AdditionalFields = map[string]any{"claudecode/toolUseId": k.UseID}
	}
	return req
}

// withProgress runs send and hands progress to on meanwhile; nil = nobody wants
// it.
func withProgress(queue <-chan Progress, on func(Progress), send func() (json.RawMessage, error)) (result json.RawMessage, err error) {
	if on == nil {
		return send()
	}
	done := make(chan struct{})
	go func() { // ends with the call
		defer close(done)
		result, err = send()
	}()
	for {
		select {
		case p := <-queue:
			on(p)
		case <-done:
			for {
				select {
				case p := <-queue:
					on(p)
				default:
					return result, err
				}
			}
		}
	}
}
