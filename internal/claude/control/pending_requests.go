package control

import (
	"context"
	"sync"
)

type hostRequestsInProgress struct {
	group sync.WaitGroup

	mu      sync.Mutex
	open    bool // new requests are accepted
	cancels map[string]context.CancelFunc
}

func (e *hostRequestsInProgress) allowNewRequests() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = true
}

// start runs a request handler in a goroutine. It does nothing after close.
func (e *hostRequestsInProgress) start(ctx context.Context, id string, run func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e.cancels[id] = cancel
	e.group.Go(func() { // returns with run; ctx stops it
		defer cancel()
		run(ctx)
	})
}

func (e *hostRequestsInProgress) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancels, id)
}

func (e *hostRequestsInProgress) cancelRequest(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.cancels[id]; cancel != nil {
		cancel()
	}
}

func (e *hostRequestsInProgress) hasActive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.cancels) > 0
}

func (e *hostRequestsInProgress) refuseNewRequests() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = false
}

func (e *hostRequestsInProgress) cancelAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.cancels {
		cancel()
	}
}
