package carrier

import (
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// handlers are who gets what a server sends by itself.
type handlers struct {
	mu       sync.Mutex
	notified func(wire.JSONRPCNotification)
	handler  transport.RequestHandler
}

// SetNotificationHandler says who gets notifications; f runs on the goroutine
// that reads.
func (h *handlers) SetNotificationHandler(f func(wire.JSONRPCNotification)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notified = f
}

// SetRequestHandler says who answers requests of the server.
func (h *handlers) SetRequestHandler(f transport.RequestHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handler = f
}

func (h *handlers) get() (notified func(wire.JSONRPCNotification), handler transport.RequestHandler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notified, h.handler
}
