package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFileList: each row has the draft and the list after some keys, as in claude 2.1.330.
func TestFileList(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"alpha.txt": "one\ntwo\n", "beta/delta.go": "", "beta/gamma.txt": "", "bench.txt": "", ".git/beta": ""} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const esc, up, down = "\x1b\x00", "\x1b[A", "\x1b[B"
	for name, tt := range map[string]struct {
		typed, want string
		list        []string // rows; > is the selected one
		sent        string
	}{
		"the content of the folder":   {typed: "@", want: "@", list: []string{" alpha.txt", " bench.txt", " beta/"}},
		"a part of a path":            {typed: "see @be", want: "see @be", list: []string{" bench.txt", " beta/", " beta/delta.go", " beta/gamma.txt"}},
		"characters in order":         {typed: "@al", want: "@al", list: []string{" alpha.txt", " beta/delta.go"}},
		"Down":                        {typed: "@be" + down, want: "@be", list: []string{">bench.txt", " beta/", " beta/delta.go", " beta/gamma.txt"}},
		"Up selects the last":         {typed: "@al" + up, want: "@al", list: []string{" alpha.txt", ">beta/delta.go"}},
		"Tab inserts the first":       {typed: "see @al\t", want: "see @alpha.txt "},
		"Enter inserts a selection":   {typed: "see @be" + down + down + "\r", want: "see @beta/"},
		"Enter sends without one":     {typed: "see @al\r", want: "", sent: "see @al"},
		"Esc closes the list":         {typed: "@al" + esc, want: "@al"},
		"a space closes the list":     {typed: "@al ", want: "@al "},
		"an address mentions no file": {typed: "mail@be", want: "mail@be"},
		"no match":                    {typed: "@zzz", want: "@zzz"},
		"a shell command":             {typed: "!ls @al", want: "!ls @al"},
	} {
		t.Run(name, func(t *testing.T) {
			term := idleTerminal(t)
			s := &term.console.screen
			s.mentionMenu.dir = dir
			for _, part := range strings.SplitAfter(tt.typed, "\x00") {
				term.handleKeys(term.console.keys.decodeKeys([]byte(strings.TrimSuffix(part, "\x00"))))
				term.handleKeys(term.console.keys.dropPendingAndReturnLoneEscape())
			}
			if diff := cmp.Diff(tt.want, s.composer.text()); diff != "" {
				t.Errorf("draft (-want +got):\n%s", diff)
			}
			var list []string
			for _, row := range s.renderFrame(time.Time{}).rows {
				if pointer, path, ok := strings.Cut(row, "+ "); ok {
					list = append(list, map[bool]string{true: ">", false: " "}[strings.Contains(pointer, promptGlyph)]+path)
				}
			}
			if diff := cmp.Diff(tt.list, list); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			if sent := strings.Join(term.player.prompts.waitingTexts(), ""); sent != tt.sent {
				t.Errorf("sent %q", sent)
			}
		})
	}
	notes := notesAboutMentionedFiles(dir, "see @alpha.txt and @beta and @nosuch and a@b")
	if diff := cmp.Diff([]string{"Read alpha.txt (2 lines)", "Listed directory beta/"}, []string{notes[0].text, notes[1].text}); diff != "" || len(notes) != 2 {
		t.Errorf("notes %+v (-want +got):\n%s", notes, diff)
	}
}

// TestUnusedDigits: a digit that no option has selects the last option, and the digit of a check
// box does not move the selection, as in claude 2.1.330.
func TestUnusedDigits(t *testing.T) {
	three := []dialogOption{{label: "Yes"}, {label: "Yes, always"}, {label: "No"}}
	boxes := []dialogOption{{label: "a", checkbox: checkboxChecked}, {label: "b", checkbox: checkboxChecked}, {label: "Enable selected", isAction: true}}
	for name, tt := range map[string]struct {
		dialog   dialog
		digit    string
		selected int
		boxes    string
	}{
		"permission":  {dialog{state: StatePermission, showNumbers: true, options: three}, "4", 2, ""},
		"0":           {dialog{state: StatePermission, showNumbers: true, options: three}, "0", 0, ""},
		"no numbers":  {dialog{state: StatePermission, options: three}, "4", 0, ""},
		"MCP servers": {dialog{state: StateStartupOrAutoModeDialog, kind: "mcp", options: boxes}, "1", 2, "[ ] [ ] "},
		"a letter":    {dialog{state: StateStartupOrAutoModeDialog, kind: "mcp", options: boxes}, "x", 2, "[ ] [ ] "},
		"a check box": {dialog{state: StateQuestion, kind: "multi", showNumbers: true, options: boxes}, "2", 0, "[✔] [ ] "},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.dialog
			d.options = append([]dialogOption{}, d.options...)
			if _, done := d.handleKey(key{keyText, tt.digit}); done {
				t.Error("the dialog was answered")
			}
			var shown strings.Builder
			for _, o := range d.options {
				shown.WriteString(o.checkbox.String())
			}
			if d.selected != tt.selected || shown.String() != tt.boxes {
				t.Errorf("selected %d, boxes %q", d.selected, shown.String())
			}
		})
	}
}

// TestMoveSelection checks which option Up and Down select in the dialogs of claude 2.1.330.
func TestMoveSelection(t *testing.T) {
	boxes := []dialogOption{{label: "a", checkbox: checkboxChecked}, {label: "b", checkbox: checkboxChecked}, {label: "Enable selected", isAction: true}}
	words := []dialogOption{{label: "a"}, {label: "Type something.", isInput: true}, {label: "Chat about this", lineAbove: true}}
	for name, tt := range map[string]struct {
		state   ScreenState
		options []dialogOption
		keys    []keyName
		want    int
	}{
		"before a session":  {StateStartupOrAutoModeDialog, words[:2], []keyName{keyUp}, 1},
		"after the last":    {StateStartupOrAutoModeDialog, words[:2], []keyName{keyDown, keyDown}, 0},
		"boxes up":          {StateStartupOrAutoModeDialog, boxes, []keyName{keyUp}, 1},
		"boxes down":        {StateStartupOrAutoModeDialog, boxes, []keyName{keyDown, keyDown, keyDown}, 2},
		"question up":       {StateQuestion, words, []keyName{keyUp}, 1},
		"question down":     {StateQuestion, words, []keyName{keyDown, keyDown, keyDown}, 2},
		"permission up":     {StatePermission, words[:2], []keyName{keyUp}, 1},
		"permission bottom": {StatePermission, words[:2], []keyName{keyDown, keyDown}, 1},
		"unchecked up":      {StatePermission, words[:2], []keyName{keyUp}, 0},
		"unchecked down":    {StatePermission, words[:2], []keyName{keyDown, keyDown}, 0},
		"unchecked above":   {StatePermission, words[:2], []keyName{keyDown, keyUp, keyUp, keyUp, keyDown}, 0},
		"unchecked back":    {StatePermission, words[:2], []keyName{keyUp, keyUp, keyDown, keyDown}, 1},
	} {
		d := &dialog{state: tt.state, options: tt.options, showNumbers: !strings.HasPrefix(name, "unchecked")}
		for _, k := range tt.keys {
			d.handleKey(key{name: k})
		}
		if d.selected != tt.want {
			t.Errorf("%s: option %d is selected, want %d", name, d.selected, tt.want)
		}
	}
	d := &dialog{state: StateQuestion, options: []dialogOption{{label: "Type something", isInput: true, checkbox: checkboxUnchecked}}}
	if _, done := d.handleKey(key{name: keyEnter}); done || d.options[0].checkbox != checkboxChecked {
		t.Errorf("Enter on an empty text with a check box: %v, done %v", d.options[0].checkbox, done)
	}
}

// TestAutoModeIsExplainedOnce: nothing is shown in another mode, or if the configuration says that auto mode was explained.
func TestAutoModeIsExplainedOnce(t *testing.T) {
	term := idleTerminal(t)
	term.plan.Store.File = filepath.Join(t.TempDir(), ".claude.json")
	for mode, config := range map[string]string{"plan": `{}`, "auto": `{"hasSeenAutoModeEntryWarning":true}`} {
		if err := os.WriteFile(term.plan.Store.File, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		term.console.screen.mode = mode
		if term.explainAutoModeOncePerUser(); len(term.console.screen.entries) > 0 {
			t.Errorf("%s with %s: %+v", mode, config, term.console.screen.entries)
		}
	}
}
