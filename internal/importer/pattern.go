package importer

import (
	"encoding/json"
	"fmt"
	"index/suffixarray"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/scenarios"
)

type patternChooser struct {
	prompts       []string // original prompts, which the patterns must distinguish
	rivalPatterns []string // patterns of the scenarios in RivalDir
	exact         bool
	words         map[string]int     // number of prompts that contain a word
	index         *suffixarray.Index // index of all distinct prompts; nil if they are too long, and only words are compared
}

func newPatternChooser(prompts, rivalPatterns []string, exact bool) *patternChooser {
	p := &patternChooser{prompts: prompts, rivalPatterns: rivalPatterns, exact: exact, words: map[string]int{}}
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
	const most = 4 << 20 // the index needs five times as much memory as the text
	if len(all) <= most {
		p.index = suffixarray.New(all)
	}
	return p
}

type promptPattern struct{ patternType, tomlKeyOfText, text string }

func (p promptPattern) toml() string {
	if p.patternType == "not" { // everything except prompts that the CLI itself sends
		return `{ type = "not", pattern = { type = "contains", text = "<task-notification>" } }`
	}
	if p.tomlKeyOfText == "" {
		return fmt.Sprintf("{ type = %q }", p.patternType)
	}
	return fmt.Sprintf("{ type = %q, %s = %s }", p.patternType, p.tomlKeyOfText, oneLineTOMLString(p.text))
}

// choosePatternOfPrompt returns a short pattern that matches a prompt and, if possible, no other. originalPrompt is the prompt
// before redaction. The pattern contains no text that redaction removed.
func (p *patternChooser) choosePatternOfPrompt(originalPrompt, redactedPrompt string) promptPattern {
	switch {
	case strings.TrimSpace(originalPrompt) == "":
		return promptPattern{patternType: "any"}
	case p.exact && originalPrompt == redactedPrompt:
		return promptPattern{"exact", "text", originalPrompt}
	case p.exact:
		return promptPattern{"regex", "pattern", regexpToleratingChangedIDs(redactedPrompt)}
	}
	const most = 8
	for n := 1; n <= most; n++ {
		if part := p.longestUniqueWordSequence(originalPrompt, redactedPrompt, n); part != "" {
			return promptPattern{"contains", "text", part}
		}
	}
	return promptPattern{"regex", "pattern", regexpToleratingChangedIDs(redactedPrompt)}
}

// longestUniqueWordSequence returns wordCount consecutive words that no other prompt has, from the first line with such words. Of
// several candidates in the line, it returns the longest text; empty means none.
func (p *patternChooser) longestUniqueWordSequence(original, redacted string, wordCount int) string {
	best := ""
	for line := range strings.Lines(redacted) {
		words := strings.Split(strings.TrimSpace(line), " ")
		for i := 0; i+wordCount <= len(words); i++ {
			run := strings.Join(words[i:i+wordCount], " ")
			trimmed := strings.Trim(run, ".,;:!?\"'`()[] ")
			const shortestPart = 4
			isVolatile := strings.ContainsAny(trimmed, `0123456789/\{}@`+HomePlaceholder+CWDPlaceholder) || strings.Contains(trimmed, "REDACTED_")
			if len(trimmed) < shortestPart || len(trimmed) <= len(best) || isVolatile || !strings.Contains(original, trimmed) {
				continue
			}
			if p.isDistinctiveForPrompt(trimmed, words[i:i+wordCount], original) {
				best = trimmed
			}
		}
		if best != "" {
			return best
		}
	}
	return best
}

func (p *patternChooser) isDistinctiveForPrompt(part string, words []string, original string) bool {
	if slices.ContainsFunc(p.rivalPatterns, func(r string) bool { return strings.Contains(original, r) && strings.Contains(r, part) }) {
		return false
	}
	if p.index == nil {
		const enough = 4
		return len(words) >= enough || slices.ContainsFunc(words, func(w string) bool { return p.words[w] <= 1 })
	}
	own := countOverlapping(original, part)
	return len(p.index.Lookup([]byte(part), own+1)) <= own
}

// countOverlapping returns how often text contains part, including overlaps.
func countOverlapping(text, part string) int {
	n := 0
	for i := strings.Index(text, part); i >= 0; n++ {
		text = text[i+1:]
		i = strings.Index(text, part)
	}
	return n
}

var hexNumberPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-fA-F]*(?:[-:.][0-9a-fA-F]+)*`) })

// regexpToleratingChangedIDs returns a regular expression that matches the prompt even if it has other ids, dates and numbers.
func regexpToleratingChangedIDs(prompt string) string {
	const longest = 200
	line, _, more := strings.Cut(strings.TrimSpace(prompt), "\n")
	runes := []rune(line)
	cut := more || len(runes) > longest
	line = string(runes[:min(longest, len(runes))])
	expr := "^\\s*" + replaceAndConvertRest(placeholderPattern(), line, ".+", func(text string) string {
		return replaceAndConvertRest(hexNumberPattern(), text, `[\w:.-]+`, regexp.QuoteMeta)
	})
	if !cut {
		expr += "\\s*$"
	}
	return expr
}

var placeholderPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`REDACTED_[A-Z0-9_]+|` + HomePlaceholder + `|` + CWDPlaceholder)
})

// replaceAndConvertRest replaces matches of replacedPattern by replacement and converts the text between them.
func replaceAndConvertRest(replacedPattern *regexp.Regexp, text, replacement string, convertTextBetween func(string) string) string {
	parts := replacedPattern.Split(text, -1)
	for i, part := range parts {
		parts[i] = convertTextBetween(part)
	}
	return strings.Join(parts, replacement)
}

func readPatternsOfScenariosInDir(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("reading the --against directory: %w", err)
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

// quoteAsTOMLTemplate quotes a text of a scenario. Placeholders for directories become templates such as {{ cwd }}.
func quoteAsTOMLTemplate(s string) string { return tomltext.BasicString(asTemplate(s)) }

var templateReplacer = strings.NewReplacer("{{", `{{ "{{" }}`, HomePlaceholder, "{{ env.HOME }}", CWDPlaceholder, "{{ cwd }}")

// asTemplate returns a template that yields a text: it escapes braces, and directory placeholders become {{ cwd }} or {{ env.HOME }}.
func asTemplate(s string) string { return templateReplacer.Replace(s) }

var directoryPlaceholderToRedactedNameReplacer = strings.NewReplacer(HomePlaceholder, "REDACTED_HOME_1", CWDPlaceholder, "REDACTED_CWD_1")

// replaceDirPlaceholdersByNames replaces placeholders of directories in a text that cannot be a template.
func replaceDirPlaceholdersByNames(s string) string {
	return directoryPlaceholderToRedactedNameReplacer.Replace(s)
}

func oneLineTOMLString(s string) string {
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		q := tomltext.BasicString(p)
		parts[i] = q[1 : len(q)-1]
	}
	return `"` + strings.Join(parts, `\n`) + `"`
}

var bareKeyPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

func tomlKey(s string) string {
	if bareKeyPattern().MatchString(s) {
		return s
	}
	return oneLineTOMLString(s)
}

// jsonAsInlineTOML converts JSON to inline TOML. ok is false for what TOML lacks: null, and integers beyond 64 bits.
func jsonAsInlineTOML(raw json.RawMessage) (s string, ok bool) {
	switch plainjson.TypeOf(raw) {
	case "object":
		o, err := plainjson.Parse(raw)
		if err != nil {
			return "", false
		}
		o = o.Distinct()
		if o.Get("$file") != nil {
			return "", false
		}
		parts := make([]string, 0, len(o))
		for _, m := range o {
			v, ok := jsonAsInlineTOML(m.Value)
			if !ok {
				return "", false
			}
			parts = append(parts, tomlKey(m.Key)+" = "+v)
		}
		if len(parts) == 0 {
			return "{}", true
		}
		return "{ " + strings.Join(parts, ", ") + " }", true
	case "array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return "", false
		}
		parts := make([]string, len(items))
		for i, item := range items {
			if parts[i], ok = jsonAsInlineTOML(item); !ok {
				return "", false
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", true
	case "string":
		var s string
		err := json.Unmarshal(raw, &s)
		return oneLineTOMLString(asTemplate(s)), err == nil
	case "boolean":
		return string(raw), true
	case "number":
		return numberAsTOML(string(raw))
	}
	return "", false
}

func numberAsTOML(s string) (string, bool) {
	if !strings.ContainsAny(s, ".eE") {
		_, err := strconv.ParseInt(s, 10, 64)
		return s, err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return s, err == nil && f == f
}
