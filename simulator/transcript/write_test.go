package transcript

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A transcript is opened once, not for each line (D1). After it was removed or replaced, it is opened again.
func TestWriterKeepsTheFileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "session.jsonl")
	w := &transcriptWriter{}
	defer w.close()
	write := func() *os.File {
		t.Helper()
		if err := w.writeLines(path, 1); err != nil {
			t.Fatal(err)
		}
		return w.open.file
	}
	first := write()
	for range 100 {
		if write() != first {
			t.Fatal("the file was opened again")
		}
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if write() == first {
		t.Error("a line went into a file that was removed")
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write()
	if got, err := os.ReadFile(path); err != nil || string(got) != "1\n" {
		t.Errorf("after the file was moved: %q, %v", got, err)
	}
	other := path + ".other"
	if err := errors.Join(os.WriteFile(other, []byte("0\n"), 0o600), os.Rename(other, path)); err != nil {
		t.Fatal(err)
	}
	write()
	if got, err := os.ReadFile(path); err != nil || string(got) != "0\n1\n" {
		t.Errorf("after another file replaced it: %q, %v", got, err)
	}
}
