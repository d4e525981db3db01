package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// FileSet writes files into a directory, all or none: each is written under a temporary name, searched for secrets, and
// moved into place at the end. Existing files are kept unless overwriting is allowed. Only one goroutine may use it.
type FileSet struct {
	dir        string        // temporary location
	outDir     string        // destination; empty means none
	createdDir string        // output directory that NewFileSet created
	temp       *proc.TempDir // owns dir; nil means dir is inside outDir
	names      []string      // names with slashes, in the order of creation
	stamps     map[string]string
	force      bool
	redactor   *redact.Redactor // nil means files are not searched
	leaks      []Leak
	err        error
}

// FileSetOptions configure a FileSet.
type FileSetOptions struct {
	Out   string // output directory; empty means that the files stay in a temporary directory
	Force bool   // overwrite existing files
	Raw   bool   // do not search for secrets
}

// NewFileSet starts a file set. The caller must call Discard at the end.
func NewFileSet(o FileSetOptions) (*FileSet, error) {
	k := &FileSet{outDir: o.Out, force: o.Force, stamps: map[string]string{}}
	if !o.Raw {
		k.redactor = redact.New(redact.Options{})
	}
	out := o.Out
	if out == "" {
		var err error
		if k.temp, err = proc.MakeTempDir("claudeless-import-"); err != nil {
			return nil, err
		}
		k.dir = k.temp.Path
		return k, nil
	}
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		k.createdDir = out
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var err error
	k.dir, err = os.MkdirTemp(out, ".import-")
	return k, err
}

// Discard removes all uncommitted files. Further calls have no effect.
func (k *FileSet) Discard() {
	if k.temp == nil {
		_ = os.RemoveAll(k.dir) // best effort: the directory belongs to the file set
	}
	_ = k.temp.Remove()
	if k.createdDir != "" {
		_ = os.Remove(k.createdDir) // fails if the directory is not empty
	}
}

// WriteFile writes a complete file. Err reports a failure.
func (k *FileSet) WriteFile(name string, data []byte) {
	k.stamps[name] = textDigest(string(data))
	f := k.Create(name)
	f.Write(data)
	f.Close()
}

// Err returns the first write failure.
func (k *FileSet) Err() error { return k.err }

func (k *FileSet) recordFailure(name string, err error) {
	if err != nil && k.err == nil {
		k.err = fmt.Errorf("writing %s: %w", name, err)
	}
}

// Create starts a file. name uses slashes and is relative to the file set.
func (k *FileSet) Create(name string) *OutputFile {
	k.names = append(k.names, name)
	f := &OutputFile{set: k, name: name}
	path := k.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	k.recordFailure(name, err)
	return f
}

func (k *FileSet) path(name string) string { return filepath.Join(k.dir, filepath.FromSlash(name)) }

// OutputFile is a file that is being written. [FileSet.Err] reports failures.
type OutputFile struct {
	set  *FileSet
	name string
	file *os.File // nil means could not be created
}

// Write adds whole lines.
func (f *OutputFile) Write(data []byte) {
	if f.file != nil {
		_, err := f.file.Write(data)
		f.set.recordFailure(f.name, err)
	}
}

// Close finishes the file and searches it for secrets.
func (f *OutputFile) Close() {
	if f.file == nil {
		return
	}
	f.set.recordFailure(f.name, f.file.Close())
	f.file = nil
	if f.set.redactor != nil {
		leaks, err := auditFile(f.set.path(f.name), f.name, f.set.redactor)
		f.set.recordFailure(f.name, err)
		f.set.leaks = append(f.set.leaks, leaks...)
	}
}

// Leaks returns the secrets found so far.
func (k *FileSet) Leaks() []Leak { return k.leaks }

// CopyTo copies the files into a new directory.
func (k *FileSet) CopyTo(dir string) error { return os.CopyFS(dir, os.DirFS(k.dir)) }

// CopyFile copies one of the files to w.
func (k *FileSet) CopyFile(name string, w io.Writer) error {
	f, err := os.Open(k.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Commit moves the files to their destination. An existing file is an error unless Force is set.
func (k *FileSet) Commit() (written []string, err error) {
	if k.err != nil {
		return nil, k.err
	}
	for _, name := range k.names {
		to := filepath.Join(k.outDir, filepath.FromSlash(name))
		if _, err := os.Lstat(to); err == nil && !k.force {
			return nil, fmt.Errorf("%s already exists; use --force to overwrite it", to)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		written = append(written, to)
	}
	for _, to := range written {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
	}
	for i, to := range written {
		if err := os.Rename(k.path(k.names[i]), to); err != nil {
			return nil, err
		}
	}
	return written, nil
}
