package carrier

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// PlainEvents normalizes an event stream: all three kinds of line ends become newlines, and a byte order mark is
// removed.
func PlainEvents(r io.Reader) io.Reader { return &plainEvents{r: r} }

type plainEvents struct {
	r    io.Reader
	mark int  // bytes of the byte order mark seen so far; -1 = no longer possible
	cr   bool // the last byte was a carriage return
}

const byteOrderMark = "\ufeff"

// Read implements io.Reader. It may return 0 bytes without an error.
func (e *plainEvents) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	kept := 0
	for _, c := range p[:n] {
		if e.mark >= 0 && e.mark < len(byteOrderMark) && c == byteOrderMark[e.mark] {
			e.mark++
			continue
		}
		e.mark = -1
		if c == '\n' && e.cr {
			e.cr = false
			continue
		}
		if e.cr = c == '\r'; e.cr {
			c = '\n'
		}
		p[kept] = c
		kept++
	}
	return kept, err
}

// event is one server-sent event.
type event struct {
	name, data string
	// tooLong reports that the data exceeded the limit; id is then that of the request that the message answers, nil
	// = none.
	tooLong *TooLongError
	id      []byte
}

// eventReader splits a stream of [PlainEvents] into events.
type eventReader struct {
	in    *bufio.Reader
	limit int // of the data of one event, in bytes

	// the event being read
	ev      event
	data    []byte
	lines   int
	size    int64
	scanner idScanner // scans data that is not kept
}

// next reads one event: data lines are joined by newlines; comments and other fields are skipped. An incomplete event
// at the end is dropped.
func (r *eventReader) next() (event, error) {
	r.ev, r.data, r.lines, r.size, r.scanner = event{}, nil, 0, 0, idScanner{}
	begins, isData := true, false
	for {
		piece, err := r.in.ReadSlice('\n')
		ended := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return event{}, err
		}
		piece = bytes.TrimSuffix(piece, []byte{'\n'})
		switch {
		case begins && ended && len(piece) == 0 && r.lines > 0:
			return r.finish(), nil
		case begins:
			isData = r.field(piece)
		case isData:
			r.add(piece)
		}
		begins = ended
	}
}

// field reads a line, or the first part of a long one; it reports whether the rest is data.
func (r *eventReader) field(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		r.ev.name = string(value)
	case "data":
		if r.lines++; r.lines > 1 {
			r.add([]byte{'\n'})
		}
		r.add(value)
		return true
	}
	return false
}

func (r *eventReader) add(p []byte) {
	if r.size += int64(len(p)); r.size <= int64(r.limit) {
		r.data = append(r.data, p...)
		return
	}
	if r.ev.tooLong == nil {
		r.ev.tooLong = &TooLongError{Limit: r.limit}
		r.scanner.write(r.data)
		r.data = nil
	}
	r.scanner.write(p)
}

func (r *eventReader) finish() event {
	r.ev.data = string(r.data)
	if r.ev.tooLong != nil {
		r.ev.tooLong.Size, r.ev.id = r.size, r.scanner.responseID()
	}
	return r.ev
}
