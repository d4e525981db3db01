package journal

import (
	"errors"
	"io"
	"os"
	"time"
)

// appendLine writes a complete line or nothing. If the disk fills up, it removes the partial line, because otherwise
// the next line of another process could not be parsed.
func appendLine(w io.Writer, line []byte) error {
	file, ok := w.(*os.File)
	if !ok {
		_, err := w.Write(line)
		return err
	}
	lockShared(file)
	n, err := file.Write(line)
	unlock(file)
	if err == nil || n == 0 {
		return err
	}
	return errors.Join(err, removeOwnTail(file, int64(n)))
}

// The number and the length of the waits for other journals to finish their lines.
const (
	maxLockAttempts = 100
	lockInterval    = time.Millisecond
)

// removeOwnTail removes the last n bytes that this process has written, when no other
// process is writing. Bytes followed by data of others are kept.
func removeOwnTail(file *os.File, n int64) error {
	end, err := file.Seek(0, io.SeekCurrent)
	for range maxLockAttempts {
		if err != nil {
			return err
		}
		if tryLockExclusive(file) {
			var done bool
			done, err = truncateAt(file, end, n)
			unlock(file)
			if done || err != nil {
				return err
			}
		}
		time.Sleep(lockInterval)
	}
	return nil
}

// truncateAt removes the n bytes before end, if they are at the end of the file.
func truncateAt(file *os.File, end, n int64) (done bool, err error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return true, err
	}
	if info.Size() != end {
		return false, nil
	}
	return true, file.Truncate(end - n)
}
