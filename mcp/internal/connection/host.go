package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/client/transport"
)

// SendFunc sends one JSON-RPC message to a server of the host and returns the response (ignored for notifications).
type SendFunc func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)

// HostedServer is a server inside an SDK host, which starts and stops it.
type HostedServer struct {
	Server string
	Send   SendFunc // nil means no host
}

func (t HostedServer) dial(_, _ context.Context, b *transportBase) (messageTransport, error) {
	if t.Send == nil {
		return nil, errors.New("cannot connect: the server runs in an SDK host, but claude was not started by one")
	}
	return &hostTransport{HostedServer: t, transportBase: b}, nil
}

// hostTransport is the transport to a server inside an SDK host. The host starts and stops the server, so starting and
// closing the transport has no effect. Messages that the server sends on its own initiative arrive through receive.
type hostTransport struct {
	HostedServer
	*transportBase
}

func (*hostTransport) close(context.Context)              {}
func (*hostTransport) StartReading(context.Context) error { return nil }
func (t *hostTransport) sendWithoutResponse(ctx context.Context, messageWithoutResponse any) error {
	_, err := t.sendThroughHost(ctx, messageWithoutResponse)
	return err
}

func (t *hostTransport) SendRequest(ctx context.Context, req transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	answer, err := t.sendThroughHost(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &transport.JSONRPCResponse{}
	return resp, json.Unmarshal(answer, resp)
}

func (t *hostTransport) sendThroughHost(ctx context.Context, v any) (json.RawMessage, error) {
	message, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return t.Send(ctx, t.Server, message)
}

// dispatchMessageAndAnswer handles a message of the server; if the message is a request, it answers the request before it returns.
func (t *hostTransport) dispatchMessageAndAnswer(ctx context.Context, message json.RawMessage) (err error) {
	if req, isRequest := parseRequest(message); isRequest {
		err = t.answerRequest(ctx, req)
	} else {
		err = t.dispatchNotificationOrResponse(message)
	}
	if err != nil {
		return fmt.Errorf("handling a message of the MCP server %q: %w", t.Server, err)
	}
	return nil
}
