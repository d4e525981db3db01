//go:build unix

package journal

import (
	"os"

	"golang.org/x/sys/unix"
)

// share waits while another process removes a partial line. If the file cannot be
// locked, the line is written nevertheless.
func share(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_SH) }

// exclude locks out other journals; false = another process is writing.
func exclude(file *os.File) bool {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func release(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }
