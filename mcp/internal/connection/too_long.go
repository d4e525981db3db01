package connection

import (
	"bytes"
	"fmt"
)

// tooLongError reports a message beyond the limit. It was dropped.
type tooLongError struct {
	Size           int64 // bytes
	StoppedReading bool  // reading stopped at Size
	Limit          int   // bytes
}

func (e *tooLongError) Error() string {
	size := "is"
	if e.StoppedReading {
		size = "has more than"
	}
	return fmt.Sprintf("the message of the server %s %d bytes; the limit is %d (maxLineBytes in the server's entry)", size, e.Size, e.Limit)
}

// idScanner finds the id and the size of a message that is dropped, while its bytes are read.
type idScanner struct {
	size      int64
	id        []byte // as written; nil = not found
	hasMethod bool   // the message has a method, so it is not a response

	depth                        int
	insideString, afterBackslash bool // inside a string; after a backslash in it
	inIDValue                    bool // after the colon of a member of the message itself
	key                          []byte
}

// longestID bounds the length of keys and ids that are kept.
const longestID = 64

func (e *idScanner) write(p []byte) {
	e.size += int64(len(p))
	for _, c := range p {
		if e.insideString {
			e.readInString(c)
		} else {
			e.readOutsideString(c)
		}
	}
}

func (e *idScanner) readInString(c byte) {
	e.appendToValue(c)
	switch {
	case e.afterBackslash:
		e.afterBackslash = false
	case c == '\\':
		e.afterBackslash = true
	case c == '"':
		e.insideString = false
		e.hasMethod = e.hasMethod || e.depth == 1 && !e.inIDValue && string(e.key) == `"method"`
	}
}

func (e *idScanner) readOutsideString(c byte) {
	switch c {
	case '"':
		e.insideString = true
		if e.depth == 1 && !e.inIDValue {
			e.key = e.key[:0]
		}
		e.appendToValue(c)
	case '{', '[':
		e.depth++
	case '}', ']':
		e.depth--
	case ':', ',':
		if e.depth == 1 {
			e.inIDValue = c == ':'
		}
	case ' ', '\t', '\r', '\n':
	default:
		e.appendToValue(c)
	}
}

// appendToValue appends c to the key or the id that is being read.
func (e *idScanner) appendToValue(c byte) {
	switch {
	case e.depth != 1:
	case !e.inIDValue && len(e.key) < longestID:
		e.key = append(e.key, c)
	case e.inIDValue && string(e.key) == `"id"` && len(e.id) < longestID:
		e.id = append(e.id, c)
	}
}

// responseID returns the id of the request that the message answers; nil = the message is not a response.
func (e *idScanner) responseID() []byte {
	if e.hasMethod || bytes.Equal(e.id, []byte("null")) {
		return nil
	}
	return e.id
}
