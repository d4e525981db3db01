package proc

import (
	"os"
	"sync"
)

// TempDir makes a private directory below the system's temporary one. It goes
// when remove is called, or when this program is killed; remove may be called
// more than once.
func TempDir(prefix string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", prefix)
	if err != nil {
		return "", nil, err
	}
	guard := watchDir(dir)
	return dir, sync.OnceValue(func() error {
		guard.end()
		return os.RemoveAll(dir)
	}), nil
}
