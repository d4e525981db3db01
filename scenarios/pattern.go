package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/match"
	"github.com/claudeless/claudeless/scenarios/internal/fill"
)

// Pattern matches the text of a prompt or result.
type Pattern struct {
	// Type selects how to match: `exact` the whole text, `contains` a part of it, `regex` a regular expression (RE2)
	// anywhere in it, `glob` the whole text with `*`, `?` and `[…]`, `any` every text, `all` every one of `patterns`,
	// `any_of` at least one of them, `not` any text that `pattern` does not match. Case matters.
	Type PatternType `toml:"type,required" enum:"exact,contains,regex,glob,any,all,any_of,not"`
	Text string      `toml:"text"` // Text is the text that patterns of type `exact` and `contains` compare with.
	// Pattern is the expression of `regex` and `glob`; for `not` it is the pattern to negate.
	Pattern  string    `toml:"pattern" schema:"string|Pattern"`
	Patterns []Pattern `toml:"patterns"` // Patterns are the parts of `all` and `any_of`.

	Not *Pattern // Not is the value of `pattern` if Type is "not".
}

// PatternType is the `type` of a [Pattern].
type PatternType string

// The pattern types.
const (
	PatternExact    PatternType = "exact"
	PatternContains PatternType = "contains"
	PatternRegex    PatternType = "regex"
	PatternGlob     PatternType = "glob"
	PatternAny      PatternType = "any"
	PatternAll      PatternType = "all"
	PatternAnyOf    PatternType = "any_of"
	PatternNot      PatternType = "not"
)

// textForSimilarity returns the text that is compared with prompts to find the most similar rule.
func (p *Pattern) textForSimilarity() string {
	switch p.Type {
	case PatternExact, PatternContains:
		return p.Text
	case PatternRegex, PatternGlob:
		return p.Pattern
	default:
		return p.String()
	}
}

// String formats the pattern for messages, such as: contains "x".
func (p *Pattern) String() string {
	switch p.Type {
	case PatternExact, PatternContains:
		return fmt.Sprintf("%s %q", p.Type, p.Text)
	case PatternRegex, PatternGlob:
		return fmt.Sprintf("%s %q", p.Type, p.Pattern)
	case PatternNot:
		return fmt.Sprintf("not (%s)", p.Not)
	case PatternAll, PatternAnyOf:
		parts := make([]string, len(p.Patterns))
		for i := range p.Patterns {
			parts[i] = p.Patterns[i].String()
		}
		return fmt.Sprintf("%s (%s)", p.Type, strings.Join(parts, ", "))
	default:
		return string(p.Type)
	}
}

type compiledRule struct {
	match  match.Pattern
	source *fill.ScenarioFile
	index  int    // index of the rule in its file
	groups string // names of the capture groups that its expressions can use, separated by spaces
	promptSourceFilter
}

// The values of `source`.
const (
	promptSourceNotification = "notification"
	promptSourceAny          = "any"
)

// promptSourceFilter selects the prompts that a rule answers: the user's, the CLI's or both. The zero value selects the user's.
type promptSourceFilter struct {
	sourceKey                   string   // the key `source`; empty means that the pattern decides
	patternUsedWithoutSourceKey *Pattern // nil means no pattern
}

// AnswersNotifications reports whether the rule answers prompts that the CLI itself writes. A rule
// without `source` answers them if its pattern contains a text that only the CLI writes.
func (a promptSourceFilter) AnswersNotifications() bool {
	if a.sourceKey != "" || a.patternUsedWithoutSourceKey == nil {
		return a.sourceKey == promptSourceNotification || a.sourceKey == promptSourceAny
	}
	text := a.patternUsedWithoutSourceKey.String()
	return slices.ContainsFunc([]string{"task-notification", "Stop hook feedback", "structured-output-enforce"}, func(opening string) bool {
		return strings.Contains(text, opening)
	})
}

func (a promptSourceFilter) canAnswerPrompt(isNotification bool) bool {
	if isNotification {
		return a.AnswersNotifications()
	}
	return a.sourceKey != promptSourceNotification
}

func sortAndSpaceJoinGroupNames(names []string) string {
	if len(names) > 1 { // most rules have at most one name, and a file may have thousands of rules
		names = slices.Compact(slices.Sorted(slices.Values(names)))
	}
	return strings.Join(names, " ")
}

// hintIfRE2LacksSyntax returns a hint if the error is about regular expression syntax that RE2 lacks, otherwise "".
func hintIfRE2LacksSyntax(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "(?=") || strings.Contains(text, "(?!") || strings.Contains(text, "(?<"):
		return "regular expressions use RE2 syntax, which has no lookaround; use `all` and `not`, or `when`"
	case strings.Contains(text, "invalid escape sequence: `\\"):
		return "regular expressions use RE2 syntax, which has no back-references and lacks some escapes"
	}
	return ""
}

// compilePattern compiles a pattern. If it fails, bad is the path of the faulty part, which begins with path.
func compilePattern(p *Pattern, path diag.Path) (t match.Pattern, bad diag.Path, err error) {
	switch p.Type {
	case PatternExact:
		return match.Exact(p.Text), nil, nil
	case PatternContains:
		return match.Contains(p.Text), nil, nil
	case PatternRegex:
		t, err = match.Regex(p.Pattern)
		return t, append(path, "pattern"), err
	case PatternGlob:
		t, err = match.Glob(p.Pattern)
		return t, append(path, "pattern"), err
	case PatternNot:
		if p.Not == nil {
			return match.Any(), nil, nil
		}
		t, bad, err = compilePattern(p.Not, append(path, "pattern"))
		return match.Not(t), bad, err
	case PatternAll, PatternAnyOf:
		parts := make([]match.Pattern, len(p.Patterns))
		for i := range p.Patterns {
			if parts[i], bad, err = compilePattern(&p.Patterns[i], append(path[:len(path):len(path)], "patterns", i)); err != nil {
				return match.Any(), bad, err
			}
		}
		if p.Type == PatternAll {
			return match.All(parts...), nil, nil
		}
		return match.AnyOf(parts...), nil, nil
	default:
		return match.Any(), nil, nil
	}
}
