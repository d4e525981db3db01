package session

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// find returns the transcript to go on with; empty = none, start afresh.
func (o Options) find() (string, error) {
	switch {
	case o.Resume != "":
		return o.findResume()
	case o.Continue:
		for _, c := range candidates(o.projectDir()) {
			if t, err := readTranscript(c.path); err == nil && t.spoken {
				return c.path, nil
			}
		}
	}
	return "", nil
}

func (o Options) findResume() (string, error) {
	switch {
	case isID(o.Resume):
		return o.findID(strings.ToLower(o.Resume))
	case strings.HasSuffix(o.Resume, ".jsonl"):
		path := o.Resume
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.CWD, path)
		}
		if t, err := readTranscript(path); err != nil || !t.spoken {
			return "", &NotFoundError{ID: o.Resume}
		}
		return path, nil
	}
	for _, c := range candidates(o.projectDir()) {
		if t, err := readTranscript(c.path); err == nil && t.spoken && strings.EqualFold(t.title, strings.TrimSpace(o.Resume)) {
			return c.path, nil
		}
	}
	return "", &TitleError{Value: o.Resume}
}

// findID looks in the folder of the working directory first, then in all
// others: a session can be resumed from anywhere.
func (o Options) findID(id string) (string, error) {
	name := id + ".jsonl"
	paths := []string{filepath.Join(o.projectDir(), name)}
	projects := filepath.Join(o.StateDir, "projects")
	entries, _ := os.ReadDir(projects) // an unreadable folder holds no session
	for _, e := range entries {
		paths = append(paths, filepath.Join(projects, e.Name(), name))
	}
	for _, path := range paths {
		if t, err := readTranscript(path); err == nil && t.spoken {
			return path, nil
		}
	}
	return "", &NotFoundError{ID: o.Resume}
}

type candidate struct {
	path    string
	changed time.Time
}

// candidates lists the transcripts of a folder, last changed first.
func candidates(dir string) []candidate {
	entries, _ := os.ReadDir(dir) // a folder that is not there holds no session
	var out []candidate
	for _, e := range entries {
		if !isID(strings.TrimSuffix(e.Name(), ".jsonl")) || filepath.Ext(e.Name()) != ".jsonl" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			out = append(out, candidate{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		return cmp.Or(b.changed.Compare(a.changed), cmp.Compare(a.path, b.path))
	})
	return out
}
