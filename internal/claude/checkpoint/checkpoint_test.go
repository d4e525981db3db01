package checkpoint

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/simulator/protocol"
)

// edit changes a file as the tools do: on disk, then as an event.
func edit(t *testing.T, h *History, tool, path, content string) {
	t.Helper()
	output := map[string]any{"filePath": path, "originalFile": nil}
	if before, err := os.ReadFile(path); err == nil {
		output["originalFile"] = string(before)
	}
	if tool == "NotebookEdit" {
		output = map[string]any{"notebook_path": path, "original_file": output["originalFile"]}
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	record(t, h, &protocol.ToolExecuted{Use: protocol.ToolUse{ID: "t-1", Name: tool}, Result: protocol.ToolResult{Output: output}})
}

func record(t *testing.T, h *History, ev protocol.Event) {
	t.Helper()
	if err := h.Record(ev); err != nil {
		t.Error(err)
	}
}

// Checklist row 68: each prompt has a checkpoint; rewinding undoes all changes since then.
func TestRewind(t *testing.T) {
	dir := t.TempDir()
	a, b, n := filepath.Join(dir, "a"), filepath.Join(dir, "sub", "b"), filepath.Join(dir, "n.ipynb")
	if err := errors.Join(os.Mkdir(filepath.Dir(b), 0o755), os.WriteFile(a, []byte("one\n"), 0o600), os.WriteFile(n, []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := New(Options{})
	edit(t, h, "Write", a, "before any prompt\n")
	record(t, h, &protocol.PromptAccepted{UUID: "u-1"})
	edit(t, h, "Edit", a, "two\n")
	record(t, h, &protocol.PromptAccepted{UUID: "injected", WrittenByCLI: true})
	record(t, h, &protocol.PromptAccepted{UUID: "u-2"})
	edit(t, h, "Edit", a, "two\nthree\n")
	edit(t, h, "Edit", a, "two\nthree\nfour\n")
	edit(t, h, "Write", b, "new\n")
	edit(t, h, "NotebookEdit", n, "{1}")
	record(t, h, &protocol.ToolExecuted{Use: protocol.ToolUse{Name: "Write"}, Result: protocol.ErrorResult("no")})
	record(t, h, &protocol.ToolExecuted{Use: protocol.ToolUse{Name: "Write", Agent: &protocol.AgentRef{}}, Result: protocol.ToolResult{Output: map[string]any{"filePath": filepath.Join(dir, "by an agent")}}})
	record(t, h, &protocol.PromptAccepted{UUID: "command", LocalCommand: true})
	record(t, h, &protocol.ToolExecuted{Use: protocol.ToolUse{Name: "Bash"}, Result: protocol.ToolResult{Output: map[string]string{"filePath": a}}})

	preview, err := h.PreviewRewind("u-2")
	if err != nil {
		t.Fatal(err)
	}
	want := RewindEffect{Files: []string{a, n, b}, Insertions: 1, Deletions: 4}
	if diff := cmp.Diff(want, preview); diff != "" {
		t.Errorf("preview (-want +got):\n%s", diff)
	}
	if content(t, b) != "new\n" {
		t.Error("a preview changes files")
	}
	if _, err := h.Rewind("u-2"); err != nil {
		t.Fatal(err)
	}
	got := []string{content(t, a), content(t, b), content(t, n)}
	if diff := cmp.Diff([]string{"two\n", "gone", "{}"}, got); diff != "" {
		t.Errorf("u-2 (-want +got):\n%s", diff)
	}
	if again, err := h.PreviewRewind("u-2"); err != nil || len(again.Files) > 0 {
		t.Errorf("a second time: %v %v", again, err)
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Rewind("u-1"); err != nil {
		t.Fatal(err)
	}
	if got := content(t, a); got != "before any prompt\n" {
		t.Errorf("u-1: %q", got)
	}
	for _, unknown := range []string{"", "injected", "command", "u-9"} {
		if _, err := h.Rewind(unknown); !errors.Is(err, ErrUnknownPrompt) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
}

// fakeTranscript stores history lines.
type fakeTranscript struct {
	dir   string
	lines *[]json.RawMessage
}

func (f fakeTranscript) FileHistoryDir() string { return f.dir }

func (f fakeTranscript) Record(ev protocol.Event) error {
	*f.lines = append(*f.lines, ev.(*protocol.RawTranscriptOnlyLine).Line)
	return nil
}

// fixedClock is a clock that does not advance.
type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Checklist row 68: the history is in the transcript and in copies next to it. A process that resumes the session
// continues the history; a fork copies it.
func TestResume(t *testing.T) {
	cwd, state := t.TempDir(), t.TempDir()
	cwd, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(cwd, "a"), filepath.Join(state, "b")
	if err := os.WriteFile(a, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []json.RawMessage
	open := func(id string) *History {
		return New(Options{CWD: cwd, Transcript: fakeTranscript{filepath.Join(state, id), &lines}, Clock: fixedClock{}})
	}
	h := open("S")
	record(t, h, &protocol.PromptAccepted{UUID: "u-1"})
	record(t, h, &protocol.AssistantEvent{UUID: "as-1", Message: protocol.AssistantMessage{Content: []protocol.Block{protocol.ToolUse{ID: "t-1", Name: "Edit"}}}})
	edit(t, h, "Edit", a, "two\n")
	edit(t, h, "Write", b, "new\n")
	if err := os.WriteFile(a, []byte("by somebody else\n"), 0o600); err != nil { // detected at the next prompt
		t.Fatal(err)
	}
	record(t, h, &protocol.PromptAccepted{UUID: "u-2"})
	edit(t, h, "Edit", a, "three\n")
	name := func(path string, version int) string { return backupName(path, version) }
	want := []string{
		`{"type":"file-history-snapshot","messageId":"u-1","snapshot":{"messageId":"u-1","trackedFileBackups":{},"timestamp":"2026-01-02T03:04:05.000Z"},"isSnapshotUpdate":false}`,
		`{"type":"file-history-delta","messageId":"as-1","snapshotMessageId":"u-1","trackingPath":"a","backup":{"backupFileName":"` + name(a, 1) +
			`","version":1,"backupTime":"2026-01-02T03:04:05.000Z","realParentDir":"` + cwd + `"},"timestamp":"2026-01-02T03:04:05.000Z"}`,
	}
	for i, line := range want {
		if diff := cmp.Diff(line, string(lines[i])); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}

	again := open("S")
	again.Load(append(slices.Clone(lines), json.RawMessage(`{"type":"file-history-delta"}`), json.RawMessage("no")), filepath.Join(state, "S"))
	record(t, again, &protocol.PromptAccepted{UUID: "u-3"})
	edit(t, again, "Edit", a, "four\n")
	fork := open("F")
	fork.Load(lines, filepath.Join(state, "S"))
	record(t, fork, &protocol.PromptAccepted{UUID: "u-4"})
	if err := os.RemoveAll(filepath.Join(state, "S")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, a, b string }{
		{"u-3", "three\n", "new\n"}, {"u-2", "by somebody else\n", "new\n"}, {"u-1", "one\n", "gone"},
	} {
		if _, err := fork.Rewind(c.at); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.a, c.b}, []string{content(t, a), content(t, b)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.at, diff)
		}
	}
	if _, err := again.Rewind("u-2"); err == nil {
		t.Error("copies that are gone are no error")
	}
}

// A symbolic link that has replaced a file is not changed, but counted.
func TestLink(t *testing.T) {
	dir := t.TempDir()
	a, other := filepath.Join(dir, "a"), filepath.Join(dir, "other")
	if err := errors.Join(os.WriteFile(a, []byte("one\n"), 0o600), os.WriteFile(other, []byte("mine\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := New(Options{CWD: dir})
	record(t, h, &protocol.PromptAccepted{UUID: "u-1"})
	edit(t, h, "Edit", a, "two\n")
	if err := errors.Join(os.Remove(a), os.Symlink(other, a)); err != nil {
		t.Fatal(err)
	}
	change, err := h.Rewind("u-1")
	if err != nil || change.Skipped != 1 || content(t, other) != "mine\n" {
		t.Errorf("%+v %v, the link's file holds %q", change, err, content(t, other))
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestUntrackedChanges: the first command after a prompt that may change files is noted in the snapshot of the prompt.
func TestUntrackedChanges(t *testing.T) {
	log := &lineLog{}
	h := New(Options{Transcript: log, IsReadOnly: func(use protocol.ToolUse) bool { return string(use.Input) == `{"command":"ls"}` }})
	bash := func(input string) {
		record(t, h, &protocol.ToolExecuted{Use: protocol.ToolUse{Name: "Bash", Input: json.RawMessage(input)}})
	}
	record(t, h, &protocol.PromptAccepted{UUID: "u-1"})
	bash(`{"command":"ls"}`)
	bash(`{"command":"make","run_in_background":true}`)
	if n := len(log.lines); n != 1 {
		t.Errorf("%d lines after commands that change no files, want 1", n)
	}
	bash(`{"command":"make"}`)
	bash(`{"command":"make"}`)
	record(t, h, &protocol.PromptAccepted{UUID: "u-2"})
	if n := len(log.lines); n != 3 {
		t.Fatalf("%d lines, want 3: %s", n, log.lines)
	}
	var line transcriptLine
	if err := json.Unmarshal(log.lines[1], &line); err != nil || line.MessageID != "u-1" || !line.Snapshot.HasUntracked {
		t.Errorf("line %s, error %v: want a snapshot of u-1 with hasUntrackedChanges", log.lines[1], err)
	}
	again := New(Options{})
	again.Load(log.lines, "")
	if n := len(again.checkpoints); n != 2 {
		t.Errorf("%d checkpoints after loading, want 2", n)
	}
}

// lineLog is a [Transcript] that keeps its lines.
type lineLog struct{ lines []json.RawMessage }

func (*lineLog) FileHistoryDir() string { return "" }

func (l *lineLog) Record(ev protocol.Event) error {
	l.lines = append(l.lines, ev.(*protocol.RawTranscriptOnlyLine).Line)
	return nil
}
