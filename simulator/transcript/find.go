package transcript

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
		return o.findID(o.Resume)
	case strings.HasSuffix(o.Resume, ".jsonl"):
		path := o.Resume
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.CWD, path)
		}
		if t, err := readTranscript(path); err != nil || !t.spoken {
			return "", &NotFoundError{ID: o.NewID()}
		}
		return path, nil
	}
	return o.findTitle()
}

// findTitle looks for the one session of the working directory with a title.
func (o Options) findTitle() (string, error) {
	var named []candidate
	for _, c := range candidates(o.projectDir()) {
		if t, err := readTranscript(c.path); err == nil && t.spoken && strings.EqualFold(cmp.Or(t.title, t.aiTitle), strings.TrimSpace(o.Resume)) {
			named = append(named, c)
		}
	}
	switch len(named) {
	case 0:
		return "", &TitleError{Value: o.Resume}
	case 1:
		return named[0].path, nil
	}
	several := &SeveralError{Title: o.Resume}
	for _, c := range named {
		several.Sessions = append(several.Sessions, strings.TrimSuffix(filepath.Base(c.path), ".jsonl")+
			"  (modified "+c.changed.UTC().Format("2006-01-02T15:04:05.000Z")+")")
	}
	return "", several
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
