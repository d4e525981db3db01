package importer

import (
	"fmt"
	"index/suffixarray"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/importer/hide"
	"github.com/claudeless/claudeless/scenarios"
)

// patterns chooses what a rule looks for in its prompt.
type patterns struct {
	prompts []string // as they were typed: all that must not be mistaken for each other
	rivals  []string // texts that scenarios beside this one look for
	exact   bool
	words   map[string]int     // in how many prompts a word is
	all     *suffixarray.Index // of all prompts, each once; nil = they are too long, and only words are compared
}

func newPatterns(prompts, rivals []string, exact bool) *patterns {
	p := &patterns{prompts: prompts, rivals: rivals, exact: exact, words: map[string]int{}}
	var all []byte
	known := map[string]bool{}
	for _, text := range prompts {
		if !known[text] {
			known[text] = true
			all = append(append(all, text...), 0)
		}
		seen := map[string]bool{}
		for w := range strings.FieldsSeq(text) {
			if !seen[w] {
				seen[w] = true
				p.words[w]++
			}
		}
	}
	const most = 4 << 20 // an index takes five times as much
	if len(all) <= most {
		p.all = suffixarray.New(all)
	}
	return p
}

// pattern is what a rule looks for, as TOML.
type pattern struct{ kind, key, text string }

func (p pattern) toml() string {
	if p.kind == "not" { // everything but what the CLI itself sends
		return `{ type = "not", pattern = { type = "contains", text = "<task-notification>" } }`
	}
	if p.key == "" {
		return fmt.Sprintf("{ type = %q }", p.kind)
	}
	return fmt.Sprintf("{ type = %q, %s = %s }", p.kind, p.key, oneLine(p.text))
}

// choose finds the shortest part of a prompt that no other prompt has. shown is
// the prompt with what must not be told replaced: only what it still has may
// stand in a file.
func (p *patterns) choose(typed, shown string) pattern {
	switch {
	case strings.TrimSpace(typed) == "":
		return pattern{kind: "any"}
	case p.exact && typed == shown:
		return pattern{"exact", "text", typed}
	case p.exact:
		return pattern{"regex", "pattern", loose(shown)}
	}
	const most = 8
	for n := 1; n <= most; n++ {
		if part := p.part(typed, shown, n); part != "" {
			return pattern{"contains", "text", part}
		}
	}
	return pattern{"regex", "pattern", loose(shown)}
}

// varies says of a word that it would not be the same the next time: numbers,
// ids, dates, paths, placeholders.
func varies(part string) bool {
	return strings.ContainsAny(part, `0123456789/\{}@`+hide.Home+hide.CWD) || strings.Contains(part, "REDACTED_")
}

// part is the best run of n words; empty = there is none.
func (p *patterns) part(typed, shown string, n int) string {
	best := ""
	for line := range strings.Lines(shown) {
		words := strings.Split(strings.TrimSpace(line), " ")
		for i := 0; i+n <= len(words); i++ {
			run := strings.Join(words[i:i+n], " ")
			trimmed := strings.Trim(run, ".,;:!?\"'`()[] ")
			const shortestPart = 4
			if len(trimmed) < shortestPart || len(trimmed) <= len(best) || varies(trimmed) || !strings.Contains(typed, trimmed) {
				continue
			}
			if p.distinct(trimmed, words[i:i+n], typed) {
				best = trimmed
			}
		}
		if best != "" {
			return best
		}
	}
	return best
}

// distinct says that no other prompt has the text.
func (p *patterns) distinct(part string, words []string, typed string) bool {
	if slices.ContainsFunc(p.rivals, func(r string) bool { return strings.Contains(typed, r) && strings.Contains(r, part) }) {
		return false
	}
	if p.all == nil {
		const enough = 4
		return len(words) >= enough || slices.ContainsFunc(words, func(w string) bool { return p.words[w] <= 1 })
	}
	own := times(typed, part)
	return len(p.all.Lookup([]byte(part), own+1)) <= own
}

// times is how often a text has a part, overlapping or not.
func times(text, part string) int {
	n := 0
	for i := strings.Index(text, part); i >= 0; n++ {
		text = text[i+1:]
		i = strings.Index(text, part)
	}
	return n
}

var digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-fA-F]*(?:[-:.][0-9a-fA-F]+)*`) })

// loose is a regular expression for a prompt in which ids, dates and numbers
// may be others.
func loose(shown string) string {
	const longest = 200
	line, _, more := strings.Cut(strings.TrimSpace(shown), "\n")
	runes := []rune(line)
	cut := more || len(runes) > longest
	line = string(runes[:min(longest, len(runes))])
	var b strings.Builder
	b.WriteString("^\\s*")
	end := 0
	for _, m := range placeholders().FindAllStringIndex(line, -1) {
		b.WriteString(numbersLoose(line[end:m[0]]) + ".+")
		end = m[1]
	}
	b.WriteString(numbersLoose(line[end:]))
	if !cut {
		b.WriteString("\\s*$")
	}
	return b.String()
}

var placeholders = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`REDACTED_[A-Z0-9_]+|` + hide.Home + `|` + hide.CWD) })

func numbersLoose(s string) string {
	var b strings.Builder
	end := 0
	for _, m := range digits().FindAllStringIndex(s, -1) {
		b.WriteString(regexp.QuoteMeta(s[end:m[0]]) + `[\w:.-]+`)
		end = m[1]
	}
	return b.String() + regexp.QuoteMeta(s[end:])
}

// against are the texts that the scenarios of a directory look for.
func against(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("--against: %w", err)
	}
	var texts []string
	for _, name := range files {
		s, err := scenarios.Load(name, scenarios.LoadOptions{})
		if err != nil {
			continue // fixtures lie there too
		}
		for i := range s.Responses {
			if text := s.Responses[i].Pattern.Text; text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}
