package parity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/diag"
)

// orderedKinds contains the kinds of changes in the order of the report: options of the command line, events, keys of
// events, lists such as the list of tools, values that do not depend on the prompt, and all other values.
const orderedKinds = "options events keys lists defaults values"

// VersionChange is a difference at one path between two versions, over all cases.
type VersionChange struct {
	Kind string `json:"kind"` // one of those in orderedKinds
	Path string `json:"path"` // names the event and key, like the path of a [Difference]
	// Before and After are the values in the first case; empty means absent.
	Before string   `json:"before,omitempty"`
	After  string   `json:"after,omitempty"`
	Cases  []string `json:"cases,omitempty"` // the cases with this difference; empty for a difference in options
}

// HelpEntries holds the flags and commands in the help of one version.
type HelpEntries struct {
	Version string
	Words   map[string][]string // lists the words of each kind, "options" and "commands"
}

// ConvertToVersionComparison makes r a report about two versions of the real CLI. Such a report lists each path that
// differs, with the cases. Differences in the options and commands come first.
func (r *Report) ConvertToVersionComparison(oldHelp, newHelp HelpEntries) {
	r.Versions = []string{oldHelp.Version, newHelp.Version}
	r.Changes = []VersionChange{}
	for _, path := range sortedKeysOf(oldHelp.Words, newHelp.Words) {
		c := VersionChange{Kind: "options", Path: path, Before: elementsOnlyOnThisSidePrefix + joinElementsOnlyInFirst(oldHelp.Words[path], newHelp.Words[path]), After: elementsOnlyOnThisSidePrefix + joinElementsOnlyInFirst(newHelp.Words[path], oldHelp.Words[path])}
		if c.Before+c.After != elementsOnlyOnThisSidePrefix+elementsOnlyOnThisSidePrefix {
			r.Changes = append(r.Changes, c)
		}
	}
	at := map[string]int{} // index in r.Changes, by "+" (added), "-" (removed) or the mark for a change, and path
	for _, v := range r.Cases {
		for _, d := range v.Differences {
			c := VersionChange{Path: d.Path, Before: d.Ours, After: d.Real}
			key := c.additionRemovalOrChangeMark() + c.Path
			i, ok := at[key]
			if !ok {
				i, at[key] = len(r.Changes), len(r.Changes)
				r.Changes = append(r.Changes, c)
			}
			r.Changes[i].Cases = append(r.Changes[i].Cases, v.Case)
		}
	}
	for i, c := range r.Changes {
		_, appears := at["+"+c.Path]
		_, disappears := at["-"+c.Path]
		r.Changes[i].Kind = cmp.Or(c.Kind, c.kindFromPathAndValues(appears && disappears))
	}
	slices.SortStableFunc(r.Changes, func(a, b VersionChange) int {
		return strings.Index(orderedKinds, a.Kind) - strings.Index(orderedKinds, b.Kind)
	})
}

// kindFromPathAndValues returns one of the kinds in orderedKinds. appearsAndDisappears means that the value at this path
// is new in one case and missing in another.
func (c *VersionChange) kindFromPathAndValues(appearsAndDisappears bool) (eventsKeysListsDefaultsOrValues string) {
	surface, rest, _ := strings.Cut(c.Path, ".")
	kind, key, _ := strings.Cut(rest, ".")
	describesSession := surface == "stdout" && (kind == "system/init" || strings.HasPrefix(kind, "control_response"))
	switch {
	case appearsAndDisappears || rest == "" || surface == "requests" || surface == "files":
		return "values"
	case c.additionRemovalOrChangeMark() != "~" && key == "":
		return "events"
	case c.additionRemovalOrChangeMark() != "~":
		return "keys"
	case strings.HasPrefix(c.Before, elementsOnlyOnThisSidePrefix) && describesSession:
		return "lists"
	case describesSession:
		return "defaults"
	}
	return "values"
}

func (c *VersionChange) additionRemovalOrChangeMark() string {
	switch {
	case c.Before == "":
		return "+"
	case c.After == "":
		return "-"
	}
	return "~"
}

// versionChangeLines returns a header with the two versions, and the changes of each kind below its name.
func (r *Report) versionChangeLines() []string {
	lines := []string{fmt.Sprintf("%s → %s\n", r.Versions[0], r.Versions[1])}
	for i := range r.Changes {
		c := &r.Changes[i]
		if i == 0 || c.Kind != r.Changes[i-1].Kind {
			lines = append(lines, c.Kind+":\n")
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s%s\n", c.additionRemovalOrChangeMark(), c.Path, c.beforeAndAfterText(), firstCaseNamesAndCount(c.Cases)))
	}
	return lines
}

func (c *VersionChange) beforeAndAfterText() string {
	gone, isList := strings.CutPrefix(c.Before, elementsOnlyOnThisSidePrefix)
	come, isListToo := strings.CutPrefix(c.After, elementsOnlyOnThisSidePrefix)
	switch {
	case c.additionRemovalOrChangeMark() == "+":
		return shortenToOneLine(c.After)
	case c.additionRemovalOrChangeMark() == "-":
		return shortenToOneLine(c.Before)
	case isList && isListToo:
		var words []string
		for w := range strings.FieldsSeq(gone) {
			words = append(words, "-"+w)
		}
		for w := range strings.FieldsSeq(come) {
			words = append(words, "+"+w)
		}
		return shortenToOneLine(strings.Join(words, " "))
	}
	shared := 0 // long values begin shortly before the first difference
	for shared < min(len(c.Before), len(c.After)) && c.Before[shared] == c.After[shared] {
		shared++
	}
	start := strings.LastIndexAny(c.Before[:max(shared-40, 0)], " ,\n") + 1
	return shortenToOneLine(c.Before[start:]) + " → " + shortenToOneLine(c.After[start:])
}

func shortenToOneLine(s string) string {
	const most = 120
	return diag.Shorten(strings.ReplaceAll(s, "\n", `\n`), most)
}

// firstCaseNamesAndCount returns the number of cases and the names of the first three, in parentheses.
func firstCaseNamesAndCount(caseNames []string) string {
	const most = 3
	switch len(caseNames) {
	case 0:
		return ""
	case 1:
		return " (" + caseNames[0] + ")"
	}
	more := ""
	if len(caseNames) > most {
		more = ", …"
	}
	return fmt.Sprintf(" (%d cases: %s%s)", len(caseNames), strings.Join(caseNames[:min(most, len(caseNames))], ", "), more)
}
