package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// newNormalizedEvents normalizes an event stream: all line ends become newlines. As in the real CLI, a carriage return
// ends its line only when the next byte has arrived.
func newNormalizedEvents(r io.Reader) *bufio.Reader {
	const size = 4 << 10
	return bufio.NewReader(&chunkReader{source: &normalizedEvents{r: r, buffer: make([]byte, size)}})
}

type normalizedEvents struct {
	r       io.Reader
	buffer  []byte
	err     error
	afterCR bool // the last byte was a carriage return
}

func (e *normalizedEvents) next() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	p, kept, n := e.buffer, 0, 0
	n, e.err = e.r.Read(p[1:]) // p[0] is for the line end of an earlier carriage return
	for _, c := range p[1 : n+1] {
		if e.afterCR {
			p[kept] = '\n'
			kept++
		}
		isPairEnd := e.afterCR && c == '\n'
		if e.afterCR = c == '\r'; !e.afterCR && !isPairEnd {
			p[kept] = c
			kept++
		}
	}
	return p[:kept], nil
}

// event is one server-sent event, or a piece of one that exceeds the limit.
type event struct {
	name      string
	data      []byte // valid until the next event is read
	dataLines int
	cursor    []byte // the lines with the fields id and retry, each with its newline; valid as long as data
	size      int    // bytes of all lines of the piece, without their ends
	continues bool   // the event continues in the next piece
}

// isMessage reports whether the event has data that is meant as a message.
func (e event) isMessage() bool { return e.dataLines > 0 && (e.name == "" || e.name == "message") }

// eventReader splits a stream of [newNormalizedEvents] into events. It skips a byte order mark.
type eventReader struct {
	in      *bufio.Reader
	started bool
	limit   int // maximum size of one piece, in bytes

	ev     event
	inLine bool // a line has been read in part
	isData bool // the line that was read in part is data
}

// next reads one event; comments and unknown fields are skipped. Data lines are joined by carriage returns, which mean
// the same as newlines in JSON but keep the message on one line. An incomplete event at the end is dropped.
func (r *eventReader) next() (event, error) {
	const byteOrderMark = "\ufeff"
	if !r.started { // waits for more bytes only at the start, because no event is shorter
		r.started = true
		if mark, _ := r.in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
			_, _ = r.in.Discard(len(mark)) // cannot fail after Peek
		}
	}
	if !r.ev.continues {
		r.ev = event{data: r.ev.data, cursor: r.ev.cursor[:0]}
	}
	r.ev.data, r.ev.size = r.ev.data[:0], 0
	for r.ev.continues = true; r.ev.size <= r.limit; {
		piece, err := r.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return event{}, err
		}
		begins := !r.inLine
		r.inLine = err != nil
		piece = bytes.TrimSuffix(piece, []byte{'\n'})
		r.ev.size += len(piece)
		switch {
		case begins && !r.inLine && len(piece) == 0:
			if r.ev.dataLines > 0 || len(r.ev.cursor) > 0 {
				r.ev.continues = false
				return r.ev, nil
			}
			r.ev.name, r.ev.size = "", 0
		case begins:
			r.readField(piece)
		case r.isData:
			r.ev.data = append(r.ev.data, piece...)
		}
	}
	return r.ev, nil
}

// readField reads the field in a line such as "data: {}". line may be only the first part of a long line.
func (r *eventReader) readField(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	r.isData = string(name) == "data"
	switch string(name) {
	case "event":
		r.ev.name = string(value)
	case "id", "retry":
		if !r.inLine {
			r.ev.cursor = append(append(r.ev.cursor, line...), '\n')
		}
	case "data":
		if r.ev.dataLines++; r.ev.dataLines > 1 {
			r.ev.data = append(r.ev.data, '\r')
		}
		r.ev.data = append(r.ev.data, value...)
	}
}

// messageLines are the messages of an event stream, one per line. A message that is not JSON ends them.
type messageLines struct {
	events    *eventReader
	inMessage bool // a message has been returned in part
}

func (m *messageLines) next() ([]byte, error) {
	ev, err := m.events.next()
	isWhole := !m.inMessage && !ev.continues
	m.inMessage = ev.continues
	switch {
	case err != nil:
		return nil, err
	case !ev.isMessage():
		return nil, nil
	case isWhole && !json.Valid(ev.data):
		return nil, ErrUnreadable
	case ev.continues:
		return ev.data, nil
	}
	return append(ev.data, '\n'), nil
}

// responseStream is an event stream over streamable HTTP. It changes the stream to what mcp-go reads like the real CLI:
// each message is on one line after its fields id and retry, and other events have only these fields.
type responseStream struct {
	events   *eventReader
	request  openRequest
	isModern bool // the stream is one of revision 2026-07-28, whose servers send no requests
}

func (s *responseStream) next() ([]byte, error) {
	ev, err := s.events.next()
	var message []byte
	switch {
	case errors.Is(err, io.EOF):
		return nil, err
	case err != nil:
		err = ErrBroken
	case ev.continues:
		err = s.tooLong(ev)
	default:
		message, err = s.message(ev)
	}
	if err != nil {
		s.request.fail(err)
		return nil, err
	}
	if message != nil {
		ev.cursor = fmt.Appendf(ev.cursor, "data: %s\n", message)
	}
	return append(ev.cursor, '\n'), nil
}

// message returns the message of an event; nil means that the event has none for this stream.
func (s *responseStream) message(ev event) ([]byte, error) {
	switch {
	case !ev.isMessage() || len(ev.data) == 0:
		return nil, nil
	case !json.Valid(ev.data) && !s.request.isHandshake:
		return nil, ErrUnreadable
	case !isMessage(ev.data):
		return nil, nil
	}
	message := withNumericID(ev.data)
	m := plainjson.DecodeOrZero[struct{ ID, Method json.RawMessage }](message)
	isForeign := m.Method == nil && string(bytes.Trim(m.ID, `"`)) != s.request.id
	if isForeign || s.isModern && m.Method != nil && m.ID != nil {
		return nil, nil
	}
	return message, nil
}

// tooLong returns the error for a message over the limit. It reads a little more, to report the size of a message that
// is only slightly too long.
func (s *responseStream) tooLong(ev event) error {
	size := int64(ev.size)
	for ev.continues && size <= 2*int64(s.events.limit) {
		var err error
		if ev, err = s.events.next(); err != nil {
			break
		}
		size += int64(ev.size)
	}
	return newTooLongError(size, s.events.limit)
}
