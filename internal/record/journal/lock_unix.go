//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockShared locks the file while this process writes a line. Other processes may write at the same time. lockShared
// waits only while a process removes a partial line. If locking fails, the line is written without a lock.
func lockShared(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_SH) }

// tryLockExclusive locks out other journals. It returns false if another process is writing.
func tryLockExclusive(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func unlock(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }
