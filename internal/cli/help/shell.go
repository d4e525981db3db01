package help

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Shells lists the shells with completions.
func Shells() []string { return []string{"bash", "fish", "zsh"} }

// WriteCompletion writes the completions of a shell: commands as the first word, long options everywhere, files for the rest.
func (p *Program) WriteCompletion(w io.Writer, shell string) error {
	var text string
	switch shell {
	case "bash":
		text = p.bashCompletion()
	case "zsh":
		text = p.zshCompletion()
	case "fish":
		text = p.fishCompletion()
	default:
		return fmt.Errorf("no completions for the shell %q; supported: %s", shell, strings.Join(Shells(), ", "))
	}
	_, err := io.WriteString(w, text)
	return err
}

var longOptionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--[a-z][a-zA-Z0-9-]*`) })

func (p *Program) longOptions() []Entry {
	var all []Entry
	for _, e := range slices.Concat(p.ClaudeOptions, p.ClaudelessOptions) {
		for _, name := range longOptionPattern().FindAllString(e.Usage, -1) {
			all = append(all, Entry{Usage: name, Help: e.Help})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Usage, b.Usage) })
	return slices.CompactFunc(all, func(a, b Entry) bool { return a.Usage == b.Usage })
}

func (p *Program) bashCompletion() string {
	return fmt.Sprintf(`_claudeless() {
  local word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W %q -- "$word"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W %q -- "$word"))
  fi
}
complete -o default -F _claudeless claudeless
`, joinFirstUsageWords(p.longOptions(), " "), joinFirstUsageWords(p.Commands, " "))
}

func (p *Program) zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef claudeless\n_claudeless() {\n  local -a commands options\n  commands=(\n")
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "    %s\n", shellQuote(c.FirstUsageWord()+":"+c.Help))
	}
	b.WriteString("  )\n  options=(\n")
	for _, o := range p.longOptions() {
		fmt.Fprintf(&b, "    %s\n", shellQuote(o.Usage+":"+o.Help))
	}
	b.WriteString("  )\n  if [[ $PREFIX == -* ]]; then\n    _describe option options\n  elif ((CURRENT == 2)); then\n    _describe command commands || _files\n  else\n    _files\n  fi\n}\ncompdef _claudeless claudeless\n")
	return b.String()
}

func (p *Program) fishCompletion() string {
	var b strings.Builder
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "complete -c claudeless -n __fish_use_subcommand -a %s -d %s\n", c.FirstUsageWord(), shellQuote(c.Help))
	}
	for _, o := range p.longOptions() {
		fmt.Fprintf(&b, "complete -c claudeless -l %s -d %s\n", strings.TrimPrefix(o.Usage, "--"), shellQuote(o.Help))
	}
	return b.String()
}

func joinFirstUsageWords(entries []Entry, sep string) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.FirstUsageWord())
	}
	return strings.Join(names, sep)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
