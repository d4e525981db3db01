package connection

import (
	"bytes"
	"fmt"
)

// tooLongError reports a message beyond the limit. It was dropped.
type tooLongError struct {
	Size  int64 // bytes
	More  bool  // reading stopped at Size
	Limit int   // bytes
}

func (e *tooLongError) Error() string {
	size := "is"
	if e.More {
		size = "has more than"
	}
	return fmt.Sprintf("the message of the server %s %d bytes; the limit is %d (maxLineBytes in the server's entry)", size, e.Size, e.Limit)
}

// idScanner finds the id and the size of a message that is dropped, while its bytes are read.
type idScanner struct {
	size   int64
	id     []byte // as written; nil = not found
	method bool   // the message has a method, so it is not a response

	depth         int
	quoted, slash bool // inside a string; after a backslash in it
	value         bool // after the colon of a member of the message itself
	key           []byte
}

// longestID bounds the length of keys and ids that are kept.
const longestID = 64

func (e *idScanner) write(p []byte) {
	e.size += int64(len(p))
	for _, c := range p {
		if e.quoted {
			e.inString(c)
		} else {
			e.outside(c)
		}
	}
}

func (e *idScanner) inString(c byte) {
	e.keep(c)
	switch {
	case e.slash:
		e.slash = false
	case c == '\\':
		e.slash = true
	case c == '"':
		e.quoted = false
		e.method = e.method || e.depth == 1 && !e.value && string(e.key) == `"method"`
	}
}

func (e *idScanner) outside(c byte) {
	switch c {
	case '"':
		e.quoted = true
		if e.depth == 1 && !e.value {
			e.key = e.key[:0]
		}
		e.keep(c)
	case '{', '[':
		e.depth++
	case '}', ']':
		e.depth--
	case ':', ',':
		if e.depth == 1 {
			e.value = c == ':'
		}
	case ' ', '\t', '\r', '\n':
	default:
		e.keep(c)
	}
}

// keep appends c to the key or the id that is being read.
func (e *idScanner) keep(c byte) {
	switch {
	case e.depth != 1:
	case !e.value && len(e.key) < longestID:
		e.key = append(e.key, c)
	case e.value && string(e.key) == `"id"` && len(e.id) < longestID:
		e.id = append(e.id, c)
	}
}

// responseID returns the id of the request that the message answers; nil = the message is not a response.
func (e *idScanner) responseID() []byte {
	if e.method || bytes.Equal(e.id, []byte("null")) {
		return nil
	}
	return e.id
}
