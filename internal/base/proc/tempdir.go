package proc

import (
	"os"
	"path/filepath"
	"sync"
)

// TempDir is a private directory below the system's temporary directory. It is removed by Remove, or when this
// program is killed. A nil TempDir needs no removal.
type TempDir struct {
	Path  string // absolute
	guard guard
	once  sync.Once
	err   error
}

// MakeTempDir creates a directory whose name begins with prefix. The caller must call Remove.
func MakeTempDir(prefix string) (*TempDir, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	return &TempDir{Path: dir, guard: startDirGuard(dir)}, nil
}

// MakeRunDir is like MakeTempDir, but for a run of many processes. These are marked by a variable with the base name
// of the directory. If this program is killed, the remaining marked processes get SIGTERM, and SIGKILL 500 ms later,
// before the directory is removed. Only Linux can find them.
func MakeRunDir(prefix, variable string) (*TempDir, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	return &TempDir{Path: dir, guard: startRunGuard(dir, variable+"="+filepath.Base(dir))}, nil
}

// Remove removes the directory with its content; further calls return the result of the first.
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
