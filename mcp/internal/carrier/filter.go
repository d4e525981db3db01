// Package carrier provides MCP transports that mcp-go does not have or that
// lose data in mcp-go: the standard streams of a process, the older HTTP
// transport, and the SDK host of a session.
//
// When a transport ends, all waiting callers are notified at once. Messages
// over the size limit are rejected.
package carrier

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// FilterOptions configure a Filter. Only Source and Limit are required.
type FilterOptions struct {
	Source io.Reader
	Limit  int            // longest message in bytes
	Owner  TransportOwner // called on the reading goroutine; may be nil
}

// TransportOwner is notified of events of a transport.
type TransportOwner interface {
	// TooLong is called for a response beyond the limit before an error replaces it.
	TooLong(id []byte, why *TooLongError)
	// End is called once, at the end of the input.
	End()
}

// LineHandler is a TransportOwner that also handles single lines.
type LineHandler interface {
	Repair(line []byte) []byte // may rewrite an object
	Junk(first string)         // called for the first few dropped lines
}

// Filter passes on the lines of a server that are JSON objects and drops the rest: text, blank lines and messages
// longer than the limit. A response that is too long is replaced by an error with its id. A batch is split into its
// elements, one per line. A missing last newline is added. Memory use stays near the limit.
type Filter struct {
	options  FilterOptions
	handler  LineHandler // nil = the owner does not handle lines
	src      *bufio.Reader
	ready    []byte // the next bytes that Read returns
	line     []byte // buffer for the next line; ready may be a part of it
	ended    bool
	notified bool // the owner knows of the end

	mu    sync.Mutex
	junk  int
	first string
}

// NewFilter returns a filter; it reads nothing yet.
func NewFilter(o FilterOptions) *Filter {
	const buffer = 32 << 10
	lines, _ := o.Owner.(LineHandler)
	return &Filter{options: o, handler: lines, src: bufio.NewReaderSize(o.Source, buffer)}
}

// Read implements io.Reader for one goroutine.
func (f *Filter) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.ended {
			f.end()
			return 0, io.EOF
		}
		f.fill()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// end notifies the owner of the end, once. A last line without a newline was read before, so its reader has the
// message before the connection counts as lost.
func (f *Filter) end() {
	if f.options.Owner != nil && !f.notified {
		f.notified = true
		f.options.Owner.End()
	}
}

// fill reads one line into ready; ready stays empty if the line is not a message.
func (f *Filter) fill() {
	f.ready = nil
	line, tooLong, err := f.readLine()
	if err != nil {
		f.ended = true
	}
	if tooLong != nil {
		f.ready = f.tooLongReply(tooLong)
		return
	}
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0:
	case trimmed[0] == '{' && json.Valid(trimmed):
		f.ready = f.object(trimmed)
	case trimmed[0] == '[':
		f.ready = f.batch(trimmed)
	default:
		f.drop(string(trimmed[:min(len(trimmed), 200)]))
	}
}

func (f *Filter) object(line []byte) []byte {
	if f.handler != nil {
		line = f.handler.Repair(line)
	}
	return append(bytes.TrimRight(line, "\n"), '\n')
}

// batch splits a JSON-RPC batch. The current protocol forbids batches, but old servers send them.
func (f *Filter) batch(line []byte) []byte {
	var elements []json.RawMessage
	if json.Unmarshal(line, &elements) != nil {
		f.drop(string(line[:min(len(line), 200)]))
		return nil
	}
	var out []byte
	for _, e := range elements {
		var compact bytes.Buffer
		if len(e) == 0 || e[0] != '{' || json.Compact(&compact, e) != nil {
			f.drop(string(e[:min(len(e), 200)]))
			continue
		}
		out = append(out, f.object(compact.Bytes())...)
	}
	return out
}

// oversizedMessage is a line beyond the limit; only its size and id are kept.
type oversizedMessage struct {
	size    int64
	scanner idScanner
}

func (l *oversizedMessage) write(p []byte) {
	l.size += int64(len(p))
	l.scanner.write(p)
}

// tooLongReply returns the error that replaces a line that is too long.
func (f *Filter) tooLongReply(l *oversizedMessage) []byte {
	why := &TooLongError{Size: l.size, Limit: f.options.Limit}
	id := l.scanner.responseID()
	if id == nil || !json.Valid(id) {
		f.drop(why.Error())
		return nil
	}
	if f.options.Owner != nil {
		f.options.Owner.TooLong(id, why)
	}
	return tooLongResponse(id, why)
}

// tooLongResponse returns an error response in place of one that is too long.
func tooLongResponse(id []byte, why error) []byte {
	const internalError = -32603
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, internalError, why.Error())
}

// readLine returns the next line, which is valid until the next call. For a line beyond the limit it returns tooLong
// instead.
func (f *Filter) readLine() (line []byte, tooLong *oversizedMessage, err error) {
	const kept = 1 << 20 // larger buffers are released
	line = f.line[:0]
	for {
		part, err := f.src.ReadSlice('\n')
		if tooLong == nil && len(line)+len(part) > f.options.Limit {
			tooLong = &oversizedMessage{}
			tooLong.write(line)
			line = nil
		}
		if tooLong != nil {
			tooLong.write(bytes.TrimSuffix(part, []byte{'\n'}))
		} else {
			line = append(f.grow(line, len(part)), part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if f.line = line; cap(line) > kept {
				f.line = nil
			}
			return line, tooLong, err
		}
	}
}

// grow makes room for n more bytes of a line. It doubles the buffer, up to the size that the longest message needs,
// which causes less garbage than append.
func (f *Filter) grow(line []byte, n int) []byte {
	if len(line)+n <= cap(line) {
		return line
	}
	const newline = 1 // added by object
	grown := make([]byte, len(line), max(min(2*cap(line), f.options.Limit+newline), len(line)+n+newline))
	copy(grown, line)
	return grown
}

func (f *Filter) drop(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const shown = 10
	f.junk++
	if f.junk == 1 {
		f.first = what
	}
	if f.junk <= shown && f.handler != nil {
		f.handler.Junk(what)
	}
}

// Skipped returns how many lines were dropped, and the first of them.
func (f *Filter) Skipped() (n int, first string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.junk, f.first
}
