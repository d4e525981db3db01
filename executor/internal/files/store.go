package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

const maxFileBytes = 1 << 30

// readRegularFile reads a whole file. It returns an error for directories, devices and pipes.
func readRegularFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, errNotRegularFile
	case info.Size() > maxFileBytes:
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

var (
	errDirectory      = errors.New("EISDIR: illegal operation on a directory")
	errNotRegularFile = errors.New("not a regular file: reading it would block or never end")
	errTooLarge       = errors.New("file is larger than 1 GB")
)

// describeError formats a file error as Node.js does.
func describeError(err error, op, path string) string {
	code := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = "ENOENT: no such file or directory"
	case errors.Is(err, fs.ErrPermission):
		code = "EACCES: permission denied"
	case errors.Is(err, syscall.ENOTDIR):
		code = "ENOTDIR: not a directory"
	case errors.Is(err, errDirectory):
		op = "read"
		code = err.Error()
	default:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return err.Error() + ", " + op + " '" + path + "'"
	}
	return code + ", " + op + " '" + path + "'"
}

// createOrReplaceFileKeepingMode writes a file. It replaces an existing file by a new one with the same mode, so that a failure
// leaves the old content. If the directory is not writable, it overwrites the existing file instead. If path is a symbolic
// link, its target is written. Other hard links of the file keep the old content (observed with 2.1.329).
func createOrReplaceFileKeepingMode(path string, content []byte) error {
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(path, content, 0o644); err != nil {
			_ = os.Remove(path) // the file may be incomplete
		}
		return err
	}
	if err != nil {
		return err
	}
	info, err := old.Stat()
	_ = old.Close() // nothing was written
	if err != nil {
		return err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	err = plainjson.ReplaceFile(path, content, info.Mode().Perm())
	if errors.Is(err, fs.ErrPermission) { // the directory is not writable
		return os.WriteFile(path, content, 0o644)
	}
	return err
}
