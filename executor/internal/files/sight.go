package files

import (
	"crypto/sha256"
	"sync"
)

// seenFiles are what the session last saw of files, by path.
type seenFiles struct {
	mu sync.Mutex
	of map[string]seenContent
}

// seenContent is one content of a file.
type seenContent struct {
	digest [sha256.Size]byte
	shown  bool // the model has all of it
}

// know notes that the model has the current content of a file.
func (s *seenFiles) know(path, content string) { s.note(path, content, true) }

// note notes the current content of a file.
func (s *seenFiles) note(path, content string, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[path] = seenContent{sha256.Sum256([]byte(content)), shown}
}

// has tells whether the session has seen a file, whether what it saw is still
// what the file holds, and whether the model has that.
func (s *seenFiles) has(path, content string) (read, current, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, read := s.of[path]
	current = read && was.digest == sha256.Sum256([]byte(content))
	return read, current, current && was.shown
}
