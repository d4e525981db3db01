package claudecode

import (
	"fmt"
	"slices"
)

// unplayed are measured changes that are not played for the versions before them.
func unplayed() []row {
	return []row{
		{"no system/informational event about auto mode", "2.1.302"},
		{"the reasons of faults of settings", "2.1.304"},
		{"the model fable is claude-fable-5-2", "2.1.321"},
		{"supportsFastMode of fable", "2.1.321"},
	}
}

// Unplayed describes in words what the version is known to do otherwise and what is nevertheless
// played as in the newest version, in the order of the versions.
func (p Profile) Unplayed() []string {
	var lines []string
	for _, r := range unplayed() {
		if !p.reached(r.since) {
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
		rows []row
	}{
		{"", features()},
		{"key ", keys()},
		{"transcript key ", transcriptKeys()},
		{"capability ", capabilities()},
		{"tool ", toolRows()},
		{"plugin ", pluginRows()},
	}
	var missing []row
	for _, t := range tables {
		for _, r := range t.rows {
			if !p.reached(r.since) {
				missing = append(missing, row{fmt.Sprintf("%s%s (since %s)", t.kind, r.name, r.since), r.since})
			}
		}
	}
	slices.SortStableFunc(missing, func(a, b row) int { return slices.Compare(numbers(a.since), numbers(b.since)) })
	var lines []string
	for _, r := range missing {
		lines = append(lines, r.name)
	}
	return lines
}
