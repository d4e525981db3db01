package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// boundedLine collects a line. Of a line that is longer than the limit, it keeps the beginning and the end.
type boundedLine struct {
	limit int
	size  int64
	kept  []byte // the first bytes, at most limit
	tail  []byte // the last bytes after kept, at most 2*minKeptEndBytesOfTooLongLine
}

const minKeptEndBytesOfTooLongLine = 1 << 10

func (l *boundedLine) write(p []byte) {
	l.size += int64(len(p))
	n := min(len(p), l.limit-len(l.kept))
	if n > cap(l.kept)-len(l.kept) { // grow the buffer, but not beyond the limit
		l.kept = slices.Grow(l.kept, min(n+len(l.kept), l.limit-len(l.kept)))
	}
	l.kept = append(l.kept, p[:n]...)
	l.tail = append(l.tail, p[max(n, len(p)-minKeptEndBytesOfTooLongLine):]...)
	if len(l.tail) > 2*minKeptEndBytesOfTooLongLine {
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-minKeptEndBytesOfTooLongLine:]...)
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

// messageReader reads the messages of a server and drops other lines: text, blank lines and messages longer than the
// limit. A response that is too long fails its request. Memory use stays near the limit.
type messageReader struct {
	pipe             *bufio.Reader
	transport        *transportBase
	logsDroppedLines bool // the first few dropped lines are logged
	line             boundedLine

	mu           sync.Mutex
	skippedLines int
	firstSkipped string
}

// readLine reads a line, without its newline, into r.line. An error means that the line is the last one.
func (r *messageReader) readLine() error {
	for {
		part, err := r.pipe.ReadSlice('\n')
		r.line.write(bytes.TrimSuffix(part, []byte{'\n'}))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// messageInNextLine reads a line and returns its message, which is valid until the next call; nil means that the line is not
// a message. A message that is returned with an error is the last one of the stream.
func (r *messageReader) messageInNextLine() (message []byte, err error) {
	r.line.reset()
	err = r.readLine()
	trimmed := bytes.TrimSpace(r.line.kept)
	switch {
	case r.line.isTooLong():
		if !r.transport.failRequestOfTooLongResponse(&r.line) {
			r.recordDroppedLine((&tooLongError{Size: r.line.size, Limit: r.line.limit}).Error())
		}
	case len(trimmed) > 0:
		if message = jsonRPCMessageInLine(trimmed); message == nil {
			r.recordDroppedLine(string(trimmed[:min(len(trimmed), 200)]))
		}
	}
	return message, err
}

func (b *transportBase) failRequestOfTooLongResponse(tooLongLine *boundedLine) (isResponse bool) {
	id := tooLongLine.responseID()
	b.client.endPendingRequest(strings.Trim(string(id), `"`), requestOutcomeError{err: &tooLongError{Size: tooLongLine.size, Limit: tooLongLine.limit}})
	return json.Valid(id)
}

func (r *messageReader) recordDroppedLine(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const shown = 10
	r.skippedLines++
	if r.skippedLines == 1 {
		r.firstSkipped = reason
	}
	if r.skippedLines <= shown && r.logsDroppedLines {
		r.transport.debug.Printf("not a message, skipped: %s", reason)
	}
}

func (r *messageReader) droppedNonMessageLines() (droppedLines int, firstDroppedLine string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skippedLines, r.firstSkipped
}

// tooLongError reports that a message was dropped because it exceeds the limit.
type tooLongError struct {
	Size           int64 // bytes
	StoppedReading bool  // reading stopped after Size bytes, so the message is longer than that
	Limit          int   // bytes
}

// newTooLongError returns the error for a message of which bytesRead bytes were read: more than 2*limit means that the rest was not read.
func newTooLongError(bytesRead int64, limit int) *tooLongError {
	most := 2 * int64(limit)
	return &tooLongError{Size: min(bytesRead, most), StoppedReading: bytesRead > most, Limit: limit}
}

func (e *tooLongError) Error() string {
	size := "is"
	if e.StoppedReading {
		size = "has more than"
	}
	return fmt.Sprintf("the message of the server %s %d bytes; the limit is %d (maxLineBytes in the server's entry)", size, e.Size, e.Limit)
}

// Patterns for the id of a response, which may precede or follow the result, and for the beginning of a request.
var (
	responseIDAtStartPattern = lazyPattern(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*,\s*"(?:result|error|jsonrpc)"`)
	responseIDAtEndPattern   = lazyPattern(`,\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$`)
	leadingMethodPattern     = lazyPattern(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"method"`)
)

func lazyPattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// responseID returns the id in a line that is a response; nil means that the line is not a response.
func (l *boundedLine) responseID() []byte {
	if found := responseIDAtStartPattern().FindSubmatch(l.kept); found != nil {
		return found[1]
	}
	end := slices.Concat(l.kept[max(0, len(l.kept)-minKeptEndBytesOfTooLongLine):], l.tail)
	if found := responseIDAtEndPattern().FindSubmatch(end); found != nil && !leadingMethodPattern().Match(l.kept) {
		return found[1]
	}
	return nil
}

// jsonRPCMessageInLine returns a JSON-RPC message; nil means that the line is not a message. Like the real CLI 2.1.330, it rejects
// messages without the JSON-RPC version, with unknown members, or with a _meta that is not an object. In responses, it turns a string id
// such as "7" into a number.
func jsonRPCMessageInLine(line []byte) (messageOrNil []byte) {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || plainjson.JSString(members["jsonrpc"]) != wire.JSONRPC_VERSION {
		return nil
	}
	bodies := 0
	for name, value := range members {
		switch name {
		case "jsonrpc", "id":
		case "params", "result":
			if shapes()["params or result"].Issues(value) != nil {
				return nil
			}
			if name == "result" {
				bodies++
			}
		case "method", "error":
			bodies++
		default:
			return nil
		}
	}
	if bodies != 1 {
		return nil
	}
	id, _ := plainjson.StringValue(members["id"])
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && members["method"] == nil {
		members["id"] = strconv.AppendInt(nil, n, 10)
		return []byte(plainjson.MarshalString(members))
	}
	return line
}
