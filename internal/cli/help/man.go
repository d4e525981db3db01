package help

import (
	"fmt"
	"io"
	"strings"
)

// WriteMan writes the manual page in the man(7) format.
func (p *Program) WriteMan(w io.Writer, version string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CLAUDELESS 1 \"\" \"claudeless %s\" \"User Commands\"\n", escapeRoff(version))
	b.WriteString(".SH NAME\nclaudeless \\- test double for Claude Code\n")
	b.WriteString(".SH SYNOPSIS\n.B claudeless\n.I COMMAND\n\\&...\n.br\n.B claudeless\n[\\fIoptions\\fR] [\\fIprompt\\fR]\n")
	b.WriteString(".SH DESCRIPTION\nThe claude command with a scripted model: the same options, events and exit codes, without key, cost or network.\n" +
		"A TOML file, the scenario, says what the model says and which tools it calls; the calls are real.\n")
	writeSection(&b, "COMMANDS", p.Commands)
	writeSection(&b, "OPTIONS OF CLAUDELESS", p.ClaudelessOptions)
	writeSection(&b, "OPTIONS OF CLAUDE", p.ClaudeOptions)
	b.WriteString(`.SH EXIT STATUS
The status of claude: 0, or 1 after an error.
.TP
3
An expectation of the scenario was not met.
.TP
4
The caller treated claude in a way that breaks with the real one (exec, verify).
.TP
5
A real claude was reached (exec).
.TP
6
The test could pass for the wrong reason (\-\-strict).
.SH FILES
.TP
claudeless.toml
The scenario, unless another one is named.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeSection(b *strings.Builder, title string, entries []Entry) {
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, e := range entries {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", escapeRoff(e.Usage), escapeRoff(e.Help))
	}
}

func escapeRoff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
