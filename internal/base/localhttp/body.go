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

// SlowBodyError is the error of reading a request body that arrives too slowly; the response is [http.StatusRequestTimeout].
type SlowBodyError struct {
	Read int64 // bytes that arrived before the deadline
}

func (e *SlowBodyError) Error() string {
	return fmt.Sprintf("the body arrives too slowly: only %d bytes were received in time", e.Read)
}

// minBodyBytesPerSecond is the number of received bytes that move the deadline of a body by one second.
const minBodyBytesPerSecond = 64 << 10

// limitBodyTime rejects a body that takes longer than baseTime plus one second for every minBodyBytesPerSecond bytes.
func limitBodyTime(next http.Handler, baseTime time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			ctx, cancel := context.WithTimeout(r.Context(), baseTime)
			limit, _ := ctx.Deadline()
			cancel()
			b := &deadlineBody{ReadCloser: r.Body, conn: http.NewResponseController(w), firstDeadline: limit}
			b.extendReadDeadlineByReceivedBytes()
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

type deadlineBody struct {
	io.ReadCloser
	conn          *http.ResponseController
	firstDeadline time.Time // first deadline; every minBodyBytesPerSecond received bytes add a second
	read          int64
}

// extendReadDeadlineByReceivedBytes sets the read deadline for the rest of the body. It ignores the
// error, because some connections in tests do not support deadlines.
func (b *deadlineBody) extendReadDeadlineByReceivedBytes() {
	_ = b.conn.SetReadDeadline(b.firstDeadline.Add(time.Duration(b.read/minBodyBytesPerSecond) * time.Second))
}

func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case err == nil:
		b.extendReadDeadlineByReceivedBytes()
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{}) // the connection is used for the next request
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = &SlowBodyError{Read: b.read}
	}
	return n, err
}
