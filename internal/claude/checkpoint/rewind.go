package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// RewindEffect lists the changes that a rewind makes.
type RewindEffect struct {
	Files                 []string // absolute, sorted
	Insertions, Deletions int      // number of lines
	Skipped               int      // counts files that were not restored because a link has replaced the file or its directory
}

// restoreTarget is the content to restore in a file; nil content means that the file is removed.
type restoreTarget struct {
	content []byte
	parent  string // path of the directory without links, at the time of the backup; empty means unknown
}

// PreviewRewind returns what [History.Rewind] would change. It includes files that Rewind skips because of a link.
func (h *History) PreviewRewind(promptUUID string) (RewindEffect, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, change, err := h.restoreTargetsOfAllTrackedFiles(promptUUID)
	return change, err
}

// Rewind restores all files to their content at a prompt. The error is [ErrUnknownPrompt] if no prompt has this id.
func (h *History) Rewind(promptUUID string) (RewindEffect, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	files, change, err := h.restoreTargetsOfAllTrackedFiles(promptUUID)
	if err != nil {
		return change, err
	}
	for _, path := range change.Files {
		if isIrregularFileOrDirectoryMoved(path, files[path].parent) {
			change.Skipped++
			continue
		}
		if err := writeOrRemoveFile(path, files[path].content); err != nil {
			return change, fmt.Errorf("restoring a file from its checkpoint: %w", err)
		}
	}
	return change, nil
}

func (h *History) restoreTargetsOfAllTrackedFiles(uuid string) (files map[string]restoreTarget, effect RewindEffect, err error) {
	var point *promptCheckpoint
	for i := range h.checkpoints {
		if h.checkpoints[i].uuid == uuid && uuid != "" {
			point = &h.checkpoints[i]
		}
	}
	if point == nil {
		return nil, effect, ErrUnknownPrompt
	}
	files = map[string]restoreTarget{}
	for path := range maps.Keys(h.newestBackupByTrackingPath()) {
		b, known := point.files[path]
		if !known {
			b = h.oldestBackup(path)
		}
		content, err := h.store.getCopy(b.File)
		if err != nil {
			return nil, effect, fmt.Errorf("reading the checkpoint of a file: %w", err)
		}
		files[h.absolutePath(path)] = restoreTarget{content, b.ParentDir}
	}
	effect, err = effectOfRestoringAll(files)
	return files, effect, err
}

func effectOfRestoringAll(files map[string]restoreTarget) (RewindEffect, error) {
	var c RewindEffect
	for path, want := range files {
		now, err := contentOrNilIfFileMissing(path)
		if err != nil {
			return c, fmt.Errorf("comparing a file with its checkpoint: %w", err)
		}
		if areContentsEqualOrFilesBothMissing(now, want.content) {
			continue
		}
		c.Files = append(c.Files, path)
		for _, hunk := range textdiff.Hunks(string(now), string(want.content), 0) {
			for _, line := range hunk.Lines {
				switch {
				case strings.HasPrefix(line, "+"):
					c.Insertions++
				case strings.HasPrefix(line, "-"):
					c.Deletions++
				}
			}
		}
	}
	slices.Sort(c.Files)
	return c, nil
}

// isIrregularFileOrDirectoryMoved reports whether path is a link or another irregular file, or whether its directory
// now resolves to another path than recordedRealDirectory. The directory is not checked if either path is unknown.
func isIrregularFileOrDirectoryMoved(path, recordedRealDirectory string) bool {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return true
	}
	now := realPathOrEmpty(filepath.Dir(path))
	return recordedRealDirectory != "" && now != "" && now != recordedRealDirectory
}

func realPathOrEmpty(dir string) string {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	return path
}

// contentOrNilIfFileMissing returns a file's content; nil means no such file.
func contentOrNilIfFileMissing(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

func areContentsEqualOrFilesBothMissing(a, b []byte) bool {
	return (a == nil) == (b == nil) && bytes.Equal(a, b)
}

func writeOrRemoveFile(path string, content []byte) error {
	if content == nil {
		return os.Remove(path)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, mode)
}
