package terminal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/screens/book"
)

// TestMenuRows: the list of commands has five rows, and a command at most two of them, as in claude 2.1.330. Descriptions come
// from the widest page.
func TestMenuRows(t *testing.T) {
	const narrow = "  ❯ /one      First\n    /two      Second of all the\n              commands\n    /three    Third\n──────\n"
	wide := strings.ReplaceAll(narrow, "    /three    Third\n", "    /three    Third with words that fill more than two rows of a screen\n")
	labels := screenLabels{pages: &realCLIPages{list: []book.Page{captured("slash", "menu/slash", strings.ReplaceAll(narrow, "    /three    Third\n", ""), nil)}, widest: []book.Page{captured("slash", "menu/slash", wide, nil)}}}
	var m commandMenu
	for _, name := range []string{"/one", "/two", "/three", "/four", "/five"} {
		m.commands = append(m.commands, slashCommand{name, "", name != "/four", 0})
	}
	for selected, want := range map[int][]string{
		0: {"  ❯ /one            First", "    /two            Second of all the", "                    commands", "    /three          Third with words", "                    that fill more th…"},
		3: {"    /two            Second of all the", "                    commands", "    /three          Third with words", "                    that fill more th…", "  ❯ /five"},
	} {
		m.draft = ""
		m.updateForDraft("/")
		m.selected = selected
		if diff := cmp.Diff(want, m.rows(&labels, 40, 0)); diff != "" {
			t.Errorf("%d selected (-want +got):\n%s", selected, diff)
		}
	}
}

// TestInlineMenuRows: the inline renderer shows more commands on a larger screen, and how many are hidden (observed with claude 2.1.330).
func TestInlineMenuRows(t *testing.T) {
	var m commandMenu
	for name := range strings.SplitSeq("abcdefghij", "") {
		m.commands = append(m.commands, slashCommand{"/" + name, "words that fill more than a row", true, 0})
	}
	m.updateForDraft("/")
	const short, long = "words that fill mo…", "words that fill"
	for selected, want := range map[int][]string{
		0: {"  ❯ /a              " + long, "                    more than a row", "    /b              " + short, "    /c              " + short, "    /d              " + short, "    /e              " + short, "    ↓ 5 more"},
		4: {"    /b              " + short, "    /c              " + short, "    /d              " + short, "  ❯ /e              " + long, "                    more than a row", "    /f              " + short, "    ↑ 1 more  ↓ 4 more"},
		9: {"    /f              " + short, "    /g              " + short, "    /h              " + short, "    /i              " + short, "  ❯ /j              " + long, "                    more than a row", "    ↑ 5 more"},
	} {
		m.selected = selected
		if diff := cmp.Diff(want, m.rows(&screenLabels{}, 41, 14)); diff != "" {
			t.Errorf("%d selected (-want +got):\n%s", selected, diff)
		}
	}
}

// TestModelList: a small screen shows a part of the models, and how many models are hidden (counted with claude 2.1.330).
func TestModelList(t *testing.T) {
	for _, tt := range []struct{ rows, first, last int }{{11, 1, 1}, {14, 1, 1}, {16, 2, 2}, {18, 2, 2}, {22, 2, 2}, {24, 3, 3}, {26, 4, 4}, {27, 5, 5}, {36, 5, 5}} {
		for selected, want := range map[int]int{0: tt.first, 4: tt.last} {
			d := &dialog{state: StateCommandPage, kind: "model", topRuleGlyph: "▔", head: []string{"  Select model", "  about", ""}, screenRows: tt.rows, selected: selected, showNumbers: true, indent: 2}
			for i := range 5 {
				d.options = append(d.options, dialogOption{label: fmt.Sprintf("%-24s ", "name"), rightText: "one row of words\n" + strings.TrimSuffix("two\nthree", map[bool]string{true: "\nthree"}[i < 4])})
			}
			rows, _ := d.rows(80)
			text := strings.Join(rows, "\n")
			hidden := fmt.Sprintf("    %s %d more", map[bool]string{true: "↓", false: "↑"}[selected == 0], 5-want)
			if n := strings.Count(text, "one row of words"); n != want || strings.Contains(text, hidden) != (want < 5) {
				t.Errorf("%d rows, %d selected: %d models, want %d:\n%s", tt.rows, selected, n, want, text)
			}
		}
	}
}

// TestListCoversText: an open list covers the end of the text of a full screen and does not move it.
func TestListCoversText(t *testing.T) {
	var b strings.Builder
	p := painter{w: &b, fullScreen: true}
	if err := p.paint(screenFrame{rows: []string{"a", "b", "c", "", "list", "rule", "input"}, bottomIndex: 3, overlayRows: 2, cursorRow: 6}, 20, 5); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "", "list", "rule", "input"}, p.lastRows); diff != "" || p.cursorRow != 4 {
		t.Errorf("cursor in row %d; rows (-want +got):\n%s", p.cursorRow, diff)
	}
}

// TestMenuGroups: the commands come before the skills, and the menu does not list removed commands.
func TestMenuGroups(t *testing.T) {
	for name, want := range map[string]string{"add-dir": "command", "clear": "command", "batch": "skill", "init": "skill", "statusline": "skill", "agents": "hidden", "vim": "hidden", "no-such": "hidden"} {
		got := "command"
		switch b := claudecode.MenuCommandNamed(name); {
		case b.HiddenInMenu:
			got = "hidden"
		case b.PromptInMenu:
			got = "skill"
		}
		if got != want {
			t.Errorf("%s is listed as %s, want %s", name, got, want)
		}
	}
}

// TestDequeuedOnce: the line that a prompt leaves the queue is recorded once, also if it is recorded before the end of the turn.
func TestDequeuedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		early bool
		texts []string
		want  []string
	}{
		"at the end":              {false, []string{"a", "b"}, []string{"enqueue a", "enqueue b", "dequeue ", "dequeue "}},
		"early":                   {true, []string{"a", "b"}, []string{"enqueue a", "enqueue b", "dequeue ", "dequeue "}},
		"a command waits":         {true, []string{"a", "/b"}, []string{"enqueue a", "enqueue /b", "dequeue "}},
		"a command comes first":   {true, []string{"/a", "b"}, []string{"enqueue /a", "enqueue b", "dequeue "}},
		"nothing is in the queue": {true, nil, nil},
	} {
		var lines []string
		q := &promptQueue{wake: make(chan struct{}, 1), recordOperation: func(operation, text string) { lines = append(lines, operation+" "+text) }}
		for _, text := range tt.texts {
			q.pushDuringTurn(text)
		}
		if tt.early {
			q.RecordDequeuedBeforeFinalReply()
			q.RecordDequeuedBeforeFinalReply()
		}
		q.takePromptsOfNextTurn()
		if diff := cmp.Diff(tt.want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
