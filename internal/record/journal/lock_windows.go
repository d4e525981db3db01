package journal

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockByte returns the byte of the file that is locked. It is far after the end of the file, because on Windows other
// processes cannot read or write a locked byte.
func lockByte() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// lockShared locks the file for writing a line. It waits while another process removes a partial line. An error is
// ignored, so that the line is still written.
func lockShared(file *os.File) {
	_ = windows.LockFileEx(windows.Handle(file.Fd()), 0, 0, 1, 0, lockByte())
}

// tryLockExclusive locks out other journals. It returns false if another process is writing.
func tryLockExclusive(file *os.File) bool {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, lockByte()) == nil
}

func unlock(file *os.File) { _ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, lockByte()) }
