package journal

import (
	"os"

	"golang.org/x/sys/windows"
)

// beyond returns the locked byte. It is far after the end of the file, because Windows locks also prevent reading and
// writing.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

// share waits while another process removes a partial line. If the file cannot be
// locked, the line is written nevertheless.
func share(file *os.File) {
	_ = windows.LockFileEx(windows.Handle(file.Fd()), 0, 0, 1, 0, beyond())
}

// exclude locks out other journals; false = another process is writing.
func exclude(file *os.File) bool {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, beyond()) == nil
}

func release(file *os.File) { _ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, beyond()) }
