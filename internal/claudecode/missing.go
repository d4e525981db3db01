package claudecode

import (
	"fmt"
	"slices"
)

// unsimulated are measured changes that are not played for the versions before them.
func unsimulated() []versionRow {
	return []versionRow{
		{"no system/informational event about auto mode", "2.1.302"},
		{"the reasons of faults of settings", "2.1.304"},
		{"the model fable is claude-fable-5-2", "2.1.321"},
		{"supportsFastMode of fable", "2.1.321"},
	}
}

// Unsimulated describes the known behaviour of the version that is not simulated, because it is played as in the
// newest version. The lines are in the order of the versions.
func (p Profile) Unsimulated() []string {
	var lines []string
	for _, r := range unsimulated() {
		if !p.isAtLeast(r.since) {
			lines = append(lines, r.name+" (since "+r.since+")")
		}
	}
	return lines
}

// Missing describes in words what the version lacks and newer measured versions have, in the
// order of the versions.
func (p Profile) Missing() []string {
	tables := []struct {
		kind string
		rows []versionRow
	}{
		{"", featureRows()},
		{"key ", eventKeyRows()},
		{"transcript key ", transcriptKeyRows()},
		{"capability ", capabilities()},
		{"tool ", toolRows()},
		{"plugin ", pluginRows()},
	}
	var missing []versionRow
	for _, t := range tables {
		for _, r := range t.rows {
			if !p.isAtLeast(r.since) {
				missing = append(missing, versionRow{fmt.Sprintf("%s%s (since %s)", t.kind, r.name, r.since), r.since})
			}
		}
	}
	slices.SortStableFunc(missing, func(a, b versionRow) int { return slices.Compare(versionNumbers(a.since), versionNumbers(b.since)) })
	var lines []string
	for _, r := range missing {
		lines = append(lines, r.name)
	}
	return lines
}
