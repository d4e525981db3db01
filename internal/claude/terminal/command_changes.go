package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// filesChangedByCommand are the changes that a command made in its repository, as in the structured result of Bash.
type filesChangedByCommand struct {
	Files        []fileChange `json:"files"`
	MoreFiles    int          `json:"moreFiles"` // number of changed files that are not in Files
	ChangedFiles []string     `json:"changedFiles"`
	IsUnknown    bool         `json:"unavailable"`
}

type fileChange struct {
	Path    string          `json:"filePath"`
	Hunks   []textdiff.Hunk `json:"hunks"`
	Created bool            `json:"created"`
	Deleted bool            `json:"deleted"`
}

func fileChangeTitle(f fileChange, shownPath string, rows []string) string {
	title := "Updated " + shownPath
	if f.Created {
		title = "Created " + shownPath
	} else if f.Deleted {
		title = "Deleted " + shownPath
	}
	added, removed := countAddedAndRemovedRows(rows)
	if added > 0 {
		title += fmt.Sprintf(" +%d", added)
	}
	if removed > 0 {
		title += fmt.Sprintf(" -%d", removed)
	}
	return title
}

func (v *eventView) namesOfMoreFiles(d *filesChangedByCommand, count int) string {
	const maxNames = 3
	rows := []string{fmt.Sprintf("… +%d files changed", count)}
	for _, path := range d.ChangedFiles {
		switch {
		case slices.ContainsFunc(d.Files, func(f fileChange) bool { return f.Path == path }):
		case len(rows) > maxNames:
			return strings.Join(append(rows, fmt.Sprintf("+%d more", count-maxNames)), "\n")
		default:
			rows = append(rows, relativePathIfInside(v.cwd, path))
		}
	}
	return strings.Join(rows, "\n")
}
