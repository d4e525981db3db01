package transcript

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"
)

// SessionInfo describes a saved session for a list of sessions.
type SessionInfo struct {
	ID, Title, Branch string // Title is the first prompt if the session has no title
	Changed           time.Time
	Size              int64 // size of the transcript in bytes
}

// Sessions returns the saved sessions of a project that have a conversation, the last changed first.
func Sessions(o Options) (all []SessionInfo) {
	if path, err := filepath.EvalSymlinks(cmp.Or(o.Project, o.CWD)); err == nil {
		o.Project = path
	}
	for f, t := range o.conversations() {
		var line struct{ GitBranch string }
		for _, e := range t.branchLines(t.leaf) {
			_ = json.Unmarshal(e.raw, &line) // every entry is a JSON object
		}
		id := strings.TrimSuffix(filepath.Base(f.path), ".jsonl")
		all = append(all, SessionInfo{id, cmp.Or(t.title, t.aiTitle, t.firstPrompt(t.leaf), "(session)"), line.GitBranch, f.changed, f.size})
	}
	return all
}
