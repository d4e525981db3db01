package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const maxFileBytes = 64 << 20

// ReadFileUnlessTooLarge is like [os.ReadFile] but reads at most 64 MiB, because a device may never end. It also reads pipes.
func ReadFileUnlessTooLarge(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("file is larger than %d MiB", maxFileBytes>>20)}
	}
	return data, err
}

// ReadFileOrEmpty reads a file that contains an object; a missing or empty file is an empty object.
func ReadFileOrEmpty(path string) (Object, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(data)) == 0 {
		return Object{}, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := ParseKeepingLastDuplicates(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", path, err)
	}
	return o, nil
}

// ParseKeepingLastDuplicates is like [Parse], but for objects that people write. Its error describes the mistake. If a key is
// repeated, only its last value is kept.
func ParseKeepingLastDuplicates(data []byte) (Object, error) {
	if !json.Valid(data) {
		var syntax any
		return nil, json.Unmarshal(data, &syntax)
	}
	o, err := Parse(data)
	if err != nil {
		return nil, errors.New("not an object")
	}
	return o.Distinct(), nil
}

// WriteFileAtomically replaces a file and creates its directory if it is missing. The new content is the indented object,
// followed by trailer. An existing file keeps its mode, and a new file gets mode.
func (o Object) WriteFileAtomically(path, trailer string, modeOfNewFile fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		modeOfNewFile = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return ReplaceFile(path, []byte(o.Indented()+trailer), modeOfNewFile)
}

// ReplaceFile replaces a file atomically. After a crash of the machine, the file may have its old content again.
func ReplaceFile(path string, data []byte, mode fs.FileMode) error {
	return replaceAtomically(path, data, mode, func(*os.File) error { return nil })
}

// ReplaceFileDurably is like [ReplaceFile], but the new content is on the disk before it replaces the old content.
func ReplaceFileDurably(path string, data []byte, mode fs.FileMode) error {
	return replaceAtomically(path, data, mode, (*os.File).Sync)
}

// replaceAtomically writes data to a temporary file, which then replaces the file at path. The temporary name is
// random, because a name derived from path may be too long.
func replaceAtomically(path string, data []byte, mode fs.FileMode, flush func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new.*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), flush(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Indented returns the object with two spaces per level, without a final newline.
func (o Object) Indented() string {
	var b bytes.Buffer
	_ = json.Indent(&b, o.Raw(), "", "  ") // all values are valid JSON
	return b.String()
}

// At returns the value at a path of keys; nil means missing.
func (o Object) At(path ...string) json.RawMessage {
	value := o.Get(path[0])
	if len(path) == 1 || value == nil {
		return value
	}
	inner, err := Parse(value)
	if err != nil {
		return nil
	}
	return inner.At(path[1:]...)
}

// SetAt returns the object with a value set at a path of keys. It creates missing objects on the path. A nil value
// removes the key at the end of the path.
func (o Object) SetAt(path []string, valueOrNilToDelete json.RawMessage) (Object, error) {
	switch {
	case len(path) > 1:
		inner := Object{}
		var err error
		if old := o.Get(path[0]); old != nil {
			if inner, err = ParseKeepingLastDuplicates(old); err != nil {
				return nil, fmt.Errorf("%s: %w", path[0], err)
			}
		}
		if inner, err = inner.SetAt(path[1:], valueOrNilToDelete); err != nil {
			return nil, err
		}
		valueOrNilToDelete = inner.Raw()
	case valueOrNilToDelete == nil:
		return o.Delete(path[0]), nil
	}
	return o.Set(path[0], valueOrNilToDelete), nil
}
