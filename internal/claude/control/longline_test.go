package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// endlessLine is a line without an end.
type endlessLine struct{ read int }

func (e *endlessLine) Read(p []byte) (int, error) {
	clear(p)
	e.read += len(p)
	return len(p), nil
}

// TestLongLine: a line of stdin without an end stops the run with the error text of the real CLI, and uses no more
// memory than the limit. Shorter lines are read completely.
func TestLongLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("a\n"+strings.Repeat("b", 1<<20)+"\n\nc"), 64<<10)
	for _, want := range []int{2, 1<<20 + 1, 1, 1} {
		line, err := readBoundedLine(in)
		if len(line) != want || err != nil && (want != 1 || !errors.Is(err, io.EOF)) {
			t.Errorf("%d bytes, %v, want %d", len(line), err, want)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	source := &endlessLine{}
	line, err := readBoundedLine(bufio.NewReaderSize(source, 64<<10))
	runtime.ReadMemStats(&after)
	if fault := new(InvalidStdinLineError); !errors.As(err, &fault) || !strings.HasPrefix(fault.Text, "Error: stream-json input carried over 256M characters with no newline.") || line != nil {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	if source.read > maxLineBytes+128<<10 {
		t.Errorf("%d bytes were read", source.read)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > maxLineBytes+maxLineBytes/8 {
		t.Errorf("%d MB were taken", used>>20)
	}
}

// TestGrouped: the lines of a group are not mixed with other lines.
func TestGrouped(t *testing.T) {
	var out bytes.Buffer
	l := newUnstartedLineWriter(&out)
	go l.writeLinesUntilClosed()
	l.queueLine([]byte("one"))
	err := l.WriteGroup(func(w io.Writer) error {
		for range 3 {
			l.queueLine([]byte("later"))
			if _, err := io.WriteString(w, "x"); err != nil {
				return err
			}
		}
		_, err := io.WriteString(w, "\n")
		return err
	})
	if err := errors.Join(err, l.flushAndClose(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "one\nxxx\nlater\nlater\nlater\n" {
		t.Errorf("got %q", got)
	}
}
