package proc

import (
	"os"
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
