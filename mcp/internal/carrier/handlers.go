package carrier

import (
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// handlers are the functions that receive what a server sends on its own initiative.
type handlers struct {
	mu       sync.Mutex
	notified func(wire.JSONRPCNotification)
	handler  transport.RequestHandler
}

// SetNotificationHandler sets the handler of notifications; f runs on the reading goroutine.
func (h *handlers) SetNotificationHandler(f func(wire.JSONRPCNotification)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notified = f
}

// SetRequestHandler sets the handler of requests that the server sends.
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
