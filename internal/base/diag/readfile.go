package diag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxReadFileBytes is the size of the largest file that [ReadRegularFile] reads.
const MaxReadFileBytes = 64 << 20

var (
	errNotRegular = errors.New("not a regular file")
	errTooLarge   = fmt.Errorf("file is larger than %d MiB", MaxReadFileBytes>>20)
)

// OpenUnlessDevice opens a user's recording for reading: a file of any size, or a pipe. It refuses devices, which may never end.
func OpenUnlessDevice(name string) (*os.File, error) {
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

// JoinUnlessAbsolute returns the path of a file. A relative name is relative to dir.
func JoinUnlessAbsolute(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// ReadRegularFile is like [ReadRegularFileAsText] but returns bytes.
func ReadRegularFile(name string) ([]byte, error) {
	text, err := ReadRegularFileAsText(name)
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// ReadRegularFileAsText reads a user's file, such as a scenario or a fixture. It refuses devices and pipes, which may never end,
// and files over [MaxReadFileBytes], which are probably a mistake. Its errors are *fs.PathError.
func ReadRegularFileAsText(name string) (string, error) {
	info, err := os.Stat(name) // checked before the file is opened, because opening a pipe without a writer blocks
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		_, err := os.ReadFile(name) // called only for the error of the operating system
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	if info.Size() > MaxReadFileBytes {
		return "", &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return readUnlessTooLarge(name, file, info.Size())
}

// readUnlessTooLarge reads r up to MaxReadFileBytes. expectedSize is a hint: files in /proc and growing files can be larger.
func readUnlessTooLarge(name string, r io.Reader, expectedSize int64) (string, error) {
	var text strings.Builder
	text.Grow(int(expectedSize))
	n, err := io.Copy(&text, io.LimitReader(r, MaxReadFileBytes+1))
	if err == nil && n > MaxReadFileBytes {
		err = &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	if err != nil {
		return "", err
	}
	return text.String(), nil
}

// FileErrorTextWithoutPath returns the text of a file error without its path.
func FileErrorTextWithoutPath(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	return err.Error()
}
