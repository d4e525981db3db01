package files

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claudeless/claudeless/executor/internal/tool"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/textdiff"
)

// seenFiles records the last content of each file that the session has read or written.
type seenFiles struct {
	mu      sync.Mutex
	byPath  map[string]seenContent
	written []fileWrittenBySession // files in the order in which they were written
}

type seenContent struct {
	digest             [sha256.Size]byte
	wasShownCompletely bool // the model has seen the whole content
	isReadTruncated    bool // true if Read last returned only the part of the file that is not too large for the model
	position           int  // position among the files in the order of their first access, from 1
}

// fileWrittenBySession is a file that the session wrote and that is not known to have changed since.
type fileWrittenBySession struct {
	path, writtenContent string
	modificationTime     time.Time
}

func (s *seenFiles) recordShown(path, content string) { s.recordSeenContent(path, content, true) }

func (s *seenFiles) recordSeenContent(path, content string, wasShownCompletely bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeContentLocked(path, content, wasShownCompletely)
}

func (s *seenFiles) storeContentLocked(path, content string, wasShownCompletely bool) {
	was := s.byPath[path]
	s.byPath[path] = seenContent{sha256.Sum256([]byte(content)), wasShownCompletely, was.isReadTruncated, cmp.Or(was.position, len(s.byPath)+1)}
	s.written = slices.DeleteFunc(s.written, func(w fileWrittenBySession) bool { return w.path == path })
}

// recordWritten records the content of a file that the session wrote. [seenFiles.takeFilesChangedAfterWrite] reports later changes.
func (s *seenFiles) recordWritten(path, content string, wasShownCompletely bool) {
	info, err := os.Stat(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storeContentLocked(path, content, wasShownCompletely)
	if err == nil {
		s.written = append(s.written, fileWrittenBySession{path, content, info.ModTime()})
	}
}

func (s *seenFiles) setReadTruncated(path string, isTruncated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.byPath[path]
	seen.isReadTruncated = isTruncated
	s.byPath[path] = seen
}

func (s *seenFiles) isReadTruncated(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPath[path].isReadTruncated
}

// compareWithSeenContent compares a file's content with the recorded content. read means that the session has read or
// written the file, current that the content is unchanged, and shown that the model has seen all of this content.
func (s *seenFiles) compareWithSeenContent(path, content string) (read, current, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, read := s.byPath[path]
	current = read && was.digest == sha256.Sum256([]byte(content))
	return read, current, current && was.wasShownCompletely
}

// ModificationTimesByPath maps the paths of files to their modification times.
type ModificationTimesByPath map[string]time.Time

func (s *seenFiles) currentModificationTimes() ModificationTimesByPath {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := ModificationTimesByPath{}
	for path := range s.byPath {
		if info, err := os.Stat(path); err == nil {
			all[path] = info.ModTime()
		}
	}
	return all
}

// forgetAll forgets all contents, and returns the paths of the files, the last modified one first.
func (s *seenFiles) forgetAll() []string {
	times := s.currentModificationTimes()
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(cmp.Compare(times[b].UnixMilli(), times[a].UnixMilli()), cmp.Compare(s.byPath[b].position, s.byPath[a].position))
	})
	s.byPath, s.written = map[string]seenContent{}, nil
	return paths
}

// FileChangedAfterWrite is a file that was changed after the session had written it.
type FileChangedAfterWrite struct {
	Path     string
	Content  string // with "\n" between lines
	Modified time.Time
	Snippet  string // the changed lines with their numbers and neighboring lines
}

func (s *seenFiles) takeFilesChangedAfterWrite() []FileChangedAfterWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []FileChangedAfterWrite
	for i, w := range slices.Clone(s.written) {
		info, err := os.Stat(w.path)
		if err != nil || info.ModTime().Equal(w.modificationTime) {
			continue
		}
		data, err := readRegularFile(w.path)
		if err != nil {
			continue
		}
		if string(data) == w.writtenContent {
			s.written[i].modificationTime = info.ModTime()
			continue
		}
		content := strings.ReplaceAll(string(data), "\r\n", "\n")
		if text := changedLinesSnippet(strings.ReplaceAll(w.writtenContent, "\r\n", "\n"), content); text != "" {
			all = append(all, FileChangedAfterWrite{w.path, content, info.ModTime(), text})
		}
		// This runs after the loop, because storeContentLocked removes the file from the list.
		defer s.storeContentLocked(w.path, string(data), true)
	}
	return all
}

// changedLinesSnippet returns the changed lines of a text with their numbers and neighboring lines, as the real
// CLI shows them. It returns "" if after has no lines.
func changedLinesSnippet(before, after string) string {
	const (
		neighbors = 8
		longest   = 8192 // bytes
	)
	var regions []string
	for _, h := range textdiff.Hunks(before, after, neighbors) {
		var lines []string
		for _, line := range h.Lines {
			if line[0] == ' ' || line[0] == '+' {
				lines = append(lines, line[1:])
			}
		}
		if len(lines) > 0 {
			regions = append(regions, numberLines(lines, h.NewStart))
		}
	}
	text := strings.Join(regions, "\n...\n")
	if len(text) <= longest {
		return text
	}
	if end := strings.LastIndexByte(tool.Prefix(text, longest), '\n'); end > 0 {
		return text[:end] + tool.TruncationNote(strings.Count(text[end:], "\n")) // so that no line is cut
	}
	return tool.TruncateWithMissingLinesNote(text, longest)
}

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

// fileErrorTextLikeNodeJS formats a file error as Node.js does.
func fileErrorTextLikeNodeJS(err error, op, path string) string {
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
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return err.Error() + ", " + op + " '" + path + "'"
	}
	return code + ", " + op + " '" + path + "'"
}

// createOrReplaceFileKeepingMode writes a file. It replaces an existing file by a new file with the same mode, so that the old
// content remains if writing fails. In a directory that is not writable, it overwrites the file. If path is a symbolic link, it
// writes the link's target. Other hard links of the file keep the old content (observed with 2.1.329).
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

// missingFileText says that a file does not exist. It suggests the same path below the working directory, or a file with the same
// name and another extension.
func missingFileText(workingDirectory, path string) string {
	text := "File does not exist. " + workingDirectoryNoteWithSuggestion(workingDirectory, path)
	stem := func(name string) string { return cmp.Or(strings.TrimSuffix(name, filepath.Ext(name)), name) }
	entries, _ := os.ReadDir(filepath.Dir(path)) // an unreadable directory has no suggestion
	for _, e := range entries {
		if base := filepath.Base(path); e.Name() != base && stem(e.Name()) == stem(base) && !strings.HasSuffix(text, "?") {
			text += " Did you mean " + e.Name() + "?"
		}
	}
	return text
}

// workingDirectoryNoteWithSuggestion returns the note about the working directory dir in the error for a missing path. If the path lies
// below the parent of dir and also exists below dir, it suggests the latter.
func workingDirectoryNoteWithSuggestion(dir, path string) string {
	note := "Note: your current working directory is " + dir + "."
	rest, isNextTo := strings.CutPrefix(path, filepath.Dir(dir)+string(filepath.Separator))
	if _, err := os.Stat(filepath.Join(dir, rest)); err == nil && isNextTo {
		note += " Did you mean " + filepath.Join(dir, rest) + "?"
	}
	return note
}
