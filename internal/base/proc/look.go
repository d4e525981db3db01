package proc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Become makes this process that of the command, in its own directory; files that
// are open go with it only where they were meant to. It returns only when it cannot;
// [errors.ErrUnsupported] where the system has no such thing.
func Become(c Command) error {
	path, err := c.Look()
	if err != nil {
		return err
	}
	return become(path, append([]string{c.Path}, c.Args...), c.Env)
}

// Look finds the program: the file that would be started. os/exec would search the
// PATH of this process and not that of the child. One that cannot be found gives an
// error that wraps [fs.ErrNotExist].
func (c Command) Look() (string, error) {
	if c.Path == "" {
		return "", fmt.Errorf("command is empty: %w", fs.ErrNotExist)
	}
	if strings.ContainsRune(c.Path, filepath.Separator) {
		path := c.Path
		if !filepath.IsAbs(path) && c.Dir != "" {
			path = filepath.Join(c.Dir, path)
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", fmt.Errorf("command not found: %s: %w", c.Path, fs.ErrNotExist)
		case !executable(path, info):
			return "", fmt.Errorf("command is not executable: %s: %w", c.Path, fs.ErrPermission)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(Getenv(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, c.Path)
		for _, candidate := range withExtensions(path) {
			if info, err := os.Stat(candidate); err == nil && executable(candidate, info) {
				return candidate, nil
			}
		}
	}
	return "", fmt.Errorf("command not found: %s: %w", c.Path, fs.ErrNotExist)
}

// Getenv is a variable of an environment, empty when it is not set; the last of
// several counts.
func Getenv(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}
