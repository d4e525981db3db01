package journal

import (
	"os"

	"golang.org/x/sys/windows"
)

// beyond is the byte that is locked: it lies far behind all that is written,
// because here a lock keeps others from reading and writing.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// share waits until no line is cut off. A file that cannot be locked is written
// all the same.
func share(file *os.File) {
	_ = windows.LockFileEx(windows.Handle(file.Fd()), 0, 0, 1, 0, beyond())
}

// exclude keeps other journals out; false = one of them writes.
func exclude(file *os.File) bool {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, beyond()) == nil
}

func release(file *os.File) { _ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, beyond()) }
