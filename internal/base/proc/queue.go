package proc

import (
	"errors"
	"io"
	"sync"
)

// ErrQueueFull means that the reader is too slow.
var ErrQueueFull = errors.New("the output queue is full: the program that reads the output is too slow")

// ErrQueueClosed means that a queue was closed, or that its writer failed.
var ErrQueueClosed = errors.New("queue closed")

// AsyncWriter is a writer that never blocks, even if the reader is slow. Written data is queued in order, up to a limit. All
// methods may be called from many goroutines; the data of one Write stays together.
type AsyncWriter struct {
	limit int
	w     io.WriteCloser
	done  chan struct{}

	mu      sync.Mutex
	more    *sync.Cond
	chunks  [][]byte
	size    int // bytes in chunks and in the current write
	closing bool
	err     error
}

// StartAsyncWriter starts a queue of at most limit bytes for w. The queue owns w and closes it. Call CloseWhenSent or Close.
func StartAsyncWriter(w io.WriteCloser, limit int) *AsyncWriter {
	q := &AsyncWriter{w: w, limit: limit, done: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
	go q.writeChunksUntilClosed() // returns when the queue is closed or w fails
	return q
}

// Write queues a copy of p. The error is ErrQueueFull or ErrQueueClosed; then nothing was queued.
func (q *AsyncWriter) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closing:
		return 0, ErrQueueClosed
	case q.size+len(p) > q.limit:
		return 0, ErrQueueFull
	}
	q.chunks = append(q.chunks, append([]byte(nil), p...))
	q.size += len(p)
	q.more.Signal()
	return len(p), nil
}

// WriterError returns the error of the writer; nil means none.
func (q *AsyncWriter) WriterError() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// PendingBytes returns the number of bytes that are queued or being written.
func (q *AsyncWriter) PendingBytes() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size
}

// CloseWhenSent closes the writer after all queued data is written. It returns immediately.
func (q *AsyncWriter) CloseWhenSent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closing = true
	q.more.Signal()
}

// Close drops the queued data and closes the writer, so that a running Write returns. It returns immediately; see Done.
func (q *AsyncWriter) Close() error {
	q.mu.Lock()
	q.closing = true
	q.chunks = nil
	q.more.Signal()
	q.mu.Unlock()
	return q.w.Close()
}

// Done is closed when the queue is empty and its writer is closed.
func (q *AsyncWriter) Done() <-chan struct{} { return q.done }

func (q *AsyncWriter) writeChunksUntilClosed() {
	defer close(q.done)
	defer q.w.Close()
	for {
		batch, ok := q.waitAndTakeChunks()
		if !ok {
			return
		}
		for _, chunk := range batch {
			_, err := q.w.Write(chunk)
			q.mu.Lock()
			q.size -= len(chunk)
			q.err = err
			q.mu.Unlock()
			if err != nil {
				q.CloseWhenSent() // refuses further writes
				return
			}
		}
	}
}

// waitAndTakeChunks waits for chunks; ok is false when the queue is closed and empty.
func (q *AsyncWriter) waitAndTakeChunks() (batch [][]byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.chunks) == 0 {
		if q.closing {
			return nil, false
		}
		q.more.Wait()
	}
	batch, q.chunks = q.chunks, nil
	return batch, true
}
