package localhttp

import (
	"context"
	"net/http"
	"sync"
)

// inflight counts the requests that a handler is at.
type inflight struct {
	next http.Handler

	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none; nil = nobody waits for that
}

func (f *inflight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
	defer f.leave()
	f.next.ServeHTTP(w, r)
}

func (f *inflight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
}

// wait returns when the handler is at nothing, or ctx has ended.
func (f *inflight) wait(ctx context.Context) {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return
	}
	if f.none == nil {
		f.none = make(chan struct{})
	}
	none := f.none
	f.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
