// Package help is what the program tells of itself: its help, its manual page,
// the completions of shells, the schemas of its files, and first files to begin
// with.
//
// Its one invariant: it says what it is given, the table of commands and the
// flags, and keeps no second list of them. It runs nothing.
package help

import (
	"fmt"
	"io"
	"strings"
)

// Entry is one line of help: a command with its usage, or an option.
type Entry struct{ Usage, Help string }

// Name is the first word of the usage: `exec` of "exec [-s FILE] -- CMD…".
func (e Entry) Name() string {
	name, _, _ := strings.Cut(e.Usage, " ")
	return name
}

// Program is what there is to tell.
type Program struct {
	Name     string  // how it was called
	Commands []Entry // ours
	Claude   []Entry // the options of claude
	Own      []Entry // the options that we add
}

// Short is the help for somebody who is new: what to do first, then the options.
func (p *Program) Short(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `claudeless is a test double for Claude Code: the claude command with a scripted model. No key, no cost, no network.

Usage: %[1]s COMMAND …              one of the commands below
       %[1]s [options] [prompt]     in the place of claude: the same options, events and exit codes

Begin with:
  %[1]s init                                        a scenario, an MCP server and a CI job that run
  %[1]s -p "What is the weather in Oslo?"           play it as claude
  %[1]s exec -s claudeless.toml -- npm test         your own program with claude in place, and a verdict

Commands:
`, p.Name)
	lines(&b, p.Commands)
	b.WriteString("\nOptions of claudeless:\n")
	lines(&b, p.Own)
	fmt.Fprintf(&b, "\nOptions of claude (more of each: docs/compatibility.md; alone: %s help claude-flags):\n", p.Name)
	lines(&b, p.Claude)
	Line(&b, Entry{Usage: "-h, --help", Help: "Print this help and exit"})
	b.WriteString("\nDocumentation: README.md and docs/ of github.com/claudeless/claudeless; scenarios are docs/scenarios.md.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Flags are the options of claude alone.
func (p *Program) Flags(w io.Writer) error {
	var b strings.Builder
	lines(&b, p.Claude)
	_, err := io.WriteString(w, b.String())
	return err
}

func lines(b *strings.Builder, entries []Entry) {
	for _, e := range entries {
		Line(b, e)
	}
}

// Line keeps the descriptions in one column; a usage too long for its own gets a
// line.
func Line(b *strings.Builder, e Entry) {
	const width = 44
	if len(e.Usage) > width {
		fmt.Fprintf(b, "  %s\n  %-*s  %s\n", e.Usage, width, "", e.Help)
		return
	}
	fmt.Fprintf(b, "  %-*s  %s\n", width, e.Usage, e.Help)
}
