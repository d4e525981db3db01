package proc

import "sync"

// ring keeps the last limit bytes written to it.
type ring struct {
	limit int

	mu  sync.Mutex
	buf []byte
}

func (r *ring) write(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) >= r.limit {
		p = p[len(p)-r.limit:]
		r.buf = r.buf[:0]
	}
	if over := len(r.buf) + len(p) - r.limit; over > 0 {
		r.buf = append(r.buf[:0], r.buf[over:]...)
	}
	r.buf = append(r.buf, p...)
}

// String returns what is kept, oldest first.
func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.buf)
}
