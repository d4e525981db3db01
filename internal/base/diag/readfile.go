package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// MaxFileBytes is the size of the largest file that [ReadFile] reads.
const MaxFileBytes = 64 << 20

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("file is larger than %d MiB", MaxFileBytes>>20)
)

// Open opens a user's recording for reading: a file of any size, or a pipe. It refuses devices, because they may never end.
func Open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode()&fs.ModeDevice != 0 {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return f, nil
}

// ReadFile reads a user's file, such as a scenario or a fixture. It must be a regular file of at most [MaxFileBytes],
// because a device or a pipe may never end, and a larger one is probably a mistake. Its errors are *fs.PathError.
func ReadFile(name string) ([]byte, error) {
	var data []byte
	err := withFile(name, func(file *os.File, size int64) (err error) {
		data, err = readAtMost(name, file, size)
		return err
	})
	return data, err
}

// ReadText is like [ReadFile] but returns a string, without copying the content.
func ReadText(name string) (string, error) {
	var text string
	err := withFile(name, func(file *os.File, size int64) (err error) {
		text, err = textAtMost(name, file, size)
		return err
	})
	return text, err
}

// withFile opens a regular file of at most MaxFileBytes and hands it to read, with its size.
func withFile(name string, read func(file *os.File, size int64) error) error {
	info, err := os.Stat(name) // checked before the file is opened, because opening a pipe without a writer blocks
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err := os.ReadFile(name) // called only for the error of the operating system
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	if info.Size() > MaxFileBytes {
		return &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file, info.Size())
}

// readAtMost reads r up to MaxFileBytes. size is only the expected size: files in /proc, and growing files, can have
// more bytes than they report.
func readAtMost(name string, r io.Reader, size int64) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case len(data) > MaxFileBytes:
			return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

func textAtMost(name string, r io.Reader, size int64) (string, error) {
	var text strings.Builder
	text.Grow(int(size))
	n, err := io.Copy(&text, io.LimitReader(r, MaxFileBytes+1))
	if err == nil && n > MaxFileBytes {
		err = &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	if err != nil {
		return "", err
	}
	return text.String(), nil
}

// Reason returns the text of a file error without its path.
func Reason(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
