package connection

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
)

// limitResponseBody limits the messages in the body of a response: reading the body fails when a message exceeds limit
// bytes. An event stream is also normalized (see [newNormalizedEvents]).
func limitResponseBody(ctx context.Context, resp *http.Response, limit int) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := &boundedBody{Closer: resp.Body, body: resp.Body, limit: int64(limit), events: media == "text/event-stream"}
	if body.events {
		body.body = newNormalizedEvents(resp.Body)
	}
	onFailure, observed := ctx.Value(failureKey{}).(func(error))
	body.onFailure = func(why error) {
		if observed && ctx.Err() == nil {
			onFailure(why)
		}
	}
	resp.Body = body
}

// withFailureHandler stores onFailure in the context of a request. It is called if the response is too long, or if an
// event stream breaks off, because mcp-go does not report why a body could not be read.
func withFailureHandler(ctx context.Context, onFailure func(why error)) context.Context {
	return context.WithValue(ctx, failureKey{}, onFailure)
}

type failureKey struct{}

// boundedBody is a body from which reading fails when a message exceeds limit bytes. In an event stream, each empty
// line ends a message. Any other body is one message.
type boundedBody struct {
	io.Closer
	body      io.Reader
	limit     int64
	events    bool
	onFailure func(why error)

	messageBytes int64 // bytes of the message so far
	inLine       bool  // the current line is not empty
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	size, ended := b.countMessageBytes(p[:n])
	if size <= b.limit {
		if b.events && err != nil && !errors.Is(err, io.EOF) {
			b.onFailure(ErrBroken)
		}
		return n, err
	}
	why := &tooLongError{Limit: int(b.limit)}
	// read a little more, to report the actual size of a message that is only slightly too long
	for !ended && err == nil && size/2 <= b.limit {
		n, err = b.body.Read(p)
		size, ended = b.countMessageBytes(p[:n])
	}
	if why.Size = size; size/2 > b.limit {
		why.Size, why.StoppedReading = 2*b.limit, true
	}
	b.onFailure(why)
	return 0, why
}

// countMessageBytes counts the bytes of p and returns the size of the current message. In an event stream, messages may
// end in p. If one of them exceeds the limit, countMessageBytes returns its size, and ended is true.
func (b *boundedBody) countMessageBytes(p []byte) (size int64, ended bool) {
	if !b.events {
		b.messageBytes += int64(len(p))
		return b.messageBytes, false
	}
	for _, c := range p {
		b.messageBytes++
		switch {
		case c != '\n':
			b.inLine = true
		case b.inLine:
			b.inLine = false
		case b.messageBytes > b.limit:
			return b.messageBytes, true
		default:
			b.messageBytes = 0
		}
	}
	return b.messageBytes, false
}
