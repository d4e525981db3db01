package mcpface

import (
	"bytes"
	"net/http"
)

// Handler serves the paths listed in the package documentation.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.http)
	older := http.StripPrefix("/mcp", s.http)
	mux.HandleFunc("/mcp/sse", func(w http.ResponseWriter, r *http.Request) {
		older.ServeHTTP(&prefixWriter{ResponseWriter: w}, r)
	})
	mux.Handle("/mcp/messages", older)
	return mux
}

// prefixWriter rewrites the path in the first event of a stream, so that it is below /mcp.
type prefixWriter struct {
	http.ResponseWriter
	rewritten bool
}

func (b *prefixWriter) Write(p []byte) (int, error) {
	if b.rewritten {
		return b.ResponseWriter.Write(p)
	}
	b.rewritten = true
	_, err := b.ResponseWriter.Write(bytes.Replace(p, []byte("data: /messages?"), []byte("data: /mcp/messages?"), 1))
	return len(p), err
}

// Unwrap lets http.ResponseController flush the stream.
func (b *prefixWriter) Unwrap() http.ResponseWriter { return b.ResponseWriter }
