package proc

import (
	"os"
	"path/filepath"
	"sync"
)

// TempDir is a private directory below the system's temporary one. It goes with
// Remove, or when this program is killed. A nil one has nothing to remove.
type TempDir struct {
	Path  string // absolute
	guard guard
	once  sync.Once
	err   error
}

// MakeTempDir makes one whose name begins like that. The caller must call Remove.
func MakeTempDir(prefix string) (*TempDir, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	return &TempDir{Path: dir, guard: watchDir(dir)}, nil
}

// MakeRunDir is MakeTempDir for a run of many processes, which are marked by a variable
// that has the base name of the directory as its value. When this program is killed,
// those that are still there get SIGTERM, and SIGKILL 500 ms later, before the
// directory goes. Only Linux tells which they are.
func MakeRunDir(prefix, variable string) (*TempDir, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	return &TempDir{Path: dir, guard: watchRun(dir, variable+"="+filepath.Base(dir))}, nil
}

// Remove removes it with all that is in it; further calls return what the first
// did.
func (d *TempDir) Remove() error {
	if d == nil {
		return nil
	}
	d.once.Do(func() {
		d.guard.end()
		d.err = os.RemoveAll(d.Path)
	})
	return d.err
}
