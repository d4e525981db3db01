package journal

import (
	"errors"
	"io"
	"os"
	"time"
)

// appendLine writes a whole line or nothing of it. What a full disk has taken of
// a line is cut off again: behind half a line, the next one of another process
// could not be read either.
func appendLine(w io.Writer, line []byte) error {
	file, ok := w.(*os.File)
	if !ok {
		_, err := w.Write(line)
		return err
	}
	share(file)
	n, err := file.Write(line)
	release(file)
	if err == nil || n == 0 {
		return err
	}
	return errors.Join(err, cutBack(file, int64(n)))
}

// How often and how long is waited for other journals to have written, which
// they do one line at a time.
const (
	cutTries = 100
	cutPause = time.Millisecond
)

// cutBack takes the last n bytes off that this process has written, once nobody
// else writes. Bytes with others behind them stay.
func cutBack(file *os.File, n int64) error {
	end, err := file.Seek(0, io.SeekCurrent)
	for range cutTries {
		if err != nil {
			return err
		}
		if exclude(file) {
			var done bool
			done, err = cutAt(file, end, n)
			release(file)
			if done || err != nil {
				return err
			}
		}
		time.Sleep(cutPause)
	}
	return nil
}

// cutAt takes the n bytes in front of the end off, if nothing stands behind it.
func cutAt(file *os.File, end, n int64) (done bool, err error) {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return true, err
	}
	if info.Size() != end {
		return false, nil
	}
	return true, file.Truncate(end - n)
}
