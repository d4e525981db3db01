package connection

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// newNormalizedEvents normalizes an event stream: all line ends become newlines, and a byte order mark is removed.
func newNormalizedEvents(r io.Reader) io.Reader { return &normalizedEvents{r: r} }

type normalizedEvents struct {
	r        io.Reader
	bomBytes int  // bytes of the byte order mark seen so far; -1 means that other bytes came first
	afterCR  bool // the last byte was a carriage return
}

const byteOrderMark = "\ufeff"

// Read implements io.Reader. It may return 0 bytes without an error.
func (e *normalizedEvents) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	kept := 0
	for _, c := range p[:n] {
		if e.bomBytes >= 0 && e.bomBytes < len(byteOrderMark) && c == byteOrderMark[e.bomBytes] {
			e.bomBytes++
			continue
		}
		e.bomBytes = -1
		if c == '\n' && e.afterCR {
			e.afterCR = false
			continue
		}
		if e.afterCR = c == '\r'; e.afterCR {
			c = '\n'
		}
		p[kept] = c
		kept++
	}
	return kept, err
}

// event is one server-sent event, or a piece of one that exceeds the limit.
type event struct {
	name      string
	data      []byte // valid until the next event is read
	continues bool   // the data continues in the next piece
}

type eventReader struct {
	in    *bufio.Reader
	limit int // maximum size of the data of one piece, in bytes

	ev     event
	lines  int  // number of data lines of the event
	inLine bool // a line has been read in part
	isData bool // the line that was read in part is data
}

// next reads one event, or a piece of an event that exceeds the limit. Comments and unused fields are skipped. Several
// lines of data become one line: carriage returns replace the line ends, which means the same in JSON. An incomplete
// event at the end of the stream is dropped.
func (r *eventReader) next() (event, error) {
	if !r.ev.continues {
		r.ev.name, r.lines = "", 0
	}
	r.ev.data = r.ev.data[:0]
	for r.ev.continues = true; len(r.ev.data) <= r.limit; {
		piece, err := r.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return event{}, err
		}
		begins := !r.inLine
		r.inLine = err != nil
		piece = bytes.TrimSuffix(piece, []byte{'\n'})
		switch {
		case begins && !r.inLine && len(piece) == 0 && r.lines > 0:
			r.ev.continues = false
			return r.ev, nil
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
	switch {
	case string(name) == "event":
		r.ev.name = string(value)
	case r.isData:
		if r.lines++; r.lines > 1 {
			r.ev.data = append(r.ev.data, '\r')
		}
		r.ev.data = append(r.ev.data, value...)
	}
}

type messageLines struct {
	events     *eventReader
	readyBytes []byte // the next bytes that Read returns
}

// Read implements io.Reader.
func (m *messageLines) Read(p []byte) (int, error) {
	for len(m.readyBytes) == 0 {
		ev, err := m.events.next()
		if err != nil {
			return 0, err
		}
		if ev.name != "" && ev.name != "message" {
			continue
		}
		if m.readyBytes = ev.data; !ev.continues {
			m.readyBytes = append(m.readyBytes, '\n')
		}
	}
	n := copy(p, m.readyBytes)
	m.readyBytes = m.readyBytes[n:]
	return n, nil
}
