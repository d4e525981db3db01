// Package checkpoint records files before each prompt, to restore them later, even after the session was resumed.
//
// Only files that the session's own editing tools changed are restored. Changes by shell commands and sub-agents are
// detected at the next prompt, and only in tracked files, as in the real CLI.
package checkpoint

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// ErrUnknownPrompt means that no prompt has the given id. Its message is that of the real CLI.
const ErrUnknownPrompt = unknownPromptError("No file checkpoint found for this message.")

type unknownPromptError string

func (e unknownPromptError) Error() string { return string(e) }

// Options specify where to store a history. The zero value stores it in memory.
type Options struct {
	CWD        string     // the working directory, absolute; files below it are recorded with their relative path
	Transcript Transcript // nil means that the copies of files stay in memory and the history is not recorded
	Clock      Clock      // nil means the zero time
	// IsReadOnly reports whether a call only reads. If it is nil, snapshots do not say whether commands may have changed files.
	IsReadOnly func(protocol.ToolUse) bool
}

// Transcript stores the history of checkpoints as lines, and provides the directory for the copies of the files.
type Transcript interface {
	// FileHistoryDir returns the current directory for copies of files; "" means that the copies stay in memory.
	FileHistoryDir() string
	// Record writes an event to the transcript. All events are *[protocol.RawTranscriptOnlyLine].
	Record(ev protocol.Event) error
}

// Clock returns the current time.
type Clock interface{ Now() time.Time }

// History holds the checkpoints of a session. It is safe for concurrent use.
type History struct {
	options Options // fixed at creation

	mu                  sync.Mutex
	checkpoints         []promptCheckpoint
	store               copyStore
	messageUUIDByCallID map[string]string // uuid of the message that contains each call, by the id of the call
}

type promptCheckpoint struct {
	uuid, time   string
	files        map[string]fileBackup // backup of each file, by the name that relativePathIfInWorkingDirectory returns
	hasUntracked bool                  // a command has run that may have changed other files
}

type fileBackup struct {
	File      *string `json:"backupFileName"` // name of the copy; nil means the file did not exist
	Version   int     `json:"version"`
	Time      string  `json:"backupTime"`
	ParentDir string  `json:"realParentDir"`
}

// New creates an empty history. Nothing is read or written yet.
func New(o Options) *History {
	return &History{options: o, store: copyStore{memory: map[string][]byte{}}, messageUUIDByCallID: map[string]string{}}
}

// Load restores the history from a transcript; the copies of files are in dir. Invalid lines are ignored.
func (h *History) Load(lines []json.RawMessage, dir string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, raw := range lines {
		var line transcriptLine
		if json.Unmarshal(raw, &line) != nil {
			continue
		}
		switch line.Type {
		case "file-history-snapshot":
			if line.Snapshot != nil { // a second line about a prompt replaces the first
				h.checkpoints = slices.DeleteFunc(h.checkpoints, func(p promptCheckpoint) bool { return p.uuid == line.MessageID })
				files := map[string]fileBackup{}
				maps.Copy(files, line.Snapshot.Files)
				h.checkpoints = append(h.checkpoints, promptCheckpoint{line.MessageID, line.Snapshot.Timestamp, files, line.Snapshot.HasUntracked})
			}
		case "file-history-delta":
			i := slices.IndexFunc(h.checkpoints, func(p promptCheckpoint) bool { return p.uuid == line.SnapshotID })
			if i >= 0 && line.Backup != nil && line.Path != "" {
				h.checkpoints[i].files[line.Path] = *line.Backup
			}
		}
	}
	h.store.sourceDir = dir
}

type transcriptLine struct {
	Type       string        `json:"type"`
	MessageID  string        `json:"messageId"`
	Snapshot   *snapshotLine `json:"snapshot,omitempty"`
	IsUpdate   *bool         `json:"isSnapshotUpdate,omitempty"`
	SnapshotID string        `json:"snapshotMessageId,omitempty"`
	Path       string        `json:"trackingPath,omitempty"`
	Backup     *fileBackup   `json:"backup,omitempty"`
	Timestamp  string        `json:"timestamp,omitempty"`
}

type snapshotLine struct {
	MessageID    string                `json:"messageId"`
	Files        map[string]fileBackup `json:"trackedFileBackups"`
	Timestamp    string                `json:"timestamp"`
	HasUntracked bool                  `json:"hasUntrackedChanges,omitempty"`
}

// Record records prompts, and changes of files by tools. If it returns an error, some content was not stored.
func (h *History) Record(ev protocol.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch ev := ev.(type) {
	case *protocol.PromptAccepted:
		if !ev.WrittenByCLI && !ev.LocalCommand && !ev.Blocked && ev.Source != "system" {
			return h.beginCheckpoint(ev.UUID)
		}
	case *protocol.AssistantEvent:
		for _, b := range ev.Message.Content {
			if use, is := b.(protocol.ToolUse); is {
				h.messageUUIDByCallID[use.ID] = ev.UUID
			}
		}
	case *protocol.ToolExecuted:
		if ev.Use.Agent != nil {
			return nil // changes by sub-agents are not recorded
		}
		if path, before, edits := fileEditedByCall(ev); edits {
			return h.addFileToLastCheckpoint(ev.Use.ID, path, before)
		}
		if last := len(h.checkpoints) - 1; last >= 0 && !h.checkpoints[last].hasUntracked && h.mayHaveRunModifyingCommand(ev) {
			h.checkpoints[last].hasUntracked = true
			return h.writeSnapshot(h.checkpoints[last])
		}
	case *protocol.Frame:
		if ev.Type == "conversation_reset" {
			h.checkpoints, h.store.sourceDir = nil, ""
		}
	}
	return nil
}

func (h *History) beginCheckpoint(uuid string) error {
	if slices.ContainsFunc(h.checkpoints, func(p promptCheckpoint) bool { return p.uuid == uuid }) {
		return nil // already recorded: in a terminal, this is done before the prompt is written to the transcript
	}
	next := promptCheckpoint{uuid: uuid, time: h.currentUTCTimeForTranscript(), files: map[string]fileBackup{}}
	var failed error
	if err := h.store.switchDirAndCopyOldFiles(h.copiesDir()); err != nil {
		failed = err
	}
	for path, newest := range h.newestBackupByTrackingPath() {
		b, err := h.storeBackupIfChanged(path, newest)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		next.files[path] = b
	}
	h.checkpoints = append(h.checkpoints, next)
	clear(h.messageUUIDByCallID)
	return errors.Join(failed, h.writeSnapshot(next))
}

func (h *History) writeSnapshot(p promptCheckpoint) error {
	return h.writeLine(transcriptLine{Type: "file-history-snapshot", MessageID: p.uuid, IsUpdate: new(false), Snapshot: &snapshotLine{p.uuid, p.files, p.time, p.hasUntracked}})
}

// mayHaveRunModifyingCommand reports whether a command ran that may change files. As in the real CLI, it ignores background commands.
func (h *History) mayHaveRunModifyingCommand(ev *protocol.ToolExecuted) bool {
	var in struct {
		InBackground bool `json:"run_in_background"`
	}
	return h.options.IsReadOnly != nil && ev.Use.Name == "Bash" && ev.Result.NonExecutionKind == "" && json.Unmarshal(ev.Use.Input, &in) == nil && !in.InBackground && !h.options.IsReadOnly(ev.Use)
}

// storeBackupIfChanged backs up a file if its content differs from newest; otherwise it returns newest.
func (h *History) storeBackupIfChanged(path string, newest fileBackup) (fileBackup, error) {
	now, err := contentOrNilIfFileMissing(h.absolutePath(path))
	if err != nil {
		return fileBackup{}, err
	}
	if before, err := h.store.getCopy(newest.File); err == nil && areContentsEqualOrFilesBothMissing(before, now) {
		return newest, nil
	}
	return h.storeBackup(path, now, newest.Version+1)
}

// addFileToLastCheckpoint adds a file to the last checkpoint, with the content from before a tool changed it. It does
// nothing if no checkpoint exists, or if the last one already contains the file.
func (h *History) addFileToLastCheckpoint(toolUseID, path string, before *string) error {
	if len(h.checkpoints) == 0 {
		return nil
	}
	last := h.checkpoints[len(h.checkpoints)-1]
	name := h.relativePathIfInWorkingDirectory(h.absolutePath(path))
	if _, known := last.files[name]; known {
		return nil
	}
	var content []byte
	if before != nil {
		content = append([]byte{}, *before...)
	}
	b, err := h.storeBackup(name, content, 1)
	if err != nil {
		return err
	}
	last.files[name] = b
	return h.writeLine(transcriptLine{Type: "file-history-delta", MessageID: h.messageUUIDByCallID[toolUseID], SnapshotID: last.uuid, Path: name, Backup: &b, Timestamp: h.currentUTCTimeForTranscript()})
}

// storeBackup copies a version of a file; nil content means that the file does not exist.
func (h *History) storeBackup(path string, content []byte, version int) (fileBackup, error) {
	abs := h.absolutePath(path)
	b := fileBackup{Version: version, Time: h.currentUTCTimeForTranscript(), ParentDir: realPathOrEmpty(filepath.Dir(abs))}
	if content == nil {
		return b, nil
	}
	name := backupName(abs, version)
	b.File = &name
	return b, h.store.putCopy(h.copiesDir(), name, content)
}

func (h *History) newestBackupByTrackingPath() map[string]fileBackup {
	files := map[string]fileBackup{}
	for _, p := range h.checkpoints {
		maps.Copy(files, p.files)
	}
	return files
}

// HasNoBackups reports whether no file was copied yet.
func (h *History) HasNoBackups() bool { return len(h.newestBackupByTrackingPath()) == 0 }

func (h *History) oldestBackup(path string) fileBackup {
	for _, p := range h.checkpoints {
		if b, ok := p.files[path]; ok {
			return b
		}
	}
	return fileBackup{}
}

func (h *History) writeLine(l transcriptLine) error {
	raw, err := protocol.Marshal(l)
	if err != nil {
		return err
	}
	if h.options.Transcript == nil {
		return nil
	}
	return h.options.Transcript.Record(&protocol.RawTranscriptOnlyLine{Line: raw})
}

// copiesDir returns the current directory for copies; "" means memory.
func (h *History) copiesDir() string {
	if h.options.Transcript == nil {
		return ""
	}
	return h.options.Transcript.FileHistoryDir()
}

func (h *History) currentUTCTimeForTranscript() string {
	var now time.Time
	if h.options.Clock != nil {
		now = h.options.Clock.Now()
	}
	return now.UTC().Format("2006-01-02T15:04:05.000Z")
}

func (h *History) relativePathIfInWorkingDirectory(path string) string {
	if rel, err := filepath.Rel(h.options.CWD, path); h.options.CWD != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func (h *History) absolutePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(h.options.CWD, path)
}

func fileEditedByCall(ev *protocol.ToolExecuted) (path string, before *string, ok bool) {
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
	return out.FilePath, out.OriginalFile, out.FilePath != ""
}
