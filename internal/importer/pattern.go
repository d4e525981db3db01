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

	"github.com/claudeless/claudeless/scenarios"
)

type patternChooser struct {
	prompts       []string // original prompts, which the patterns must distinguish
	rivalPatterns []string // patterns of the scenarios in RivalDir
	exact         bool
	words         map[string]int     // number of prompts that contain a word
	index         *suffixarray.Index // index of all distinct prompts; nil if they are too long, and only words are compared
}

func newPatternChooser(prompts, rivals []string, exact bool) *patternChooser {
	p := &patternChooser{prompts: prompts, rivalPatterns: rivals, exact: exact, words: map[string]int{}}
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
	const most = 4 << 20 // an index needs five times as much
	if len(all) <= most {
		p.index = suffixarray.New(all)
	}
	return p
}

type pattern struct{ kind, key, text string }

func (p pattern) toml() string {
	if p.kind == "not" { // everything except prompts that the CLI itself sends
		return `{ type = "not", pattern = { type = "contains", text = "<task-notification>" } }`
	}
	if p.key == "" {
		return fmt.Sprintf("{ type = %q }", p.kind)
	}
	return fmt.Sprintf("{ type = %q, %s = %s }", p.kind, p.key, oneLine(p.text))
}

// choosePattern returns a short pattern that matches a prompt and, if possible, no other. original is the prompt before
// redaction. The pattern contains no text that redaction removed.
func (p *patternChooser) choosePattern(original, redacted string) pattern {
	switch {
	case strings.TrimSpace(original) == "":
		return pattern{kind: "any"}
	case p.exact && original == redacted:
		return pattern{"exact", "text", original}
	case p.exact:
		return pattern{"regex", "pattern", volatileRegexp(redacted)}
	}
	const most = 8
	for n := 1; n <= most; n++ {
		if part := p.longestDistinctWords(original, redacted, n); part != "" {
			return pattern{"contains", "text", part}
		}
	}
	return pattern{"regex", "pattern", volatileRegexp(redacted)}
}

// isVolatile reports whether a word would differ in the next run: numbers, ids, dates, paths, placeholders.
func isVolatile(part string) bool {
	return strings.ContainsAny(part, `0123456789/\{}@`+HomePlaceholder+CWDPlaceholder) || strings.Contains(part, "REDACTED_")
}

// longestDistinctWords returns the longest run of wordCount words that no other prompt has, from the first line with
// one; empty means none.
func (p *patternChooser) longestDistinctWords(original, redacted string, wordCount int) string {
	best := ""
	for line := range strings.Lines(redacted) {
		words := strings.Split(strings.TrimSpace(line), " ")
		for i := 0; i+wordCount <= len(words); i++ {
			run := strings.Join(words[i:i+wordCount], " ")
			trimmed := strings.Trim(run, ".,;:!?\"'`()[] ")
			const shortestPart = 4
			if len(trimmed) < shortestPart || len(trimmed) <= len(best) || isVolatile(trimmed) || !strings.Contains(original, trimmed) {
				continue
			}
			if p.isDistinct(trimmed, words[i:i+wordCount], original) {
				best = trimmed
			}
		}
		if best != "" {
			return best
		}
	}
	return best
}

func (p *patternChooser) isDistinct(part string, words []string, original string) bool {
	if slices.ContainsFunc(p.rivalPatterns, func(r string) bool { return strings.Contains(original, r) && strings.Contains(r, part) }) {
		return false
	}
	if p.index == nil {
		const enough = 4
		return len(words) >= enough || slices.ContainsFunc(words, func(w string) bool { return p.words[w] <= 1 })
	}
	own := countOccurrences(original, part)
	return len(p.index.Lookup([]byte(part), own+1)) <= own
}

// countOccurrences returns how often text contains part, including overlaps.
func countOccurrences(text, part string) int {
	n := 0
	for i := strings.Index(text, part); i >= 0; n++ {
		text = text[i+1:]
		i = strings.Index(text, part)
	}
	return n
}

var digitsPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-fA-F]*(?:[-:.][0-9a-fA-F]+)*`) })

// volatileRegexp returns a regular expression that matches the prompt with other ids, dates and numbers.
func volatileRegexp(prompt string) string {
	const longest = 200
	line, _, more := strings.Cut(strings.TrimSpace(prompt), "\n")
	runes := []rune(line)
	cut := more || len(runes) > longest
	line = string(runes[:min(longest, len(runes))])
	expr := "^\\s*" + convertBetween(placeholderPattern(), line, ".+", loosenNumbers)
	if !cut {
		expr += "\\s*$"
	}
	return expr
}

var placeholderPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`REDACTED_[A-Z0-9_]+|` + HomePlaceholder + `|` + CWDPlaceholder)
})

func loosenNumbers(s string) string {
	return convertBetween(digitsPattern(), s, `[\w:.-]+`, func(text string) string { return regexp.QuoteMeta(text) })
}

// convertBetween replaces the matches of expr in a text by glue and converts the texts between them.
func convertBetween(expr *regexp.Regexp, text, glue string, convert func(string) string) string {
	parts := expr.Split(text, -1)
	for i, part := range parts {
		parts[i] = convert(part)
	}
	return strings.Join(parts, glue)
}

func readScenarioPatterns(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading the directory of --against: %w", err)
	}
	var texts []string
	for _, name := range files {
		s, err := scenarios.Load(name, scenarios.LoadOptions{})
		if err != nil {
			continue // the directory may also contain fixtures
		}
		for i := range s.Responses {
			if text := s.Responses[i].Pattern.Text; text != "" {
				texts = append(texts, text)
			}
		}
	}
	return texts, nil
}
