package connection

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
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

// droppedLine is the beginning, the end and the size of a message that is dropped.
type droppedLine struct {
	size       int64
	head, tail []byte
}

// keptBytes is how much of both ends is kept.
const keptBytes = 1 << 10

func (d *droppedLine) write(p []byte) {
	p = bytes.TrimSuffix(p, []byte{'\n'})
	d.size += int64(len(p))
	d.head = append(d.head, p[:min(len(p), keptBytes-len(d.head))]...)
	d.tail = append(d.tail, p[max(0, len(p)-keptBytes):]...)
	d.tail = d.tail[max(0, len(d.tail)-keptBytes):]
}

// The id of a response is before or after its result.
var (
	idBefore = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*,\s*"(?:result|error|jsonrpc)"`)
	})
	idAfter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`,\s*"id"\s*:\s*(\d+|"(?:[^"\\]|\\.)*")\s*(?:,\s*"jsonrpc"\s*:\s*"[^"]*"\s*)?\}\s*$`)
	})
)

// responseID returns the id of the request that the message answers; nil means the message is not a response.
func (d *droppedLine) responseID() []byte {
	if found := idBefore().FindSubmatch(d.head); found != nil {
		return found[1]
	}
	if found := idAfter().FindSubmatch(d.tail); found != nil && !hasMethod().Match(d.head) {
		return found[1]
	}
	return nil
}

// hasMethod matches the beginning of a request or a notification.
var hasMethod = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*\{(?:\s*"jsonrpc"\s*:\s*"[^"]*"\s*,)?\s*"method"`)
})
