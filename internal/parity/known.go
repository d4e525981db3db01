package parity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/claudeless/claudeless/internal/diag"
)

// Known excuses a difference.
type Known struct {
	// Path of the difference; `*` stands for anything.
	Path string `toml:"path,required"`
	// Case names the cases: the name, its last part or the file; `*` stands for
	// anything. Empty = every case.
	Case string `toml:"case"`
	// Version of the real CLI that it occurs with, with `*`; empty = every one.
	Version string `toml:"version"`
	// Reason is what a user is told.
	Reason string `toml:"reason,required"`
	// Issue is where more is said.
	Issue string `toml:"issue"`
	// Since is the version of the real CLI, or the date, from which on it is known.
	Since string `toml:"since,required"`

	line  int
	ran   bool // a case of it was compared
	fired bool
}

// KnownFile is a file of known differences.
type KnownFile struct {
	Known []*Known `toml:"known"`

	name string
}

// LoadKnown reads a file of known differences. One that is not there holds none.
func LoadKnown(name string) (*KnownFile, error) {
	f := &KnownFile{name: name}
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the known differences: %w", err)
	}
	ix := diag.IndexTOML(name, src)
	if doubt := ix.Doubt(); doubt != nil {
		return nil, diag.List{*doubt}
	}
	list := ix.Bind(f)
	for i, k := range f.Known {
		k.line = ix.Pos(diag.Path{"known", i}).Line
		if strings.TrimSpace(k.Reason) == "" {
			list = append(list, ix.At(diag.Path{"known", i}, "the entry has no reason"))
		}
	}
	return f, list.Err()
}

// Excuse marks the differences of a case that are known.
func (f *KnownFile) Excuse(name, file, version string, found []Difference) {
	for _, k := range f.Known {
		if !k.concerns(name, file, version) {
			continue
		}
		k.ran = true
		for i := range found {
			if glob(k.Path, found[i].Path) {
				k.fired = true
				if found[i].Known == "" {
					found[i].Known = k.Reason
				}
			}
		}
	}
}

func (k *Known) concerns(name, file, version string) bool {
	if k.Version != "" && !glob(k.Version, version) {
		return false
	}
	stem := strings.TrimSuffix(file, path.Ext(file)) // the name depends on the directory that was given
	return k.Case == "" || glob(k.Case, name) || glob(k.Case, path.Base(name)) || glob(k.Case, file) || glob("*/"+k.Case, "/"+stem)
}

// Stale are the entries whose cases were compared and which excused nothing.
func (f *KnownFile) Stale() diag.List {
	var list diag.List
	for _, k := range f.Known {
		if k.ran && !k.fired {
			list = append(list, diag.Diagnostic{
				Pos:     diag.Position{File: f.name, Line: k.line},
				Message: fmt.Sprintf("the known difference %s of %s occurs no more", k.Path, orAll(k.Case)),
				Hint:    "take the entry out",
			})
		}
	}
	return list
}

func orAll(glob string) string {
	if glob == "" {
		return "every case"
	}
	return glob
}

// glob matches with `*` for anything, slashes and dots too.
func glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("(?s)^"+strings.Join(parts, ".*")+"$", s)
	return err == nil && ok
}
