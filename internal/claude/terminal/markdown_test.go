package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMarkdown: the rows are those of claude 2.1.330.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"## Second *title*": "Second title",
		"A [link](https://example.com/x) and ~~old~~ and _em_ and __strong__ and `a **b**`.": "A link (https://example.com/x) and ~~old~~ and em and strong and a **b**.",
		"1. first\n   - inner\n\n* star\n+ plus\n\n> quoted\n\n---":                          "1. first\n   - inner\n\n- star\n- plus\n\n▎ quoted\n\n---",
		"```go\nfunc  main() {}\n    # kept\n```\n\n~~~\n| a |\n~~~\n":                       "func  main() {}\n    # kept\n\n| a |",
		"2 * 3 * 4 and snake_case_name and \\*escaped\\*, a | b":                             "2 * 3 * 4 and snake_case_name and *escaped*, a | b",
	} {
		if diff := cmp.Diff(want, markdownWithoutMarks(text, 80)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestTables: the rows are those of claude 2.1.330.
func TestTables(t *testing.T) {
	const (
		wide = `| Name | Count |
|------|------:|
| one | 1 |
| two **bold** | 22 |

| A | B | C |
|:--|:-:|---|
| a very long cell that goes on and on for quite a while indeed and even longer than that because it should not fit in four rows of a narrow column | another long cell that has many words in it as well and so on | and a third long cell with words |
| short | | x |`
		narrow = "| A | B |\n|---|---|\n| averyveryverylongwordwithoutanyspaceinitthatdoesnotfit | anotherveryverylongwordwithoutanyspaceinitthatdoesnotfit |\n\n| Left | Center | Right |\n|:--|:-:|--:|\n| a | b | c |\n| `code` | [link](http://x.y) | *it* |\n| one two three four five six seven eight nine ten eleven twelve thirteen | x | y |"
	)
	for _, tt := range []struct {
		cols       int
		text, want string
	}{
		{60, wide, `
┌──────────┬───────┐
│   Name   │ Count │
├──────────┼───────┤
│ one      │     1 │
├──────────┼───────┤
│ two bold │    22 │
└──────────┴───────┘

A: a very long cell that goes on and on for quite a
  while indeed and even longer than that because it
  should not fit in four rows of a narrow column
B: another long cell that has many words in it as well
  and so on
C: and a third long cell with words
────────────────────────────────────────
A: short
B:
C: x
`},
		{84, wide, `
┌──────────┬───────┐
│   Name   │ Count │
├──────────┼───────┤
│ one      │     1 │
├──────────┼───────┤
│ two bold │    22 │
└──────────┴───────┘

┌─────────────────────────────────────────┬─────────────────────┬─────────────┐
│                    A                    │          B          │      C      │
├─────────────────────────────────────────┼─────────────────────┼─────────────┤
│ a very long cell that goes on and on    │ another long cell   │ and a third │
│ for quite a while indeed and even       │ that has many words │  long cell  │
│ longer than that because it should not  │  in it as well and  │ with words  │
│ fit in four rows of a narrow column     │        so on        │             │
├─────────────────────────────────────────┼─────────────────────┼─────────────┤
│ short                                   │                     │ x           │
└─────────────────────────────────────────┴─────────────────────┴─────────────┘
`},
		{60, narrow, `
┌──────────────────────────┬──────────────────────────┐
│            A             │            B             │
├──────────────────────────┼──────────────────────────┤
│ averyveryverylongwordwit │ anotherveryverylongwordw │
│ houtanyspaceinitthatdoes │ ithoutanyspaceinitthatdo │
│ notfit                   │ esnotfit                 │
└──────────────────────────┴──────────────────────────┘

┌─────────────────────────────┬───────────────┬───────┐
│            Left             │    Center     │ Right │
├─────────────────────────────┼───────────────┼───────┤
│ a                           │       b       │     c │
├─────────────────────────────┼───────────────┼───────┤
│ code                        │     link      │    it │
│                             │ (http://x.y)  │       │
├─────────────────────────────┼───────────────┼───────┤
│ one two three four five six │               │       │
│  seven eight nine ten       │       x       │     y │
│ eleven twelve thirteen      │               │       │
└─────────────────────────────┴───────────────┴───────┘
`},
		{84, narrow, `
┌──────────────────────────────────────┬──────────────────────────────────────┐
│                  A                   │                  B                   │
├──────────────────────────────────────┼──────────────────────────────────────┤
│ averyveryverylongwordwithoutanyspace │ anotherveryverylongwordwithoutanyspa │
│ initthatdoesnotfit                   │ ceinitthatdoesnotfit                 │
└──────────────────────────────────────┴──────────────────────────────────────┘

┌───────────────────────────────────────────────────┬─────────────────┬───────┐
│                       Left                        │     Center      │ Right │
├───────────────────────────────────────────────────┼─────────────────┼───────┤
│ a                                                 │        b        │     c │
├───────────────────────────────────────────────────┼─────────────────┼───────┤
│ code                                              │      link       │    it │
│                                                   │  (http://x.y)   │       │
├───────────────────────────────────────────────────┼─────────────────┼───────┤
│ one two three four five six seven eight nine ten  │        x        │     y │
│ eleven twelve thirteen                            │                 │       │
└───────────────────────────────────────────────────┴─────────────────┴───────┘
`},
	} {
		if diff := cmp.Diff(tt.want, "\n"+markdownWithoutMarks(tt.text, tt.cols)+"\n"); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", tt.cols, diff)
		}
	}
	const pipes = "a | b\n\n| a |\n|---|---|\n| b |"
	if diff := cmp.Diff(pipes, markdownWithoutMarks(pipes, 80)); diff != "" {
		t.Errorf("not a table (-want +got):\n%s", diff)
	}
}

// TestFairWidths: columns that need less than the others keep their width.
func TestFairWidths(t *testing.T) {
	for _, tt := range [][2][]int{{{5, 54}, {5, 44}}, {{20, 90}, {20, 29}}, {{54, 30}, {24, 24}}, {{90, 2, 90}, {23, 2, 23}}} {
		if diff := cmp.Diff(tt[1], shareWidthFairly(tt[0], 49)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt[0], diff)
		}
	}
}

// TestCallCounts: commands that only read, list or search are counted as such.
func TestCallCounts(t *testing.T) {
	for command, want := range map[string]string{
		"cat a.txt": "Read 1 file", "echo a; cat a.txt": "Read 1 file", "cat a.txt && ls": "Listed 1 directory", "find . | sort": "Searched for 1 pattern",
		"git status": "Ran 1 shell command", "cat a | tee b": "Ran 1 shell command", "echo hi": "Ran 1 shell command",
	} {
		c := callView{input: shownToolInput{Command: command}}
		c.use.Name = "Bash"
		if got := c.countsForSummaryLine().summaryLine(); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	all := callCounts{searched: 1, read: 2, listed: 2, ran: 1, failed: 1}
	if diff := cmp.Diff("Searched for 1 pattern, read 2 files, listed 2 directories, ran 1 shell command · 1 failed", all.summaryLine()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStartHints: the first hints disappear. A deleted text shows the effort again.
func TestStartHints(t *testing.T) {
	term := idleTerminal(t)
	s := &term.console.screen
	start := term.plan.Clock.Now()
	s.agentsMentionedUntil, s.effortShownUntil = start.Add(startHintDuration), start.Add(startHintDuration)
	shows := func(after int, want bool, text string) {
		t.Helper()
		f := s.renderFrame(start.Add(time.Duration(after) * time.Second))
		if got := strings.Contains(strings.Join(f.rows, "\n"), text); got != want {
			t.Errorf("after %d s: %q shown: %v", after, text, got)
		}
	}
	shows(9, true, "/effort")
	shows(9, true, "← for agents")
	shows(10, false, "/effort")
	shows(10, false, "← for agents")
	term.handleKeys(term.console.keys.decodeKeys([]byte("some words\x15")))
	shows(5, true, "ctrl+y")
	shows(15, true, "/effort")
	shows(16, false, "/effort")
}
