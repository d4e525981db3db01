package checkpoint

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type copyStore struct {
	dir       string // directory of the copies; empty means that they are kept in memory
	sourceDir string // directory of the file copies that the resumed session made; empty means none
	memory    map[string][]byte
}

func backupName(path string, version int) string {
	return fmt.Sprintf("%.8x@v%d", sha256.Sum256([]byte(path)), version)
}

func (s *copyStore) switchDirAndCopyOldFiles(dir string) error {
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
			err = s.putCopy(dir, e.Name(), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *copyStore) putCopy(dir, name string, content []byte) error {
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

// getCopy returns the content of a copy. A nil name stands for a file that did not exist at that time; its content is nil.
func (s *copyStore) getCopy(copyName *string) ([]byte, error) {
	if copyName == nil {
		return nil, nil
	}
	if content, ok := s.memory[*copyName]; ok {
		return content, nil
	}
	if filepath.Base(*copyName) != *copyName {
		return nil, fmt.Errorf("invalid checkpoint name %q", *copyName)
	}
	for _, dir := range []string{s.dir, s.sourceDir} {
		if dir == "" {
			continue
		}
		if content, err := contentOrNilIfFileMissing(filepath.Join(dir, *copyName)); content != nil || err != nil {
			return content, err
		}
	}
	return nil, fmt.Errorf("checkpoint %s no longer exists", *copyName)
}
