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
		if diff := cmp.Diff(want, plainMarkdown(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestCallCounts: commands that only read, list or search are counted as such.
func TestCallCounts(t *testing.T) {
	for command, want := range map[string]string{
		"cat a.txt": "Read 1 file", "echo a; cat a.txt": "Read 1 file", "cat a.txt && ls": "Listed 1 directory", "find . | sort": "Searched for 1 pattern",
		"git status": "Ran 1 shell command", "cat a | tee b": "Ran 1 shell command", "echo hi": "Ran 1 shell command",
	} {
		c := callView{input: callInput{Command: command}}
		c.use.Name = "Bash"
		if got := c.counts().text(); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	all := callCounts{searched: 1, read: 2, listed: 2, ran: 1, failed: 1}
	if diff := cmp.Diff("Searched for 1 pattern, read 2 files, listed 2 directories, ran 1 shell command · 1 failed", all.text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStartHints: the first hints disappear. A deleted text shows the effort again.
func TestStartHints(t *testing.T) {
	term := idleTerminal(t)
	s := &term.console.screen
	start := term.plan.Clock.Now()
	s.agentsUntil, s.effortUntil = start.Add(startHintDuration), start.Add(startHintDuration)
	shows := func(after int, want bool, text string) {
		t.Helper()
		f := s.draw(start.Add(time.Duration(after) * time.Second))
		if got := strings.Contains(strings.Join(f.rows, "\n"), text); got != want {
			t.Errorf("after %d s: %q shown: %v", after, text, got)
		}
	}
	shows(9, true, "/effort")
	shows(9, true, "← for agents")
	shows(10, false, "/effort")
	shows(10, false, "← for agents")
	term.pressAll(term.console.keys.read([]byte("some words\x15")))
	shows(5, true, "ctrl+y")
	shows(15, true, "/effort")
	shows(16, false, "/effort")
}
