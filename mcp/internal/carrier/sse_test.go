package carrier

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// events reads a whole stream, both byte by byte and in one piece.
func events(t *testing.T, stream string, limit int) (all []event) {
	t.Helper()
	for _, r := range []io.Reader{strings.NewReader(stream), iotest.OneByteReader(strings.NewReader(stream))} {
		in := eventReader{in: bufio.NewReader(PlainEvents(r)), limit: limit}
		all = nil
		for {
			ev, err := in.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%q: %v", stream, err)
				}
				break
			}
			all = append(all, ev)
		}
	}
	return all
}

// TestEvents: all line endings, a byte order mark, several data lines. An event over the limit still yields the id of
// its answer, and later events are read.
func TestEvents(t *testing.T) {
	for stream, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                                 "[a][b]",
		"data: a\r\n\r\ndata: b\r\n\r\n":                         "[a][b]",
		"data: a\r\rdata: b\r\r":                                 "[a][b]",
		"data: a\rdata: c\n\ndata: b\r\n\n":                      "[a\nc][b]",
		"\ufeffdata: a\n\n":                                      "[a]",
		"\ufeff\r\rdata: a\r\n\rdata: \ufeffb\r\r":               "[a][\ufeffb]",
		": c\nevent: x\ndata:a\n\ndata\n\n":                      "x[a][]",
		"data: cut":                                              "",
		"data: 123456789\ndata: 12345678901\n\ndata: b\n\n":      "<21 of 20, id >[b]",
		"data: {\"id\":7,\"result\":{\"id\":8}}\n\n":             "<26 of 20, id 7>",
		"data: {\"result\":{\"id\":8},\ndata: \"id\":\"x\"}\n\n": "<29 of 20, id \"x\">",
		"data: {\"id\":7,\"method\":\"ping\",\"a\":\"b\"}\n\n":   "<32 of 20, id >",
	} {
		var got strings.Builder
		for _, ev := range events(t, stream, 20) {
			if ev.tooLong != nil {
				fmt.Fprintf(&got, "<%d of %d, id %s>", ev.tooLong.Size, ev.tooLong.Limit, ev.id)
				continue
			}
			got.WriteString(ev.name + "[" + ev.data + "]")
		}
		if got.String() != want {
			t.Errorf("%q: got %q, want %q", stream, got.String(), want)
		}
	}
}

func FuzzNextEvent(f *testing.F) {
	f.Add("event: x\r\ndata: a\ndata:b\n\n")
	f.Add(": c\n\n\ndata\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		if n := len(events(t, stream, 1000)); n > len(stream) {
			t.Errorf("%d events", n)
		}
	})
}
