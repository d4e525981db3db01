package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// captured returns a page like those that are captured from the real CLI.
func captured(name, state, text string, slots map[string]string) book.Page {
	p := book.Page{Tape: "t", Name: name, State: state, Text: text, BookID: book.BookID{Version: "1.0.0", Renderer: book.RendererFullscreen, Cols: 110, Rows: 36}}
	p.Slots, p.Options = book.FindSlots(p.Lines(), slots), book.FindDialogOptions(p.Lines())
	return p
}

// TestPages checks that text that depends on the run comes from the session, and other text from the page of the same
// state.
func TestPages(t *testing.T) {
	const (
		start = "\n ▐▛█   Claude Code v1.0.0\n ▝▜█   /tmp/x\n\n      hint\n──────\n❯ \n──────\n  footer\n"
		ask   = "❯ earlier\n──────\n Command\n Be careful.\n Look around\n╌╌╌╌╌╌\n ls\n╌╌╌╌╌╌\n Run it in /tmp/x?\n ❯ 1. Yes\n   2. Yes, and do so\n      always\n   3. No\n\n Esc leaves\n\n"
	)
	slots := map[string]string{"dir": "/tmp/x", "description": "Look around", "command": "ls"}
	root := t.TempDir()
	still := strings.NewReplacer("▐▛█", "   ", "▝▜█", "   ").Replace(start) // the logo moves
	for _, p := range []book.Page{captured("begin", "idle/start", still, slots), captured("start", "idle/start", start, slots), captured("ask", "permission/bash", ask, slots)} {
		if err := book.New(root+"/claudeless/screens", p.BookID).Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	sys := &process.System{Environ: []string{"XDG_CACHE_HOME=" + root}}
	p, err := loadPages(sys, "9.9.9", book.BookID{Renderer: book.RendererFullscreen, Cols: 80, Rows: 24}) // from the newest book, because 9.9.9 has none
	if err != nil || p == nil {
		t.Fatalf("%v, %v", p, err)
	}
	header := p.headerRowsOfStartPage(map[string]string{"version": "2.0.0", "dir": "/home/me", "logo": ""})
	if diff := cmp.Diff([]string{"", " ▐▛█   Claude Code v2.0.0", " ▝▜█   /home/me", ""}, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	d := &dialog{state: StatePermission, kind: "bash", foot: []string{"own"}, slotValues: map[string]string{"dir": "/home/me", "command": "make", "description": ""}}
	p.copyCapturedTextsIntoDialog(d)
	want := &dialog{head: []string{" Command", " Be careful."}, question: []string{" Run it in /home/me?"}, foot: []string{"", " Esc leaves"}}
	if !cmp.Equal(d.head, want.head) || !cmp.Equal(d.question, want.question) || !cmp.Equal(d.foot, want.foot) {
		t.Errorf("head %q, question %q, foot %q", d.head, d.question, d.foot)
	}
	l := screenLabels{pages: p}
	if got := l.findLabelOrPrefix("permission/bash", "Yes, and"); got != "Yes, and do so always" {
		t.Errorf("label %q", got)
	}
	menu := &realCLIPages{list: []book.Page{{State: "menu/slash", Text: "a\nb", Options: []book.DialogOption{{Label: "/clear Start a…"}, {Label: "/compact Sum up", Row: 1}}}}}
	for prefix, want := range map[string]string{"/clear ": "/clear Start a…", "/compact ": "/compact Sum up", "/cost ": ""} {
		if got := menu.capturedOptionLabel("menu/slash", prefix); got != want {
			t.Errorf("description %q, want %q", got, want)
		}
	}
	if got := (&screenLabels{pages: menu}).findLabelOrPrefix("menu/slash", "/clear"); got != "/clear" {
		t.Errorf("truncated label %q", got)
	}
	long := &realCLIPages{list: []book.Page{{State: "note", Text: "other"}, {State: "note", Text: "● Note: see https://exa\n  mple.com/docs/a for\n  more\n\nrest"}}}
	if got := long.paragraphRestAfterPrefix("note", "● Note:"); got != "see https://example.com/docs/a for more" {
		t.Errorf("paragraph %q", got)
	}
	sys.Environ = append(sys.Environ, ScreenBookVariable+"=3.3.3")
	if _, err := loadPages(sys, "9.9.9", book.BookID{}); err == nil {
		t.Error("a version without pages is accepted")
	}
}

// TestDialogOfTallerBook: if a small screen hides the top of a dialog, its texts come from a taller page of the same width.
func TestDialogOfTallerBook(t *testing.T) {
	root := t.TempDir()
	write := func(cols, rows int, text string) {
		p := captured("trust", "dialog/trust", text, nil)
		p.Cols, p.Rows = cols, rows
		if err := book.New(root+"/claudeless/screens", p.BookID).Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	const choices = "\n ❯ No, exit\n   Yes, I trust this folder\n"
	write(80, 11, " Security guide\n"+choices)
	write(80, 24, "──────\n Accessing workspace:\n\n Security guide\n"+choices)
	write(110, 36, "──────\n Another width\n"+choices)
	sys := &process.System{Environ: []string{"XDG_CACHE_HOME=" + root}}
	p, err := loadPages(sys, "1.0.0", book.BookID{Renderer: book.RendererFullscreen, Cols: 80, Rows: 11})
	if err != nil {
		t.Fatal(err)
	}
	d := &dialog{state: StateStartupOrAutoModeDialog, kind: "trust"}
	p.copyCapturedTextsIntoDialog(d)
	if diff := cmp.Diff([]string{" Accessing workspace:", "", " Security guide", ""}, d.head); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLabels: labels, order and selection are those of the anchors.
func TestLabels(t *testing.T) {
	l, err := loadLabels("2.1.330")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ state, begin, want string }{
		{"dialog/trust", "Yes, I trust", "Yes, I trust this folder"},
		{"permission", "No", "No"},
		{"permission/bash", "Yes, and switch", "Yes, and switch to auto mode"},
		{"permission/bash", "Nothing", "Nothing"},
	} {
		if got := l.findLabelOrPrefix(tt.state, tt.begin); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.state, tt.begin, got, tt.want)
		}
	}
	d := &dialog{options: []dialogOption{{label: "Yes, I trust this folder"}, {label: "No, exit"}}, selected: 0}
	l.orderAndSelectOptionsByAnchors(d, "dialog/trust")
	if d.options[0].label != "No, exit" || d.selected != 0 {
		t.Errorf("%+v", d)
	}
}

func TestInProgress(t *testing.T) {
	for description, want := range map[string]string{
		"Make the directory": "Making the directory", "Wait": "Waiting", "count lines": "Counting lines", "écrire": "Écriring", "Run tests": "Running tests", "See it": "Seeing it", "": "",
	} {
		if got := changeFirstVerbToIngForm(description); got != want {
			t.Errorf("%q: %q, want %q", description, got, want)
		}
	}
}
