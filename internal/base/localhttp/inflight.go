package localhttp

import (
	"context"
	"net/http"
	"sync"
)

type requestCounter struct {
	next http.Handler

	mu     sync.Mutex
	active int
	idle   chan struct{} // closed when the count is 0; nil means that no goroutine waits
}

func (f *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.active++
	f.mu.Unlock()
	defer f.finishRequest()
	f.next.ServeHTTP(w, r)
}

func (f *requestCounter) finishRequest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active--; f.active == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// wait returns when no request is being processed or ctx is cancelled.
func (f *requestCounter) wait(ctx context.Context) {
	f.mu.Lock()
	if f.active == 0 {
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
