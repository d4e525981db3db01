package carrier

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// PlainEvents reads an event stream with all of the three ends of lines that it
// may have turned into newlines and without a byte order mark.
func PlainEvents(r io.Reader) io.Reader { return &plainEvents{r: r} }

type plainEvents struct {
	r    io.Reader
	mark int  // bytes of the byte order mark that were seen; -1 = it cannot come any more
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

// event is one event of a stream.
type event struct {
	name, data string
	// oversizedMessage says that the data was more than is kept; id is then that of the
	// request that it answers, nil = none.
	long *TooLongError
	id   []byte
}

// eventReader takes a stream of [PlainEvents] apart.
type eventReader struct {
	in    *bufio.Reader
	limit int // of the data of one event, in bytes

	// of the event that is being read
	ev    event
	data  []byte
	lines int
	size  int64
	head  idScanner // of data that is not kept
}

// next reads one event: several data lines are joined by newlines, comments and
// fields without meaning here are skipped. An event that is not complete does
// not count.
func (r *eventReader) next() (event, error) {
	r.ev, r.data, r.lines, r.size, r.head = event{}, nil, 0, 0, idScanner{}
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

// field reads a line, or as much of a long one as comes first; it tells whether
// the rest is data.
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
	if r.ev.long == nil {
		r.ev.long = &TooLongError{Limit: r.limit}
		r.head.write(r.data)
		r.data = nil
	}
	r.head.write(p)
}

func (r *eventReader) finish() event {
	r.ev.data = string(r.data)
	if r.ev.long != nil {
		r.ev.long.Size, r.ev.id = r.size, r.head.answers()
	}
	return r.ev
}
