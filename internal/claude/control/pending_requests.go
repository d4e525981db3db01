package control

import (
	"context"
	"sync"
)

// pendingRequests are the requests of the host that are worked on beside the reading of
// stdin.
type pendingRequests struct {
	group sync.WaitGroup

	mu      sync.Mutex
	open    bool                          // more may begin
	cancels map[string]context.CancelFunc // by the request's id
}

func (e *pendingRequests) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = true
}

// start runs an errand in a goroutine that ends with it; once no more may begin
// it does nothing.
func (e *pendingRequests) start(ctx context.Context, id string, run func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e.cancels[id] = cancel
	e.group.Go(func() { // ends with run, which ctx ends
		defer cancel()
		run(ctx)
	})
}

// remove takes note that an errand is over.
func (e *pendingRequests) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancels, id)
}

// cancelRequest ends work on a request that the host no longer wants.
func (e *pendingRequests) cancelRequest(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.cancels[id]; cancel != nil {
		cancel()
	}
}

// hasActive tells whether there is work.
func (e *pendingRequests) hasActive() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.cancels) > 0
}

// closeInput lets no more begin.
func (e *pendingRequests) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = false
}

// cancelAll ends them all.
func (e *pendingRequests) cancelAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.cancels {
		cancel()
	}
}
