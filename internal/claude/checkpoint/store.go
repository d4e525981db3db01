package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type store struct {
	dir       string // directory of the versions; empty means memory
	sourceDir string // directory with the versions of the resumed session; empty means none
	memory    map[string][]byte
}

func backupName(path string, version int) string {
	sum := sha256.Sum256([]byte(path))
	return fmt.Sprintf("%.8x@v%d", sum, version)
}

func (s *store) moveTo(dir string) error {
	from := s.sourceDir
	s.dir, s.sourceDir = dir, ""
	if from == "" || from == dir {
		return nil
	}
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = s.put(dir, e.Name(), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *store) put(dir, name string, content []byte) error {
	if dir == "" {
		s.memory[name] = content
		return nil
	}
	s.dir = dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), content, 0o644)
}

// get returns a version; nil means that the file did not exist at that time.
func (s *store) get(name *string) ([]byte, error) {
	if name == nil {
		return nil, nil
	}
	if content, ok := s.memory[*name]; ok {
		return content, nil
	}
	if filepath.Base(*name) != *name {
		return nil, fmt.Errorf("invalid checkpoint name %q", *name)
	}
	for _, dir := range []string{s.dir, s.sourceDir} {
		if dir == "" {
			continue
		}
		content, err := readFile(filepath.Join(dir, *name))
		if content != nil || err != nil {
			return content, err
		}
	}
	return nil, fmt.Errorf("checkpoint %s no longer exists", *name)
}
