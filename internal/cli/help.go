package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/claudeless/claudeless/internal/flags"
	"github.com/claudeless/claudeless/internal/process"
)

// simulatedVersion is the release of claude whose behaviour is reproduced.
const simulatedVersion = "2.1.329"

// version of claudeless itself; releases set it with -ldflags "-X …/internal/cli.version=X.Y.Z".
var version = "0.1.0"

func printVersion(s *process.System, f *flags.Flags) error {
	line := simulatedVersion + " (Claude Code)"
	switch {
	case f.ClaudeVersion != "":
		line = f.ClaudeVersion + " (Claude Code)"
	case !s.AsClaude():
		line = fmt.Sprintf("%s (Claude Code; simulated by claudeless %s)", simulatedVersion, version)
	}
	_, err := fmt.Fprintln(s.Stdout, line)
	return err
}

// printHelp has the structure of the real CLI's help: usage, description, arguments, options, commands.
func printHelp(s *process.System) error {
	var b strings.Builder
	options, own := flags.Lines()
	fmt.Fprintf(&b, "Usage: %s [options] [command] [prompt]\n\n", s.Name())
	b.WriteString("A test double for Claude Code: the same command line and protocol, with a scripted model.\n" +
		"Without a terminal on stdout, or with -p, it answers the prompt and exits.\n\n")
	b.WriteString("Arguments:\n")
	helpLine(&b, "prompt", "What to ask; may also come from stdin, or both")
	b.WriteString("\nOptions:\n")
	for _, o := range options {
		helpLine(&b, o.Flags, o.Help)
	}
	helpLine(&b, "-h, --help", "Print this help and exit")
	if !s.AsClaude() {
		b.WriteString("\nOptions of claudeless:\n")
		for _, o := range own {
			helpLine(&b, o.Flags, o.Help)
		}
	}
	b.WriteString("\nCommands:\n")
	for _, c := range commandTable() {
		if !s.AsClaude() || c.inClaude {
			helpLine(&b, c.usage, c.help)
		}
	}
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

// helpLine keeps the descriptions in one column; a name too long for its own gets a line.
func helpLine(b *strings.Builder, name, help string) {
	const width = 44
	if len(name) > width {
		fmt.Fprintf(b, "  %s\n  %-*s  %s\n", name, width, "", help)
		return
	}
	fmt.Fprintf(b, "  %-*s  %s\n", width, name, help)
}
