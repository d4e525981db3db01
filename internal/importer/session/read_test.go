package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A line over the bound is skipped without storing it, and reading continues after it (A7).
func TestReadLineIsBounded(t *testing.T) {
	long := io.LimitReader(endless{}, 5*maxLine)
	in := bufio.NewReaderSize(io.MultiReader(strings.NewReader("first\n"), long, strings.NewReader("\nlast")), 1<<20)
	type result struct {
		text string
		size int64
		end  bool
	}
	var line []byte
	for _, want := range []result{{"first\n", 6, false}, {"", 5*maxLine + 1, false}, {"last", 4, true}} {
		var size int64
		var err error
		line, size, err = readLine(in, line[:0])
		if got := (result{string(line), size, errors.Is(err, io.EOF)}); got != want {
			t.Errorf("%.20q, %d bytes, end %v; want %q, %d, %v", got.text, got.size, got.end, want.text, want.size, want.end)
		}
		if cap(line) > 2*maxLine {
			t.Errorf("%d bytes are kept", cap(line))
		}
	}
}

// endless returns text without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("x"), len(p)))
	return len(p), nil
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\a": `a\x1b[31mb\a`, "naïve\n\t→": "naïve\n\t→", "\u202egnp.exe": `\u202egnp.exe`, "it's": "it's", "\xff": "\ufffd",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
