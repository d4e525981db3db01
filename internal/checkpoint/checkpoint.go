// Package checkpoint remembers what files looked like when each prompt came,
// so that they can be put back.
//
// Its one invariant: only files that the session's own editing tools changed
// are ever written. It reads events and must not know where they come from;
// what shell commands change it does not see, as the real CLI does not.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/textdiff"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrUnknown says that no prompt has the id. Its text is the real CLI's.
var ErrUnknown = errors.New("No file checkpoint found for this message.") //nolint:staticcheck // the text users see

// History holds the checkpoints of a session. The zero value is empty; it is
// safe for concurrent use.
type History struct {
	mu     sync.Mutex
	points []point
}

// point is one prompt with the files that were changed after it, as they were
// before.
type point struct {
	uuid   string
	before map[string]*string // by absolute path; nil = there was no such file
}

// Change is what going back does.
type Change struct {
	Files                 []string // absolute, sorted
	Insertions, Deletions int      // of lines
}

// See takes note of prompts and of what tools did to files.
func (h *History) See(ev protocol.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch ev := ev.(type) {
	case *protocol.Prompted:
		if !ev.Injected {
			h.points = append(h.points, point{uuid: ev.UUID, before: map[string]*string{}})
		}
	case *protocol.ToolRan:
		path, before, edits := edited(ev)
		if !edits || len(h.points) == 0 {
			return
		}
		last := h.points[len(h.points)-1].before
		if _, known := last[path]; !known {
			last[path] = before
		}
	}
}

// edited reads from the result of an editing tool what the file was before.
func edited(ev *protocol.ToolRan) (path string, before *string, ok bool) {
	if ev.Result.IsError || ev.Result.NonExecutionKind != "" {
		return "", nil, false
	}
	switch ev.Use.Name {
	case "Write", "Edit", "NotebookEdit":
	default:
		return "", nil, false
	}
	raw, err := protocol.Marshal(ev.Result.Output)
	if err != nil {
		return "", nil, false
	}
	var out struct {
		FilePath     string  `json:"filePath"`
		OriginalFile *string `json:"originalFile"`
		NotebookPath string  `json:"notebook_path"`
		Notebook     *string `json:"original_file"`
	}
	if json.Unmarshal(raw, &out) != nil {
		return "", nil, false
	}
	if out.NotebookPath != "" {
		return out.NotebookPath, out.Notebook, out.Notebook != nil
	}
	return out.FilePath, out.OriginalFile, filepath.IsAbs(out.FilePath)
}

// Preview tells what [History.Rewind] would do.
func (h *History) Preview(uuid string) (Change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	files, err := h.since(uuid)
	if err != nil {
		return Change{}, err
	}
	return compare(files)
}

// Rewind puts all files back to what they were when the prompt came.
func (h *History) Rewind(uuid string) (Change, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	files, err := h.since(uuid)
	if err != nil {
		return Change{}, err
	}
	change, err := compare(files)
	if err != nil {
		return change, err
	}
	for _, path := range change.Files {
		if err := restore(path, files[path]); err != nil {
			return change, fmt.Errorf("restoring a file: %w", err)
		}
	}
	return change, nil
}

// since joins the checkpoints from a prompt on; of each file the oldest counts.
func (h *History) since(uuid string) (map[string]*string, error) {
	from := slices.IndexFunc(h.points, func(p point) bool { return p.uuid == uuid })
	if from < 0 {
		return nil, ErrUnknown
	}
	files := map[string]*string{}
	for _, p := range h.points[from:] {
		for path, before := range p.before {
			if _, known := files[path]; !known {
				files[path] = before
			}
		}
	}
	return files, nil
}

// compare finds the files that differ now and counts the lines that going back
// adds and removes.
func compare(files map[string]*string) (Change, error) {
	var c Change
	for path, before := range files {
		now, err := os.ReadFile(path)
		exists := err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, fmt.Errorf("reading a changed file: %w", err)
		}
		if exists == (before != nil) && (before == nil || *before == string(now)) {
			continue
		}
		c.Files = append(c.Files, path)
		text := ""
		if before != nil {
			text = *before
		}
		for _, hunk := range textdiff.Hunks(string(now), text, 0) {
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

func restore(path string, before *string) error {
	if before == nil {
		return os.Remove(path)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(*before), mode)
}
