package journal

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockByte returns the position of the byte to lock. It is far after the end of the file, because Windows prevents
// other processes from reading and writing a locked byte.
func lockByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// lockShared locks the file while this process writes a line. Other processes may write at the same time. lockShared
// waits only while a process removes a partial line. If locking fails, the line is written without a lock.
func lockShared(file *os.File) {
	_ = windows.LockFileEx(windows.Handle(file.Fd()), 0, 0, 1, 0, lockByte())
}

// tryLockExclusive locks out other journals. It returns false if another process is writing.
func tryLockExclusive(file *os.File) bool {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, lockByte()) == nil
}

func unlock(file *os.File) { _ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, lockByte()) }
