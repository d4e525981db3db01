package mcpface

import (
	"bytes"
	"net/http"
)

// Handler answers the paths of the package documentation.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.http)
	older := http.StripPrefix("/mcp", s.http)
	mux.HandleFunc("/mcp/sse", func(w http.ResponseWriter, r *http.Request) {
		older.ServeHTTP(&dispatch{ResponseWriter: w}, r)
	})
	mux.Handle("/mcp/messages", older)
	return mux
}

// dispatch moves the path that an event stream names first under /mcp.
type dispatch struct {
	http.ResponseWriter
	named bool
}

func (b *dispatch) Write(p []byte) (int, error) {
	if b.named {
		return b.ResponseWriter.Write(p)
	}
	b.named = true
	_, err := b.ResponseWriter.Write(bytes.Replace(p, []byte("data: /messages?"), []byte("data: /mcp/messages?"), 1))
	return len(p), err
}

// Unwrap lets the stream be flushed.
func (b *dispatch) Unwrap() http.ResponseWriter { return b.ResponseWriter }
