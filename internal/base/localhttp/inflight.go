package localhttp

import (
	"context"
	"net/http"
	"sync"
)

// inflight counts the requests that a handler is processing.
type inflight struct {
	next http.Handler

	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when the count is 0; nil = no waiter
}

func (f *inflight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
	defer f.done()
	f.next.ServeHTTP(w, r)
}

func (f *inflight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// wait returns when no request is being processed or ctx has ended.
func (f *inflight) wait(ctx context.Context) {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	none := f.idle
	f.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
