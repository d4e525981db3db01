package gitworktree

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// Diff is the set of changes that a command has made in its repository (observed with 2.1.330).
type Diff struct {
	Files        []FileDiff `json:"files"`
	MoreFiles    int        `json:"moreFiles"` // number of changed files that are not in Files
	ChangedFiles []string   `json:"changedFiles,omitempty"`
	IsUnknown    bool       `json:"unavailable,omitempty"` // the changes could not be determined
}

// FileDiff is the difference of one text file.
type FileDiff struct {
	FilePath string          `json:"filePath"`
	Hunks    []textdiff.Hunk `json:"hunks"`
	Created  bool            `json:"created,omitempty"`
	Deleted  bool            `json:"deleted,omitempty"`
}

// Limits of the differences in a [Diff].
const (
	maxFilesPerDiff  = 5
	maxDiffLines     = 400
	maxDiffBytes     = 64_000
	diffContextLines = 3
)

// SessionDiffer computes a [Diff] for each group of changes in a session. The zero value is ready to use.
type SessionDiffer struct{ hasReportedChanges atomic.Bool }

// DiffSince returns the changes since earlierSnapshot; for a nil snapshot, it returns no changes.
func (s *SessionDiffer) DiffSince(ctx context.Context, earlierSnapshot *Snapshot) *Diff {
	if earlierSnapshot != nil && earlierSnapshot.IsNew {
		return &Diff{Files: []FileDiff{}, IsUnknown: true}
	}
	return s.NextDiff(earlierSnapshot.Changes(ctx))
}

// NextDiff converts changes to a [Diff]; without changes it returns nil. As in the real CLI, the first changes of a session have the
// form of git diff. They include changed modes, and the empty side of a new or deleted file starts at line 0. Later changes are
// computed without git. They omit changed modes, and the files are sorted by modification time.
func (s *SessionDiffer) NextDiff(changes []Change) *Diff {
	isFirst := !s.hasReportedChanges.Load()
	if !isFirst {
		changes = slices.DeleteFunc(changes, func(c Change) bool { return c.OnlyMode })
		slices.SortStableFunc(changes, func(a, b Change) int { return a.Modified.Compare(b.Modified) })
	}
	if len(changes) == 0 {
		return nil
	}
	s.hasReportedChanges.Store(true)
	d, longest := &Diff{Files: []FileDiff{}}, maxDiffLines
	if isFirst {
		longest-- // the limit of the first changes is one line lower (observed)
	}
	for _, c := range changes {
		d.ChangedFiles = append(d.ChangedFiles, c.Path)
		f := FileDiff{FilePath: c.Path, Created: c.IsCreated, Deleted: c.IsDeleted, Hunks: textdiff.Hunks(c.Before, c.After, diffContextLines)}
		if isFirst {
			f.convertHunksToGitDiffForm()
		}
		if lines, size := f.lineAndByteCount(); c.IsText && !c.OnlyMode && lines <= longest && size < maxDiffBytes {
			d.Files = append(d.Files, f)
		}
	}
	if isFirst { // git lists empty files first
		slices.SortStableFunc(d.Files, func(a, b FileDiff) int { return min(len(a.Hunks), 1) - min(len(b.Hunks), 1) })
	}
	d.Files = d.Files[:min(len(d.Files), maxFilesPerDiff)]
	d.MoreFiles = len(changes) - len(d.Files)
	return d
}

// convertHunksToGitDiffForm changes the hunks to the form that the real CLI derives from git diff. A side without lines, such as
// the old side of a new file, starts at line 0. The line "\ No newline at end of file" is left out.
func (f *FileDiff) convertHunksToGitDiffForm() {
	for i := range f.Hunks {
		h := &f.Hunks[i]
		if h.OldLines == 0 {
			h.OldStart--
		}
		if h.NewLines == 0 {
			h.NewStart--
		}
		h.Lines = slices.DeleteFunc(h.Lines, func(line string) bool { return strings.HasPrefix(line, `\`) })
	}
}

func (f *FileDiff) lineAndByteCount() (lines, size int) {
	for _, h := range f.Hunks {
		lines += len(h.Lines)
		for _, line := range h.Lines {
			size += len(line)
		}
	}
	return lines, size
}
