package parity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/docs"
	"github.com/claudeless/claudeless/internal/base/diag"
)

// KnownDifference describes differences that are accepted.
type KnownDifference struct {
	// Path of the differences; `*` matches any text.
	Path TextPatterns `toml:"path,required"`
	// Case selects the cases: the name, its last part or the file; `*` matches any text. Empty means every case.
	Case TextPatterns `toml:"case"`
	// Absent names the sides on which the value or the whole line may be missing: "ours", "real", or a list of both. If
	// it is empty, the value must exist on both sides.
	Absent TextPatterns `toml:"absent"`
	// Right is the side with the correct behaviour: "real", or "ours" if claudeless differs on purpose.
	Right string `toml:"right" enum:"real,ours"`
	// Proved is the date when the entry last matched a difference. `parity` fails if it is older than [maxConfirmationAge].
	Proved string `toml:"proved"`
	// Version is the version of the real CLI that has the difference. It may contain `*`; empty means every version.
	Version string `toml:"version"`
	// Reason is shown to users.
	Reason string `toml:"reason,required"`
	// Issue is a link to a description of the difference.
	Issue string `toml:"issue"`
	// Since is the first version of the real CLI, or the date, for which the difference is known.
	Since string `toml:"since,required"`

	line int
	// comparedWords are the patterns in Case that matched a compared case. usedWords are the patterns in Case and Path that
	// matched a difference. If a value was missing on one side, usedWords also has "absent ours" or "absent real".
	comparedWords, usedWords map[string]bool
}

// TextPatterns are patterns in which `*` matches any text, including slashes and dots. In a file, they are a string or a list.
type TextPatterns []string

// BindValue implements [diag.Binder].
func (g *TextPatterns) BindValue(v diag.Value, b *diag.BindRun) {
	if v.Kind == diag.KindString {
		*g = TextPatterns{v.Text}
		return
	}
	b.BindInto(v, (*[]string)(g))
}

// KnownDifferenceFile is a file of known differences.
type KnownDifferenceFile struct {
	Known []*KnownDifference `toml:"known"`

	name string
}

// DefaultKnownFile is the file of known differences in this repository. Elsewhere the embedded list is used.
const DefaultKnownFile = "docs/parity/known.toml"

// LoadKnownDifferences reads a file of known differences. If [DefaultKnownFile] does not exist, the embedded list takes
// its place. If another file does not exist, the result has no entries.
func LoadKnownDifferences(name string) (*KnownDifferenceFile, error) {
	f := &KnownDifferenceFile{name: name}
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if name != DefaultKnownFile {
			return f, nil
		}
		src, err = docs.KnownDifferences, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the known differences: %w", err)
	}
	ix := diag.IndexTOML(name, src)
	if doubt := ix.FirstPossibleProblem(); doubt != nil {
		return nil, diag.List{*doubt}
	}
	found := ix.BindFileTo(f)
	for i, k := range f.Known {
		k.line = ix.Pos(diag.Path{"known", i}).Line
		if strings.TrimSpace(k.Reason) == "" {
			found = append(found, ix.DiagnosticAt(diag.Path{"known", i}, "the known difference has no `reason`"))
		}
	}
	return f, found.Err()
}

// MarkKnownAndRecordPatternUse sets Known in those differences of a case that an entry of the file accepts.
func (f *KnownDifferenceFile) MarkKnownAndRecordPatternUse(nameOfCase, fileOfCase, cliVersion string, differencesOfCase []Difference) {
	for _, k := range f.Known {
		cases := k.patternsMatchingCase(nameOfCase, fileOfCase)
		if !k.appliesTo(cliVersion) || cases == nil {
			continue
		}
		addToSet(&k.comparedWords, cases...)
		for i := range differencesOfCase {
			form := differencesOfCase[i].sideWithoutValue()
			if form != "" && !slices.Contains(k.Absent, form) {
				continue
			}
			for _, p := range k.Path {
				if !matchesTextPattern(p, differencesOfCase[i].Path) {
					continue
				}
				addToSet(&k.usedWords, append(cases, p, "absent "+form)...)
				differencesOfCase[i].Known = cmp.Or(differencesOfCase[i].Known, k.Reason)
			}
		}
	}
}

// sideWithoutValue returns the side that has no value; empty means both have one.
func (d *Difference) sideWithoutValue() (oursRealOrEmpty string) {
	switch {
	case d.Ours == "" && d.Real != "":
		return "ours"
	case d.Real == "" && d.Ours != "":
		return "real"
	default:
		return ""
	}
}

func addToSet(set *map[string]bool, words ...string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	for _, w := range words {
		(*set)[w] = true
	}
}

func (k *KnownDifference) appliesTo(version string) bool {
	return k.Version == "" || matchesTextPattern(k.Version, version)
}

// patternsMatchingCase returns the patterns in Case that match a case; nil means none. An empty Case gives `*`.
func (k *KnownDifference) patternsMatchingCase(nameOfCase, fileOfCase string) (patterns []string) {
	if len(k.Case) == 0 {
		return []string{"*"}
	}
	stem := strings.TrimSuffix(fileOfCase, path.Ext(fileOfCase)) // the name depends on the directory argument
	for _, c := range k.Case {
		if matchesTextPattern(c, nameOfCase) || matchesTextPattern(c, path.Base(nameOfCase)) || matchesTextPattern(c, fileOfCase) || matchesTextPattern("*/"+c, "/"+stem) {
			patterns = append(patterns, c)
		}
	}
	return patterns
}

// ReportPatternsNoLongerNeeded reports the patterns of entries that seem to be no longer needed: they matched a compared case,
// but no difference. A pattern with `*` might still be needed for a case that was not compared. Therefore it is reported only
// if the run compared every case that the file names.
func (f *KnownDifferenceFile) ReportPatternsNoLongerNeeded(cliVersion string) diag.List {
	var list diag.List
	whole := f.hasComparedAllNamedCases(cliVersion)
	for _, k := range f.Known {
		if !k.appliesTo(cliVersion) {
			continue
		}
		for _, stale := range k.describePatternsWithoutMatch(whole) {
			list = append(list, diag.Diagnostic{Pos: diag.Position{File: f.name, Line: k.line}, Message: "the known difference " + stale + " no longer occurs", Hint: "remove the entry"})
		}
	}
	return list
}

const maxConfirmationAge = 90 * 24 * time.Hour

// ReportOverdueConfirmations reports the entries that were last confirmed more than 90 days before now.
func (f *KnownDifferenceFile) ReportOverdueConfirmations(now time.Time) diag.List {
	var list diag.List
	for _, k := range f.Known {
		if k.Proved == "" {
			continue
		}
		if day, err := time.Parse(time.DateOnly, k.Proved); err != nil || now.Sub(day) > maxConfirmationAge {
			list = append(list, diag.Diagnostic{
				Pos:     diag.Position{File: f.name, Line: k.line},
				Message: fmt.Sprintf("the date %q of the known difference %s is more than 90 days old", k.Proved, strings.Join(k.Path, ", ")),
				Hint:    "compare its cases again, and set `proved` to the date of that run (YYYY-MM-DD)",
			})
		}
	}
	return list
}

// HasUnneededEntryForCase reports whether an entry that names the case would be reported as no longer needed. The difference
// may not occur every time, so the case should be compared again.
func (f *KnownDifferenceFile) HasUnneededEntryForCase(nameOfCase, fileOfCase, cliVersion string) bool {
	whole := f.hasComparedAllNamedCases(cliVersion)
	return slices.ContainsFunc(f.Known, func(k *KnownDifference) bool {
		return len(k.Case) > 0 && k.appliesTo(cliVersion) && k.patternsMatchingCase(nameOfCase, fileOfCase) != nil && len(k.describePatternsWithoutMatch(whole)) > 0
	})
}

func (f *KnownDifferenceFile) hasComparedAllNamedCases(cliVersion string) bool {
	for _, k := range f.Known {
		for _, c := range k.Case {
			if k.appliesTo(cliVersion) && !strings.Contains(c, "*") && !k.comparedWords[c] {
				return false
			}
		}
	}
	return true
}

// describePatternsWithoutMatch describes the patterns of the entry that matched no difference. hasComparedAllCases means that
// the run compared all cases; otherwise case patterns with a `*` are left out.
func (k *KnownDifference) describePatternsWithoutMatch(hasComparedAllCases bool) (descriptions []string) {
	cases, all := k.Case, true
	if len(cases) == 0 {
		cases = TextPatterns{"*"}
	}
	for _, c := range cases {
		judged := k.comparedWords[c] && (hasComparedAllCases || !strings.Contains(c, "*"))
		all = all && judged
		if judged && !k.usedWords[c] {
			descriptions = append(descriptions, fmt.Sprintf("%s of %s", strings.Join(k.Path, ", "), describeCasePattern(c)))
		}
	}
	if len(descriptions) > 0 || !all {
		return descriptions
	}
	for _, p := range k.Path {
		if !k.usedWords[p] {
			descriptions = append(descriptions, fmt.Sprintf("%s of %s", p, describeCasePattern(strings.Join(cases, ", "))))
		}
	}
	for _, side := range k.Absent {
		if !k.usedWords["absent "+side] {
			descriptions = append(descriptions, fmt.Sprintf("%s, absent on the side %q, of %s", strings.Join(k.Path, ", "), side, describeCasePattern(strings.Join(cases, ", "))))
		}
	}
	return descriptions
}

func describeCasePattern(pattern string) string {
	if pattern == "*" {
		return "every case"
	}
	return pattern
}

// matchesTextPattern reports whether s matches a pattern in which `*` matches any text, including slashes and dots.
func matchesTextPattern(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(s, parts[0])
	if last == 0 {
		return ok && rest == ""
	}
	for _, part := range parts[1:last] { // the earliest match leaves the most text for the later parts
		var found bool
		_, rest, found = strings.Cut(rest, part)
		ok = ok && found
	}
	return ok && strings.HasSuffix(rest, parts[last])
}
