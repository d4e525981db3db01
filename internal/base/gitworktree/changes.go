package gitworktree

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Snapshot is the state of a repository's files before a command. It holds the content of files that differ from the
// last commit. The content of all other files is read from that commit.
type Snapshot struct {
	git    Git
	top    string
	commit string                // empty means the repository has no commit yet
	dirty  map[string]*fileState // nil means deleted
	IsNew  bool                  // true if the repository did not exist when the session began; its changes are then unknown
}

type fileState struct {
	executable bool
	content    []byte
	isLarge    bool // the file is too large, so its content was not read
	size       int64
	modified   time.Time
}

// Change is a file that a command has changed.
type Change struct {
	Path                 string // absolute
	Before, After        string // contents before and after the command
	IsCreated, IsDeleted bool
	IsText               bool      // both contents are text, and not too large
	OnlyMode             bool      // only the mode has changed; the contents are equal
	Modified             time.Time // modification time of the file; zero means that it was deleted
}

const (
	maxDirtyFiles          = 5000    // repositories with more changed files are not compared
	maxBytesOfComparedFile = 1 << 20 // maximum size of a file that is read, in bytes
)

// Snapshot returns the state of the repository that contains a directory; nil outside a repository, or if too much has changed.
func (g Git) Snapshot(ctx context.Context, dir string) *Snapshot {
	top := NearestDirectoryWithDotGit(dir)
	if top == "" {
		return nil
	}
	s := &Snapshot{git: g, top: top, dirty: map[string]*fileState{}}
	commit, paths, err := g.changedPaths(ctx, top)
	if err != nil || len(paths) > maxDirtyFiles {
		return nil
	}
	s.commit = commit
	for _, path := range paths {
		s.dirty[path] = readRegularFileState(filepath.Join(top, path))
	}
	return s
}

// Changes returns the files that have changed since the snapshot, sorted by path. Files that git ignores are not
// included. A nil snapshot has no changes.
func (s *Snapshot) Changes(ctx context.Context) []Change {
	if s == nil {
		return nil
	}
	commit, paths, err := s.git.changedPaths(ctx, s.top)
	if err == nil && commit != s.commit && s.commit != "" {
		var committed string
		committed, err = s.git.trimmedGitOutput(ctx, s.top, "diff", "--name-only", "--no-renames", "-z", s.commit, commit)
		paths = append(paths, strings.FieldsFunc(committed, func(r rune) bool { return r == 0 })...)
	}
	if err != nil || len(paths) > maxDirtyFiles {
		return nil
	}
	paths = slices.AppendSeq(paths, maps.Keys(s.dirty))
	slices.Sort(paths)
	var changes []Change
	for _, path := range slices.Compact(paths) {
		before, known := s.dirty[path]
		if !known {
			before = s.committedState(ctx, path)
		}
		if c := compareFileStates(before, readRegularFileState(filepath.Join(s.top, path))); c != nil {
			c.Path = filepath.Join(s.top, path)
			changes = append(changes, *c)
		}
	}
	return changes
}

// compareFileStates returns the change from one state of a file to another; nil means that nothing has changed.
func compareFileStates(before, after *fileState) *Change {
	c := &Change{IsCreated: before == nil, IsDeleted: after == nil, IsText: before.isText() && after.isText()}
	if before != nil {
		c.Before = string(before.content)
	}
	if after != nil {
		c.After, c.Modified = string(after.content), after.modified
	}
	if before != nil && after != nil {
		c.OnlyMode = before.size == after.size && c.Before == c.After && (!after.isLarge || before.modified.Equal(after.modified))
	}
	if c.IsCreated && c.IsDeleted || c.OnlyMode && before.executable == after.executable {
		return nil
	}
	return c
}

// committedState returns the state of a file in the commit of the snapshot, or nil if the commit does not contain the
// file. Of the file's mode, the commit records only whether the file is executable.
func (s *Snapshot) committedState(ctx context.Context, path string) *fileState {
	if s.commit == "" {
		return nil
	}
	listed, err := s.git.trimmedGitOutput(ctx, s.top, "ls-tree", s.commit, "--", path)
	mode, _, found := strings.Cut(listed, " ")
	if err != nil || !found {
		return nil
	}
	content, err := s.git.gitOutput(ctx, s.top, "show", s.commit+":"+path)
	if err != nil {
		return nil
	}
	return &fileState{executable: mode == "100755", content: content, size: int64(len(content))}
}

// changedPaths returns the commit of HEAD (empty means none) and the new or changed paths, relative to top.
func (g Git) changedPaths(ctx context.Context, top string) (commit string, paths []string, err error) {
	out, err := g.gitOutput(ctx, top, "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames")
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if oid, ok := strings.CutPrefix(entry, "# branch.oid "); ok && oid != "(initial)" {
			commit = oid
		}
		kind, _, _ := strings.Cut(entry, " ")
		fields := map[string]int{"1": 8, "u": 10, "?": 1}[kind] // number of fields before the path
		if parts := strings.SplitN(entry, " ", fields+1); fields > 0 && len(parts) == fields+1 {
			paths = append(paths, parts[fields])
		}
	}
	return commit, paths, err
}

// NearestDirectoryWithDotGit returns the top of the repository that contains a directory, or "". It does not run git.
func NearestDirectoryWithDotGit(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// MainTopOfLinkedWorktree returns the top directory of the main worktree if top belongs to a linked worktree; otherwise it returns "".
func MainTopOfLinkedWorktree(top string) string {
	pointer, _ := os.ReadFile(filepath.Join(top, ".git"))
	target, _ := strings.CutPrefix(string(pointer), "gitdir: ")
	main, _, isLinked := strings.Cut(filepath.ToSlash(target), "/.git/worktrees/")
	if !isLinked {
		return ""
	}
	return filepath.FromSlash(main)
}

// readRegularFileState reads a regular file; nil means that name does not exist or is not a regular file.
func readRegularFileState(name string) *fileState {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f := &fileState{executable: info.Mode()&0o100 != 0, size: info.Size(), modified: info.ModTime(), isLarge: info.Size() > maxBytesOfComparedFile}
	if file, err := os.Open(name); err == nil && !f.isLarge {
		defer file.Close()
		f.content, err = io.ReadAll(io.LimitReader(file, maxBytesOfComparedFile))
		f.isLarge = err != nil
	}
	return f
}

// isText reports whether a change of the file can be shown as text. A file that does not exist counts as an empty text.
func (f *fileState) isText() bool { return f == nil || !f.isLarge && bytes.IndexByte(f.content, 0) < 0 }
