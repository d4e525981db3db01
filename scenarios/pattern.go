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
	// Type says how to match: `exact` the whole text, `contains` a part of it,
	// `regex` a regular expression (RE2) found anywhere in it, `glob` the
	// whole text with `*`, `?` and `[…]`, `any` everything, `all` every one of
	// `patterns`, `any_of` at least one of them, `not` none of what `pattern`
	// matches. Case counts.
	Type PatternType `toml:"type,required" enum:"exact,contains,regex,glob,any,all,any_of,not"`
	// Text is what `exact` and `contains` look for.
	Text string `toml:"text"`
	// Pattern is the expression of `regex` and `glob`; for `not` it is the
	// pattern to turn round.
	Pattern string `toml:"pattern" schema:"string|Pattern"`
	// Patterns are the parts of `all` and `any_of`.
	Patterns []Pattern `toml:"patterns"`

	// Not is what `pattern` holds when Type is "not".
	Not *Pattern
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

// text is what the pattern would have a prompt say.
func (p *Pattern) text() string {
	switch p.Type {
	case PatternExact, PatternContains:
		return p.Text
	case PatternRegex, PatternGlob:
		return p.Pattern
	default:
		return p.String()
	}
}

// String writes the pattern as it is shown to people: contains "x".
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

// compiledRule is what loading adds to a [Rule] or [Turn].
type compiledRule struct {
	match  match.Text
	source *fill.Source
	index  int    // in its own file
	groups string // names of the captures that it sees
}

// groupsOf writes names of captures as one string, each once.
func groupsOf(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// patternHint says what the expressions of other languages have and RE2 lacks.
func patternHint(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "(?=") || strings.Contains(text, "(?!") || strings.Contains(text, "(?<"):
		return "regular expressions are RE2, without lookaround: say it with `all` and `not`, or with `when`"
	case strings.Contains(text, "invalid escape sequence: `\\"):
		return "regular expressions are RE2, without references to groups and a few escapes"
	}
	return ""
}

// compilePattern makes a matcher; on an error bad leads to the faulty part.
func compilePattern(p *Pattern, path diag.Path) (t match.Text, bad diag.Path, err error) {
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
		parts := make([]match.Text, len(p.Patterns))
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
