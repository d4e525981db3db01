package control

import (
	"context"
	"sync"
)

// pendingRequests are the requests of the host that are worked on beside the reading of
// stdin.
type pendingRequests struct {
	group sync.WaitGroup

	mu     sync.Mutex
	open   bool                          // more may begin
	cancel map[string]context.CancelFunc // by the request's id
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
	e.cancel[id] = cancel
	e.group.Go(func() { // ends with run, which ctx ends
		defer cancel()
		run(ctx)
	})
}

// done takes note that an errand is over.
func (e *pendingRequests) done(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancel, id)
}

// abandon ends work on a request that the host no longer wants.
func (e *pendingRequests) abandon(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cancel := e.cancel[id]; cancel != nil {
		cancel()
	}
}

// any tells whether there is work.
func (e *pendingRequests) any() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.cancel) > 0
}

// close lets no more begin.
func (e *pendingRequests) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = false
}

// stop ends them all.
func (e *pendingRequests) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, cancel := range e.cancel {
		cancel()
	}
}
