package cli

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed command_help.txt
var realCLICommandHelpText string

// commandHelp returns the help for a command or subcommand of the real CLI; "" means not requested or not known.
func commandHelp(words []string) string {
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
