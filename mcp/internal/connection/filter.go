package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
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

// filterOptions configure a filter. Source, Limit and Owner are required.
type filterOptions struct {
	Source io.Reader
	Limit  int            // longest message in bytes
	Owner  *transportBase // the connection; it is marked as lost at the end of Source, and gets an error for each response that is too long
	Log    bool           // the first few dropped lines are logged
}

// lineFilter passes on the lines of a server that are JSON-RPC messages and drops the rest: text, blank lines and
// messages longer than the limit. A response that is too long is replaced by an error with its id. A missing last
// newline is added. Memory use stays near the limit.
type lineFilter struct {
	chunkReader
	options filterOptions
	src     *bufio.Reader
	line    []byte // buffer for the next line; a chunk may be a part of it
	ended   bool

	mu           sync.Mutex
	skippedLines int
	firstSkipped string
}

func newLineFilter(o filterOptions) *lineFilter {
	const buffer = 32 << 10
	f := &lineFilter{options: o, src: bufio.NewReaderSize(o.Source, buffer)}
	f.source = f
	return f
}

// next returns the next line; nil means that it is not a message. A last line without a newline is returned before
// the connection is marked as lost, so that this message is still received.
func (f *lineFilter) next() ([]byte, error) {
	if f.ended {
		f.options.Owner.MarkLost()
		return nil, io.EOF
	}
	var dropped droppedLine
	line, tooLong, err := plainjson.ReadLine(f.src, f.line, f.options.Limit, func(part []byte) { dropped.write(part) })
	f.ended = err != nil
	const kept = 1 << 20 // larger buffers are released
	if f.line = line; cap(line) > kept {
		f.line = nil
	}
	trimmed := bytes.TrimSpace(line)
	switch {
	case tooLong:
		return f.tooLongReply(&dropped), nil
	case len(trimmed) == 0:
	case trimmed[0] == '{' && isMessage(trimmed):
		return append(withNumericID(trimmed), '\n'), nil
	default:
		f.dropLine(string(trimmed[:min(len(trimmed), 200)]))
	}
	return nil, nil
}

// withNumericID turns the id of a response into a number if it is a string such as "7", as the real CLI does. It looks
// for the id only near the beginning and the end of the line.
func withNumericID(line []byte) []byte {
	const near = 256
	head, tail := line[:min(near, len(line))], line[max(0, len(line)-near):]
	var m map[string]json.RawMessage
	if !stringIDPattern().Match(head) && !stringIDPattern().Match(tail) || json.Unmarshal(line, &m) != nil || m["method"] != nil {
		return line
	}
	n, err := strconv.ParseInt(plainjson.JSString(m["id"]), 10, 64)
	if err != nil {
		return line
	}
	m["id"] = strconv.AppendInt(nil, n, 10)
	if corrected, err := json.Marshal(m); err == nil {
		return corrected
	}
	return line
}

var stringIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"id"\s*:\s*"[0-9]+"`) })

// tooLongReply returns the error response that replaces a response that is too long; nil if the line is no response.
func (f *lineFilter) tooLongReply(l *droppedLine) []byte {
	why := &tooLongError{Size: l.size, Limit: f.options.Limit}
	id := l.responseID()
	if id == nil || !json.Valid(id) {
		f.dropLine(why.Error())
		return nil
	}
	f.options.Owner.interceptor.setProblem(strings.Trim(string(id), `"`), why)
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
	if f.skippedLines <= shown && f.options.Log {
		f.options.Owner.debug.Printf("not a message, skipped: %s", reason)
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

type droppedLine struct {
	size       int64
	head, tail []byte
}

// keptEndBytes is how many bytes are kept of the beginning of a message, and of its end.
const keptEndBytes = 1 << 10

func (d *droppedLine) write(p []byte) {
	p = bytes.TrimSuffix(p, []byte{'\n'})
	d.size += int64(len(p))
	d.head = append(d.head, p[:min(len(p), keptEndBytes-len(d.head))]...)
	d.tail = append(d.tail, p[max(0, len(p)-keptEndBytes):]...)
	d.tail = d.tail[max(0, len(d.tail)-keptEndBytes):]
}

// Patterns of the id of a response, which is before or after the result.
var (
	leadingIDPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*,\s*"(?:result|error|jsonrpc)"`)
	})
	trailingIDPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`,\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$`)
	})
)

// responseID returns the id of the request that the message answers; nil means the message is not a response.
func (d *droppedLine) responseID() []byte {
	if found := leadingIDPattern().FindSubmatch(d.head); found != nil {
		return found[1]
	}
	if found := trailingIDPattern().FindSubmatch(d.tail); found != nil && !methodPattern().Match(d.head) {
		return found[1]
	}
	return nil
}

var methodPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"method"`)
})
