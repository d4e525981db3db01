package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile bounds the size of a file that is read into memory.
const maxFile = 1 << 30

// readRegular reads a whole file; directories, devices and pipes are errors.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, errDevice
	case info.Size() > maxFile:
		return nil, errTooLarge
	}
	return os.ReadFile(path)
}

var (
	errDirectory = errors.New("EISDIR: illegal operation on a directory")
	errDevice    = errors.New("not a regular file: reading it would block or never end")
	errTooLarge  = errors.New("file is larger than 1 GB")
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

// writeFile writes a file. An existing file keeps its old content until the new one is on disk. It replaces the file by
// a new one with the same mode and follows symbolic links; hard links keep the old content (as 2.1.329 does).
func writeFile(path string, content []byte) error {
	old, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(path, content, 0o644); err != nil {
			_ = os.Remove(path) // remove an incomplete file
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
	beside, err := os.CreateTemp(filepath.Dir(path), ".beside.*") // a random name, because one derived from the file's name may be too long
	if errors.Is(err, fs.ErrPermission) {                         // the directory is not writable
		return os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = beside.Write(content)
	if err = errors.Join(err, beside.Chmod(info.Mode().Perm()), beside.Close()); err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		_ = os.Remove(beside.Name()) // the error of writing is returned
	}
	return err
}
