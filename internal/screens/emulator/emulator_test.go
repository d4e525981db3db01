package emulator

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func screenOf(writes ...string) Screen {
	e := New(20, 4)
	for _, w := range writes {
		_, _ = e.Write([]byte(w))
	}
	return e.Screen()
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, output string
		want         []string // the lines without empty ones at the end
		title        string
	}{
		{name: "text and a cursor movement", output: "one\r\ntwo\x1b[1;6Hx", want: []string{"one  x", "two"}},
		{name: "wrapped", output: strings.Repeat("a", 21), want: []string{strings.Repeat("a", 20), "a"}},
		{name: "title with byte 9c in it", output: "\x1b]0;✳ Claude Code\x07text", want: []string{"text"}, title: "✳ Claude Code"},
		{name: "title ended by ST", output: "\x1b]2;a;b\x1b\\text", want: []string{"text"}, title: "a;b"},
		{name: "icon name is not the title", output: "\x1b]1;icon\x07text", want: []string{"text"}},
		{name: "hyperlink", output: "\x1b]8;;file://x\x07link\x1b]8;;\x07", want: []string{"link"}},
		{name: "DCS with byte 9c in it", output: "\x1bP+q✳\x1b\\text", want: []string{"text"}},
		{name: "cancelled string", output: "\x1b]0;no\x18text", want: []string{"text"}},
		{name: "wide characters", output: "日本x", want: []string{"日本x"}},
		{name: "broken UTF-8", output: "a\xff\xe2\x9cb\xc0\x80c\x9dd", want: []string{"abcd"}},
		{name: "alternate screen", output: "main\x1b[?1049h\x1b[Hother", want: []string{"other"}},
		{name: "alternate screen left", output: "main\x1b[?1049h\x1b[Hother\x1b[?1049l", want: []string{"main"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			whole := screenOf(c.output)
			if diff := cmp.Diff(c.want, trimEmpty(whole.Lines())); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if whole.Title != c.title {
				t.Errorf("title %q, want %q", whole.Title, c.title)
			}
			var bytewise []string
			for i := range len(c.output) {
				bytewise = append(bytewise, c.output[i:i+1])
			}
			if diff := cmp.Diff(whole, screenOf(bytewise...)); diff != "" {
				t.Errorf("written byte by byte the screen is another (-whole +bytewise):\n%s", diff)
			}
		})
	}
}

func trimEmpty(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func TestStylesAndCursor(t *testing.T) {
	t.Parallel()
	s := screenOf("\x1b[1;31mred\x1b[0m plain\x1b[?25l\x1b[2;3H")
	if want := "\x1b[1;31mred\x1b[m plain\n\n\n\n"; s.ANSI() != want {
		t.Errorf("ANSI %q, want %q", s.ANSI(), want)
	}
	if want := (Cursor{Col: 2, Row: 1}); s.Cursor != want {
		t.Errorf("cursor %+v, want %+v", s.Cursor, want)
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	e := New(20, 4)
	_, _ = e.Write([]byte("ab\x1b[6n\x1b[c\x1b[?2048h\x1bZ\x1b[?25$p"))
	if got, want := string(e.TakeReplies()), "\x1b[1;3R\x1b[?1;2c"; got != want {
		t.Errorf("replies %q, want %q", got, want)
	}
	_, _ = e.Write([]byte(strings.Repeat("\x1b[6n", 5000)))
	if n := len(e.TakeReplies()); n > maxUnreadReplyBytes {
		t.Errorf("%d bytes of replies are kept, want at most %d", n, maxUnreadReplyBytes)
	}
	_, _ = e.Write([]byte("\x1b[?2004;1h"))
	if want := (Modes{BracketedPaste: true, CursorKeys: true}); e.Modes() != want {
		t.Errorf("modes %+v, want %+v", e.Modes(), want)
	}
}

// An emulator uses little memory even for megabytes of the worst output.
func TestMemoryIsBounded(t *testing.T) {
	const size = 2 << 20
	for _, c := range []struct{ name, begin, repeated string }{
		{"no newline", "", "x"},
		{"endless OSC", "\x1b]0;", "x"},
		{"endless DCS", "\x1bP", "x"},
		{"endless CSI", "\x1b[", "1;"},
		{"combining characters", "a", "\u0301"},
		{"broken UTF-8", "", "\xe2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := New(110, 36)
			block := []byte(strings.Repeat(c.repeated, 64<<10/len(c.repeated)))
			_, _ = e.Write([]byte(c.begin))
			_, _ = e.Write(block)
			before := heapBytes()
			for n := 0; n < size; n += len(block) {
				_, _ = e.Write(block)
			}
			if grown := heapBytes() - before; grown > 1<<20 {
				t.Errorf("the heap grew by %d bytes", grown)
			}
			if s := e.Screen(); len(s.Cells) != 36 {
				t.Errorf("%d rows, want 36", len(s.Cells))
			}
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		"text", "\x1b]0;✳ title\x07", "\x1b[?1049h\x1b[2J\x1b[10;10H\x1b[K", "\x1b[999999999b", "\x1b[5;2r\x1bM\x1bD", "\xff\xfe\x9d",
		"日本\u0301\u200d\ufe0f", "\x1b[1;2;3;4;5;6;7m", "\x1b[?2026h\x1b[99999L\x1b[99999P", "\x1b(0lqk", "\x1bc\x1b[!p", "\x1b[?6h\x1b[3;3r\x1b[9;9H",
	} {
		f.Add([]byte(seed), 7)
	}
	f.Fuzz(func(t *testing.T, output []byte, cut int) {
		whole, parts := New(17, 5), New(17, 5)
		_, _ = whole.Write(output)
		cut = min(max(cut, 0), len(output))
		_, _ = parts.Write(output[:cut])
		_, _ = parts.Write(output[cut:])
		a, b := whole.Screen(), parts.Screen()
		if len(a.Cells) != 5 {
			t.Fatalf("%d rows", len(a.Cells))
		}
		for y := range a.Cells {
			width := 0
			for _, c := range a.Cells[y] {
				width += c.Width
			}
			if width < 17 {
				t.Fatalf("row %d has %d columns", y, width)
			}
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("cut at %d the screen is another:\n%s", cut, diff)
		}
		whole.Resize(9, 3)
		if bytes.Count([]byte(whole.Screen().TextWithAllRows()), []byte("\n")) != 3 {
			t.Fatalf("%q", whole.Screen().TextWithAllRows())
		}
	})
}
