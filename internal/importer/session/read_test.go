package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// A line over the bound is skipped without storing it, and reading continues after it (A7).
func TestReadLineIsBounded(t *testing.T) {
	long := io.LimitReader(endless{}, 5*maxLineBytes)
	in := bufio.NewReaderSize(io.MultiReader(strings.NewReader("first\n"), long, strings.NewReader("\nlast")), 1<<20)
	type result struct {
		text string
		size int64
		end  bool
	}
	var line []byte
	for _, want := range []result{{"first\n", 6, false}, {"", 5*maxLineBytes + 1, false}, {"last", 4, true}} {
		var size int64
		var err error
		line, size, err = readLine(in, line[:0])
		if got := (result{string(line), size, errors.Is(err, io.EOF)}); got != want {
			t.Errorf("%.20q, %d bytes, end %v; want %q, %d, %v", got.text, got.size, got.end, want.text, want.size, want.end)
		}
		if cap(line) > 2*maxLineBytes {
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

// progress counts the reports and keeps the last.
type progress struct{ calls, last int64 }

func (p *progress) ReportRead(n int64) { p.calls, p.last = p.calls+1, n }

func TestProgress(t *testing.T) {
	const text = `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}` + "\n" +
		`{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"s","message":{"id":"m","role":"assistant","content":"ho"}}` + "\n"
	name := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &progress{}
	if _, err := Read([]string{name}, Options{Progress: p}); err != nil || *p != (progress{3, int64(len(text))}) {
		t.Errorf("%v, %d calls, %d of %d bytes", err, p.calls, p.last, len(text))
	}
}

// Files that cannot be read as any format are refused with their reason.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	reason := func(name string) string {
		_, err := Read([]string{name}, Options{})
		if err == nil {
			return ""
		}
		reason, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), name), ": neither")
		return reason
	}
	file := func(text string) string {
		name := filepath.Join(dir, "f.jsonl")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return reason(name)
	}
	got := []string{reason(dir), reason(filepath.Join(dir, "none")), file(""), file("\x00"), file(strings.Repeat("x", 600) + "\x00"), file("x"), file("null"), file("7")}
	want := []string{
		": is a directory; give the .jsonl files in it", ": no such file or directory", ": is empty", ": is binary", ": is binary", ": does not begin with a line of JSON",
		": is JSON in an unknown format", ": is JSON in an unknown format",
	}
	if _, err := os.Stat("/proc/self/mem"); err == nil { // reading its first page fails
		got, want = append(got, reason("/proc/self/mem")), append(want, ":1: input/output error")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Of a binary file only the start is read, because its first line may be as long as the file.
func TestBinaryFileIsNotRead(t *testing.T) {
	file := io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(errors.New("the rest was read")))
	if err := newSessionRecordingReader(Options{}).read("f", file); err == nil || !strings.HasPrefix(err.Error(), "f: is binary") {
		t.Error(err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mb\a": `a\x1b[31mb\a`, "naïve\n\t→": "naïve\n\t→", "\u202egnp.exe": `\u202egnp.exe`, "it's": "it's", "\xff": "\ufffd",
	} {
		if got := EscapeControls(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
