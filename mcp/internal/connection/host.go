package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// SendFunc sends one JSON-RPC message to a server of the host and returns the response (ignored for notifications).
type SendFunc func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)

// HostedServer is a server inside an SDK host, which starts and stops it.
type HostedServer struct {
	Server string
	Send   SendFunc // nil means no host
}

func (t HostedServer) dial(_, _ context.Context, b *transportBase) (transport.Interface, messageTransport, error) {
	if t.Send == nil {
		return nil, nil, errors.New("cannot connect: the server runs in an SDK host, but claude was not started by one")
	}
	h := &hostTransport{HostedServer: t, transportBase: b}
	return h, h, nil
}

// hostTransport is the transport to a server inside an SDK host. The host starts and stops the server, so starting and
// closing the transport has no effect. Messages that the server sends on its own initiative arrive through deliver.
type hostTransport struct {
	HostedServer
	*transportBase
}

func (*hostTransport) close(context.Context)                                 {}
func (*hostTransport) Start(context.Context) error                           { return nil }
func (*hostTransport) Close() error                                          { return nil }
func (*hostTransport) GetSessionId() string                                  { return "" }
func (*hostTransport) SetNotificationHandler(func(wire.JSONRPCNotification)) {}
func (t *hostTransport) SendNotification(ctx context.Context, n wire.JSONRPCNotification) error {
	_, err := t.roundTrip(ctx, n)
	return err
}

// SendRequest sends a request and waits for its response.
func (t *hostTransport) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	answer, err := t.roundTrip(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &transport.JSONRPCResponse{}
	return resp, json.Unmarshal(answer, resp)
}

func (t *hostTransport) roundTrip(ctx context.Context, v any) (json.RawMessage, error) {
	message, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return t.Send(ctx, t.Server, message)
}

// deliver handles a notification or a request of the server; a request is answered.
func (t *hostTransport) deliver(ctx context.Context, message json.RawMessage) error {
	var req transport.JSONRPCRequest
	var n wire.JSONRPCNotification
	err := json.Unmarshal(message, &req)
	if err == nil && req.ID.IsNil() {
		err = json.Unmarshal(message, &n)
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading a message of MCP server %q: %w", t.Server, err)
	case req.ID.IsNil():
		t.notifications.receive(n)
		return nil
	}
	resp, err := t.interceptor.handle(ctx, req)
	if err != nil {
		return err
	}
	_, err = t.roundTrip(ctx, resp)
	return err
}
