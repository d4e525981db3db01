// Package match compiles patterns that match texts, and compares JSON values.
//
// Matching takes time linear in the text and never fails: an invalid pattern is reported when it is compiled.
package match

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
)

// Pattern matches strings; the zero value matches all. A Pattern is immutable and may be used by many goroutines.
type Pattern struct{ m matcher }

type matcher interface {
	match(s string) (Captures, bool)
	// explain tells why s does not match; it is called after a failed match. hide removes secrets from the shown pattern.
	explain(s string, hide Redactor) string
}

// Redactor removes secrets from a text before it is shown.
type Redactor interface{ Hide(text string) string }

// Captures are the captured parts of a text. Groups[0] is the part that matches; the texts of the regular expression's
// groups follow. Names holds the name of each element of Groups, "" for unnamed ones.
type Captures struct {
	Groups, Names []string
}

// Named returns the texts of the groups that have a name.
func (c Captures) Named() map[string]string {
	named := map[string]string{}
	for i, name := range c.Names {
		if name != "" {
			named[name] = c.Groups[i]
		}
	}
	return named
}

// Match reports whether s matches and returns the captures.
func (t Pattern) Match(s string) (Captures, bool) {
	if t.m == nil {
		return wholeCapture(s), true
	}
	return t.m.match(s)
}

// Explain explains why s does not match, such as `the text does not contain "x"`. hide removes secrets from the shown pattern.
func (t Pattern) Explain(s string, hide Redactor) string {
	if t.m == nil {
		return "it matches"
	}
	return t.m.explain(s, hide)
}

// GroupNames lists the named groups that a match captures.
func (t Pattern) GroupNames() []string {
	var names []string
	switch m := t.m.(type) {
	case *regex:
		return m.names
	case allMatcher:
		for i := 0; i < len(m) && names == nil; i++ {
			names = m[i].GroupNames()
		}
	case anyOfMatcher:
		for _, part := range m {
			names = append(names, part.GroupNames()...)
		}
	}
	return names
}

func wholeCapture(s string) Captures { return Captures{Groups: []string{s}, Names: []string{""}} }

// Any matches every text.
func Any() Pattern { return Pattern{} }

// Exact matches exactly the text s.
func Exact(s string) Pattern { return Pattern{exactMatcher(s)} }

type exactMatcher string

func (e exactMatcher) match(s string) (Captures, bool) {
	if string(e) != s {
		return Captures{}, false
	}
	return wholeCapture(s), true
}

func (e exactMatcher) explain(s string, hide Redactor) string {
	switch {
	case strings.EqualFold(string(e), s):
		return fmt.Sprintf("it differs from %s only in upper and lower case", quoteShortened(hide.Hide(string(e))))
	case strings.TrimSpace(s) == strings.TrimSpace(string(e)):
		return fmt.Sprintf("it differs from %s in leading or trailing white space", quoteShortened(hide.Hide(string(e))))
	}
	return fmt.Sprintf("it is not %s", quoteShortened(hide.Hide(string(e))))
}

// Contains matches texts that contain s.
func Contains(s string) Pattern { return Pattern{containsMatcher(s)} }

type containsMatcher string

func (c containsMatcher) match(s string) (Captures, bool) {
	if !strings.Contains(s, string(c)) {
		return Captures{}, false
	}
	return wholeCapture(string(c)), true
}

func (c containsMatcher) explain(s string, hide Redactor) string {
	if strings.Contains(strings.ToLower(s), strings.ToLower(string(c))) {
		return fmt.Sprintf("it contains %s only in a different case", quoteShortened(hide.Hide(string(c))))
	}
	return fmt.Sprintf("it does not contain %s", quoteShortened(hide.Hide(string(c))))
}

// All returns a pattern for the texts that all parts match. The captures are those of the first part with named groups, else of parts[0].
func All(parts ...Pattern) Pattern { return Pattern{allMatcher(parts)} }

type allMatcher []Pattern

func (a allMatcher) match(s string) (firstNamed Captures, matches bool) {
	best := wholeCapture(s)
	for i, part := range a {
		c, ok := part.Match(s)
		if !ok {
			return Captures{}, false
		}
		if i == 0 || (len(best.Named()) == 0 && len(c.Named()) > 0) {
			best = c
		}
	}
	return best, true
}

func (a allMatcher) explain(s string, hide Redactor) string {
	for _, part := range a {
		if _, ok := part.Match(s); !ok {
			return part.Explain(s, hide)
		}
	}
	return "it matches"
}

// AnyOf matches texts that at least one part matches; the captures are those of the first matching part.
func AnyOf(parts ...Pattern) Pattern { return Pattern{anyOfMatcher(parts)} }

type anyOfMatcher []Pattern

func (a anyOfMatcher) match(s string) (Captures, bool) {
	for _, part := range a {
		if c, ok := part.Match(s); ok {
			return c, true
		}
	}
	return Captures{}, false
}

func (a anyOfMatcher) explain(s string, hide Redactor) string {
	reasons := make([]string, 0, len(a))
	for _, part := range a {
		reasons = append(reasons, part.Explain(s, hide))
	}
	if len(reasons) == 0 {
		return "the list of patterns is empty"
	}
	return strings.Join(reasons, " and ")
}

// Not returns a pattern for the texts that part does not match.
func Not(part Pattern) Pattern { return Pattern{notMatcher{part}} }

type notMatcher struct{ part Pattern }

func (n notMatcher) match(s string) (Captures, bool) {
	if _, ok := n.part.Match(s); ok {
		return Captures{}, false
	}
	return wholeCapture(s), true
}

func (n notMatcher) explain(string, Redactor) (fixedMismatchReason string) {
	return "it matches the pattern in `not`"
}

type regex struct {
	expr    string
	literal string // text that every match contains; "" means unknown
	names   []string

	re atomic.Pointer[regexp.Regexp] // nil means not yet compiled
}

// compiledExpr compiles the expression at the first call. Several goroutines may each compile it, which is harmless.
func (r *regex) compiledExpr() *regexp.Regexp {
	if re := r.re.Load(); re != nil {
		return re
	}
	re := regexp.MustCompile(r.expr)
	r.re.Store(re)
	return re
}

func (r *regex) match(s string) (Captures, bool) {
	if !strings.Contains(s, r.literal) {
		return Captures{}, false
	}
	re := r.compiledExpr()
	found := re.FindStringSubmatch(s)
	return Captures{Groups: found, Names: re.SubexpNames()}, found != nil
}

func (r *regex) explain(_ string, hide Redactor) string {
	return "the regex " + quoteShortened(hide.Hide(r.expr)) + " does not match"
}

func quoteShortened(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q…", most, s)
	}
	return fmt.Sprintf("%q", s)
}
