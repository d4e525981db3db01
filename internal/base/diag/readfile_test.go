package diag

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, size int64) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if err := os.Truncate(name, size); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	tests := []struct{ name, want, err string }{
		{file("text", "abc", 0), "abc", ""},
		{file("empty", "", 0), "", ""},
		{file("large", "", MaxReadFileBytes+1), "", "file is larger than 64 MiB"},
		{filepath.Join(dir, "missing"), "", fs.ErrNotExist.Error()},
		{dir, "", "is a directory"},
		{os.DevNull, "", "not a regular file"},
	}
	if runtime.GOOS == "linux" { // its file systems store no zeros, and no memory has room for them
		tests = append(tests, struct{ name, want, err string }{file("huge", "", 1<<42), "", "file is larger than 64 MiB"})
	}
	for _, tt := range tests {
		check := func(got string, err error) {
			t.Helper()
			path, ok := errors.AsType[*fs.PathError](err)
			switch {
			case tt.err == "" && (err != nil || got != tt.want):
				t.Errorf("%s: %q, %v", tt.name, got, err)
			case tt.err == fs.ErrNotExist.Error() && errors.Is(err, fs.ErrNotExist):
			case tt.err != "" && (!ok || path.Path != tt.name || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%s: %v, want %s", tt.name, err, tt.err)
			}
		}
		data, err := ReadRegularFile(tt.name)
		check(string(data), err)
		check(ReadRegularFileAsText(tt.name))
	}
}

// counted is an endless reader of zeros that counts them.
type counted struct{ n int }

func (c *counted) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// Reading stops soon after the limit if the file grows meanwhile (A7).
func TestReadFileStopsAtTheLimit(t *testing.T) {
	var zeros counted
	if _, err := readUnlessTooLarge("zeros", &zeros, 0); !errors.Is(err, errTooLarge) || zeros.n > 2*MaxReadFileBytes {
		t.Errorf("%d bytes read: %v", zeros.n, err)
	}
}
