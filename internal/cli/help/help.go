// Package help writes the help, the manual page, completions, the JSON Schemas, and the starter files of `claudeless init`.
//
// Commands and flags come from a Program that the caller fills from its own tables, so that they are listed in one place.
package help

import (
	"fmt"
	"io"
	"strings"
)

// Entry is one line of help: a command with its usage, or an option.
type Entry struct{ Usage, Help string }

// FirstUsageWord returns the first word of the usage: `exec` of "exec [-s FILE] -- CMD…".
func (e Entry) FirstUsageWord() string {
	name, _, _ := strings.Cut(e.Usage, " ")
	return name
}

// Program describes the command line.
type Program struct {
	Name              string  // the name under which the program was started
	Commands          []Entry // the commands of claudeless
	ClaudeOptions     []Entry // the options of claude
	ClaudelessOptions []Entry // the options that only claudeless has
}

// WriteHelp writes the help of claudeless: first steps, commands, options.
func (p *Program) WriteHelp(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `claudeless is a test double for Claude Code: the claude command with a scripted model. No key, no cost, no network.

Usage: %[1]s COMMAND …              one of the commands below
       %[1]s [options] [prompt]     run as claude: the same options, events and exit codes

Get started:
  %[1]s init                                        write a working scenario, MCP server and CI job
  %[1]s -p "What is the weather in Oslo?"           answer the prompt from the scenario
  %[1]s exec -s claudeless.toml -- npm test         test your own program: claude is replaced and the run is checked

Commands:
`, p.Name)
	writeEntries(&b, p.Commands)
	b.WriteString("\nOptions of claudeless:\n")
	writeEntries(&b, p.ClaudelessOptions)
	fmt.Fprintf(&b, "\nOptions of claude (details in docs/compatibility.md; to print only these: %s help claude-flags):\n", p.Name)
	writeEntries(&b, p.ClaudeOptions)
	WriteEntry(&b, Entry{Usage: "-h, --help", Help: "Print this help and exit"})
	b.WriteString("\nDocumentation: https://github.com/claudeless/claudeless (docs/scenarios.md describes the scenario format)\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteClaudeOptions writes only the options of claude.
func (p *Program) WriteClaudeOptions(w io.Writer) error {
	var b strings.Builder
	writeEntries(&b, p.ClaudeOptions)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeEntries(b *strings.Builder, entries []Entry) {
	for _, e := range entries {
		WriteEntry(b, e)
	}
}

// WriteEntry writes an entry with its description in one column. A long usage gets its own line.
func WriteEntry(b *strings.Builder, e Entry) {
	const width = 44
	if len(e.Usage) > width {
		fmt.Fprintf(b, "  %s\n  %-*s  %s\n", e.Usage, width, "", e.Help)
		return
	}
	fmt.Fprintf(b, "  %-*s  %s\n", width, e.Usage, e.Help)
}

// WriteMan writes the manual page in the man(7) format.
func (p *Program) WriteMan(w io.Writer, version string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CLAUDELESS 1 \"\" \"claudeless %s\" \"User Commands\"\n", escapeRoff(version))
	b.WriteString(".SH NAME\nclaudeless \\- test double for Claude Code\n")
	b.WriteString(".SH SYNOPSIS\n.B claudeless\n.I COMMAND\n\\&...\n.br\n.B claudeless\n[\\fIoptions\\fR] [\\fIprompt\\fR]\n")
	b.WriteString(".SH DESCRIPTION\nThe claude command with a scripted model: the same options, events and exit codes, without key, cost or network.\n" +
		"A TOML file, the scenario, says what the model says and which tools it calls; the calls are real.\n")
	writeManSection(&b, "COMMANDS", p.Commands)
	writeManSection(&b, "OPTIONS OF CLAUDELESS", p.ClaudelessOptions)
	writeManSection(&b, "OPTIONS OF CLAUDE", p.ClaudeOptions)
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

func writeManSection(b *strings.Builder, title string, entries []Entry) {
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
