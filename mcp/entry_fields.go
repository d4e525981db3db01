package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

// entryFields reads the members of one entry of a configuration and collects all problems in them, not only the first.
type entryFields struct {
	members   map[string]json.RawMessage
	Problems  []string // one line each
	readNames map[string]bool
}

func readEntry(entry json.RawMessage) *entryFields {
	f := &entryFields{readNames: map[string]bool{}}
	if plainjson.TypeOf(entry) != "object" {
		f.addProblem("", "object", entry)
		return f
	}
	if err := json.Unmarshal(entry, &f.members); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	return f
}

// IsEmpty reports whether the entry has no members because it was not an object.
func (f *entryFields) IsEmpty() bool { return f.members == nil }

// Has reports whether the member exists, even with the value null.
func (f *entryFields) Has(name string) bool {
	_, has := f.members[name]
	return has
}

func (f *entryFields) AddProblem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *entryFields) addProblem(field, want string, got json.RawMessage) {
	text := fmt.Sprintf("expected %s, received %s", want, plainjson.TypeOf(got))
	if field != "" {
		text = field + ": " + text
	}
	f.Problems = append(f.Problems, text)
}

func (f *entryFields) takeMember(name, kind string) (json.RawMessage, bool) {
	f.readNames[name] = true
	v, ok := f.members[name]
	if !ok {
		return nil, false
	}
	if k := plainjson.TypeOf(v); k != kind {
		want := kind
		if kind == "object" {
			want = "record"
		}
		f.addProblem(name, want, v)
		return nil, false
	}
	return v, true
}

func readField[T any](f *entryFields, name, kind string) (v T) {
	if raw, ok := f.takeMember(name, kind); ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			f.Problems = append(f.Problems, name+": "+err.Error())
		}
	}
	return v
}

// Text returns a string member; "" if absent.
func (f *entryFields) Text(name string) string { return readField[string](f, name, "string") }

// Flag returns a boolean member; false if absent.
func (f *entryFields) Flag(name string) bool { return readField[bool](f, name, "boolean") }

// Number returns a number member; 0 if absent.
func (f *entryFields) Number(name string) float64 { return readField[float64](f, name, "number") }

// Required is like Text, but records a problem if the member is absent.
func (f *entryFields) Required(name string) string {
	if !f.Has(name) {
		f.addProblem(name, "string", nil)
	}
	return f.Text(name)
}

// Duration returns a number member in the given unit.
func (f *entryFields) Duration(name string, unit time.Duration) time.Duration {
	return time.Duration(f.Number(name) * float64(unit))
}

// OptionalFlag returns a boolean member, or nil if absent.
func (f *entryFields) OptionalFlag(name string) *bool {
	if !f.Has(name) {
		return nil
	}
	v := f.Flag(name)
	return &v
}

// StringList returns a member that is an array of strings; nil if absent.
func (f *entryFields) StringList(name string) []string {
	raw, ok := f.takeMember(name, "array")
	if !ok {
		return nil
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // takeMember has checked that it is an array
	all := make([]string, len(elements))
	for i, e := range elements {
		if json.Unmarshal(e, &all[i]) != nil || plainjson.TypeOf(e) != "string" {
			f.addProblem(fmt.Sprintf("%s.%d", name, i), "string", e)
		}
	}
	return all
}

// StringMap returns a member that is an object with string values; nil if absent.
func (f *entryFields) StringMap(name string) map[string]string {
	raw, ok := f.takeMember(name, "object")
	if !ok {
		return nil
	}
	all := map[string]string{}
	entries, _ := distinctMembers(raw) // takeMember has checked that it is an object
	for _, e := range entries {
		var v string
		if json.Unmarshal(e.Value, &v) != nil || plainjson.TypeOf(e.Value) != "string" {
			f.addProblem(name+"."+e.Key, "string", e.Value)
		}
		all[e.Key] = v
	}
	return all
}

// Object returns a member that is an object, as the fields of this object; nil if absent. Problems in the object are
// recorded in the returned fields, not in f.
func (f *entryFields) Object(name string) *entryFields {
	raw, ok := f.takeMember(name, "object")
	if !ok {
		return nil
	}
	return readEntry(raw)
}

// Unknown returns the names of the members that were not read.
func (f *entryFields) Unknown() []string {
	var names []string
	for name := range maps.Keys(f.members) {
		if !f.readNames[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func distinctMembers(object json.RawMessage) (plainjson.Object, error) {
	all, err := plainjson.Parse(object)
	return all.Distinct(), err
}

// variablePattern matches ${NAME} and ${NAME:-default}, and also ${env:NAME}, which editors use.
var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })

// variables maps names of variables to their values. Strings in an entry refer to them, as in ${HOME}.
type variables map[string]string

// newVariables returns the environment variables ("K=V") and those that editors define, such as workspaceFolder (cwd).
func newVariables(environ []string, cwd string) variables {
	vars := variables{"workspaceFolder": cwd, "workspaceFolderBasename": filepath.Base(cwd)}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	if home, ok := vars["HOME"]; ok {
		vars["userHome"] = home
	}
	return vars
}

// Expand replaces variables by their values. Unset variables without default stay in the text and are listed in unset.
func (vars variables) Expand(text string) (expanded string, unset []string) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	expanded = variablePattern().ReplaceAllStringFunc(text, func(whole string) string {
		parts := variablePattern().FindStringSubmatch(whole)
		name := strings.TrimPrefix(parts[1], "env:")
		if v, ok := vars[name]; ok {
			return v
		}
		if parts[2] != "" {
			return parts[2][len(":-"):]
		}
		unset = append(unset, name)
		return whole
	})
	return expanded, unset
}
