package book

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

func screen(text string) emulator.Screen {
	e := emulator.New(60, 12)
	_, _ = e.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	return e.Screen()
}

// screenOf returns a page as a terminal shows it.
func screenOf(p *Page) emulator.Screen {
	e := emulator.New(p.Cols, p.Rows)
	rows := strings.Split(strings.TrimSuffix(p.ANSI, "\n"), "\n")
	_, _ = e.Write([]byte("\x1b[?7l" + strings.Join(rows, "\r\n"))) // never fails
	s := e.Screen()
	s.Cursor, s.Title, s.Alternate = p.Cursor, p.Title, p.Alternate
	return s
}

func TestPageIsReadAsWritten(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := New(root, BookID{Version: "1.2.3", Renderer: RendererInline, Tmux: true, Cols: 60, Rows: 12})
	p := Page{Tape: "turn", Name: "start", State: "permission/shell", Enter: "accepts", BookID: b.BookID, Offset: 3}
	p.SetContentAndSlotsFromScreen(screen("\x1b]0;title\x07in \x1b[1m/tmp/x\x1b[m\n ❯ 1. Go\n   2. Stop"), map[string]string{"dir": "/tmp/x"})
	if err := b.Write(&p); err != nil {
		t.Fatal(err)
	}
	if err := b.WriteRecordedTapeOutput("turn", []byte("{}"), []byte("abcdef")); err != nil {
		t.Fatal(err)
	}
	books, err := List(root)
	if err != nil || len(books) != 1 {
		t.Fatalf("books %v, %v", books, err)
	}
	pages, err := books[0].Pages()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Page{p}, pages); diff != "" {
		t.Errorf("pages (-written +read):\n%s", diff)
	}
	if raw, err := b.RawOutputUpTo(&pages[0]); string(raw) != "abc" || err != nil {
		t.Errorf("raw %q, %v", raw, err)
	}
	if got, want := screenOf(&pages[0]).ANSI(), p.ANSI; got != want || pages[0].StateBeforeSlash() != "permission" {
		t.Errorf("the screen of the page is %q, want %q", got, want)
	}
	for _, name := range []string{root, filepath.Join(root, "1.2.3"), b.Dir} {
		if found, err := Find("elsewhere", name); err != nil || len(found) != 1 || found[0] != b {
			t.Errorf("Find(%s) = %v, %v", name, found, err)
		}
	}
	if err := b.RemoveCapturedFilesOfTape("turn"); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(b.Dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, screen string
		want         []DialogOption
	}{
		{"without numbers", "❯ earlier\n Where to?\n\n ❯ Left\n   Right\n\n   not an option\n", []DialogOption{{Label: "Left", Selected: true, Row: 3}, {Label: "Right", Row: 4}}},
		{"numbered, with explanations", " Which?\n   1. One\n      the first\n ❯ 2. Two\n\n   3. Three\n Esc", []DialogOption{
			{Number: "1", Label: "One", Row: 1}, {Number: "2", Label: "Two", Selected: true, Row: 3}, {Number: "3", Label: "Three", Row: 5},
		}},
		{"in a box", "│ ❯ 1. One   │\n│   2. Two   │", []DialogOption{{Number: "1", Label: "One", Selected: true}, {Number: "2", Label: "Two", Row: 1}}},
		{"a pointer at the edge", "❯ 1. Red\n     Like a rose\n────\n  2. Blue", []DialogOption{{Number: "1", Label: "Red", Selected: true}, {Number: "2", Label: "Blue", Row: 3}}},
		{"composer", "❯ typed\n────", nil},
		{"a prompt that is a list", "❯ 1. typed\n────", nil},
	} {
		if diff := cmp.Diff(c.want, FindDialogOptions(strings.Split(c.screen, "\n"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	var p Page
	p.SetContentAndSlotsFromScreen(screen("in /tmp/x/y and /tmp/x\n✻ Thinking… (3s · ↓ 1.2k tokens)\n✻ Thought for 12s\nat 10:42 AM\n  Tip: press a key"),
		map[string]string{"dir": "/tmp/x", "file": "/tmp/x/y", "none": ""})
	want := []string{"in <file> and <dir>", "<spinner>", "<spinner>", "at <time>", ""}
	if diff := cmp.Diff(want, p.MaskedWithoutLogoAndTips()[:5]); diff != "" {
		t.Errorf("masked (-want +got):\n%s", diff)
	}
	var start Page
	start.SetContentAndSlotsFromScreen(screen("·▐▛███▛█·  Claude\n~▜██████~  Opus\nidle · ← for agents\nidle · ← for ag…\nidle · ←…"), nil)
	if diff := cmp.Diff([]string{"           Claude", "           Opus", "idle", "idle", "idle"}, start.MaskedWithoutLogoAndTips()[:5]); diff != "" {
		t.Errorf("logo and hints (-want +got):\n%s", diff)
	}
	const wrapped = "/tmp/claudeless-exec-680/config/project\n  s/-tmp-1-project/4396c823-7ab7-46ff-bbe0-bd40\n  f1556b64.jsonl\n  https://example.com/a/long/page/of/documentation"
	compacted := Page{Text: "  Earlier messages are saved in " + wrapped}
	compacted.Slots = FindSlots(compacted.Lines(), nil)
	if diff := cmp.Diff([]string{"  Earlier messages are saved in <transcript>", "  <transcript>", "  <transcript>", "  https://example.com/a/long/page/of/documentation"}, compacted.MaskedWithoutLogoAndTips()); diff != "" {
		t.Errorf("path of a transcript (-want +got):\n%s", diff)
	}
	filled := FillSlots(p.Lines(), p.Slots, func(s Slot) string {
		if s.Name == "dir" {
			return "/home/me/project"
		}
		return s.Value
	})
	if filled[0] != "in /tmp/x/y and /home/me/project" {
		t.Errorf("filled %q", filled[0])
	}
}

// TestPlanPathsAreJoined: the path of a plan has a random length, so the text after it is broken at different places.
func TestPlanPathsAreJoined(t *testing.T) {
	t.Parallel()
	rows := func(text string) string {
		var p Page
		p.SetContentAndSlotsFromScreen(screen(text), nil)
		return maskedNonEmptyRows(&p)
	}
	const want = "● Done\n  saved to: <plan> · edit it\n  next\nlast\n"
	for _, text := range []string{
		"● Done\n  saved to: /a/plans/one.md · edit it\n  next\nlast",
		"● Done\n  saved to:\n     /a/plans/one-two.md · edit\n     it\n\n  next\nlast",
		"● Done\n  saved to:\n     /a/plans/longer-name.md ·\n     edit it\n  next\nlast",
		"● Done\n  saved to: /tmp/claudeless-exec-1/config/plans/one-two-thr\n     ee.md · edit it\n  next\nlast",
	} {
		if got := rows(text); got != want {
			t.Errorf("rows %q, want %q", got, want)
		}
	}
}

func TestNearestAndVersions(t *testing.T) {
	t.Parallel()
	var books []Book
	for _, k := range []BookID{
		{"2.1.9", RendererFullscreen, false, 110, 36},
		{"2.1.10", RendererFullscreen, true, 80, 24},
		{"2.1.10", RendererFullscreen, false, 80, 24},
		{"2.1.10", RendererInline, false, 110, 36},
	} {
		books = append(books, Book{BookID: k})
	}
	got, _ := NearestBook(books, BookID{Renderer: RendererFullscreen, Cols: 90, Rows: 24})
	if got.BookID != books[2].BookID {
		t.Errorf("nearest is %v", got.BookID)
	}
	if _, ok := NearestBook(nil, BookID{}); ok {
		t.Error("there is a nearest of no books")
	}
	if CompareVersions("2.1.9", "2.1.10") >= 0 || CompareVersions("2.1.10", "2.1.10") != 0 {
		t.Error("versions are not compared by their numbers")
	}
}
