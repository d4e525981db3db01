//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// share waits until no line is cut off. A file that cannot be locked is written
// all the same.
func share(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_SH) }

// exclude keeps other journals out; false = one of them writes.
func exclude(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func release(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }
