package parity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	list "github.com/claudeless/claudeless/docs/parity"
	"github.com/claudeless/claudeless/internal/base/diag"
)

// Known excuses differences.
type Known struct {
	// Path of the differences; `*` stands for anything.
	Path Globs `toml:"path,required"`
	// Case names the cases: the name, its last part or the file; `*` stands for
	// anything. Empty = every case.
	Case Globs `toml:"case"`
	// Version of the real CLI that it occurs with, with `*`; empty = every one.
	Version string `toml:"version"`
	// Reason is what a user is told.
	Reason string `toml:"reason,required"`
	// Issue is where more is said.
	Issue string `toml:"issue"`
	// Since is the version of the real CLI, or the date, from which on it is known.
	Since string `toml:"since,required"`

	line int
	// compared are the words of Case that a case was compared of; fired those of Path
	// and Case that excused something.
	compared, fired map[string]bool
}

// Globs are patterns in which `*` stands for anything, slashes and dots too; in a
// file a string or a list.
type Globs []string

// BindValue implements [diag.Binder].
func (g *Globs) BindValue(v diag.Value, b *diag.Binding) {
	if v.Kind == diag.String {
		*g = Globs{v.Text}
		return
	}
	b.Into(v, (*[]string)(g))
}

// KnownFile is a file of known differences.
type KnownFile struct {
	Known []*Known `toml:"known"`

	name string
}

// DefaultKnown is the file of known differences of this repository. Elsewhere the
// list that is part of the binary takes its place.
const DefaultKnown = "docs/parity/known.toml"

// LoadKnown reads a file of known differences. One that is not there holds none,
// apart from [DefaultKnown].
func LoadKnown(name string) (*KnownFile, error) {
	f := &KnownFile{name: name}
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if name != DefaultKnown {
			return f, nil
		}
		src, err = list.Known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the known differences: %w", err)
	}
	ix := diag.IndexTOML(name, src)
	if doubt := ix.Doubt(); doubt != nil {
		return nil, diag.List{*doubt}
	}
	found := ix.Bind(f)
	for i, k := range f.Known {
		k.line = ix.Pos(diag.Path{"known", i}).Line
		if strings.TrimSpace(k.Reason) == "" {
			found = append(found, ix.At(diag.Path{"known", i}, "the entry has no reason"))
		}
	}
	return f, found.Err()
}

// Excuse marks the differences of a case that are known.
func (f *KnownFile) Excuse(name, file, version string, found []Difference) {
	for _, k := range f.Known {
		cases := k.cases(name, file)
		if !k.in(version) || cases == nil {
			continue
		}
		mark(&k.compared, cases...)
		for i := range found {
			for _, p := range k.Path {
				if !glob(p, found[i].Path) {
					continue
				}
				mark(&k.fired, append(cases, p)...)
				found[i].Known = cmp.Or(found[i].Known, k.Reason)
			}
		}
	}
}

func mark(set *map[string]bool, words ...string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	for _, w := range words {
		(*set)[w] = true
	}
}

// in tells whether the differences occur with that version of the real CLI.
func (k *Known) in(version string) bool { return k.Version == "" || glob(k.Version, version) }

// cases are the words of Case that name this one, `*` when it has none; nil = it is
// another.
func (k *Known) cases(name, file string) (words []string) {
	if len(k.Case) == 0 {
		return []string{"*"}
	}
	stem := strings.TrimSuffix(file, path.Ext(file)) // the name depends on the directory that was given
	for _, c := range k.Case {
		if glob(c, name) || glob(c, path.Base(name)) || glob(c, file) || glob("*/"+c, "/"+stem) {
			words = append(words, c)
		}
	}
	return words
}

// Stale are the entries that excused nothing, with the words of theirs that did not.
// Words that stand for several cases are judged only by a run that left out none of
// those that the file names.
func (f *KnownFile) Stale(version string) diag.List {
	var list diag.List
	whole := f.whole(version)
	for _, k := range f.Known {
		if !k.in(version) {
			continue
		}
		for _, stale := range k.stale(whole) {
			list = append(list, diag.Diagnostic{
				Pos:     diag.Position{File: f.name, Line: k.line},
				Message: "the known difference " + stale + " occurs no more",
				Hint:    "take the entry out",
			})
		}
	}
	return list
}

// Doubtful tells whether a case should be compared once more before an entry that
// names it is called stale.
func (f *KnownFile) Doubtful(name, file, version string) bool {
	whole := f.whole(version)
	return slices.ContainsFunc(f.Known, func(k *Known) bool {
		return len(k.Case) > 0 && k.in(version) && k.cases(name, file) != nil && len(k.stale(whole)) > 0
	})
}

// whole tells whether a case was compared of every word that names only one.
func (f *KnownFile) whole(version string) bool {
	for _, k := range f.Known {
		for _, c := range k.Case {
			if k.in(version) && !strings.Contains(c, "*") && !k.compared[c] {
				return false
			}
		}
	}
	return true
}

// stale are the words of the entry that excused nothing, whole tells of a run of all
// cases.
func (k *Known) stale(whole bool) (words []string) {
	cases, all := k.Case, true
	if len(cases) == 0 {
		cases = Globs{"*"}
	}
	for _, c := range cases {
		judged := k.compared[c] && (whole || !strings.Contains(c, "*"))
		all = all && judged
		if judged && !k.fired[c] {
			words = append(words, fmt.Sprintf("%s of %s", strings.Join(k.Path, ", "), caseName(c)))
		}
	}
	if len(words) > 0 || !all {
		return words
	}
	for _, p := range k.Path {
		if !k.fired[p] {
			words = append(words, fmt.Sprintf("%s of %s", p, caseName(strings.Join(cases, ", "))))
		}
	}
	return words
}

func caseName(glob string) string {
	if glob == "*" {
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
