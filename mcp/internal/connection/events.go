package connection

import (
	"bufio"
	"bytes"
	"io"
)

// serverSentEventHead is one server-sent event without its data.
type serverSentEventHead struct {
	name      string
	dataLines int
	cursor    []byte // the lines with the fields id and retry, each with its newline
}

// eventReader splits a stream into events. It skips a byte order mark.
type eventReader struct {
	in             *bufio.Reader
	hasReadAny     bool
	linePartBuffer []byte // buffer of readLinePart
}

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// nextEvent reads one event and writes its data to the argument data, which must be empty. An incomplete event at the end of the stream is
// dropped. If an event exceeds maxBytes bytes, reading stops and data.size is the number of bytes read. Comments and unknown fields are
// skipped. Data lines are joined by carriage returns, which in JSON mean the same as newlines.
func (r *eventReader) nextEvent(data *boundedLine, maxBytes int64) (ev serverSentEventHead, err error) {
	var read int64
	for read <= maxBytes {
		part, isEnd, err := r.readLinePart()
		if err != nil {
			return serverSentEventHead{}, err
		}
		read += int64(len(part))
		if len(part) == 0 && isEnd {
			if ev.dataLines > 0 || len(ev.cursor) > 0 {
				return ev, nil
			}
			ev.name, read = "", 0
		}
		isData := ev.addFieldOfLineOrLineStart(part, isEnd, data)
		for !isEnd && read <= maxBytes {
			if part, isEnd, err = r.readLinePart(); err != nil {
				return serverSentEventHead{}, err
			}
			read += int64(len(part))
			if isData {
				data.write(part)
			}
		}
	}
	data.size = max(data.size, read)
	return ev, nil
}

// addFieldOfLineOrLineStart adds the field in a line such as "data: {}", or in the first part of a long line.
func (e *serverSentEventHead) addFieldOfLineOrLineStart(line []byte, isWholeLine bool, data *boundedLine) (isData bool) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		e.name = string(value)
	case "id", "retry":
		if isWholeLine && len(e.cursor) < maxPartBytes {
			e.cursor = append(append(e.cursor, line...), '\n')
		}
	case "data":
		if e.dataLines++; e.dataLines > 1 {
			data.write([]byte{'\r'})
		}
		data.write(value)
		return true
	}
	return false
}

const maxPartBytes = 4 << 10

// readLinePart reads a line without its end, or the next part of a long line. As in the real CLI, a carriage return ends its
// line only when the next byte has arrived.
func (r *eventReader) readLinePart() (part []byte, isEnd bool, err error) {
	const byteOrderMark = "\ufeff"
	for r.linePartBuffer = r.linePartBuffer[:0]; len(r.linePartBuffer) < maxPartBytes && !isEnd; {
		c, err := r.in.ReadByte()
		isEnd = c == '\n' || c == '\r'
		if c == '\r' {
			var next []byte
			if next, err = r.in.Peek(1); err == nil && next[0] == '\n' {
				_, err = r.in.Discard(1)
			}
		}
		if err != nil {
			return nil, false, err
		}
		if !isEnd {
			r.linePartBuffer = append(r.linePartBuffer, c)
		}
	}
	part = r.linePartBuffer
	if !r.hasReadAny {
		part = bytes.TrimPrefix(part, []byte(byteOrderMark))
	}
	r.hasReadAny = true
	return part, isEnd, nil
}
