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

// configEntryReader reads the members of one entry of a configuration and collects all problems in them, not only the first.
type configEntryReader struct {
	members         map[string]json.RawMessage
	Problems        []string // one line each
	readMemberNames map[string]bool
}

func readEntry(entry json.RawMessage) *configEntryReader {
	f := &configEntryReader{readMemberNames: map[string]bool{}}
	if plainjson.TypeOf(entry) != "object" {
		f.addWrongTypeProblem("", "object", entry)
		return f
	}
	if err := json.Unmarshal(entry, &f.members); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	return f
}

// IsEmpty reports whether the entry has no members, because it is not an object.
func (f *configEntryReader) IsEmpty() bool { return f.members == nil }

// Has reports whether the member exists, even with the value null.
func (f *configEntryReader) Has(name string) bool {
	_, has := f.members[name]
	return has
}

func (f *configEntryReader) AddProblem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

func (f *configEntryReader) addWrongTypeProblem(field, want string, got json.RawMessage) {
	text := fmt.Sprintf("expected %s, received %s", want, plainjson.TypeOf(got))
	if field != "" {
		text = field + ": " + text
	}
	f.Problems = append(f.Problems, text)
}

func (f *configEntryReader) takeMember(name, kind string) (json.RawMessage, bool) {
	f.readMemberNames[name] = true
	v, ok := f.members[name]
	if !ok {
		return nil, false
	}
	if k := plainjson.TypeOf(v); k != kind {
		want := kind
		if kind == "object" {
			want = "record"
		}
		f.addWrongTypeProblem(name, want, v)
		return nil, false
	}
	return v, true
}

func readField[T any](f *configEntryReader, name, kind string) (v T) {
	if raw, ok := f.takeMember(name, kind); ok {
		if err := json.Unmarshal(raw, &v); err != nil {
			f.Problems = append(f.Problems, name+": "+err.Error())
		}
	}
	return v
}

// Text returns a string member; "" if absent.
func (f *configEntryReader) Text(name string) string { return readField[string](f, name, "string") }

// Flag returns a boolean member; false if absent.
func (f *configEntryReader) Flag(name string) bool { return readField[bool](f, name, "boolean") }

// Number returns a number member; 0 if absent.
func (f *configEntryReader) Number(name string) float64 { return readField[float64](f, name, "number") }

// RequiredText is like Text, but records a problem if the member is absent.
func (f *configEntryReader) RequiredText(name string) string {
	if !f.Has(name) {
		f.addWrongTypeProblem(name, "string", nil)
	}
	return f.Text(name)
}

// Duration returns the duration that a number member specifies in the given unit.
func (f *configEntryReader) Duration(name string, unit time.Duration) time.Duration {
	return time.Duration(f.Number(name) * float64(unit))
}

// OptionalFlag returns a boolean member, or nil if absent.
func (f *configEntryReader) OptionalFlag(name string) *bool {
	if !f.Has(name) {
		return nil
	}
	return new(f.Flag(name))
}

// StringList returns a member that is an array of strings; nil if absent.
func (f *configEntryReader) StringList(name string) []string {
	raw, ok := f.takeMember(name, "array")
	if !ok {
		return nil
	}
	var elements []json.RawMessage
	_ = json.Unmarshal(raw, &elements) // takeMember has checked that it is an array
	all := make([]string, len(elements))
	for i, e := range elements {
		if json.Unmarshal(e, &all[i]) != nil || plainjson.TypeOf(e) != "string" {
			f.addWrongTypeProblem(fmt.Sprintf("%s.%d", name, i), "string", e)
		}
	}
	return all
}

// StringMap returns a member that is an object with string values; nil if absent.
func (f *configEntryReader) StringMap(name string) map[string]string {
	raw, ok := f.takeMember(name, "object")
	if !ok {
		return nil
	}
	all := map[string]string{}
	entries, _ := membersKeepingLastDuplicate(raw) // takeMember has checked that it is an object
	for _, e := range entries {
		var v string
		if json.Unmarshal(e.Value, &v) != nil || plainjson.TypeOf(e.Value) != "string" {
			f.addWrongTypeProblem(name+"."+e.Key, "string", e.Value)
		}
		all[e.Key] = v
	}
	return all
}

// Object returns a reader of a member that is an object, with its own Problems; nil if absent.
func (f *configEntryReader) Object(name string) *configEntryReader {
	raw, ok := f.takeMember(name, "object")
	if !ok {
		return nil
	}
	return readEntry(raw)
}

// UnreadMembers returns the names of the members that were not read.
func (f *configEntryReader) UnreadMembers() []string {
	var names []string
	for name := range maps.Keys(f.members) {
		if !f.readMemberNames[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func membersKeepingLastDuplicate(object json.RawMessage) (plainjson.Object, error) {
	all, err := plainjson.Parse(object)
	return all.Distinct(), err
}

// variablePattern matches ${NAME} and ${NAME:-default}, and also ${env:NAME}, which editors use.
var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })

// configVariableValues maps names of variables to their values. Strings in an entry refer to them, as in ${HOME}.
type configVariableValues map[string]string

// newVariables returns the environment variables ("K=V") and those that editors define, such as workspaceFolder (cwd).
func newVariables(environ []string, cwd string) configVariableValues {
	vars := configVariableValues{"workspaceFolder": cwd, "workspaceFolderBasename": filepath.Base(cwd)}
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
func (vars configVariableValues) Expand(text string) (expanded string, unset []string) {
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
