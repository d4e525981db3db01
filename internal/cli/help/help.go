// Package help writes the help, the manual page, completions, the JSON Schemas, and the starter files of `claudeless init`.
//
// Commands and flags come from a Program that the caller fills from its own tables, so that they are listed in one place.
package help

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// Entry is one line of help: a command with its usage, or an option.
type Entry struct{ Usage, Help string }

// FirstUsageWord returns the first word of the usage: `exec` of "exec [-s FILE] -- CMD…".
func (e Entry) FirstUsageWord() string {
	name, _, _ := strings.Cut(e.Usage, " ")
	return name
}

// Text returns the entry with its description in one column. A long usage gets its own line.
func (e Entry) Text() string {
	const width = 44
	if len(e.Usage) > width {
		return fmt.Sprintf("  %s\n  %-*s  %s\n", e.Usage, width, "", e.Help)
	}
	return fmt.Sprintf("  %-*s  %s\n", width, e.Usage, e.Help)
}

// Program describes the command line.
type Program struct {
	Name              string  // the name under which the program was started
	Version           string  // the version of claudeless
	Commands          []Entry // the commands of claudeless
	ClaudeCommands    []Entry // the commands that claude also has
	ClaudeOptions     []Entry // the options of claude
	ClaudelessOptions []Entry // the options that only claudeless has
}

// LongOptions returns one entry for each long option, sorted.
func (p *Program) LongOptions() []Entry {
	var all []Entry
	pattern := regexp.MustCompile(`--[a-z][a-zA-Z0-9-]*`)
	for _, e := range slices.Concat(p.ClaudeOptions, p.ClaudelessOptions) {
		for _, name := range pattern.FindAllString(e.Usage, -1) {
			all = append(all, Entry{Usage: name, Help: e.Help})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Usage, b.Usage) })
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.Usage == b.Usage })
}

// templateFiles are executed with a [Program].
//
//go:embed templates
var templateFiles embed.FS

// Texts that [Program.Write] can write.
const (
	TextHelp          = "help"
	TextClaudeHelp    = "claude_help"
	TextClaudeOptions = "claude_options" // only the options of claude
	TextManualPage    = "man"            // in the man(7) format
)

// CompletionShells lists the shells with completions. The name of a shell is also a text that [Program.Write] can write: it completes
// commands as the first word, long options everywhere, files for the rest.
func CompletionShells() []string { return []string{"bash", "fish", "zsh"} }

// Write writes the text with this name.
func (p *Program) Write(w io.Writer, textName string) error {
	functions := template.FuncMap{"quote": shellQuote, "roff": escapeRoff}
	var text bytes.Buffer
	if err := template.Must(template.New(textName).Funcs(functions).ParseFS(templateFiles, "templates/"+textName)).Execute(&text, p); err != nil {
		return err
	}
	_, err := text.WriteTo(w)
	return err
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func escapeRoff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
