package connection

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/claudeless/claudeless/mcp/internal/carrier"
)

// Hosted is a server inside an SDK host.
type Hosted struct {
	Server string
	Send   carrier.Send // nil = no host
}

func (t Hosted) dial(context.Context, context.Context, *transportBase) (transport.Interface, messageTransport, error) {
	if t.Send == nil {
		return nil, nil, errors.New("no SDK host is connected")
	}
	h := carrier.NewHost(t.Server, t.Send)
	return h, &hostTransport{h}, nil
}

// hostTransport sends messages through the SDK host, which ends the server itself.
type hostTransport struct{ host *carrier.Host }

func (*hostTransport) opened(string)         {}
func (*hostTransport) close(context.Context) {}
