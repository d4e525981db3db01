package mcpface

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// Bounds of the sessions over streamable HTTP, whose clients may go without a
// word.
const (
	idleTime    = 30 * time.Minute
	maxSessions = 1000
)

// Handler answers the paths of the package documentation.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", s.streamable)
	older := http.StripPrefix("/mcp", s.http)
	mux.HandleFunc("/mcp/sse", func(w http.ResponseWriter, r *http.Request) {
		older.ServeHTTP(&below{ResponseWriter: w}, r)
	})
	mux.Handle("/mcp/messages", older)
	return mux
}

// below moves the path that an event stream names first under /mcp.
type below struct {
	http.ResponseWriter
	named bool
}

func (b *below) Write(p []byte) (int, error) {
	if b.named {
		return b.ResponseWriter.Write(p)
	}
	b.named = true
	_, err := b.ResponseWriter.Write(bytes.Replace(p, []byte("data: /messages?"), []byte("data: /mcp/messages?"), 1))
	return len(p), err
}

// Unwrap lets the stream be flushed.
func (b *below) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// streamable notes which sessions are in use around the transport's own work.
func (s *Server) streamable(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	if id == "" {
		s.sweep(r.Context())
	}
	s.use(id, 1)
	defer s.use(id, -1)
	s.http.ServeHTTP(w, r)
}

func (s *Server) use(id string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.conns[id]; ok {
		c.busy += more
		c.seen = s.o.Now()
	}
}

// sweep ends the sessions whose clients are gone, as the clients should have
// done.
func (s *Server) sweep(ctx context.Context) {
	for _, id := range s.gone() {
		r, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/mcp", http.NoBody)
		if err != nil {
			return
		}
		r.Header.Set("Mcp-Session-Id", id)
		s.http.ServeHTTP(nowhere{http.Header{}}, r)
	}
}

// gone lists sessions that nobody used for long, and when there are too many
// the one that nobody used for longest.
func (s *Server) gone() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	oldest, last := "", s.o.Now()
	for id, c := range s.conns {
		switch {
		case c.busy > 0:
		case s.o.Now().Sub(c.seen) > idleTime:
			ids = append(ids, id)
		case c.seen.Before(last):
			oldest, last = id, c.seen
		}
	}
	if len(ids) == 0 && len(s.conns) >= maxSessions && oldest != "" {
		ids = append(ids, oldest)
	}
	return ids
}

// nowhere takes the answer to a request of our own.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
