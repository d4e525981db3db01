package carrier

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// Send sends one JSON-RPC message to a server of the host and returns the response (the result for notifications is
// ignored).
type Send func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)

// Host is a transport to one server inside the SDK host of a session.
type Host struct {
	name string
	send Send

	mu       sync.Mutex
	notified func(wire.JSONRPCNotification)
	handler  transport.RequestHandler
}

// NewHost returns a transport to the named server; nothing is sent.
func NewHost(name string, send Send) *Host { return &Host{name: name, send: send} }

// Start does nothing: the host runs the server.
func (t *Host) Start(context.Context) error { return nil }

// Close does nothing: the host ends the server.
func (t *Host) Close() error { return nil }

// GetSessionId returns "": there are no sessions.
func (t *Host) GetSessionId() string { return "" }

// SetNotificationHandler sets the handler of notifications.
func (t *Host) SetNotificationHandler(f func(wire.JSONRPCNotification)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notified = f
}

// SetRequestHandler sets the handler of requests that the server sends.
func (t *Host) SetRequestHandler(f transport.RequestHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handler = f
}

// SendRequest sends a request and waits for its response.
func (t *Host) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	answer, err := t.roundTrip(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &transport.JSONRPCResponse{}
	return resp, json.Unmarshal(answer, resp)
}

// SendNotification sends a notification.
func (t *Host) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	_, err := t.roundTrip(ctx, n)
	return err
}

func (t *Host) roundTrip(ctx context.Context, v any) (json.RawMessage, error) {
	message, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return t.send(ctx, t.name, message)
}

// Deliver handles a notification or a request, which is answered.
func (t *Host) Deliver(ctx context.Context, message json.RawMessage) error {
	var req transport.JSONRPCRequest
	if err := json.Unmarshal(message, &req); err != nil {
		return fmt.Errorf("reading a message of MCP server %q: %w", t.name, err)
	}
	t.mu.Lock()
	notified, handler := t.notified, t.handler
	t.mu.Unlock()
	if req.ID.IsNil() {
		var n wire.JSONRPCNotification
		if err := json.Unmarshal(message, &n); err != nil {
			return fmt.Errorf("reading a message of MCP server %q: %w", t.name, err)
		}
		notified(n)
		return nil
	}
	resp, err := handler(ctx, req)
	if err != nil {
		return err
	}
	_, err = t.roundTrip(ctx, resp)
	return err
}
