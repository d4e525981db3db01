package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/claudeless/claudeless/tests/tooltest"
)

// A file is replaced in one step: until then the old content is complete. Modes and symbolic links are kept, and hard
// links keep the old content.
func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	tooltest.WriteFile(t, dir, "file", "old\n")
	if err := os.Chmod(file, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(dir, "hard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "soft")); err != nil {
		t.Fatal(err)
	}
	tools := newTools(t, testOptions{CWD: dir})
	call(t, tools, "Read", tooltest.Input{"file_path": filepath.Join(dir, "soft")})
	if r := call(t, tools, "Write", tooltest.Input{"file_path": filepath.Join(dir, "soft"), "content": "new\n"}); r.IsError {
		t.Fatalf("Write: %+v", r)
	}
	for name, want := range map[string]string{"file": "new\n", "soft": "new\n", "hard": "old\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	info, err := os.Lstat(filepath.Join(dir, "soft"))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("soft is no link any more: %v, %v", info, err)
	}
	if info, err = os.Stat(file); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
