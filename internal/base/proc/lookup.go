package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Replace replaces this process with the command, in the command's directory; only inheritable open files are kept.
// It returns only on failure; the error is [errors.ErrUnsupported] on systems that cannot do this.
func Replace(c Command) error {
	path, err := c.LookPath()
	if err != nil {
		return err
	}
	return replaceProcess(path, append([]string{c.Path}, c.Args...), c.Env)
}

// lookupError wraps err without repeating its text.
type lookupError struct {
	text string
	err  error
}

func (e lookupError) Error() string { return e.text }

func (e lookupError) Unwrap() error { return e.err }

// LookPath returns the path of the program that would be started. os/exec would search the PATH of this process instead
// of the child's. If the program cannot be found, the error wraps [fs.ErrNotExist].
func (c Command) LookPath() (string, error) {
	if c.Path == "" {
		return "", lookupError{"the command is empty", fs.ErrNotExist}
	}
	if strings.ContainsRune(c.Path, filepath.Separator) {
		path := c.Path
		if !filepath.IsAbs(path) && c.Dir != "" {
			path = filepath.Join(c.Dir, path)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", lookupError{"command not found: " + c.Path, fs.ErrNotExist}
		case !isExecutable(path, info):
			return "", lookupError{"command is not executable: " + c.Path, fs.ErrPermission}
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(Getenv(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, c.Path)
		for _, candidate := range withExtensions(path) {
			if info, err := os.Stat(candidate); err == nil && isExecutable(candidate, info) {
				return candidate, nil
			}
		}
	}
	return "", lookupError{"command not found: " + c.Path, fs.ErrNotExist}
}

// Getenv returns a variable of an environment, empty if it is not set; of duplicates the last one is used.
func Getenv(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}
