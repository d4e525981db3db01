package localhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// SlowBodyError is what reading a request's body ends with when it comes too
// slowly; the answer is [http.StatusRequestTimeout].
type SlowBodyError struct {
	Read int64 // bytes that came in time
}

func (e *SlowBodyError) Error() string {
	return fmt.Sprintf("the body comes too slowly: %d bytes came in time", e.Read)
}

// bodyRate is how many bytes a body must have each second after its first time.
const bodyRate = 64 << 10

// timed cuts bodies that do not come: within first, and then at bodyRate.
func timed(next http.Handler, first time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			ctx, cancel := context.WithTimeout(r.Context(), first)
			limit, _ := ctx.Deadline()
			cancel()
			b := &body{ReadCloser: r.Body, conn: http.NewResponseController(w), limit: limit}
			b.patience()
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

type body struct {
	io.ReadCloser
	conn  *http.ResponseController
	limit time.Time // of the first bytes
	read  int64
}

// patience lets the connection wait for as long as the rest may take to begin. A
// connection that cannot do so is a test's.
func (b *body) patience() {
	_ = b.conn.SetReadDeadline(b.limit.Add(time.Duration(b.read/bodyRate) * time.Second))
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case err == nil:
		b.patience()
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // what comes next is another request
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &SlowBodyError{Read: b.read}
	}
	return n, err
}
