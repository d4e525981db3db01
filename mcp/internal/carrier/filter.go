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

// FilterOptions describe a Filter. Only Source and Limit are required.
type FilterOptions struct {
	Source io.Reader
	Limit  int            // longest message in bytes
	Owner  TransportOwner // told from the goroutine that reads; nil = nobody is
}

// TransportOwner is told what becomes of a way.
type TransportOwner interface {
	// TooLong hears of an answer beyond the limit before an error takes its
	// place.
	TooLong(id []byte, why *TooLongError)
	// End is called once, at the end of what is read.
	End()
}

// Lines is an Owner that looks at single lines.
type Lines interface {
	Repair(line []byte) []byte // may rewrite an object
	Junk(first string)         // hears of the first few lines dropped
}

// Filter hands on the lines of a server that are JSON objects and drops
// the rest: prose, blank lines, messages longer than limit. In place of an
// answer that is too long comes an error with its id. A batch becomes
// its elements, one a line. A last line without newline gets one. Memory stays
// near the limit.
type Filter struct {
	o     FilterOptions
	lines Lines // nil = nobody looks at them
	src   *bufio.Reader
	ready []byte // what Read hands out next
	line  []byte // room for the next line; ready may be a part of it
	ended bool

	mu    sync.Mutex
	junk  int
	first string
}

// NewFilter makes a filter; nothing is read yet.
func NewFilter(o FilterOptions) *Filter {
	const buffer = 32 << 10
	lines, _ := o.Owner.(Lines)
	return &Filter{o: o, lines: lines, src: bufio.NewReaderSize(o.Source, buffer)}
}

// Read implements io.Reader for one goroutine.
func (f *Filter) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.ended {
			return 0, io.EOF
		}
		f.fill()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// fill reads one line into ready, which stays empty when it is not a message.
func (f *Filter) fill() {
	f.ready = nil
	line, tooLong, err := f.readLine()
	if err != nil {
		f.ended = true
		if f.o.Owner != nil {
			defer f.o.Owner.End()
		}
	}
	if tooLong != nil {
		f.ready = f.refuse(tooLong)
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
	if f.lines != nil {
		line = f.lines.Repair(line)
	}
	return append(bytes.TrimRight(line, "\n"), '\n')
}

// batch splits a JSON-RPC batch, which current servers must not send but old
// ones may.
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

// oversizedMessage is a line beyond the limit as it passes by.
type oversizedMessage struct {
	size int64
	head idScanner
}

func (l *oversizedMessage) write(p []byte) {
	l.size += int64(len(p))
	l.head.write(p)
}

// refuse gives the error in place of a line that is too long.
func (f *Filter) refuse(l *oversizedMessage) []byte {
	why := &TooLongError{Size: l.size, Limit: f.o.Limit}
	id := l.head.answers()
	if id == nil || !json.Valid(id) {
		f.drop(why.Error())
		return nil
	}
	if f.o.Owner != nil {
		f.o.Owner.TooLong(id, why)
	}
	return answerInstead(id, why)
}

// answerInstead is the error that stands for an answer that is not kept.
func answerInstead(id []byte, why error) []byte {
	const internalError = -32603
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", id, internalError, why.Error())
}

// readLine returns the next line, which is good until the one after it, or
// what was seen of one that is too long.
func (f *Filter) readLine() (line []byte, tooLong *oversizedMessage, err error) {
	const kept = 1 << 20 // larger room is given back
	line = f.line[:0]
	for {
		part, err := f.src.ReadSlice('\n')
		if tooLong == nil && len(line)+len(part) > f.o.Limit {
			tooLong = &oversizedMessage{}
			tooLong.write(line)
			line = nil
		}
		if tooLong != nil {
			tooLong.write(bytes.TrimSuffix(part, []byte{'\n'}))
		} else {
			line = append(f.room(line, len(part)), part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if f.line = line; cap(line) > kept {
				f.line = nil
			}
			return line, tooLong, err
		}
	}
}

// room makes room for n more bytes of a line. It doubles, which leaves less
// garbage behind than append does, up to what the longest message needs.
func (f *Filter) room(line []byte, n int) []byte {
	if len(line)+n <= cap(line) {
		return line
	}
	const newline = 1 // that object adds
	grown := make([]byte, len(line), max(min(2*cap(line), f.o.Limit+newline), len(line)+n+newline))
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
	if f.junk <= shown && f.lines != nil {
		f.lines.Junk(what)
	}
}

// Skipped reports how many lines were dropped, and the first of them.
func (f *Filter) Skipped() (n int, first string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.junk, f.first
}
