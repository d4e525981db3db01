package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeless/claudeless/simulator/protocol"
	"github.com/google/go-cmp/cmp"
)

// edit is a change of a file as the tools do it: on disk, then as an event.
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
	h.See(&protocol.ToolRan{Use: protocol.ToolUse{Name: tool}, Result: protocol.ToolResult{Output: output}})
}

// Checklist row 68: each prompt has a checkpoint; going back undoes everything
// since.
func TestRewind(t *testing.T) {
	dir := t.TempDir()
	a, b, n := filepath.Join(dir, "a"), filepath.Join(dir, "sub", "b"), filepath.Join(dir, "n.ipynb")
	if err := errors.Join(os.Mkdir(filepath.Dir(b), 0o755), os.WriteFile(a, []byte("one\n"), 0o600), os.WriteFile(n, []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &History{}
	edit(t, h, "Write", a, "before any prompt\n")
	h.See(&protocol.Prompted{UUID: "u-1"})
	edit(t, h, "Edit", a, "two\n")
	h.See(&protocol.Prompted{UUID: "injected", Injected: true})
	h.See(&protocol.Prompted{UUID: "u-2"})
	edit(t, h, "Edit", a, "two\nthree\n")
	edit(t, h, "Edit", a, "two\nthree\nfour\n")
	edit(t, h, "Write", b, "new\n")
	edit(t, h, "NotebookEdit", n, "{1}")
	h.See(&protocol.ToolRan{Use: protocol.ToolUse{Name: "Write"}, Result: protocol.ErrorResult("no")})
	h.See(&protocol.ToolRan{Use: protocol.ToolUse{Name: "Bash"}, Result: protocol.ToolResult{Output: map[string]string{"filePath": a}}})

	preview, err := h.Preview("u-2")
	if err != nil {
		t.Fatal(err)
	}
	want := Change{Files: []string{a, n, b}, Insertions: 1, Deletions: 4}
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
	if again, err := h.Preview("u-2"); err != nil || len(again.Files) > 0 {
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
	for _, unknown := range []string{"", "injected", "u-9"} {
		if _, err := h.Rewind(unknown); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", unknown, err)
		}
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
