//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockShared locks the file for writing a line. It waits while another process removes a partial line. An error is
// ignored, so that the line is still written.
func lockShared(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_SH) }

// tryLockExclusive locks out other journals. It returns false if another process is writing.
func tryLockExclusive(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func unlock(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }
