// Package entry reads one server entry of an MCP configuration and expands the
// variables in it. All errors of an entry are reported, not only the first.
package entry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/claudeless/claudeless/internal/base/ordered"
)

// Fields reads the members of one entry and collects what is wrong with them.
type Fields struct {
	m        map[string]json.RawMessage
	Problems []string // what is wrong, one line each
	seen     map[string]bool
}

// Read reads an entry; one that is no object is a problem of its own.
func Read(entry json.RawMessage) *Fields {
	f := &Fields{seen: map[string]bool{}}
	if ordered.TypeOf(entry) != "object" {
		f.problem("", "object", entry)
		return f
	}
	if err := json.Unmarshal(entry, &f.m); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	return f
}

// None reports whether there is no object to read members of.
func (f *Fields) None() bool { return f.m == nil }

// Has reports whether there is such a member, be it null.
func (f *Fields) Has(name string) bool {
	_, has := f.m[name]
	return has
}

// Wrong notes a problem.
func (f *Fields) Wrong(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *Fields) problem(field, want string, got json.RawMessage) {
	text := fmt.Sprintf("expected %s, received %s", want, ordered.TypeOf(got))
	if field != "" {
		text = field + ": " + text
	}
	f.Problems = append(f.Problems, text)
}

func (f *Fields) get(name, kind string) (json.RawMessage, bool) {
	f.seen[name] = true
	v, ok := f.m[name]
	if !ok {
		return nil, false
	}
	if k := ordered.TypeOf(v); k != kind {
		want := kind
		if kind == "object" {
			want = "record"
		}
		f.problem(name, want, v)
		return nil, false
	}
	return v, true
}

func read[T any](f *Fields, name, kind string) (v T) {
	if raw, ok := f.get(name, kind); ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			f.Problems = append(f.Problems, name+": "+err.Error())
		}
	}
	return v
}

// Text is a string; empty = there is none.
func (f *Fields) Text(name string) string { return read[string](f, name, "string") }

// Flag is a boolean; false = there is none.
func (f *Fields) Flag(name string) bool { return read[bool](f, name, "boolean") }

// Number is a number; 0 = there is none.
func (f *Fields) Number(name string) float64 { return read[float64](f, name, "number") }

// Required is Text of a member that must be there.
func (f *Fields) Required(name string) string {
	if !f.Has(name) {
		f.problem(name, "string", nil)
	}
	return f.Text(name)
}

// Duration is a number of units.
func (f *Fields) Duration(name string, unit time.Duration) time.Duration {
	return time.Duration(f.Number(name) * float64(unit))
}

// OptionalFlag is a boolean, or nil.
func (f *Fields) OptionalFlag(name string) *bool {
	if !f.Has(name) {
		return nil
	}
	v := f.Flag(name)
	return &v
}

// List is an array of strings.
func (f *Fields) List(name string) []string {
	raw, ok := f.get(name, "array")
	if !ok {
		return nil
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // its kind was checked
	all := make([]string, len(elements))
	for i, e := range elements {
		if json.Unmarshal(e, &all[i]) != nil || ordered.TypeOf(e) != "string" {
			f.problem(fmt.Sprintf("%s.%d", name, i), "string", e)
		}
	}
	return all
}

// Table is an object of strings.
func (f *Fields) Table(name string) map[string]string {
	raw, ok := f.get(name, "object")
	if !ok {
		return nil
	}
	all := map[string]string{}
	entries, _ := Members(raw) // its kind was checked
	for _, e := range entries {
		var v string
		if json.Unmarshal(e.Value, &v) != nil || ordered.TypeOf(e.Value) != "string" {
			f.problem(name+"."+e.Key, "string", e.Value)
		}
		all[e.Key] = v
	}
	return all
}

// Unknown names the members nobody asked for.
func (f *Fields) Unknown() []string {
	var names []string
	for name := range maps.Keys(f.m) {
		if !f.seen[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var errMembers = errors.New("not an object")

// Members lists an object's members in file order, each name once.
func Members(object json.RawMessage) (ordered.Object, error) {
	all, err := ordered.Parse(object)
	if err != nil {
		return nil, errMembers
	}
	return all.Distinct(), nil
}
