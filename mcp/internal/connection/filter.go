package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// chunkSource returns bytes in chunks, which may be empty. A chunk is valid until the next one.
type chunkSource interface{ next() ([]byte, error) }

// chunkReader is a reader of the chunks of a source.
type chunkReader struct {
	source     chunkSource
	readyBytes []byte // the next bytes that Read returns
}

// Read implements io.Reader.
func (c *chunkReader) Read(p []byte) (n int, err error) {
	for len(c.readyBytes) == 0 {
		if c.readyBytes, err = c.source.next(); err != nil {
			return 0, err
		}
	}
	n = copy(p, c.readyBytes)
	c.readyBytes = c.readyBytes[n:]
	return n, nil
}

// boundedLine collects a line. Of a line that is longer than the limit, it keeps the beginning and the end.
type boundedLine struct {
	limit int
	size  int64
	kept  []byte // the first bytes, at most limit
	tail  []byte // the last bytes after kept, at most 2*keptEndBytes
}

// keptEndBytes is how many bytes are kept at least of the end of a line that is too long.
const keptEndBytes = 1 << 10

func (l *boundedLine) write(p []byte) {
	l.size += int64(len(p))
	n := min(len(p), l.limit-len(l.kept))
	if n > cap(l.kept)-len(l.kept) { // doubles the buffer, but not beyond the limit
		l.kept = slices.Grow(l.kept, min(n+len(l.kept), l.limit-len(l.kept)))
	}
	l.kept = append(l.kept, p[:n]...)
	l.tail = append(l.tail, p[max(n, len(p)-keptEndBytes):]...)
	if len(l.tail) > 2*keptEndBytes {
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-keptEndBytes:]...)
	}
}

// reset empties the line. It releases a large buffer.
func (l *boundedLine) reset() {
	const largest = 1 << 20
	l.size, l.kept, l.tail = 0, l.kept[:0], l.tail[:0]
	if cap(l.kept) > largest {
		l.kept = nil
	}
}

func (l *boundedLine) isTooLong() bool { return l.size > int64(l.limit) }

// lineSource is where lines come from.
type lineSource interface {
	// readLine adds the next line, without its end, to an empty one. An error ends the source; the line is still used.
	readLine(line *boundedLine) error
}

// lineFilter passes on the lines of a server that are JSON-RPC messages and drops the rest: text, blank lines and
// messages longer than the limit. A response that is too long is replaced by an error with its id. A missing last
// newline is added. Memory use stays near the limit.
type lineFilter struct {
	chunkReader
	lines lineSource
	owner *transportBase // is marked as lost at the end of lines, and gets an error for each response that is too long
	logs  bool           // the first few dropped lines are logged
	line  boundedLine    // a chunk may be a part of it
	ended bool

	mu           sync.Mutex
	skippedLines int
	firstSkipped string
}

// newLineFilter returns a filter for messages of at most limit bytes.
func newLineFilter(lines lineSource, limit int, owner *transportBase) *lineFilter {
	f := &lineFilter{lines: lines, line: boundedLine{limit: limit}, owner: owner}
	f.source = f
	return f
}

// pipeLines are the lines of a pipe.
type pipeLines struct{ *bufio.Reader }

func (p pipeLines) readLine(l *boundedLine) error {
	for {
		part, err := p.ReadSlice('\n')
		l.write(bytes.TrimSuffix(part, []byte{'\n'}))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// next returns the next line; nil means that it is not a message. A last line without a newline is returned before
// the connection is marked as lost, so that this message is still received.
func (f *lineFilter) next() ([]byte, error) {
	if f.ended {
		f.owner.MarkLost()
		return nil, io.EOF
	}
	f.line.reset()
	f.ended = f.lines.readLine(&f.line) != nil
	trimmed := bytes.TrimSpace(f.line.kept)
	switch {
	case f.line.isTooLong():
		return f.tooLongReply(), nil
	case len(trimmed) == 0:
		return nil, nil
	}
	message := parseMessage(trimmed)
	if message == nil {
		f.dropLine(string(trimmed[:min(len(trimmed), 200)]))
		return nil, nil
	}
	return append(message, '\n'), nil
}

// tooLongReply returns the error response that replaces a response that is too long; nil if the line is no response.
func (f *lineFilter) tooLongReply() []byte {
	why := &tooLongError{Size: f.line.size, Limit: f.line.limit}
	id := f.line.responseID()
	if id == nil || !json.Valid(id) {
		f.dropLine(why.Error())
		return nil
	}
	f.owner.interceptor.setProblem(strings.Trim(string(id), `"`), why)
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, CodeInternalError, why.Error())
}

func (f *lineFilter) dropLine(reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const shown = 10
	f.skippedLines++
	if f.skippedLines == 1 {
		f.firstSkipped = reason
	}
	if f.skippedLines <= shown && f.logs {
		f.owner.debug.Printf("not a message, skipped: %s", reason)
	}
}

// Skipped returns how many lines were dropped, and the first of them.
func (f *lineFilter) Skipped() (n int, first string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.skippedLines, f.firstSkipped
}

// tooLongError reports a message beyond the limit. It was dropped.
type tooLongError struct {
	Size           int64 // bytes
	StoppedReading bool  // reading stopped after Size bytes, so the message is longer than that
	Limit          int   // bytes
}

// newTooLongError returns the error for a message of which size bytes were read, at most little more than 2*limit.
func newTooLongError(size int64, limit int) *tooLongError {
	most := 2 * int64(limit)
	return &tooLongError{Size: min(size, most), StoppedReading: size > most, Limit: limit}
}

func (e *tooLongError) Error() string {
	size := "is"
	if e.StoppedReading {
		size = "has more than"
	}
	return fmt.Sprintf("the message of the server %s %d bytes; the limit is %d (maxLineBytes in the server's entry)", size, e.Size, e.Limit)
}

// Patterns of the id of a response, which is before or after the result, and of the beginning of a request.
var (
	leadingIDPattern  = lazyPattern(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*,\s*"(?:result|error|jsonrpc)"`)
	trailingIDPattern = lazyPattern(`,\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$`)
	methodPattern     = lazyPattern(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"method"`)
)

func lazyPattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// responseID returns the id of the request that the message answers; nil means the message is not a response.
func (l *boundedLine) responseID() []byte {
	if found := leadingIDPattern().FindSubmatch(l.kept); found != nil {
		return found[1]
	}
	end := slices.Concat(l.kept[max(0, len(l.kept)-keptEndBytes):], l.tail)
	if found := trailingIDPattern().FindSubmatch(end); found != nil && !methodPattern().Match(l.kept) {
		return found[1]
	}
	return nil
}
