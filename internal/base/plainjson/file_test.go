package plainjson

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceDurably: the whole content is in the temporary file when it is flushed; if that fails, the old content stays
// and no temporary file is left.
func TestReplaceDurably(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.json")
	if err := ReplaceFileDurably(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	flush := func(f *os.File) error {
		if got, err := os.ReadFile(f.Name()); string(got) != "new" {
			t.Errorf("flushed %q, %v", got, err)
		}
		return full
	}
	if err := replaceAtomically(path, []byte("new"), 0o600, flush); !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
	if got, err := os.ReadFile(path); string(got) != "old" {
		t.Errorf("content %q, %v", got, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
