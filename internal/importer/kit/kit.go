// Package kit writes a set of files into a directory, all or none: each file is
// written to a temporary name, searched for secrets, and moved into place at
// the end. Existing files are kept unless overwriting is allowed.
package kit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/record/redact"
)

// Kit is files on their way. It is for one goroutine.
type Kit struct {
	dir    string        // where they stand meanwhile
	out    string        // where they go; empty = nowhere
	made   string        // a directory that is there for their sake
	temp   *proc.TempDir // the same; nil = it is in out
	names  []string      // with slashes, in the order in which they were made
	stamps map[string]string
	force  bool
	secret *redact.Redactor // nil = nothing is looked for
	leaks  []Leak
	err    error // the first failure
}

// Options say where files go.
type Options struct {
	Out   string // directory; empty = they are read from the kit
	Force bool   // overwrite what is in the way
	Raw   bool   // look for no secrets
}

// New begins a kit. The caller calls Discard in the end.
func New(o Options) (*Kit, error) {
	k := &Kit{out: o.Out, force: o.Force, stamps: map[string]string{}}
	if !o.Raw {
		k.secret = redact.New(redact.Options{})
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
		k.made = out
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var err error
	k.dir, err = os.MkdirTemp(out, ".import-")
	return k, err
}

// Discard takes away what is not in its place; further calls do nothing.
func (k *Kit) Discard() {
	if k.temp == nil {
		_ = os.RemoveAll(k.dir) // best effort: it is ours alone
	}
	_ = k.temp.Remove()
	if k.made != "" {
		_ = os.Remove(k.made) // stays if it holds something
	}
}

// File writes a file whole. A failure is told by Err.
func (k *Kit) File(name string, data []byte) {
	k.stamps[name] = stamp(string(data))
	f := k.Create(name)
	f.Write(data)
	f.Close()
}

// Err is the first failure of writing.
func (k *Kit) Err() error { return k.err }

func (k *Kit) fail(name string, err error) {
	if err != nil && k.err == nil {
		k.err = fmt.Errorf("writing %s: %w", name, err)
	}
}

// Create begins a file; name has slashes and is relative to the kit.
func (k *Kit) Create(name string) *File {
	k.names = append(k.names, name)
	f := &File{kit: k, name: name}
	path := k.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	k.fail(name, err)
	if err == nil && k.secret != nil {
		f.look(newAudit(name, k.secret))
	}
	return f
}

func (k *Kit) path(name string) string { return filepath.Join(k.dir, filepath.FromSlash(name)) }

// File is one that is being written. Failures are told by [Kit.Err].
type File struct {
	kit    *Kit
	name   string
	file   *os.File    // nil = it could not be made
	parts  chan string // to be looked through; nil = nothing is
	done   chan []Leak
	unseen []byte // not looked through yet
}

// look looks through what is written while more is being made; Close ends it.
func (f *File) look(a *audit) {
	f.parts, f.done = make(chan string, 1), make(chan []Leak)
	go func() {
		for part := range f.parts {
			a.lines(part)
		}
		f.done <- a.found
	}()
}

// part is how much is looked through at once.
const part = 256 << 10

// Write adds whole lines.
func (f *File) Write(data []byte) {
	if f.file == nil {
		return
	}
	_, err := f.file.Write(data)
	f.kit.fail(f.name, err)
	if f.parts == nil {
		return
	}
	f.unseen = append(f.unseen, data...)
	for len(f.unseen) > part {
		n := part + bytes.IndexByte(f.unseen[part:], '\n') + 1
		if n == part { // a long line
			n = len(f.unseen)
		}
		f.parts <- string(f.unseen[:n])
		f.unseen = append(f.unseen[:0], f.unseen[n:]...)
	}
}

// Close ends the file.
func (f *File) Close() {
	if f.file == nil {
		return
	}
	f.kit.fail(f.name, f.file.Close())
	if f.parts != nil {
		f.parts <- string(f.unseen)
		close(f.parts)
		f.kit.leaks = append(f.kit.leaks, <-f.done...)
	}
	f.file, f.parts = nil, nil
}

// Leaks are the secrets in what has been written.
func (k *Kit) Leaks() []Leak { return k.leaks }

// CopyTo copies the files into a directory that is not there yet.
func (k *Kit) CopyTo(dir string) error { return os.CopyFS(dir, os.DirFS(k.dir)) }

// Send writes one of the files to w.
func (k *Kit) Send(name string, w io.Writer) error {
	f, err := os.Open(k.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Commit puts the files into their places. One that is in the way is an error
// unless it may be overwritten.
func (k *Kit) Commit() (written []string, err error) {
	if k.err != nil {
		return nil, k.err
	}
	for _, name := range k.names {
		to := filepath.Join(k.out, filepath.FromSlash(name))
		if _, err := os.Lstat(to); err == nil && !k.force {
			return nil, fmt.Errorf("%s exists; --force overwrites it", to)
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
