package cli

import (
	"context"
	_ "embed" // embeds the file that contains the version
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/internal/cli/help"
)

// embeddedClaudelessVersion is the version of claudeless. Between two releases, it is already the version of the next release.
// All packages get the version from this file.
//
//go:embed version.txt
var embeddedClaudelessVersion string

func claudelessVersion() string { return strings.TrimSpace(embeddedClaudelessVersion) }

func printVersion(s *process.System, f *flags.Flags) error {
	line := claudecode.DefaultVersion + " (Claude Code)"
	switch {
	case f.ClaudeVersion != "":
		line = f.ClaudeVersion + " (Claude Code)"
	case !s.CalledAsClaude() || s.Getenv("CLAUDELESS_IDENTIFY") == "1":
		line = fmt.Sprintf("%s (Claude Code; simulated by claudeless %s)", claudecode.DefaultVersion, claudelessVersion())
	}
	_, err := fmt.Fprintln(s.Stdout, line)
	return err
}

type versionCmd struct {
	JSON bool   `name:"json" help:"Print one JSON object"`
	Of   string `placeholder:"VERSION" help:"Print whether this version of claude was measured, and list the features that it lacks"`
}

func (c *versionCmd) Run(s *process.System) error {
	if c.Of != "" {
		return printClaudeVersionReport(s, claudecode.ProfileForExactVersion(c.Of), c.JSON)
	}
	who := help.Identify(s, claudelessVersion(), claudecode.DefaultVersion)
	line := fmt.Sprintf("claudeless %s (simulates claude %s)", who.Claudeless, who.Claude)
	if c.JSON {
		raw, _ := json.Marshal(who) // strings and a boolean can be encoded
		line = string(raw)
	}
	_, err := fmt.Fprintln(s.Stdout, line)
	return err
}

type versionReport struct {
	Claude      string   `json:"claude"`
	Measured    bool     `json:"measured"`
	Missing     []string `json:"missing"`    // features that newer versions have and this version lacks
	Unsimulated []string `json:"not_played"` // known behaviour of the version that claudeless does not simulate
}

func printClaudeVersionReport(s *process.System, p claudecode.Profile, asJSON bool) error {
	r := versionReport{p.Version(), p.IsVersionInMeasuredRange(), append([]string{}, p.FeaturesOnlyInNewerVersions()...), append([]string{}, p.BehaviorSimulatedAsInNewerVersions()...)}
	if asJSON {
		return s.PrintIndentedJSON(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the behavior of claude %s was measured\n", r.Claude)
	if !r.Measured {
		b.Reset()
		fmt.Fprintf(&b, "the behavior of claude %s was not measured; the measured versions are %s to %s\n", r.Claude, claudecode.OldestMeasuredVersion, claudecode.NewestMeasuredVersion)
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"features that this version lacks (claudeless does not simulate them for this version):", r.Missing}, {"features that differ in this version (claudeless simulates the behaviour of newer versions):", r.Unsimulated}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(&b, "%s\n  %s\n", list.title, strings.Join(list.lines, "\n  "))
		}
	}
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

func writeHelpText(s *process.System, textName string) error {
	p := &help.Program{Name: s.InvokedProgramName(), Version: claudelessVersion()}
	for _, c := range commandTable() {
		entry := help.Entry{Usage: c.usage, Help: c.help}
		p.Commands = append(p.Commands, entry)
		if c.inClaude {
			p.ClaudeCommands = append(p.ClaudeCommands, entry)
		}
	}
	options, own := flags.HelpLines()
	for _, o := range options {
		p.ClaudeOptions = append(p.ClaudeOptions, help.Entry{Usage: o.Flags, Help: o.Help})
	}
	for _, o := range own {
		p.ClaudelessOptions = append(p.ClaudelessOptions, help.Entry{Usage: o.Flags, Help: o.Help})
	}
	return p.Write(s.Stdout, textName)
}

func printHelp(s *process.System) error {
	if s.CalledAsClaude() {
		return writeHelpText(s, help.TextClaudeHelp)
	}
	return writeHelpText(s, help.TextHelp)
}

func runHelp(ctx context.Context, s *process.System, words []string) error {
	switch {
	case len(words) == 0:
		return printHelp(s)
	case words[0] == "claude-flags":
		return writeHelpText(s, help.TextClaudeOptions)
	}
	if run := commandOfWord(s, words[0]); run != nil {
		return run(ctx, s, []string{"--help"})
	}
	return process.WithHint(fmt.Sprintf("no help for %q", words[0]), "try: claudeless help, claudeless help claude-flags, or claudeless help COMMAND")
}

func runCompletion(_ context.Context, s *process.System, words []string) error {
	if len(words) != 1 {
		return process.WithHint("missing shell name", strings.Join(help.CompletionShells(), ", "))
	}
	if !slices.Contains(help.CompletionShells(), words[0]) {
		return fmt.Errorf("no completions for the shell %q; supported: %s", words[0], strings.Join(help.CompletionShells(), ", "))
	}
	return writeHelpText(s, words[0])
}

//go:embed command_help.txt
var realCLICommandHelpText string

// requestedRealCLIHelpText returns the help for a command or subcommand of the real CLI; "" means that words do not request help, or that
// the command is unknown.
func requestedRealCLIHelpText(words []string) string {
	flags := func(w string) bool { return w == "-h" || w == "--help" }
	if !slices.ContainsFunc(words, flags) {
		return ""
	}
	var found []string
	depth := 0
	for block := range strings.SplitSeq(strings.ReplaceAll(realCLICommandHelpText, "\n  ", "\x00"), "\n") {
		lines := strings.Split(block, "\x00")
		if n := countCommandWordsMatchingUsage(lines[0], words); n > depth {
			found, depth = lines, n
		}
	}
	if found == nil {
		return ""
	}
	usage, about, _ := strings.Cut(found[0], ": ")
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: claude %s\n\n%s\n", usage, about)
	var options, commands [][2]string
	for _, line := range found[1:] {
		name, text, _ := strings.Cut(line, ": ")
		if command, ok := strings.CutPrefix(name, "@"); ok {
			commands = append(commands, [2]string{command, text})
		} else {
			options = append(options, [2]string{name, text})
		}
	}
	width := 0
	for _, row := range slices.Concat(options, commands) {
		width = max(width, len(row[0]))
	}
	for _, part := range []struct {
		title string
		rows  [][2]string
	}{{"Options:", options}, {"Commands:", commands}} {
		if len(part.rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, row := range part.rows {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, row[0], row[1])
		}
	}
	return b.String()
}

// countCommandWordsMatchingUsage returns the number of words that match the command of a usage such as "plugin install|i
// [options] <plugin>"; 0 means that they do not match.
func countCommandWordsMatchingUsage(usage string, words []string) int {
	n := 0
	for word := range strings.FieldsSeq(usage) {
		if strings.ContainsAny(word[:1], "[<#") {
			break
		}
		word = strings.TrimSuffix(word, ":")
		if n == 0 && words[0] == "plugins" {
			words = slices.Concat([]string{"plugin"}, words[1:])
		}
		if n == len(words) || !slices.Contains(strings.Split(word, "|"), words[n]) {
			return 0
		}
		n++
	}
	return n
}
