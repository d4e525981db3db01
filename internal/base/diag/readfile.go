package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxFileBytes is the size of the largest file that [ReadFile] reads.
const MaxFileBytes = 64 << 20

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("file is larger than %d MiB", MaxFileBytes>>20)
)

// ReadFile reads a file that people write, such as a scenario or a fixture. It must
// be a regular file of at most [MaxFileBytes], because a device or a pipe may never
// end and a larger file is surely a mistake. Its errors are *fs.PathError.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name) // before the file is opened, because opening a pipe without a writer blocks
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return os.ReadFile(name) // fails with the error of the system
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	if info.Size() > MaxFileBytes {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAtMost(name, file, info.Size())
}

// readAtMost reads r to its end, up to a limit: files of /proc, and files that grow,
// have more bytes than their size says.
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
