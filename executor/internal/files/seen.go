package files

import (
	"crypto/sha256"
	"sync"
)

// seenFiles holds the last content that the session saw of each file.
type seenFiles struct {
	mu     sync.Mutex
	byPath map[string]seenContent
}

// seenContent is the content of a file at one moment.
type seenContent struct {
	digest [sha256.Size]byte
	shown  bool // the model has seen all of it
}

// recordShown records that the model has seen the current content of a file.
func (s *seenFiles) recordShown(path, content string) { s.record(path, content, true) }

// record records the current content of a file.
func (s *seenFiles) record(path, content string, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byPath[path] = seenContent{sha256.Sum256([]byte(content)), shown}
}

// lookup reports whether the session has read a file, whether the file is unchanged
// since then, and whether the model has seen that content.
func (s *seenFiles) lookup(path, content string) (read, current, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, read := s.byPath[path]
	current = read && was.digest == sha256.Sum256([]byte(content))
	return read, current, current && was.shown
}
