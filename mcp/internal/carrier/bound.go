package carrier

import (
	"context"
	"io"
	"mime"
	"net/http"
)

// Bound makes the body of an answer fail when a message in it has more than limit
// bytes, and plain where it is a stream of events. Closing it calls stop.
func Bound(ctx context.Context, resp *http.Response, limit int, stop context.CancelFunc) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := &boundedBody{Closer: resp.Body, from: resp.Body, limit: int64(limit), events: media == "text/event-stream", stop: stop}
	if body.events {
		body.from = PlainEvents(resp.Body)
	}
	body.long, _ = ctx.Value(tooLongKey{}).(func(error))
	resp.Body = body
}

// OnTooLong puts a function into a request's context that hears that its answer
// is too long; mcp-go does not pass on why a body could not be read.
func OnTooLong(ctx context.Context, long func(why error)) context.Context {
	return context.WithValue(ctx, tooLongKey{}, long)
}

type tooLongKey struct{}

// boundedBody fails when a message has more than limit bytes: the whole body,
// or in a stream of events what comes before an empty line.
type boundedBody struct {
	io.Closer
	from   io.Reader
	limit  int64
	events bool
	stop   context.CancelFunc
	long   func(error) // nil = nobody is told

	run    int64 // bytes of the message so far
	inLine bool  // the line has something in it
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	size, ended := b.count(p[:n])
	if size <= b.limit {
		return n, err
	}
	why := &TooLongError{Limit: int(b.limit)}
	// The size is told as far as it is not much more.
	for !ended && err == nil && size/2 <= b.limit {
		n, err = b.from.Read(p)
		size, ended = b.count(p[:n])
	}
	if why.Size = size; size/2 > b.limit {
		why.Size, why.More = 2*b.limit, true
	}
	if b.long != nil {
		b.long(why)
	}
	return 0, why
}

// count is the size of the message so far, or that of the first one that is
// beyond the limit and ends in p: at an empty line of a stream of events.
func (b *boundedBody) count(p []byte) (size int64, ended bool) {
	if !b.events {
		b.run += int64(len(p))
		return b.run, false
	}
	for _, c := range p {
		b.run++
		switch {
		case c != '\n':
			b.inLine = true
		case b.inLine:
			b.inLine = false
		case b.run > b.limit:
			return b.run, true
		default:
			b.run = 0
		}
	}
	return b.run, false
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.stop()
	return b.Closer.Close()
}
