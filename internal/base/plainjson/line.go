package plainjson

import (
	"bufio"
	"errors"
)

// ReadLine returns the next line of a stream of JSON, with its end; it is appended to line[:0]. The parts of a line of more
// than limit bytes are passed to dropped instead (nil means not wanted), and tooLong is true. The error is that of the reader.
func ReadLine(in *bufio.Reader, line []byte, limit int, dropped func(part []byte)) (kept []byte, tooLong bool, err error) {
	if dropped == nil {
		dropped = func([]byte) {}
	}
	for line = line[:0]; ; {
		part, err := in.ReadSlice('\n')
		if !tooLong && len(line)+len(part) > limit {
			tooLong = true
			dropped(line)
			line = nil
		}
		if tooLong {
			dropped(part)
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
