package book

import (
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                         "",
		"hello\n❯\u00a0\n":                         "idle",
		"\x1b]0;◐ Claude Code\x07❯\u00a0":          "busy",
		"❯\u00a0\n esc to interrupt":               "busy",
		"API Error: 500\n❯\u00a0":                  "error",
		" Bash command\n ❯ 1. Yes\n   2. No":       "permission/bash",
		" Do you want to?\n ❯ 1. Yes\n   2. No":    "permission",
		" ❯ No, exit\n   Yes, I trust this folder": "dialog/trust",
		"Which?\n❯ 1. A\n  2. B\nEnter to select":  "question",
		" ❯ /add\n   /bug":                         "menu",
	} {
		if got := StateOf(screen(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, text string
		tmux, wrong bool
	}{
		{"busy/turn", "\x1b]0;◑ Claude Code\x07x", false, false},
		{"busy", "\x1b]0;✳ Claude Code\x07esc to interrupt", false, true},
		{"busy", "\x1b]0;✳ Claude Code\x07esc to interrupt", true, false},
		{"busy", "\x1b]0;✳ Claude Code\x07x", true, true},
		{"idle", "\x1b]0;◐ Claude Code\x07x", false, true},
		{"idle", "\x1b]0;✳ Claude Code\x07x", false, false},
		{"permission/bash", "x", false, true},
		{"permission/bash", " ❯ 1. Yes\n   2. No", false, false},
		{"plan", " ❯ 1. Yes", false, false},
		{"plan", "❯ yes", false, true},
	} {
		p := Page{State: c.state, BookID: BookID{Tmux: c.tmux}}
		p.SetContentAndSlotsFromScreen(screen(c.text), nil)
		if got := ImplausibleStateReason(&p); (got != "") != c.wrong {
			t.Errorf("%s with %q: %q", c.state, c.text, got)
		}
	}
}
