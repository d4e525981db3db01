package book

import (
	"regexp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/screens/emulator"
)

// IsBusy reports whether a title shows that claude is working. Inside tmux titles never show that.
func IsBusy(title string) bool {
	return strings.HasPrefix(title, "◐") || strings.HasPrefix(title, "◑") || strings.HasPrefix(title, "◒") || strings.HasPrefix(title, "◓") ||
		strings.ContainsFunc(firstRune(title), func(r rune) bool { return r >= 0x2801 && r <= 0x28ff }) // a Braille spinner, in older versions
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

type dialogLabel struct{ text, state string }

func dialogLabels() []dialogLabel {
	return []dialogLabel{
		{"Yes, I trust this folder", "dialog/trust"},
		{"Yes, proceed", "dialog/trust"},
		{"ANTHROPIC_API_KEY", "dialog/key"},
		{"API key", "dialog/key"},
		{"MCP server", "dialog/mcp"},
		{"Yes, I accept", "dialog/bypass"},
		{"Would you like to proceed", "plan"},
		{"Ready to code", "plan"},
		{"Exit plan mode", "plan"},
		{"Bash command", "permission/bash"},
		{"Edit file", "permission/edit"},
		{"Create file", "permission/write"},
		{"Fetch", "permission/webfetch"},
		{"Tool use", "permission/mcp"},
		{"Do you want to", "permission"},
		{"Type something", "question"},
		{"Enter to select", "question"},
	}
}

// StateOf returns the state of a screen; empty means unknown, for example because the screen is empty.
func StateOf(s emulator.Screen) string {
	lines := s.Lines()
	options := FindOptions(lines)
	switch {
	case len(options) > 1:
		return dialogState(lines, options)
	case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "Enter to stay in auto mode") }):
		return "dialog/auto"
	case IsBusy(s.Title) || slices.ContainsFunc(lines, isBusyLine):
		return "busy"
	case slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "API Error") }):
		return "error"
	case slices.ContainsFunc(lines, isComposer):
		return "idle"
	}
	return ""
}

func isBusyLine(line string) bool { return strings.Contains(line, "esc to interrupt") }

func isComposer(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " │"), "❯\u00a0") || strings.HasPrefix(strings.TrimLeft(line, " │"), ">\u00a0")
}

// dialogState returns the state of a dialog. Rows far above the options belong to the conversation and are ignored.
func dialogState(lines []string, options []Option) string {
	const most = 20 // rows of a dialog above its options
	first, last := options[0].Row, options[len(options)-1].Row
	text := strings.Join(lines[max(0, first-most):min(len(lines), last+4)], "\n")
	for _, d := range dialogLabels() {
		if strings.Contains(text, d.text) {
			return d.state
		}
	}
	return "menu"
}

// CheckState returns the reason why the label of a page is implausible; empty means it is plausible. A dialog needs
// options, and a busy page needs a title or a row that indicates it.
func CheckState(p *Page) string {
	waiting := []string{"permission", "question", "plan", "dialog"}
	kind := p.Kind()
	working := IsBusy(p.Title) || slices.ContainsFunc(p.Lines(), isBusyLine)
	spinner := regexp.MustCompile(`(?m)^\s*[✢✳✶✻✼✽·*●] (\S+…|Waiting for )`)
	switch {
	case slices.Contains(waiting, kind) && len(p.Options) == 0 && p.State != "dialog/auto" && !strings.Contains(p.Text, "[ ]") && !strings.Contains(p.Text, "[✔]"):
		return "a dialog without options"
	case kind == "busy" && p.Tmux && !working && !spinner.MatchString(p.Text):
		return "busy, but nothing on the screen indicates it"
	case kind == "busy" && !p.Tmux && !IsBusy(p.Title):
		return "busy, but the title does not indicate it: " + p.Title
	case kind == "idle" && IsBusy(p.Title):
		return "idle, but the title indicates work: " + p.Title
	}
	return ""
}
